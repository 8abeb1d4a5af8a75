//! Ways around a list, from inside a sandbox: each is refused in the one shape, noted in the journal, and seen by no server.

use crate::judge::{MALFORMED, NO_HOST, NOT_LISTED, OTHER_HOST, REFUSED, attack, judge};
use crate::servers::{Echo, HostProxy};
use crate::{AVFS, World, behind_proxy, with_names};
use avfs_testkit::Home;
use serde_json::json;
use std::io::{BufRead, BufReader};
use std::process::Stdio;

/// What the commands here may reach.
pub const LIST: &str = "a.example.test,*.w.example.test";

/// Hosts that are on no list, whatever they look like. Each is noted as it is written, or in its canonical form.
const HOSTS: &[(&str, &str)] = &[
    ("evil.example.test", "evil.example.test"),
    ("example.test", "example.test"),
    ("w.example.test", "w.example.test"),
    ("evila.example.test", "evila.example.test"),
    ("x.a.example.test", "x.a.example.test"),
    ("evilw.example.test", "evilw.example.test"),
    ("a.example.test.evil.test", "a.example.test.evil.test"),
    ("xn--80a.example.test", "xn--80a.example.test"),
    ("localhost", "localhost"),
    ("localhost.", "localhost"),
    ("127.0.0.1", "127.0.0.1"),
    ("0.0.0.0", "0.0.0.0"),
    ("169.254.169.254", "169.254.169.254"),
    ("10.0.0.1", "10.0.0.1"),
    ("172.17.0.1", "172.17.0.1"),
    ("192.168.0.1", "192.168.0.1"),
    ("100.64.0.1", "100.64.0.1"),
    ("192.0.2.1", "192.0.2.1"),
    ("198.18.99.99", "198.18.99.99"),
    ("[::1]", "::1"),
    ("[::]", "::"),
    ("[fe80::1]", "fe80::1"),
    ("[fd00:ec2::254]", "fd00:ec2::254"),
    ("[::ffff:127.0.0.1]", "127.0.0.1"),
    ("[::ffff:a9fe:a9fe]", "169.254.169.254"),
    ("[64:ff9b::7f00:1]", "64:ff9b::7f00:1"),
];

/// Texts that are no host, since programs read them differently.
const TEXTS: &[&str] = &[
    "127.1",
    "2130706433",
    "0x7f000001",
    "0177.0.0.1",
    "127.0.0.01",
    "a.example.test@evil.example.test",
    "evil.example.test@a.example.test",
    "evil.example.test%00.w.example.test",
    "evil.example.test%2ew.example.test",
    "evil.example.test%20.w.example.test",
    "a..example.test",
    "a.example.test..",
    ".w.example.test",
    "-x.w.example.test",
    "[fe80::1%251]",
];

/// Nothing but this passed the proxy of the host.
fn nothing_else_passed(world: &World, proxy: &HostProxy) {
    for line in proxy.seen.all() {
        let target = line.split(' ').nth(1).unwrap_or_default();
        let host = target
            .trim_start_matches("http://")
            .split(['/', ':'])
            .next()
            .unwrap_or_default();
        let listed = host == "a.example.test" || host.ends_with(".w.example.test");
        assert!(listed, "as {}: {line}", world.home.user());
    }
    assert!(!world.site.seen.has("evil"), "{:?}", world.site.seen.all());
    assert!(
        !world.site.seen.has("hidden"),
        "{:?}",
        world.site.seen.all()
    );
}

#[test]
fn no_way_to_write_a_host_passes_the_list() {
    behind_proxy(|world, proxy| {
        let mut attacks = Vec::new();
        for (host, noted) in HOSTS {
            let noted = Some((*noted, NOT_LISTED));
            attacks.push(attack(
                json!(["tunnel", format!("{host}:443")]),
                REFUSED,
                noted,
            ));
            let request = format!("GET http://{host}/ HTTP/1.1\r\nHost: {host}\r\n\r\n");
            attacks.push(attack(json!(["proxy", request]), REFUSED, noted));
            let bare = host.trim_matches(['[', ']']);
            attacks.push(attack(json!(["socks", bare, 443]), &["2"], noted));
        }
        for text in TEXTS {
            attacks.push(attack(
                json!(["tunnel", format!("{text}:443")]),
                REFUSED,
                None,
            ));
            let request = format!("GET http://{text}/ HTTP/1.1\r\nHost: a.example.test\r\n\r\n");
            attacks.push(attack(json!(["proxy", request]), REFUSED, None));
            attacks.push(attack(
                json!(["socks", text, 443]),
                &["2"],
                Some((text, NO_HOST)),
            ));
        }
        for text in [
            "evil.example.test\0.w.example.test",
            "x.w.example.test\0",
            "a.example.test\r\n",
            "a.example.test ",
            " a.example.test",
            "evil.example.test/.w.example.test",
            "\u{ff}.w.example.test",
            "",
        ] {
            attacks.push(attack(json!(["socks", text, 443]), &["2"], None));
            attacks.push(attack(
                json!(["tunnel", format!("{text}:443")]),
                REFUSED,
                None,
            ));
        }
        // Addresses that are no text, one of them an IPv4 address in the form of IPv6.
        let mapped = "\0\0\0\0\0\0\0\0\0\0\u{ff}\u{ff}\u{7f}\0\0\u{1}";
        for (packed, host) in [("\u{7f}\0\0\u{1}", "127.0.0.1"), (mapped, "127.0.0.1")] {
            attacks.push(attack(
                json!(["socks_address", packed, 443]),
                &["2"],
                Some((host, NOT_LISTED)),
            ));
        }
        // Another port than the rule's, and our own proxies.
        attacks.push(attack(
            json!(["tunnel", "a.example.test:22"]),
            REFUSED,
            Some(("a.example.test", "a.example.test")),
        ));
        attacks.push(attack(
            json!(["tunnel", "127.0.0.1:808"]),
            REFUSED,
            Some(("127.0.0.1", NOT_LISTED)),
        ));
        attacks.push(attack(
            json!(["socks", "127.0.0.1", 108]),
            &["2"],
            Some(("127.0.0.1", NOT_LISTED)),
        ));
        // SOCKS can do more than connect.
        for command in [2, 3, 9] {
            attacks.push(attack(
                json!(["socks", "a.example.test", 443, command]),
                &["7"],
                None,
            ));
        }
        // The list itself holds, in all its spellings.
        for good in [
            "a.example.test:443",
            "A.Example.TEST.:443",
            "x.y.w.example.test:443",
            "b\u{fc}.w.example.test:443",
        ] {
            let outcomes: &[&str] = if good.is_ascii() {
                &["HTTP/1.1 200"]
            } else {
                REFUSED
            };
            attacks.push(attack(json!(["tunnel", good]), outcomes, None));
        }
        judge(world, LIST, &attacks);
        nothing_else_passed(world, proxy);
    });
}

#[test]
fn requests_and_greetings_name_the_host_that_they_are_for() {
    behind_proxy(|world, proxy| {
        let mut attacks = Vec::new();
        let evil = "evil.example.test";
        for (request, noted) in [
            (
                "GET / HTTP/1.1\r\nHost: evil.example.test\r\n\r\n",
                Some((evil, OTHER_HOST)),
            ),
            (
                "GET / HTTP/1.1\r\nHost: a.example.test\r\nHost: evil.example.test\r\n\r\n",
                Some(("-", MALFORMED)),
            ),
            ("GET / HTTP/1.1\r\n\r\n", Some(("-", MALFORMED))),
            (
                "GET / HTTP/1.1\r\nHost: a.example.test@evil.example.test\r\n\r\n",
                None,
            ),
            (
                "GET http://evil.example.test/ HTTP/1.1\r\nHost: a.example.test\r\n\r\n",
                Some((evil, OTHER_HOST)),
            ),
            (
                "GET http://a.example.test/ HTTP/1.1\r\nHost: evil.example.test\r\n\r\n",
                None,
            ),
            (
                "CONNECT evil.example.test:443 HTTP/1.1\r\nHost: evil.example.test\r\n\r\n",
                Some(("-", MALFORMED)),
            ),
            (
                "GET / HTTP/1.1\r\nHost: a.example.test\r\n Folded: x\r\n\r\n",
                Some(("-", MALFORMED)),
            ),
        ] {
            attacks.push(attack(
                json!(["named", "a.example.test", 80, request]),
                REFUSED,
                noted,
            ));
            attacks.push(attack(
                json!(["inside", "a.example.test:80", request]),
                REFUSED,
                noted,
            ));
        }
        for request in [
            "GET http://a.example.test/ HTTP/1.1\r\nHost: evil.example.test\r\n\r\n",
            "GET http://evil.example.test/ HTTP/1.1\r\nHost: a.example.test\r\n\r\n",
            "GET https://a.example.test/ HTTP/1.1\r\nHost: a.example.test\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: a.example.test\r\n\r\n",
            "CONNECT a.example.test HTTP/1.1\r\nHost: a.example.test\r\n\r\n",
        ] {
            attacks.push(attack(json!(["proxy", request]), REFUSED, None));
        }
        // A tunnel for TLS is for TLS, and the name in its greeting is the host.
        let plain = "GET / HTTP/1.1\r\nHost: a.example.test\r\n\r\n";
        let not_tls = Some(("a.example.test", "default:not-tls"));
        attacks.push(attack(
            json!(["named", "a.example.test", 443, plain]),
            &["reset", "closed"],
            not_tls,
        ));
        attacks.push(attack(
            json!(["inside", "a.example.test:443", plain]),
            &["reset", "closed"],
            not_tls,
        ));
        let broken: &[&str] = &[
            "ECONNRESET",
            "[SSL",
            "EOF",
            "TLS",
            "UNEXPECTED",
            "(",
            "[Errno",
            "8",
        ];
        attacks.push(attack(
            json!(["greet", "a.example.test", 443, evil]),
            broken,
            Some((evil, OTHER_HOST)),
        ));
        let absent = Some(("a.example.test", "default:no-server-name"));
        attacks.push(attack(
            json!(["greet", "a.example.test", 443, null]),
            broken,
            absent,
        ));
        attacks.push(attack(
            json!(["greet", "a.example.test", 443, "a.example.test"]),
            &["greeted"],
            None,
        ));
        judge(world, LIST, &attacks);
        nothing_else_passed(world, proxy);
    });
}

#[test]
fn a_request_cannot_be_hidden_in_another() {
    behind_proxy(|world, proxy| {
        let hidden = "GET /hidden HTTP/1.1\r\nHost: evil.example.test\r\n\r\n";
        let length = hidden.len();
        let framings = [
            format!("Content-Length: 0\r\nContent-Length: {length}\r\n\r\n{hidden}"),
            format!("Content-Length: 0, {length}\r\n\r\n{hidden}"),
            format!("Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n{hidden}"),
            format!("Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n{hidden}"),
        ];
        let mut attacks = Vec::new();
        // Of two lengths, that of the chunks is passed on alone, and nothing after it is read.
        for (first, second) in [
            ("Transfer-Encoding: chunked", ""),
            ("", "Transfer-Encoding: chunked"),
        ] {
            let lengths = format!(
                "{first}\r\nContent-Length: {}\r\n{second}\r\n\r\n",
                length + 5
            );
            let lengths = lengths.trim_start().replace("\r\n\r\n\r\n", "\r\n\r\n");
            let request =
                format!("POST / HTTP/1.1\r\nHost: a.example.test\r\n{lengths}0\r\n\r\n{hidden}");
            attacks.push(attack(
                json!(["named", "a.example.test", 80, request]),
                &["HTTP/1.1 200", "HTTP/1.1 400"],
                None,
            ));
        }
        for framing in framings {
            let request = format!("POST / HTTP/1.1\r\nHost: a.example.test\r\n{framing}");
            let noted = Some(("-", MALFORMED));
            attacks.push(attack(
                json!(["named", "a.example.test", 80, request]),
                REFUSED,
                noted,
            ));
            let whole = request.replacen(" / ", " http://a.example.test/ ", 1);
            attacks.push(attack(json!(["proxy", whole]), REFUSED, noted));
        }
        // Two requests, of which the second is for another host: the first is answered, the second refused.
        let two = format!("GET / HTTP/1.1\r\nHost: a.example.test\r\n\r\n{hidden}");
        attacks.push(attack(
            json!(["named", "a.example.test", 80, two]),
            &["HTTP/1.1 200"],
            Some(("evil.example.test", OTHER_HOST)),
        ));
        judge(world, LIST, &attacks);
        nothing_else_passed(world, proxy);
    });
}

/// Names whose addresses are of this machine, of its neighbours, and of the services that give clouds' secrets away.
#[test]
fn a_name_for_a_special_address_is_refused() {
    let addresses = [
        "127.0.0.1",
        "169.254.169.254",
        "10.0.0.1",
        "192.168.0.1",
        "100.64.0.1",
        "0.0.0.0",
        "::1",
        "fd00:ec2::254",
        "fe80::1",
        "::ffff:127.0.0.1",
        "64:ff9b::7f00:1",
        "198.18.0.1",
    ];
    let lines: Vec<String> = addresses
        .iter()
        .enumerate()
        .map(|(n, address)| format!("{address} n{n}.example.test"))
        .collect();
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    with_names(&lines, |world| {
        let echo = Echo::start();
        let port = echo.port;
        let mut attacks = Vec::new();
        for n in 0..addresses.len() {
            let name = format!("n{n}.example.test");
            let noted = Some((name.as_str(), "default:special-address"));
            attacks.push(attack(
                json!(["tunnel", format!("{name}:{port}")]),
                REFUSED,
                noted,
            ));
            attacks.push(attack(json!(["socks", name, port]), &["2"], noted));
            attacks.push(attack(
                json!(["named", name, port, "x"]),
                &["reset", "ECONNRESET"],
                noted,
            ));
        }
        // Neither every name nor every address means the machine's own.
        judge(
            world,
            &format!("*.example.test:{port},0.0.0.0/0:{port},[::/0]:{port}"),
            &attacks,
        );
        assert!(echo.seen.all().is_empty(), "{:?}", echo.seen.all());
    });
}

/// The daemon's own listener is a service of the host's loopback too.
#[test]
fn the_daemon_is_not_reached_from_inside() {
    for home in Home::of_every_user(AVFS) {
        home.ok(&["vault", "create", "v"]);
        home.ok(&["key", "create", "k", "--scope", "read"]);
        home.ok(&["daemon", "stop"]);
        let mut serve = home.command(&["--json", "serve", "--listen", "127.0.0.1:0"]);
        let mut serving = serve.stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        let mut out = BufReader::new(serving.stdout.take().unwrap());
        while !line.contains("127.0.0.1:") {
            assert_ne!(out.read_line(&mut line).unwrap(), 0, "it ended: {line}");
        }
        let port: String = line
            .rsplit("127.0.0.1:")
            .next()
            .unwrap()
            .chars()
            .take_while(char::is_ascii_digit)
            .collect();
        let port: u16 = port.parse().unwrap();
        let file = home.avfs_home().join("hosts");
        std::fs::write(&file, "127.0.0.1 me.example.test").unwrap();
        home.give(&file);
        let world = World {
            home,
            site: crate::servers::Site::start(),
        };
        let not_listed = Some(("127.0.0.1", NOT_LISTED));
        let get = format!(
            "GET http://127.0.0.1:{port}/v1/vaults HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n"
        );
        let attacks = [
            attack(json!(["tcp", "127.0.0.1", port]), &["ECONNREFUSED"], None),
            attack(
                json!(["tunnel", format!("127.0.0.1:{port}")]),
                REFUSED,
                not_listed,
            ),
            attack(json!(["proxy", get]), REFUSED, not_listed),
            attack(
                json!(["tunnel", format!("me.example.test:{port}")]),
                REFUSED,
                Some(("me.example.test", "default:special-address")),
            ),
        ];
        judge(&world, &format!("me.example.test:{port}"), &attacks);
        serving.kill().unwrap();
        serving.wait().unwrap();
    }
}
