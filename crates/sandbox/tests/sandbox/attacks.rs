//! What a command must not be able to do.

use std::ffi::{CStr, c_int, c_long};
use std::fs;
use std::io::Write;

use avfs_sandbox::{ExitStatus, Namespace, Network, SANDBOX_UID, Sandbox};

use crate::Test;
use crate::world::{World, command, next_event, own_binary, run, shell, start};

pub const TESTS: &[Test] = &[
    ("system_calls_are_refused", system_calls_are_refused),
    (
        "own_processes_are_out_of_reach",
        own_processes_are_out_of_reach,
    ),
    ("another_exec_is_out_of_reach", another_exec_is_out_of_reach),
    ("host_is_invisible", host_is_invisible),
    ("identity_is_never_the_hosts", identity_is_never_the_hosts),
    ("lent_is_read_only", lent_is_read_only),
    ("network_is_loopback", network_is_loopback),
    ("the_hosts_network_is_named", the_hosts_network_is_named),
    ("startup_files_stay_outside", startup_files_stay_outside),
];

/// An argument of a system call.
enum Arg {
    Int(c_int),
    Text(&'static CStr),
    /// The process id of the supervisor.
    Supervisor,
}
use Arg::{Int, Supervisor, Text};

const CHILD: c_int = libc::SIGCHLD;
const STREAM: Arg = Int(libc::SOCK_STREAM);
const RAW: Arg = Int(libc::SOCK_RAW);
const NOFILE: Arg = Int(libc::RLIMIT_NOFILE as c_int);
const KILL: Arg = Int(libc::SIGKILL);
const HERE: Arg = Int(libc::AT_FDCWD);
const KEYS: Arg = Int(-3);

/// What works inside as everywhere.
#[rustfmt::skip]
const FREE: &[(&str, c_long, &[Arg])] = &[
    ("unix", libc::SYS_socket, &[Int(libc::AF_UNIX), STREAM, Int(0)]),
    ("inet", libc::SYS_socket, &[Int(libc::AF_INET), STREAM, Int(0)]),
    ("route", libc::SYS_socket, &[Int(libc::AF_NETLINK), RAW, Int(0)]),
    ("limit_self", libc::SYS_prlimit64, &[Int(0), NOFILE]),
];

/// What is not there.
const ABSENT: &[(&str, c_long, &[Arg])] = &[
    ("clone3", libc::SYS_clone3, &[]),
    ("x32_getpid", 0x4000_0000 + 39, &[]),
];

/// What needs an id that does not exist inside.
const UNMAPPED: &[(&str, c_long, &[Arg])] = &[
    ("setuid", libc::SYS_setuid, &[Int(0)]),
    ("chown", libc::SYS_chown, &[Text(c"/tmp"), Int(0), Int(0)]),
];

/// What is refused.
#[rustfmt::skip]
const DENIED: &[(&str, c_long, &[Arg])] = &[
    ("unshare_user", libc::SYS_unshare, &[Int(libc::CLONE_NEWUSER)]),
    ("clone_user", libc::SYS_clone, &[Int(libc::CLONE_NEWUSER | CHILD)]),
    ("clone_net", libc::SYS_clone, &[Int(libc::CLONE_NEWNET | CHILD)]),
    ("clone_own_descriptors", libc::SYS_clone, &[Int(libc::CLONE_THREAD | libc::CLONE_SIGHAND | libc::CLONE_VM)]),
    ("mount", libc::SYS_mount, &[Text(c"none"), Text(c"/tmp"), Text(c"tmpfs")]),
    ("umount", libc::SYS_umount2, &[Text(c"/usr")]),
    ("open_tree", libc::SYS_open_tree, &[HERE, Text(c"/"), Int(1)]),
    ("pivot_root", libc::SYS_pivot_root, &[Text(c"/"), Text(c"/")]),
    ("chroot", libc::SYS_chroot, &[Text(c"/tmp")]),
    ("setns", libc::SYS_setns, &[]),
    ("keyctl", libc::SYS_keyctl, &[Int(0), KEYS]),
    ("bpf", libc::SYS_bpf, &[]),
    ("io_uring", libc::SYS_io_uring_setup, &[Int(1)]),
    ("perf", libc::SYS_perf_event_open, &[]),
    ("userfaultfd", libc::SYS_userfaultfd, &[]),
    ("sethostname", libc::SYS_sethostname, &[Text(c"x"), Int(1)]),
    ("vsock", libc::SYS_socket, &[Int(libc::AF_VSOCK), STREAM]),
    ("alg", libc::SYS_socket, &[Int(libc::AF_ALG), Int(libc::SOCK_SEQPACKET)]),
    ("raw", libc::SYS_socket, &[Int(libc::AF_INET), RAW, Int(1)]),
    ("packet", libc::SYS_socket, &[Int(libc::AF_PACKET), RAW]),
    ("netfilter", libc::SYS_socket, &[Int(libc::AF_NETLINK), RAW, Int(12)]),
    ("tiocsti", libc::SYS_ioctl, &[Int(0), Int(libc::TIOCSTI as c_int), Text(c"x")]),
    ("mknod", libc::SYS_mknod, &[Text(c"/tmp/null"), Int(0o20666), Int(0x103)]),
    ("kill_agent", libc::SYS_kill, &[Int(1), KILL]),
    ("kill_supervisor", libc::SYS_kill, &[Supervisor, KILL]),
    ("stop_supervisor", libc::SYS_kill, &[Supervisor, Int(libc::SIGSTOP)]),
    ("trace_agent", libc::SYS_ptrace, &[Int(libc::PTRACE_ATTACH as c_int), Int(1)]),
    ("trace_supervisor", libc::SYS_ptrace, &[Int(libc::PTRACE_SEIZE as c_int), Supervisor]),
    ("limit_agent", libc::SYS_prlimit64, &[Int(1), NOFILE]),
];

/// The attacker's side: makes the calls and prints `name errno` for each. Runs in the sandbox.
pub fn attack() {
    let supervisor = rustix::process::getppid().map_or(0, |pid| pid.as_raw_nonzero().get());
    for (name, number, arguments) in [FREE, ABSENT, UNMAPPED, DENIED].concat() {
        let mut words = [0; 6];
        for (word, argument) in words.iter_mut().zip(arguments) {
            *word = match argument {
                Int(number) => c_long::from(*number),
                Text(text) => text.as_ptr() as c_long,
                Supervisor => c_long::from(supervisor),
            };
        }
        let [a, b, c, d, e, f] = words;
        // SAFETY: pointers among the arguments are to C strings; nothing here succeeds in a way
        // that touches this process's memory.
        let result = unsafe { libc::syscall(number, a, b, c, d, e, f) };
        let errno = std::io::Error::last_os_error().raw_os_error().unwrap_or(0);
        if result == 0 && name.starts_with("clone") {
            // The child of a clone that should have failed.
            std::process::exit(0);
        }
        let errno = if result < 0 { errno } else { 0 };
        writeln!(std::io::stdout(), "{name} {errno}").expect("stdout is open");
    }
}

/// A sandbox in which this program is `/attack`.
pub fn armed(world: &World) -> Sandbox {
    fs::copy(own_binary(), world.path("lower/attack")).expect("a copy of this program");
    world.open()
}

fn system_calls_are_refused() {
    let world = World::new();
    let sandbox = armed(&world);
    let outcome = run(&sandbox, &command(&["/attack", "__attack"]));
    assert_eq!(
        outcome.status(),
        ExitStatus::Code(0),
        "{}",
        outcome.complaint()
    );
    let text = outcome.text();
    let errno = |name: &str| -> i32 {
        let line = text
            .lines()
            .find_map(|line| line.strip_prefix(&format!("{name} ")));
        line.unwrap_or_else(|| panic!("{name} is missing in {text}"))
            .parse()
            .expect("a number")
    };
    let answers = [
        (FREE, &[0][..]),
        (ABSENT, &[libc::ENOSYS]),
        (UNMAPPED, &[libc::EINVAL]),
        (DENIED, &[libc::EPERM, libc::EACCES]),
    ];
    for (calls, allowed) in answers {
        for (name, ..) in calls {
            assert!(
                allowed.contains(&errno(name)),
                "{name} answered {}",
                errno(name)
            );
        }
    }
    assert!(sandbox.is_alive(), "the agent lives");
}

fn own_processes_are_out_of_reach() {
    let world = World::new();
    let sandbox = world.open();
    for file in ["mem", "environ", "maps", "fd", "root", "cwd", "exe", "auxv"] {
        for process in ["1", "$PPID"] {
            let look = format!("p=/proc/{process}/{file}; cat $p || ls $p/ || readlink $p");
            let outcome = run(&sandbox, &shell(&look));
            assert_ne!(
                outcome.status(),
                ExitStatus::Code(0),
                "{look}: {}",
                outcome.text()
            );
            assert_eq!(outcome.text(), "", "{look}");
        }
        let write = format!("echo x > /proc/1/{file}");
        assert_ne!(
            run(&sandbox, &shell(&write)).status(),
            ExitStatus::Code(0),
            "{write}"
        );
    }
    let outcome = run(
        &sandbox,
        &shell("kill -9 -1; kill -9 1; kill -9 $PPID; echo alive"),
    );
    assert_eq!(outcome.text(), "alive\n", "{}", outcome.complaint());
    assert!(sandbox.is_alive());
    assert_eq!(
        run(&sandbox, &shell("exit 3")).status(),
        ExitStatus::Code(3)
    );
}

fn another_exec_is_out_of_reach() {
    let world = World::new();
    let sandbox = world.open();
    let other = start(&sandbox, &shell("sleep 2; exit 5"));
    let avfs_sandbox::Event::Started { pid } = next_event(&other.running) else {
        panic!("it did not start")
    };
    let text = format!("kill -9 {pid}; kill -9 -1; kill -9 -{pid}; cat /proc/{pid}/environ");
    let outcome = run(&sandbox, &shell(&text));
    assert_ne!(outcome.status(), ExitStatus::Code(0));
    assert_eq!(outcome.text(), "");
    assert_eq!(other.finish().status(), ExitStatus::Code(5));
}

fn host_is_invisible() {
    let world = World::new();
    let canary = world.path("canary");
    fs::write(&canary, "secret").expect("a file");
    let sandbox = world.open();
    let canary = canary.to_str().expect("a plain path");
    let outcome = run(
        &sandbox,
        &shell(&format!("cat {canary}; ls -a {}", world.path("").display())),
    );
    assert_eq!(outcome.text(), "", "no host path is there");
    let outcome = run(
        &sandbox,
        &shell("ls -A / | tr '\\n' ' '; env; cat /proc/self/mountinfo"),
    );
    let text = outcome.text();
    for absent in [
        "home",
        "root",
        "sys",
        "boot",
        "mnt",
        "HOME=",
        "TMPDIR",
        "upperdir=/tmp",
    ] {
        let found = text
            .split(|c: char| c.is_whitespace())
            .any(|word| word.starts_with(absent));
        assert!(!found, "{absent} in {text}");
    }
    assert!(
        !text.contains("/upper") && !text.contains("/lower"),
        "{text}"
    );
    let outcome = run(
        &sandbox,
        &shell("ls /proc | grep -c '^[0-9]'; ls /etc/shadow /sys /dev/fuse"),
    );
    let seen: u32 = outcome.text().trim().parse().expect("a number");
    assert!(
        seen <= 6,
        "{seen} processes are seen where only the sandbox's own may be"
    );
    assert_eq!(
        outcome.status(),
        ExitStatus::Code(2),
        "ls finds none of these"
    );
}

fn identity_is_never_the_hosts() {
    let world = World::new();
    let sandbox = world.open();
    let outcome = run(
        &sandbox,
        &shell(
            "id -u; id -g; grep -E '^(Cap|NoNewPrivs|Seccomp:)' /proc/self/status; hostname; cat /proc/sys/user/max_user_namespaces; touch /mine; stat -c %u /mine",
        ),
    );
    let text = outcome.text();
    assert!(
        text.starts_with("1000\n1000\n"),
        "{text}{}",
        outcome.complaint()
    );
    for line in text.lines().filter(|line| line.starts_with("Cap")) {
        assert!(line.ends_with("0000000000000000"), "{line}");
    }
    for line in ["NoNewPrivs:\t1", "Seccomp:\t2", "testvault", "0"] {
        assert!(
            text.lines().any(|found| found == line),
            "{line:?} is missing in {text}"
        );
    }
    assert!(text.ends_with("\n1000\n"), "{text}");
    let own = rustix::process::geteuid();
    let expected = if own.is_root() {
        SANDBOX_UID
    } else {
        own.as_raw()
    };
    let file = fs::metadata(world.path("upper/mine")).expect("the new file");
    assert_eq!(std::os::unix::fs::MetadataExt::uid(&file), expected);
    let isolation = sandbox.isolation();
    assert_eq!(isolation.ids.host_uid, expected);
    assert_ne!(isolation.ids.host_uid, 0);
    assert!(isolation.seccomp && isolation.no_new_privs && !isolation.nested_user_namespaces);
    assert_eq!(isolation.namespaces.len(), 6);
}

fn lent_is_read_only() {
    let world = World::new();
    let sandbox = world.open();
    for text in [
        "touch /usr/x",
        "touch /bin/x",
        "rmdir /usr",
        "rm -f /usr/bin/env",
        "rmdir /proc",
        "mv /bin /b",
        "rm /etc/passwd",
        "touch /etc/x",
        "rm /dev/null",
        "touch /dev/x",
        "echo 1 > /proc/sys/kernel/core_pattern",
        "echo 100 > /proc/sys/user/max_user_namespaces",
        "chmod 777 /usr/bin",
        "chmod 600 /dev/null",
    ] {
        let outcome = run(&sandbox, &shell(text));
        assert_ne!(outcome.status(), ExitStatus::Code(0), "{text} worked");
    }
    assert!(fs::metadata("/usr/bin").is_ok());
}

fn network_is_loopback() {
    let world = World::new();
    let sandbox = world.open();
    let outcome = run(
        &sandbox,
        &shell("tail -n +3 /proc/net/dev | cut -d: -f1; cat /proc/net/route | wc -l"),
    );
    assert_eq!(
        outcome.text().split_whitespace().collect::<Vec<_>>(),
        ["lo", "1"]
    );
}

fn the_hosts_network_is_named() {
    let world = World::new();
    fs::copy(own_binary(), world.path("lower/attack")).expect("a copy of this program");
    let mut plan = world.plan_beside("online");
    plan.network = Network::Host;
    let online = world
        .keeper
        .open_sandbox(&plan, Vec::new())
        .expect("a sandbox");
    let (offline, isolation) = (world.open(), online.isolation());
    assert_eq!(isolation.network, Network::Host);
    assert!(!isolation.namespaces.contains(&Namespace::Net));
    assert_eq!(offline.isolation().network, Network::None);
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let abstracted = abstract_socket();
    let reach = format!(
        "exec 2>/dev/null; bash -c 'echo > /dev/tcp/127.0.0.1/{port}' && echo tcp; \
         /attack __connect {abstracted} && echo abstract; echo end"
    );
    assert_eq!(run(&offline, &shell(&reach)).text(), "end\n");
    // Landlock keeps the sockets without a path to the host, whatever the network.
    let expected = if isolation.signals_scoped {
        "tcp\nend\n"
    } else {
        "tcp\nabstract\nend\n"
    };
    assert_eq!(run(&online, &shell(&reach)).text(), expected);
}

/// Listens at an abstract address of the host, until this process ends.
fn abstract_socket() -> String {
    use std::os::linux::net::SocketAddrExt;
    let name = format!("avfs-test-{}", std::process::id());
    let address = std::os::unix::net::SocketAddr::from_abstract_name(&name).expect("a name");
    let listener = std::os::unix::net::UnixListener::bind_addr(&address).expect("a socket");
    std::mem::forget(listener);
    name
}

/// Connects to an abstract address.
pub fn connect(name: &str) {
    use std::os::linux::net::SocketAddrExt;
    let address = std::os::unix::net::SocketAddr::from_abstract_name(name).expect("a name");
    std::os::unix::net::UnixStream::connect_addr(&address).expect("a connection");
}

fn startup_files_stay_outside() {
    let world = World::new();
    let sandbox = world.open();
    let outcome = run(
        &sandbox,
        &shell("ls -A /etc | grep -E 'bashrc|profile|zsh|environment'"),
    );
    assert_eq!(outcome.text(), "");
}
