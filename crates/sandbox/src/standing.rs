//! The control group around a keeper, which bounds the memory of all its sandboxes together.
//!
//! A command that has no limit of its own is in it with all the others, which costs it nothing. The
//! daemon is outside.

use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::cgroup::{self, CgroupDir, Controller, Host};
use crate::limits::Mechanism;

/// The group with the limit, in it one with the keeper, and those of commands with limits of
/// their own.
#[derive(Debug)]
pub(crate) struct Standing {
    /// Where the group was made.
    base: CgroupDir,
    outer: CgroupDir,
    keeper: PathBuf,
    /// How many processes have been killed in the keeper's group, as far as anybody has looked.
    killed: AtomicU64,
}

impl Standing {
    /// Makes it, if this process may make control groups that limit memory.
    pub(crate) fn make(memory: u64) -> Option<Standing> {
        let places = Host::look().ok()?.places(&[Controller::Memory]);
        let base = places.into_iter().next()?.1.ok()?;
        cgroup::sweep(base.dir());
        let outer = base.dir().join(cgroup::name_of_all());
        let keeper = outer.join("keeper");
        let limit = match base.by() {
            Mechanism::CgroupV2 => "memory.max",
            _ => "memory.limit_in_bytes",
        };
        let made = fs::create_dir(&outer)
            .and_then(|()| fs::write(outer.join(limit), memory.to_string()))
            .and_then(|()| fs::create_dir(&keeper));
        let standing = Standing {
            outer: CgroupDir::new(outer, base.by()),
            base,
            keeper,
            killed: AtomicU64::new(0),
        };
        // What could not be made whole is removed again when it is dropped.
        made.is_ok().then_some(standing)
    }

    /// Puts a process into it, and so all that it will start.
    pub(crate) fn enter(&self, process: u32) -> bool {
        fs::write(self.keeper.join("cgroup.procs"), process.to_string()).is_ok()
    }

    pub(crate) fn by(&self) -> Mechanism {
        self.base.by()
    }

    /// The place inside it for a group that would be made at `place`.
    pub(crate) fn place(&self, controller: Controller, place: CgroupDir) -> CgroupDir {
        let unified = place.by() == Mechanism::CgroupV2;
        let inside = place == self.base && (!unified || self.outer.offers(controller));
        if inside { self.outer.clone() } else { place }
    }

    /// Whether a process in the keeper's group was killed for want of memory since this was last
    /// asked.
    pub(crate) fn ran_out_of_memory(&self) -> bool {
        let file = match self.by() {
            Mechanism::CgroupV2 => "memory.events",
            _ => "memory.oom_control",
        };
        let killed = cgroup::kills(&self.keeper.join(file));
        self.killed.swap(killed, Ordering::Relaxed) < killed
    }
}

impl Drop for Standing {
    fn drop(&mut self) {
        cgroup::bury(vec![self.keeper.clone(), self.outer.dir().to_owned()]);
    }
}
