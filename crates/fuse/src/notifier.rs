//! Notifications to the kernel: that it must drop cached data.

use std::sync::Arc;

use zerocopy::IntoBytes;

use crate::session::Device;
use crate::wire::{ForgetInode, ForgetName, notice};

/// Tells the kernel about changes that it did not request.
///
/// Within a request only attributes may be invalidated: for the rest the kernel waits for running requests. If the kernel
/// does not know the node or name, or the mount is gone, there is nothing to drop, and that is not an error.
#[derive(Debug, Clone)]
pub struct Notifier {
    device: Arc<Device>,
}

impl Notifier {
    pub(crate) fn new(device: Arc<Device>) -> Notifier {
        Notifier { device }
    }

    /// A name has changed its meaning, or was removed.
    pub fn forget_name(&self, parent: u64, name: &[u8]) {
        let about = ForgetName {
            parent,
            name_len: name.len() as u32,
            flags: 0,
        };
        let body = [about.as_bytes(), name, &[0]].concat();
        self.device.notify(notice::FORGET_NAME, &body);
    }

    /// The attributes and all data of a node have changed; dirty pages of mappings are written back first.
    pub fn forget_data(&self, node: u64) {
        self.forget_inode(node, 0);
    }

    /// The attributes of a node have changed.
    pub fn forget_attributes(&self, node: u64) {
        // A negative offset keeps the cached pages.
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
