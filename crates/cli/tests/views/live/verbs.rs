//! File verbs while a command runs: both work on the same files, and nothing is lost.

use crate::AVFS;
use avfs_testkit::{Home, SOON, wait_for};

use super::{Worker, causes};

/// A command and the verbs append to one file, and answer each other.
#[test]
fn a_command_and_verbs_work_on_the_same_files() {
    for home in Home::of_every_user_with_vault(AVFS) {
        home.ok(&["write", "/log", ""]);
        let turn = "i=$((i+1)); echo command $i >> /log; echo $i > /tmp/turns; \
                    if [ -e /question ]; then cat /question > /answer; fi";
        let worker = Worker::start(&home, "i=0", turn);
        home.ok(&["write", "/question", "forty-two\n"]);
        let answered = || home.avfs(&["cat", "/answer"]).stdout == b"forty-two\n";
        assert!(
            wait_for(SOON, answered),
            "the command sees it, {}",
            home.user()
        );
        for number in 0..20 {
            home.ok(&["write", "-a", "/log", &format!("verb {number}\n")]);
        }
        let envelope = worker.stop();
        assert_eq!(envelope["result"]["exit_code"], 0, "{envelope}");
        let log = home.ok(&["cat", "/log"]);
        let turns: usize = home.ok(&["cat", "/tmp/turns"]).trim().parse().unwrap();
        let lines = |who: &str| -> Vec<String> {
            let lines = log.lines().filter(|line| line.starts_with(who));
            lines.map(str::to_owned).collect()
        };
        let expected: Vec<String> = (1..=turns).map(|n| format!("command {n}")).collect();
        assert_eq!(lines("command"), expected, "as {}", home.user());
        let expected: Vec<String> = (0..20).map(|n| format!("verb {n}")).collect();
        assert_eq!(lines("verb"), expected, "as {}", home.user());
        let causes = causes(&home);
        assert!(causes.iter().filter(|it| *it == "write").count() >= 21);
        assert!(causes.iter().any(|it| it == "exec"), "{causes:?}");
    }
}

/// Every verb that changes something does it in the view, and in the history.
#[test]
fn every_writing_verb_works_while_a_command_runs() {
    for home in Home::of_every_user_with_vault(AVFS) {
        home.ok(&["write", "-p", "/d/stored", "s\n"]);
        home.ok(&["write", "-p", "/d/sub/deep", "deep\n"]);
        home.ok(&["write", "/old", "1\n"]);
        home.ok(&["write", "/old", "2\n"]);
        let source = home.path().join("source");
        std::fs::create_dir_all(source.join("a")).unwrap();
        std::fs::write(source.join("a/imported"), "i\n").unwrap();
        // The state of all that is not the command's own, as a command sees it.
        let see = "find / -xdev \\( -path /tmp -o -path /proc -o -path /seen -o -path /seen.new \\) -prune -o -type f -print \
                   -o -type l -print | sort > /seen.new; mv /seen.new /seen";
        let worker = Worker::start(&home, ":", see);
        home.ok(&["mkdir", "-p", "/made/below"]);
        home.ok(&["mv", "/d", "/moved"]);
        home.ok(&["cp", "-r", "/moved", "/copied"]);
        home.ok(&["ln", "/moved/stored", "/hard"]);
        home.ok(&["ln", "-s", "moved/stored", "/soft"]);
        home.ok(&["chmod", "751", "/moved/stored"]);
        home.ok(&["touch", "/touched"]);
        home.ok(&[
            "edit",
            "/moved/sub/deep",
            "--old",
            "deep",
            "--new",
            "deeper",
        ]);
        home.ok(&["tag", "/moved/sub/deep", "seen"]);
        home.ok(&["revert", "/old"]);
        home.ok(&["checkout", "/old", "--version", "5"]);
        home.ok(&["rm", "-r", "/copied/sub"]);
        home.ok(&["import", source.to_str().unwrap(), "/in"]);
        let expected = "/copied/stored\n/hard\n/in/a/imported\n/moved/stored\n\
                        /moved/sub/deep\n/old\n/soft\n/touched\n";
        let seen = || home.ok(&["cat", "/seen"]) == expected;
        assert!(
            wait_for(SOON, seen),
            "as {}: {}",
            home.user(),
            home.ok(&["cat", "/seen"])
        );
        let outside = home.ok(&["find", "/", "--type", "f,l"]);
        for path in expected.lines() {
            assert!(outside.contains(path), "{path} is in the vault: {outside}");
        }
        worker.stop();
        assert_eq!(home.ok(&["cat", "/moved/sub/deep"]), "deeper\n");
        assert_eq!(home.ok(&["cat", "/old"]), "2\n");
        assert_eq!(home.json(&["stat", "/hard"])["nlink"], 2);
        assert_eq!(home.json(&["stat", "/moved/stored"])["mode"], "0751");
        assert!(
            home.ok(&["tag", "/moved/sub/deep", "--list"])
                .contains("seen")
        );
        let causes = causes(&home);
        for cause in [
            "mkdir", "move", "copy", "link", "mode", "touch", "edit", "label", "revert",
            "checkout", "remove", "import",
        ] {
            assert!(causes.iter().any(|it| it == cause), "{cause} in {causes:?}");
        }
    }
}

/// Modes that shut out the daemon's user do not shut out the vault's owner.
#[test]
fn no_mode_keeps_verbs_out() {
    for home in Home::of_every_user_with_vault(AVFS) {
        let before = "mkdir /shut; echo a > /shut/f; chmod 000 /shut/f /shut";
        let worker = Worker::start(&home, before, ":");
        assert_eq!(home.ok(&["cat", "/shut/f"]), "a\n", "as {}", home.user());
        home.ok(&["write", "/shut/f", "b\n"]);
        home.ok(&["write", "/shut/g", "c\n"]);
        assert_eq!(home.ok(&["cat", "/shut/f"]), "b\n");
        assert_eq!(home.ok(&["ls", "/shut"]).split_whitespace().count(), 2);
        assert_eq!(home.json(&["stat", "/shut/f"])["mode"], "0000");
        home.ok(&["rm", "-r", "/shut"]);
        assert!(!home.avfs(&["stat", "/shut"]).status.success());
        worker.stop();
    }
}

/// A file that a command has open goes on being written under its new name.
#[test]
fn a_moved_file_keeps_its_writer() {
    for home in Home::of_every_user_with_vault(AVFS) {
        let worker = Worker::start(&home, "exec 3>/a; i=0", "i=$((i+1)); echo $i >&3");
        home.ok(&["mv", "/a", "/b"]);
        let before = home.ok(&["cat", "/b"]).lines().count();
        let grows = || home.ok(&["cat", "/b"]).lines().count() > before;
        assert!(wait_for(SOON, grows), "as {}", home.user());
        worker.stop();
        assert!(!home.avfs(&["stat", "/a"]).status.success());
    }
}

/// Nothing that a command puts in the way leads a verb out of the vault.
#[test]
fn links_of_a_command_lead_nowhere() {
    for home in Home::of_every_user_with_vault(AVFS) {
        let secret = home.path().join("secret");
        std::fs::create_dir(&secret).unwrap();
        let before = format!("ln -s {} /out; ln -s ../../../.. /up", secret.display());
        let worker = Worker::start(&home, &before, ":");
        assert!(!home.avfs(&["write", "/out/f", "x"]).status.success());
        home.ok(&["write", "/up/g", "x"]);
        worker.stop();
        assert_eq!(std::fs::read_dir(&secret).unwrap().count(), 0);
        assert_eq!(home.ok(&["cat", "/g"]), "x");
    }
}
