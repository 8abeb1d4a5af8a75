//! What a program may rely on, on either face: a daemon's home, and one in its own process.

use crate::common::{Home, on_both};
use agentvfs::types::{
    CheckpointAsk, Exec, ForkWord, LimitsAsk, ProfileWord, ReadContent, StatusWord, TtyAsk,
};
use agentvfs::{Avfs, ErrorKind, Event};
use avfs_testkit::wait_for;
use std::ffi::OsStr;
use std::io::{Read, Write};
use std::ops::ControlFlow;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::sync::mpsc;
use std::time::Duration;

const LONG: Duration = Duration::from_secs(60);

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

/// Every option of the wire's request has a method, and says what it means.
#[test]
fn every_option_of_a_command_is_carried_out() {
    on_both(|avfs, _| {
        let vault = avfs.create_vault("v").unwrap();
        vault.mkdir_all("/src/dir").unwrap();
        let result = vault
            .shell("pwd; echo $NAME; echo $BYTES | od -An -c; cat; touch /tmp/x ~/kept")
            .cwd("/src/dir")
            .env("NAME", "value")
            .env("BYTES", OsStr::from_bytes(b"\xff"))
            .stdin("input")
            .timeout(LONG)
            .output_limit(4096)
            .checkpoint("named")
            .memory(512 << 20)
            .pids(200)
            .disk(64 << 20)
            .profile(ProfileWord::Moderate)
            .patch()
            .list_home_changes()
            .run()
            .unwrap();
        assert_eq!(result.exit_code, 0, "{result:?}");
        assert_eq!(result.stdout, "/src/dir\nvalue\n 377  \\n\ninput");
        assert_eq!(result.checkpoint.as_deref(), Some("named"));
        assert!(result.patch.is_some());
        let listed = result.home_change_list.as_ref().unwrap();
        assert!(
            listed.iter().any(|it| it.path.ends_with("/kept")),
            "{listed:?}"
        );
        let asked = &result.envelope().request;
        let limits = LimitsAsk {
            memory: Some(512 << 20),
            cpus: None,
            pids: Some(200),
            disk: Some(64 << 20),
        };
        assert_eq!((asked.limits, asked.output_limit), (limits, 4096));
        assert_eq!(asked.profile, Some(ProfileWord::Moderate));

        match vault.command("true").cpus(1.0).run() {
            Ok(result) => assert_eq!(result.envelope().request.limits.cpus, Some(1.0)),
            // A host without control groups for this user; what cannot be enforced is refused.
            Err(error) => assert!(error.to_string().contains("cpus"), "{error}"),
        }
        let readonly = vault.shell("touch /file").readonly().run().unwrap();
        assert!(!readonly.success() && readonly.changed_files.is_empty());
        let tried = vault
            .shell("touch /file")
            .in_fork(ForkWord::Discard)
            .run()
            .unwrap();
        assert_eq!(tried.changed_files, ["/file"]);
        assert!(!tried.fork.as_ref().unwrap().kept && !vault.exists("/file").unwrap());
        let few = vault.shell("touch /few-1 /few-2").changes_limit(1);
        let few = few.run().unwrap();
        assert_eq!((few.changed_files.len(), few.changes_total), (1, 2));
        let all = avfs.exec_changes(&few.exec, true).unwrap();
        assert_eq!((all.changes.len(), all.next_cursor), (2, None));
        let plain = vault.shell("touch /file").no_checkpoint().run().unwrap();
        assert_eq!(plain.checkpoint, None);
        let timed = vault.command("sleep").arg("1000");
        let timed = timed.timeout(Duration::from_millis(300)).run().unwrap();
        assert!(timed.timed_out && timed.exit_code == 124);
        let word = OsStr::from_bytes(b"\xfe\xff");
        let bytes = vault.command("printf").args([OsStr::new("%s"), word]);
        assert_eq!(
            bytes.no_timeout().run().unwrap().stdout_bytes(),
            b"\xfe\xff"
        );
        let terminal = vault
            .shell("stty size; echo $TERM")
            .term("vt100")
            .tty(30, 90);
        assert_eq!(terminal.run().unwrap().stdout, "30 90\r\nvt100\r\n");
        let wrong = vault.shell("true").arg("x").run().unwrap_err();
        assert_eq!(wrong.kind(), ErrorKind::Invalid);
    });
}

/// A field that is added to the request fails to compile here: its method is to be added to the builder.
#[test]
fn the_request_has_no_option_without_a_method() {
    let Exec {
        argv: _,
        argv_b64: _,
        shell: _,
        cwd: _,
        cwd_b64: _,
        env: _,
        env_b64: _,
        timeout_ms: _,
        output_limit: _,
        stdin: _,
        tty: _,
        readonly: _,
        checkpoint: _,
        fork: _,
        limits: _,
        profile: _,
        driver: _,
        network: _,
        allow: _,
        wait: _,
        approval: _,
        speculate: _,
        patch: _,
        list_home_changes: _,
        changes_limit: _,
    } = Exec::default();
    let TtyAsk {
        rows: _,
        columns: _,
        term: _,
    } = TtyAsk {
        rows: 1,
        columns: 1,
        term: None,
    };
    match CheckpointAsk::Auto {
        CheckpointAsk::Auto | CheckpointAsk::Named(_) | CheckpointAsk::Never => {}
    }
}

#[test]
fn output_is_told_as_it_comes() {
    on_both(|avfs, _| {
        let vault = avfs.create_vault("v").unwrap();
        // It ends only after its first line was heard.
        let text = "echo first; echo second >&2; read line; echo $line";
        let mut running = vault.shell(text).stdin_piped().spawn().unwrap();
        let mut stdin = running.take_stdin().unwrap();
        let (mut out, mut err) = (Vec::new(), Vec::new());
        assert_eq!(running.next(), Some(Event::Started));
        while (out.as_slice(), err.as_slice()) != (b"first\n", b"second\n") {
            match running.next().expect("it has not ended") {
                Event::Stdout(bytes) => out.extend(bytes),
                Event::Stderr(bytes) => err.extend(bytes),
                other => panic!("{other:?}"),
            }
        }
        stdin.write_all(b"third\n").unwrap();
        drop(stdin);
        let rest: Vec<Event> = running.by_ref().collect();
        assert_eq!(rest, [Event::Stdout(b"third\n".to_vec())]);
        assert_eq!(running.wait().unwrap().stdout, "first\nthird\n");
    });
}

#[test]
fn a_callback_may_ask_for_something_itself() {
    on_both(|avfs, _| {
        let vault = avfs.create_vault("v").unwrap();
        let mut seen = Vec::new();
        let mut files = None;
        let text = "echo out; echo err >&2";
        let result = vault
            .shell(text)
            .on_stderr(|bytes| seen.extend_from_slice(bytes))
            .on_stdout(|_| files = Some(avfs.stats().map(|it| it.files)))
            .on_event(|_| ControlFlow::Continue(()))
            .run();
        assert!(result.unwrap().success());
        assert_eq!(seen, b"err\n");
        assert!(files.unwrap().is_ok());
    });
}

#[test]
fn a_callback_that_breaks_off_ends_a_silent_command() {
    on_both(|avfs, _| {
        let vault = avfs.create_vault("v").unwrap();
        let command = vault.shell("echo ready; sleep 1000; touch /never");
        let result = command.on_event(|event| match event {
            Event::Stdout(_) => ControlFlow::Break(()),
            _ => ControlFlow::Continue(()),
        });
        let result = result.run().unwrap();
        assert_eq!(result.status, StatusWord::Cancelled);
        assert!(!vault.exists("/never").unwrap());
    });
}

#[test]
fn a_command_that_is_cancelled_before_it_began_ends() {
    on_both(|avfs, _| {
        let vault = avfs.create_vault("v").unwrap();
        let running = vault.command("sleep").arg("1000").spawn().unwrap();
        running.handle().cancel().unwrap();
        let result = running.wait().unwrap();
        assert_eq!(
            (result.status, result.exit_code),
            (StatusWord::Cancelled, 130)
        );
    });
}

#[test]
fn dropping_what_runs_ends_it() {
    on_both(|avfs, _| {
        let vault = avfs.create_vault("v").unwrap();
        let mut running = vault.shell("echo ready; sleep 1000").spawn().unwrap();
        while !matches!(running.next(), Some(Event::Stdout(_))) {}
        assert_eq!(avfs.daemon().unwrap().running_execs, 1);
        drop(running);
        assert!(wait_for(LONG, || avfs.daemon().unwrap().running_execs == 0));
    });
}

/// What a command writes waits for a slow reader, but not beyond the command's own time.
#[test]
fn a_reader_that_never_reads_does_not_keep_a_command_for_ever() {
    on_both(|avfs, _| {
        let vault = avfs.create_vault("v").unwrap();
        let running = vault
            .command("yes")
            .timeout(Duration::from_secs(2))
            .spawn()
            .unwrap();
        assert!(wait_for(LONG, || avfs.daemon().unwrap().running_execs == 1));
        assert!(wait_for(LONG, || avfs.daemon().unwrap().running_execs == 0));
        let result = running.wait().unwrap();
        assert!(result.timed_out, "{:?}", result.status);
    });
}

#[test]
fn input_comes_from_a_reader_of_any_size() {
    /// Ends after so many bytes, and says when.
    struct Zeroes(usize, mpsc::Sender<()>);
    impl Read for Zeroes {
        fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
            let size = buffer.len().min(self.0);
            buffer[..size].fill(0);
            self.0 -= size;
            if self.0 == 0 {
                let _ = self.1.send(());
            }
            Ok(size)
        }
    }
    on_both(|avfs, _| {
        let vault = avfs.create_vault("v").unwrap();
        let (end, ended) = mpsc::channel();
        let command = vault
            .command("wc")
            .arg("-c")
            .stdin_reader(Zeroes(5 << 20, end));
        assert_eq!(command.run().unwrap().stdout.trim(), (5 << 20).to_string());
        ended.recv().unwrap();
        // One that is not read does not keep a command from ending.
        let (end, _kept) = mpsc::channel();
        let command = vault.command("true").stdin_reader(Zeroes(64 << 20, end));
        assert!(command.run().unwrap().success());
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
