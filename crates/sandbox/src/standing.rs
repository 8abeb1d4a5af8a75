//! The control group around a keeper, which limits the memory of all its sandboxes together.
//!
//! A command without a limit of its own stays in it with all others, which costs nothing. The daemon is outside.

use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::cgroup::{self, CgroupDir, Controller, Host};
use crate::limits::Mechanism;

/// The group with the limit; inside it one group for the keeper, and those of commands with limits of their own.
#[derive(Debug)]
pub(crate) struct Standing {
    /// Where the group was made.
    base: CgroupDir,
    outer: CgroupDir,
    keeper: PathBuf,
    /// How many processes had been killed in the keeper's group when it was last checked.
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
        // A partly made group is removed when it is dropped.
        made.is_ok().then_some(standing)
    }

    /// Moves a process into it, so that its children start there.
    pub(crate) fn enter(&self, process: u32) -> bool {
        fs::write(self.keeper.join("cgroup.procs"), process.to_string()).is_ok()
    }

    pub(crate) fn by(&self) -> Mechanism {
        self.base.by()
    }

    /// Where inside it a group for `place` is made.
    pub(crate) fn place(&self, controller: Controller, place: CgroupDir) -> CgroupDir {
        let unified = place.by() == Mechanism::CgroupV2;
        let inside = place == self.base && (!unified || self.outer.offers(controller));
        if inside { self.outer.clone() } else { place }
    }

    /// Whether a process in the keeper's group was OOM-killed since the last call.
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
