//! Limits of a command, and what holds it to each of them.
//!
//! Control groups hold a command exactly. Where this process may not make them, the command's
//! processes are counted by the kernel's own limit and their memory is looked at every few
//! milliseconds, which leaves a quick command a little room; what neither can do is refused.

use std::os::fd::BorrowedFd;

use serde::{Deserialize, Serialize};

use crate::cgroup::{Controller, Group, Host};
use crate::error::{Error, Result};
use crate::plan::ExitStatus;

/// What a command may use, with all that it starts. What is not given is not limited.
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
    /// Refuses what makes no sense, or what nothing here holds a command to.
    pub fn check(&self) -> Result<()> {
        if *self == Limits::default() {
            return Ok(());
        }
        Bounds::set(self).map(drop)
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
    /// Bytes written to the disk; for whoever owns it to watch.
    Disk,
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
        }
    }
}

/// What holds a command to a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Mechanism {
    /// A control group of the unified hierarchy.
    CgroupV2,
    /// A control group of a controller's own hierarchy.
    CgroupV1,
    /// The kernel's limits of a process. Processes are counted for the whole sandbox, so
    /// other commands in it that end leave room to this one.
    Rlimit,
    /// Looking at the command's processes every few milliseconds, and killing them all.
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
    /// Memory to watch, in bytes.
    pub memory: Option<u64>,
    /// Processes and threads to count.
    pub pids: Option<u32>,
    pub nofile: Option<u32>,
    pub file_bytes: Option<u64>,
}

/// The limits of one command, set up.
#[derive(Debug)]
pub(crate) struct Bounds {
    pub enforced: Vec<Enforced>,
    pub orders: Orders,
    group: Option<Group>,
}

impl Bounds {
    /// Makes what is needed to enforce `limits`.
    pub(crate) fn set(limits: &Limits) -> Result<Bounds> {
        check(limits)?;
        let mut bounds = Bounds {
            enforced: Vec::new(),
            orders: Orders {
                nofile: limits.nofile,
                file_bytes: limits.file_bytes,
                ..Orders::default()
            },
            group: None,
        };
        let refused = bounds.group(limits)?;
        let grouped: Vec<_> = bounds.enforced.iter().map(|held| held.limit).collect();
        if limits.cpus.is_some() && !grouped.contains(&Limit::Cpus) {
            return Err(Error::Unenforceable {
                limit: Limit::Cpus,
                reason: refused.unwrap_or_else(|| "there is no cpu controller".into()),
            });
        }
        if let Some(bytes) = limits
            .memory_bytes
            .filter(|_| !grouped.contains(&Limit::Memory))
        {
            bounds.orders.memory = Some(bytes);
            bounds.hold(Limit::Memory, Mechanism::Poll);
        }
        if let Some(count) = limits.pids.filter(|_| !grouped.contains(&Limit::Pids)) {
            bounds.orders.pids = Some(count);
            bounds.hold(Limit::Pids, Mechanism::Rlimit);
        }
        if limits.nofile.is_some() {
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

    /// Makes a control group for what it can hold; why it cannot, if it cannot.
    fn group(&mut self, limits: &Limits) -> Result<Option<String>> {
        let wanted = [
            (Controller::Memory, limits.memory_bytes.is_some()),
            (Controller::Pids, limits.pids.is_some()),
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
            match place.and_then(|place| group.hold(&place, controller, limits)) {
                Ok(by) => self.hold(controller.limit(), by),
                // The least of them is asked for last, and only its reason is ever needed.
                Err(reason) => refused = Some(reason),
            }
        }
        self.group = Some(group);
        Ok(refused)
    }

    /// What a process writes itself to, to be held.
    pub(crate) fn doors(&self) -> Vec<BorrowedFd<'_>> {
        self.group.as_ref().map(Group::doors).unwrap_or_default()
    }

    /// The limit that ended a command or a part of it, as far as the supervisor cannot know it.
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
        held(Limit::FileSize).filter(|_| status == ExitStatus::Signal(libc::SIGXFSZ))
    }
}

/// Refuses what no mechanism could mean.
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
                matches!(Bounds::set(&limits), Err(Error::Invalid { .. })),
                "{limits:?}"
            );
        }
    }

    #[test]
    fn no_limit_needs_nothing() {
        let bounds = Bounds::set(&Limits::default()).unwrap();
        assert!(bounds.enforced.is_empty() && bounds.doors().is_empty());
        assert_eq!(bounds.orders, Orders::default());
    }
}
