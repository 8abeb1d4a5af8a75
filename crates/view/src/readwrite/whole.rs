//! Operations on the whole view: forgotten nodes, statfs.

use std::sync::atomic::Ordering;

use avfs_fuse::Statistics;
use rustix::fs::{Mode, OFlags};

use super::host::{self, Io};
use super::nodes::Body;
use super::view::View;

impl View {
    /// The kernel dropped `count` references to a node.
    pub fn forget(&self, number: u64, count: u64) {
        if self.table().forget(number, count) {
            self.close_directory(number);
        }
    }

    /// How many nodes the kernel holds now.
    pub fn nodes(&self) -> usize {
        self.table().len()
    }

    pub fn sync_directory(&self, number: u64) -> Io<()> {
        match self.body(number)? {
            Body::Directory { in_upper: true, .. } => {
                let directory = self.directory(number)?;
                let flags = OFlags::RDONLY | OFlags::DIRECTORY;
                let opened = host::open(&*directory, b".", flags, Mode::empty())?;
                rustix::fs::fsync(&opened)
            }
            _ => Ok(()),
        }
    }

    pub fn statistics(&self) -> Io<Statistics> {
        let Some(upper) = &self.upper else {
            let (block, files) = (4096, self.root.files());
            return Ok(Statistics {
                block: block as u32,
                blocks: self.root.bytes().div_ceil(block),
                free: 0,
                available: 0,
                files,
                files_free: 0,
            });
        };
        let host = rustix::fs::fstatvfs(&**upper)?;
        let room = self.room();
        let block = host.f_frsize.max(1);
        let left = |room: Option<i64>| room.map_or(u64::MAX, |left| left.max(0) as u64);
        Ok(Statistics {
            block: block as u32,
            blocks: host.f_blocks,
            free: host.f_bfree.min(left(room.bytes) / block),
            available: host.f_bavail.min(left(room.bytes) / block),
            files: host.f_files,
            files_free: host.f_ffree.min(left(room.files)),
        })
    }

    /// Flushes what was written through mappings to the files.
    pub fn flush_mappings(&self) {
        let Some(notifier) = self.notifier.get() else {
            return;
        };
        for node in self.handles.maybe_mapped() {
            // Invalidating makes the kernel write dirty pages back first. A node that it has forgotten has none.
            notifier.forget_data(node);
        }
    }

    pub fn stop(&self) {
        self.flush_mappings();
        self.stopped.store(true, Ordering::Release);
    }
}
