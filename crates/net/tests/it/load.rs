//! Many connections, many sandboxes, and peers that do nothing.

use std::io::{Read, Write};
use std::time::Duration;

use avfs_net::{Bounds, HTTP_PROXY, SOCKS_PROXY, Upstream};

use crate::client::{Answer, echoes, ends};
use crate::servers::echo;
use crate::space::alone;
use crate::world::World;

#[test]
fn a_thousand_connections_at_once_and_no_more_than_allowed() {
    alone(
        "load::a_thousand_connections_at_once_and_no_more_than_allowed",
        || {
            raise_descriptors();
            echo("127.0.5.1:22");
            let bounds = Bounds {
                connections_per_sandbox: 1000,
                ..Bounds::default()
            };
            let world = World::with(bounds, Upstream::default());
            world.names.set("a.test", &["127.0.5.1"]);
            let (sandbox, _guard) = world.with_list("a.test:22,127.0.5.1:22");
            let address = sandbox.address("a.test");
            let mut streams: Vec<_> = (0..1000)
                .map(|_| sandbox.connect((address, 22)).unwrap())
                .collect();
            for stream in &mut streams {
                stream.write_all(b"x").unwrap();
            }
            for stream in &mut streams {
                let mut byte = [0];
                stream.read_exact(&mut byte).unwrap();
            }
            assert!(ends(&mut sandbox.connect((address, 22)).unwrap()));
            // Another sandbox is not concerned.
            let (other, _guard) = world.with_list("a.test:22,127.0.5.1:22");
            assert!(echoes(&mut other.dial("a.test", 22).unwrap()));
            let count = sandbox
                .attempts(1)
                .iter()
                .find(|attempt| attempt.port == 22)
                .unwrap()
                .count;
            assert_eq!(count, 1000);
        },
    );
}

pub fn raise_descriptors() {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    setrlimit(Resource::Nofile, limit).unwrap();
}

#[test]
fn fifty_sandboxes_never_see_each_others_answers() {
    alone(
        "load::fifty_sandboxes_never_see_each_others_answers",
        || {
            echo("127.0.5.1:22");
            let world = World::new();
            for n in 0..50 {
                world.names.set(&format!("h{n}.test"), &["127.0.5.1"]);
            }
            let sandboxes: Vec<_> = (0..50)
                .map(|n| world.with_list(&format!("h{n}.test:22,127.0.5.1:22")))
                .collect();
            std::thread::scope(|scope| {
                for (own, (sandbox, _guard)) in sandboxes.iter().enumerate() {
                    scope.spawn(move || {
                        for n in 0..50 {
                            let name = format!("h{n}.test");
                            let known = matches!(sandbox.look_up(&name), Answer::Address(_));
                            assert_eq!(known, n == own, "{n} {own}");
                            let reached = sandbox.tunnel(&format!("{name}:22"));
                            assert_eq!(reached.is_ok(), n == own, "{n} {own}");
                        }
                        assert!(echoes(
                            &mut sandbox.dial(&format!("h{own}.test"), 22).unwrap()
                        ));
                    });
                }
            });
        },
    );
}

#[test]
fn peers_that_say_nothing_are_let_go() {
    alone("load::peers_that_say_nothing_are_let_go", || {
        echo("127.0.5.1:22");
        let bounds = Bounds {
            greeting_time: Duration::from_millis(200),
            idle_time: Duration::from_millis(500),
            ..Bounds::default()
        };
        let world = World::with(bounds, Upstream::default());
        world.names.set("a.test", &["127.0.5.1"]);
        let (sandbox, _guard) = world.with_list("a.test:22,a.test:80,a.test:443,127.0.5.1:22");
        let mut silent = [
            sandbox.connect(HTTP_PROXY).unwrap(),
            sandbox.connect(SOCKS_PROXY).unwrap(),
            sandbox.dial("a.test", 80).unwrap(),
            sandbox.dial("a.test", 443).unwrap(),
            sandbox.dial("a.test", 22).unwrap(),
        ];
        silent[0].write_all(b"GET http://a.te").unwrap();
        silent[1].write_all(&[5, 9]).unwrap();
        silent[3].write_all(&[22, 3, 1, 1]).unwrap();
        for (at, stream) in silent.iter_mut().enumerate() {
            // A slow request may be answered before it is closed.
            while stream.read(&mut [0; 64]).is_ok_and(|length| length > 0) {}
            assert!(ends(stream), "{at}");
        }
    });
}

#[test]
fn a_large_head_or_greeting_is_refused() {
    alone("load::a_large_head_or_greeting_is_refused", || {
        let world = World::new();
        let (sandbox, _guard) = world.with_list("a.test");
        let large = format!(
            "GET http://a.test/ HTTP/1.1\r\nHost: a.test\r\nX: {}\r\n\r\n",
            "x".repeat(70_000)
        );
        assert!(
            sandbox
                .proxied(large.as_bytes())
                .starts_with("HTTP/1.1 431")
        );
        let many: String = (0..200).map(|n| format!("X{n}: 1\r\n")).collect();
        let many = format!("GET http://a.test/ HTTP/1.1\r\nHost: a.test\r\n{many}\r\n");
        assert!(sandbox.proxied(many.as_bytes()).starts_with("HTTP/1.1 431"));
        let mut stream = sandbox.dial("a.test", 443).unwrap();
        let _ = stream.write_all(&[22, 3, 1, 0x40, 0, 1, 0, 0xff, 0xff]);
        let _ = stream.write_all(&[0; 16_379]);
        assert!(ends(&mut stream));
    });
}

#[test]
fn dropping_ends_everything() {
    alone("load::dropping_ends_everything", || {
        echo("127.0.5.1:22");
        let world = World::new();
        world.names.set("a.test", &["127.0.5.1"]);
        let (sandbox, guard) = world.with_list("a.test:22,127.0.5.1:22");
        let mut stream = sandbox.dial("a.test", 22).unwrap();
        assert!(echoes(&mut stream));
        drop(world);
        assert!(ends(&mut stream));
        assert!(
            sandbox
                .served
                .enter(avfs_net::ExecKey(2), avfs_net::Terms::default())
                .is_err()
        );
        drop(guard);
    });
}
