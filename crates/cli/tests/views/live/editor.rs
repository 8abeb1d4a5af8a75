//! An editor in a mount beside a loop of tests in `exec`: no write is lost, and every report is exact.
//!
//! `AVFS_EDITOR_SECONDS=60 cargo test -p agentvfs-cli --test views editor` is the whole.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use avfs_testkit::{SOON, number, skip, wait_for};

use super::beside::shared_scenes;
use super::mounts::{Scene, text};

const SECONDS: u64 = 4;

/// Saves by rename, also in /tmp, and then notes outside of the mount what was saved.
const EDIT: &str = "set nocompatible backupcopy=no writebackup nobackup noswapfile backupskip=
let n = 0
while !filereadable($STOP)
  let n += 1
  call append('$', 'line ' . n)
  silent write!
  call writefile([n], $SAVED . '.new')
  call rename($SAVED . '.new', $SAVED)
  sleep 2m
endwhile
qall!
";

/// Reads what the editor saved, writes results, and scans the files before and after.
const TEST: &str = r#"
set -e
scan() { find /project -type f -exec sha256sum {} + 2>/dev/null | sort; }
scan > /tmp/before || true
tries=0
# The editor may be in the middle of its next save.
until [ "$(wc -l < /project/doc.txt 2>/dev/null || echo 0)" -gt "$SAVED" ]; do
  tries=$((tries + 1)); [ $tries -lt 2000 ] || { echo "line $SAVED is not seen" >&2; exit 9; }
done
mkdir -p /project/runs; echo "$ROUND" > "/project/runs/$ROUND"; echo "$ROUND" >> /project/results
rm -f "/project/runs/$((ROUND - 1))"
scan > /tmp/after || true
comm -3 /tmp/before /tmp/after | awk '{print $2}' | sort -u
"#;

/// Whether a path is the editor's: the document, its backup, and the name by which vim tries the directory.
fn is_of_editor(path: &str) -> bool {
    let name = path.strip_prefix("/project/").unwrap_or_default();
    name.starts_with("doc.txt") || (!name.is_empty() && name.bytes().all(|it| it.is_ascii_digit()))
}

fn saved(at: &Path) -> u64 {
    let text = std::fs::read_to_string(at).unwrap_or_default();
    text.trim().parse().unwrap_or(0)
}

#[test]
fn an_editor_and_a_loop_of_tests_lose_nothing() {
    let seconds = number("AVFS_EDITOR_SECONDS", SECONDS);
    for scene in shared_scenes() {
        if scene
            .home
            .host_command("vim")
            .arg("--version")
            .output()
            .is_err()
        {
            skip("an editor beside commands, because vim is not installed");
            return;
        }
        side_by_side(&scene, Duration::from_secs(seconds));
    }
}

fn side_by_side(scene: &Scene, length: Duration) {
    let home = &scene.home;
    scene.mount();
    scene.host("mkdir $M/project; echo title > $M/project/doc.txt; chmod 777 $M/..");
    let [script, stop, note] = ["edit.vim", "stop", "saved"].map(|name| home.path().join(name));
    std::fs::write(&script, EDIT).unwrap();
    let mut editor = home.host_command("vim");
    let editor = editor.args(["-u", "NONE", "-es", "-S", text(&script)]);
    let editor = editor.arg(scene.dir().join("project/doc.txt"));
    let editor = editor.env("STOP", &stop).env("SAVED", &note);
    let mut editor = editor.stdin(Stdio::null()).spawn().expect("vim runs");
    let inode = || scene.host("stat -c %i $M/project/doc.txt 2>/dev/null || true");
    let first = inode();
    assert!(wait_for(SOON, || saved(&note) >= 3), "{scene}");
    assert!(
        wait_for(SOON, || inode() != first),
        "{scene}: it saves by rename"
    );
    let until = Instant::now() + length;
    let mut rounds = 0;
    while Instant::now() < until || rounds < 3 {
        rounds += 1;
        run_tests(scene, rounds, saved(&note));
    }
    std::fs::write(&stop, "").unwrap();
    assert!(editor.wait().expect("it ends").success(), "{scene}");
    let edits = saved(&note);
    let whole: String = (1..=edits).map(|n| format!("line {n}\n")).collect();
    let results: String = (1..=rounds).map(|n| format!("{n}\n")).collect();
    let check = |document: String, found: String| {
        assert!(
            document == format!("title\n{whole}"),
            "{scene}: an edit is lost"
        );
        assert_eq!(found, results, "{scene}");
    };
    check(
        scene.host("cat $M/project/doc.txt"),
        scene.host("cat $M/project/results"),
    );
    let seen = scene.host("cd $M/project; find . -type f -exec sha256sum {} + | sort");
    home.ok(&["unmount"]);
    check(
        home.ok(&["cat", "/project/doc.txt"]),
        home.ok(&["cat", "/project/results"]),
    );
    let stored = home.shell("cd /project; find . -type f -exec sha256sum {} + | sort");
    assert_eq!(stored["result"]["stdout"], seen, "{scene}");
    assert!(
        edits > rounds,
        "{scene}: {edits} edits beside {rounds} rounds"
    );
}

/// One round of tests; its report must be what a scan finds, and beyond that only the editor's.
fn run_tests(scene: &Scene, round: u64, saved: u64) {
    let (round_is, saved_is) = (format!("ROUND={round}"), format!("SAVED={saved}"));
    let words = [
        "exec", "--env", &round_is, "--env", &saved_is, "--shell", TEST,
    ];
    let result = scene.home.json(&words)["result"].clone();
    assert_eq!(result["exit_code"], 0, "{scene}: {result}");
    assert_eq!(
        result["shared_with"],
        serde_json::json!(["mount"]),
        "{scene}"
    );
    let reported = result["changed_files"].as_array().expect("a list").iter();
    let reported: BTreeSet<&str> = reported.map(|path| path.as_str().unwrap()).collect();
    let scanned: BTreeSet<&str> = result["stdout"].as_str().unwrap().lines().collect();
    let of_command = |paths: &BTreeSet<&str>| -> BTreeSet<String> {
        let own = paths.iter().filter(|path| !is_of_editor(path));
        own.map(|path| (*path).to_owned()).collect()
    };
    let mut expected = of_command(&scanned);
    if round == 1 {
        // A directory has no content to scan.
        expected.insert("/project/runs".to_owned());
    }
    assert_eq!(of_command(&reported), expected, "{scene}: round {round}");
    assert!(expected.contains("/project/results"), "{scene}: {result}");
}
