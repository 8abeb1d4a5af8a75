//! Kernel requests in, operations on the view out.

use std::sync::Arc;
use std::sync::Mutex;

use avfs_vault::VaultPath;
use fuser::{Filesystem, INodeNo, Notifier};

use super::gate::Gate;
use super::{ReadWritePlan, Room};
use crate::Result;

pub struct Shared {
    pub gate: Gate,
    room: Mutex<Room>,
    _plan: ReadWritePlan,
}

impl Shared {
    pub fn new(plan: ReadWritePlan) -> Result<Shared> {
        Ok(Shared {
            gate: Gate::default(),
            room: Mutex::new(plan.room),
            _plan: plan,
        })
    }

    pub fn changed(&self, _path: &VaultPath, notifier: &Notifier) {
        let _ = notifier.inval_inode(INodeNo::ROOT, 0, 0);
    }

    pub fn set_room(&self, room: Room) {
        *self.room.lock().expect("no holder of this lock panics") = room;
    }
}

pub struct ViewFilesystem {
    _shared: Arc<Shared>,
}

impl ViewFilesystem {
    pub fn new(shared: Arc<Shared>) -> ViewFilesystem {
        ViewFilesystem { _shared: shared }
    }
}

impl Filesystem for ViewFilesystem {}
