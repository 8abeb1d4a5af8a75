//! The daemon as a service: the unit is written also where no systemd runs.

use crate::AVFS;
use avfs_testkit::{Home, wait_for};
use serde_json::Value;
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

/// A home whose user has no systemd, and a directory for settings.
fn service(home: &Home, words: &[&str]) -> (bool, Value) {
    let all = [&["--json", "service"], words].concat();
    let mut command = home.command(&all);
    command.env("XDG_CONFIG_HOME", config(home));
    let output = command.output().unwrap();
    let said = serde_json::from_slice(&output.stdout).unwrap_or(Value::Null);
    (output.status.success(), said)
}

fn config(home: &Home) -> PathBuf {
    home.path().join("con fig%h")
}

fn unit(home: &Home) -> PathBuf {
    config(home).join("systemd/user/agentvfs.service")
}

/// The words of a line of a unit, as systemd reads them.
fn words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut rest = line;
    while let Some(begun) = rest.strip_prefix('"') {
        let mut word = String::new();
        let mut symbols = begun.char_indices();
        let mut end = 0;
        while let Some((at, symbol)) = symbols.next() {
            match symbol {
                '"' => {
                    end = at;
                    break;
                }
                '\\' | '%' | '$' => word.extend(symbols.next().map(|it| it.1)),
                symbol => word.push(symbol),
            }
        }
        words.push(word);
        rest = begun[end + 1..].trim_start();
    }
    words
}

#[test]
fn a_unit_is_written_started_by_hand_and_removed() {
    let home = Home::new(AVFS);
    let before = service(&home, &["status"]).1;
    assert_eq!(before["installed"], false, "{before}");
    let name = "A \"B\" $C %h";
    let (done, said) = service(&home, &["install", "--log-requests", "--git-name", name]);
    assert!(done, "{said}");
    assert_eq!(said["installed"], true);
    assert_eq!(said["active"], Value::Null, "no systemd can be asked");
    assert_eq!(said["run"][0], "systemctl --user daemon-reload", "{said}");
    assert_eq!(
        said["run"][1],
        "systemctl --user enable --now agentvfs.service"
    );
    assert_eq!(said["path"], unit(&home).to_str().unwrap());
    let text = fs::read_to_string(unit(&home)).unwrap();
    let line = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name));
        words(line.unwrap())
    };
    let start = line("ExecStart=");
    assert_eq!(start[start.len() - 2..], [name, "--log-requests"]);
    let environment = line("Environment=");
    let named = format!("AVFS_HOME={}", home.avfs_home().display());
    assert_eq!(environment, std::slice::from_ref(&named));
    // What the unit says is a daemon that serves this home.
    let mut daemon = Command::new(&start[0]);
    daemon.args(&start[1..]).env_clear();
    for (name, value) in home.command(&[""; 0]).get_envs() {
        daemon.env(name, value.unwrap_or_default());
    }
    let (name, value) = named.split_once('=').unwrap();
    let mut daemon = daemon
        .env(name, value)
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let pid = u64::from(daemon.id());
    assert!(wait_for(Duration::from_secs(60), || {
        let status = home.avfs(&["--json", "daemon", "status"]);
        let status: Value = serde_json::from_slice(&status.stdout).unwrap_or_default();
        status["pid"] == pid
    }));
    let status = home.json(&["daemon", "status"]);
    assert_eq!(status["idle_timeout_s"], Value::Null, "{status}");
    home.ok(&["daemon", "stop"]);
    assert!(daemon.wait().unwrap().success());
    let (done, said) = service(&home, &["remove"]);
    assert!(done, "{said}");
    assert_eq!(said["installed"], false);
    assert!(!unit(&home).exists());
}

#[test]
fn a_service_that_could_not_serve_or_is_anothers_is_refused() {
    let home = Home::new(AVFS);
    let open = service(&home, &["install", "--listen", "0.0.0.0:7070"]);
    assert_eq!((open.0, &open.1["error"]), (false, &"Denied".into()));
    assert!(!unit(&home).exists());
    fs::create_dir_all(unit(&home).parent().unwrap()).unwrap();
    fs::write(unit(&home), "[Service]\nExecStart=/bin/true\n").unwrap();
    for words in [&["install"][..], &["remove"]] {
        let (done, said) = service(&home, words);
        assert_eq!((done, &said["error"]), (false, &"Invalid".into()), "{said}");
    }
    let kept = fs::read_to_string(unit(&home)).unwrap();
    assert!(kept.contains("/bin/true"), "{kept}");
}
