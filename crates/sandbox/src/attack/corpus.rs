//! The list of attacks.

use std::ffi::c_int;

use super::Arg::{Int, Supervisor, Text};
use super::Probe::{Call, Read, Try, Write};
use super::{Arg, Attack, Group, Layer, Probe, network as network_probes, probes, resources};

const fn paths(name: &'static str, layer: Layer, probe: Probe) -> Attack {
    Attack {
        name,
        group: Group::Paths,
        layer,
        probe,
    }
}

const fn leaks(name: &'static str, layer: Layer, probe: Probe) -> Attack {
    Attack {
        name,
        group: Group::Leaks,
        layer,
        probe,
    }
}

const fn network(name: &'static str, layer: Layer, probe: Probe) -> Attack {
    Attack {
        name,
        group: Group::Network,
        layer,
        probe,
    }
}

const fn socket(arguments: &'static [Arg]) -> Probe {
    Call(libc::SYS_socket, arguments)
}

const fn call(name: &'static str, number: libc::c_long, arguments: &'static [Arg]) -> Attack {
    Attack {
        name,
        group: Group::Calls,
        layer: Layer::Seccomp,
        probe: Call(number, arguments),
    }
}

const fn process(name: &'static str, layer: Layer, probe: Probe) -> Attack {
    Attack {
        name,
        group: Group::Processes,
        layer,
        probe,
    }
}

const fn resource(name: &'static str, layer: Layer, probe: Probe) -> Attack {
    Attack {
        name,
        group: Group::Resources,
        layer,
        probe,
    }
}

const CHILD: c_int = libc::SIGCHLD;
const STREAM: Arg = Int(libc::SOCK_STREAM);
const RAW: Arg = Int(libc::SOCK_RAW);
const KILL: Arg = Int(libc::SIGKILL);
const HERE: Arg = Int(libc::AT_FDCWD);
const NOFILE: Arg = Int(libc::RLIMIT_NOFILE as c_int);

/// Every attack.
#[rustfmt::skip]
pub const CORPUS: &[Attack] = &[
    paths("a symbolic link to /etc/shadow", Layer::Root, Try(probes::link_to_shadow)),
    paths("symbolic links to files of the host", Layer::Root, Try(probes::links_to_files)),
    paths("host files through /proc/self/root and /proc/1/root", Layer::Root, Try(probes::through_proc)),
    paths("host files through /proc/self/cwd/../..", Layer::Root, Try(probes::upwards)),
    paths("a hard link to a lent file", Layer::ReadOnly, Try(probes::hard_link)),
    paths("writing to system directories", Layer::ReadOnly,
        Write(&["/usr/bin/x", "/bin/x", "/lib/x", "/etc/passwd", "/etc/x", "/etc/ld.so.preload"])),
    paths("writing to /dev and kernel settings", Layer::ReadOnly,
        Write(&["/dev/x", "/proc/sys/kernel/core_pattern", "/proc/sysrq-trigger",
            "/proc/sys/user/max_user_namespaces", "/proc/sys/kernel/modprobe"])),
    paths("devices of the host", Layer::Root,
        Read(&["/dev/sda", "/dev/vda", "/dev/mem", "/dev/kmsg", "/dev/fuse", "/dev/kvm"])),
    paths("making a device", Layer::Capabilities,
        Call(libc::SYS_mknod, &[Text(c"/tmp/.avfs-device"), Int(0o20666), Int(0x101)])),
    paths("notes of the overlay in extended attributes", Layer::Capabilities, Try(probes::overlay_notes)),
    paths("a whiteout of the overlay", Layer::Landlock,
        Call(libc::SYS_mknod, &[Text(c"/.avfs-whiteout"), Int(0o20666), Int(0)])),
    paths("where directories are copied to be renamed", Layer::Root, Try(probes::under_mounts)),
    paths("gaining rights by a set-uid program", Layer::Capabilities, Try(probes::no_gain)),

    leaks("credentials and keys in the home directory", Layer::Root, Try(probes::files)),
    leaks("the caller's secret in any file", Layer::Root, Try(probes::search_files)),
    leaks("the caller's secret in the environment", Layer::Environment, Try(probes::search_environment)),
    leaks("the caller's secret in other processes", Layer::Namespaces, Try(probes::search_processes)),
    leaks("where the vault's layers lie, from the mount table", Layer::Root, Try(probes::mount_table)),
    leaks("password hashes and host keys", Layer::Root,
        Read(&["/etc/shadow", "/etc/gshadow", "/etc/sudoers", "/etc/ssh/ssh_host_ed25519_key"])),
    leaks("/sys, journals, other users' runtime files", Layer::Root,
        Read(&["/sys/kernel/notes", "/var/log/syslog", "/var/log/journal", "/run/user", "/root/.bashrc"])),
    leaks("the kernel's log", Layer::Seccomp, Call(libc::SYS_syslog, &[Int(3)])),
    leaks("sockets of container engines, agents and buses", Layer::Root, Try(probes::known_sockets)),
    leaks("a listening socket of the host, by path", Layer::Root, Try(probes::path_socket)),
    leaks("descriptors left open", Layer::Descriptors, Try(probes::descriptors)),
    leaks("the kernel's keyring", Layer::Seccomp, Call(libc::SYS_keyctl, &[Int(0), Int(-3)])),
    leaks("core dumps", Layer::Limits, Try(probes::core_dumps)),

    network("connections to addresses outside", Layer::Namespaces, Try(network_probes::connections)),
    network("datagrams to addresses outside", Layer::Namespaces, Try(network_probes::datagrams)),
    network("private, link-local, multicast and metadata addresses", Layer::Namespaces, Try(network_probes::neighbours)),
    network("interfaces of the host", Layer::Namespaces, Try(network_probes::interfaces)),
    network("a listening port of the host", Layer::Namespaces, Try(probes::tcp_port)),
    network("a listening socket of the host, without a path", Layer::Namespaces, Try(probes::abstract_socket)),
    network("the socket of the daemon", Layer::Root, Try(probes::daemon_socket)),
    network("sockets of the host in the tables of any process", Layer::Namespaces, Try(network_probes::tables)),
    network("the network of another process", Layer::Seccomp, Try(network_probes::foreign_networks)),
    network("routes, addresses, rules and interfaces", Layer::Capabilities, Try(network_probes::routing)),
    network("marks, foreign addresses and larger buffers", Layer::Capabilities, Try(network_probes::socket_options)),
    network("ports below 1024, where names and connections are served", Layer::Capabilities, Try(network_probes::low_ports)),
    network("a raw socket", Layer::Seccomp, socket(&[Int(libc::AF_INET), RAW, Int(libc::IPPROTO_ICMP)])),
    network("a raw socket for IPv6", Layer::Seccomp, socket(&[Int(libc::AF_INET6), RAW, Int(libc::IPPROTO_ICMPV6)])),
    network("a packet socket", Layer::Seccomp, socket(&[Int(libc::AF_PACKET), RAW])),
    network("a socket for pings", Layer::Namespaces,
        socket(&[Int(libc::AF_INET), Int(libc::SOCK_DGRAM), Int(libc::IPPROTO_ICMP)])),
    network("a socket to the hypervisor", Layer::Seccomp, socket(&[Int(libc::AF_VSOCK), STREAM])),
    network("a kernel crypto socket", Layer::Seccomp, socket(&[Int(libc::AF_ALG), Int(libc::SOCK_SEQPACKET)])),
    network("a socket past the network stack", Layer::Seccomp, socket(&[Int(libc::AF_XDP), RAW])),
    network("netfilter", Layer::Seccomp, socket(&[Int(libc::AF_NETLINK), RAW, Int(libc::NETLINK_NETFILTER)])),
    network("a list of all sockets", Layer::Seccomp, socket(&[Int(libc::AF_NETLINK), RAW, Int(libc::NETLINK_SOCK_DIAG)])),

    call("a thread with a table of descriptors of its own", libc::SYS_clone,
        &[Int(libc::CLONE_THREAD | libc::CLONE_SIGHAND | libc::CLONE_VM)]),
    call("a nested user namespace", libc::SYS_unshare, &[Int(libc::CLONE_NEWUSER)]),
    call("a nested user namespace by clone", libc::SYS_clone, &[Int(libc::CLONE_NEWUSER | CHILD)]),
    call("a namespace of another process", libc::SYS_setns, &[Int(0), Int(0)]),
    call("mount", libc::SYS_mount, &[Text(c"none"), Text(c"/tmp"), Text(c"tmpfs")]),
    call("umount", libc::SYS_umount2, &[Text(c"/usr")]),
    call("open_tree", libc::SYS_open_tree, &[HERE, Text(c"/"), Int(1)]),
    call("fsopen", libc::SYS_fsopen, &[Text(c"tmpfs"), Int(0)]),
    call("pivot_root", libc::SYS_pivot_root, &[Text(c"/"), Text(c"/")]),
    call("chroot", libc::SYS_chroot, &[Text(c"/tmp")]),
    call("open_by_handle_at", libc::SYS_open_by_handle_at, &[HERE, Text(c"        "), Int(0)]),
    call("bpf", libc::SYS_bpf, &[Int(0)]),
    call("io_uring", libc::SYS_io_uring_setup, &[Int(1)]),
    call("perf_event_open", libc::SYS_perf_event_open, &[]),
    call("userfaultfd", libc::SYS_userfaultfd, &[Int(0)]),
    call("add_key", libc::SYS_add_key, &[Text(c"user"), Text(c"x"), Text(c"y"), Int(1), Int(-3)]),
    call("loading a kernel module", libc::SYS_finit_module, &[Int(0), Text(c""), Int(0)]),
    call("kexec", libc::SYS_kexec_load, &[]),
    call("reboot", libc::SYS_reboot, &[Int(0), Int(0), Int(0)]),
    call("swapon", libc::SYS_swapon, &[Text(c"/tmp/x"), Int(0)]),
    call("setting the host's name", libc::SYS_sethostname, &[Text(c"x"), Int(1)]),
    call("setting the clock", libc::SYS_clock_settime, &[Int(0), Text(c"                ")]),
    call("process accounting", libc::SYS_acct, &[Text(c"/tmp/x")]),
    call("fanotify", libc::SYS_fanotify_init, &[Int(0), Int(0)]),
    call("typing into the caller's terminal", libc::SYS_ioctl, &[Int(0), Int(libc::TIOCSTI as c_int), Text(c"x")]),
    call("the console's own calls", libc::SYS_ioctl, &[Int(0), Int(libc::TIOCLINUX as c_int), Text(c"\x02")]),
    call("calls by the x32 numbers", 0x4000_0000 + libc::SYS_getpid, &[]),
    call("clone3, which filters cannot read", libc::SYS_clone3, &[]),

    process("killing the agent", Layer::Landlock, Call(libc::SYS_kill, &[Int(1), KILL])),
    process("killing the supervisor", Layer::Landlock, Call(libc::SYS_kill, &[Supervisor, KILL])),
    process("stopping the supervisor", Layer::Landlock, Call(libc::SYS_kill, &[Supervisor, Int(libc::SIGSTOP)])),
    process("tracing the agent", Layer::Undumpable, Call(libc::SYS_ptrace, &[Int(libc::PTRACE_ATTACH as c_int), Int(1)])),
    process("tracing the supervisor", Layer::Undumpable,
        Call(libc::SYS_ptrace, &[Int(libc::PTRACE_SEIZE as c_int), Supervisor])),
    process("the agent's limits", Layer::Undumpable, Call(libc::SYS_prlimit64, &[Int(1), NOFILE])),
    process("memory, environment and files of the agent", Layer::Undumpable,
        Read(&["/proc/1/mem", "/proc/1/environ", "/proc/1/maps", "/proc/1/fd", "/proc/1/root", "/proc/1/cwd"])),
    process("the supervisor's memory and environment", Layer::Undumpable, Try(probes::supervisor_files)),
    process("writing the agent's memory", Layer::Undumpable, Write(&["/proc/1/mem", "/proc/1/oom_score_adj"])),
    process("processes of the host", Layer::Namespaces, Try(probes::foreign_processes)),
    process("the agent's and the supervisor's priority and processors", Layer::Seccomp, Try(resources::reschedule)),
    process("the terminals of other commands", Layer::ReadOnly, Try(resources::terminals)),

    resource("all inotify instances of the user", Layer::Namespaces, Try(resources::inotify)),
    resource("all process ids of the host", Layer::Limits, Try(resources::process_ids)),
    resource("as many open files as there can be", Layer::Limits, Try(resources::open_files)),
    resource("being spared when memory runs out", Layer::Limits, Try(resources::spared)),
];
