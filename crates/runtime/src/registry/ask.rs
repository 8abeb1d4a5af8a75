//! Programs of the host, asked what they use without configuration. They are the owner's own, never a vault's, and have little time.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::io::Read;
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use rustix::fs::{Access, access};
use rustix::process::{Pid, Signal, kill_process_group};

use super::address::Address;
use super::pip;
use super::recorder::{Recorder, random_word};

/// How long one program may take.
const PATIENCE: Duration = Duration::from_secs(20);
/// Bytes of an answer.
const ANSWER_MAX: u64 = 64 << 10;
/// The first lines of scripts.
const SHEBANG_MAX: u64 = 512;

/// What is known of the host.
pub(super) struct Facts {
    pub home: Option<PathBuf>,
    path: OsString,
    variables: BTreeMap<String, String>,
    /// Where vaults are mounted: nothing there is the owner's own.
    vaults: Vec<PathBuf>,
    /// A directory that only this user can write to.
    private: PathBuf,
}

impl Facts {
    pub fn new(
        host: &crate::live::host::HostFacts,
        vaults: Vec<PathBuf>,
        private: PathBuf,
    ) -> Facts {
        Facts {
            home: host.user_home.clone(),
            path: host.path.clone(),
            variables: host.registries.0.clone(),
            vaults,
            private,
        }
    }

    pub fn variable(&self, name: &str) -> Option<&str> {
        self.variables.get(name).map(String::as_str)
    }

    pub fn variables(&self) -> impl Iterator<Item = (&String, &String)> {
        self.variables.iter()
    }

    /// The first program of this name that is no vault's. Only absolute directories are looked in.
    pub fn program(&self, name: &str) -> Option<PathBuf> {
        let dirs = std::env::split_paths(&self.path).filter(|dir| dir.is_absolute());
        let mut found = dirs.map(|dir| dir.join(name));
        found.find(|path| self.is_own(path))
    }

    fn is_own(&self, path: &Path) -> bool {
        let Ok(real) = path.canonicalize() else {
            return false;
        };
        let of_vault = self.vaults.iter().any(|vault| real.starts_with(vault));
        !of_vault && real.is_file() && access(&real, Access::EXEC_OK).is_ok()
    }

    #[cfg(test)]
    pub fn of_nobody() -> Facts {
        Facts {
            home: None,
            path: OsString::new(),
            variables: BTreeMap::new(),
            vaults: Vec::new(),
            private: PathBuf::from("/nowhere"),
        }
    }

    #[cfg(test)]
    pub fn set(&mut self, name: &str, value: &str) {
        self.variables.insert(name.to_owned(), value.to_owned());
    }

    /// A program with an environment of its own: what it needs to find itself, and none of its configuration.
    fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command
            .env_clear()
            .env("PATH", &self.path)
            .env("LANG", "C.UTF-8")
            .current_dir("/")
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        if let Some(home) = &self.home {
            command.env("HOME", home);
        }
        for name in [
            "RUSTUP_HOME",
            "RUSTUP_TOOLCHAIN",
            "PYENV_ROOT",
            "PYENV_VERSION",
        ] {
            if let Some(value) = self.variable(name) {
                command.env(name, value);
            }
        }
        command
    }
}

/// The index that pip uses, and the host of its files.
pub(super) fn pip(facts: &Facts) -> Result<Vec<String>, String> {
    let mut programs = Vec::new();
    for script in ["pip", "pip3"] {
        let path = facts.program(script);
        programs.extend(path.and_then(|path| interpreter(&path)));
    }
    programs.extend(
        ["python3", "python"]
            .iter()
            .filter_map(|name| facts.program(name)),
    );
    programs.retain(|path| facts.is_own(path));
    programs.dedup();
    let mut why = "there is no python3 on the daemon's PATH".to_owned();
    for program in programs {
        let mut command = facts.command(&program);
        // Bytecode is not written: asking changes nothing.
        command.args(["-B", "-c", pip::ASKS]);
        match run(command).and_then(|said| said.lines("python3")) {
            Ok(lines) if lines.len() == 2 => return Ok(lines),
            Ok(_) => why = "it gave an odd answer".to_owned(),
            Err(error) => why = error,
        }
    }
    Err(why)
}

/// What a script is run by, if that is one program without words of its own.
fn interpreter(script: &Path) -> Option<PathBuf> {
    let mut text = Vec::new();
    let file = fs::File::open(script).ok()?;
    file.take(SHEBANG_MAX).read_to_end(&mut text).ok()?;
    let text = String::from_utf8_lossy(&text);
    let path = text.lines().next()?.strip_prefix("#!")?.trim();
    let path = PathBuf::from(path);
    let name = path.file_name()?.to_str()?;
    (path.is_absolute() && name.starts_with("python")).then_some(path)
}

/// The registry that npm uses without configuration, and the file of the whole host's configuration.
pub(super) fn npm(facts: &Facts, user_file: Option<&Path>) -> Result<Vec<String>, String> {
    let program = facts.program("npm");
    let program = program.ok_or("there is no npm on the daemon's PATH")?;
    let ask = |key: &str| {
        let mut command = facts.command(&program);
        command.args(["config", "get", key]);
        command.env("npm_config_update_notifier", "false");
        command
    };
    let mut default = ask("registry");
    // Files that are not there; two, since npm refuses to read one twice.
    default.env("npm_config_userconfig", facts.private.join("no-npmrc"));
    default.env(
        "npm_config_globalconfig",
        facts.private.join("no-global-npmrc"),
    );
    let mut global = ask("globalconfig");
    if let Some(file) = user_file {
        global.env("npm_config_userconfig", file);
    }
    let own = facts.variables().filter(|(name, _)| {
        let name = name.to_ascii_lowercase();
        ["npm_config_prefix", "npm_config_globalconfig"].contains(&name.as_str())
    });
    global.envs(own);
    let mut lines = run(default)?.lines("npm")?;
    lines.truncate(1);
    let global = run(global)?.lines("npm")?;
    lines.extend(global.into_iter().take(1));
    match lines.len() {
        2 => Ok(lines),
        _ => Err("npm gave an odd answer".to_owned()),
    }
}

/// The index that cargo uses without configuration. cargo is run on an empty project behind a proxy that lets nothing through: the
/// host that it asks for is the one, and its complaint has the whole address.
pub(super) fn cargo(facts: &Facts) -> Result<Vec<String>, String> {
    let program = facts.program("cargo");
    let program = program.ok_or("there is no cargo on the daemon's PATH")?;
    let failed = |error: std::io::Error| error.to_string();
    let project = Project::make(&facts.private).map_err(failed)?;
    let recorder = Recorder::start().map_err(failed)?;
    let mut command = facts.command(&program);
    command
        .args(["fetch", "--color", "never"])
        .current_dir(&project.0)
        .env("CARGO_HOME", project.0.join("home"))
        .env("CARGO_NET_RETRY", "0")
        .env("RUSTUP_AUTO_INSTALL", "0");
    // rustup asks for nothing either.
    for name in [
        "CARGO_HTTP_PROXY",
        "HTTPS_PROXY",
        "https_proxy",
        "HTTP_PROXY",
        "http_proxy",
    ] {
        command.env(name, recorder.url());
    }
    let said = run(command)?;
    let asked = recorder.asked();
    let addresses = said
        .error
        .split('`')
        .filter(|word| word.ends_with("/config.json"));
    let addresses = addresses.filter_map(|word| {
        let index = word.strip_suffix("config.json")?;
        let (address, _) = Address::parse(index).ok()?;
        let known = asked.contains(&address.at().to_string());
        known.then(|| address.to_string())
    });
    let first = addresses.into_iter().next();
    let first = first.ok_or("cargo did not say which index it uses by itself")?;
    Ok(vec![first])
}

/// A project that needs a package, in a directory that ends with it.
struct Project(PathBuf);

impl Project {
    fn make(private: &Path) -> std::io::Result<Project> {
        let dir = private.join(format!("registries-{}", random_word()?));
        fs::DirBuilder::new().mode(0o700).create(&dir)?;
        let project = Project(dir);
        fs::create_dir(project.0.join("src"))?;
        fs::write(project.0.join("src/lib.rs"), "")?;
        let manifest = "[package]\nname = \"asks\"\nversion = \"0.0.0\"\n[dependencies]\nany = \"*\"\n[workspace]\n";
        fs::write(project.0.join("Cargo.toml"), manifest)?;
        Ok(project)
    }
}

impl Drop for Project {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// What a program wrote.
struct Said {
    success: bool,
    text: String,
    error: String,
}

impl Said {
    /// The lines of its answer, if it succeeded.
    fn lines(self, name: &str) -> Result<Vec<String>, String> {
        let lines = self
            .text
            .lines()
            .map(str::trim)
            .filter(|line| !line.is_empty());
        match self.success {
            true => Ok(lines.map(str::to_owned).collect()),
            false => {
                let last = self.error.lines().last().unwrap_or("nothing").trim();
                let last: String = last.chars().filter(|c| !c.is_control()).take(200).collect();
                Err(format!("{name} failed: {last}"))
            }
        }
    }
}

/// Ends with all that it started.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let group = i32::try_from(self.0.id()).ok().and_then(Pid::from_raw);
        if let Some(group) = group {
            let _ = kill_process_group(group, Signal::KILL);
        }
        let _ = self.0.wait();
    }
}

fn run(mut command: Command) -> Result<Said, String> {
    let program = command.get_program().to_string_lossy().into_owned();
    let child = command
        .spawn()
        .map_err(|error| format!("{program}: {error}"))?;
    let mut running = Running(child);
    let (sender, receiver) = mpsc::channel();
    let (out, err) = (running.0.stdout.take(), running.0.stderr.take());
    let out = out.map(|pipe| Box::new(pipe) as Box<dyn Read + Send>);
    let err = err.map(|pipe| Box::new(pipe) as Box<dyn Read + Send>);
    for (number, pipe) in [out, err].into_iter().enumerate() {
        let sender = sender.clone();
        // Ends with the pipe, and that with the processes.
        std::thread::spawn(move || {
            let mut bytes = Vec::new();
            if let Some(pipe) = pipe {
                let _ = pipe.take(ANSWER_MAX).read_to_end(&mut bytes);
            }
            let _ = sender.send((number, bytes));
        });
    }
    let until = Instant::now() + PATIENCE;
    let mut texts = [String::new(), String::new()];
    for _ in 0..2 {
        let left = until.saturating_duration_since(Instant::now());
        let (number, bytes) = receiver
            .recv_timeout(left)
            .map_err(|_| format!("{program} took more than {} s", PATIENCE.as_secs()))?;
        texts[number] = String::from_utf8_lossy(&bytes).into_owned();
    }
    let success = ended(&mut running.0, until).unwrap_or(false);
    let [text, error] = texts;
    Ok(Said {
        success,
        text,
        error,
    })
}

/// Whether it succeeded; none if it still runs. Both of its outputs are closed, so that is rare.
fn ended(child: &mut Child, until: Instant) -> Option<bool> {
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return Some(status.success()),
            Ok(None) if Instant::now() < until => std::thread::sleep(Duration::from_millis(5)),
            _ => return None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_of_vaults_are_not_run() {
        let dir = tempfile::tempdir().unwrap();
        let vault = dir.path().canonicalize().unwrap().join("vault");
        let own = dir.path().join("own");
        for place in [&vault, &own] {
            fs::create_dir(place).unwrap();
            let program = place.join("probe");
            fs::write(&program, "#!/bin/sh\n").unwrap();
            let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
            fs::set_permissions(&program, mode).unwrap();
        }
        std::os::unix::fs::symlink(vault.join("probe"), own.join("linked")).unwrap();
        let mut facts = Facts::of_nobody();
        facts.path = std::env::join_paths([Path::new("."), &vault, &own]).unwrap();
        facts.vaults = vec![vault];
        assert_eq!(facts.program("probe"), Some(own.join("probe")));
        assert_eq!(facts.program("linked"), None);
    }

    #[test]
    fn a_program_that_writes_without_end_is_ended() {
        let mut facts = Facts::of_nobody();
        facts.path = "/usr/bin:/bin".into();
        let mut command = facts.command(Path::new("/bin/sh"));
        command.args(["-c", "exec 2>&-; while :; do echo xxxxxxxxxxxxxxxx; done"]);
        let said = run(command).unwrap();
        assert!(!said.success && said.text.len() as u64 <= ANSWER_MAX);
    }
}
