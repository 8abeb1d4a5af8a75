//! What the command line takes from its environment: what all programs do (`avfs_api::environment`), this program's own
//! file, the terminal and the editor.

use crate::error::{Error, Result};
use avfs_api::start::Starter;
use avfs_api::{DaemonPaths, environment};
use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// The variables that a daemon inherits from the client that starts it. The proxies are those that the host needs.
const PASSED_ON: [&str; 16] = [
    "HOME",
    "PATH",
    "LANG",
    "TZ",
    "USER",
    "XDG_CONFIG_HOME",
    // Who the user is in commits.
    "GIT_CONFIG_GLOBAL",
    "RUST_BACKTRACE",
    // The authorities that its hosts are believed by.
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "HTTP_PROXY",
    "http_proxy",
    "HTTPS_PROXY",
    "https_proxy",
    "NO_PROXY",
    "no_proxy",
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
pub fn place() -> Result<DaemonPaths> {
    Ok(environment::place()?)
}

/// The home this environment names.
pub fn home() -> Result<PathBuf> {
    Ok(environment::home()?)
}

/// The directory for layers: the option, or `AVFS_LAYERS`.
pub fn layers(said: Option<PathBuf>) -> Result<Option<PathBuf>> {
    Ok(environment::layers(said)?)
}

/// How to start a daemon for `place`.
pub fn starter(place: DaemonPaths) -> Result<Starter> {
    let base = env::var_os("XDG_RUNTIME_DIR");
    starter_with_base(place, base.as_deref().map(Path::new))
}

/// How to start a daemon for `place` with `base` as its `XDG_RUNTIME_DIR`.
pub fn starter_with_base(place: DaemonPaths, base: Option<&Path>) -> Result<Starter> {
    let mut passed: Vec<(OsString, OsString)> = PASSED_ON
        .iter()
        .filter_map(|name| Some((OsString::from(name), env::var_os(name)?)))
        .collect();
    // It looks at the package registries that this user has.
    let registries = env::vars_os().filter(|(name, _)| {
        let name = name.to_str();
        name.is_some_and(|name| !PASSED_ON.contains(&name) && environment::is_of_registries(name))
    });
    passed.extend(registries);
    passed.push(("AVFS_HOME".into(), place.home().into()));
    if let Some(layers) = layers(None)? {
        passed.push(("AVFS_LAYERS".into(), layers.into()));
    }
    if let Some(base) = base {
        passed.push(("XDG_RUNTIME_DIR".into(), base.into()));
    }
    Ok(Starter {
        place,
        binary: binary()?,
        environment: passed,
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

/// The command line of a daemon.
pub fn daemon_arguments() -> Vec<OsString> {
    ["serve", "--detached"].map(OsString::from).to_vec()
}
