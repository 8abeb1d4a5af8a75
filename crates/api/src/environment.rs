//! What programs of this user take from their environment: which home, in which class and under which name, and what
//! the sandboxes of that home may know of the host. The command line and the library read it here, so that both mean
//! the same home.

use crate::daemon_paths::DaemonPaths;
use crate::error::{Error, Result};
use crate::wire::Class;
use avfs_runtime::{HostFacts, HostProxies, PrincipalName, RegistryVariables};
use etcetera::BaseStrategy;
use std::env;
use std::ffi::OsString;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

/// The place of the home that this environment names, for the caller that it names.
pub fn place() -> Result<DaemonPaths> {
    let place = DaemonPaths::new(&home()?, runtime_base().as_deref())?;
    let (class, name) = caller()?;
    Ok(place.as_caller(class, name))
}

/// In which class, and under which name, a program with this environment asks.
pub fn caller() -> Result<(Class, Option<PrincipalName>)> {
    match agent()? {
        Some(name) => Ok((Class::Agent, Some(name))),
        None => Ok((class()?, None)),
    }
}

/// `AVFS_CLASS`: a program that runs another one for an agent can give up what is the owner's.
fn class() -> Result<Class> {
    let Some(word) = set("AVFS_CLASS") else {
        return Ok(Class::Owner);
    };
    let word = word.to_string_lossy();
    Class::parse(&word).ok_or_else(|| Error::Setting {
        text: format!("AVFS_CLASS is {word:?}, which is neither owner nor agent"),
        hint: None,
    })
}

/// `AVFS_AGENT`: the name of the agent that runs this program. It gives the owner's class up, too.
fn agent() -> Result<Option<PrincipalName>> {
    match set("AVFS_AGENT") {
        Some(name) => agent_name("AVFS_AGENT", &name.to_string_lossy()).map(Some),
        None => Ok(None),
    }
}

/// The name of an agent from its text. `source` says where the text comes from.
pub fn agent_name(source: &str, text: &str) -> Result<PrincipalName> {
    text.parse().map_err(|_| Error::Setting {
        text: format!("{source} is {text:?}, which cannot be the name of an agent"),
        hint: Some("up to 64 letters, digits and . _ - @ / +".into()),
    })
}

/// `AVFS_HOME`, or `agentvfs` among the user's data.
pub fn home() -> Result<PathBuf> {
    if let Some(home) = set("AVFS_HOME") {
        return absolute(home.into());
    }
    match etcetera::base_strategy::Xdg::new() {
        Ok(dirs) => Ok(dirs.data_dir().join("agentvfs")),
        Err(_) => Err(Error::NoHomeDirectory),
    }
}

/// Where layers are to be: as said, or `AVFS_LAYERS`.
pub fn layers(said: Option<PathBuf>) -> Result<Option<PathBuf>> {
    let wanted = said.or_else(|| set("AVFS_LAYERS").map(PathBuf::from));
    wanted.map(absolute).transpose()
}

/// `XDG_RUNTIME_DIR`, if it is this user's own.
pub fn runtime_base() -> Option<PathBuf> {
    let base = PathBuf::from(env::var_os("XDG_RUNTIME_DIR")?);
    let meta = base.metadata().ok()?;
    let owned = meta.is_dir() && meta.uid() == rustix::process::geteuid().as_raw();
    (owned && base.is_absolute()).then_some(base)
}

/// What sandboxes may know of this host. A name in commits that goes before git's own is added by whoever was told one.
pub fn host_facts() -> HostFacts {
    HostFacts {
        user_home: env::var_os("HOME")
            .map(PathBuf::from)
            .filter(|home| home.is_absolute()),
        user_policy: configured("policy.toml"),
        secret_key: configured("secrets.key"),
        path: env::var_os("PATH").unwrap_or_default(),
        git_name: None,
        git_email: None,
        proxies: HostProxies {
            http: proxy(&["http_proxy", "HTTP_PROXY"]),
            https: proxy(&["https_proxy", "HTTPS_PROXY"]),
            except: proxy(&["no_proxy", "NO_PROXY"]),
        },
        registries: RegistryVariables(
            env::vars_os()
                .filter_map(|(name, value)| {
                    Some((name.into_string().ok()?, value.into_string().ok()?))
                })
                .filter(|(name, _)| is_of_registries(name))
                .collect(),
        ),
    }
}

/// Whether package managers read this variable, or their configuration may name it.
pub fn is_of_registries(name: &str) -> bool {
    const PREFIXES: [&str; 4] = ["PIP_", "npm_config_", "NPM_CONFIG_", "CARGO_REGISTRIES_"];
    const NAMES: [&str; 9] = [
        "CARGO_HOME",
        "RUSTUP_HOME",
        "RUSTUP_TOOLCHAIN",
        "PYENV_ROOT",
        "PYENV_VERSION",
        "XDG_CONFIG_DIRS",
        "XDG_CONFIG_HOME",
        // What files of npm usually name.
        "NPM_TOKEN",
        "NODE_AUTH_TOKEN",
    ];
    NAMES.contains(&name) || PREFIXES.iter().any(|prefix| name.starts_with(prefix))
}

/// The first of these variables that says something.
fn proxy(names: &[&str]) -> Option<String> {
    let said = names.iter().filter_map(|name| env::var(name).ok());
    said.into_iter().find(|value| !value.is_empty())
}

/// A file of ours among the user's configuration.
fn configured(name: &str) -> Option<PathBuf> {
    let dirs = etcetera::base_strategy::Xdg::new().ok()?;
    Some(dirs.config_dir().join("agentvfs").join(name))
}

/// A variable that is there and not empty.
fn set(name: &str) -> Option<OsString> {
    env::var_os(name).filter(|value| !value.is_empty())
}

fn absolute(path: PathBuf) -> Result<PathBuf> {
    std::path::absolute(&path).map_err(|source| Error::File {
        what: "resolve",
        path,
        source,
    })
}
