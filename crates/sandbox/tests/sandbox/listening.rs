//! Where commands listen, connections to their Unix sockets, and their lookups of names.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use avfs_sandbox::{Error, ExecKey, ListenAddress, Listening, Owners, Sandbox, SocketKind};

use crate::Test;
use crate::attacks::armed;
use crate::network::{at, errno, readable};
use crate::network_roles::Obedient;
use crate::world::World;

pub const TESTS: &[Test] = &[
    ("listening_ports_are_found", ports_are_found),
    ("listening_paths_are_found", paths_are_found),
    ("listening_is_bounded", is_bounded),
    ("unix_sockets_are_reached", unix_sockets_are_reached),
    ("unix_sockets_stay_inside", unix_sockets_stay_inside),
    ("names_are_asked_for_inside", names_are_asked_for_inside),
];

fn list(sandbox: &Sandbox) -> Vec<Listening> {
    let listing = sandbox.listening().expect("a list");
    assert!(listing.is_complete);
    listing.listening
}

fn tcp(address: &str, key: u64) -> Listening {
    Listening {
        at: ListenAddress::Tcp(at(address)),
        owners: Owners::One(ExecKey(key)),
    }
}

fn unix(path: &str, key: u64) -> Listening {
    Listening {
        at: ListenAddress::Unix(path.into()),
        owners: Owners::One(ExecKey(key)),
    }
}

fn ports_are_found() {
    let world = World::new();
    let sandbox = armed(&world);
    assert_eq!(list(&sandbox), []);
    // The daemon's own are not listed.
    let _own = ["0.0.0.0:443", "[::]:443", "127.0.0.1:3128"]
        .map(|address| sandbox.listener(at(address)).expect("a listener"));
    assert_eq!(list(&sandbox), []);
    let mut one = Obedient::start(&sandbox, 1);
    let mut other = Obedient::start(&sandbox, 2);
    one.address("listen 127.0.0.1:3000");
    other.address("listen [::]:3001");
    other.address("listen 0.0.0.0:8080");
    // A connection is no listener.
    one.address("tcp 127.0.0.1:8080");
    let found = list(&sandbox);
    assert_eq!(
        found,
        [
            tcp("0.0.0.0:8080", 2),
            tcp("127.0.0.1:3000", 1),
            tcp("[::]:3001", 2)
        ]
    );
    other.finish();
    assert_eq!(list(&sandbox), [tcp("127.0.0.1:3000", 1)]);
}

fn paths_are_found() {
    let world = World::new();
    let sandbox = armed(&world);
    let mut one = Obedient::start(&sandbox, 1);
    for path in ["/tmp/a", "/with\u{1}\u{7f}odd", "relative"] {
        assert_eq!(one.ask(&format!("unix-listen {path}")), "done");
    }
    let found = list(&sandbox);
    assert_eq!(found, [unix("/tmp/a", 1), unix("/with\u{1}\u{7f}odd", 1)]);
    one.finish();
    // The names are still there; nobody listens.
    assert!(world.path("upper/with\u{1}\u{7f}odd").exists());
    assert_eq!(list(&sandbox), []);
}

fn is_bounded() {
    let world = World::new();
    let sandbox = armed(&world);
    let mut one = Obedient::start(&sandbox, 1);
    let mut other = Obedient::start(&sandbox, 2);
    assert_eq!(one.ask("listeners 600"), "done");
    let listing = sandbox.listening().expect("a list");
    assert!(!listing.is_complete);
    assert_eq!(listing.listening.len(), 256);
    // What was not read of the list is in nobody's way.
    assert_eq!(sandbox.listening().expect("a list").listening.len(), 256);
    one.finish();
    other.address("listen 127.0.0.1:3000");
    assert_eq!(list(&sandbox), [tcp("127.0.0.1:3000", 2)]);
}

fn unix_sockets_are_reached() {
    let world = World::new();
    let sandbox = armed(&world);
    let mut server = Obedient::start(&sandbox, 1);
    for path in ["/app.sock", "/tmp/app.sock", "/run/app.sock"] {
        assert_eq!(server.ask(&format!("unix-echo {path}")), "done");
    }
    symlink("/app.sock", world.path("upper/link")).expect("a link");
    for path in ["/app.sock", "/tmp/app.sock", "/run/app.sock", "/link"] {
        let mut stream = sandbox.connect_unix(Path::new(path)).expect(path);
        stream.set_nonblocking(false).expect("a socket");
        stream.write_all(b"ping").expect("bytes");
        stream.shutdown(std::net::Shutdown::Write).expect("an end");
        let mut text = String::new();
        stream.read_to_string(&mut text).expect("an echo");
        assert_eq!(text, "ping", "{path}");
    }
    server.finish();
    let closed = sandbox.connect_unix(Path::new("/app.sock"));
    assert_eq!(errno(closed), libc::ECONNREFUSED);
}

fn unix_sockets_stay_inside() {
    let world = World::new();
    let outside = world.path("outside.sock");
    let _listener = std::os::unix::net::UnixListener::bind(&outside).expect("a listener");
    symlink(&outside, world.path("lower/link")).expect("a link");
    symlink("/proc/self/fd", world.path("lower/fds")).expect("a link");
    symlink("loop", world.path("lower/loop")).expect("a link");
    fs::write(world.path("lower/file"), "").expect("a file");
    let sandbox = armed(&world);
    let reach = |path: &str| errno(sandbox.connect_unix(Path::new(path)));
    assert_eq!(reach("/link"), libc::ENOENT);
    assert_eq!(reach(outside.to_str().expect("a path")), libc::ENOENT);
    assert_eq!(reach("/file"), libc::ENOTSOCK);
    assert_eq!(reach("/tmp"), libc::ENOTSOCK);
    assert_eq!(reach("/loop"), libc::ELOOP);
    assert_eq!(reach("/../../.."), libc::ENOTSOCK);
    // The agent's own descriptors, by their numbers.
    for number in 0..40 {
        let tried = reach(&format!("/fds/{number}"));
        assert!(
            [libc::ELOOP, libc::ENOENT].contains(&tried),
            "{number}: {tried}"
        );
        let tried = reach(&format!("/proc/1/fd/{number}/x"));
        assert!(
            [libc::ELOOP, libc::ENOENT, libc::EACCES].contains(&tried),
            "{number}: {tried}"
        );
    }
    for path in ["/proc/self/root/file", "/proc/1/cwd", "/proc/self/exe"] {
        assert_eq!(reach(path), libc::ELOOP, "{path}");
    }
    let long = format!("/{}", "x".repeat(5000));
    for path in ["", "relative", "/a\0b", &long] {
        let tried = sandbox.connect_unix(&PathBuf::from(path));
        assert!(matches!(tried, Err(Error::Invalid { .. })), "{path:?}");
    }
    // The agent is well.
    assert_eq!(sandbox.sockets(&[SocketKind::Tcp4]).expect("one").len(), 1);
}

/// A server of the daemon's on the sandbox's port 53 is asked; without one, a lookup fails.
fn names_are_asked_for_inside() {
    let world = World::new();
    let sandbox = armed(&world);
    let mut client = Obedient::start(&sandbox, 1);
    assert_eq!(client.ask("resolve example.test"), "errno 0");
    assert_eq!(client.ask("resolve localhost"), "127.0.0.1:80");
    let socket = sandbox.udp(at("127.0.0.1:53")).expect("a socket");
    client.tell("resolve example.test");
    for _ in 0..2 {
        readable(&socket);
        let mut question = [0; 512];
        let (length, peer) = socket.recv_from(&mut question).expect("a question");
        let answer = answer_with(&question[..length], [198, 18, 0, 9]);
        socket.send_to(&answer, peer).expect("an answer");
    }
    assert_eq!(client.answer(), "198.18.0.9:80");
    client.finish();
}

/// An answer to a question for IPv4 addresses, and an empty one to any other.
fn answer_with(question: &[u8], address: [u8; 4]) -> Vec<u8> {
    const A: [u8; 2] = [0, 1];
    let end = 12
        + question[12..]
            .iter()
            .position(|byte| *byte == 0)
            .expect("a name")
        + 1;
    let is_a = question[end..end + 2] == A;
    let mut answer = question[..2].to_vec();
    answer.extend([0x81, 0x80, 0, 1, 0, u8::from(is_a), 0, 0, 0, 0]);
    answer.extend(&question[12..end + 4]);
    if is_a {
        // The name of the question, A, IN, one minute, four bytes.
        answer.extend([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4]);
        answer.extend(address);
    }
    answer
}
