//! What a hostile command would try, and which layer has to stop it.
//!
//! The corpus is data; the probes run inside a sandbox and try for real. An attack that succeeds is
//! a fault of the sandbox or of the host it stands on, and says so.

mod corpus;
mod hide;
mod probes;
mod resources;

pub use corpus::CORPUS;
pub use hide::{HIDING, hide};

/// One attempt to get out, to look out, or to break what is outside.
#[derive(Clone, Copy, Debug)]
pub struct Attack {
    pub name: &'static str,
    pub group: Group,
    /// What has to stop it.
    pub layer: Layer,
    pub(crate) probe: Probe,
}

/// What an attack is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Group {
    Paths,
    Leaks,
    Calls,
    Processes,
    Resources,
}

impl Group {
    pub fn name(self) -> &'static str {
        match self {
            Group::Paths => "paths and links",
            Group::Leaks => "information leaks",
            Group::Calls => "system calls",
            Group::Processes => "processes",
            Group::Resources => "limited kernel resources",
        }
    }
}

/// What stops an attack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layer {
    /// Only what is lent is there at all.
    Root,
    /// What is lent cannot be changed.
    ReadOnly,
    /// Namespaces: processes, network, and the rest of the host are not there.
    Namespaces,
    /// No capability is left, and none can be gained.
    Capabilities,
    Landlock,
    Seccomp,
    /// The agent and the supervisors show nothing of themselves.
    Undumpable,
    /// The environment is built, never inherited.
    Environment,
    /// Descriptors are closed before the command begins.
    Descriptors,
    /// The kernel's limits of a process.
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
    /// Something longer.
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

/// What there is on the host that nobody inside may find.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Targets {
    /// Text in files, variables and command lines of the host.
    pub token: String,
    /// A TCP port on the host's loopback where somebody listens.
    pub tcp: u16,
    /// A socket of the host with a path.
    pub unix: String,
    /// A socket of the host without one.
    pub abstracted: String,
    /// Where the host keeps the vaults.
    pub home: String,
    /// Files of the host.
    pub files: Vec<String>,
}

impl Targets {
    /// As words of a command line in which the token cannot be found.
    pub fn words(&self) -> Vec<String> {
        let hidden = self.token.chars().rev().collect();
        let port = self.tcp.to_string();
        let fixed = [
            hidden,
            port,
            self.unix.clone(),
            self.abstracted.clone(),
            self.home.clone(),
        ];
        fixed.into_iter().chain(self.files.clone()).collect()
    }

    /// Back from words.
    pub fn parse(words: &[String]) -> Option<Targets> {
        let [hidden, port, unix, abstracted, home, files @ ..] = words else {
            return None;
        };
        Some(Targets {
            token: hidden.chars().rev().collect(),
            tcp: port.parse().ok()?,
            unix: unix.clone(),
            abstracted: abstracted.clone(),
            home: home.clone(),
            files: files.to_vec(),
        })
    }
}

/// What came of an attack.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// With the answer it got.
    Stopped(String),
    /// With what it got hold of.
    Succeeded(String),
}

/// Tries everything, from inside.
pub fn try_all(targets: &Targets) -> Vec<(&'static Attack, Outcome)> {
    let attempt = |attack: &'static Attack| (attack, probes::run(&attack.probe, targets));
    CORPUS.iter().map(attempt).collect()
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
