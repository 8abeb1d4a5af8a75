//! What the README promises, and git, whose index notes what its files look like.

use crate::{AVFS, texts};
use avfs_testkit::{Home, with_vault};

#[test]
fn the_walk_of_the_readme() {
    for home in Home::of_every_user(AVFS) {
        home.ok(&["vault", "create", "myproject"]);
        home.ok(&["mkdir", "/src"]);
        home.ok(&["write", "/src/main.py", "print('hello')"]);
        home.ok(&["vault", "fork", "myproject", "task-001", "--use"]);
        home.ok(&["checkpoint", "save", "before-refactor"]);
        assert_eq!(
            home.ok(&["proxy", "exec", "--", "python3", "/src/main.py"]),
            "hello\n"
        );
    }
}

#[test]
fn git_believes_its_index_in_a_fork() {
    with_vault(AVFS, |home| {
        home.ok(&["mkdir", "/workspace"]);
        let committed = home.shell(
            "git init -q . && echo one > f && touch -d '1 hour ago' f && git add f && \
             git -c user.name=A -c user.email=a@b commit -qm one && git status",
        );
        assert_eq!(committed["result"]["exit_code"], 0, "{committed:#}");
        // Whoever chooses settings of their own through the environment keeps ours.
        for (fork, settings) in [("plain", ""), ("chosen", CHOSEN)] {
            home.ok(&["vault", "fork", "v", fork, "--use"]);
            let status = home.shell(&format!("{settings} git status --porcelain"));
            assert_eq!(status["result"]["exit_code"], 0, "{status:#}");
            // Files that it does not recognise it reads again, and writes that down.
            assert_eq!(
                texts(&status["result"]["changed_files"]),
                Vec::<&str>::new(),
                "{fork}"
            );
        }
    });
}

const CHOSEN: &str = "GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=gc.auto GIT_CONFIG_VALUE_0=0";

#[test]
fn the_demo_tells_its_story() {
    for home in Home::of_every_user(AVFS) {
        let story = home.ok(&["demo"]);
        assert!(
            story.contains("careful") && story.contains("bold"),
            "{story}"
        );
        assert_eq!(home.daemon_pid(), None, "the demo has a daemon of its own");
    }
}

#[test]
fn the_doctor_finds_what_exec_needs() {
    for home in Home::of_every_user(AVFS) {
        let report = home.json(&["doctor"]);
        assert_eq!(report["works"], true, "{report}");
        assert!(report["probes"].as_array().unwrap().len() >= 5, "{report}");
    }
}
