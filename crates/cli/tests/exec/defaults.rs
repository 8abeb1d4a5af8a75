//! Limits that protect the host when nobody says anything, and how the owner lifts them.

use crate::{AVFS, exec, text};
use avfs_testkit::{Home, with_vault};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::process::Command;

/// The limits of a list, by name: their values and who said them.
fn by_name(limits: &Value) -> Vec<(String, Value, String)> {
    let word = |item: &Value, key: &str| item[key].as_str().unwrap().to_owned();
    let items = limits.as_array().unwrap().iter();
    items
        .map(|item| {
            (
                word(item, "limit"),
                item["value"].clone(),
                word(item, "source"),
            )
        })
        .collect()
}

fn sources(limits: &Value) -> Vec<(String, String)> {
    let limits = by_name(limits).into_iter();
    limits.map(|(limit, _, source)| (limit, source)).collect()
}

fn pairs(words: &[(&str, &str)]) -> Vec<(String, String)> {
    let own = |(limit, source): &(&str, &str)| ((*limit).to_owned(), (*source).to_owned());
    words.iter().map(own).collect()
}

const DEFAULTS: [(&str, &str); 4] = [
    ("memory", "default"),
    ("pids", "default"),
    ("nofile", "default"),
    ("disk_reserve", "default"),
];

#[test]
fn without_options_a_command_has_limits() {
    with_vault(AVFS, |home| {
        let result = exec(home, &["--shell", "ulimit -Hn; ulimit -Hu"]);
        assert_eq!(sources(&result["limits"]), pairs(&DEFAULTS), "{result:#}");
        let limits = by_name(&result["limits"]);
        let value = |index: usize| limits[index].1.as_f64().unwrap();
        assert_eq!(text(&result), format!("{}\n{}\n", value(2), value(1)));
        let total = std::fs::read_to_string("/proc/meminfo").unwrap();
        let total: f64 = total.split_whitespace().nth(1).unwrap().parse().unwrap();
        assert!(
            value(0) <= total * 1024.0 * 0.76,
            "{limits:?} of {total} KiB"
        );
        assert!(value(3) > 0.0 && value(3) <= f64::from(1 << 30));
        let info = home.json(&["vault", "info"]);
        assert_eq!(sources(&info["limits"]), pairs(&DEFAULTS), "{info:#}");
        for (index, (_, shown, _)) in by_name(&info["limits"]).iter().enumerate().take(3) {
            assert_eq!(*shown, limits[index].1);
        }
        let shown = home.ok(&["vault", "info"]);
        assert!(shown.contains("(default)"), "{shown}");
    });
}

#[test]
fn limits_say_who_set_them_and_the_owner_lifts_them() {
    with_vault(AVFS, |home| {
        home.ok(&["vault", "set", "memory=1g", "nofile=500"]);
        let result = exec(home, &["--pids", "50", "--", "true"]);
        let held = sources(&result["limits"]);
        for pair in pairs(&[
            ("memory", "vault"),
            ("pids", "request"),
            ("nofile", "vault"),
            ("disk_reserve", "default"),
        ]) {
            assert!(held.contains(&pair), "{pair:?}: {held:?}");
        }
        assert_eq!(held.len(), 4, "{held:?}");
        let all = "memory pids nofile disk";
        let lift: Vec<String> = all
            .split(' ')
            .map(|key| format!("{key}=unlimited"))
            .collect();
        let lift: Vec<&str> = lift.iter().map(String::as_str).collect();
        let said = home.json(&[&["vault", "set"], &lift[..]].concat());
        assert_eq!(said["settings"]["memory"], "unlimited");
        let result = exec(home, &["--shell", "ulimit -Hu"]);
        assert_eq!(result["limits"], json!([]), "{result:#}");
        let info = home.json(&["vault", "info"]);
        let shown = by_name(&info["limits"]);
        assert!(
            shown
                .iter()
                .all(|(_, value, by)| value.is_null() && by == "vault")
        );
        home.ok(&["vault", "unset", "memory", "pids", "nofile", "disk"]);
        let permissive = exec(home, &["--profile", "permissive", "--", "true"]);
        assert_eq!(
            sources(&permissive["limits"]),
            pairs(&[("nofile", "default")])
        );
    });
}

#[test]
fn an_agent_lifts_no_default() {
    with_vault(AVFS, |home| {
        for words in [
            &["--profile", "permissive"][..],
            &["--memory", "900000t"],
            &["--pids", "4000000000"],
        ] {
            let words = [&["--json", "exec"], words, &["--", "true"]].concat();
            let answer = home.command(&words).env("AVFS_CLASS", "agent").output();
            let answer: Value = serde_json::from_slice(&answer.unwrap().stdout).unwrap();
            assert_eq!(answer["error"], "Denied", "{words:?}: {answer:#}");
        }
    });
}

/// A small filesystem, unmounted at the end. Only root can have one.
struct Small(PathBuf);

impl Drop for Small {
    fn drop(&mut self) {
        // Lazily: a daemon that is about to end may still be in there.
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

#[test]
fn a_part_of_the_disk_is_left_to_others() {
    let home = Home::new(AVFS);
    if !home.is_root() {
        return;
    }
    let dir = home.avfs_home();
    std::fs::create_dir_all(&dir).unwrap();
    let options = ["-t", "tmpfs", "-o", "mode=700,size=200m", "tmpfs"];
    let mut mount = Command::new("mount");
    assert!(mount.args(options).arg(&dir).status().unwrap().success());
    let small = Small(dir);
    home.ok(&["vault", "create", "v"]);
    let fill = "for i in $(seq 200); do head -c 3000000 /dev/zero >> /big; sleep 0.03; done";
    let result = exec(&home, &["--shell", fill]);
    assert_eq!(result["limit_hit"]["limit"], "disk_reserve", "{result:#}");
    assert_eq!(result["status"], "limit_exceeded");
    // What is left was enough to keep what had been written.
    let size = home.json(&["stat", "/big"])["size"].as_u64().unwrap();
    assert!(size > 100_000_000, "{size}");
    drop(small);
}
