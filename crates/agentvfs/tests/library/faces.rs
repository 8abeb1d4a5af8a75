//! What a program may rely on, on either face: a daemon's home, and one in its own process.

use crate::LONG;
use crate::common::{Home, on_both};
use agentvfs::types::ReadContent;
use agentvfs::{Avfs, ErrorKind};
use avfs_testkit::wait_for;
use std::os::unix::fs::{MetadataExt, PermissionsExt};

#[test]
fn a_fork_a_checkpoint_and_a_command() {
    on_both(|avfs, _| {
        let vault = avfs.create_vault("myproject").unwrap();
        vault.write("/file", "before").unwrap();
        let task = vault.fork("task-001").unwrap();
        task.checkpoint("before-refactor").unwrap();
        let result = task
            .shell("echo out; echo err >&2; echo after > /file; exit 7")
            .run();
        let result = result.unwrap();
        assert_eq!((result.exit_code, result.kernel_exit_code()), (7, Some(7)));
        assert_eq!(result.stdout_bytes(), b"out\n");
        assert_eq!(result.stderr_bytes(), b"err\n");
        assert_eq!(result.changed_files, ["/file"]);
        assert!(!result.success() && !result.was_refused() && !result.timed_out);
        assert_eq!(
            vault.read_text("/file").unwrap(),
            "before",
            "the source is as it was"
        );
        task.restore("before-refactor").unwrap();
        assert_eq!(task.read_text("/file").unwrap(), "before");
    });
}

#[test]
fn an_error_has_a_kind_a_hint_and_a_path() {
    on_both(|avfs, _| {
        let missing = avfs.vault("nowhere").unwrap_err();
        assert_eq!(missing.kind(), ErrorKind::NotFound);
        assert!(missing.to_string().contains("nowhere"), "{missing}");
        let vault = avfs.create_vault("v").unwrap();
        let missing = vault.read("/missing").unwrap_err();
        assert_eq!(missing.kind(), ErrorKind::NotFound);
        let twice = avfs.create_vault("v").unwrap_err();
        assert_eq!(twice.kind(), ErrorKind::AlreadyExists);
        for name in ["", "../x", "a/b", "@current?x"] {
            let wrong = avfs.create_vault(name).unwrap_err();
            assert_eq!(wrong.kind(), ErrorKind::Invalid, "{name:?}");
        }
        let lent = vault.write("/usr/x", "").unwrap_err();
        assert!(
            lent.kind() == ErrorKind::Denied || lent.kind() == ErrorKind::Invalid,
            "{lent}"
        );
        let stream = vault.ask(&ReadContent {
            path: "/x".into(),
            path_b64: None,
            version: None,
            offset: 0,
            limit: None,
        });
        assert_eq!(stream.unwrap_err().kind(), ErrorKind::Invalid);
    });
}

#[test]
fn many_threads_use_one_handle() {
    on_both(|avfs, _| {
        let vault = avfs.create_vault("v").unwrap();
        std::thread::scope(|scope| {
            for number in 0..12 {
                let vault = &vault;
                scope.spawn(move || {
                    let fork = vault.fork(format!("fork-{number}")).unwrap();
                    let result = fork.shell("echo $$ > /pid").run().unwrap();
                    assert_eq!(result.changed_files, ["/pid"]);
                });
            }
        });
        assert_eq!(avfs.vaults().unwrap().len(), 13);
    });
}

#[test]
fn an_agent_has_given_up_what_is_the_owners() {
    for embedded in [false, true] {
        let home = Home::new();
        let open = |builder: agentvfs::Builder| match embedded {
            true => builder.embedded(),
            false => builder.connect(),
        };
        let owner = open(home.builder()).unwrap();
        owner.create_vault("v").unwrap();
        drop(owner);
        let agent = open(home.builder().agent("helper")).unwrap();
        let vault = agent.vault("v").unwrap();
        vault.write("/x", "").unwrap();
        assert_eq!(vault.log(1).unwrap()[0].by, "agent:helper");
        let denied = [
            vault.import("/etc", "/etc-copy").map(drop),
            vault.set([("pids", "1")]).map(drop),
            agent.setup_approvals("anything", None),
            vault.delete(),
        ];
        for refused in denied {
            assert_eq!(refused.unwrap_err().kind(), ErrorKind::Denied);
        }
        let wrong = open(home.builder().agent("a name with spaces")).unwrap_err();
        assert_eq!(wrong.kind(), ErrorKind::Invalid);
    }
}

#[test]
fn a_home_has_one_opener_at_a_time() {
    let home = Home::new();
    let first = home.builder().embedded().unwrap();
    first.create_vault("v").unwrap();
    let second = home.builder().embedded().unwrap_err();
    assert_eq!(second.kind(), ErrorKind::Conflict);
    assert!(second.hint().is_some());
    drop(first);
    let again = home.builder().embedded().unwrap();
    assert_eq!(again.vaults().unwrap().len(), 1);
    drop(again);
    // And the daemon finds what was left.
    let connected = home.builder().connect().unwrap();
    assert_eq!(connected.vaults().unwrap().len(), 1);
    let taken = home.builder().embedded().unwrap_err();
    assert_eq!(taken.kind(), ErrorKind::Conflict);
}

#[test]
fn what_an_embedded_home_leaves_is_private_and_nothing_runs_on() {
    let home = Home::new();
    let avfs = home.builder().embedded().unwrap();
    let meta = home.path().join("home").metadata().unwrap();
    assert_eq!(meta.permissions().mode() & 0o777, 0o700);
    assert_eq!(meta.uid(), home.path().metadata().unwrap().uid());
    let vault = avfs.create_vault("v").unwrap();
    vault.shell("echo kept > /file").run().unwrap();
    let job = vault.command("sleep").arg("1000").start().unwrap();
    job.job().unwrap();
    let keeper = avfs.daemon().unwrap().keeper_pid.unwrap();
    drop((avfs, vault));
    let path = format!("/proc/{keeper}");
    assert!(wait_for(LONG, || !std::path::Path::new(&path).exists()));
    let again = home.builder().embedded().unwrap();
    assert_eq!(
        again.vault("v").unwrap().read_text("/file").unwrap(),
        "kept\n"
    );
}

#[test]
fn a_daemon_that_has_ended_is_started_again() {
    let home = Home::new();
    let avfs = home.builder().connect().unwrap();
    let vault = avfs.create_vault("v").unwrap();
    for _ in 0..2 {
        let stopped = home
            .program(crate::common::avfs())
            .args(["daemon", "stop"])
            .output();
        assert!(stopped.unwrap().status.success());
        vault.write("/x", "still").unwrap();
    }
    // Streams can be sent only once.
    home.program(crate::common::avfs())
        .args(["daemon", "stop"])
        .output()
        .unwrap();
    let large = vec![1; 1 << 20];
    vault.write("/large", &large).unwrap();
    home.program(crate::common::avfs())
        .args(["daemon", "stop"])
        .output()
        .unwrap();
    assert_eq!(vault.read("/large").unwrap(), large);
    home.program(crate::common::avfs())
        .args(["daemon", "stop"])
        .output()
        .unwrap();
    assert!(vault.command("true").run().unwrap().success());
}

#[test]
fn a_program_that_is_missing_is_said_to_be() {
    let home = Home::new();
    let missing = || home.builder().binary("/nonexistent/avfs");
    assert_eq!(missing().connect().unwrap_err().kind(), ErrorKind::NotFound);
    assert_eq!(
        missing().embedded().unwrap_err().kind(),
        ErrorKind::NotFound
    );
    // Something that is no avfs.
    let other = || home.builder().binary("/bin/true");
    assert_eq!(
        other().connect().unwrap_err().kind(),
        ErrorKind::Unavailable
    );
    assert_eq!(other().embedded().unwrap_err().kind(), ErrorKind::Conflict);
    // A daemon that runs needs none.
    let avfs = home.builder().connect().unwrap();
    let connected = missing().connect().unwrap();
    assert_eq!(
        connected.vaults().unwrap().len(),
        avfs.vaults().unwrap().len()
    );
}

/// A program has secrets in its environment and in descriptors that it means to pass on to its own children.
#[test]
fn a_command_gets_nothing_of_the_program_that_runs_it() {
    on_both(|avfs, home| {
        let secret = std::fs::File::create(home.path().join("secret-of-the-program")).unwrap();
        rustix::io::fcntl_setfd(&secret, rustix::io::FdFlags::empty()).unwrap();
        let vault = avfs.create_vault("v").unwrap();
        let result = vault
            .shell("env; ls -l /proc/[0-9]*/fd 2>&1")
            .run()
            .unwrap();
        assert!(
            !result.stdout.contains("secret-of-the-program"),
            "{}",
            result.stdout
        );
        let given = ["PATH", "HOME", "LANG", "TERM", "TZ", "PWD", "SHLVL", "_"];
        let own = std::env::vars().filter(|(name, _)| !given.contains(&name.as_str()));
        for (name, value) in own {
            let line = format!("{name}={value}");
            assert!(!result.stdout.lines().any(|it| it == line), "{line}");
        }
        drop(secret);
    });
}

/// Signals are the program's: a library that watches for them would keep it from ending by Ctrl-C.
#[test]
fn running_a_command_installs_no_signal_handlers() {
    let caught = || {
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
        u64::from_str_radix(line.unwrap().trim(), 16).unwrap()
    };
    let bit = |signal: u32| 1_u64 << (signal - 1);
    on_both(|avfs, _| {
        let vault = avfs.create_vault("v").unwrap();
        vault.shell("echo").on_stdout(|_| ()).run().unwrap();
        assert_eq!(caught() & (bit(1) | bit(2) | bit(15)), 0, "HUP, INT, TERM");
    });
}

#[test]
fn a_handle_says_what_it_is() {
    let home = Home::new();
    let avfs = home.builder().embedded().unwrap();
    let vault = avfs.create_vault("v").unwrap();
    assert_eq!(
        format!("{avfs:?} {vault:?}"),
        r#"Avfs("embedded") Vault("v")"#
    );
    let is_shared = |_: &(dyn Send + Sync)| ();
    is_shared(&avfs);
    is_shared(&vault);
    let _: fn() -> agentvfs::Result<Avfs> = Avfs::connect;
}
