//! Commands on either face: their options, their input and output while they run, and how they end.

use crate::LONG;
use crate::common::on_both;
use agentvfs::types::{CheckpointAsk, Exec, ForkWord, LimitsAsk, ProfileWord, StatusWord, TtyAsk};
use agentvfs::{ErrorKind, Event};
use avfs_testkit::wait_for;
use std::ffi::OsStr;
use std::io::{Read, Write};
use std::ops::ControlFlow;
use std::os::unix::ffi::OsStrExt;
use std::sync::mpsc;
use std::time::Duration;

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
