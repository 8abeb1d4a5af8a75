//! TLS greetings whose server name cannot be read, or can be read in two ways.

use crate::attacks::LIST;
use crate::behind_proxy;
use crate::judge::{attack, judge};
use serde_json::{Value, json};

/// An extension of a greeting.
fn extension(kind: u16, content: &[u8]) -> Vec<u8> {
    let mut bytes = kind.to_be_bytes().to_vec();
    bytes.extend((content.len() as u16).to_be_bytes());
    bytes.extend(content);
    bytes
}

fn server_name(name: &str) -> Vec<u8> {
    let length = name.len() as u16;
    let mut content = (length + 3).to_be_bytes().to_vec();
    content.push(0);
    content.extend(length.to_be_bytes());
    content.extend(name.as_bytes());
    extension(0, &content)
}

/// A greeting of TLS 1.3 with these extensions beside the usual ones, in records of at most `size` bytes, as text.
fn hello(extensions: &[Vec<u8>], size: usize) -> String {
    let mut list = extension(43, &[2, 3, 4]);
    list.extend(extension(10, &[0, 2, 0, 29]));
    list.extend(extension(13, &[0, 4, 4, 3, 8, 4]));
    let mut share = vec![0, 36, 0, 29, 0, 32];
    share.extend([9; 32]);
    list.extend(extension(51, &share));
    list.extend(extensions.concat());
    let mut body = vec![3, 3];
    body.extend([7; 32]);
    body.push(32);
    body.extend([8; 32]);
    body.extend([0, 4, 0x13, 1, 0x13, 2, 1, 0]);
    body.extend((list.len() as u16).to_be_bytes());
    body.extend(list);
    let mut message = vec![1, 0];
    message.extend((body.len() as u16).to_be_bytes());
    message.extend(body);
    let mut records = Vec::new();
    for part in message.chunks(size) {
        records.extend([22, 3, 1]);
        records.extend((part.len() as u16).to_be_bytes());
        records.extend(part);
    }
    records.into_iter().map(char::from).collect()
}

/// The extension of RFC 9849: for the outer greeting a cipher suite, the id of a key, an encapsulated key and the encrypted greeting.
fn encrypted(id: u8, key: usize, payload: usize) -> Vec<u8> {
    let mut content = vec![0, 0, 1, 0, 1, id];
    content.extend((key as u16).to_be_bytes());
    content.extend(vec![5; key]);
    content.extend((payload as u16).to_be_bytes());
    content.extend(vec![6; payload]);
    extension(0xfe0d, &content)
}

#[test]
fn a_greeting_with_an_encrypted_name_does_not_pass() {
    behind_proxy(|world, proxy| {
        let listed = server_name("a.example.test");
        const CUT: &[&str] = &["reset", "closed"];
        let hidden = Some(("a.example.test", "default:encrypted-hello"));
        let no_tls = Some(("a.example.test", "default:not-tls"));
        let two_names = {
            let mut content = vec![0, 40];
            for name in ["a.example.test", "evil.example.test"] {
                content.push(0);
                content.extend((name.len() as u16).to_be_bytes());
                content.extend(name.as_bytes());
            }
            content[1] = (content.len() - 2) as u8;
            extension(0, &content)
        };
        let cases: [(String, Option<(&str, &'static str)>); 10] = [
            (
                hello(&[listed.clone(), encrypted(42, 32, 208)], 16_000),
                hidden,
            ),
            (
                hello(&[encrypted(42, 32, 208), listed.clone()], 16_000),
                hidden,
            ),
            // As browsers send it for show, in small records, with nothing in it, and as the inner one.
            (
                hello(&[listed.clone(), encrypted(0, 32, 144)], 16_000),
                hidden,
            ),
            (hello(&[listed.clone(), encrypted(42, 32, 208)], 40), hidden),
            (
                hello(&[listed.clone(), extension(0xfe0d, &[])], 16_000),
                hidden,
            ),
            (
                hello(&[listed.clone(), extension(0xfe0d, &[1])], 16_000),
                hidden,
            ),
            (
                hello(&[listed.clone(), extension(0xffce, &[0; 90])], 16_000),
                hidden,
            ),
            // Without a name beside it, it is still one that is encrypted.
            (hello(&[encrypted(42, 32, 208)], 16_000), hidden),
            (hello(&[two_names], 16_000), no_tls),
            (
                hello(&[listed.clone(), server_name("evil.example.test")], 16_000),
                no_tls,
            ),
        ];
        let mut attacks = Vec::new();
        for (greeting, noted) in &cases {
            let ways: [Value; 2] = [
                json!(["named", "a.example.test", 443, greeting]),
                json!(["inside", "a.example.test:443", greeting]),
            ];
            attacks.extend(ways.map(|way| attack(way, CUT, *noted)));
        }
        judge(world, LIST, &attacks);
        // A tunnel is dialled before its greeting comes; nothing is sent through it.
        assert!(
            world.site.seen.all().is_empty(),
            "{:?}",
            world.site.seen.all()
        );
        let lines = proxy.seen.all();
        assert!(!lines.iter().any(|line| line.contains("evil")), "{lines:?}");
    });
}
