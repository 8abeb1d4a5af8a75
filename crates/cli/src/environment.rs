//! The one place that reads environment variables.

use crate::error::{Error, Result};
use avfs_api::Place;
use avfs_api::start::Starter;
use avfs_api::wire::Class;
use avfs_runtime::PrincipalName;
use etcetera::BaseStrategy;
use std::env;
use std::ffi::OsString;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The variables that a daemon inherits from the client that starts it.
const PASSED_ON: [&str; 7] = [
    "HOME",
    "PATH",
    "LANG",
    "TZ",
    "USER",
    "XDG_CONFIG_HOME",
    "RUST_BACKTRACE",
];

/// `TERM`, if it is a plausible terminal name.
pub fn term() -> String {
    let named = env::var("TERM").unwrap_or_default();
    let is_name = |c: char| c.is_ascii_alphanumeric() || "-+._".contains(c);
    match !named.is_empty() && named.len() <= 64 && named.chars().all(is_name) {
        true => named,
        false => "xterm".into(),
    }
}

/// The paths of the home that the environment names.
pub fn place() -> Result<Place> {
    let place = Place::new(&home()?, runtime_base().as_deref())?;
    let agent = agent()?;
    let class = match &agent {
        Some(_) => Class::Agent,
        None => class()?,
    };
    Ok(place.as_caller(class, agent))
}

/// `AVFS_CLASS`: a program that runs avfs for an agent gives up the owner class with it.
fn class() -> Result<Class> {
    let Some(word) = env::var_os("AVFS_CLASS").filter(|word| !word.is_empty()) else {
        return Ok(Class::Owner);
    };
    let word = word.to_string_lossy();
    Class::parse(&word).ok_or_else(|| Error::Invalid {
        text: format!("AVFS_CLASS is {word:?}, which is neither owner nor agent"),
        hint: None,
    })
}

/// `AVFS_AGENT`: the name of the agent. It also gives up the owner class.
fn agent() -> Result<Option<PrincipalName>> {
    let Some(name) = env::var_os("AVFS_AGENT").filter(|name| !name.is_empty()) else {
        return Ok(None);
    };
    let name = name.to_string_lossy();
    let parsed = name.parse().map_err(|_| Error::Invalid {
        text: format!("AVFS_AGENT is {name:?}, which cannot be the name of an agent"),
        hint: Some("up to 64 letters, digits and . _ - @ / +".into()),
    })?;
    Ok(Some(parsed))
}

/// `AVFS_HOME`, or `agentvfs` in the user's data directory.
pub fn home() -> Result<PathBuf> {
    if let Some(home) = env::var_os("AVFS_HOME").filter(|home| !home.is_empty()) {
        return std::path::absolute(home).map_err(Error::io("cannot resolve AVFS_HOME"));
    }
    match etcetera::base_strategy::Xdg::new() {
        Ok(dirs) => Ok(dirs.data_dir().join("agentvfs")),
        Err(_) => Err(Error::Unavailable {
            text: "there is no home directory".into(),
            hint: Some("set HOME or AVFS_HOME".into()),
        }),
    }
}

/// The directory for layers: the option, or `AVFS_LAYERS`.
pub fn layers(said: Option<PathBuf>) -> Result<Option<PathBuf>> {
    let set = || env::var_os("AVFS_LAYERS").filter(|dir| !dir.is_empty());
    let wanted = said.or_else(|| set().map(PathBuf::from));
    let absolute = wanted.map(std::path::absolute).transpose();
    absolute.map_err(Error::io("cannot resolve AVFS_LAYERS"))
}

/// `XDG_RUNTIME_DIR`, if it belongs to this user.
fn runtime_base() -> Option<PathBuf> {
    let base = PathBuf::from(env::var_os("XDG_RUNTIME_DIR")?);
    let meta = base.metadata().ok()?;
    let owned = meta.is_dir() && meta.uid() == rustix::process::geteuid().as_raw();
    (owned && base.is_absolute()).then_some(base)
}

/// How to start a daemon for `place`.
pub fn starter(place: Place) -> Result<Starter> {
    let base = env::var_os("XDG_RUNTIME_DIR");
    starter_with_base(place, base.as_deref().map(Path::new))
}

/// How to start a daemon for `place` with `base` as its `XDG_RUNTIME_DIR`.
pub fn starter_with_base(place: Place, base: Option<&Path>) -> Result<Starter> {
    let mut environment: Vec<(OsString, OsString)> = PASSED_ON
        .iter()
        .filter_map(|name| Some((OsString::from(name), env::var_os(name)?)))
        .collect();
    environment.push(("AVFS_HOME".into(), place.home().into()));
    if let Some(layers) = layers(None)? {
        environment.push(("AVFS_LAYERS".into(), layers.into()));
    }
    if let Some(base) = base {
        environment.push(("XDG_RUNTIME_DIR".into(), base.into()));
    }
    Ok(Starter {
        place,
        binary: binary()?,
        environment,
    })
}

/// The editor this user wants.
pub fn editor() -> String {
    let named = ["VISUAL", "EDITOR"]
        .into_iter()
        .find_map(|name| env::var(name).ok());
    named
        .filter(|editor| !editor.is_empty())
        .unwrap_or_else(|| "vi".into())
}

/// This program.
pub fn binary() -> Result<PathBuf> {
    env::current_exe().map_err(Error::io("cannot find this program's own file"))
}

/// The command line of a daemon. git's configuration is read here, because the daemon must not read the
/// user's files.
pub fn daemon_arguments() -> Vec<OsString> {
    let mut arguments: Vec<OsString> = vec!["serve".into(), "--detached".into()];
    let asked = Command::new("git")
        .args([
            "config",
            "--global",
            "--get-regexp",
            r"^user\.(name|email)$",
        ])
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output();
    let Ok(asked) = asked else { return arguments };
    for line in String::from_utf8_lossy(&asked.stdout).lines() {
        let option = match line.split_once(' ') {
            Some(("user.name", value)) => format!("--git-name={value}"),
            Some(("user.email", value)) => format!("--git-email={value}"),
            _ => continue,
        };
        arguments.push(option.into());
    }
    arguments
}

/// Which directories of the host commands see.
pub fn host_path() -> OsString {
    env::var_os("PATH").unwrap_or_default()
}

/// The file of the user's rules: `agentvfs/policy.toml` in the user's configuration directory.
pub fn user_policy() -> Option<PathBuf> {
    let dirs = etcetera::base_strategy::Xdg::new().ok()?;
    Some(dirs.config_dir().join("agentvfs/policy.toml"))
}

pub fn user_home() -> Option<PathBuf> {
    env::var_os("HOME")
        .map(PathBuf::from)
        .filter(|home| home.is_absolute())
}
