//! Hosts whose TLS is opened: rules about requests, and secrets that the sandbox never has.

use std::io::{Read, Write};
use std::net::TcpStream;

use avfs_net::{Bounds, ExecKey, Inspect, RequestRule, Roots, Secret, Terms, Upstream};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;

use crate::client::{head, problem, secure, talk};
use crate::servers::{Authority, Seen, http, trusting};
use crate::space::alone;
use crate::world::{Sandbox, World, terms};

const CANARY: &str = "Bearer canary-7f3a";

struct Place {
    world: World,
    authority: Authority,
    seen: Seen,
    plain: Seen,
}

fn place() -> Place {
    let authority = Authority::new();
    let seen = authority.tls("127.0.5.1:443", &["a.test", "b.test"]);
    let plain = http("127.0.5.1:80");
    let roots = Roots::Given(vec![authority.certificate()]);
    let world = World::trusting(Bounds::default(), Upstream::default(), roots);
    for name in ["a.test", "b.test"] {
        world.names.set(name, &["127.0.5.1"]);
    }
    Place {
        world,
        authority,
        seen,
        plain,
    }
}

fn inspecting(rules: &[&str]) -> Terms {
    let allow = rules.iter().map(|rule| RequestRule::parse(rule).unwrap());
    let inspect = Inspect {
        hosts: "a.test".parse().unwrap(),
        allow: allow.collect(),
    };
    Terms {
        inspect: vec![inspect],
        ..terms("a.test,b.test,127.0.5.1")
    }
}

fn secret(plain: bool) -> Secret {
    Secret::new("a.test".parse().unwrap(), "Authorization", CANARY, plain).unwrap()
}

/// One request by TLS that trusts the sandbox's own authority; head and body of the answer.
fn ask(sandbox: &Sandbox, stream: TcpStream, request: &str) -> String {
    let certificate =
        CertificateDer::from_pem_slice(sandbox.pem.get().unwrap().as_bytes()).unwrap();
    let name = "a.test".try_into().unwrap();
    let session = rustls::ClientConnection::new(trusting(certificate), name).unwrap();
    let mut stream = rustls::StreamOwned::new(session, stream);
    stream.write_all(request.as_bytes()).unwrap();
    let head = head(&mut stream);
    let length = head.to_lowercase();
    let length = length
        .lines()
        .find_map(|line| line.strip_prefix("content-length: "));
    let mut body = vec![0; length.unwrap_or("0").parse().unwrap()];
    stream.read_exact(&mut body).unwrap();
    head + &String::from_utf8(body).unwrap()
}

fn get(path: &str) -> String {
    format!(
        "GET {path} HTTP/1.1\r\nHost: a.test\r\nAuthorization: placeholder\r\nConnection: close\r\n\r\n"
    )
}

#[test]
fn requests_inside_tls_are_held_to_rules() {
    alone("inspect::requests_inside_tls_are_held_to_rules", || {
        let place = place();
        let sandbox = place.world.sandbox();
        let _guard = sandbox
            .served
            .enter(ExecKey(1), inspecting(&["GET,HEAD /org/repo"]))
            .unwrap();
        let ways: [&dyn Fn() -> TcpStream; 3] = [
            &|| sandbox.dial("a.test", 443).unwrap(),
            &|| sandbox.tunnel("a.test:443").unwrap(),
            &|| sandbox.socks(b"a.test", 443).unwrap(),
        ];
        for way in ways {
            let answer = ask(&sandbox, way(), &get("/org/repo/x?y"));
            assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
            for request in [
                get("/org"),
                get("/org/repo/../other"),
                get("/org/repo/%2e%2e/other"),
                "POST /org/repo HTTP/1.1\r\nHost: a.test\r\nContent-Length: 0\r\n\r\n".to_owned(),
                get("/org/repo").replace("Host: a.test", "Host: b.test"),
                "CONNECT a.test:443 HTTP/1.1\r\nHost: a.test:443\r\n\r\n".to_owned(),
            ] {
                let refused = problem(&ask(&sandbox, way(), &request));
                assert!(
                    matches!(refused["status"].as_u64(), Some(400 | 403)),
                    "{request} {refused}"
                );
            }
        }
        assert_eq!(place.seen.all().len(), 3, "{:?}", place.seen.all());
        // On port 80 the same rules hold.
        let plain = |path: &str| talk(sandbox.dial("a.test", 80).unwrap(), get(path).as_bytes());
        assert!(plain("/org/repo").starts_with("HTTP/1.1 200"));
        assert_eq!(
            problem(&plain("/else"))["rule"],
            "default:request-not-allowed"
        );
        assert_eq!(place.plain.all().len(), 1);
        // Another host is not opened, and has its own certificate.
        secure(
            sandbox.dial("b.test", 443).unwrap(),
            place.authority.client(),
            "b.test",
        )
        .unwrap();
        secure(
            sandbox.dial("a.test", 443).unwrap(),
            place.authority.client(),
            "a.test",
        )
        .expect_err("an opened host has a certificate of the sandbox's authority");
    });
}

#[test]
fn an_authority_is_made_with_the_first_terms_that_open_tls() {
    alone(
        "inspect::an_authority_is_made_with_the_first_terms_that_open_tls",
        || {
            let place = place();
            let (sandbox, _guard) = place.world.with_list("a.test,127.0.5.1");
            assert_eq!(sandbox.pem.get(), None);
            let rules = inspecting(&["GET /"]);
            sandbox.served.update(ExecKey(1), rules.clone()).unwrap();
            let dialled = sandbox.dial("a.test", 443).unwrap();
            assert!(ask(&sandbox, dialled, &get("/")).starts_with("HTTP/1.1 200"));
            // A second command has the same one: the sandbox makes no other.
            let _other = sandbox.served.enter(ExecKey(2), rules).unwrap();
        },
    );
}

#[test]
fn a_secret_is_put_in_on_the_way_out() {
    alone("inspect::a_secret_is_put_in_on_the_way_out", || {
        let place = place();
        let sandbox = place.world.sandbox();
        let with = |plain| Terms {
            secrets: vec![secret(plain)],
            ..inspecting(&[])
        };
        let guard = sandbox.served.enter(ExecKey(1), with(false)).unwrap();
        ask(&sandbox, sandbox.dial("a.test", 443).unwrap(), &get("/"));
        let received = place.seen.all();
        assert!(
            received[0].contains(CANARY) && !received[0].contains("placeholder"),
            "{received:?}"
        );
        // Not over plain HTTP, and not for another host.
        let plain = || talk(sandbox.dial("a.test", 80).unwrap(), get("/").as_bytes());
        assert_eq!(problem(&plain())["rule"], "default:secret-over-plain-http");
        let bare = get("/").replace("Authorization: placeholder\r\n", "");
        talk(sandbox.dial("a.test", 80).unwrap(), bare.as_bytes());
        let traced = get("/").replace("GET", "TRACE");
        let traced = ask(&sandbox, sandbox.dial("a.test", 443).unwrap(), &traced);
        assert_eq!(problem(&traced)["rule"], "default:request-not-allowed");
        secure(
            sandbox.dial("b.test", 443).unwrap(),
            place.authority.client(),
            "b.test",
        )
        .unwrap();
        sandbox.served.update(ExecKey(1), with(true)).unwrap();
        plain();
        let received = place.plain.all();
        assert!(
            !received[0].contains(CANARY) && received[1].contains(CANARY),
            "{received:?}"
        );
        assert!(
            place.seen.all()[1..]
                .iter()
                .all(|head| !head.contains(CANARY))
        );
        let attempts = format!("{:?}", guard.leave());
        assert!(!attempts.contains("canary"));
    });
}

#[test]
fn a_secret_is_for_those_who_all_have_it() {
    alone("inspect::a_secret_is_for_those_who_all_have_it", || {
        let place = place();
        let sandbox = place.world.sandbox();
        let with = Terms {
            secrets: vec![secret(true)],
            ..terms("a.test,127.0.5.1")
        };
        let _one = sandbox.served.enter(ExecKey(1), with).unwrap();
        let _two = sandbox.enter(2, "a.test,127.0.5.1");
        for (keys, expected) in [
            (&[1][..], true),
            (&[2], false),
            (&[1, 2], false),
            (&[], false),
        ] {
            sandbox.candidates.say(keys);
            talk(sandbox.dial("a.test", 80).unwrap(), get("/").as_bytes());
            let received = place.plain.all();
            assert_eq!(
                received[received.len() - 1].contains(CANARY),
                expected,
                "{keys:?}"
            );
        }
    });
}

#[test]
fn a_host_with_a_wrong_certificate_is_not_reached() {
    alone(
        "inspect::a_host_with_a_wrong_certificate_is_not_reached",
        || {
            let authority = Authority::new();
            let seen = authority.tls("127.0.5.1:443", &["a.test"]);
            let other = Authority::new();
            let roots = Roots::Given(vec![other.certificate()]);
            let world = World::trusting(Bounds::default(), Upstream::default(), roots);
            world.names.set("a.test", &["127.0.5.1"]);
            let sandbox = world.sandbox();
            let with = Terms {
                secrets: vec![secret(false)],
                ..inspecting(&[])
            };
            let _guard = sandbox.served.enter(ExecKey(1), with).unwrap();
            let refused = problem(&ask(
                &sandbox,
                sandbox.dial("a.test", 443).unwrap(),
                &get("/"),
            ));
            assert_eq!(refused["status"], 502);
            assert!(seen.all().is_empty());
        },
    );
}

#[test]
fn turning_inspection_on_cuts_what_was_not_seen() {
    alone(
        "inspect::turning_inspection_on_cuts_what_was_not_seen",
        || {
            let place = place();
            let (sandbox, _guard) = place.world.with_list("a.test,127.0.5.1");
            let session = rustls::ClientConnection::new(
                place.authority.client(),
                "a.test".try_into().unwrap(),
            );
            let stream = sandbox.dial("a.test", 443).unwrap();
            let mut stream = rustls::StreamOwned::new(session.unwrap(), stream);
            stream
                .write_all(get("/").replace("close", "keep-alive").as_bytes())
                .unwrap();
            assert!(head(&mut stream).starts_with("HTTP/1.1 200"));
            sandbox
                .served
                .update(ExecKey(1), inspecting(&["GET /only"]))
                .unwrap();
            let mut rest = Vec::new();
            assert!(stream.read_to_end(&mut rest).is_err());
        },
    );
}
