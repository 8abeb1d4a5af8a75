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

/// Who commits are by is read when a command runs, and that nobody is known is said before a commit fails.
#[test]
fn commits_are_by_the_user_of_now() {
    with_vault(AVFS, |home| {
        home.ok(&["mkdir", "/workspace"]);
        let configure = |name: &str, value: &str| {
            let mut git = home.host_command("git");
            let set = git.args(["config", "--global", name, value]).status();
            assert!(set.unwrap().success());
        };
        let commit = "git commit -q --allow-empty -m x && git log -1 --format='%an <%ae>'";
        home.shell("git init -q .");
        let hint = "user.name and user.email";
        let unknown = home.shell(commit);
        assert_ne!(unknown["result"]["exit_code"], 0, "{unknown:#}");
        let reason = unknown["result"]["decision"]["reason"].as_str().unwrap();
        assert!(reason.contains(hint), "{reason}");
        let said = home.avfs(&["exec", "--shell", commit]);
        assert!(
            String::from_utf8_lossy(&said.stderr).contains(hint),
            "{said:?}"
        );
        // The sandbox is open, and sees each change.
        configure("user.name", "Ada \"A\" [x]");
        configure("user.email", "ada@example.test");
        let known = home.shell(commit);
        assert_eq!(
            known["result"]["stdout"], "Ada \"A\" [x] <ada@example.test>\n",
            "{known:#}"
        );
        assert_eq!(
            known["result"]["decision"]["reason"],
            serde_json::Value::Null
        );
        configure("user.name", "Grace");
        assert_eq!(
            home.shell(commit)["result"]["stdout"],
            "Grace <ada@example.test>\n"
        );
        // Nothing else of the user's configuration is there, and the repository's own goes first.
        configure("alias.secret", "!token");
        let listed = home.shell("git config --list");
        assert!(!listed.to_string().contains("token"), "{listed:#}");
        home.shell("git config user.name Own");
        assert_eq!(
            home.shell(commit)["result"]["stdout"],
            "Own <ada@example.test>\n"
        );
        let mut git = home.host_command("git");
        let unset = git
            .args(["config", "--global", "--remove-section", "user"])
            .status();
        assert!(unset.unwrap().success());
        let gone = home.shell("git config user.email; git status -s; git config user.name");
        assert_eq!(gone["result"]["stdout"], "Own\n");
        assert_eq!(
            gone["result"]["decision"]["reason"],
            serde_json::Value::Null
        );
    });
}

/// What `docs/exec.md` says of tools for debugging.
#[test]
fn sockets_and_crashes_can_be_looked_at() {
    with_vault(AVFS, |home| {
        let core = home.shell("ulimit -Hc; sh -c 'kill -SEGV $$'; ls -d core* 2> /dev/null");
        assert_eq!(core["result"]["stdout"], "0\n", "{core:#}");
        if home.shell("command -v ss && command -v gdb && command -v strace")["result"]["exit_code"]
            != 0
        {
            return avfs_testkit::skip("no ss, gdb or strace on this machine");
        }
        let listen = "import socket, subprocess\n\
            s = socket.create_server(('127.0.0.1', 0))\n\
            out = subprocess.run(['ss', '-tlnp'], capture_output=True, text=True).stdout\n\
            print(f':{s.getsockname()[1]} ' in out and 'python' in out)";
        home.ok(&["write", "/listen.py", listen]);
        assert_eq!(
            home.shell("python3 /listen.py")["result"]["stdout"],
            "True\n"
        );
        let crash = "gdb -batch -ex run -ex bt --args sh -c 'kill -SEGV $$' 2>&1 | grep -c SIGSEGV";
        assert_ne!(home.shell(crash)["result"]["stdout"], "0\n");
        let traced = home.shell("strace -f -e trace=openat true 2>&1 | grep -c openat");
        assert_eq!(traced["result"]["exit_code"], 0, "{traced:#}");
    });
}
