//! What the kernel is told unasked: that it must forget something.

use std::sync::Arc;

use zerocopy::IntoBytes;

use crate::session::Device;
use crate::wire::{ForgetInode, ForgetName, notice};

/// Tells the kernel what changed without it.
///
/// From within a request only attributes may be forgotten: for the rest the kernel waits for requests under
/// way. Where it does not know the node or the name, or the mount is gone, there is nothing to forget, and
/// nothing is told to the caller.
#[derive(Debug, Clone)]
pub struct Notifier {
    device: Arc<Device>,
}

impl Notifier {
    pub(crate) fn new(device: Arc<Device>) -> Notifier {
        Notifier { device }
    }

    /// A name means something else from now on, or nothing.
    pub fn forget_name(&self, parent: u64, name: &[u8]) {
        let about = ForgetName {
            parent,
            name_len: name.len() as u32,
            flags: 0,
        };
        let body = [about.as_bytes(), name, &[0]].concat();
        self.device.notify(notice::FORGET_NAME, &body);
    }

    /// The attributes of a node and all its data are other ones; what a process wrote through its memory
    /// is asked to be written first.
    pub fn forget_data(&self, node: u64) {
        self.forget_inode(node, 0);
    }

    /// The attributes of a node are other ones.
    pub fn forget_attributes(&self, node: u64) {
        // An offset before the beginning leaves the pages alone.
        self.forget_inode(node, -1);
    }

    fn forget_inode(&self, node: u64, offset: i64) {
        let about = ForgetInode {
            node,
            offset,
            length: 0,
        };
        self.device.notify(notice::FORGET_INODE, about.as_bytes());
    }
}
