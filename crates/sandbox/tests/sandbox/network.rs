//! Sockets that belong to a sandbox's network, in the hands of the daemon.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsRawFd, OwnedFd};
use std::time::Duration;

use avfs_sandbox::{AddressRange, Error, FAKE_V4, FAKE_V6, Network, SocketKind};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{AddressFamily, SocketType, sockopt};

use crate::Test;
use crate::attacks::armed;
use crate::network_roles::Obedient;
use crate::world::{World, run, shell};

pub const TESTS: &[Test] = &[
    ("network_sockets_are_fresh", sockets_are_fresh),
    ("network_fake_addresses_arrive", fake_addresses_arrive),
    ("network_routes_can_be_added", routes_can_be_added),
    ("network_listeners_below_1024", listeners_below_1024),
    ("network_udp_is_served", udp_is_served),
    ("network_ports_are_reached", ports_are_reached),
    ("network_is_each_sandboxs_own", is_each_sandboxs_own),
    (
        "network_of_the_host_gives_nothing",
        of_the_host_gives_nothing,
    ),
    ("network_handles_stay_outside", handles_stay_outside),
    ("network_dead_sandboxes_say_so", dead_sandboxes_say_so),
];

/// Waits until a listener has a connection.
pub fn accept(listener: &TcpListener) -> (TcpStream, SocketAddr) {
    readable(listener);
    let (stream, client) = listener.accept().expect("a connection");
    stream.set_nonblocking(false).expect("a socket");
    (stream, client)
}

pub fn readable(fd: impl std::os::fd::AsFd) {
    let limit = Timespec::try_from(Duration::from_secs(30)).expect("a short time");
    let mut polled = [PollFd::new(&fd, PollFlags::IN)];
    assert_eq!(poll(&mut polled, Some(&limit)), Ok(1), "nothing comes");
}

pub fn at(address: &str) -> SocketAddr {
    address.parse().expect("an address")
}

/// The errno of what must fail.
pub fn errno<T: std::fmt::Debug>(result: Result<T, Error>) -> i32 {
    match result.expect_err("it fails") {
        Error::System(fault) => fault.errno,
        other => panic!("{other}"),
    }
}

fn sockets_are_fresh() {
    let world = World::new();
    let sandbox = world.open();
    let kinds = [
        (SocketKind::Tcp4, AddressFamily::INET, SocketType::STREAM),
        (SocketKind::Udp6, AddressFamily::INET6, SocketType::DGRAM),
        (SocketKind::Tcp6, AddressFamily::INET6, SocketType::STREAM),
        (SocketKind::Udp4, AddressFamily::INET, SocketType::DGRAM),
    ];
    let asked = kinds.map(|(kind, ..)| kind);
    let sockets = sandbox.sockets(&asked).expect("sockets");
    assert_eq!(sockets.len(), 4);
    for (socket, (_, family, way)) in sockets.iter().zip(kinds) {
        assert_eq!(sockopt::socket_domain(socket), Ok(family));
        assert_eq!(sockopt::socket_type(socket), Ok(way));
        let flags = rustix::io::fcntl_getfd(socket).expect("flags");
        assert!(flags.contains(rustix::io::FdFlags::CLOEXEC));
    }
    assert_eq!(sandbox.sockets(&[]).expect("none").len(), 0);
    let many = sandbox.sockets(&[SocketKind::Tcp4; 64]).expect("many");
    assert_eq!(many.len(), 64);
    let too_many = sandbox.sockets(&[SocketKind::Tcp4; 65]);
    assert!(matches!(too_many, Err(Error::Invalid { .. })));
    // The sandbox answers as before.
    assert_eq!(sandbox.processes().expect("a count"), 0);
}

fn fake_addresses_arrive() {
    let world = World::new();
    let sandbox = armed(&world);
    assert!(sandbox.has_ipv6());
    let served = [
        ("0.0.0.0:443", "198.18.0.7:443"),
        ("198.19.255.254:5432", "198.19.255.254:5432"),
        ("[::]:443", "[fd61:7666:7300::7]:443"),
        ("[fd61:7666:7300::beef]:5432", "[fd61:7666:7300::beef]:5432"),
    ];
    let listeners = served.map(|(own, _)| sandbox.listener(at(own)).expect("a listener"));
    let mut client = Obedient::start(&sandbox, 1);
    for (listener, (_, meant)) in listeners.iter().zip(served) {
        let local = client.address(&format!("tcp {meant}"));
        let (mut stream, peer) = accept(listener);
        assert_eq!(stream.local_addr().expect("an address"), at(meant));
        assert_eq!(peer, local);
        assert!(FAKE_V4.contains(at(meant).ip()) || FAKE_V6.contains(at(meant).ip()));
        stream.write_all(b"x").expect("a byte");
    }
    // Nobody listens at the port, and nothing else is routed.
    let refused = format!("errno {}", libc::ECONNREFUSED);
    assert_eq!(client.ask("tcp 198.18.0.7:444"), refused);
    assert_eq!(client.ask("tcp [fd61:7666:7300::7]:444"), refused);
    let unreachable = format!("errno {}", libc::ENETUNREACH);
    assert_eq!(client.ask("tcp 198.20.0.1:443"), unreachable);
    assert_eq!(client.ask("tcp [2001:db8::1]:443"), unreachable);
    // A command may use the port on loopback that is served on another address.
    client.address("listen 127.0.0.1:5432");
    client.finish();
}

fn routes_can_be_added() {
    let world = World::new();
    let sandbox = armed(&world);
    let mut client = Obedient::start(&sandbox, 1);
    let listeners = ["0.0.0.0:80", "[::]:80"].map(|own| sandbox.listener(at(own)).expect("one"));
    let ranges = [
        ("10.1.0.0", 16, "10.1.2.3:80"),
        ("2001:db8::", 32, "[2001:db8::1]:80"),
    ];
    for (listener, (address, prefix, meant)) in listeners.iter().zip(ranges) {
        let unreachable = format!("errno {}", libc::ENETUNREACH);
        assert_eq!(client.ask(&format!("tcp {meant}")), unreachable);
        let address = address.parse().expect("an address");
        let range = AddressRange::new(address, prefix).expect("a range");
        sandbox.route_locally(range).expect("a route");
        sandbox
            .route_locally(range)
            .expect("the route that is there");
        client.address(&format!("tcp {meant}"));
        let (stream, _) = accept(listener);
        assert_eq!(stream.local_addr().expect("an address"), at(meant));
    }
    assert_eq!(
        client.ask("tcp 10.2.0.1:80"),
        format!("errno {}", libc::ENETUNREACH)
    );
    client.finish();
}

fn listeners_below_1024() {
    let world = World::new();
    let sandbox = armed(&world);
    let mut client = Obedient::start(&sandbox, 1);
    // A command may not bind them, so it cannot take the place of a listener that is not there yet.
    for port in [53, 80, 443, 1023] {
        let denied = format!("errno {}", libc::EACCES);
        assert_eq!(client.ask(&format!("listen 127.0.0.1:{port}")), denied);
        sandbox
            .listener(SocketAddr::from(([0, 0, 0, 0], port)))
            .expect("a listener");
    }
    // A port of a command is its own.
    let taken = client.address("listen 0.0.0.0:3128");
    assert_eq!(errno(sandbox.listener(taken)), libc::EADDRINUSE);
    // After the end of a listener its place is free at once, also with connections left.
    let listener = sandbox.listener(at("127.0.0.1:1080")).expect("a listener");
    client.address("tcp 127.0.0.1:1080");
    drop((accept(&listener), listener));
    sandbox
        .listener(at("127.0.0.1:1080"))
        .expect("a listener again");
    client.finish();
}

fn udp_is_served() {
    let world = World::new();
    let sandbox = armed(&world);
    let mut client = Obedient::start(&sandbox, 1);
    for (own, meant) in [
        ("127.0.0.1:53", "127.0.0.1:53"),
        ("[::1]:53", "[::1]:53"),
        ("0.0.0.0:443", "198.18.3.4:443"),
    ] {
        let socket = sandbox.udp(at(own)).expect("a socket");
        let local = client.address(&format!("udp {meant}"));
        readable(&socket);
        let mut text = [0; 100];
        let (length, peer) = socket.recv_from(&mut text).expect("a datagram");
        assert_eq!(&text[..length], b"question");
        assert_eq!(peer, local);
        socket.send_to(b"answer", peer).expect("an answer");
    }
    client.finish();
}

fn ports_are_reached() {
    let world = World::new();
    let sandbox = armed(&world);
    assert_eq!(errno(sandbox.connect(3000)), libc::ECONNREFUSED);
    for address in ["127.0.0.1:3000", "[::1]:3001", "0.0.0.0:3002"] {
        let mut server = Obedient::start(&sandbox, 1);
        server.address(&format!("echo {address}"));
        let mut stream = sandbox.connect(at(address).port()).expect("a connection");
        stream.set_nonblocking(false).expect("a socket");
        stream.write_all(b"ping").expect("bytes");
        stream.shutdown(std::net::Shutdown::Write).expect("an end");
        let mut text = String::new();
        stream.read_to_string(&mut text).expect("an echo");
        assert_eq!(text, "ping");
        server.finish();
        assert_eq!(
            errno(sandbox.connect(at(address).port())),
            libc::ECONNREFUSED
        );
    }
}

/// Two sandboxes use one port, and the host's is a third.
fn is_each_sandboxs_own() {
    let world = World::new();
    let one = armed(&world);
    let other = world.open_beside();
    let outside = TcpListener::bind("127.0.0.1:0").expect("a listener of the host");
    let port = outside.local_addr().expect("an address").port();
    assert_eq!(errno(one.connect(port)), libc::ECONNREFUSED);
    let listeners = [&one, &other].map(|sandbox| {
        sandbox
            .listener(SocketAddr::from(([127, 0, 0, 1], port)))
            .expect("a listener")
    });
    for (sandbox, listener) in [&one, &other].into_iter().zip(&listeners) {
        let stream = sandbox.connect(port).expect("a connection");
        let (_, client) = accept(listener);
        assert_eq!(stream.local_addr().expect("an address"), client);
    }
    outside.set_nonblocking(true).expect("a socket");
    assert!(outside.accept().is_err(), "the host's listener got nothing");
}

fn of_the_host_gives_nothing() {
    let world = World::new();
    let mut plan = world.plan();
    plan.network = Network::Host;
    let sandbox = world
        .keeper
        .open_sandbox(&plan, Vec::new())
        .expect("a sandbox");
    assert!(!sandbox.has_ipv6());
    let tried = [
        sandbox.sockets(&[SocketKind::Tcp4]).map(drop),
        sandbox.listener(at("127.0.0.1:0")).map(drop),
        sandbox.connect(1).map(drop),
        sandbox.route_locally(FAKE_V4),
    ];
    for result in tried {
        assert!(matches!(result, Err(Error::HostNetwork)), "{result:?}");
    }
}

/// No process inside has a netlink socket, or a socket that the daemon got.
fn handles_stay_outside() {
    let world = World::new();
    let sandbox = world.open();
    let kept: Vec<OwnedFd> = sandbox.sockets(&[SocketKind::Tcp4; 8]).expect("sockets");
    let mut numbers: Vec<String> = kept.iter().map(link_of).collect();
    let listed = run(&sandbox, &shell("cat /proc/net/netlink"));
    let inodes = listed.text();
    let inodes = inodes
        .lines()
        .skip(1)
        .filter_map(|line| line.split_whitespace().last());
    numbers.extend(inodes.map(|inode| format!("socket:[{inode}]")));
    assert!(numbers.len() > kept.len(), "there are netlink sockets");
    let shown = run(&sandbox, &shell("ls -l /proc/[0-9]*/fd"));
    let text = shown.text();
    assert!(text.contains("pipe:["), "{}", shown.complaint());
    assert!(
        numbers.iter().all(|number| !text.contains(number)),
        "{text}"
    );
    // What root sees of the agent.
    for (pid, link) in descriptors_of_agents(&world) {
        assert!(!numbers.contains(&link), "process {pid} has kept {link}");
    }
}

fn link_of(fd: &OwnedFd) -> String {
    let link = std::fs::read_link(format!("/proc/self/fd/{}", fd.as_raw_fd())).expect("a link");
    link.display().to_string()
}

/// What the agents of this keeper have open, as far as this user can see.
fn descriptors_of_agents(world: &World) -> Vec<(i32, String)> {
    let keeper = world.keeper.pid().to_string();
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").expect("a /proc").flatten() {
        let Ok(pid) = entry.file_name().to_string_lossy().parse::<i32>() else {
            continue;
        };
        let stat = std::fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
        let parent = stat
            .rsplit(") ")
            .next()
            .and_then(|rest| rest.split(' ').nth(1));
        if parent != Some(&keeper) {
            continue;
        }
        let open = std::fs::read_dir(entry.path().join("fd"))
            .into_iter()
            .flatten();
        for fd in open.flatten() {
            let link = std::fs::read_link(fd.path()).unwrap_or_default();
            found.push((pid, link.display().to_string()));
        }
    }
    found
}

fn dead_sandboxes_say_so() {
    let world = World::new();
    let sandbox = world.open();
    let listener = sandbox.listener(at("127.0.0.1:3128")).expect("a listener");
    sandbox.kill();
    assert!(matches!(
        sandbox.sockets(&[SocketKind::Tcp4]),
        Err(Error::SandboxGone)
    ));
    assert!(matches!(sandbox.connect(3128), Err(Error::SandboxGone)));
    // What it made stays a socket, of a network that nobody else is in.
    assert!(listener.accept().is_err());
    sandbox
        .route_locally(FAKE_V4)
        .expect("a route that nobody uses");
}
