//! The server name of a TLS ClientHello.
//!
//! The parser is strict: what it accepts has one reading. A hello with a part that is cut short, with an extension twice, or
//! with more than one server name is refused, so no server can find another name in it.

use std::collections::HashSet;
use std::io;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::time::timeout;

const HANDSHAKE: u8 = 22;
const CLIENT_HELLO: u8 = 1;
const RECORD_HEADER: usize = 5;
const MAX_RECORD: usize = 16 * 1024;
const SERVER_NAME: u16 = 0;
const ENCRYPTED_CLIENT_HELLO: u16 = 0xfe0d;
/// An older draft of the same.
const ENCRYPTED_SERVER_NAME: u16 = 0xffce;

/// What a hello says about the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ServerName {
    Named(String),
    Absent,
    Encrypted,
}

/// Why there is no hello.
#[derive(Debug)]
pub(crate) enum NoHello {
    /// The client said nothing, or too slowly, or went away.
    Silent,
    NotTls,
}

/// Reads a hello, and gives it back with the bytes that were read.
pub(crate) async fn read_hello(
    stream: &mut (impl AsyncRead + Unpin),
    max: usize,
    time: Duration,
) -> Result<(ServerName, Vec<u8>), NoHello> {
    let mut bytes = Vec::new();
    let read = async {
        loop {
            match parse(&bytes, max) {
                Parsed::Whole(name) => return Ok(name),
                Parsed::Wrong => return Err(NoHello::NotTls),
                Parsed::More => {}
            }
            let before = bytes.len();
            bytes.resize(before + 4096, 0);
            let read: io::Result<usize> = stream.read(&mut bytes[before..]).await;
            let read = read.map_err(|_| NoHello::Silent)?;
            bytes.truncate(before + read);
            if read == 0 {
                return Err(NoHello::Silent);
            }
        }
    };
    let name = timeout(time, read).await.unwrap_or(Err(NoHello::Silent))?;
    Ok((name, bytes))
}

enum Parsed {
    Whole(ServerName),
    More,
    Wrong,
}

/// Joins the handshake message of the records. A hello may be cut into several.
fn parse(mut bytes: &[u8], max: usize) -> Parsed {
    let mut message = Vec::new();
    loop {
        if message.len() >= 4 {
            let length = usize::from(message[1]) << 16
                | usize::from(message[2]) << 8
                | usize::from(message[3]);
            if message[0] != CLIENT_HELLO || length > max {
                return Parsed::Wrong;
            }
            if message.len() >= 4 + length {
                // A client has nothing else to say before the answer.
                return match message.len() == 4 + length {
                    true => server_name(&message[4..]).map_or(Parsed::Wrong, Parsed::Whole),
                    false => Parsed::Wrong,
                };
            }
        }
        if bytes.first().is_some_and(|kind| *kind != HANDSHAKE)
            || bytes.get(1).is_some_and(|major| *major != 3)
        {
            return Parsed::Wrong;
        }
        if bytes.len() < RECORD_HEADER {
            return Parsed::More;
        }
        let length = usize::from(bytes[3]) << 8 | usize::from(bytes[4]);
        if length == 0 || length > MAX_RECORD || message.len() + length > max + 4 {
            return Parsed::Wrong;
        }
        let Some(record) = bytes.get(RECORD_HEADER..RECORD_HEADER + length) else {
            return Parsed::More;
        };
        message.extend_from_slice(record);
        bytes = &bytes[RECORD_HEADER + length..];
    }
}

/// Reads parts off the front of a message.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (head, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(head)
    }

    fn u16(&mut self) -> Option<u16> {
        let bytes = self.take(2)?;
        Some(u16::from_be_bytes([bytes[0], bytes[1]]))
    }

    /// A part that has its length, of one or of two bytes, before it.
    fn short(&mut self) -> Option<Reader<'a>> {
        let length = self.take(1)?[0];
        self.take(length.into()).map(Reader)
    }

    fn long(&mut self) -> Option<Reader<'a>> {
        let length = self.u16()?;
        self.take(length.into()).map(Reader)
    }

    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// The body of a ClientHello: version, random, session, suites, compression, extensions. `None` where it is not one.
fn server_name(body: &[u8]) -> Option<ServerName> {
    let mut reader = Reader(body);
    reader.take(2 + 32)?;
    reader.short()?;
    reader.long()?;
    reader.short()?;
    if reader.is_empty() {
        return Some(ServerName::Absent);
    }
    let mut extensions = reader.long()?;
    if !reader.is_empty() {
        return None;
    }
    let mut seen = HashSet::new();
    let mut name = ServerName::Absent;
    let mut encrypted = false;
    while !extensions.is_empty() {
        let kind = extensions.u16()?;
        let content = extensions.long()?;
        if !seen.insert(kind) {
            return None;
        }
        match kind {
            SERVER_NAME => name = ServerName::Named(one_name(content)?),
            ENCRYPTED_CLIENT_HELLO | ENCRYPTED_SERVER_NAME => encrypted = true,
            _ => {}
        }
    }
    Some(if encrypted {
        ServerName::Encrypted
    } else {
        name
    })
}

fn one_name(mut content: Reader<'_>) -> Option<String> {
    let mut names = content.long()?;
    if !content.is_empty() || names.take(1)? != [0] {
        return None;
    }
    let name = names.long()?;
    let whole = names.is_empty();
    String::from_utf8(name.0.to_vec()).ok().filter(|_| whole)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A hello with these extensions, in records of at most `size` bytes.
    fn hello(extensions: &[(u16, Vec<u8>)], size: usize) -> Vec<u8> {
        let mut body = vec![3, 3];
        body.extend([7; 32]);
        body.extend([0, 0, 2, 0x13, 1, 1, 0]);
        let mut list = Vec::new();
        for (kind, content) in extensions {
            list.extend(kind.to_be_bytes());
            list.extend((content.len() as u16).to_be_bytes());
            list.extend(content);
        }
        body.extend((list.len() as u16).to_be_bytes());
        body.extend(list);
        let mut message = vec![1, 0];
        message.extend((body.len() as u16).to_be_bytes());
        message.extend(body);
        let records = message.chunks(size).flat_map(|part| {
            let mut record = vec![22, 3, 1];
            record.extend((part.len() as u16).to_be_bytes());
            record.extend(part);
            record
        });
        records.collect()
    }

    fn named(names: &[&str]) -> (u16, Vec<u8>) {
        let mut list = Vec::new();
        for name in names {
            list.push(0);
            list.extend((name.len() as u16).to_be_bytes());
            list.extend(name.as_bytes());
        }
        let mut content = (list.len() as u16).to_be_bytes().to_vec();
        content.extend(list);
        (SERVER_NAME, content)
    }

    fn parsed(bytes: &[u8]) -> Option<ServerName> {
        match parse(bytes, 16 * 1024) {
            Parsed::Whole(name) => Some(name),
            Parsed::More | Parsed::Wrong => None,
        }
    }

    #[test]
    fn the_name_is_found_however_the_hello_is_cut() {
        let expected = Some(ServerName::Named("a.test".into()));
        for size in [1, 3, 7, 60, 4000] {
            let bytes = hello(&[(0x2b, vec![2, 3, 4]), named(&["a.test"])], size);
            assert_eq!(parsed(&bytes), expected, "{size}");
            for end in 0..bytes.len() {
                assert!(
                    matches!(parse(&bytes[..end], 16 * 1024), Parsed::More),
                    "{size} {end}"
                );
            }
        }
    }

    #[test]
    fn what_could_be_read_differently_is_refused() {
        let one = named(&["a.test"]);
        assert_eq!(
            parsed(&hello(&[one.clone(), named(&["b.test"])], 4000)),
            None
        );
        assert_eq!(parsed(&hello(&[named(&["a.test", "b.test"])], 4000)), None);
        assert_eq!(parsed(&hello(&[(0, vec![])], 4000)), None);
        assert_eq!(parsed(&hello(&[], 4000)), Some(ServerName::Absent));
        for kind in [ENCRYPTED_CLIENT_HELLO, ENCRYPTED_SERVER_NAME] {
            let bytes = hello(&[one.clone(), (kind, vec![0])], 4000);
            assert_eq!(parsed(&bytes), Some(ServerName::Encrypted));
        }
        let mut trailing = hello(std::slice::from_ref(&one), 4000);
        trailing.extend([22, 3, 1, 0, 1, 0]);
        // What follows in a record of its own is not part of the hello, and is passed on.
        assert!(parsed(&trailing).is_some());
        let mut longer = hello(&[one], 4000);
        longer[4] += 1;
        longer.push(0);
        assert_eq!(parsed(&longer), None);
        for bytes in [
            &b"GET / HTTP/1.1\r\n"[..],
            b"SSH-2.0-x\r\n",
            &[22, 3, 1, 0, 0],
            &[22, 3, 1, 255, 255],
            &[0x80, 0x2e, 1],
        ] {
            assert!(
                matches!(parse(bytes, 16 * 1024), Parsed::Wrong),
                "{bytes:?}"
            );
        }
    }

    #[test]
    fn a_hello_has_a_bound() {
        let large = hello(&[(0x15, vec![0; 20_000])], 4000);
        assert!(matches!(parse(&large, 16 * 1024), Parsed::Wrong));
    }

    /// An independent reference: what the parser accepts, rustls reads as the same name.
    #[test]
    fn rustls_reads_the_same_name() {
        for size in [5, 50, 4000] {
            let config = rustls::ClientConfig::builder_with_provider(
                rustls::crypto::ring::default_provider().into(),
            )
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(rustls::RootCertStore::empty())
            .with_no_client_auth();
            let name = "xn--bcher-kva.example".try_into().unwrap();
            let mut client = rustls::ClientConnection::new(config.into(), name).unwrap();
            let mut bytes = Vec::new();
            client.write_tls(&mut bytes).unwrap();
            assert_eq!(
                parsed(&bytes),
                Some(ServerName::Named("xn--bcher-kva.example".into()))
            );
            let message = bytes[5..].to_vec();
            let cut: Vec<u8> = message
                .chunks(size)
                .flat_map(|part| {
                    let mut record = vec![22, 3, 1];
                    record.extend((part.len() as u16).to_be_bytes());
                    record.extend(part);
                    record
                })
                .collect();
            let mut acceptor = rustls::server::Acceptor::default();
            let mut rest = &cut[..];
            let accepted = loop {
                assert!(acceptor.read_tls(&mut rest).unwrap() > 0);
                if let Some(accepted) = acceptor
                    .accept()
                    .unwrap_or_else(|(error, _)| panic!("{error}"))
                {
                    break accepted;
                }
            };
            let name = accepted.client_hello().server_name().map(str::to_owned);
            assert_eq!(parsed(&cut), name.map(ServerName::Named));
        }
    }
}
