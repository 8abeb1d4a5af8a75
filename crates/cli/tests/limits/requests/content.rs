//! Content in and out: read and written by whoever asks, never by the daemon from the host, and never held as a whole.

use super::{as_agent, ask, head, most_memory};
use crate::AVFS;
use avfs_testkit::{Home, connect};
use serde_json::json;
use std::fs;
use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::fs::PermissionsExt;

/// More than the daemon may have in all.
const LARGE: usize = 200 << 20;

#[test]
fn an_agent_cannot_have_the_daemon_read_the_host() {
    for home in Home::of_every_user_with_vault(AVFS) {
        let secret = home.path().join("user/secret");
        fs::write(&secret, "hidden").unwrap();
        let socket = home.socket();
        for field in ["host_file", "host_dir", "from_file"] {
            let request = json!({ "path": "/x", field: secret.to_str().unwrap() }).to_string();
            let address = "/v1/vaults/v/files/write";
            let answer = ask(&socket, "POST", address, request.as_bytes());
            assert!(answer.starts_with("HTTP/1.1 422"), "{field}: {answer}");
            assert!(answer.contains("unknown field"), "{field}: {answer}");
        }
        let there = as_agent(&home, &["cat", "/x"]);
        assert!(!there.status.success(), "nothing was written");
    }
}

#[test]
fn a_file_of_the_caller_is_sent_by_the_caller() {
    for home in Home::of_every_user_with_vault(AVFS) {
        let bytes: Vec<u8> = (0..3_000_000_u32).map(|n| (n % 251) as u8).collect();
        let file = home.path().join("user/mine");
        fs::write(&file, &bytes).unwrap();
        let file = file.to_str().unwrap();
        let written = as_agent(&home, &["write", "-p", "/a/b", "--from-file", file]);
        assert!(written.status.success(), "{written:?}");
        assert_eq!(as_agent(&home, &["cat", "/a/b"]).stdout, bytes);
        let again = as_agent(&home, &["write", "/a/b", "--from-file", file, "--append"]);
        assert!(again.status.success(), "{again:?}");
        let part = as_agent(
            &home,
            &["cat", "/a/b", "--offset", "2999999", "--limit", "2"],
        );
        assert_eq!(part.stdout, [bytes[2_999_999], bytes[0]]);
        // Standard input of any length, too, and into /tmp.
        let mut from = home.command(&["write", "/tmp/c"]);
        from.stdin(fs::File::open(file).unwrap());
        assert!(from.status().unwrap().success());
        assert_eq!(as_agent(&home, &["cat", "/tmp/c"]).stdout, bytes);
    }
}

#[test]
fn what_breaks_off_is_not_written() {
    for home in Home::of_every_user_with_vault(AVFS) {
        let socket = home.socket();
        home.ok(&["write", "/x", "before"]);
        let version = home.json(&["vault", "info"])["version"].clone();
        let address = "/v1/vaults/v/files/content?path=/x";
        let part = vec![b'a'; 100_000];
        for framing in ["content-length: 1000000", "transfer-encoding: chunked"] {
            let mut stream = connect(&socket);
            let head = head("PUT", address, framing);
            stream.write_all(head.as_bytes()).unwrap();
            if framing.starts_with("transfer") {
                stream.write_all(b"186a0\r\n").unwrap();
            }
            stream.write_all(&part).unwrap();
            stream.shutdown(Shutdown::Write).unwrap();
            let mut answer = String::new();
            // It ends when the daemon is done with it.
            let _ = stream.read_to_string(&mut answer);
            assert!(!answer.starts_with("HTTP/1.1 2"), "{framing}: {answer}");
            home.ok(&["write", "/y", framing]);
            assert_eq!(home.ok(&["cat", "/x"]), "before", "{framing}");
        }
        let log = home.json(&["vault", "log"]);
        assert_eq!(
            log[0]["version"].as_u64(),
            version.as_u64().map(|it| it + 2),
            "only /y was written"
        );
    }
}

#[test]
fn large_content_passes_through_a_small_daemon() {
    for home in Home::of_every_user_with_vault(AVFS) {
        home.ok(&[
            "proxy",
            "exec",
            "--shell",
            &format!("truncate -s {LARGE} /sparse"),
        ]);
        let socket = home.socket();
        // Read by somebody quick, and by some who do not read at all.
        let address = "/v1/vaults/v/files/content?path=/sparse";
        let stuck: Vec<_> = (0..4)
            .map(|_| {
                let mut stream = connect(&socket);
                stream
                    .write_all(head("GET", address, "x: y").as_bytes())
                    .unwrap();
                stream
            })
            .collect();
        let mut stream = connect(&socket);
        let request = head("GET", address, "connection: close");
        stream.write_all(request.as_bytes()).unwrap();
        let mut read = 0;
        let mut piece = vec![0; 1 << 20];
        loop {
            match stream.read(&mut piece).unwrap() {
                0 => break,
                size => read += size,
            }
        }
        assert!(read > LARGE, "{read}");
        drop(stuck);
        let json = home.json(&["cat", "/sparse"]);
        assert_eq!(
            (json["more"].clone(), json["size"].clone()),
            (json!(true), json!(LARGE))
        );
        assert_eq!(json["content"].as_str().unwrap().len(), 1 << 20);
        assert!(
            json["hint"].as_str().unwrap().contains("1048576"),
            "{}",
            json["hint"]
        );
        let most = most_memory(&home);
        assert!(most < 150, "{most} MiB as {}", home.user());
    }
}

#[test]
fn a_stream_is_cut_off_by_the_quota() {
    for home in Home::of_every_user_with_vault(AVFS) {
        home.ok(&["quota", "set", "max_size_mb", "1"]);
        let socket = home.socket();
        let body = vec![b'x'; 3 << 20];
        for path in ["/big", "/tmp/big"] {
            let address = format!("/v1/vaults/v/files/content?path={path}");
            let answer = ask(&socket, "PUT", &address, &body);
            assert!(answer.starts_with("HTTP/1.1 507"), "{path}: {answer}");
        }
        let fits = ask(
            &socket,
            "PUT",
            "/v1/vaults/v/files/content?path=/fits",
            &body[..1 << 19],
        );
        assert!(fits.starts_with("HTTP/1.1 200"), "{fits}");
    }
}

#[test]
fn whoever_is_refused_reads_why_however_much_is_being_sent() {
    for home in Home::of_every_user_with_vault(AVFS) {
        home.ok(&["quota", "set", "max_size_mb", "1"]);
        let large = home.path().join("large");
        fs::write(&large, vec![b'x'; 24 << 20]).expect("a file of the host");
        let mode = fs::Permissions::from_mode(0o644);
        fs::set_permissions(&large, mode).expect("its mode");
        let large = large.to_str().expect("text");
        for _ in 0..10 {
            let refused = home.json(&["write", "/big", "--from-file", large]);
            assert_eq!(refused["error"], "Quota", "{refused}");
            let refused = home.json(&["--vault", "none", "write", "/big", "--from-file", large]);
            assert_eq!(refused["error"], "NotFound", "{refused}");
        }
        // A client that reads nothing before it has sent everything.
        let body = vec![b'x'; 24 << 20];
        let length = format!("content-length: {}", body.len());
        for (address, status) in [
            ("/v1/vaults/v/files/content?path=/big", "507"),
            ("/v1/vaults/none/files/content?path=/big", "404"),
            ("/v1/vaults/v/files/content", "400"),
            ("/v1/vaults/v/archive?path=/", "4"),
        ] {
            let mut stream = connect(&home.socket());
            let head = head("PUT", address, &length);
            stream
                .write_all(head.as_bytes())
                .expect("the head is taken");
            stream.write_all(&body).expect("the body is taken");
            let mut answer = [0; 12];
            stream.read_exact(&mut answer).expect("an answer");
            let answer = String::from_utf8_lossy(&answer);
            assert!(
                answer.starts_with(&format!("HTTP/1.1 {status}")),
                "{address}: {answer}"
            );
        }
    }
}
