//! The contents of the files in a layer: known from the commit before, or read and stored now.

use std::fs::File;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::{Mutex, mpsc};

use avfs_vault::{Content, Trees};

use super::CommitInput;
use super::cache::Known;
use crate::scan::{UpperEntry, UpperKind};
use crate::scanner::Scanner;
use crate::{Error, Result};

/// Below this many files, threads cost more than they save.
const PARALLEL_MIN: usize = 16;

/// For each entry of the listing, the content and size of the file, if it is one and still there.
pub(super) struct Contents {
    pub of: Vec<Option<(Content, u64)>>,
}

impl Contents {
    pub fn read(
        input: &CommitInput<'_>,
        scanner: &Scanner,
        upper: BorrowedFd<'_>,
        entries: &[UpperEntry],
        known: &Known<'_>,
    ) -> Result<Contents> {
        let mut of = vec![None; entries.len()];
        let mut unknown = Vec::new();
        for (index, entry) in entries.iter().enumerate() {
            let UpperKind::File { size, .. } = entry.kind else {
                continue;
            };
            match known.content(index, entry) {
                Some(content) => of[index] = Some((content, size)),
                None => unknown.push(index),
            }
        }
        let names: Vec<&[u8]> = unknown
            .iter()
            .map(|&index| entries[index].path.as_slice())
            .collect();
        let hashed = hash_all(input.trees, scanner, upper, &names)?;
        for (index, content) in unknown.into_iter().zip(hashed) {
            of[index] = content;
        }
        Ok(Contents { of })
    }
}

pub(super) type Hashed = Option<(Content, u64)>;

/// Opens each name through the scanner and stores its content, on all cores when there are many.
fn hash_all(
    trees: &Trees,
    scanner: &Scanner,
    upper: BorrowedFd<'_>,
    names: &[&[u8]],
) -> Result<Vec<Hashed>> {
    let results: Mutex<Vec<Result<Hashed>>> = Mutex::new(names.iter().map(|_| Ok(None)).collect());
    let settle = |index: usize, opened: std::io::Result<OwnedFd>| {
        let outcome = hash_one(trees, opened);
        results.lock().expect("no holder of this lock panics")[index] = outcome;
    };
    if names.len() < PARALLEL_MIN {
        scanner.open(upper, names, settle)?;
    } else {
        let workers = std::thread::available_parallelism().map_or(2, |count| count.get().min(8));
        // Bounded, so that not every file of a large layer is open at once.
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

fn hash_one(trees: &Trees, opened: std::io::Result<OwnedFd>) -> Result<Hashed> {
    let failed = |source| Error::Scan {
        what: "reading a file".into(),
        source,
    };
    let file = match opened {
        Ok(descriptor) => File::from(descriptor),
        // Gone or replaced since it was listed, by a process that still runs.
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
    let stored = trees.write_file(&file, &mut |_bytes| Ok::<_, Error>(()))?;
    Ok(Some(stored))
}
