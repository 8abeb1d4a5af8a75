//! Ordinary tools behind the boundary: git, cargo, Python, scripts.

use crate::{AVFS, changes, texts, with_vault};
use avfs_testkit::Home;

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
fn git_commits_twice() {
    with_vault(|home| {
        home.ok(&["mkdir", "/workspace"]);
        let git = "git config --global user.name A && git config --global user.email a@b";
        let first = home.shell(&format!(
            "{git} && git init -q . && echo one > f && git add f && git commit -qm one"
        ));
        assert_eq!(
            first["result"]["exit_code"], 0,
            "{}",
            first["result"]["stderr"]
        );
        assert!(texts(&first["result"]["changed_files"]).contains(&"/workspace/.git/HEAD"));
        let second = home.shell("echo two > f && git commit -qam two && git log --oneline | wc -l");
        assert_eq!(
            second["result"]["stdout"], "2\n",
            "{}",
            second["result"]["stderr"]
        );
        let status = home.shell("git status --porcelain && git fsck --strict");
        assert_eq!(
            status["result"]["exit_code"], 0,
            "{}",
            status["result"]["stderr"]
        );
        assert_eq!(status["result"]["stdout"], "");
    });
}

#[test]
fn git_believes_its_index_in_a_fork() {
    with_vault(|home| {
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
fn scripts_run() {
    with_vault(|home| {
        home.ok(&["mkdir", "-p", "/workspace/bin"]);
        home.ok(&[
            "write",
            "/workspace/bin/hello",
            "#!/bin/sh\necho \"hello from $PWD\"\n",
        ]);
        home.shell("chmod +x bin/hello");
        let envelope = home.exec(&["bin/hello"]);
        assert_eq!(envelope["result"]["stdout"], "hello from /workspace\n");
        let script =
            "import shutil\nshutil.move('bin', 'tools')\nopen('tools/x', 'w').write('y')\n";
        home.ok(&["write", "/workspace/move.py", script]);
        let envelope = home.exec(&["python3", "move.py"]);
        let files = texts(&envelope["result"]["changed_files"]);
        for name in ["bin", "bin/hello", "tools", "tools/hello", "tools/x"] {
            assert!(
                files.contains(&format!("/workspace/{name}").as_str()),
                "{name} in {files:?}"
            );
        }
        assert!(changes(&envelope["result"]).contains(&"created /workspace/tools/x".to_owned()));
    });
}

#[test]
fn cargo_tests_a_small_crate() {
    // Only this user's own toolchain can be lent.
    let home = Home::new(AVFS).with_real_user_home();
    home.ok(&["vault", "create", "v"]);
    if home.exec(&["cargo", "--version"])["result"]["exit_code"] != 0 {
        eprintln!("no cargo in the sandbox of this machine");
        return;
    }
    home.ok(&["mkdir", "-p", "/workspace/src"]);
    home.ok(&[
        "write",
        "/workspace/Cargo.toml",
        "[package]\nname = \"small\"\nversion = \"0.1.0\"\nedition = \"2021\"\n",
    ]);
    home.ok(&[
        "write",
        "/workspace/src/lib.rs",
        "pub fn two() -> i32 { 2 }\n#[test]\nfn it_is_two() { assert_eq!(two(), 2); }\n",
    ]);
    let envelope = home.json(&["exec", "--", "cargo", "test", "--offline"]);
    let result = &envelope["result"];
    assert_eq!(result["exit_code"], 0, "{}", result["stderr"]);
    assert!(
        result["stdout"].as_str().unwrap().contains("1 passed"),
        "{}",
        result["stdout"]
    );
    assert!(texts(&result["changed_files"]).contains(&"/workspace/Cargo.lock"));
}

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
