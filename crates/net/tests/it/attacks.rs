//! Ways around a list: each is refused, in the one shape of its door.

use std::io::Write;
use std::net::{SocketAddr, UdpSocket};

use avfs_net::HTTP_PROXY;

use crate::client::{echoes, ends, is_reset, problem, secure, talk};
use crate::servers::{Authority, echo, http};
use crate::space::alone;
use crate::world::World;

/// Hosts that are not `a.test`, whatever they look like.
const HOSTS: &[&str] = &[
    "evil.test",
    "a.test.evil.test",
    "evila.test",
    "x.a.test",
    "127.0.0.1",
    "127.1",
    "2130706433",
    "0x7f000001",
    "0177.0.0.1",
    "0.0.0.0",
    "localhost",
    "localhost.",
    "[::1]",
    "[::]",
    "[::ffff:127.0.0.1]",
    "[::ffff:7f00:1]",
    "[64:ff9b::7f00:1]",
    "[fe80::1]",
    "169.254.169.254",
    "10.0.0.1",
    "192.168.0.1",
    "100.64.0.1",
    "8.8.8.8",
    "198.18.0.200",
    "127.0.5.9",
];
/// Texts that are no host at all.
const TEXTS: &[&str] = &[
    "a.test@evil.test",
    "evil.test@a.test",
    "a.test%00.evil.test",
    "a.test%2eevil.test",
    "a..test",
    "a.test..",
    "-a.test",
    "[fe80::1%251]",
    "a.test\\evil.test",
];

/// An answer of 400 or 403, in the version of the request.
fn is_refusal(answer: &str) -> bool {
    answer.starts_with("HTTP/1.1 40") || answer.starts_with("HTTP/1.0 40")
}

fn world() -> World {
    let world = World::new();
    world.names.set("a.test", &["127.0.5.1"]);
    world.names.set("evil.test", &["127.0.5.1"]);
    world
}

#[test]
fn no_way_to_write_a_host_passes_the_list() {
    alone("attacks::no_way_to_write_a_host_passes_the_list", || {
        let seen = http("127.0.5.1:80");
        let world = world();
        let (sandbox, _guard) = world.with_list("a.test,127.0.5.1");
        for host in HOSTS {
            for port in [80, 443, 22] {
                let refused = sandbox.tunnel(&format!("{host}:{port}"));
                let refused = problem(&refused.expect_err(host));
                assert_eq!(refused["status"], 403, "{host} {refused}");
                let allow = refused["allow"].as_str().unwrap_or("avfs network allow");
                assert!(allow.starts_with("avfs network allow"), "{refused}");
            }
            let request = format!("GET http://{host}/ HTTP/1.1\r\nHost: {host}\r\n\r\n");
            assert_eq!(
                problem(&sandbox.proxied(request.as_bytes()))["status"],
                403,
                "{host}"
            );
            let bare = host.trim_matches(['[', ']']);
            assert_eq!(
                sandbox.socks(bare.as_bytes(), 443).expect_err(host),
                2,
                "{host}"
            );
            assert_eq!(sandbox.socks4(bare, 443).expect_err(host), 91, "{host}");
        }
        for text in TEXTS {
            let refused = sandbox.tunnel(&format!("{text}:443")).expect_err(text);
            assert!(refused.starts_with("HTTP/1.1 40"), "{text}: {refused}");
            let request = format!("GET http://{text}/ HTTP/1.1\r\nHost: a.test\r\n\r\n");
            let refused = sandbox.proxied(request.as_bytes());
            assert!(refused.starts_with("HTTP/1.1 40"), "{text}: {refused}");
            assert_eq!(
                sandbox.socks(text.as_bytes(), 443).expect_err(text),
                2,
                "{text}"
            );
        }
        for name in [
            &b"a.test\0.evil.test"[..],
            b"evil.test\0a.test",
            b"a.test\r\n",
            b"a.test ",
            b"\xff",
            b"",
        ] {
            assert_eq!(sandbox.socks(name, 443).expect_err("no host"), 2);
        }
        assert_eq!(
            sandbox
                .tunnel("a.test:22")
                .map_err(|answer| problem(&answer)["rule"].clone())
                .unwrap_err(),
            "a.test"
        );
        assert!(seen.all().is_empty(), "{:?}", seen.all());
    });
}

#[test]
fn a_name_that_resolves_to_a_special_address_is_refused() {
    alone(
        "attacks::a_name_that_resolves_to_a_special_address_is_refused",
        || {
            echo("127.0.0.1:22");
            let world = World::new();
            let (sandbox, _guard) = world.with_list("*.r.test:22,0.0.0.0/0:22,[::/0]:22");
            for (n, address) in [
                "127.0.0.1",
                "169.254.169.254",
                "10.0.0.1",
                "0.0.0.0",
                "::1",
                "::ffff:127.0.0.1",
                "fd00:ec2::254",
                "64:ff9b::7f00:1",
                "100.64.0.1",
                "198.18.0.1",
            ]
            .iter()
            .enumerate()
            {
                let name = format!("n{n}.r.test");
                world.names.set(&name, &[address]);
                let refused = problem(&sandbox.tunnel(&format!("{name}:22")).expect_err(address));
                assert_eq!(refused["rule"], "default:special-address", "{address}");
                assert!(is_reset(&mut sandbox.dial(&name, 22).unwrap()), "{address}");
                assert_eq!(sandbox.socks(name.as_bytes(), 22).expect_err(address), 2);
            }
        },
    );
}

#[test]
fn an_answer_that_changes_is_checked_each_time() {
    alone(
        "attacks::an_answer_that_changes_is_checked_each_time",
        || {
            echo("127.0.5.1:22");
            echo("127.0.0.1:22");
            let world = world();
            let (sandbox, _guard) = world.with_list("a.test:22,127.0.5.1:22");
            assert!(echoes(&mut sandbox.tunnel("a.test:22").unwrap()));
            world.names.set("a.test", &["127.0.0.1"]);
            assert!(sandbox.tunnel("a.test:22").is_err());
            // Of several addresses only those are dialled that may be.
            world.names.set("a.test", &["127.0.0.1", "127.0.5.1"]);
            assert!(echoes(&mut sandbox.tunnel("a.test:22").unwrap()));
        },
    );
}

#[test]
fn a_request_for_another_host_is_refused() {
    alone("attacks::a_request_for_another_host_is_refused", || {
        let seen = http("127.0.5.1:80");
        let world = world();
        let (sandbox, _guard) = world.with_list("a.test,127.0.5.1");
        let direct = [
            "GET / HTTP/1.1\r\nHost: evil.test\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: a.test\r\nHost: evil.test\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: a.test\r\nHost: a.test\r\n\r\n",
            "GET / HTTP/1.1\r\n\r\n",
            "GET / HTTP/1.0\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: a.test:81\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: a.test@evil.test\r\n\r\n",
            "GET http://evil.test/ HTTP/1.1\r\nHost: a.test\r\n\r\n",
            "GET http://evil.test/ HTTP/1.1\r\nHost: evil.test\r\n\r\n",
            "GET http://a.test/ HTTP/1.1\r\nHost: evil.test\r\n\r\n",
            "CONNECT evil.test:443 HTTP/1.1\r\nHost: evil.test\r\n\r\n",
            "CONNECT a.test:80 HTTP/1.1\r\nHost: a.test\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: a.test\r\n Folded: evil.test\r\n\r\n",
            "GET / HTTP/1.1\r\nHost : a.test\r\n\r\n",
        ];
        for request in direct {
            for stream in [
                sandbox.dial("a.test", 80).unwrap(),
                sandbox.tunnel("a.test:80").unwrap(),
                sandbox.socks(b"a.test", 80).unwrap(),
            ] {
                let answer = talk(stream, request.as_bytes());
                assert!(is_refusal(&answer), "{request:?}: {answer:?}");
            }
        }
        // HTTP/2 without TLS is closed without an answer.
        let preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
        assert_eq!(talk(sandbox.dial("a.test", 80).unwrap(), preface), "");
        let proxied = [
            "GET http://a.test/ HTTP/1.1\r\nHost: evil.test\r\n\r\n",
            "GET http://evil.test/ HTTP/1.1\r\nHost: a.test\r\n\r\n",
            "GET https://a.test/ HTTP/1.1\r\nHost: a.test\r\n\r\n",
            "GET ftp://a.test/ HTTP/1.1\r\nHost: a.test\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: a.test\r\n\r\n",
            "GET http://a.test@evil.test/ HTTP/1.1\r\nHost: a.test\r\n\r\n",
            "CONNECT a.test HTTP/1.1\r\nHost: a.test\r\n\r\n",
            "CONNECT a.test:0 HTTP/1.1\r\nHost: a.test\r\n\r\n",
            "CONNECT a.test:8080 HTTP/1.1\r\nHost: a.test\r\n\r\n",
            "CONNECT 127.0.0.1:808 HTTP/1.1\r\nHost: a.test\r\n\r\n",
        ];
        for request in proxied {
            let answer = sandbox.proxied(request.as_bytes());
            assert!(is_refusal(&answer), "{request:?}: {answer:?}");
        }
        assert!(seen.all().is_empty(), "{:?}", seen.all());
    });
}

#[test]
fn a_request_cannot_be_hidden_in_another() {
    alone("attacks::a_request_cannot_be_hidden_in_another", || {
        let seen = http("127.0.5.1:80");
        let world = world();
        let (sandbox, _guard) = world.with_list("a.test,127.0.5.1");
        let hidden = "GET /hidden HTTP/1.1\r\nHost: evil.test\r\n\r\n";
        for framing in [
            format!(
                "Content-Length: {}\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n{hidden}",
                5 + hidden.len()
            ),
            format!(
                "Transfer-Encoding: chunked\r\nContent-Length: {}\r\n\r\n0\r\n\r\n{hidden}",
                5 + hidden.len()
            ),
            format!(
                "Content-Length: 0\r\nContent-Length: {}\r\n\r\n{hidden}",
                hidden.len()
            ),
            format!("Content-Length: 0, {}\r\n\r\n{hidden}", hidden.len()),
            format!("Content-Length: +0\r\n\r\n{hidden}"),
            format!("Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n{hidden}"),
            format!("Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n{hidden}"),
            format!("Transfer-Encoding : chunked\r\nContent-Length: 0\r\n\r\n{hidden}"),
            format!("Transfer-Encoding: chunked\r\n\r\n0_5\r\n\r\n{hidden}"),
            format!("X: y\r\n\r\n{hidden}"),
        ] {
            let request = format!("POST / HTTP/1.1\r\nHost: a.test\r\n{framing}");
            talk(sandbox.dial("a.test", 80).unwrap(), request.as_bytes());
        }
        let all = seen.all();
        assert!(
            !all.iter()
                .any(|head| head.contains("hidden") || head.contains("evil")),
            "{all:?}"
        );
        // What did pass has its length said once.
        for head in all {
            let head = head.to_lowercase();
            assert!(
                !(head.contains("content-length") && head.contains("transfer-encoding")),
                "{head}"
            );
        }
    });
}

#[test]
fn tls_without_a_readable_name_is_reset() {
    alone("attacks::tls_without_a_readable_name_is_reset", || {
        let authority = Authority::new();
        let seen = authority.tls("127.0.5.1:443", &["a.test", "evil.test"]);
        let world = world();
        let (sandbox, _guard) = world.with_list("a.test,127.0.5.1");
        let client = authority.client();
        secure(
            sandbox.dial("a.test", 443).unwrap(),
            client.clone(),
            "a.test",
        )
        .unwrap();
        // An address as name is no server name.
        secure(
            sandbox.dial("a.test", 443).unwrap(),
            client.clone(),
            "127.0.5.1",
        )
        .unwrap_err();
        secure(sandbox.dial("a.test", 443).unwrap(), client, "evil.test").unwrap_err();
        for bytes in [
            &b"GET / HTTP/1.1\r\nHost: a.test\r\n\r\n"[..],
            b"SSH-2.0-x\r\n",
            &[22, 3, 1, 0, 0],
            &[0; 64],
        ] {
            let mut stream = sandbox.dial("a.test", 443).unwrap();
            stream.write_all(bytes).unwrap();
            assert!(is_reset(&mut stream), "{bytes:?}");
            let mut stream = sandbox.tunnel("a.test:443").unwrap();
            stream.write_all(bytes).unwrap();
            assert!(ends(&mut stream), "{bytes:?}");
        }
        assert_eq!(seen.all().len(), 1);
        let rules: Vec<String> = sandbox
            .attempts(1)
            .into_iter()
            .map(|attempt| attempt.rule)
            .collect();
        for rule in [
            "default:no-server-name",
            "default:other-host",
            "default:not-tls",
        ] {
            assert!(rules.iter().any(|own| own == rule), "{rule} {rules:?}");
        }
    });
}

#[test]
fn nothing_but_the_doors_answers() {
    alone("attacks::nothing_but_the_doors_answers", || {
        let world = world();
        let (sandbox, _guard) = world.with_list("a.test,127.0.5.1");
        let address = sandbox.address("a.test");
        for port in [22, 53, 853, 8080, 3128] {
            assert!(sandbox.connect((address, port)).is_err(), "{port}");
        }
        // Nobody has this address.
        let stranger: SocketAddr = "198.19.255.1:443".parse().unwrap();
        assert!(is_reset(&mut sandbox.connect(stranger).unwrap()));
        let outside: SocketAddr = "8.8.8.8:443".parse().unwrap();
        assert!(sandbox.connect(outside).is_err());
        // QUIC and other UDP: refused at once.
        let refused = sandbox.space.run(move || {
            let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
            socket.connect((address, 443)).unwrap();
            socket.send(b"x").unwrap();
            socket.recv(&mut [0; 8]).unwrap_err().kind()
        });
        assert_eq!(refused, std::io::ErrorKind::ConnectionRefused);
        // SOCKS can do more than CONNECT; here it cannot.
        for command in [2, 3, 9] {
            assert_eq!(
                sandbox
                    .socks_raw(command, &[1, 127, 0, 5, 1], 80)
                    .unwrap_err(),
                7
            );
        }
        let mut garbage = sandbox.connect(HTTP_PROXY).unwrap();
        garbage.write_all(&[0; 100]).unwrap();
        assert!(talk(garbage, b"").starts_with("HTTP/1.1 400"));
    });
}
