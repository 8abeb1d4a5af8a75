//! Every way to name a host leads to the host, if it is listed.

use std::io::{Read, Write};

use avfs_net::{Door, HTTP_PROXY, Outcome};

use crate::client::{
    A, AAAA, Answer, HTTPS, NULL, TXT, echoes, head, is_reset, problem, secure, talk,
};
use crate::servers::{Authority, echo, http};
use crate::space::{add_route, alone};
use crate::world::World;

const GET: &[u8] = b"GET /p HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n";

#[test]
fn names_have_addresses_only_if_they_are_listed() {
    alone(
        "doors::names_have_addresses_only_if_they_are_listed",
        || {
            let world = World::new();
            let (sandbox, _guard) = world.with_list("a.test,*.b.test:22");
            let address = sandbox.address("a.test");
            assert_eq!(sandbox.address("A.TEST"), address);
            assert_ne!(sandbox.address("x.b.test"), address);
            for name in [
                "b.test",
                "c.test",
                "a.test.evil",
                "localhost",
                "test",
                "1.1.1.1",
            ] {
                assert_eq!(sandbox.look_up(name), Answer::NoSuchName, "{name}");
            }
            let name: [&[u8]; 2] = [b"a", b"test"];
            for kind in [TXT, HTTPS, NULL] {
                assert_eq!(sandbox.ask(&name, kind), Answer::Empty);
                assert_eq!(sandbox.ask(&[b"c", b"test"], kind), Answer::NoSuchName);
            }
            assert_eq!(sandbox.ask(&[b"c", b"test"], AAAA), Answer::NoSuchName);
            let Answer::AddressV6(v6) = sandbox.ask(&name, AAAA) else {
                panic!("no IPv6 address");
            };
            let of_number: std::net::Ipv6Addr = "fd61:7666:7300::1".parse().unwrap();
            assert_eq!(v6, of_number);
            // Labels that hold a dot, a NUL or another byte of no host name.
            for label in [&b"a.test"[..], b"a\0", b"a b", b"a%", b"\xff", b"*"] {
                assert_eq!(sandbox.ask(&[label, b"test"], A), Answer::NoSuchName);
                assert_eq!(sandbox.ask(&[label], A), Answer::NoSuchName);
            }
            let Answer::Address(over_tcp) = sandbox.ask_over_tcp(&name, A) else {
                panic!("no address over TCP");
            };
            assert_eq!(address, over_tcp);
        },
    );
}

#[test]
fn plain_requests_pass_at_the_proxy_and_without_it() {
    alone(
        "doors::plain_requests_pass_at_the_proxy_and_without_it",
        || {
            let seen = http("127.0.5.1:80");
            let world = World::new();
            world.names.set("a.test", &["127.0.5.1"]);
            let (sandbox, _guard) = world.with_list("a.test,127.0.5.1");
            let direct = talk(sandbox.dial("a.test", 80).unwrap(), GET);
            assert!(direct.starts_with("HTTP/1.1 200 OK"), "{direct}");
            assert!(!direct.to_lowercase().contains("x-hop: 1"), "{direct}");
            let proxied = sandbox.proxied(
            b"GET http://A.test:80/q?x HTTP/1.1\r\nHost: a.test\r\nProxy-Authorization: Basic eA==\r\nConnection: close, x-mine\r\nX-Mine: 1\r\nX-Kept: 1\r\n\r\n",
        );
            assert!(proxied.starts_with("HTTP/1.1 200 OK"), "{proxied}");
            let requests = seen.all();
            assert!(
                requests[0].starts_with("GET /p HTTP/1.1\r\n"),
                "{requests:?}"
            );
            let second = requests[1].to_lowercase();
            assert!(
                second.starts_with("get /q?x http/1.1\r\n") && second.contains("host: a.test\r\n")
            );
            assert!(
                second.contains("x-kept: 1")
                    && !second.contains("x-mine")
                    && !second.contains("proxy-"),
                "{second}"
            );
            let tunnelled = talk(sandbox.tunnel("a.test:80").unwrap(), GET);
            assert!(tunnelled.starts_with("HTTP/1.1 200 OK"), "{tunnelled}");
            let socks = talk(sandbox.socks(b"a.test", 80).unwrap(), GET);
            assert!(socks.starts_with("HTTP/1.1 200 OK"), "{socks}");
            let attempts = sandbox.attempts(1);
            let http = attempts
                .iter()
                .find(|attempt| attempt.door == Door::Http)
                .unwrap();
            assert_eq!(
                (http.host.as_str(), http.port, http.outcome),
                ("a.test", 80, Outcome::Allowed)
            );
            assert_eq!((http.count, http.rule.as_str()), (4, "a.test"));
            assert!(http.bytes_in > 400 && http.bytes_out > 100, "{http:?}");
        },
    );
}

#[test]
fn bodies_pass_in_both_framings() {
    alone("doors::bodies_pass_in_both_framings", || {
        http("127.0.5.1:80");
        let world = World::new();
        world.names.set("a.test", &["127.0.5.1"]);
        let (sandbox, _guard) = world.with_list("a.test,127.0.5.1");
        let length = b"POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello";
        assert!(talk(sandbox.dial("a.test", 80).unwrap(), length).ends_with("\r\n\r\nhello"));
        let chunked = b"POST / HTTP/1.1\r\nHost: a.test\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n5\r\nhello\r\n0\r\n\r\n";
        assert!(talk(sandbox.dial("a.test", 80).unwrap(), chunked).ends_with("\r\n\r\nhello"));
    });
}

#[test]
fn a_websocket_passes() {
    alone("doors::a_websocket_passes", || {
        http("127.0.5.1:80");
        let world = World::new();
        world.names.set("a.test", &["127.0.5.1"]);
        let (sandbox, _guard) = world.with_list("a.test,127.0.5.1");
        let mut stream = sandbox.dial("a.test", 80).unwrap();
        stream.write_all(b"GET /ws HTTP/1.1\r\nHost: a.test\r\nConnection: keep-alive, Upgrade\r\nUpgrade: websocket\r\n\r\n").unwrap();
        let head = head(&mut stream);
        assert!(head.starts_with("HTTP/1.1 101 "), "{head}");
        assert!(echoes(&mut stream));
        // Another protocol would hide which hosts its requests name, so it is not asked for.
        let mut stream = sandbox.dial("a.test", 80).unwrap();
        stream.write_all(b"GET / HTTP/1.1\r\nHost: a.test\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAM\r\n\r\n").unwrap();
        let mut answer = vec![0; 400];
        let length = stream.read(&mut answer).unwrap();
        let answer = String::from_utf8_lossy(&answer[..length]).to_lowercase();
        assert!(
            answer.starts_with("http/1.1 200") && !answer.contains("h2c"),
            "{answer}"
        );
    });
}

#[test]
fn tls_passes_if_its_server_name_is_the_host() {
    alone("doors::tls_passes_if_its_server_name_is_the_host", || {
        let authority = Authority::new();
        authority.tls("127.0.5.1:443", &["a.test", "b.test"]);
        let world = World::new();
        world.names.set("a.test", &["127.0.5.1"]);
        let (sandbox, _guard) = world.with_list("a.test,127.0.5.1");
        let client = authority.client();
        let ways = [
            sandbox.dial("a.test", 443).unwrap(),
            sandbox.tunnel("a.test:443").unwrap(),
            sandbox.socks(b"a.test", 443).unwrap(),
            sandbox.socks4("a.test", 443).unwrap(),
        ];
        for stream in ways {
            let answer = secure(stream, client.clone(), "a.test").unwrap();
            assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        }
        let ways = [
            sandbox.dial("a.test", 443).unwrap(),
            sandbox.tunnel("a.test:443").unwrap(),
        ];
        for stream in ways {
            secure(stream, client.clone(), "b.test").expect_err("another server name passed");
        }
        let attempts = sandbox.attempts(1);
        let other = attempts
            .iter()
            .filter(|attempt| attempt.rule == "default:other-host");
        assert_eq!(
            other
                .map(|attempt| attempt.host.as_str())
                .collect::<Vec<_>>(),
            ["b.test"; 2]
        );
    });
}

#[test]
fn other_ports_pass_as_bytes() {
    alone("doors::other_ports_pass_as_bytes", || {
        for port in [22, 5432, 8080] {
            echo(&format!("127.0.5.1:{port}"));
        }
        let world = World::new();
        for name in ["a.test", "x.b.test"] {
            world.names.set(name, &["127.0.5.1"]);
        }
        let ranges = "127.0.5.1:22,127.0.5.1:5432,127.0.5.1:8080";
        let (sandbox, _guard) =
            world.with_list(&format!("a.test:22,a.test:5432,*.b.test:8080,{ranges}"));
        for (name, port) in [("a.test", 22), ("a.test", 5432), ("x.b.test", 8080)] {
            assert!(
                echoes(&mut sandbox.dial(name, port).unwrap()),
                "{name} {port}"
            );
            assert!(echoes(
                &mut sandbox.tunnel(&format!("{name}:{port}")).unwrap()
            ));
            assert!(echoes(&mut sandbox.socks(name.as_bytes(), port).unwrap()));
        }
        // A command can use the same port itself, on loopback.
        sandbox
            .space
            .run(|| std::net::TcpListener::bind("127.0.0.1:5432").unwrap());
        assert!(sandbox.dial("a.test", 8080).is_err());
        assert!(is_reset(&mut sandbox.dial("x.b.test", 22).unwrap()));
    });
}

#[test]
fn listed_addresses_pass_as_they_are() {
    alone("doors::listed_addresses_pass_as_they_are", || {
        echo("127.0.5.1:22");
        let world = World::new();
        let (sandbox, _guard) = world.with_list("127.0.5.0/24:22,10.9.0.0/16:22");
        assert!(echoes(&mut sandbox.tunnel("127.0.5.1:22").unwrap()));
        assert!(echoes(
            &mut sandbox.socks_raw(1, &[1, 127, 0, 5, 1], 22).unwrap()
        ));
        let mapped = [4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 127, 0, 5, 1];
        assert!(echoes(&mut sandbox.socks_raw(1, &mapped, 22).unwrap()));
        // The range has a route, so the connection arrives here; that host is not there.
        let address: std::net::SocketAddr = "10.9.1.1:22".parse().unwrap();
        assert!(is_reset(&mut sandbox.connect(address).unwrap()));
        let attempts = sandbox.attempts(1);
        let failed = attempts
            .iter()
            .find(|attempt| attempt.outcome == Outcome::Failed)
            .unwrap();
        assert_eq!(failed.host, "10.9.1.1");
    });
}

#[test]
fn an_address_of_a_name_is_the_name_at_the_proxies_too() {
    alone(
        "doors::an_address_of_a_name_is_the_name_at_the_proxies_too",
        || {
            echo("127.0.5.1:22");
            let world = World::new();
            world.names.set("a.test", &["127.0.5.1"]);
            let (sandbox, _guard) = world.with_list("a.test:22,127.0.5.1:22");
            let address = sandbox.address("a.test");
            assert!(echoes(
                &mut sandbox.tunnel(&format!("{address}:22")).unwrap()
            ));
            let refused = sandbox.tunnel("198.18.77.77:22").unwrap_err();
            assert_eq!(problem(&refused)["host"], "198.18.77.77");
        },
    );
}

#[test]
fn each_request_on_a_kept_connection_is_decided_on() {
    alone(
        "doors::each_request_on_a_kept_connection_is_decided_on",
        || {
            let seen = http("127.0.5.1:80");
            let world = World::new();
            for name in ["a.test", "b.test"] {
                world.names.set(name, &["127.0.5.1"]);
            }
            let (sandbox, _guard) = world.with_list("a.test,b.test,127.0.5.1");
            let answer = sandbox.proxied(
            b"GET http://a.test/1 HTTP/1.1\r\nHost: a.test\r\n\r\nGET http://b.test/2 HTTP/1.1\r\nHost: b.test\r\n\r\nGET http://evil.test/3 HTTP/1.1\r\nHost: evil.test\r\n\r\nGET http://a.test/4 HTTP/1.1\r\nHost: a.test\r\n\r\n",
        );
            assert_eq!(answer.matches("HTTP/1.1 200").count(), 2, "{answer}");
            assert_eq!(answer.matches("HTTP/1.1 403").count(), 1, "{answer}");
            assert_eq!(seen.all().len(), 2);
        },
    );
}

#[test]
fn without_a_list_names_do_not_exist_and_nothing_listens() {
    alone(
        "doors::without_a_list_names_do_not_exist_and_nothing_listens",
        || {
            let world = World::new();
            let (sandbox, guard) = world.with_list("");
            assert_eq!(sandbox.look_up("a.test"), Answer::NoSuchName);
            assert!(sandbox.connect(HTTP_PROXY).is_err());
            let attempts = guard.leave();
            assert_eq!(
                attempts.list[0].allow.as_deref(),
                Some("avfs network allow a.test")
            );
            assert_eq!(attempts.list[0].outcome, Outcome::Denied);
            // Nobody is there any more.
            assert_eq!(sandbox.look_up("a.test"), Answer::NoSuchName);
        },
    );
}

#[test]
fn listed_ipv6_addresses_pass_as_they_are() {
    alone("doors::listed_ipv6_addresses_pass_as_they_are", || {
        add_route("fd12::".parse().unwrap(), 64).unwrap();
        for port in [22, 5432] {
            echo(&format!("[fd12::5]:{port}"));
        }
        let world = World::new();
        world.names.set("six.test", &["fd12::5"]);
        let list = "six.test:22,[fd12::/64]:22,[fd12::5]:5432,127.0.5.1:22";
        let (sandbox, _guard) = world.with_list(list);
        for port in [22, 5432] {
            let address: std::net::SocketAddr = format!("[fd12::5]:{port}").parse().unwrap();
            assert!(echoes(&mut sandbox.connect(address).unwrap()), "{port}");
            assert!(echoes(&mut sandbox.tunnel(&address.to_string()).unwrap()));
        }
        assert!(echoes(&mut sandbox.dial("six.test", 22).unwrap()));
        let other: std::net::SocketAddr = "[fd13::1]:22".parse().unwrap();
        assert!(sandbox.connect(other).is_err());
    });
}

#[test]
fn a_command_that_listens_on_a_listed_port_keeps_nobody_out() {
    alone(
        "doors::a_command_that_listens_on_a_listed_port_keeps_nobody_out",
        || {
            echo("127.0.5.1:5432");
            let world = World::new();
            world.names.set("a.test", &["127.0.5.1"]);
            let sandbox = world.sandbox();
            let _listener = sandbox
                .space
                .run(|| std::net::TcpListener::bind("0.0.0.0:5432").unwrap());
            let guard = sandbox.enter(1, "a.test:5432,127.0.5.1:5432");
            assert!(echoes(&mut sandbox.tunnel("a.test:5432").unwrap()));
            let attempts = guard.leave().list;
            assert!(
                attempts
                    .iter()
                    .any(|attempt| attempt.outcome == Outcome::Failed && attempt.port == 5432)
            );
        },
    );
}
