//! A proxy on loopback that lets nothing through, and says which hosts a program wanted to reach.

use std::collections::BTreeSet;
use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use base64ct::{Base64, Encoding};

use crate::runtime::lock;

const HEAD_MAX: u64 = 8 << 10;
const HOSTS_MAX: usize = 16;
/// For the head of a request to arrive.
const PATIENCE: Duration = Duration::from_secs(5);
const REFUSED: &[u8] = b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";

/// Until it is dropped.
pub(super) struct Recorder {
    at: SocketAddr,
    /// Other users of the host can connect too; only who knows this is believed.
    word: String,
    asked: Arc<Mutex<BTreeSet<String>>>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Recorder {
    pub fn start() -> io::Result<Recorder> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let at = listener.local_addr()?;
        let word = random_word()?;
        let expected = Base64::encode_string(format!("avfs:{word}").as_bytes());
        let (asked, stop) = (Arc::default(), Arc::new(AtomicBool::new(false)));
        let (noted, ends) = (Arc::clone(&asked), Arc::clone(&stop));
        let thread = std::thread::Builder::new().name("avfs-recorder".into());
        let thread = thread.spawn(move || {
            while let Ok((stream, _)) = listener.accept() {
                if ends.load(Ordering::Acquire) {
                    return;
                }
                // One after another: there is one program, and it is told to try once.
                let _ = refuse(stream, &expected, &noted);
            }
        })?;
        Ok(Recorder {
            at,
            word,
            asked,
            stop,
            thread: Some(thread),
        })
    }

    /// As programs are told of it.
    pub fn url(&self) -> String {
        format!("http://avfs:{}@{}", self.word, self.at)
    }

    /// The hosts with ports that were asked for until now.
    pub fn asked(&self) -> BTreeSet<String> {
        lock(&self.asked).clone()
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        let _ = TcpStream::connect(self.at);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// 128 random bits, in hexadecimal.
pub(super) fn random_word() -> io::Result<String> {
    let mut bytes = [0; 16];
    rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty())?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

fn refuse(mut stream: TcpStream, word: &str, asked: &Mutex<BTreeSet<String>>) -> io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") && (head.len() as u64) < HEAD_MAX {
        stream.read_exact(&mut byte)?;
        head.push(byte[0]);
    }
    let head = String::from_utf8_lossy(&head);
    let mut words = head.split_whitespace();
    let target = match (words.next(), words.next()) {
        (Some("CONNECT"), Some(target)) => Some(target),
        _ => None,
    };
    let knows = head.lines().any(|line| {
        let value = line
            .split_once(':')
            .filter(|(name, _)| name.eq_ignore_ascii_case("Proxy-Authorization"));
        value.is_some_and(|(_, value)| value.trim() == format!("Basic {word}"))
    });
    if let Some(target) = target.filter(|_| knows) {
        let mut asked = lock(asked);
        if asked.len() < HOSTS_MAX {
            asked.insert(target.to_owned());
        }
    }
    stream.write_all(REFUSED)?;
    stream.shutdown(Shutdown::Both)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn send(recorder: &Recorder, head: &str) -> String {
        let mut stream = TcpStream::connect(recorder.at).unwrap();
        stream.write_all(head.as_bytes()).unwrap();
        let mut answer = String::new();
        let _ = stream.read_to_string(&mut answer);
        answer
    }

    #[test]
    fn only_the_program_that_was_asked_is_believed() {
        let recorder = Recorder::start().unwrap();
        let word = Base64::encode_string(format!("avfs:{}", recorder.word).as_bytes());
        for (target, auth) in [
            ("evil.test:443", String::new()),
            (
                "evil2.test:443",
                "Proxy-Authorization: Basic bm9ib2R5\r\n".to_owned(),
            ),
            (
                "good.test:443",
                format!("Proxy-Authorization: Basic {word}\r\n"),
            ),
        ] {
            let answer = send(
                &recorder,
                &format!("CONNECT {target} HTTP/1.1\r\n{auth}\r\n"),
            );
            assert!(answer.starts_with("HTTP/1.1 403"), "{answer}");
        }
        let asked: Vec<String> = recorder.asked().into_iter().collect();
        assert_eq!(asked, ["good.test:443"]);
    }
}
