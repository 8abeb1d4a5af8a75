//! Limits of a command, and what enforces each.
//!
//! Control groups are exact. Where this process may not make them, the kernel counts processes by `RLIMIT_NPROC`,
//! and memory is polled every few milliseconds, so that a fast command can exceed it a little. What neither can
//! enforce is refused.

use std::os::fd::BorrowedFd;
use std::sync::{Arc, OnceLock};

use serde::{Deserialize, Serialize};

use crate::cgroup::{Controller, Group, Host};
use crate::error::{Error, Result};
use crate::plan::{Confinement, ExitStatus};
use crate::share;
use crate::standing::Standing;

/// As a limit in bytes: not even the host's default.
pub const UNLIMITED: u64 = u64::MAX;
/// As a limit on a number of things: not even the host's default.
pub const UNLIMITED_COUNT: u32 = u32::MAX;

/// The limits of commands without limits of their own, to protect the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Defaults {
    /// Memory: for all commands together with a control group, else for each.
    pub memory_bytes: u64,
    /// Processes and threads of all commands of a sandbox.
    pub pids: u32,
    /// Open files of each process.
    pub nofile: u32,
}

impl Defaults {
    /// A fraction.
    pub fn of_this_host() -> Defaults {
        static DEFAULTS: OnceLock<Defaults> = OnceLock::new();
        *DEFAULTS.get_or_init(|| {
            let count = |number: u64| u32::try_from(number).unwrap_or(u32::MAX);
            let total = share::total_memory();
            Defaults {
                memory_bytes: total - total / 4,
                pids: count(share::tasks_of_one()),
                nofile: count(share::files_of_one()),
            }
        })
    }
}

/// The control groups that a command is in before its own limits are set.
#[derive(Debug, Default)]
pub(crate) struct Around {
    pub confinement: Confinement,
    /// The group of all commands.
    pub standing: Option<Arc<Standing>>,
}

/// What a command and everything it starts may use. Missing limits are those of [`Defaults`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Limits {
    /// Memory.
    pub memory_bytes: Option<u64>,
    /// Processors, 0.5 being half of one.
    pub cpus: Option<f64>,
    /// Processes and threads.
    pub pids: Option<u32>,
    /// Open files of each process.
    pub nofile: Option<u32>,
    /// The size of each file that it writes.
    pub file_bytes: Option<u64>,
}

impl Limits {
    /// Refuses limits that are invalid or cannot be enforced here.
    pub fn check(&self) -> Result<()> {
        if *self == Limits::default() {
            return Ok(());
        }
        Bounds::set(self, &Around::default()).map(drop)
    }
}

/// One of the limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Limit {
    /// Memory of all processes together.
    Memory,
    /// Processors.
    Cpus,
    /// Processes and threads.
    Pids,
    /// Open files of one process.
    OpenFiles,
    /// Size of one file.
    FileSize,
    /// Bytes written to the disk; enforced by the caller.
    Disk,
    /// Bytes of the disk that stay free; enforced by the caller.
    DiskReserve,
}

impl Limit {
    /// Its short name.
    pub fn name(self) -> &'static str {
        match self {
            Limit::Memory => "memory",
            Limit::Cpus => "cpus",
            Limit::Pids => "pids",
            Limit::OpenFiles => "nofile",
            Limit::FileSize => "file_size",
            Limit::Disk => "disk",
            Limit::DiskReserve => "disk_reserve",
        }
    }
}

/// What enforces a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Mechanism {
    /// A control group of the unified hierarchy.
    CgroupV2,
    /// A control group of a controller's own hierarchy.
    CgroupV1,
    /// `setrlimit`. Processes are counted for the whole sandbox, so the end of other commands leaves more for this one.
    Rlimit,
    /// Polling every few milliseconds, and killing all processes above the limit.
    Poll,
}

impl Mechanism {
    /// Its short name.
    pub fn name(self) -> &'static str {
        match self {
            Mechanism::CgroupV2 => "cgroup-v2",
            Mechanism::CgroupV1 => "cgroup-v1",
            Mechanism::Rlimit => "rlimit",
            Mechanism::Poll => "poll",
        }
    }
}

/// A limit in force.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Enforced {
    /// What is limited.
    pub limit: Limit,
    /// What enforces it.
    pub by: Mechanism,
}

/// What a supervisor has to enforce itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Orders {
    /// The memory to watch, in bytes.
    pub memory: Option<u64>,
    /// Processes and threads to count.
    pub pids: Option<u32>,
    /// Processes and threads of all commands in the sandbox to count.
    pub pids_of_all: Option<u32>,
    pub nofile: Option<u32>,
    /// The hard limit on open files.
    pub nofile_most: Option<u32>,
    pub file_bytes: Option<u64>,
}

/// The limits of one command, set up.
#[derive(Debug)]
pub(crate) struct Bounds {
    pub enforced: Vec<Enforced>,
    /// The default limits among them.
    pub defaults: Vec<Enforced>,
    pub orders: Orders,
    group: Option<Group>,
    /// The group that limits its memory, if it has none of its own.
    standing: Option<Arc<Standing>>,
}

impl Bounds {
    /// Makes what is needed to enforce `limits`.
    pub(crate) fn set(limits: &Limits, around: &Around) -> Result<Bounds> {
        check(limits)?;
        let mut bounds = Bounds {
            enforced: Vec::new(),
            defaults: Vec::new(),
            orders: Orders {
                nofile: limits.nofile.filter(|count| *count != UNLIMITED_COUNT),
                file_bytes: limits.file_bytes,
                ..Orders::default()
            },
            group: None,
            standing: None,
        };
        bounds.set_defaults(limits, around);
        let refused = bounds.group(limits, around.standing.as_deref())?;
        let grouped: Vec<_> = bounds.enforced.iter().map(|held| held.limit).collect();
        if limits.cpus.is_some() && !grouped.contains(&Limit::Cpus) {
            return Err(Error::Unenforceable {
                limit: Limit::Cpus,
                reason: refused.unwrap_or_else(|| "there is no cpu controller".into()),
            });
        }
        let memory = limits.memory_bytes.filter(|bytes| *bytes != UNLIMITED);
        if let Some(bytes) = memory.filter(|_| !grouped.contains(&Limit::Memory)) {
            bounds.orders.memory = Some(bytes);
            bounds.hold(Limit::Memory, Mechanism::Poll);
        }
        let pids = limits.pids.filter(|count| *count != UNLIMITED_COUNT);
        if let Some(count) = pids.filter(|_| !grouped.contains(&Limit::Pids)) {
            bounds.orders.pids = Some(count);
            bounds.hold(Limit::Pids, Mechanism::Rlimit);
        }
        if bounds.orders.nofile.is_some() {
            bounds.hold(Limit::OpenFiles, Mechanism::Rlimit);
        }
        if limits.file_bytes.is_some() {
            bounds.hold(Limit::FileSize, Mechanism::Rlimit);
        }
        Ok(bounds)
    }

    fn hold(&mut self, limit: Limit, by: Mechanism) {
        self.enforced.push(Enforced { limit, by });
    }

    /// Applies the host's defaults to limits that are not set.
    fn set_defaults(&mut self, limits: &Limits, around: &Around) {
        let defaults = Defaults::of_this_host();
        let mut hold = |limit, by| self.defaults.push(Enforced { limit, by });
        if limits.memory_bytes.is_none() {
            match &around.standing {
                Some(standing) => {
                    hold(Limit::Memory, standing.by());
                    self.standing = Some(standing.clone());
                }
                None => {
                    hold(Limit::Memory, Mechanism::Poll);
                    self.orders.memory = Some(defaults.memory_bytes);
                }
            }
        }
        if around.confinement == Confinement::ViewOnly {
            return;
        }
        if limits.pids != Some(UNLIMITED_COUNT) {
            // Its own limit does not replace that of the sandbox.
            self.orders.pids_of_all = Some(defaults.pids);
        }
        if limits.pids.is_none() {
            hold(Limit::Pids, Mechanism::Rlimit);
        }
        if limits.nofile.is_none() {
            self.orders.nofile_most = Some(defaults.nofile);
            hold(Limit::OpenFiles, Mechanism::Rlimit);
        }
    }

    /// Makes a control group for the limits it can enforce; or says why it cannot.
    fn group(&mut self, limits: &Limits, standing: Option<&Standing>) -> Result<Option<String>> {
        let lifted = limits.memory_bytes == Some(UNLIMITED);
        // To have no limit, it must leave the group of all commands.
        let memory = limits.memory_bytes.is_some() && (!lifted || standing.is_some());
        let pids = limits.pids.is_some_and(|count| count != UNLIMITED_COUNT);
        let wanted = [
            (Controller::Memory, memory),
            (Controller::Pids, pids),
            (Controller::Cpu, limits.cpus.is_some()),
        ];
        let wanted: Vec<_> = wanted
            .into_iter()
            .filter(|want| want.1)
            .map(|want| want.0)
            .collect();
        if wanted.is_empty() {
            return Ok(None);
        }
        let mut group = Group::default();
        let mut refused = None;
        for (controller, place) in Host::look()?.places(&wanted) {
            let place = place.map(|place| match standing.filter(|_| !lifted) {
                Some(standing) => standing.place(controller, place),
                None => place,
            });
            match place.and_then(|place| group.hold(&place, controller, limits)) {
                Ok(_) if controller == Controller::Memory && lifted => {}
                Ok(by) => self.hold(controller.limit(), by),
                // The least important one is requested last, and only its reason is needed.
                Err(reason) => refused = Some(reason),
            }
        }
        self.group = Some(group);
        Ok(refused)
    }

    /// The `cgroup.procs` files of its groups.
    pub(crate) fn doors(&self) -> Vec<BorrowedFd<'_>> {
        self.group.as_ref().map(Group::doors).unwrap_or_default()
    }

    /// The limit that ended a command or a process of it, if the supervisor cannot know it.
    pub(crate) fn cause(&self, status: ExitStatus) -> Option<Enforced> {
        let held = |limit| {
            self.enforced
                .iter()
                .find(|held| held.limit == limit)
                .copied()
        };
        if self.group.as_ref().is_some_and(Group::ran_out_of_memory) {
            return held(Limit::Memory);
        }
        // Shells report a killed child as 128 + 9.
        let killed = [
            ExitStatus::Signal(libc::SIGKILL),
            ExitStatus::Code(128 + libc::SIGKILL),
        ];
        if let Some(standing) = self.standing.as_ref().filter(|_| killed.contains(&status))
            && standing.ran_out_of_memory()
        {
            let (limit, by) = (Limit::Memory, standing.by());
            return Some(Enforced { limit, by });
        }
        held(Limit::FileSize).filter(|_| status == ExitStatus::Signal(libc::SIGXFSZ))
    }
}

/// Refuses values that no mechanism can enforce.
fn check(limits: &Limits) -> Result<()> {
    const LEAST_MEMORY: u64 = 1024 * 1024;
    let refuse = |limit: Limit, reason: &str| {
        let reason = format!("{}: {reason}", limit.name());
        Err(Error::Invalid {
            what: "limit",
            reason,
        })
    };
    if limits
        .memory_bytes
        .is_some_and(|bytes| bytes < LEAST_MEMORY)
    {
        return refuse(Limit::Memory, "less than 1 MiB");
    }
    if limits
        .cpus
        .is_some_and(|cpus| !(0.01..=10_000.0).contains(&cpus))
    {
        return refuse(Limit::Cpus, "not between 0.01 and 10000");
    }
    if limits.pids == Some(0) {
        return refuse(Limit::Pids, "none at all");
    }
    if limits.nofile.is_some_and(|count| count < 3) {
        return refuse(
            Limit::OpenFiles,
            "less than the three that every command has",
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nonsense_is_refused() {
        let none = Limits::default();
        let wrong = [
            Limits {
                memory_bytes: Some(1000),
                ..none
            },
            Limits {
                cpus: Some(f64::NAN),
                ..none
            },
            Limits {
                cpus: Some(-1.0),
                ..none
            },
            Limits {
                pids: Some(0),
                ..none
            },
            Limits {
                nofile: Some(2),
                ..none
            },
        ];
        for limits in wrong {
            assert!(
                matches!(
                    Bounds::set(&limits, &Around::default()),
                    Err(Error::Invalid { .. })
                ),
                "{limits:?}"
            );
        }
    }

    #[test]
    fn without_limits_there_are_defaults() {
        let bounds = Bounds::set(&Limits::default(), &Around::default()).unwrap();
        assert!(bounds.enforced.is_empty() && bounds.doors().is_empty());
        let defaults = Defaults::of_this_host();
        assert_eq!(bounds.orders.memory, Some(defaults.memory_bytes));
        assert_eq!(bounds.orders.pids_of_all, Some(defaults.pids));
        assert_eq!(bounds.orders.nofile_most, Some(defaults.nofile));
        assert_eq!(bounds.defaults.len(), 3);
        let lifted = Limits {
            memory_bytes: Some(UNLIMITED),
            pids: Some(UNLIMITED_COUNT),
            nofile: Some(UNLIMITED_COUNT),
            ..Limits::default()
        };
        let bounds = Bounds::set(&lifted, &Around::default()).unwrap();
        assert_eq!(bounds.orders, Orders::default());
        assert!(bounds.enforced.is_empty() && bounds.defaults.is_empty());
    }
}
