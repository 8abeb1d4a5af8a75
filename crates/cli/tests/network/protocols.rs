//! Names, datagrams and raw sockets from inside a sandbox: nothing but TCP to what is listed leaves it.

use crate::attacks::LIST;
use crate::behind_proxy;
use crate::judge::{NO_HOST, NOT_LISTED, attack, judge};
use serde_json::json;

#[test]
fn names_carry_nothing_out() {
    behind_proxy(|world, proxy| {
        const NONE: &[&str] = &["3 with 0"];
        let mut attacks = Vec::new();
        let secret = "7365637265742d73".repeat(3);
        for kind in [1, 5, 10, 16, 28, 65, 255] {
            for way in ["dns", "dns_tcp"] {
                let labels = [secret.as_str(), "evil", "example", "test"];
                let host = labels.join(".");
                attacks.push(attack(
                    json!([way, labels, kind]),
                    NONE,
                    Some((&host, NOT_LISTED)),
                ));
            }
            // A listed name has addresses and no other record. Not every host has IPv6.
            let some: &[&str] = match kind {
                1 => &["0 with 1"],
                28 => &["0 with 1", "0 with 0"],
                _ => &["0 with 0"],
            };
            attacks.push(attack(
                json!(["dns", ["a", "example", "test"], kind]),
                some,
                None,
            ));
        }
        attacks.push(attack(
            json!(["dns", ["a.example", "test"], 1]),
            NONE,
            Some(("a.example", NO_HOST)),
        ));
        attacks.push(attack(
            json!(["dns", ["a\0", "example", "test"], 1]),
            NONE,
            None,
        ));
        attacks.push(attack(
            json!(["dns", ["a", "example", "test", "evil", "test"], 1]),
            NONE,
            None,
        ));
        judge(world, LIST, &attacks);
        assert!(proxy.seen.all().is_empty(), "{:?}", proxy.seen.all());
    });
}

/// Protocols that no list can check, and addresses that are nobody's.
#[test]
fn only_tcp_to_what_is_listed_leaves() {
    behind_proxy(|world, proxy| {
        const GONE: &[&str] = &[
            "ECONNREFUSED",
            "ENETUNREACH",
            "EHOSTUNREACH",
            "EADDRNOTAVAIL",
        ];
        const NOT_MADE: &[&str] = &[
            "EPERM",
            "EACCES",
            "EAFNOSUPPORT",
            "EPROTONOSUPPORT",
            "ESOCKTNOSUPPORT",
        ];
        let mut attacks = Vec::new();
        // QUIC to the address of a listed name, and datagrams to resolvers.
        attacks.push(attack(
            json!(["dns", ["a", "example", "test"], 1]),
            &["0 with 1"],
            None,
        ));
        for (address, port) in [
            ("198.18.0.1", 443),
            ("192.0.2.1", 53),
            ("192.0.2.1", 443),
            ("127.0.0.1", 5353),
        ] {
            attacks.push(attack(json!(["udp", address, port]), GONE, None));
        }
        attacks.push(attack(json!(["udp", "2001:db8::1", 53, 10]), GONE, None));
        for address in [
            "192.0.2.1",
            "169.254.169.254",
            "10.0.0.1",
            "2001:db8::1",
            "fe80::1",
        ] {
            attacks.push(attack(
                json!(["tcp", address, 80]),
                &["ENETUNREACH", "EHOSTUNREACH", "EINVAL", "ECONNREFUSED"],
                None,
            ));
        }
        // TCP to resolvers other than the sandbox's own, and names over TLS.
        attacks.push(attack(json!(["tcp", "192.0.2.1", 53]), GONE, None));
        attacks.push(attack(json!(["tcp", "198.18.0.1", 853]), GONE, None));
        // A service of the host's loopback is not the sandbox's.
        attacks.push(attack(
            json!(["tcp", "127.0.0.1", world.site.port]),
            GONE,
            None,
        ));
        attacks.push(attack(json!(["tcp", "::1", world.site.port]), GONE, None));
        // Raw, packet, vsock.
        for (family, kind, protocol) in [
            (2, 3, 1),
            (2, 3, 255),
            (10, 3, 58),
            (17, 3, 768),
            (40, 1, 0),
        ] {
            attacks.push(attack(
                json!(["make", family, kind, protocol]),
                NOT_MADE,
                None,
            ));
        }
        // Without any attempt that a list decides on there is no record, so one is added.
        attacks.push(attack(
            json!(["dns", ["evil", "test"], 1]),
            &["3"],
            Some(("evil.test", NOT_LISTED)),
        ));
        judge(world, LIST, &attacks);
        assert!(proxy.seen.all().is_empty(), "{:?}", proxy.seen.all());
        assert!(
            world.site.seen.all().is_empty(),
            "{:?}",
            world.site.seen.all()
        );
    });
}
