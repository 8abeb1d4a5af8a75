//! Requests that two programs would read differently. What passes has one reading: a strict server behind it finds nothing but
//! requests for the host that is listed.

use crate::attacks::LIST;
use crate::judge::{MALFORMED, NOT_LISTED, OTHER_HOST, REFUSED, attack, judge};
use crate::servers::{HostProxy, Seen, certificate, each_connection, listen, read_head};
use crate::{AVFS, World, begin, behind_proxy};
use avfs_testkit::Home;
use rustls::{ServerConnection, StreamOwned};
use serde_json::json;
use std::io::{self, Read, Write};
use std::sync::Arc;

const HIDDEN: &str = "GET /hidden HTTP/1.1\r\nHost: evil.example.test\r\n\r\n";

/// Serves requests, with and without TLS, and notes each with its host, or what is none.
fn strict() -> (u16, String, Seen) {
    let (trusted, tls) = certificate();
    let (listener, port) = listen();
    let seen = Seen::default();
    let noted = seen.clone();
    each_connection(listener, move |stream| {
        let mut first = [0];
        if stream.peek(&mut first)? == 0 {
            return Ok(());
        }
        if first[0] != 22 {
            return requests(stream, &noted);
        }
        let server = ServerConnection::new(Arc::clone(&tls)).map_err(io::Error::other)?;
        requests(StreamOwned::new(server, stream), &noted)
    });
    (port, trusted, seen)
}

/// Answers requests until the other end closes. A body has exactly one length.
fn requests(mut stream: impl Read + Write, seen: &Seen) -> io::Result<()> {
    loop {
        let head = read_head(&mut stream)?;
        let values = |name: &str| -> Vec<String> {
            let lines = head.lines().filter_map(|line| line.split_once(':'));
            let fitting = lines.filter(|(key, _)| key.eq_ignore_ascii_case(name));
            fitting
                .map(|(_, value)| value.trim().to_ascii_lowercase())
                .collect()
        };
        let first = head.lines().next().unwrap_or_default();
        let (hosts, lengths) = (values("host"), values("content-length"));
        let body = match (lengths.as_slice(), values("transfer-encoding").as_slice()) {
            ([], []) => Ok(()),
            ([length], []) if length.bytes().all(|byte| byte.is_ascii_digit()) => {
                let length: u64 = length.parse().map_err(io::Error::other)?;
                io::copy(&mut (&mut stream).take(length), &mut io::sink()).map(drop)
            }
            ([], [one]) if one == "chunked" => chunks(&mut stream),
            both => Err(io::Error::other(format!("{both:?}"))),
        };
        seen.note(format!("{hosts:?} {first} {body:?}"));
        // A body that its client wrote wrongly is cut off.
        let cut = matches!(&body, Err(error) if error.kind() == io::ErrorKind::UnexpectedEof);
        if cut {
            return Ok(());
        }
        if body.is_err() || head.lines().any(|line| line.starts_with([' ', '\t'])) {
            seen.note(format!("malformed: {head:?}"));
            return Ok(());
        }
        stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")?;
    }
}

/// Chunks without extensions or trailers, which no proxy needs to pass on.
fn chunks(stream: &mut impl Read) -> io::Result<()> {
    let mut line = || -> io::Result<String> {
        let mut line = Vec::new();
        while !line.ends_with(b"\r\n") {
            let mut byte = [0];
            stream.read_exact(&mut byte)?;
            line.push(byte[0]);
        }
        line.truncate(line.len() - 2);
        String::from_utf8(line).map_err(io::Error::other)
    };
    let length = line()?;
    if length.is_empty() || !length.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Err(io::Error::other(format!("a chunk of {length:?}")));
    }
    let length = u64::from_str_radix(&length, 16).map_err(io::Error::other)?;
    if length == 0 {
        return match line()?.as_str() {
            "" => Ok(()),
            trailer => Err(io::Error::other(trailer.to_owned())),
        };
    }
    io::copy(&mut stream.take(length), &mut io::sink())?;
    let mut end = [0; 2];
    stream.read_exact(&mut end)?;
    match end == *b"\r\n" {
        true => chunks(stream),
        false => Err(io::Error::other("a chunk without an end")),
    }
}

/// The heads and bodies of requests of which another could be hidden in some reading.
fn smuggled() -> Vec<String> {
    let length = HIDDEN.len();
    let with = |headers: &str, body: &str| {
        format!("POST / HTTP/1.1\r\nHost: a.example.test\r\n{headers}\r\n\r\n{body}")
    };
    let ended = format!("0\r\n\r\n{HIDDEN}");
    let both = length + 5;
    let mut all = Vec::new();
    for headers in [
        format!("Content-Length: {both}\r\nTransfer-Encoding: chunked"),
        format!("Transfer-Encoding: chunked\r\nContent-Length: {both}"),
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\nContent-Length: 5".into(),
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked".into(),
        "Transfer-Encoding: identity, chunked".into(),
        "Transfer-Encoding: chunked, chunked".into(),
        "Transfer-Encoding: \u{b}chunked".into(),
        "Transfer-Encoding: \"chunked\"".into(),
        "Transfer-Encoding\t: chunked".into(),
        "Transfer-Encoding : chunked".into(),
        " Transfer-Encoding: chunked".into(),
        "X: y\r\n Transfer-Encoding: chunked".into(),
        "Transfer-Encoding:\r\n chunked".into(),
        "X: y\nTransfer-Encoding: chunked".into(),
        "X: y\rTransfer-Encoding: chunked".into(),
        "X: y\0Transfer-Encoding: chunked".into(),
        "Connection: Transfer-Encoding\r\nTransfer-Encoding: chunked".into(),
        "Connection: close, Content-Length\r\nContent-Length: 5".into(),
    ] {
        all.push(with(&headers, &ended));
    }
    for headers in [
        format!("Content-Length: 0\r\nContent-Length: {length}"),
        format!("Content-Length: {length}\r\nContent-Length: 0"),
        format!("Content-Length: {length}\r\nContent-Length: {length}"),
        format!("Content-Length: 0,{length}"),
        format!("Content-Length: {length}, {length}"),
        "Content-Length: +0".into(),
        "Content-Length: -0".into(),
        "Content-Length: 0x0".into(),
        "Content-Length: 0 0".into(),
        "Content-Length: 18446744073709551616".into(),
        "Content-Length:\r\n 0".into(),
        "Content-Length : 0".into(),
        "Content_Length: 60\r\nContent-Length: 0".into(),
    ] {
        all.push(with(&headers, HIDDEN));
    }
    for size in [
        "5;x=\n0\r\n\r\n",
        "5;x=\"\r\n0\r\n\r\n\"",
        "0;\r\n\r\n",
        "00000000000000000000000\r\n\r\n",
        "10000000000000000\r\n",
        "-1\r\n",
        "+0\r\n\r\n",
        "0x0\r\n\r\n",
        " 0\r\n\r\n",
        "0 \r\n\r\n",
        "0_0\r\n\r\n",
        "0\n\n",
        "0\r\n\n",
        "5\r\nhelloX\r\n0\r\n\r\n",
        "0\r\nHost: evil.example.test\r\n\r\n",
        "0\r\nContent-Length: 90\r\nTransfer-Encoding: chunked\r\n\r\n",
        "0\r\n folded\r\n\r\n",
    ] {
        all.push(with(
            "Transfer-Encoding: chunked",
            &format!("{size}{HIDDEN}"),
        ));
    }
    all
}

/// For each kind of user: a world whose allowed host is the strict server, which may be sent these requests.
fn behind_strict(rules: &str, check: impl Fn(&World, &Seen)) {
    for home in Home::of_every_user(AVFS) {
        let (port, trusted, seen) = strict();
        let proxy = HostProxy::start(port);
        begin(&home, &proxy, &trusted);
        home.ok(&["network", "inspect", "a.example.test", rules]);
        let site = crate::servers::Site::start();
        check(&World { home, site }, &seen);
    }
}

/// Whatever happens to one of these, the server behind finds requests for the listed host only.
#[test]
fn no_request_is_hidden_in_another() {
    behind_strict("GET,POST /", |world, seen| {
        const ANY: &[&str] = &[
            "HTTP/1.1 ",
            "closed",
            "reset",
            "ENOTCONN",
            "ECONNRESET",
            "None: HTTP/1.1 ",
            "http/1.1: ",
            "None: closed",
        ];
        let mut attacks = Vec::new();
        // Ends a connection that is still understood.
        let end = "GET /end HTTP/1.1\r\nHost: a.example.test\r\nConnection: close\r\n\r\n";
        for request in smuggled() {
            let whole = request.replacen(" / ", " http://a.example.test/ ", 1);
            let opened = format!("{request}{end}");
            let name = "a.example.test";
            for way in [
                json!(["ended", name, 80, request]),
                json!(["opened", name, [], opened]),
                json!(["ended_proxy", whole]),
            ] {
                attacks.push(attack(way, ANY, None));
            }
        }
        // Some are refused for sure, so that the journal has an entry for each group.
        for _ in 0..attacks.len() / 50 + 1 {
            let other = "GET / HTTP/1.1\r\nHost: evil.example.test\r\n\r\n";
            attacks.push(attack(
                json!(["named", "a.example.test", 80, other]),
                REFUSED,
                None,
            ));
        }
        let plain = "GET /plain HTTP/1.1\r\nHost: a.example.test\r\nConnection: close\r\n\r\n";
        attacks.push(attack(
            json!(["opened", "a.example.test", [], plain]),
            &["None: HTTP/1.1 200"],
            None,
        ));
        judge(world, LIST, &attacks);
        let all = seen.all();
        assert!(all.iter().any(|one| one.contains("/plain")), "{all:?}");
        for one in &all {
            assert!(
                one.starts_with("[\"a.example.test\"] "),
                "as {}: {one}",
                world.home.user()
            );
            assert!(!one.contains("hidden") && !one.contains("evil"), "{one}");
        }
    });
}

/// An HTTP/2 request names its host in a frame that nobody reads here, so there is none.
#[test]
fn http_2_is_not_spoken_where_requests_are_seen() {
    behind_strict("GET /", |world, seen| {
        // The preface, settings, and a request (RFC 9113 §8.3, by literals of RFC 7541) whose :authority is another host.
        let mut headers = vec![0x82, 0x87, 0x84, 0x41, 17];
        headers.extend(b"evil.example.test");
        let mut frames = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0".to_vec();
        frames.extend([0, 0, headers.len() as u8, 1, 5, 0, 0, 0, 1]);
        frames.extend(headers);
        let frames: String = frames.into_iter().map(char::from).collect();
        const NONE: &[&str] = &[
            "None: HTTP/1.1 400",
            "None: closed",
            "http/1.1: HTTP/1.1 400",
            "http/1.1: closed",
        ];
        let noted = Some(("-", MALFORMED));
        let attacks = [
            attack(
                json!(["opened", "a.example.test", ["h2"], frames]),
                &["no greeting: "],
                None,
            ),
            attack(
                json!(["opened", "a.example.test", ["h2", "http/1.1"], frames]),
                NONE,
                noted,
            ),
            attack(json!(["opened", "a.example.test", [], frames]), NONE, noted),
            attack(
                json!(["named", "a.example.test", 80, frames]),
                &["HTTP/1.1 400", "closed"],
                noted,
            ),
            attack(
                json!(["inside", "a.example.test:80", frames]),
                &["HTTP/1.1 400", "closed"],
                noted,
            ),
            attack(json!(["proxy", frames]), &["HTTP/1.1 400", "closed"], noted),
            attack(
                json!([
                    "proxy",
                    "GET http://a.example.test/ HTTP/1.1\r\nHost: a.example.test\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n\r\n"
                ]),
                &["HTTP/1.1 200"],
                None,
            ),
            // Within opened TLS, the name of the greeting, of the address and of the header are one.
            attack(
                json!([
                    "opened",
                    "a.example.test",
                    [],
                    "GET / HTTP/1.1\r\nHost: evil.example.test\r\n\r\n"
                ]),
                &["None: HTTP/1.1 403"],
                Some(("evil.example.test", OTHER_HOST)),
            ),
            attack(
                json!([
                    "opened",
                    "a.example.test",
                    [],
                    "GET https://evil.example.test/ HTTP/1.1\r\nHost: a.example.test\r\n\r\n"
                ]),
                &["None: HTTP/1.1 403"],
                Some(("evil.example.test", OTHER_HOST)),
            ),
            attack(
                json!([
                    "inside",
                    "a.example.test:443",
                    "GET / HTTP/1.1\r\nHost: a.example.test\r\n\r\n"
                ]),
                &["reset", "closed"],
                Some(("a.example.test", "default:not-tls")),
            ),
        ];
        judge(world, LIST, &attacks);
        for one in seen.all() {
            assert!(one.starts_with("[\"a.example.test\"] "), "{one}");
            assert!(!one.contains("h2c"), "{one}");
        }
    });
}

#[test]
fn odd_forms_of_socks_4_pass_nothing() {
    behind_proxy(|world, proxy| {
        let ask = |command: char, address: &str, rest: &str| {
            // Port 443.
            json!([
                "socks_four",
                format!("\u{4}{command}\u{1}\u{bb}{address}{rest}")
            ])
        };
        const NO: &[&str] = &["91", "closed", "ECONNRESET", "ENOTCONN"];
        let name = "\0\0\0\u{1}";
        let evil = Some(("evil.example.test", NOT_LISTED));
        let attacks = [
            attack(ask('\u{1}', name, "me\0a.example.test\0"), &["90"], None),
            attack(ask('\u{1}', name, "me\0evil.example.test\0"), NO, evil),
            attack(
                ask('\u{1}', "\0\0\0\u{ff}", "\0evil.example.test\0"),
                NO,
                evil,
            ),
            // No name follows 0.0.0.0, nor another address that begins with zeros.
            attack(
                ask('\u{1}', "\0\0\0\0", "\0a.example.test\0"),
                NO,
                Some(("0.0.0.0", NOT_LISTED)),
            ),
            attack(
                ask('\u{1}', "\0\0\u{1}\0", "\0a.example.test\0"),
                NO,
                Some(("0.0.1.0", NOT_LISTED)),
            ),
            attack(
                ask('\u{1}', "\u{7f}\0\0\u{1}", "\0a.example.test\0"),
                NO,
                Some(("127.0.0.1", NOT_LISTED)),
            ),
            // The name ends at its NUL, wherever the client thinks that it does.
            attack(
                ask('\u{1}', name, "\0evil.example.test\0a.example.test\0"),
                NO,
                evil,
            ),
            attack(ask('\u{1}', name, "\0\0a.example.test\0"), NO, None),
            attack(ask('\u{1}', name, "a.example.test\0"), NO, None),
            attack(ask('\u{1}', name, "\0a.example.test"), NO, None),
            attack(
                ask('\u{1}', name, "\x00127.0.0.1\0"),
                NO,
                Some(("127.0.0.1", NOT_LISTED)),
            ),
            attack(
                ask('\u{1}', name, "\0a.example.test@evil.example.test\0"),
                NO,
                None,
            ),
            attack(
                ask(
                    '\u{1}',
                    name,
                    &format!("{}\0a.example.test\0", "u".repeat(300)),
                ),
                NO,
                None,
            ),
            attack(
                ask(
                    '\u{1}',
                    name,
                    &format!("\0{}.w.example.test\0", "x.".repeat(140)),
                ),
                NO,
                None,
            ),
            attack(ask('\u{2}', name, "\0a.example.test\0"), NO, None),
            attack(ask('\u{0}', name, "\0a.example.test\0"), NO, None),
            attack(
                json!(["socks_four", "\u{4}\u{1}\0\0\0\0\0\u{1}\0a.example.test\0"]),
                NO,
                None,
            ),
            attack(
                json!([
                    "socks_four",
                    "\u{6}\u{1}\u{1}\u{bb}\0\0\0\u{1}\0a.example.test\0"
                ]),
                NO,
                None,
            ),
        ];
        judge(world, LIST, &attacks);
        for line in proxy.seen.all() {
            assert!(line.contains(" a.example.test:443 "), "{line}");
        }
    });
}
