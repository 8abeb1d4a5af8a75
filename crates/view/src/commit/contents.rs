//! The contents of the files in a layer: known from the previous commit, or read and stored now.

use std::collections::HashMap;
use std::fs::File;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::{Mutex, mpsc};

use avfs_vault::{Content, Trees};

use super::cache::Known;
use super::work::Work;
use crate::scan::{UpperEntry, UpperKind};
use crate::scanner::Scanner;
use crate::{Error, Result};

/// Below this many files, threads cost more than they save.
const PARALLEL_MIN: usize = 16;

/// For each entry of the listing, the content and size, if it is a file and still exists.
pub(super) struct Contents {
    pub of: Vec<Option<(Content, u64)>>,
}

/// Where files are read from and stored to, and whether to continue.
pub(super) struct Reading<'a> {
    pub trees: &'a Trees,
    pub scanner: &'a Scanner,
    pub upper: BorrowedFd<'a>,
    pub work: &'a Work<'a>,
}

impl Contents {
    pub fn read(
        reading: &Reading<'_>,
        entries: &[UpperEntry],
        known: &Known<'_>,
    ) -> Result<Contents> {
        let mut of = vec![None; entries.len()];
        let mut unknown = Vec::new();
        // A hard-linked file is read once.
        let mut linked: HashMap<u64, usize> = HashMap::new();
        let mut again = Vec::new();
        for (index, entry) in entries.iter().enumerate() {
            let UpperKind::File { size, links } = entry.kind else {
                continue;
            };
            if let Some(content) = known.content(index, entry) {
                of[index] = Some((content, size));
                continue;
            }
            match linked.get(&entry.ino).filter(|_| links > 1) {
                Some(&first) => again.push((index, first)),
                None => {
                    linked.extend((links > 1).then_some((entry.ino, index)));
                    unknown.push(index);
                }
            }
        }
        let names: Vec<&[u8]> = unknown
            .iter()
            .map(|&index| entries[index].path.as_slice())
            .collect();
        let hashed = hash_all(reading, &names)?;
        for (index, content) in unknown.into_iter().zip(hashed) {
            of[index] = content;
        }
        for (index, first) in again {
            of[index] = of[first];
        }
        Ok(Contents { of })
    }
}

pub(super) type Hashed = Option<(Content, u64)>;

/// Opens each name through the scanner and stores its content, with several threads if there are many.
fn hash_all(reading: &Reading<'_>, names: &[&[u8]]) -> Result<Vec<Hashed>> {
    let Reading { scanner, upper, .. } = *reading;
    let results: Mutex<Vec<Result<Hashed>>> = Mutex::new(names.iter().map(|_| Ok(None)).collect());
    let settle = |index: usize, opened: std::io::Result<OwnedFd>| {
        let outcome = hash_one(reading, opened);
        results.lock().expect("no holder of this lock panics")[index] = outcome;
    };
    if names.len() < PARALLEL_MIN {
        scanner.open(upper, names, settle)?;
    } else {
        let workers = std::thread::available_parallelism().map_or(2, |count| count.get().min(8));
        // Bounded, so that not all files of a large layer are open at once.
        let (sender, receiver) = mpsc::sync_channel(256);
        let receiver = Mutex::new(receiver);
        std::thread::scope(|scope| {
            for _ in 0..workers {
                scope.spawn(|| {
                    loop {
                        let next = receiver.lock().expect("no holder panics").recv();
                        let Ok((index, opened)) = next else { return };
                        settle(index, opened);
                    }
                });
            }
            let fed = scanner.open(upper, names, |index, opened| {
                sender
                    .send((index, opened))
                    .expect("the workers outlive the feeding");
            });
            drop(sender);
            fed
        })?;
    }
    results
        .into_inner()
        .expect("no holder of this lock panics")
        .into_iter()
        .collect()
}

fn hash_one(reading: &Reading<'_>, opened: std::io::Result<OwnedFd>) -> Result<Hashed> {
    let failed = |source| Error::Scan {
        what: "reading a file".into(),
        source,
    };
    reading.work.check()?;
    let file = match opened {
        Ok(descriptor) => File::from(descriptor),
        // Removed or replaced since it was listed, by a running process.
        Err(error)
            if matches!(
                error.raw_os_error(),
                Some(libc::ENOENT | libc::ELOOP | libc::ENOTDIR | libc::ENXIO)
            ) =>
        {
            return Ok(None);
        }
        Err(error) => return Err(failed(error)),
    };
    if !file.metadata().map_err(failed)?.is_file() {
        return Ok(None);
    }
    let stored = reading
        .trees
        .write_file(&file, &mut |bytes| reading.work.count(bytes))?;
    Ok(Some(stored))
}
