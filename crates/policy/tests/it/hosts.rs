//! Generated texts: the parser and the matcher of hosts agree with independent ones.
//!
//! The references are the C library (`inet_aton`, and `getaddrinfo` with `AI_NUMERICHOST`) for what counts as an address, and the
//! `url` crate for names. `AVFS_HOSTS=1000000` tries a million texts. The default takes a second or two, and every run
//! tries the same texts.

use std::ffi::CString;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use avfs_policy::{Host, HostList, HostName, HostPort, HostRule};

use crate::support::Random;

const LABELS: &[&str] = &[
    "a",
    "A",
    "test",
    "TEST",
    "example",
    "x",
    "evil",
    "xn--bcher-kva",
    "XN--BCHER-KVA",
    "xn--",
    "xn--a",
    "bücher",
    "BÜCHER",
    "faß",
    "ΣΑΣ",
    "ｅxample",
    "ex\u{ad}ample",
    "\u{200d}",
    "\u{200b}a",
    "é",
    "e\u{301}",
    "_dmarc",
    "a_b",
    "-a",
    "a-",
    "a--b",
    "r3---sn",
    "0",
    "1",
    "127",
    "256",
    "0x7f",
    "0X7F",
    "0x",
    "0177",
    "08",
    "１２７",
    "2130706433",
    "00",
    "1e3",
    "",
    "日本",
    "مثال",
    "☃",
    "a b",
    "a%20b",
    "%61",
    "a\0b",
    "a\tb",
    "a/b",
    "a@b",
    "a:b",
    "a\\b",
    "a?b",
    "a#b",
    "a[b",
    "*",
    "a,b",
    "a\u{7f}",
    "\u{fffd}",
    "ⓐ",
    "．",
    "1。1",
];
const DOTS: &[&str] = &[".", ".", ".", ".", ".", ".", "。", "．", "..", ""];
const WHOLE: &[&str] = &[
    "127.0.0.1",
    "127.1",
    "0x7f.1",
    "0177.0.0.1",
    "1.2.3.4",
    "1.2.3.4.",
    "01.2.3.4",
    "255.255.255.255",
    "256.1.1.1",
    "1.2.3",
    "0",
    "::",
    "::1",
    "[::1]",
    "::ffff:1.2.3.4",
    "[::ffff:102:304]",
    "::1.2.3.4",
    "1::2",
    "fe80::1%lo",
    "fe80::1%251",
    "FE80::A",
    "2001:DB8:0:0:0:0:0:1",
    "1:2:3:4:5:6:7:8:9",
    "1:2:3:4:5:6:7",
    ":::",
    "0:0:0:0:0:ffff:127.0.0.1",
    "::00001",
    "64:ff9b::1.2.3.4",
    "user@a.test",
    "a.test:80",
    "http://a.test",
    "localhost",
    "a.test..",
];

fn text(random: &mut Random) -> String {
    match random.below(10) {
        0 => random.pick(WHOLE).to_string(),
        1 => numbers(random),
        2 => groups(random),
        3 => damaged(random),
        _ => {
            let mut text = random.pick(LABELS).to_string();
            for _ in 0..random.below(4) {
                text.push_str(random.pick(DOTS));
                text.push_str(random.pick(LABELS));
            }
            if random.below(4) == 0 {
                text.push_str(random.pick(DOTS));
            }
            text
        }
    }
}

/// An IPv4 address in all kinds of bases and lengths.
fn numbers(random: &mut Random) -> String {
    let parts: Vec<String> = (0..=random.below(5))
        .map(|_| {
            let number = match random.below(4) {
                0 => random.next() as u32,
                _ => random.below(260) as u32,
            };
            match random.below(6) {
                0 => format!("{number:#x}"),
                1 => format!("0{number:o}"),
                2 => format!("0{number}"),
                _ => number.to_string(),
            }
        })
        .collect();
    let end = ["", "", "", ".", " ", "%1"];
    parts.join(".") + random.pick(&end)
}

/// An IPv6 address, or nearly one.
fn groups(random: &mut Random) -> String {
    let mut parts: Vec<String> = (0..random.below(9) + 1)
        .map(|_| format!("{:x}", random.below(0x1_0010)))
        .collect();
    if random.below(2) == 0 {
        let at = random.below(parts.len());
        parts[at] = String::new();
    }
    if random.below(4) == 0 {
        parts.push("1.2.3.4".to_owned());
    }
    let joined = parts.join(":");
    match random.below(4) {
        0 => format!("[{joined}]"),
        1 => format!("::{joined}"),
        _ => joined,
    }
}

fn damaged(random: &mut Random) -> String {
    let mut characters: Vec<char> = random.pick(WHOLE).chars().collect();
    for _ in 0..=random.below(2) {
        let at = random.below(characters.len());
        match random.below(3) {
            0 => characters[at] = char::from(random.below(128) as u8),
            1 => characters.insert(at, char::from(random.below(128) as u8)),
            _ if characters.len() > 1 => drop(characters.remove(at)),
            _ => {}
        }
    }
    characters.into_iter().collect()
}

/// What `inet_aton` makes of a text.
fn aton(text: &str) -> Option<Ipv4Addr> {
    let text = CString::new(text).ok()?;
    let mut address = libc::in_addr { s_addr: 0 };
    // SAFETY: the text ends with NUL, and the address is large enough.
    let read = unsafe { inet_aton(text.as_ptr(), &mut address) };
    (read != 0).then(|| Ipv4Addr::from(address.s_addr.to_ne_bytes()))
}

unsafe extern "C" {
    fn inet_aton(text: *const libc::c_char, address: *mut libc::in_addr) -> libc::c_int;
}

/// What `getaddrinfo` makes of a text that it may not look up.
fn numeric(text: &str) -> Option<IpAddr> {
    let text = CString::new(text).ok()?;
    // SAFETY: the hints are zero where they are not set, and the answer is read before it is freed.
    unsafe {
        let mut hints: libc::addrinfo = std::mem::zeroed();
        hints.ai_flags = libc::AI_NUMERICHOST;
        hints.ai_socktype = libc::SOCK_STREAM;
        let mut found = std::ptr::null_mut();
        if libc::getaddrinfo(text.as_ptr(), std::ptr::null(), &hints, &mut found) != 0 {
            return None;
        }
        let address = match (*found).ai_family {
            libc::AF_INET => {
                let own = (*found)
                    .ai_addr
                    .cast::<libc::sockaddr_in>()
                    .read_unaligned();
                IpAddr::V4(Ipv4Addr::from(own.sin_addr.s_addr.to_ne_bytes()))
            }
            _ => {
                let own = (*found)
                    .ai_addr
                    .cast::<libc::sockaddr_in6>()
                    .read_unaligned();
                IpAddr::V6(Ipv6Addr::from(own.sin6_addr.s6_addr))
            }
        };
        libc::freeaddrinfo(found);
        Some(address.to_canonical())
    }
}

/// What the `url` crate makes of a text: the labels of a name, or an address.
enum Reference {
    Name(Vec<String>),
    Address(IpAddr),
    None,
}

fn reference(text: &str) -> Reference {
    match url::Host::parse(text) {
        Ok(url::Host::Domain(name)) => {
            let name = name.strip_suffix('.').unwrap_or(&name).to_owned();
            Reference::Name(name.split('.').map(str::to_owned).collect())
        }
        Ok(url::Host::Ipv4(address)) => Reference::Address(address.into()),
        Ok(url::Host::Ipv6(address)) => Reference::Address(IpAddr::V6(address).to_canonical()),
        Err(_) => Reference::None,
    }
}

/// Whether a rule for names matches labels, compared from the last to the first.
fn matches(rule: &str, labels: &[String]) -> bool {
    let below = rule.strip_prefix("*.");
    let wanted: Vec<&str> = below.unwrap_or(rule).split('.').collect();
    let pairs = wanted.iter().rev().zip(labels.iter().rev());
    let equal = pairs.filter(|(one, other)| one == other).count() == wanted.len();
    match below {
        Some(_) => equal && labels.len() > wanted.len(),
        None => equal && labels.len() == wanted.len(),
    }
}

const RULES: &[&str] = &[
    "test",
    "*.test",
    "a.test",
    "*.a.test",
    "*.xn--bcher-kva",
    "example.x",
    "*.x",
    "*.example",
];

fn check(text: &str, lists: &[(&str, HostList)]) -> &'static str {
    let host = Host::parse(text);
    let bare = text
        .strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'));
    let address = numeric(bare.unwrap_or(text)).or_else(|| aton(text).map(IpAddr::V4));
    match &host {
        Ok(Host::Name(name)) => {
            assert_eq!(
                address, None,
                "{text:?} is an address to the C library, and {name} here"
            );
            assert!(!text.contains('%') && !text.contains('\0'), "{text:?}");
            let Reference::Name(labels) = reference(text) else {
                panic!("{text:?} is the name {name} here, and no name to the url crate");
            };
            assert_eq!(labels.join("."), name.as_str(), "{text:?}");
            assert_eq!(
                HostName::parse(name.as_str()).as_ref(),
                Ok(name),
                "{text:?}"
            );
            assert!(name.as_str().is_ascii() && name.as_str().len() <= 253);
            for (rule, list) in lists {
                let own = list
                    .decide(host.as_ref().expect("it is one"), 443)
                    .is_allowed();
                assert_eq!(own, matches(rule, &labels), "{rule} {text:?}");
            }
            "name"
        }
        Ok(Host::Address(own)) => {
            assert_eq!(address, Some(*own), "{text:?}");
            if let Reference::Address(other) = reference(text) {
                assert_eq!(other, *own, "{text:?}");
            }
            assert!(
                lists
                    .iter()
                    .all(|(_, list)| !list.knows(host.as_ref().expect("it is one")))
            );
            "address"
        }
        Err(error) => {
            // What is refused is no name to others either, or has labels that are not those of a host.
            if let Reference::Name(labels) = reference(text) {
                let odd = labels.iter().any(|label| !is_plain(label));
                assert!(
                    odd || text.contains('%') || labels.join(".").len() > 253,
                    "{text:?}: {error}"
                );
            }
            "neither"
        }
    }
}

fn is_plain(label: &str) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    let edges = label.starts_with('-') || label.ends_with('-');
    !edges && !label.is_empty() && label.len() <= 63 && label.chars().all(fits)
}

/// What every host has: one text, which means it again, alone, with a port, and as a rule.
fn round_trips(text: &str) {
    let Ok(host) = Host::parse(text) else {
        return;
    };
    assert_eq!(
        Host::parse(&host.to_string()).as_ref(),
        Ok(&host),
        "{text:?}"
    );
    let at = HostPort::new(host.clone(), 8080);
    assert_eq!(HostPort::parse(&at.to_string()), Ok(at));
    let rule = HostRule::exactly(host.clone(), 8080);
    match HostRule::parse(&rule.to_string()) {
        Ok(read) => {
            assert_eq!(read, rule, "{text:?}");
            let list = HostList::new([read]).expect("one rule fits");
            assert!(
                list.decide(&host, 8080).is_allowed() && !list.decide(&host, 8081).is_allowed()
            );
        }
        // Only addresses that no connection can be made to.
        Err(_) => assert!(matches!(host, Host::Address(_)), "{text:?}"),
    }
}

#[test]
fn parser_and_matcher_agree_with_independent_ones() {
    let asked = std::env::var("AVFS_HOSTS").ok();
    let wanted: usize = asked.map_or(20_000, |n| n.parse().expect("AVFS_HOSTS is a number"));
    let lists: Vec<(&str, HostList)> = RULES
        .iter()
        .map(|rule| (*rule, rule.parse().unwrap()))
        .collect();
    let mut random = Random(16);
    let mut counts = std::collections::BTreeMap::new();
    for _ in 0..wanted {
        let text = text(&mut random);
        *counts.entry(check(&text, &lists)).or_insert(0usize) += 1;
        round_trips(&text);
    }
    for kind in ["name", "address", "neither"] {
        assert!(
            counts.get(kind).is_some_and(|count| *count > wanted / 50),
            "{counts:?}"
        );
    }
}
