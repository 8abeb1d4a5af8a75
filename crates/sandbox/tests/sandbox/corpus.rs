//! The network part of the attacks that `avfs doctor --attack` tries.

use std::io::Write;
use std::net::TcpListener;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};

use avfs_sandbox::attack::{CORPUS, Group, Outcome, Targets, try_those};
use avfs_sandbox::{Network, Sandbox};

use crate::Test;
use crate::attacks::armed;
use crate::world::{Outcome as Ran, World, command, own_binary, run};

pub const TESTS: &[Test] = &[
    ("corpus_network_is_stopped", is_stopped),
    ("corpus_network_would_be_noticed", would_be_noticed),
];

/// Plays the part that the arguments name; false when it is none of these.
pub fn play(arguments: &[String]) -> bool {
    let words: Vec<&str> = arguments.iter().skip(1).map(String::as_str).collect();
    let ["__corpus", name, ..] = words[..] else {
        return false;
    };
    let targets = Targets::parse(&arguments[3..]).expect("targets");
    let chosen = |attack: &avfs_sandbox::attack::Attack| match name {
        "" => attack.group == Group::Network,
        name => attack.name == name,
    };
    for (attack, outcome) in try_those(&targets, chosen) {
        let (word, answer) = match outcome {
            Outcome::Stopped(answer) => ("stopped", answer),
            Outcome::Succeeded(what) => ("SUCCEEDED", what),
        };
        let (name, layer) = (attack.name, attack.layer.name());
        writeln!(std::io::stdout(), "{word}: {name}: {answer} ({layer})").expect("stdout is open");
    }
    true
}

/// What the host has, and must not be found.
struct Bait {
    targets: Targets,
    _listeners: (TcpListener, UnixListener, UnixListener, UnixListener),
}

impl Bait {
    fn lay(world: &World) -> Bait {
        let tcp = TcpListener::bind("127.0.0.1:0").expect("a listener");
        let name = format!("avfs-corpus-{}", std::process::id());
        let address = SocketAddr::from_abstract_name(&name).expect("a name");
        let abstracted = UnixListener::bind_addr(&address).expect("a listener");
        let [unix, daemon] = ["bait.sock", "daemon.sock"].map(|name| world.path(name));
        let listen = |path| UnixListener::bind(path).expect("a listener");
        Bait {
            targets: Targets {
                tcp: tcp.local_addr().expect("an address").port(),
                unix: unix.to_string_lossy().into_owned(),
                daemon: daemon.to_string_lossy().into_owned(),
                abstracted: name,
                ..Targets::default()
            },
            _listeners: (tcp, abstracted, listen(&unix), listen(&daemon)),
        }
    }

    fn tried(&self, sandbox: &Sandbox, name: &str) -> Ran {
        let words = self.targets.words();
        let mut argv = vec!["/attack", "__corpus", name];
        argv.extend(words.iter().map(String::as_str));
        run(sandbox, &command(&argv))
    }
}

fn is_stopped() {
    let world = World::new();
    let bait = Bait::lay(&world);
    let sandbox = armed(&world);
    let ran = bait.tried(&sandbox, "");
    let text = ran.text();
    let all = CORPUS
        .iter()
        .filter(|it| it.group == Group::Network)
        .count();
    assert_eq!(text.lines().count(), all, "{text}{}", ran.complaint());
    for line in text.lines() {
        assert!(line.starts_with("stopped: "), "{line}");
    }
}

/// In the host's network, those that send nothing do succeed.
fn would_be_noticed() {
    let world = World::new();
    let bait = Bait::lay(&world);
    std::fs::copy(own_binary(), world.path("lower/attack")).expect("a copy of this program");
    let mut plan = world.plan();
    plan.network = Network::Host;
    let opened = world.keeper.open_sandbox(&plan, Vec::new());
    let sandbox = opened.expect("a sandbox");
    for name in [
        "a listening port of the host",
        "sockets of the host in the tables of any process",
    ] {
        let text = bait.tried(&sandbox, name).text();
        assert!(text.starts_with("SUCCEEDED: "), "{name}: {text}");
    }
}
