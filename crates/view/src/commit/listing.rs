//! All entries of a layer, from the scanner: in memory if they are few, else in a file.

use std::collections::HashMap;
use std::fs::File;
use std::os::fd::BorrowedFd;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use avfs_vault::XattrMap;

use super::CommitInput;
use super::work::{TooMuch, Work};
use crate::scan::{UpperEntry, UpperKind};
use crate::scanner::Scanner;
use crate::walk::{Position, Totals};
use crate::{Error, Result};

/// How much is held in memory at once.
pub(super) struct Bounds {
    /// More names, or bytes of entries, are written to a file.
    pub names: usize,
    pub bytes: usize,
    /// After this many changed names a tree is stored.
    pub pending: usize,
}

impl Bounds {
    pub const USUAL: Bounds = Bounds {
        names: 1 << 16,
        bytes: 16 << 20,
        pending: 1 << 15,
    };
}

/// The most bytes of entries in one layer. A million short paths need a fifth of it.
const LISTING_MAX: u64 = 1 << 30;
/// The most bytes of attributes of all entries; those of later entries are not stored, and reported.
const XATTRS_MAX: usize = 16 << 20;

/// The entries of a layer, parents before children.
pub(super) enum Listing {
    InMemory(Vec<UpperEntry>),
    InFile(Spilled),
}

/// A long listing, in parts.
pub(super) struct Spilled {
    file: File,
    /// The offset and length of each part.
    parts: Vec<(u64, usize)>,
    end: u64,
    pub names: usize,
}

impl Listing {
    /// Lists `upper`, as long as it is within the limits of the commit.
    pub fn of(
        input: &CommitInput<'_>,
        (scanner, upper): (&Scanner, BorrowedFd<'_>),
        work: &Work<'_>,
        bounds: &Bounds,
    ) -> Result<Listing> {
        let mut counts = Counts::default();
        let (mut entries, mut held) = (Vec::new(), 0);
        let mut of_files = Attributes::default();
        let mut spilled = None;
        let mut position = Position::start();
        while !position.is_end() {
            work.check()?;
            let (mut listed, next) = scanner.list(upper, position)?;
            position = next;
            for entry in &mut listed {
                held += entry.weight();
                counts.count(input, entry)?;
                of_files.share(entry);
            }
            entries.append(&mut listed);
            if entries.len() > bounds.names || held > bounds.bytes {
                let spilled = match &mut spilled {
                    Some(spilled) => spilled,
                    None => spilled.insert(Spilled::begin(input.spool)?),
                };
                spilled.append(&std::mem::take(&mut entries))?;
                held = 0;
            }
        }
        let Some(mut spilled) = spilled else {
            return Ok(Listing::InMemory(entries));
        };
        spilled.append(&entries)?;
        Ok(Listing::InFile(spilled))
    }
}

impl Spilled {
    /// Opens an unnamed temporary file.
    fn begin(directory: &Path) -> Result<Spilled> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = directory.join(format!("listing-{number}"));
        let file = File::options()
            .read(true)
            .write(true)
            .create(true)
            .truncate(true)
            .open(&path)
            .and_then(|file| std::fs::remove_file(&path).map(|()| file));
        Ok(Spilled {
            file: file.map_err(failed)?,
            parts: Vec::new(),
            end: 0,
            names: 0,
        })
    }

    fn append(&mut self, entries: &[UpperEntry]) -> Result<()> {
        let bytes = postcard::to_stdvec(entries).expect("entries are plain data");
        self.file.write_all_at(&bytes, self.end).map_err(failed)?;
        self.parts.push((self.end, bytes.len()));
        self.end += bytes.len() as u64;
        self.names += entries.len();
        Ok(())
    }

    /// The entries, part by part.
    pub fn parts(&self) -> impl Iterator<Item = Result<Vec<UpperEntry>>> {
        let mut of_files = Attributes::default();
        self.parts.iter().map(move |&(at, length)| {
            let mut bytes = vec![0; length];
            self.file.read_exact_at(&mut bytes, at).map_err(failed)?;
            let entries = postcard::from_bytes(&bytes);
            let mut entries: Vec<UpperEntry> =
                entries.map_err(|_| Error::BadAnswer("an unreadable listing"))?;
            for entry in &mut entries {
                of_files.share(entry);
            }
            Ok(entries)
        })
    }
}

/// The attributes of hard-linked files, so that they are in memory once and not for each name.
#[derive(Default)]
struct Attributes {
    by_inode: HashMap<u64, XattrMap>,
}

impl Attributes {
    fn share(&mut self, entry: &mut UpperEntry) {
        let is_linked = matches!(entry.kind, UpperKind::File { links, .. } if links > 1);
        if is_linked && !entry.xattrs.is_empty() {
            let known = self.by_inode.entry(entry.ino);
            entry
                .xattrs
                .share(known.or_insert_with(|| entry.xattrs.clone()));
        }
    }
}

fn failed(source: std::io::Error) -> Error {
    Error::Scan {
        what: "keeping a long listing".into(),
        source,
    }
}

/// What has been listed so far.
#[derive(Default)]
struct Counts {
    totals: Totals,
    bytes: u64,
    xattrs: usize,
}

impl Counts {
    /// Refuses an entry that exceeds the limits. Attributes beyond their limit are removed from it.
    fn count(&mut self, input: &CommitInput<'_>, entry: &mut UpperEntry) -> Result<()> {
        self.xattrs += entry.xattrs.bytes();
        if self.xattrs > XATTRS_MAX && !entry.xattrs.is_empty() {
            self.xattrs -= entry.xattrs.bytes();
            entry.xattrs.clear();
            entry.xattrs_lost = true;
        }
        self.bytes += entry.weight() as u64;
        if self.bytes > LISTING_MAX {
            return Err(too_much(TooMuch::Listing, LISTING_MAX, self.bytes));
        }
        let size = match entry.kind {
            UpperKind::File { size, .. } => size,
            UpperKind::Symlink { .. } | UpperKind::Fifo => 0,
            _ => return Ok(()),
        };
        self.totals.add(size);
        let allowance = &input.allowance;
        let Totals { files, bytes } = self.totals;
        match (allowance.file_bytes, allowance.bytes, allowance.files) {
            (Some(most), ..) if size > most => Err(Error::TooMuch {
                what: TooMuch::FileBytes,
                most,
                found: size,
                path: Some(entry.path.clone()),
            }),
            (_, Some(most), _) if bytes > most => Err(too_much(TooMuch::Bytes, most, bytes)),
            (.., Some(most)) if files > most => Err(too_much(TooMuch::Files, most, files)),
            _ => Ok(()),
        }
    }
}

pub(super) fn too_much(what: TooMuch, most: u64, found: u64) -> Error {
    Error::TooMuch {
        what,
        most,
        found,
        path: None,
    }
}
