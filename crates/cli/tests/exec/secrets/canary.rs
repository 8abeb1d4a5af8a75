//! A canary is set and used. Its host receives it, and a scan of everything else finds it nowhere.

use super::servers::Server;
use super::{CANARY, run, set};
use crate::{AVFS, text};
use avfs_testkit::{Home, processes_below, with_vault};
use base64ct::{Base64Unpadded, Encoding};
use std::fs;
use std::path::Path;

/// Prints the environments and arguments of all processes that a command sees. In a file, so that the boundary and not the policy has
/// to hold.
const LOOK: &str = "\
import glob
for path in glob.glob('/proc/*/environ') + glob.glob('/proc/*/cmdline'):
    try:
        print(path, open(path, 'rb').read())
    except OSError:
        pass
";

/// Asserts that no file below has the canary, plainly or in base64.
fn scan(directory: &Path) {
    let needles = [
        CANARY.as_bytes().to_vec(),
        Base64Unpadded::encode_string(CANARY.as_bytes())[..24].into(),
    ];
    let mut waiting = vec![directory.to_owned()];
    let mut files = 0;
    while let Some(directory) = waiting.pop() {
        for item in fs::read_dir(&directory).unwrap() {
            let item = item.unwrap();
            let kind = item.file_type().unwrap();
            if kind.is_dir() {
                waiting.push(item.path());
            } else if kind.is_file() {
                let bytes = fs::read(item.path()).unwrap();
                files += 1;
                for needle in &needles {
                    let found = bytes.windows(needle.len()).any(|part| part == needle);
                    assert!(!found, "{} has it", item.path().display());
                }
            }
        }
    }
    assert!(files > 0, "nothing in {}", directory.display());
}

/// Asserts that no process of the daemon has it among its arguments or in its environment, and that none dumps its memory.
fn look_at_processes(home: &Home) {
    let daemon = home.daemon_pid().unwrap();
    let mut all = processes_below(daemon);
    all.insert(daemon);
    assert!(all.len() > 1, "a keeper and a sandbox run");
    for pid in all {
        for file in ["cmdline", "environ"] {
            // What another user's process hides is read where the tests run as root.
            let read = fs::read(format!("/proc/{pid}/{file}")).unwrap_or_default();
            let read = String::from_utf8_lossy(&read);
            assert!(!read.contains(CANARY), "{pid} {file}: {read}");
        }
    }
    let limits = fs::read_to_string(format!("/proc/{daemon}/limits")).unwrap();
    let core = limits
        .lines()
        .find(|line| line.starts_with("Max core file size"));
    let core: Vec<&str> = core.unwrap().split_whitespace().collect();
    assert!(["0", "1"].contains(&core[4]), "{core:?}");
}

fn scan_everything(home: &Home) {
    look_at_processes(home);
    let out = home.path().join("exported");
    home.ok(&["export", "/", out.to_str().unwrap()]);
    let journal = home.ok(&["--json", "audit", "--limit", "1000"]);
    assert!(journal.contains("secret.set") && !journal.contains(CANARY));
    for words in [&["secret", "list"][..], &["--json", "secret", "list"]] {
        assert!(!home.ok(words).contains("canary-"), "{words:?}");
    }
    home.ok(&["daemon", "stop"]);
    // The home with its journal, logs, spills and jobs, the runtime directory, the user's configuration, the export.
    scan(home.path());
}

/// Plain HTTP, which the owner allowed, so that every user can run the server.
#[test]
fn a_canary_reaches_its_host_and_is_found_nowhere_else() {
    with_vault(AVFS, |home| {
        let server = Server::plain("127.0.0.1:0");
        let host = server.address.to_string();
        let answer = set(home, &["CANARY", "--host", &host, "--allow-plain-http"]);
        assert_eq!(answer["header"], "Authorization: Bearer {}");
        assert_eq!(answer["opened"].as_array().unwrap().len(), 0);
        home.ok(&["network", "set", &host]);
        home.ok(&["write", "/look.py", LOOK]);
        let placeholder = "avfs-secret-CANARY";
        let quiet = format!(
            "env; python3 /look.py; \
             curl -sS -H \"Authorization: token $CANARY\" {}",
            server.url("/quiet")
        );
        let result = run(home, &quiet);
        assert_eq!(result["exit_code"], 0, "{result}");
        assert!(text(&result).contains(&format!("CANARY={placeholder}")));
        assert_eq!(result["masked"], 0, "{result}");
        let heads = server.heads().join("\n").to_lowercase();
        let sent = format!("authorization: bearer {}", CANARY.to_lowercase());
        assert!(
            heads.contains(&sent) && !heads.contains(placeholder),
            "{heads}"
        );
        // A host that repeats what it received: masked in all that is captured, streamed and kept.
        let echo = format!("curl -sS {} | tee /dev/stderr", server.url("/echo"));
        let result = run(home, &echo);
        let stars = "*".repeat(CANARY.len());
        assert!(
            text(&result).contains(&format!("Bearer {stars}\r\n")),
            "{result}"
        );
        assert_eq!(result["masked"], 2, "one in each stream: {result}");
        let streamed = home.avfs(&[
            "exec",
            "--env=NO_PROXY=-",
            "--env=no_proxy=-",
            "--shell",
            &echo,
        ]);
        let streamed = [streamed.stdout, streamed.stderr].concat();
        let streamed = String::from_utf8_lossy(&streamed);
        assert!(
            streamed.contains(&stars) && !streamed.contains(CANARY),
            "{streamed}"
        );
        assert!(streamed.contains("2 secrets masked"), "{streamed}");
        // In pieces, beyond what a report keeps, and in a job's log.
        let pieces = format!(
            "seq 2000; v=$(curl -sS {} | grep -i ^authorization | tr -d '\\r'); printf %s \"${{v%Nowhere}}\"; printf Nowhere; seq 2000",
            server.url("/echo")
        );
        let words = [
            "exec",
            "--output-limit=64",
            "--env=NO_PROXY=-",
            "--env=no_proxy=-",
        ];
        let spilled = home.json(&[&words[..], &["--shell", &pieces]].concat());
        let exec = spilled["result"]["exec"].as_str().unwrap();
        let kept = home.ok(&["output", exec]);
        assert!(kept.contains(&stars) && !kept.contains(CANARY));
        let start = [
            "job",
            "start",
            "--env=NO_PROXY=-",
            "--env=no_proxy=-",
            "--shell",
            &pieces,
        ];
        let job = home.json(&start)["job_id"].to_string();
        home.json(&["job", "wait", &job]);
        let log = home.ok(&["job", "logs", &job]);
        assert!(log.contains(&stars) && !log.contains(CANARY), "{log}");
        scan_everything(home);
    });
}

/// TLS to a host that only root can be on the port of, for the daemons of root and of an ordinary user; `crates/net` has the
/// same in namespaces, for everybody.
#[test]
fn git_fetches_over_tls_that_is_opened_for_its_token() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let files = tempfile::tempdir().unwrap();
    let repository = files.path().join("repo.git");
    let script = format!(
        "git init -q -b main w && cd w && echo hello > f && git add f && \
         git -c user.name=a -c user.email=a@example.test commit -qm one && \
         git clone -q --bare . {0} && cd {0} && git update-server-info",
        repository.display()
    );
    let mut shell = std::process::Command::new("sh");
    let made = shell
        .args(["-c", &script])
        .current_dir(files.path())
        .status();
    assert!(made.unwrap().success());
    let (server, authority) = Server::secure("127.0.0.1:443", files.path().to_owned());
    let basic = format!("git:{CANARY}");
    let basic = base64ct::Base64::encode_string(basic.as_bytes());
    for home in Home::of_root_and_ordinary_user(AVFS) {
        let trusted = home.path().join("authority.pem");
        fs::write(&trusted, &authority).unwrap();
        let begun = home
            .command(&["vault", "create", "v"])
            .env("SSL_CERT_FILE", &trusted)
            .output();
        assert!(begun.unwrap().status.success());
        home.ok(&["network", "set", "localhost,127.0.0.1"]);
        // A sandbox that was there before the secret serves as well.
        let before = run(&home, "curl -sS https://localhost/echo");
        assert_ne!(
            before["exit_code"], 0,
            "its authority is not trusted inside: {before}"
        );
        let answer = set(&home, &["TOKEN", "--host", "localhost", "--basic", "git"]);
        assert_eq!(answer["opened"][0], "localhost");
        let already = server.heads().len();
        let script = "git clone -q https://localhost/repo.git /c && cat /c/f && git -C /c fetch && \
            curl -sS https://localhost/echo && \
            python3 -c 'import urllib.request as u; print(u.urlopen(\"https://localhost/repo.git/HEAD\").read())'";
        let result = run(&home, script);
        assert_eq!(result["exit_code"], 0, "{result}");
        assert!(text(&result).starts_with("hello\n"), "{result}");
        assert!(result["masked"].as_u64() > Some(0) && !result.to_string().contains(&basic));
        let heads = server.heads()[already..].to_vec();
        assert!(heads.len() > 4, "{heads:?}");
        let carries = |head: &String| head.contains(&basic);
        assert!(heads.iter().all(carries), "{heads:?}");
        home.ok(&["secret", "rm", "TOKEN"]);
        let after = run(&home, "curl -sS https://localhost/echo");
        assert_ne!(after["exit_code"], 0, "it is not opened any more: {after}");
        scan_everything(&home);
    }
}
