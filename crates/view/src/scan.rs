//! One entry of a layer's upper directory, with everything that a commit needs.
//!
//! Runs in the scanner process, which is single-threaded and so may change its working directory.

use std::ffi::CStr;
use std::io;

use avfs_vault::XattrMap;
use rustix::fs::{
    AtFlags, CWD, FileType, Statx, StatxFlags, lgetxattr, llistxattr, readlinkat, statx,
};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

/// The longest list of attribute names that the kernel gives, and the longest value.
const XATTR_MAX: usize = 64 << 10;
/// The most bytes of attributes of one entry; if it has more, none are stored, and it is reported.
pub const XATTRS_BYTES_MAX: usize = 64 << 10;

/// Prefixes of attributes that are listed without their values and never stored: in a view, overlayfs would interpret
/// them.
pub(crate) const UNKEPT: &[u8] = b"user.overlay.";

/// One name in an upper directory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UpperEntry {
    /// The path from the upper directory, joined by `/`; empty for the directory itself.
    pub path: Vec<u8>,
    pub kind: UpperKind,
    pub mode: u32,
    pub mtime: (i64, u32),
    pub ctime: (i64, u32),
    pub ino: u64,
    pub xattrs: XattrMap,
    /// It has more attributes than are stored; then none are stored.
    pub xattrs_lost: bool,
}

impl UpperEntry {
    /// Its approximate size in a message.
    pub fn weight(&self) -> usize {
        let own = match &self.kind {
            UpperKind::Symlink { target } => target.len(),
            UpperKind::Directory { redirect, .. } => redirect.as_ref().map_or(0, Vec::len),
            _ => 0,
        };
        self.path.len() + own + self.xattrs.bytes() + 64
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum UpperKind {
    /// A whiteout: the name is removed.
    Whiteout,
    Directory {
        /// Opaque: nothing below shows through.
        opaque: bool,
        /// Redirected: this directory shows through.
        redirect: Option<Vec<u8>>,
    },
    File {
        size: u64,
        links: u32,
    },
    Symlink {
        target: Vec<u8>,
    },
    Fifo,
    Socket,
    Device,
}

/// Which attribute names overlayfs uses in this mount; commands can set the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum MarkNames {
    /// Mounted by root.
    Trusted,
    /// Mounted in a user namespace, with `userxattr`.
    User,
}

impl MarkNames {
    fn prefix(self) -> &'static [u8] {
        match self {
            MarkNames::Trusted => b"trusted.overlay.",
            MarkNames::User => b"user.overlay.",
        }
    }
}

/// The entry `name` of the working directory.
pub fn read_entry(name: &CStr, path: Vec<u8>, marks: MarkNames) -> io::Result<UpperEntry> {
    let stat = statx(
        CWD,
        name,
        AtFlags::SYMLINK_NOFOLLOW,
        StatxFlags::BASIC_STATS,
    )?;
    let file_type = FileType::from_raw_mode(u32::from(stat.stx_mode));
    let attributes = match file_type {
        FileType::RegularFile | FileType::Directory => read_attributes(name, marks)?,
        _ => Attributes::default(),
    };
    Ok(UpperEntry {
        path,
        kind: kind_of(name, &stat, file_type, attributes.marks)?,
        mode: u32::from(stat.stx_mode) & 0o7777,
        mtime: (stat.stx_mtime.tv_sec, stat.stx_mtime.tv_nsec),
        ctime: (stat.stx_ctime.tv_sec, stat.stx_ctime.tv_nsec),
        ino: stat.stx_ino,
        xattrs: attributes.xattrs.into_iter().collect(),
        xattrs_lost: attributes.lost,
    })
}

fn kind_of(name: &CStr, stat: &Statx, kind: FileType, marks: Marks) -> io::Result<UpperKind> {
    Ok(match kind {
        FileType::Directory => UpperKind::Directory {
            opaque: marks.opaque,
            redirect: marks.redirect,
        },
        FileType::RegularFile => UpperKind::File {
            size: stat.stx_size,
            links: stat.stx_nlink,
        },
        FileType::Symlink => UpperKind::Symlink {
            target: readlinkat(CWD, name, Vec::new())?.into_bytes(),
        },
        FileType::Fifo => UpperKind::Fifo,
        FileType::Socket => UpperKind::Socket,
        FileType::CharacterDevice if stat.stx_rdev_major == 0 && stat.stx_rdev_minor == 0 => {
            UpperKind::Whiteout
        }
        _ => UpperKind::Device,
    })
}

/// The marks of overlayfs on a directory.
#[derive(Default)]
struct Marks {
    opaque: bool,
    redirect: Option<Vec<u8>>,
}

/// The attributes of an entry that are stored, or that there are too many.
#[derive(Default)]
struct Attributes {
    xattrs: Vec<(Vec<u8>, Vec<u8>)>,
    lost: bool,
    marks: Marks,
}

fn read_attributes(name: &CStr, names_of_marks: MarkNames) -> io::Result<Attributes> {
    let mut short = [0u8; 4096];
    let long;
    let names = match llistxattr(name, &mut short[..]) {
        Ok(length) => &short[..length],
        Err(Errno::NOTSUP) => return Ok(Attributes::default()),
        Err(Errno::RANGE) => {
            let mut buffer = vec![0u8; XATTR_MAX];
            match llistxattr(name, buffer.as_mut_slice()) {
                Ok(length) => buffer.truncate(length),
                Err(Errno::RANGE | Errno::TOOBIG) => return unlisted(name, names_of_marks),
                Err(error) => return Err(error.into()),
            }
            long = buffer;
            &long
        }
        Err(Errno::TOOBIG) => return unlisted(name, names_of_marks),
        Err(error) => return Err(error.into()),
    };
    let mut found = Attributes::default();
    let mut bytes = 0;
    let mut value = Vec::new();
    let names = names.split(|&byte| byte == 0);
    for attribute in names.filter(|name| !name.is_empty()) {
        match attribute.strip_prefix(names_of_marks.prefix()) {
            Some(b"opaque") => {
                found.marks.opaque = read_xattr(name, attribute, &mut value)? == Some(b"y");
            }
            Some(b"redirect") => {
                let redirect = read_xattr(name, attribute, &mut value)?;
                found.marks.redirect = redirect.map(<[u8]>::to_vec);
            }
            // Other attributes of overlayfs itself.
            Some(name) if !name.starts_with(b"overlay.") => {}
            // Set by a command: overlayfs escapes them with another `overlay.`, or uses another prefix itself. No view could show
            // them, so only their existence is reported.
            _ if attribute.starts_with(UNKEPT) => {
                bytes += attribute.len();
                if bytes <= XATTRS_BYTES_MAX {
                    found.xattrs.push((attribute.to_vec(), Vec::new()));
                }
            }
            None if attribute.starts_with(b"user.") && !found.lost => {
                let Some(value) = read_xattr(name, attribute, &mut value)? else {
                    continue;
                };
                bytes += attribute.len() + value.len();
                if bytes > XATTRS_BYTES_MAX {
                    (found.xattrs, found.lost) = (Vec::new(), true);
                } else {
                    found.xattrs.push((attribute.to_vec(), value.to_vec()));
                }
            }
            _ => {}
        }
    }
    Ok(found)
}

/// An entry with more attributes than the kernel can list: only overlayfs's own are read, by name.
fn unlisted(name: &CStr, names_of_marks: MarkNames) -> io::Result<Attributes> {
    let mut value = Vec::new();
    let mut mark = |mark: &[u8]| -> io::Result<Option<Vec<u8>>> {
        let attribute = [names_of_marks.prefix(), mark].concat();
        Ok(read_xattr(name, &attribute, &mut value)?.map(<[u8]>::to_vec))
    };
    let marks = Marks {
        opaque: mark(b"opaque")?.is_some_and(|value| value == b"y"),
        redirect: mark(b"redirect")?,
    };
    Ok(Attributes {
        xattrs: Vec::new(),
        lost: true,
        marks,
    })
}

/// The value of one attribute, in a reused buffer.
fn read_xattr<'a>(
    name: &CStr,
    attribute: &[u8],
    buffer: &'a mut Vec<u8>,
) -> io::Result<Option<&'a [u8]>> {
    buffer.resize(XATTR_MAX, 0);
    match lgetxattr(name, attribute, buffer.as_mut_slice()) {
        Ok(length) => Ok(Some(&buffer[..length])),
        Err(Errno::NODATA) => Ok(None),
        Err(error) => Err(error.into()),
    }
}
