//! Which command a connection belongs to. Whatever a command does, it is never left out for another.

use std::net::{SocketAddr, TcpListener, TcpStream};

use avfs_sandbox::{ExecKey, Owners, Sandbox, Transport};

use crate::Test;
use crate::attacks::armed;
use crate::network::{accept, at, readable};
use crate::network_roles::Obedient;
use crate::world::World;

pub const TESTS: &[Test] = &[
    ("owners_are_told_apart", are_told_apart),
    ("owners_of_datagrams", of_datagrams),
    ("owners_in_a_warm_sandbox", in_a_warm_sandbox),
    ("owners_of_what_is_closed", of_what_is_closed),
    ("owners_share_sockets", share_sockets),
    ("owners_queue_sockets", queue_sockets),
    (
        "owners_that_cannot_be_looked_into",
        that_cannot_be_looked_into,
    ),
    (
        "owners_without_their_first_thread",
        without_their_first_thread,
    ),
    ("owners_with_many_descriptors", with_many_descriptors),
    ("owners_that_fork_madly", that_fork_madly),
    ("owners_of_nonsense", of_nonsense),
];

const ONE: ExecKey = ExecKey(1);
const OTHER: ExecKey = ExecKey(u64::MAX);

/// A sandbox with a listener and two commands.
struct Scene {
    _world: World,
    sandbox: Sandbox,
    listener: TcpListener,
    one: Obedient,
    other: Obedient,
}

impl Scene {
    fn new() -> Scene {
        let world = World::new();
        let sandbox = armed(&world);
        let mut scene = Scene {
            listener: sandbox.listener(at("0.0.0.0:443")).expect("a listener"),
            one: Obedient::start(&sandbox, ONE.0),
            other: Obedient::start(&sandbox, OTHER.0),
            sandbox,
            _world: world,
        };
        // Both run: before that, a command could have anything.
        assert_eq!(scene.one.ask("close"), "done");
        assert_eq!(scene.other.ask("close"), "done");
        scene
    }

    /// A connection of one of them, accepted.
    fn connect(&mut self, who: ExecKey) -> TcpStream {
        let client = if who == ONE {
            &mut self.one
        } else {
            &mut self.other
        };
        client.address("tcp 198.18.0.7:443");
        accept(&self.listener).0
    }

    fn owners(&self, accepted: &TcpStream) -> Owners {
        self.sandbox.owners_of(accepted)
    }
}

/// Whether nobody else is taken for the owner.
fn has(owners: &Owners, key: ExecKey) -> bool {
    match owners {
        Owners::One(only) => *only == key,
        Owners::AnyOf(keys) => keys.contains(&key),
        Owners::Unknown => true,
    }
}

fn both() -> Owners {
    Owners::AnyOf(vec![ONE, OTHER])
}

fn are_told_apart() {
    let mut scene = Scene::new();
    for who in [ONE, OTHER, ONE] {
        let stream = scene.connect(who);
        assert_eq!(scene.owners(&stream), Owners::One(who));
    }
    // Both have connections by now, also of IPv6 and of IPv4 by a socket for IPv6.
    let six = scene.sandbox.listener(at("[::]:443")).expect("a listener");
    scene.other.address("tcp [fd61:7666:7300::9]:443");
    assert_eq!(scene.owners(&accept(&six).0), Owners::One(OTHER));
    scene.one.address("tcp [::ffff:198.18.0.9]:443");
    let stream = accept(&scene.listener).0;
    assert_eq!(scene.owners(&stream), Owners::One(ONE));
    // Among other processes, of the same commands.
    assert_eq!(scene.one.ask("processes 20"), "done");
    assert_eq!(scene.other.ask("processes 20"), "done");
    let stream = scene.connect(OTHER);
    assert_eq!(scene.owners(&stream), Owners::One(OTHER));
}

fn of_datagrams() {
    let mut scene = Scene::new();
    let server = at("127.0.0.1:53");
    let socket = scene.sandbox.udp(server).expect("a socket");
    for who in [ONE, OTHER] {
        let client = if who == ONE {
            &mut scene.one
        } else {
            &mut scene.other
        };
        client.address("udp 127.0.0.1:53");
        readable(&socket);
        let (_, peer) = socket.recv_from(&mut [0; 100]).expect("a datagram");
        let owners = scene.sandbox.owners(Transport::Udp, peer, server);
        assert_eq!(owners, Owners::One(who));
        client.ask("close");
        let owners = scene.sandbox.owners(Transport::Udp, peer, server);
        assert_eq!(owners, Owners::Unknown);
    }
}

/// A command that ended owns nothing of the next.
fn in_a_warm_sandbox() {
    let world = World::new();
    let sandbox = armed(&world);
    let listener = sandbox.listener(at("0.0.0.0:443")).expect("a listener");
    for key in 1..4 {
        let mut client = Obedient::start(&sandbox, key);
        client.address("tcp 198.18.0.7:443");
        let (stream, _) = accept(&listener);
        assert_eq!(sandbox.owners_of(&stream), Owners::One(ExecKey(key)));
        // A second connection is accepted only after its command has ended, when another runs.
        client.address("tcp 198.18.0.7:443");
        client.finish();
        assert_eq!(sandbox.owners_of(&stream), Owners::Unknown);
        let mut next = Obedient::start(&sandbox, 100);
        next.address("tcp 198.18.0.7:443");
        let (late, _) = accept(&listener);
        assert_eq!(sandbox.owners_of(&late), Owners::Unknown);
        let (own, _) = accept(&listener);
        assert_eq!(sandbox.owners_of(&own), Owners::One(ExecKey(100)));
        next.finish();
    }
}

fn of_what_is_closed() {
    let mut scene = Scene::new();
    for end in ["close", "abort"] {
        let stream = scene.connect(ONE);
        scene.one.ask(end);
        assert_eq!(scene.owners(&stream), Owners::Unknown, "{end}");
    }
}

fn share_sockets() {
    let mut scene = Scene::new();
    let stream = scene.connect(ONE);
    pass(&mut scene.one, &mut scene.other);
    assert_eq!(scene.owners(&stream), both());
    scene.one.ask("close");
    assert_eq!(scene.owners(&stream), Owners::One(OTHER));
    scene.other.ask("close");
    assert_eq!(scene.owners(&stream), Owners::Unknown);
}

/// One command passes its sockets to the other, which takes them.
fn pass(from: &mut Obedient, to: &mut Obedient) {
    to.tell("take /tmp/door");
    // The other may not listen yet.
    crate::world::eventually("sockets are passed", || {
        from.ask("give /tmp/door") == "done"
    });
    assert_eq!(to.answer(), "done");
}

/// The other has the socket, and the one keeps a way to get it back.
fn queue_sockets() {
    let mut scene = Scene::new();
    let stream = scene.connect(ONE);
    pass(&mut scene.one, &mut scene.other);
    assert_eq!(scene.one.ask("queue"), "done");
    assert_eq!(scene.owners(&stream), both());
    scene.other.ask("close");
    assert_eq!(scene.owners(&stream), Owners::Unknown);
}

fn that_cannot_be_looked_into() {
    let mut scene = Scene::new();
    assert_eq!(scene.one.ask("undumpable"), "done");
    let stream = scene.connect(ONE);
    assert_eq!(scene.owners(&stream), Owners::Unknown);
    pass(&mut scene.one, &mut scene.other);
    assert_eq!(scene.owners(&stream), both());
    scene.other.ask("close");
    let stream = scene.connect(OTHER);
    assert_eq!(scene.owners(&stream), both());
}

fn without_their_first_thread() {
    let mut scene = Scene::new();
    let stream = scene.connect(ONE);
    assert_eq!(scene.one.ask("leave-first-thread"), "done");
    let owners = scene.owners(&stream);
    assert_eq!(owners, Owners::Unknown);
    pass(&mut scene.one, &mut scene.other);
    assert_eq!(scene.owners(&stream), both());
}

fn with_many_descriptors() {
    let mut scene = Scene::new();
    let answer = scene.one.ask("descriptors 10000");
    assert_eq!(answer, "done");
    // Its socket is the last of them.
    let stream = scene.connect(ONE);
    let owners = scene.owners(&stream);
    assert!(has(&owners, ONE), "{owners:?}");
    pass(&mut scene.one, &mut scene.other);
    let owners = scene.owners(&stream);
    assert!(has(&owners, ONE) && has(&owners, OTHER), "{owners:?}");
}

fn that_fork_madly() {
    let mut scene = Scene::new();
    assert_eq!(scene.one.ask("forks"), "done");
    for _ in 0..50 {
        for who in [ONE, OTHER] {
            let stream = scene.connect(who);
            let owners = scene.owners(&stream);
            assert!(has(&owners, who), "{who:?}: {owners:?}");
            let client = if who == ONE {
                &mut scene.one
            } else {
                &mut scene.other
            };
            client.ask("close");
        }
    }
}

fn of_nonsense() {
    let mut scene = Scene::new();
    let stream = scene.connect(ONE);
    let client = stream.peer_addr().expect("an address");
    let server = stream.local_addr().expect("an address");
    let ask = |transport, client, server| scene.sandbox.owners(transport, client, server);
    assert_eq!(ask(Transport::Tcp, client, server), Owners::One(ONE));
    // The daemon's own end, other addresses, and a listener.
    let elsewhere = SocketAddr::new(client.ip(), 1);
    for (client, server) in [
        (server, client),
        (elsewhere, server),
        (client, elsewhere),
        (at("127.0.0.1:443"), at("127.0.0.1:5")),
        (at("[::1]:443"), at("[::1]:5")),
    ] {
        assert_eq!(ask(Transport::Tcp, client, server), Owners::Unknown);
    }
    assert_eq!(ask(Transport::Udp, client, server), Owners::Unknown);
    let outside = std::net::TcpListener::bind("127.0.0.1:0").expect("a listener");
    assert_eq!(scene.sandbox.owners_of(&outside), Owners::Unknown);
    scene.sandbox.kill();
    assert_eq!(scene.owners(&stream), Owners::Unknown);
}
