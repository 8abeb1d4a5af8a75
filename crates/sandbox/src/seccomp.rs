//! The filter that refuses system calls which no command needs.
//!
//! It is a deny list: other calls work. ptrace is allowed, so that debuggers work; namespaces and Landlock limit its
//! targets.

use std::collections::BTreeMap;

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch, apply_filter, sock_filter,
};

use crate::error::Fault;

/// Refused with EPERM whatever their arguments.
const REFUSED: &[libc::c_long] = &[
    // mounts and roots
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_open_tree,
    libc::SYS_move_mount,
    libc::SYS_mount_setattr,
    // namespaces
    libc::SYS_setns,
    libc::SYS_unshare,
    // the kernel itself
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_kexec_load,
    libc::SYS_kexec_file_load,
    libc::SYS_reboot,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_acct,
    libc::SYS_quotactl,
    libc::SYS_quotactl_fd,
    libc::SYS_syslog,
    libc::SYS_vhangup,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_adjtimex,
    libc::SYS_clock_adjtime,
    // large interfaces with a history of vulnerabilities
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_memfd_secret,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_keyctl,
    libc::SYS_open_by_handle_at,
    libc::SYS_name_to_handle_at,
    libc::SYS_fanotify_init,
    libc::SYS_nfsservctl,
    // memory of other processes
    libc::SYS_move_pages,
    libc::SYS_migrate_pages,
    libc::SYS_mbind,
    libc::SYS_set_mempolicy,
];

/// Refused calls that only this architecture has.
#[cfg(target_arch = "x86_64")]
const REFUSED_HERE: &[libc::c_long] = &[
    libc::SYS_iopl,
    libc::SYS_ioperm,
    libc::SYS_modify_ldt,
    libc::SYS_ustat,
    libc::SYS_sysfs,
    libc::SYS_uselib,
    libc::SYS_lookup_dcookie,
];
#[cfg(not(target_arch = "x86_64"))]
const REFUSED_HERE: &[libc::c_long] = &[];

const NAMESPACE_BITS: [libc::c_int; 7] = [
    libc::CLONE_NEWNS,
    libc::CLONE_NEWCGROUP,
    libc::CLONE_NEWUTS,
    libc::CLONE_NEWIPC,
    libc::CLONE_NEWUSER,
    libc::CLONE_NEWPID,
    libc::CLONE_NEWNET,
];

/// TIOCSTI and TIOCLINUX, which inject terminal input.
const TYPING: [u64; 2] = [0x5412, 0x541c];

/// The compiled filter.
pub(crate) struct Filter {
    programs: [BpfProgram; 2],
}

impl Filter {
    /// Compiles it; a keeper does so once for all its sandboxes.
    pub(crate) fn compile() -> Result<Filter, Fault> {
        let refused = refused().map_err(|error| fault(&error.to_string()))?;
        Ok(Filter {
            programs: [absent(), refused],
        })
    }

    /// Puts this process and all its later children under the filter, irrevocably.
    pub(crate) fn apply(&self) -> Result<(), Fault> {
        for program in &self.programs {
            apply_filter(program).map_err(|error| fault(&error.to_string()))?;
        }
        Ok(())
    }
}

fn fault(reason: &str) -> Fault {
    Fault {
        what: format!("filter system calls ({reason})"),
        errno: libc::EINVAL,
    }
}

fn refused() -> Result<BpfProgram, seccompiler::BackendError> {
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> = BTreeMap::new();
    for number in REFUSED.iter().chain(REFUSED_HERE) {
        rules.insert(*number, Vec::new());
    }
    let namespaces = NAMESPACE_BITS.map(|bit| {
        let bit = u64::from(bit.cast_unsigned());
        rule([(0, SeccompCmpOp::MaskedEq(bit), bit)])
    });
    let mut clones: Vec<_> = namespaces.into_iter().collect::<Result<_, _>>()?;
    clones.push(rule([own_descriptors()])?);
    rules.insert(libc::SYS_clone, clones);
    rules.insert(libc::SYS_socket, sockets()?);
    let typing = TYPING.map(|request| rule([(1, SeccompCmpOp::Eq, request)]));
    rules.insert(
        libc::SYS_ioctl,
        typing.into_iter().collect::<Result<_, _>>()?,
    );
    // The priority of all processes of a user, which includes the agent and the supervisors.
    let everybody = [
        (libc::SYS_setpriority, libc::PRIO_USER as u64),
        // IOPRIO_WHO_USER
        (libc::SYS_ioprio_set, 3),
    ];
    for (number, user) in everybody {
        rules.insert(number, vec![rule([(0, SeccompCmpOp::Eq, user)])?]);
    }
    // prlimit of another process, which may be the agent; pid 0 is the caller itself.
    rules.insert(libc::SYS_prlimit64, vec![rule([(0, SeccompCmpOp::Ne, 0)])?]);
    let refuse = SeccompAction::Errno(libc::EPERM.cast_unsigned());
    let arch = TargetArch::try_from(std::env::consts::ARCH)?;
    SeccompFilter::new(rules, SeccompAction::Allow, refuse, arch)?.try_into()
}

/// A thread with a table of descriptors of its own, which would not be in the `/proc/PID/fd` of its process.
fn own_descriptors() -> (u8, SeccompCmpOp, u64) {
    let [thread, files] =
        [libc::CLONE_THREAD, libc::CLONE_FILES].map(|flag| u64::from(flag.cast_unsigned()));
    (0, SeccompCmpOp::MaskedEq(thread | files), thread)
}

/// Only local, internet and netlink sockets. Raw ones are refused, except for netlink, where SOCK_RAW is usual.
fn sockets() -> Result<Vec<SeccompRule>, seccompiler::BackendError> {
    let [unix, inet, inet6, netlink] = [
        libc::AF_UNIX,
        libc::AF_INET,
        libc::AF_INET6,
        libc::AF_NETLINK,
    ]
    .map(|family| u64::from(family.cast_unsigned()));
    let raw = u64::from(libc::SOCK_RAW.cast_unsigned());
    let kind = SeccompCmpOp::MaskedEq(0xf);
    Ok(vec![
        rule([unix, inet, inet6, netlink].map(|family| (0, SeccompCmpOp::Ne, family)))?,
        rule([(0, SeccompCmpOp::Eq, netlink), (2, SeccompCmpOp::Ne, 0)])?,
        rule([(0, SeccompCmpOp::Eq, inet), (1, kind.clone(), raw)])?,
        rule([(0, SeccompCmpOp::Eq, inet6), (1, kind, raw)])?,
    ])
}

/// Matches when every (argument, comparison, value) holds; arguments are 32 bits wide.
fn rule<const N: usize>(
    conditions: [(u8, SeccompCmpOp, u64); N],
) -> Result<SeccompRule, seccompiler::BackendError> {
    let conditions = conditions.map(|(argument, comparison, value)| {
        SeccompCondition::new(argument, SeccompCmpArgLen::Dword, comparison, value)
    });
    SeccompRule::new(conditions.into_iter().collect::<Result<_, _>>()?)
}

/// Answers ENOSYS to clone3 and the x32 system calls.
///
/// A filter cannot read clone3's argument, and libraries fall back to clone; x32 numbers would bypass the list above.
fn absent() -> BpfProgram {
    let statement = |code: u32, k: u32| sock_filter {
        code: code as u16,
        jt: 0,
        jf: 0,
        k,
    };
    let jump = |code: u32, k: u32, jt: u8, jf: u8| sock_filter {
        code: code as u16,
        jt,
        jf,
        k,
    };
    let clone3 = libc::SYS_clone3 as u32;
    let enosys = libc::SECCOMP_RET_ERRNO | libc::ENOSYS.cast_unsigned();
    let x32 = if cfg!(target_arch = "x86_64") {
        0x4000_0000
    } else {
        u32::MAX
    };
    vec![
        // The first field of seccomp_data is the number.
        statement(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0),
        jump(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, clone3, 1, 0),
        jump(libc::BPF_JMP | libc::BPF_JGE | libc::BPF_K, x32, 0, 1),
        statement(libc::BPF_RET | libc::BPF_K, enosys),
        statement(libc::BPF_RET | libc::BPF_K, libc::SECCOMP_RET_ALLOW),
    ]
}
