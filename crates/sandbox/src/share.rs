//! The share of sandboxes in resources that the host or its user has a limited number of: process ids, inotify
//! instances, queued signals, namespaces.
//!
//! The kernel counts most of them for the user who runs the daemon, across all processes. It also counts them for
//! each user namespace. So each sandbox gets a limit of its own, and all sandboxes of a keeper a common one that leaves
//! the user a part.

use std::fs;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::confine::put;
use crate::error::{During, Fault};
use crate::plan::Privilege;

/// The most processes and threads of one sandbox, even on a large host.
const TASKS_MAX: u64 = 16_384;
/// The most open files of one process.
const FILES_MAX: u64 = 65_536;
/// The `oom_score_adj` of commands: the kernel kills them first when memory runs out.
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

/// Commands cannot make namespaces; the seccomp filter refuses it first.
const NAMESPACES: [&str; 8] = ["user", "mnt", "pid", "net", "ipc", "uts", "cgroup", "time"];

/// Other limits that the kernel counts for a user.
const COUNTED: [Resource; 3] = [Resource::Sigpending, Resource::Msgqueue, Resource::Memlock];

/// How many processes and threads all sandboxes of a keeper may have together, and each.
fn tasks() -> (u64, u64) {
    let most = ["/proc/sys/kernel/pid_max", "/proc/sys/kernel/threads-max"];
    let most = most.iter().filter_map(|path| number(path)).min();
    let hard = getrlimit(Resource::Nproc).maximum.unwrap_or(u64::MAX);
    // Missing files mean the kernel's default.
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

/// Sets the common limits of this keeper's sandboxes.
///
/// A limit of the process that makes a user namespace applies to the sum of everything in it and in the other
/// namespaces that the same user made.
pub(crate) fn bound_all(privilege: Privilege) -> Result<(), Fault> {
    bound(Resource::Nproc, tasks().0)?;
    for counted in COUNTED {
        if let Some(hard) = getrlimit(counted).maximum {
            bound(counted, hard - hard / 4)?;
        }
    }
    if privilege == Privilege::Root {
        // As root, the sandbox user is used by nothing else, and the initial user namespace is shared.
        return Ok(());
    }
    for (file, users) in WATCHED {
        if let Some(most) = number(users) {
            put(file, &(most - most / 4).to_string())?;
        }
    }
    Ok(())
}

/// Sets the limits of this process's user namespace, which is that of a sandbox.
pub(crate) fn bound_sandbox() -> Result<(), Fault> {
    for kind in NAMESPACES {
        let file = format!("/proc/sys/user/max_{kind}_namespaces");
        match put(&file, "0") {
            // This kernel does not have this resource.
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

/// The memory of the host, or of this process's control group if that is less.
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

/// Sets `oom_score_adj` of this process and all its later children.
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
