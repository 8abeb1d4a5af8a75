//! Tables of texts: which are hosts, which rules they are, and what they match.

use std::net::IpAddr;

use super::*;

fn list(text: &str) -> HostList {
    text.parse()
        .unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn host(text: &str) -> Host {
    Host::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn allowed(rules: &str, text: &str, port: u16) -> bool {
    list(rules).decide(&host(text), port).is_allowed()
}

#[test]
fn a_text_that_programs_read_differently_is_no_host() {
    for text in [
        "",
        ".",
        "..",
        "a..b",
        ".a",
        "a.b..",
        "a b",
        "a\0b",
        "a\nb",
        "a\r\nb",
        "a%00b",
        "a%2eb",
        "a/b",
        "a@b",
        "user@a.test",
        "a\\b",
        "a?b",
        "a#b",
        "a:b:c",
        "-a.test",
        "a-.test",
        "1",
        "127.1",
        "0x7f000001",
        "2130706433",
        "0177.0.0.1",
        "127.0.0.01",
        "1.2.3.4.5",
        "1.2.3.4.",
        "1.2.3.256",
        "a.1",
        "a.0x1f",
        "a.0x",
        "127.0.0.1 ",
        " a",
        "a.test\u{3002}\u{3002}",
        "\u{ff11}\u{ff12}\u{ff17}.0.0.1",
        "[::1",
        "::1]",
        "[1.2.3.4]",
        "fe80::1%eth0",
        "fe80::1%25eth0",
        "[fe80::1%1]",
        "::g",
        "1::2::3",
        "xn--a",
        "xn--bcher-kvb.test\u{200e}",
        "a\u{7f}",
        "*",
        "*.a.test",
        "a,b",
    ] {
        assert!(
            Host::parse(text).is_err(),
            "{text:?}: {:?}",
            Host::parse(text)
        );
    }
    assert_eq!(HostName::parse(&"a".repeat(64)), Err(HostError::TooLong));
    assert!(HostName::parse(&"a".repeat(63)).is_ok());
    let long = format!("{}.{}", vec!["a".repeat(62); 4].join("."), "a");
    assert_eq!(long.len(), 253);
    assert!(HostName::parse(&long).is_ok());
    assert_eq!(
        HostName::parse(&format!("{long}a")),
        Err(HostError::TooLong)
    );
    assert_eq!(HostName::parse(&"ü".repeat(2000)), Err(HostError::TooLong));
}

#[test]
fn texts_of_one_host_are_equal() {
    for (text, canonical) in [
        ("EXAMPLE.test", "example.test"),
        ("example.test.", "example.test"),
        ("BÜCHER.example", "xn--bcher-kva.example"),
        ("xn--bcher-kva.EXAMPLE", "xn--bcher-kva.example"),
        ("faß.test", "xn--fa-hia.test"),
        ("ex\u{ad}ample.test", "example.test"),
        ("example\u{3002}test", "example.test"),
        ("\u{ff45}xample.test", "example.test"),
        ("_dmarc.a_b.test", "_dmarc.a_b.test"),
        ("r3---sn-x.test", "r3---sn-x.test"),
        ("1.example", "1.example"),
        ("localhost", "localhost"),
        ("127.0.0.1", "127.0.0.1"),
        ("[::1]", "::1"),
        ("0:0:0:0:0:0:0:1", "::1"),
        ("2001:DB8::1", "2001:db8::1"),
        ("::ffff:10.0.0.1", "10.0.0.1"),
        ("[::ffff:a00:1]", "10.0.0.1"),
    ] {
        assert_eq!(host(text).to_string(), canonical, "{text:?}");
        assert_eq!(host(canonical), host(text));
    }
}

#[test]
fn a_port_is_digits_alone() {
    let parse = HostPort::parse;
    assert_eq!(parse("a.test:443").unwrap().to_string(), "a.test:443");
    assert_eq!(parse("[::1]:80").unwrap().to_string(), "[::1]:80");
    for text in [
        "a.test",
        "a.test:",
        "a.test:0",
        "a.test:+80",
        "a.test:080",
        "a.test:65536",
        "a.test:80:80",
        "a.test: 80",
        "::1",
        "::1:80",
        "[::1]",
        "[::1]80",
        "[::1]:",
        "u@a.test:80",
        "a.test:80/",
        "a.test:８０",
    ] {
        assert!(parse(text).is_err(), "{text:?}");
    }
    let given = HostPort::parse_with_default("a.test", Some(80)).unwrap();
    assert_eq!(given.port, 80);
    // Without brackets nobody knows where a port would begin, so all of it is the address.
    let bare = HostPort::parse_with_default("::1", Some(80)).unwrap();
    assert_eq!(bare.to_string(), "[::1]:80");
}

#[test]
fn rules_print_as_they_are_read() {
    for text in [
        "a.test",
        "a.test:8080",
        "a.test:*",
        "*.a.test",
        "*.a.test:22",
        "*",
        "*:*",
        "10.0.0.0/8",
        "10.0.0.0/8:5432",
        "10.1.2.3",
        "10.1.2.3:5432",
        "2001:db8::/32",
        "[2001:db8::/32]:443",
        "[2001:db8::1]:443",
        "2001:db8::1",
        "0.0.0.0/0:*",
        "[::/0]:*",
    ] {
        let rule = HostRule::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"));
        assert_eq!(rule.to_string(), text);
    }
    for text in [
        "",
        "a.*",
        "*a.test",
        "a.*.test",
        "**",
        "*.",
        "*.10.0.0.1",
        "*.*.test",
        "10.0.0.1/8",
        "10.0.0.0/33",
        "10.0.0.0/+8",
        "10.0.0.0/08",
        "10.0.0.0/",
        "a.test/24",
        "::ffff:10.0.0.0/104",
        "2001:db8::/129",
        "0.0.0.0",
        "224.0.0.1",
        "255.255.255.255",
        "198.18.0.1",
        "198.19.0.0/16",
        "::",
        "ff02::1",
        "a.test:0",
        "a.test:http",
        "https://a.test",
        "a.test/",
        "10.0.0.0/8:",
        "0x7f.1",
        "[2001:db8::/32",
    ] {
        assert!(HostRule::parse(text).is_err(), "{text:?}");
    }
}

#[test]
fn a_suffix_is_whole_labels_and_not_the_name_itself() {
    assert!(allowed("*.x.test", "a.x.test", 443));
    assert!(allowed("*.x.test", "b.a.X.test.", 80));
    for name in ["x.test", "evilx.test", "x.test.evil", "ax.test", "test"] {
        assert!(!allowed("*.x.test", name, 443), "{name}");
    }
    assert!(!allowed("x.test", "a.x.test", 443));
    assert!(!allowed("x.test", "evilx.test", 443));
    assert!(allowed("*", "anything.test", 443));
    assert!(!allowed("*:*", "8.8.8.8", 443));
}

#[test]
fn a_rule_is_for_its_ports() {
    assert!(allowed("x.test", "x.test", 80) && allowed("x.test", "x.test", 443));
    assert!(!allowed("x.test", "x.test", 22) && !allowed("x.test", "x.test", 8443));
    assert!(allowed("x.test:22", "x.test", 22) && !allowed("x.test:22", "x.test", 443));
    assert!(allowed("x.test:*", "x.test", 9));
    let denied = list("x.test:22").decide(&host("x.test"), 443);
    let rule = HostRule::parse("x.test:22").unwrap();
    assert_eq!(denied, Verdict::Denied(Denial::OtherPort(rule)));
}

#[test]
fn a_special_address_needs_a_rule_within_its_range() {
    for (rules, address, expected) in [
        ("10.0.0.0/8", "10.1.2.3", true),
        ("10.1.2.3", "10.1.2.3", true),
        ("10.1.2.3", "::ffff:10.1.2.3", true),
        ("0.0.0.0/0", "10.1.2.3", false),
        ("0.0.0.0/0", "8.8.8.8", true),
        ("8.0.0.0/6", "10.1.2.3", false),
        ("169.254.0.0/16", "169.254.169.254", false),
        ("169.254.0.0/16", "169.254.1.1", true),
        ("169.254.169.254", "169.254.169.254", true),
        ("::/0", "::1", false),
        ("::1", "::1", true),
        ("64:ff9b::/96", "64:ff9b::a00:1", true),
        ("2000::/3", "2002:a00:1::", false),
        ("*", "10.1.2.3", false),
    ] {
        assert_eq!(allowed(rules, address, 80), expected, "{rules} {address}");
    }
    let list = list("*.x.test,10.0.0.0/8:80");
    let check = |address: &str, port| list.check_resolved(address.parse::<IpAddr>().unwrap(), port);
    assert_eq!(check("8.8.8.8", 443), Ok(()));
    assert_eq!(check("10.0.0.1", 80), Ok(()));
    assert!(check("10.0.0.1", 443).is_err());
    assert!(check("::ffff:127.0.0.1", 443).is_err());
    let denial = check("127.0.0.1", 443).unwrap_err();
    let hint = denial.hint(&host("a.x.test"), 443).unwrap();
    assert_eq!(hint.to_string(), "avfs network allow 127.0.0.1");
}

#[test]
fn every_special_kind_is_known() {
    for (address, special) in [
        ("127.0.0.1", Special::Loopback),
        ("127.255.255.255", Special::Loopback),
        ("10.255.255.255", Special::Private),
        ("172.16.0.1", Special::Private),
        ("172.31.255.255", Special::Private),
        ("192.168.1.1", Special::Private),
        ("169.254.0.1", Special::LinkLocal),
        ("169.254.169.254", Special::Metadata),
        ("fd00:ec2::254", Special::Metadata),
        ("100.64.0.1", Special::CarrierNat),
        ("100.100.100.200", Special::Metadata),
        ("0.0.0.0", Special::Unspecified),
        ("0.1.2.3", Special::Unspecified),
        ("255.255.255.255", Special::Broadcast),
        ("240.0.0.1", Special::Reserved),
        ("224.0.0.251", Special::Multicast),
        ("198.18.0.1", Special::Benchmark),
        ("198.19.255.255", Special::Benchmark),
        ("192.0.2.1", Special::Documentation),
        ("::", Special::Unspecified),
        ("::1", Special::Loopback),
        ("::127.0.0.1", Special::Translated),
        ("::ffff:127.0.0.1", Special::Loopback),
        ("::ffff:0:127.0.0.1", Special::Translated),
        ("64:ff9b::7f00:1", Special::Translated),
        ("64:ff9b:1::1", Special::Translated),
        ("2002:7f00:1::", Special::Translated),
        ("2001:0:1::1", Special::Translated),
        ("2001:2::1", Special::Reserved),
        ("2001:db8::1", Special::Documentation),
        ("fc00::1", Special::UniqueLocal),
        ("fdff::1", Special::UniqueLocal),
        ("fe80::1", Special::LinkLocal),
        ("fec0::1", Special::UniqueLocal),
        ("ff02::fb", Special::Multicast),
        ("4000::1", Special::Reserved),
        ("fe00::1", Special::Reserved),
    ] {
        let parsed: IpAddr = address.parse().unwrap();
        assert_eq!(address_is_special(parsed), Some(special), "{address}");
    }
    for address in [
        "8.8.8.8",
        "172.32.0.1",
        "100.128.0.1",
        "198.20.0.1",
        "2606:4700::1",
        "2a00::1",
        "223.255.255.255",
    ] {
        assert_eq!(
            address_is_special(address.parse().unwrap()),
            None,
            "{address}"
        );
    }
}

#[test]
fn narrowing_is_told_from_widening() {
    for (narrow, wide) in [
        ("", ""),
        ("", "a.test"),
        ("a.test", "a.test"),
        ("a.test:443", "a.test"),
        ("a.test", "a.test:80,a.test:443"),
        ("a.x.test,*.b.x.test", "*.x.test"),
        ("a.test:22", "a.test:*"),
        ("a.test", "*"),
        ("10.1.0.0/16:22", "10.0.0.0/8:*"),
        ("8.8.8.8", "0.0.0.0/0"),
    ] {
        assert!(list(narrow).is_within(&list(wide)), "{narrow} in {wide}");
    }
    for (one, other) in [
        ("a.test", ""),
        ("a.test", "a.test:443"),
        ("a.test:22", "a.test"),
        ("a.test:*", "a.test"),
        ("x.test", "*.x.test"),
        ("*.x.test", "x.test"),
        ("*", "*.test"),
        ("8.8.8.8", "*:*"),
        ("10.0.0.1", "0.0.0.0/0"),
        ("169.254.169.254/31", "0.0.0.0/0"),
        ("169.254.169.254", "169.254.0.0/16"),
        ("10.0.0.0/8", "10.0.0.0/9"),
    ] {
        assert!(!list(one).is_within(&list(other)), "{one} in {other}");
    }
}

#[test]
fn a_list_is_bounded_sorted_and_an_array_of_strings() {
    let many: Vec<String> = (0..257).map(|n| format!("h{n}.test")).collect();
    assert_eq!(many.join(",").parse::<HostList>(), Err(HostError::TooMany));
    assert!(many[1..].join(" ").parse::<HostList>().is_ok());
    assert_eq!(
        vec!["a.test"; 5000]
            .join(",")
            .parse::<HostList>()
            .unwrap()
            .rules()
            .len(),
        1
    );
    let list = list("*.b.test, a.test:22\n a.test 10.0.0.0/8");
    assert_eq!(list.to_string(), "a.test,a.test:22,*.b.test,10.0.0.0/8");
    let toml = toml::to_string(&std::collections::BTreeMap::from([("network", &list)])).unwrap();
    assert_eq!(
        toml.trim(),
        r#"network = ["a.test", "a.test:22", "*.b.test", "10.0.0.0/8"]"#
    );
    let back: std::collections::BTreeMap<String, HostList> = toml::from_str(&toml).unwrap();
    assert_eq!(back["network"], list);
    assert!(
        toml::from_str::<std::collections::BTreeMap<String, HostList>>("network = ['a b']")
            .is_err()
    );
}

#[test]
fn a_hint_is_a_command_that_a_shell_reads_as_one_rule() {
    let hint = |text: &str, port| Hint::to_allow(host(text), port).map(|hint| hint.to_string());
    assert_eq!(
        hint("a.test", 443).as_deref(),
        Some("avfs network allow a.test")
    );
    assert_eq!(
        hint("a.test", 22).as_deref(),
        Some("avfs network allow a.test:22")
    );
    assert_eq!(
        hint("2001:db8::1", 22).as_deref(),
        Some("avfs network allow '[2001:db8::1]:22'")
    );
    assert_eq!(hint("0.0.0.0", 22), None);
}

/// A command chooses the names that it asks for, and the owner pastes what a refusal says.
#[test]
fn the_word_registries_is_no_host_and_no_host_is_the_word() {
    for text in ["registries", "Registries", "REGISTRIES.", "registries."] {
        let rule = HostRule::parse(text).unwrap();
        assert_eq!(rule, HostRule::registries(), "{text}");
        assert_eq!(rule.to_string(), "registries");
    }
    let list: HostList = "registries,example.test".parse().unwrap();
    assert_eq!(list.to_string(), "registries,example.test");
    assert!(list.has_registries());
    let host = Host::parse("registries").unwrap();
    assert!(!list.knows(&host) && !list.decide(&host, 443).is_allowed());
    let hint = Hint::to_allow(host.clone(), 443).unwrap();
    assert_eq!(hint.to_string(), "avfs network allow registries:443");
    assert!(
        !hint
            .rule()
            .to_string()
            .parse::<HostList>()
            .unwrap()
            .has_registries()
    );
    let named: HostList = "registries:443".parse().unwrap();
    assert!(named.decide(&host, 443).is_allowed() && !named.has_registries());
}

#[test]
fn only_a_list_with_registries_covers_them() {
    let list = |text: &str| text.parse::<HostList>().unwrap();
    let registries = list("registries");
    for wider in ["registries", "registries,a.test"] {
        assert!(registries.is_within(&list(wider)), "{wider}");
    }
    for other in ["*", "*:*", "registries:443", "registries:*", "0.0.0.0/0:*"] {
        assert!(!registries.is_within(&list(other)), "{other}");
        assert!(!list(other).is_within(&registries), "{other}");
    }
}
