//! The structures of the protocol: `linux/fuse.h` of version 7.45.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// The only major version.
pub const MAJOR: u32 = 7;
/// The newest minor version that is known here.
pub const MINOR: u32 = 45;
/// Since this version all structures have the sizes below.
pub const MINOR_LEAST: u32 = 23;

/// A reader of the device must offer at least this much.
pub const READ_BUFFER_LEAST: usize = 8192;

pub mod opcode {
    pub const LOOKUP: u32 = 1;
    pub const FORGET: u32 = 2;
    pub const GETATTR: u32 = 3;
    pub const SETATTR: u32 = 4;
    pub const READLINK: u32 = 5;
    pub const SYMLINK: u32 = 6;
    pub const MKNOD: u32 = 8;
    pub const MKDIR: u32 = 9;
    pub const UNLINK: u32 = 10;
    pub const RMDIR: u32 = 11;
    pub const RENAME: u32 = 12;
    pub const LINK: u32 = 13;
    pub const OPEN: u32 = 14;
    pub const READ: u32 = 15;
    pub const WRITE: u32 = 16;
    pub const STATFS: u32 = 17;
    pub const RELEASE: u32 = 18;
    pub const FSYNC: u32 = 20;
    pub const SETXATTR: u32 = 21;
    pub const GETXATTR: u32 = 22;
    pub const LISTXATTR: u32 = 23;
    pub const REMOVEXATTR: u32 = 24;
    pub const INIT: u32 = 26;
    pub const OPENDIR: u32 = 27;
    pub const READDIR: u32 = 28;
    pub const RELEASEDIR: u32 = 29;
    pub const FSYNCDIR: u32 = 30;
    pub const CREATE: u32 = 35;
    pub const DESTROY: u32 = 38;
    pub const BATCH_FORGET: u32 = 42;
    pub const FALLOCATE: u32 = 43;
    pub const READDIRPLUS: u32 = 44;
    pub const RENAME2: u32 = 45;
    pub const LSEEK: u32 = 46;
    pub const COPY_FILE_RANGE: u32 = 47;
    pub const TMPFILE: u32 = 51;
    pub const COPY_FILE_RANGE_64: u32 = 53;
}

/// Which fields of [`SetAttrIn`] are set.
pub mod valid {
    pub const MODE: u32 = 1 << 0;
    pub const UID: u32 = 1 << 1;
    pub const GID: u32 = 1 << 2;
    pub const SIZE: u32 = 1 << 3;
    pub const ATIME: u32 = 1 << 4;
    pub const MTIME: u32 = 1 << 5;
    pub const HANDLE: u32 = 1 << 6;
    pub const ATIME_NOW: u32 = 1 << 7;
    pub const MTIME_NOW: u32 = 1 << 8;
    pub const KILL_PRIVILEGES: u32 = 1 << 11;
}

/// Flags of an open file for the kernel.
pub mod opened {
    pub const KEEP_CACHE: u32 = 1 << 1;
    pub const CACHE_DIRECTORY: u32 = 1 << 3;
}

/// Of `fsync`: fdatasync.
pub const FSYNC_DATA_ONLY: u32 = 1 << 0;

/// Codes of notifications.
pub mod notice {
    pub const FORGET_INODE: i32 = 2;
    pub const FORGET_NAME: i32 = 3;
}

macro_rules! structures {
    ($($(#[$about:meta])* $name:ident { $($field:ident: $kind:ty),* $(,)? })*) => {$(
        $(#[$about])*
        #[derive(Debug, Clone, Copy, Default, FromBytes, IntoBytes, KnownLayout, Immutable)]
        #[repr(C)]
        pub struct $name { $(pub $field: $kind),* }
    )*};
}

// Received structures.
structures! {
    InHeader {
        len: u32, opcode: u32, unique: u64, node: u64,
        uid: u32, gid: u32, pid: u32, extensions: u16, padding: u16,
    }
    InitIn { major: u32, minor: u32, max_readahead: u32, flags: u32 }
    /// What newer kernels add. Later fields are not used.
    InitMore { flags2: u32 }
    ForgetIn { times: u64 }
    BatchForgetIn { count: u32, padding: u32 }
    ForgetOne { node: u64, times: u64 }
    SetAttrIn {
        valid: u32, padding: u32, handle: u64, size: u64, lock_owner: u64,
        atime: i64, mtime: i64, ctime: i64,
        atime_nanos: u32, mtime_nanos: u32, ctime_nanos: u32,
        mode: u32, unused4: u32, uid: u32, gid: u32, unused5: u32,
    }
    MknodIn { mode: u32, device: u32, umask: u32, padding: u32 }
    MkdirIn { mode: u32, umask: u32 }
    RenameIn { directory: u64 }
    Rename2In { directory: u64, flags: u32, padding: u32 }
    LinkIn { node: u64 }
    OpenIn { flags: u32, open_flags: u32 }
    /// Also for O_TMPFILE.
    CreateIn { flags: u32, mode: u32, umask: u32, open_flags: u32 }
    /// Also for directories.
    ReadIn {
        handle: u64, offset: u64, size: u32, read_flags: u32,
        lock_owner: u64, flags: u32, padding: u32,
    }
    WriteIn {
        handle: u64, offset: u64, size: u32, write_flags: u32,
        lock_owner: u64, flags: u32, padding: u32,
    }
    ReleaseIn { handle: u64, flags: u32, release_flags: u32, lock_owner: u64 }
    FsyncIn { handle: u64, flags: u32, padding: u32 }
    SetXattrIn { size: u32, flags: u32 }
    GetXattrIn { size: u32, padding: u32 }
    FallocateIn { handle: u64, offset: u64, length: u64, mode: u32, padding: u32 }
    LseekIn { handle: u64, offset: u64, whence: u32, padding: u32 }
    CopyFileRangeIn {
        from: u64, from_offset: u64, to_node: u64, to: u64, to_offset: u64,
        length: u64, flags: u64,
    }
}

// Sent structures.
structures! {
    OutHeader { len: u32, error: i32, unique: u64 }
    InitOut {
        major: u32, minor: u32, max_readahead: u32, flags: u32,
        max_background: u16, congestion_threshold: u16, max_write: u32, time_granularity: u32,
        max_pages: u16, map_alignment: u16, flags2: u32, unused: [u32; 7],
    }
    Attr {
        number: u64, size: u64, blocks: u64, atime: i64, mtime: i64, ctime: i64,
        atime_nanos: u32, mtime_nanos: u32, ctime_nanos: u32,
        mode: u32, links: u32, uid: u32, gid: u32, device: u32, block: u32, flags: u32,
    }
    EntryOut {
        node: u64, generation: u64, entry_valid: u64, attr_valid: u64,
        entry_valid_nanos: u32, attr_valid_nanos: u32, attr: Attr,
    }
    AttrOut { valid: u64, valid_nanos: u32, padding: u32, attr: Attr }
    OpenOut { handle: u64, flags: u32, backing: i32 }
    WriteOut { size: u32, padding: u32 }
    StatfsOut {
        blocks: u64, free: u64, available: u64, files: u64, files_free: u64,
        block: u32, name_max: u32, fragment: u32, padding: u32, spare: [u32; 6],
    }
    GetXattrOut { size: u32, padding: u32 }
    LseekOut { offset: u64 }
    CopyFileRangeOut { copied: u64 }
    /// The name follows, then zeros up to a multiple of eight.
    DirEntry { number: u64, position: u64, name_len: u32, kind: u32 }
    ForgetInode { node: u64, offset: i64, length: i64 }
    /// The name and a zero follow.
    ForgetName { parent: u64, name_len: u32, flags: u32 }
}
