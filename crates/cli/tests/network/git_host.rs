//! A code host: `git http-backend` behind TLS, which lets nobody push without a password.

use crate::servers::{Seen, certificate, each_connection, listen, read_head};
use base64ct::{Base64, Encoding};
use rustls::{ServerConnection, StreamOwned};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::{env, fs};

/// A host with one repository, `/org/repo.git`. It ends with the test program.
pub struct GitHost {
    pub port: u16,
    /// The certificate to trust, as PEM.
    pub trusted: String,
    /// Each request with its Authorization header.
    pub seen: Seen,
    files: tempfile::TempDir,
}

impl GitHost {
    /// Pushing takes this password of the user `git`.
    pub fn start(password: &str) -> GitHost {
        let files = tempfile::tempdir().expect("a directory");
        shell(
            files.path(),
            "git init -q -b main w && echo hello > w/f && cd w && git add f && \
             git -c user.name=a -c user.email=a@example.test commit -qm one && \
             git clone -q --bare . ../org/repo.git && \
             git -C ../org/repo.git config http.receivepack true",
        );
        let (trusted, tls) = certificate();
        let (listener, port) = listen();
        let host = GitHost {
            port,
            trusted,
            seen: Seen::default(),
            files,
        };
        let word = Base64::encode_string(format!("git:{password}").as_bytes());
        let (seen, root) = (host.seen.clone(), host.files.path().to_owned());
        each_connection(listener, move |stream| {
            let server = ServerConnection::new(Arc::clone(&tls)).map_err(io::Error::other)?;
            answer(StreamOwned::new(server, stream), &seen, &root, &word)
        });
        host
    }

    /// What its branch has, the newest first.
    pub fn log(&self) -> String {
        shell(
            self.files.path(),
            "git -C org/repo.git log --format=%s main",
        )
    }
}

/// Runs a script; gives what it prints.
fn shell(place: &Path, script: &str) -> String {
    let output = Command::new("sh")
        .args(["-c", script])
        .current_dir(place)
        .output()
        .expect("a shell");
    assert!(output.status.success(), "{script}: {output:?}");
    String::from_utf8(output.stdout).expect("text")
}

/// Answers one request, and closes.
fn answer(mut stream: impl Read + Write, seen: &Seen, root: &Path, word: &str) -> io::Result<()> {
    let head = read_head(&mut stream)?;
    let mut words = head.split_whitespace();
    let mut word_of = || words.next().unwrap_or_default();
    let (method, uri) = (word_of(), word_of());
    let header = |name: &str| {
        let mut lines = head.lines().filter_map(|line| line.split_once(':'));
        let found = lines.find(|(key, _)| key.eq_ignore_ascii_case(name));
        found.map_or("", |(_, value)| value.trim())
    };
    seen.note(format!("{method} {uri} {}", header("authorization")));
    let body = match header("transfer-encoding").is_empty() {
        true => {
            let length: usize = header("content-length").parse().unwrap_or(0);
            let mut body = vec![0; length];
            stream.read_exact(&mut body)?;
            body
        }
        false => chunks(&mut stream)?,
    };
    let (path, query) = uri.split_once('?').unwrap_or((uri, ""));
    let pushes = path.ends_with("git-receive-pack") || query.ends_with("git-receive-pack");
    if pushes && !header("authorization").ends_with(word) {
        return stream.write_all(
            b"HTTP/1.1 401 Who Are You\r\nWWW-Authenticate: Basic realm=\"code\"\r\n\
              Content-Length: 0\r\nConnection: close\r\n\r\n",
        );
    }
    let mut backend = Command::new(backend());
    backend
        .env_clear()
        .env("PATH", env::var_os("PATH").unwrap_or_default())
        .env("GIT_PROJECT_ROOT", root)
        .env("GIT_HTTP_EXPORT_ALL", "1")
        // The files are those of whoever runs the tests.
        .env("GIT_CONFIG_COUNT", "1")
        .env("GIT_CONFIG_KEY_0", "safe.directory")
        .env("GIT_CONFIG_VALUE_0", "*")
        .env("REMOTE_USER", "git")
        .env("REQUEST_METHOD", method)
        .env("PATH_INFO", path)
        .env("QUERY_STRING", query)
        .env("CONTENT_TYPE", header("content-type"))
        .env("HTTP_CONTENT_ENCODING", header("content-encoding"))
        .env("GIT_PROTOCOL", header("git-protocol"))
        .env("CONTENT_LENGTH", body.len().to_string());
    let mut running = backend
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    if let Some(mut stdin) = running.stdin.take() {
        stdin.write_all(&body)?;
    }
    let output = running.wait_with_output()?.stdout;
    let split = output.windows(4).position(|part| part == b"\r\n\r\n");
    let (headers, content) = output.split_at(split.unwrap_or(0));
    let headers = String::from_utf8_lossy(headers);
    let status = headers
        .lines()
        .find_map(|line| line.strip_prefix("Status: "))
        .unwrap_or("200 OK");
    let content = content.get(4..).unwrap_or_default();
    let length = content.len();
    write!(
        stream,
        "HTTP/1.1 {status}\r\n{headers}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
    )?;
    stream.write_all(content)?;
    stream.flush()
}

/// A body in chunks.
fn chunks(stream: &mut impl Read) -> io::Result<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let mut line = Vec::new();
        while !line.ends_with(b"\r\n") {
            let mut byte = [0];
            stream.read_exact(&mut byte)?;
            line.push(byte[0]);
        }
        let text = String::from_utf8_lossy(&line);
        let length = usize::from_str_radix(text.trim(), 16).map_err(io::Error::other)?;
        let mut chunk = vec![0; length + 2];
        stream.read_exact(&mut chunk)?;
        if length == 0 {
            return Ok(body);
        }
        body.extend_from_slice(&chunk[..length]);
    }
}

/// Where this host has the program.
fn backend() -> PathBuf {
    let output = Command::new("git").arg("--exec-path").output();
    let path = output.expect("git").stdout;
    let path = String::from_utf8(path).expect("text");
    let backend = Path::new(path.trim()).join("git-http-backend");
    assert!(fs::exists(&backend).unwrap_or(false), "{backend:?}");
    backend
}
