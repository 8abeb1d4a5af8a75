//! `avfs service`: the daemon as a systemd user unit.
//!
//! The unit is a plain file, so it can be written where no systemd runs; then the answer says what to run.

use super::serve;
use crate::args::{ServiceInstallArgs, ServiceVerb, SharedServeArgs};
use crate::environment;
use crate::error::{Error, Result};
use crate::output::Output;
use serde::Serialize;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const UNIT: &str = "agentvfs.service";
/// Only a unit that begins with this is replaced or removed.
const MARK: &str = "# Made by `avfs service install`; changes are overwritten.\n";

#[derive(Serialize)]
struct ServiceState {
    unit: &'static str,
    path: String,
    installed: bool,
    /// Null: no systemd of this user can be asked.
    enabled: Option<bool>,
    active: Option<bool>,
    /// Commands that are left to do.
    run: Vec<String>,
}

pub fn run(verb: ServiceVerb, output: Output) -> Result<()> {
    let path = unit_path()?;
    let run = match verb {
        ServiceVerb::Install(args) => install(&args, &path)?,
        ServiceVerb::Remove => remove(&path)?,
        ServiceVerb::Status => Vec::new(),
    };
    let state = ServiceState::of(&path, run)?;
    output.answer(&state, text)
}

impl ServiceState {
    fn of(path: &Path, run: Vec<String>) -> Result<ServiceState> {
        let asked = |verb: &str| has_systemd().then(|| systemctl(&[verb, "--quiet", UNIT]));
        Ok(ServiceState {
            unit: UNIT,
            path: path.display().to_string(),
            installed: read(path)?.is_some(),
            enabled: asked("is-enabled"),
            active: asked("is-active"),
            run,
        })
    }
}

fn text(state: &ServiceState) -> String {
    let word = |yes: Option<bool>, word: &str| match yes {
        Some(true) => format!(", {word}"),
        Some(false) => format!(", not {word}"),
        None => String::new(),
    };
    let mut text = match state.installed {
        true => format!(
            "{} is installed{}{}\n{}",
            state.unit,
            word(state.enabled, "enabled"),
            word(state.active, "active"),
            state.path
        ),
        false => format!("{} is not installed", state.unit),
    };
    if !state.run.is_empty() {
        text.push_str("\nsystemd does not run for this user here; where it does, run:");
        for command in &state.run {
            text.push_str(&format!("\n  {command}"));
        }
    }
    text
}

/// Writes the unit, and starts it if there is a systemd. Gives what is left to do.
fn install(args: &ServiceInstallArgs, path: &Path) -> Result<Vec<String>> {
    // What `serve` would refuse is refused now.
    serve::listen(&args.serve)?;
    serve::collector(&args.serve)?;
    let unit = unit(&environment::binary()?, &environment::home()?, &args.serve)?;
    if let Some(there) = read(path)?
        && !there.starts_with(MARK)
    {
        return Err(foreign(path));
    }
    write(path, &unit)?;
    let start = match args.no_start {
        true => vec!["enable", UNIT],
        false => vec!["enable", "--now", UNIT],
    };
    act(&[&["daemon-reload"], &start])
}

fn remove(path: &Path) -> Result<Vec<String>> {
    match read(path)? {
        None => return Ok(Vec::new()),
        Some(there) if !there.starts_with(MARK) => return Err(foreign(path)),
        Some(_) => {}
    }
    let mut left = act(&[&["disable", "--now", UNIT]])?;
    fs::remove_file(path).map_err(Error::io(format!("cannot remove {}", path.display())))?;
    left.extend(act(&[&["daemon-reload"]])?);
    Ok(left)
}

/// Has systemd do it, or gives the commands.
fn act(steps: &[&[&str]]) -> Result<Vec<String>> {
    if !has_systemd() {
        let command = |words: &&[&str]| format!("systemctl --user {}", words.join(" "));
        return Ok(steps.iter().map(command).collect());
    }
    for words in steps {
        if !systemctl(words) {
            return Err(Error::Unavailable {
                text: format!("systemctl --user {} failed", words.join(" ")),
                hint: Some(format!("journalctl --user -u {UNIT} has the reason")),
            });
        }
    }
    Ok(Vec::new())
}

/// Whether a systemd of this user runs: it has a socket in the runtime directory.
fn has_systemd() -> bool {
    let dir = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    dir.is_some_and(|dir| dir.is_absolute() && dir.join("systemd/private").exists())
}

fn systemctl(words: &[&str]) -> bool {
    let mut command = Command::new("systemctl");
    command.arg("--user").args(words).stdin(Stdio::null());
    command.stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

fn unit_path() -> Result<PathBuf> {
    let config = std::env::var_os("XDG_CONFIG_HOME").map(PathBuf::from);
    let config = config.filter(|dir| dir.is_absolute());
    let home = std::env::var_os("HOME").map(PathBuf::from);
    let config = config.or_else(|| Some(home?.join(".config")));
    let config = config.ok_or_else(|| Error::Invalid {
        text: "neither XDG_CONFIG_HOME nor HOME is set".into(),
        hint: None,
    })?;
    Ok(config.join("systemd/user").join(UNIT))
}

fn read(path: &Path) -> Result<Option<String>> {
    match fs::read(path) {
        Ok(bytes) => Ok(Some(String::from_utf8_lossy(&bytes).into_owned())),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Error::io(format!("cannot read {}", path.display()))(error)),
    }
}

fn write(path: &Path, text: &str) -> Result<()> {
    let failed = || Error::io(format!("cannot write {}", path.display()));
    if let Some(dir) = path.parent() {
        fs::create_dir_all(dir).map_err(failed())?;
    }
    let draft = path.with_extension("new");
    fs::write(&draft, text).map_err(failed())?;
    fs::rename(&draft, path).map_err(failed())
}

fn foreign(path: &Path) -> Error {
    Error::Invalid {
        text: format!("{} was not made by avfs", path.display()),
        hint: Some("move it away first".into()),
    }
}

/// The unit's text.
fn unit(binary: &Path, home: &Path, args: &SharedServeArgs) -> Result<String> {
    let mut start = vec![quoted(binary.as_os_str())?];
    for word in serve_words(args)? {
        start.push(quoted(&word)?);
    }
    let mut variable = OsString::from("AVFS_HOME=");
    variable.push(home);
    Ok(format!(
        "{MARK}[Unit]\nDescription=agentvfs\n\n[Service]\nType=exec\nEnvironment={}\nExecStart={}\n\
         Restart=on-failure\nRestartSec=2\nKillMode=mixed\nTimeoutStopSec=30\n\n\
         [Install]\nWantedBy=default.target\n",
        quoted(&variable)?,
        start.join(" "),
    ))
}

/// The command line of `serve` with these options. Paths are absolute; it does not end by itself.
fn serve_words(args: &SharedServeArgs) -> Result<Vec<OsString>> {
    let mut words: Vec<OsString> = ["serve", "--idle-timeout", "0"].map(Into::into).into();
    let mut add = |name: &str, value: OsString| words.extend([name.into(), value]);
    if let Some(address) = args.listen {
        add("--listen", address.to_string().into());
    }
    for host in &args.hosts {
        add("--host", host.into());
    }
    let texts = [
        ("--jwt-issuer", &args.jwt_issuer),
        ("--jwt-audience", &args.jwt_audience),
        ("--otlp-endpoint", &args.otlp_endpoint),
        ("--git-name", &args.git_name),
        ("--git-email", &args.git_email),
    ];
    for (name, value) in texts {
        if let Some(value) = value {
            add(name, value.into());
        }
    }
    let paths = [
        ("--tls-cert", &args.tls_cert),
        ("--tls-key", &args.tls_key),
        ("--layers", &args.layers),
    ];
    for (name, path) in paths {
        if let Some(path) = path {
            add(name, serve::absolute(path)?.into());
        }
    }
    if let Some(keys) = &args.jwt_keys {
        let is_url = keys.to_str().is_some_and(|text| text.contains("://"));
        let keys = match is_url {
            true => keys.clone(),
            false => serve::absolute(Path::new(keys))?.into(),
        };
        add("--jwt-keys", keys);
    }
    if args.insecure_plaintext {
        words.push("--insecure-plaintext".into());
    }
    if args.log_requests {
        words.push("--log-requests".into());
    }
    Ok(words)
}

/// A word of a unit file. systemd expands `%` and `$`, and reads escapes in quotes.
fn quoted(word: &OsStr) -> Result<String> {
    let text = std::str::from_utf8(word.as_bytes()).ok();
    let text = text.filter(|text| !text.chars().any(char::is_control));
    let text = text.ok_or_else(|| Error::Invalid {
        text: format!("{word:?} cannot be written into a unit"),
        hint: None,
    })?;
    let escaped = text
        .replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('%', "%%")
        .replace('$', "$$");
    Ok(format!("\"{escaped}\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_not_expanded() {
        let text = quoted(OsStr::new(r#"/a b/%h "$HOME" \x"#)).expect("text");
        assert_eq!(text, r#""/a b/%%h \"$$HOME\" \\x""#);
        for wrong in [&b"a\nb"[..], b"a\xffb", b"\x1b"] {
            assert!(quoted(OsStr::from_bytes(wrong)).is_err(), "{wrong:?}");
        }
    }
}
