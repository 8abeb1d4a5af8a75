//! Attacks of a hostile command, and the layer that has to stop each.
//!
//! The corpus is data; the probes run in a sandbox and really try. A successful attack is
//! a bug of the sandbox or of the host.

mod corpus;
mod hide;
mod network;
mod probes;
mod resources;

pub use corpus::CORPUS;
pub use hide::{HIDING, hide};

/// One attempt to escape, to read from the host, or to break something outside.
#[derive(Clone, Copy, Debug)]
pub struct Attack {
    pub name: &'static str,
    pub group: Group,
    /// What has to stop it.
    pub layer: Layer,
    pub(crate) probe: Probe,
}

/// The topic of an attack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Group {
    Paths,
    Leaks,
    Network,
    Calls,
    Processes,
    Resources,
}

impl Group {
    pub fn name(self) -> &'static str {
        match self {
            Group::Paths => "paths and links",
            Group::Leaks => "information leaks",
            Group::Network => "network",
            Group::Calls => "system calls",
            Group::Processes => "processes",
            Group::Resources => "limited kernel resources",
        }
    }
}

/// The layer that stops an attack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layer {
    /// Other paths are not mounted in the sandbox.
    Root,
    /// Host paths are mounted read-only.
    ReadOnly,
    /// Namespaces: processes, network and mounts of the host are not visible.
    Namespaces,
    /// There are no capabilities, and none can be gained.
    Capabilities,
    Landlock,
    Seccomp,
    /// The agent and the supervisors are not dumpable.
    Undumpable,
    /// The environment is built from nothing.
    Environment,
    /// Descriptors are closed before the command starts.
    Descriptors,
    /// Resource limits of the kernel.
    Limits,
}

impl Layer {
    pub fn name(self) -> &'static str {
        match self {
            Layer::Root => "allow-listed root",
            Layer::ReadOnly => "read-only mounts",
            Layer::Namespaces => "namespaces",
            Layer::Capabilities => "no capabilities",
            Layer::Landlock => "Landlock",
            Layer::Seccomp => "seccomp",
            Layer::Undumpable => "undumpable agent",
            Layer::Environment => "built environment",
            Layer::Descriptors => "closed descriptors",
            Layer::Limits => "process limits",
        }
    }
}

/// How an attack is tried.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Probe {
    /// None of these may be readable.
    Read(&'static [&'static str]),
    /// None of these may be opened or made for writing.
    Write(&'static [&'static str]),
    /// This system call may not succeed.
    Call(libc::c_long, &'static [Arg]),
    /// A function.
    Try(fn(&Targets) -> Outcome),
}

/// An argument of a system call.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Arg {
    Int(libc::c_int),
    Text(&'static std::ffi::CStr),
    /// The process id of the supervisor.
    Supervisor,
}

/// Targets on the host that must not be found from inside.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Targets {
    /// Text in files, variables and command lines of the host.
    pub token: String,
    /// A TCP port on the host's loopback with a listener.
    pub tcp: u16,
    /// A Unix socket of the host with a path.
    pub unix: String,
    /// An abstract Unix socket of the host.
    pub abstracted: String,
    /// The socket of the daemon that runs the sandbox.
    pub daemon: String,
    /// The host directory with the vaults.
    pub home: String,
    /// Files of the host.
    pub files: Vec<String>,
}

impl Targets {
    /// As arguments in which the token does not appear literally.
    pub fn words(&self) -> Vec<String> {
        let hidden = self.token.chars().rev().collect();
        let port = self.tcp.to_string();
        let fixed = [
            hidden,
            port,
            self.unix.clone(),
            self.abstracted.clone(),
            self.daemon.clone(),
            self.home.clone(),
        ];
        fixed.into_iter().chain(self.files.clone()).collect()
    }

    /// Parses the arguments.
    pub fn parse(words: &[String]) -> Option<Targets> {
        let [hidden, port, unix, abstracted, daemon, home, files @ ..] = words else {
            return None;
        };
        Some(Targets {
            token: hidden.chars().rev().collect(),
            tcp: port.parse().ok()?,
            unix: unix.clone(),
            abstracted: abstracted.clone(),
            daemon: daemon.clone(),
            home: home.clone(),
            files: files.to_vec(),
        })
    }
}

/// The result of an attack.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// With the error it got.
    Stopped(String),
    /// With what it obtained.
    Succeeded(String),
}

/// Runs all attacks, from inside.
pub fn try_all(targets: &Targets) -> Vec<(&'static Attack, Outcome)> {
    try_those(targets, |_| true)
}

/// Runs the attacks that are `chosen`, from inside.
pub fn try_those(
    targets: &Targets,
    chosen: impl Fn(&Attack) -> bool,
) -> Vec<(&'static Attack, Outcome)> {
    let attempt = |attack: &'static Attack| (attack, probes::run(&attack.probe, targets));
    let chosen = CORPUS.iter().filter(|attack| chosen(attack));
    chosen.map(attempt).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn targets_are_words_and_back_and_hide_the_token() {
        let targets = Targets {
            token: "canary-123".into(),
            tcp: 80,
            unix: "/s".into(),
            abstracted: "a".into(),
            daemon: "/d".into(),
            home: "/h".into(),
            files: vec!["/f".into()],
        };
        let words = targets.words();
        assert!(!words.concat().contains("canary-123"));
        assert_eq!(Targets::parse(&words), Some(targets));
        assert_eq!(Targets::parse(&[]), None);
    }

    #[test]
    fn every_attack_has_a_name_of_its_own() {
        let names: BTreeSet<_> = CORPUS.iter().map(|attack| attack.name).collect();
        assert_eq!(names.len(), CORPUS.len());
    }
}
