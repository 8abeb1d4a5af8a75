//! A command runs, sees its vault, and its end is told truly.

use std::fs;
use std::io::Write;

use avfs_sandbox::{Event, ExitStatus, Sandbox, StartStep};
use rustix::pipe::PipeFlags;

use crate::Test;
use crate::world::{Started, World, command, events, eventually, run, shell, start, start_with};

pub const TESTS: &[Test] = &[
    ("runs_a_command", runs_a_command),
    ("ends_are_told", ends_are_told),
    ("what_cannot_start_says_why", what_cannot_start_says_why),
    ("descriptors_are_the_commands", descriptors_are_the_commands),
    ("ten_megabytes_of_output", ten_megabytes_of_output),
    ("a_megabyte_of_arguments", a_megabyte_of_arguments),
    ("standard_input_is_a_pipe", standard_input_is_a_pipe),
    ("a_pipe_ends_with_its_reader", a_pipe_ends_with_its_reader),
    ("places_to_write", places_to_write),
    ("read_only_means_read_only", read_only_means_read_only),
    (
        "scripts_without_interpreter_run",
        scripts_without_interpreter_run,
    ),
    ("vault_links_lead_nowhere", vault_links_lead_nowhere),
    ("odd_paths_are_no_syntax", odd_paths_are_no_syntax),
    ("nonsense_is_refused", nonsense_is_refused),
];

fn runs_a_command() {
    let world = World::new();
    fs::write(world.path("lower/hello.txt"), "hello from the vault").expect("a file");
    let sandbox = world.open();
    let outcome = run(&sandbox, &command(&["cat", "/hello.txt"]));
    assert_eq!(
        outcome.text(),
        "hello from the vault",
        "{}",
        outcome.complaint()
    );
    assert!(matches!(outcome.events[0], Event::Started { pid } if pid > 1));
    assert_eq!(outcome.status(), ExitStatus::Code(0));

    let outcome = run(
        &sandbox,
        &shell("echo new > /made; rm /hello.txt; id -u; exit 42"),
    );
    assert_eq!(outcome.text(), "1000\n", "{}", outcome.complaint());
    assert_eq!(outcome.status(), ExitStatus::Code(42));
    assert_eq!(
        fs::read_to_string(world.path("upper/made")).expect("a new file"),
        "new\n"
    );
    assert!(
        world.path("lower/hello.txt").exists(),
        "what lies below stays"
    );
    assert_eq!(sandbox.processes().expect("a count"), 0);
}

fn ends_are_told() {
    let world = World::new();
    let sandbox = world.open();
    assert_eq!(
        run(&sandbox, &shell("exit 0")).status(),
        ExitStatus::Code(0)
    );
    assert_eq!(
        run(&sandbox, &shell("exit 255")).status(),
        ExitStatus::Code(255)
    );
    let outcome = run(&sandbox, &shell("kill -TERM $$"));
    assert_eq!(outcome.status(), ExitStatus::Signal(libc::SIGTERM));
    let outcome = run(
        &sandbox,
        &shell("i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done"),
    );
    let Event::Exited {
        usage, leftovers, ..
    } = outcome.last()
    else {
        panic!("no exit")
    };
    assert!(usage.user_us > 0 && usage.max_rss_kib > 0, "{usage:?}");
    assert_eq!(*leftovers, 0);
}

fn what_cannot_start_says_why() {
    let world = World::new();
    fs::write(world.path("lower/data"), "no program").expect("a file");
    let sandbox = world.open();
    let mut lost = command(&["true"]);
    lost.cwd = b"/nowhere".to_vec();
    let cases = [
        (command(&["no-such-program"]), StartStep::Exec, libc::ENOENT),
        (
            command(&["/no/such/program"]),
            StartStep::Exec,
            libc::ENOENT,
        ),
        (command(&["/data"]), StartStep::Exec, libc::EACCES),
        (lost, StartStep::Cwd, libc::ENOENT),
    ];
    for (command, step, errno) in cases {
        let outcome = run(&sandbox, &command);
        let [Event::CouldNotStart(failure)] = outcome.events[..] else {
            panic!("{:?}", outcome.events)
        };
        assert_eq!((failure.step, failure.errno), (step, errno));
    }
}

fn descriptors_are_the_commands() {
    let world = World::new();
    let sandbox = world.open();
    let outcome = run(&sandbox, &shell("ls /proc/self/fd | tr '\\n' ' '"));
    // The fourth is ls's own, open on the directory.
    assert_eq!(outcome.text(), "0 1 2 3 ");
    let outcome = run(
        &sandbox,
        &shell("echo out > /dev/stdout; echo err > /dev/stderr"),
    );
    assert_eq!(
        (outcome.text().as_str(), outcome.complaint().as_str()),
        ("out\n", "err\n")
    );
    let signals = "cat /proc/self/status; umask; ulimit -c";
    let outcome = run(&sandbox, &shell(signals));
    let text = outcome.text();
    for field in ["SigBlk", "SigIgn", "SigCgt"] {
        assert!(
            text.contains(&format!("{field}:\t0000000000000000\n")),
            "{text}"
        );
    }
    assert!(text.ends_with("0022\n0\n"), "{text}");
}

fn ten_megabytes_of_output() {
    let world = World::new();
    let sandbox = world.open();
    let outcome = run(
        &sandbox,
        &shell("head -c 10000000 /dev/zero; echo done >&2"),
    );
    assert_eq!(outcome.stdout.len(), 10_000_000);
    assert_eq!(outcome.complaint(), "done\n");
    assert_eq!(outcome.status(), ExitStatus::Code(0));
}

fn a_megabyte_of_arguments() {
    let world = World::new();
    let sandbox = world.open();
    let mut long = shell("echo $#");
    long.argv.extend(vec![vec![b'x'; 1000]; 1001]);
    let outcome = run(&sandbox, &long);
    assert_eq!(outcome.text(), "1000\n", "{:?}", outcome.events);
    long.argv.push(vec![b'x'; 200_000]);
    let outcome = run(&sandbox, &long);
    let Event::CouldNotStart(failure) = outcome.last() else {
        panic!("{:?}", outcome.events)
    };
    assert_eq!(failure.errno, libc::E2BIG);
}

/// Starts a command and returns the writing end of its standard input.
fn with_input(sandbox: &Sandbox, text: &str) -> (Started, fs::File) {
    let (stdin, input) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC).expect("a pipe");
    (start_with(sandbox, &shell(text), stdin), input.into())
}

fn standard_input_is_a_pipe() {
    let world = World::new();
    let sandbox = world.open();
    // More than any pipe holds, there and back, and its end is seen.
    let (started, mut input) = with_input(&sandbox, "tr a b; echo end");
    let writer = std::thread::spawn(move || input.write_all(&vec![b'a'; 3_000_000]));
    let outcome = started.finish();
    writer.join().expect("no panic").expect("all is read");
    assert_eq!(outcome.stdout.len(), 3_000_004);
    assert!(outcome.stdout.ends_with(b"bbend\n"));
    // It can be opened by name, and nobody else's end keeps it open.
    let (started, input) = with_input(&sandbox, "cat /dev/stdin");
    drop(input);
    assert_eq!(started.finish().status(), ExitStatus::Code(0));
    // What a process was left with ends like what it was given.
    let (started, mut input) = with_input(&sandbox, "read a; echo \"$a\"; cat");
    input.write_all(b"one\n").expect("it is read");
    std::thread::sleep(std::time::Duration::from_millis(50));
    input.write_all(b"two\n").expect("it is read");
    drop(input);
    assert_eq!(started.finish().text(), "one\ntwo\n");
}

fn a_pipe_ends_with_its_reader() {
    let world = World::new();
    let sandbox = world.open();
    // The command lives on, but reads no more.
    let (started, mut input) = with_input(&sandbox, "head -c 1; exec <&-; echo; sleep 20");
    input.write_all(b"x").expect("it is read");
    eventually("nobody reads", || {
        let broken = input.write_all(b"more").err();
        broken.is_some_and(|error| error.kind() == std::io::ErrorKind::BrokenPipe)
    });
    started.running.kill().expect("a kill");
    assert_eq!(started.finish().text(), "x\n");
    // The command is gone with its reader.
    let (started, mut input) = with_input(&sandbox, "exit 3");
    assert_eq!(started.finish().status(), ExitStatus::Code(3));
    let broken = input.write_all(b"late").expect_err("nobody reads");
    assert_eq!(broken.kind(), std::io::ErrorKind::BrokenPipe);
    // And the other way round: a command that writes to nobody is ended by SIGPIPE.
    let started = start(&sandbox, &shell("exec head -c 10000000 /dev/zero"));
    drop((started.stdout, started.stderr));
    let last = events(&started.running).pop();
    let signal = ExitStatus::Signal(libc::SIGPIPE);
    assert!(
        matches!(last, Some(Event::Exited { status, .. }) if status == signal),
        "{last:?}"
    );
}

fn places_to_write() {
    let world = World::new();
    let sandbox = world.open();
    let text = "for d in / /tmp /run /var/tmp /dev/shm; do echo $d > $d/x || exit 1; done; \
                mkdir -p /a/b && mv /a /c && test -d /c/b";
    let outcome = run(&sandbox, &shell(text));
    assert_eq!(
        outcome.status(),
        ExitStatus::Code(0),
        "{}",
        outcome.complaint()
    );
    assert!(
        world.path("scratch/x").exists(),
        "/tmp is the scratch directory"
    );
    assert!(world.path("upper/x").exists());
    assert!(!world.path("upper/run/x").exists(), "/run is in memory");
    let outcome = run(
        &sandbox,
        &shell("test -c /dev/ptmx && test -w /dev/ptmx && ls /dev/pts"),
    );
    assert_eq!(outcome.text(), "ptmx\n", "{}", outcome.complaint());
}

fn read_only_means_read_only() {
    let world = World::new();
    let mut plan = world.plan();
    plan.readonly = true;
    let sandbox = world
        .keeper
        .open_sandbox(&plan, Vec::new())
        .expect("a sandbox");
    let outcome = run(
        &sandbox,
        &shell("touch /tmp/fine && ! touch /x && ! mkdir /d"),
    );
    assert_eq!(
        outcome.status(),
        ExitStatus::Code(0),
        "{}",
        outcome.complaint()
    );
    assert!(outcome.complaint().contains("Read-only file system"));
}

fn scripts_without_interpreter_run() {
    let world = World::new();
    let script = world.path("lower/script");
    fs::write(&script, "echo \"$0 $1\"\n").expect("a script");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs::set_permissions(&script, mode).expect("an executable script");
    let sandbox = world.open();
    let outcome = run(&sandbox, &command(&["/script", "word"]));
    assert_eq!(outcome.text(), "/script word\n", "{:?}", outcome.events);
}

fn vault_links_lead_nowhere() {
    let world = World::new();
    std::os::unix::fs::symlink(world.path("scratch"), world.path("lower/usr")).expect("a link");
    let refused = world.keeper.open_sandbox(&world.plan(), Vec::new());
    let error = refused.expect_err("a link is no mount point").to_string();
    assert!(error.contains("\"usr\""), "{error}");
    assert!(world.keeper.is_alive());
}

fn odd_paths_are_no_syntax() {
    let world = World::new();
    let odd = world.path("odd, path:with=\\signs");
    for name in ["lower", "upper", "work"] {
        fs::create_dir_all(odd.join(name)).expect("a directory");
    }
    fs::write(odd.join("lower/here"), "here").expect("a file");
    let mut plan = world.plan();
    let overlay = plan.overlay.as_mut().expect("it has an overlay");
    overlay.lowers[0] = odd.join("lower");
    overlay.upper = odd.join("upper");
    overlay.work = odd.join("work");
    let sandbox = world
        .keeper
        .open_sandbox(&plan, Vec::new())
        .expect("a sandbox");
    assert_eq!(run(&sandbox, &command(&["cat", "/here"])).text(), "here");
}

fn nonsense_is_refused() {
    let world = World::new();
    let sandbox = world.open();
    let mut commands = vec![command(&[]), command(&[""]), command(&["a\0b"])];
    let mut relative = command(&["true"]);
    relative.cwd = b"tmp".to_vec();
    let mut unnamed = command(&["true"]);
    unnamed.env.push((b"A=B".to_vec(), b"C".to_vec()));
    let mut huge = command(&["true"]);
    huge.argv.push(vec![b'x'; 9_000_000]);
    commands.extend([relative, unnamed, huge]);
    for command in commands {
        let null = || std::os::fd::OwnedFd::from(fs::File::open("/dev/null").expect("a device"));
        let stdio = avfs_sandbox::Stdio {
            stdin: null(),
            stdout: null(),
            stderr: null(),
        };
        let refused = sandbox.exec(&command, stdio);
        assert!(
            matches!(refused, Err(avfs_sandbox::Error::Invalid { .. })),
            "{refused:?}"
        );
    }
    assert!(world.keeper.mount_fuse("../x").is_err());
    assert!(world.keeper.spawn_helper("").is_err());
}
