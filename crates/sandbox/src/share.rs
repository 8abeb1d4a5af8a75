//! What sandboxes may take of the things that the host, or its user, has only so many of: process
//! ids, inotify instances, queued signals, namespaces.
//!
//! The kernel counts most of them for the user who runs the daemon, wherever that user's processes
//! are. It counts them for each user namespace as well, so each sandbox gets a bound of its own,
//! and all sandboxes of a keeper a common one that leaves the user a part.

use std::fs;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::confine::put;
use crate::error::{During, Fault};
use crate::plan::Privilege;

/// The most processes and threads of one sandbox on the largest host: more is a bomb.
const TASKS_MAX: u64 = 16_384;
/// The most open files of one process.
const FILES_MAX: u64 = 65_536;
/// By how much commands are preferred, in thousandths of the memory there is, when the kernel has
/// to kill something for want of it.
const OOM_SCORE: i32 = 500;

/// What the kernel counts for each user and each user namespace, and where the user's own limit is.
const WATCHED: [(&str, &str); 2] = [
    (
        "/proc/sys/user/max_inotify_instances",
        "/proc/sys/fs/inotify/max_user_instances",
    ),
    (
        "/proc/sys/user/max_inotify_watches",
        "/proc/sys/fs/inotify/max_user_watches",
    ),
];

/// No command makes a namespace; the system call filter refuses it first.
const NAMESPACES: [&str; 8] = ["user", "mnt", "pid", "net", "ipc", "uts", "cgroup", "time"];

/// Further limits that the kernel counts for a user.
const COUNTED: [Resource; 3] = [Resource::Sigpending, Resource::Msgqueue, Resource::Memlock];

/// How many processes and threads all sandboxes of a keeper may have together, and each.
fn tasks() -> (u64, u64) {
    let most = ["/proc/sys/kernel/pid_max", "/proc/sys/kernel/threads-max"];
    let most = most.iter().filter_map(|path| number(path)).min();
    let hard = getrlimit(Resource::Nproc).maximum.unwrap_or(u64::MAX);
    // What is missing is the kernel's own default.
    let all = most.unwrap_or(32_768).min(hard) / 2;
    (all, (all / 4).min(TASKS_MAX))
}

/// The processes and threads that the commands of one sandbox may have.
pub(crate) fn tasks_of_one() -> u64 {
    tasks().1
}

/// The most files that one process of a sandbox may have open.
pub(crate) fn files_of_one() -> u64 {
    getrlimit(Resource::Nofile)
        .maximum
        .map_or(FILES_MAX, |hard| hard.min(FILES_MAX))
}

/// Bounds all that this keeper's sandboxes take together.
///
/// A limit of the process that makes a user namespace holds for the sum of what is in it and in
/// the others that the same user made.
pub(crate) fn bound_all(privilege: Privilege) -> Result<(), Fault> {
    bound(Resource::Nproc, tasks().0)?;
    for counted in COUNTED {
        if let Some(hard) = getrlimit(counted).maximum {
            bound(counted, hard - hard / 4)?;
        }
    }
    if privilege == Privilege::Root {
        // Its sandboxes' user is nobody else's, and the initial user namespace is everybody's.
        return Ok(());
    }
    for (file, users) in WATCHED {
        if let Some(most) = number(users) {
            put(file, &(most - most / 4).to_string())?;
        }
    }
    Ok(())
}

/// Bounds what this process's user namespace, which is a sandbox's, takes.
pub(crate) fn bound_sandbox() -> Result<(), Fault> {
    for kind in NAMESPACES {
        let file = format!("/proc/sys/user/max_{kind}_namespaces");
        match put(&file, "0") {
            // A kind that this kernel does not know.
            Err(fault) if fault.errno == libc::ENOENT => {}
            done => done?,
        }
    }
    for (file, users) in WATCHED {
        if let Some(most) = number(users) {
            put(file, &(most / 2).to_string())?;
        }
    }
    for counted in COUNTED {
        if let Some(hard) = getrlimit(counted).maximum {
            bound(counted, hard / 2)?;
        }
    }
    Ok(())
}

/// The memory that there is for this process: the host's, or less if it is in a control group.
pub(crate) fn total_memory() -> u64 {
    let host = memory_fields(["MemTotal:"]).map_or(1 << 30, |[total]| total);
    crate::cgroup::Host::look().map_or(host, |groups| groups.memory_limit().min(host))
}

/// Fields of /proc/meminfo, in bytes, if all are there.
pub(crate) fn memory_fields<const N: usize>(names: [&str; N]) -> Option<[u64; N]> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    let field = |name: &str| -> Option<u64> {
        let rest = text.lines().find_map(|line| line.strip_prefix(name))?;
        let kibibytes: u64 = rest.split_whitespace().next()?.parse().ok()?;
        Some(kibibytes * 1024)
    };
    let fields = names.map(field);
    let known = fields.iter().all(Option::is_some);
    known.then(|| fields.map(Option::unwrap_or_default))
}

/// Makes this process, and all it will start, be killed before others when memory runs out.
pub(crate) fn die_first() -> Result<(), Fault> {
    const FILE: &str = "/proc/self/oom_score_adj";
    let now = fs::read_to_string(FILE).during(|| format!("read {FILE}"))?;
    let now: i32 = now.trim().parse().unwrap_or(0);
    put(FILE, &(now + OOM_SCORE).min(1000).to_string())
}

fn bound(resource: Resource, most: u64) -> Result<(), Fault> {
    let most = getrlimit(resource)
        .maximum
        .map_or(most, |hard| hard.min(most));
    let both = Rlimit {
        current: Some(most),
        maximum: Some(most),
    };
    setrlimit(resource, both).during(|| format!("bound {resource:?}"))
}

fn number(path: &str) -> Option<u64> {
    fs::read_to_string(path).ok()?.trim().parse().ok()
}
