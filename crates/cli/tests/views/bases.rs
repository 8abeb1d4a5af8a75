//! A view that stands on a root which is shown already, with what differs in its layer from the start, shows
//! exactly what one on a root of its own shows; and whoever is killed on the way there leaves nothing behind.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use avfs_testkit::{Home, process_ends};
use serde_json::Value;

use crate::AVFS;
const FILES: usize = 1_600;
const ROUNDS: usize = 8;
/// More than is put into a layer.
const LARGE: usize = 9 << 20;
const KILLS: u64 = 12;

/// A vault of many files, with a few that storms rage among, in which a command has looked around.
fn vault_in_use(home: &Home) {
    let source = home.path().join("source");
    for number in 0..FILES {
        let directory = source.join(format!("d{:02}", number / 30));
        fs::create_dir_all(&directory).expect("own directory");
        fs::write(directory.join(format!("f{number}")), format!("{number}\n")).expect("own file");
    }
    fs::create_dir_all(source.join("storms/deep")).expect("own directory");
    home.ok(&["vault", "create", "parent"]);
    home.ok(&["import", source.to_str().expect("text"), "/workspace"]);
    home.ok(&["write", "/storm.py", include_str!("../scripts/storm.py")]);
    home.ok(&["write", "/scan.py", include_str!("../scripts/scan.py")]);
    scan(home, "parent");
}

fn run(home: &Home, vault: &str, words: &[&str]) -> Value {
    let words = [&["--vault", vault, "proxy", "exec", "--"], words].concat();
    let envelope = home.json(&words);
    assert_eq!(envelope["result"]["exit_code"], 0, "{envelope:#}");
    envelope["result"].clone()
}

/// Everything in the vault: modes, times, targets, attributes, contents.
fn scan(home: &Home, vault: &str) -> Value {
    let ran = run(home, vault, &["python3", "/scan.py", "/workspace", "--all"]);
    assert_eq!(
        ran["changed_files"],
        serde_json::json!([]),
        "looking is all"
    );
    serde_json::from_str(ran["stdout"].as_str().expect("text")).expect("the scan prints JSON")
}

/// How many names each file has.
fn names_of_files(home: &Home, vault: &str) -> Value {
    let text = "find /workspace -type f -printf '%n %p\\n' | sort";
    run(home, vault, &["sh", "-c", text])["stdout"].clone()
}

/// The layers in use by the vault.
fn layers(home: &Home, vault: &str) -> Vec<PathBuf> {
    let id = home.json(&["vault", "info", vault])["id"].clone();
    let id = id.as_str().expect("text");
    let layers = fs::read_dir(home.avfs_home().join("layers").join(id));
    let layers = layers.into_iter().flatten().flatten();
    let layers = layers.map(|layer| layer.path());
    layers
        .filter(|layer| layer.join("record").exists())
        .collect()
}

/// What the vault's view stands on; none when it has no view.
fn ground(home: &Home, vault: &str) -> Option<String> {
    let layer = layers(home, vault).pop()?;
    let record = fs::read(layer.join("record")).expect("it was there");
    Some(String::from_utf8_lossy(&record[1..65]).into_owned())
}

fn identical(home: &Home, one: &str, other: &str) -> bool {
    let (one, other) = (format!("vault:{one}"), format!("vault:{other}"));
    home.json(&["diff", &one, &other])["identical"] == true
}

#[test]
fn a_fork_of_a_vault_in_use_stands_where_its_parent_stands() {
    for home in Home::of_every_user(AVFS) {
        vault_in_use(&home);
        let text = "cd /workspace; echo more >> d00/f1; rm d01/f30; rm -r storms; mkdir -p n/m; echo x > n/m/x; \
                    ln -s x n/link; mv d03/f90 d04; chmod 711 d05; chmod 000 d06/f180";
        let done = home.json(&["--vault", "parent", "exec", "--shell", text]);
        assert_eq!(done["result"]["exit_code"], 0, "{done:#}");
        home.ok(&["vault", "fork", "parent", "fork"]);
        assert_eq!(scan(&home, "fork"), scan(&home, "parent"));
        let shared = ground(&home, "parent");
        assert!(shared.is_some() && ground(&home, "fork") == shared);
        home.ok(&["vault", "fork", "fork", "fork-of-it"]);
        assert_eq!(scan(&home, "fork-of-it"), scan(&home, "parent"));
        assert!(ground(&home, "fork-of-it") == shared, "as {}", home.user());
    }
}

#[test]
fn forks_amid_storms_show_what_their_parents_show() {
    for home in Home::of_every_user(AVFS) {
        vault_in_use(&home);
        let mut shared = 0;
        for round in 0..ROUNDS {
            let (vault, fork) = (format!("vault-{round}"), format!("fork-{round}"));
            home.ok(&["vault", "fork", "parent", &vault]);
            scan(&home, &vault);
            let seed = round.to_string();
            let storm = ["python3", "/storm.py", "/workspace/storms", &seed, "3"];
            run(&home, &vault, &storm);
            home.ok(&["vault", "fork", &vault, &fork]);
            let (seen, expected) = (scan(&home, &fork), scan(&home, &vault));
            assert_eq!(seen, expected, "round {round} as {}", home.user());
            assert!(identical(&home, &vault, &fork), "round {round}");
            shared += usize::from(ground(&home, &fork) == ground(&home, &vault));
            check_changes(&home, &fork);
        }
        // With hard links among what differs it is not done.
        println!("as {}: {shared} of {ROUNDS} shared a ground", home.user());
    }
}

/// Whatever is done in the view is reported as it is, and what verbs do is seen there.
fn check_changes(home: &Home, vault: &str) {
    let text = "echo more >> /workspace/d00/f1; rm /workspace/d01/f30; touch /workspace/new";
    let done = home.json(&["--vault", vault, "proxy", "exec", "--shell", text]);
    assert_eq!(
        done["result"]["changed_files"],
        serde_json::json!(["/workspace/d00/f1", "/workspace/d01/f30", "/workspace/new"]),
        "{done:#}"
    );
    let before = scan(home, vault);
    home.ok(&["--vault", vault, "write", "/workspace/d02/f60", "by a verb"]);
    home.ok(&["--vault", vault, "rm", "-r", "/workspace/storms"]);
    let mut expected = before.as_object().expect("an object").clone();
    expected.retain(|path, _| !path.starts_with("/workspace/storms"));
    let after = scan(home, vault);
    let after = after.as_object().expect("an object");
    assert!(after.keys().eq(expected.keys()), "{vault}");
    let changed = after.iter().filter(|(path, it)| expected[*path] != **it);
    let changed: Vec<&String> = changed.map(|(path, _)| path).collect();
    assert_eq!(changed, ["/workspace", "/workspace/d02/f60"], "{vault}");
}

#[test]
fn a_file_verb_between_two_commands_costs_no_view() {
    for home in Home::of_every_user(AVFS) {
        vault_in_use(&home);
        let (before, layer) = (ground(&home, "parent"), layers(&home, "parent"));
        home.ok(&["--vault", "parent", "write", "/workspace/note", "text"]);
        let read = run(&home, "parent", &["cat", "/workspace/note"]);
        assert_eq!(read["stdout"], "text");
        assert_eq!(layers(&home, "parent"), layer, "as {}", home.user());
        // More than is done in a view at rest: another one on the same ground.
        for number in 0..20 {
            let path = format!("/workspace/note-{number}");
            home.ok(&["--vault", "parent", "write", &path, "text"]);
        }
        let read = run(&home, "parent", &["cat", "/workspace/note-19"]);
        assert_eq!(read["stdout"], "text");
        assert_ne!(layers(&home, "parent"), layer);
        assert_eq!(ground(&home, "parent"), before, "as {}", home.user());
        // And more than is put into a layer: a ground of its own.
        let large = home.path().join("large");
        fs::create_dir(&large).expect("own directory");
        fs::write(large.join("f"), vec![b'x'; LARGE]).expect("own file");
        let large = large.to_str().expect("text");
        home.ok(&["--vault", "parent", "import", large, "/workspace/large"]);
        let size = run(&home, "parent", &["stat", "-c", "%s", "/workspace/large/f"]);
        assert_eq!(size["stdout"], format!("{LARGE}\n"));
        let head = home.json(&["vault", "info", "parent"])["root"].clone();
        assert_eq!(ground(&home, "parent").as_deref(), head.as_str());
    }
}

#[test]
fn whatever_verbs_do_between_commands_is_seen_as_it_is() {
    for home in Home::of_every_user(AVFS) {
        home.ok(&["vault", "create", "v"]);
        home.ok(&["write", "/scan.py", include_str!("../scripts/scan.py")]);
        let text = "mkdir -p /workspace/d/sub; cd /workspace; echo one > d/f; echo two > d/sub/g; ln d/f d/hard; \
                    ln -s f d/link; mkdir gone; echo x > gone/x; cp /usr/bin/env tool; chmod 600 d/sub/g";
        home.shell(text);
        let mut kept = 0;
        for verb in [
            "write /workspace/d/f changed",
            "write --append /workspace/d/sub/g more",
            "mkdir /workspace/new",
            "cp /workspace/d/sub/g /workspace/new/g",
            "mv /workspace/d/sub /workspace/moved",
            "rm -r /workspace/gone",
            "chmod 711 /workspace/tool",
            "ln -s nowhere /workspace/dangling",
            "rm /workspace/d/link",
            "touch /workspace/d/hard",
            "rm /workspace/d/hard",
            "checkpoint save here",
            "write /workspace/new/g other",
            "checkpoint restore here",
        ] {
            let layer = layers(&home, "v");
            home.ok(&verb.split(' ').collect::<Vec<_>>());
            let seen = (scan(&home, "v"), names_of_files(&home, "v"));
            kept += usize::from(layers(&home, "v") == layer);
            // A view shows its vault's name, so it goes when that changes.
            home.ok(&["vault", "rename", "v", "renamed"]);
            home.ok(&["vault", "rename", "renamed", "v"]);
            let stored = (scan(&home, "v"), names_of_files(&home, "v"));
            assert_eq!(seen, stored, "{verb} as {}", home.user());
        }
        println!("as {}: {kept} of 14 went into the same view", home.user());
        assert!(kept > 6, "{kept} as {}", home.user());
    }
}

#[test]
fn a_daemon_that_is_killed_while_a_view_opens_leaves_the_vault_as_it_was() {
    for home in Home::of_every_user(AVFS) {
        vault_in_use(&home);
        run(&home, "parent", &["sh", "-c", "echo x > /workspace/d00/f0"]);
        for round in 0..KILLS {
            let fork = format!("fork-{round}");
            home.ok(&["--vault", "parent", "exec", "--", "true"]);
            home.ok(&["vault", "fork", "parent", &fork]);
            let version = home.json(&["vault", "info", &fork])["version"].clone();
            let mut exec = home.command(&["--vault", &fork, "exec", "--", "sleep", "30"]);
            let exec = exec.stdout(Stdio::null()).stderr(Stdio::null()).spawn();
            let mut exec = exec.expect("the binary runs");
            std::thread::sleep(Duration::from_millis(3 * round));
            let daemon = home.daemon_pid().expect("it runs");
            let killed = Command::new("kill")
                .args(["-9", &daemon.to_string()])
                .status();
            assert!(killed.expect("kill").success());
            assert!(process_ends(daemon, Duration::from_secs(20)));
            let _ = exec.wait();
            assert!(identical(&home, "parent", &fork), "round {round}");
            let after = home.json(&["vault", "info", &fork])["version"].clone();
            assert_eq!(after, version, "round {round} as {}", home.user());
        }
    }
}
