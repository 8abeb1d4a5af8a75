//! The contents of an archive: read by one thread, hashed and stored by several.

use std::io::Read;
use std::num::NonZero;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::{cell::RefCell, mem};

use avfs_vault::{Content, ContentWriter, Trees};

use super::sparse::SparseMap;
use crate::error::{Error, Result};

/// Longer ones are streamed by the reading thread itself.
const HANDED_ON: u64 = 1 << 20;
/// How much of a sparse file is read at once.
const PIECE: usize = 256 << 10;
/// How many contents may wait to be hashed.
const WAITING: usize = 32;

/// Where the contents of an archive go. Each gets a number.
pub struct Bodies<'a> {
    trees: &'a Trees,
    stored: RefCell<Vec<Option<(Content, u64)>>>,
    queue: SyncSender<(usize, Vec<u8>)>,
}

type Stored = Vec<(usize, Content, u64)>;

impl Bodies<'_> {
    /// Runs `read`, which takes contents in; gives what they became, by number.
    pub fn gather<E: From<Error>>(
        trees: &Trees,
        read: impl FnOnce(&Bodies<'_>) -> Result<(), E>,
    ) -> Result<Vec<(Content, u64)>, E> {
        let (queue, waiting) = sync_channel(WAITING);
        let waiting = Arc::new(Mutex::new(waiting));
        let threads = std::thread::available_parallelism().map_or(2, NonZero::get);
        std::thread::scope(|scope| {
            let start = |_| {
                let waiting = waiting.clone();
                scope.spawn(move || store_all(trees, &waiting))
            };
            let workers: Vec<_> = (0..threads.clamp(1, 8)).map(start).collect();
            // Owned by the workers alone, so that the sender does not block when all of them have panicked.
            drop(waiting);
            let bodies = Bodies {
                trees,
                stored: RefCell::default(),
                queue,
            };
            let read = read(&bodies);
            let mut stored = mem::take(&mut *bodies.stored.borrow_mut());
            // Closes the channel, which ends the workers.
            drop(bodies);
            for worker in workers {
                let part = match worker.join() {
                    Ok(part) => part?,
                    Err(panic) => std::panic::resume_unwind(panic),
                };
                for (number, content, size) in part {
                    stored[number] = Some((content, size));
                }
            }
            read?;
            let whole = stored
                .into_iter()
                .map(|body| body.unwrap_or((Content::EMPTY, 0)));
            Ok(whole.collect())
        })
    }

    /// Takes one content in; gives its number.
    pub fn take<R: Read, E>(
        &self,
        entry: &mut tar::Entry<'_, R>,
        map: Option<SparseMap>,
    ) -> Result<usize, E>
    where
        E: From<Error> + From<std::io::Error>,
    {
        let size = entry.size();
        let cut_short = || std::io::Error::from(std::io::ErrorKind::UnexpectedEof);
        let number = self.stored.borrow().len();
        if let Some(map) = map {
            let stored = self.take_sparse::<E>(entry, &map)?;
            self.stored.borrow_mut().push(Some(stored));
            return Ok(number);
        }
        if size > HANDED_ON {
            let stored = self.trees.write_content(entry);
            let (content, read) = stored.map_err(|error| match error {
                avfs_vault::Error::Read(source) => E::from(source),
                other => E::from(Error::from(other)),
            })?;
            if read != size {
                return Err(cut_short().into());
            }
            self.stored.borrow_mut().push(Some((content, size)));
            return Ok(number);
        }
        let mut bytes = Vec::with_capacity(size as usize);
        entry.read_to_end(&mut bytes)?;
        if bytes.len() as u64 != size {
            return Err(cut_short().into());
        }
        self.stored.borrow_mut().push(None);
        // Fails only when all workers have panicked, which `gather` reports.
        let sent = self.queue.send((number, bytes));
        sent.map_err(|_| Error::Cancelled)?;
        Ok(number)
    }
}

impl Bodies<'_> {
    /// Takes the data of a sparse file to where it belongs.
    fn take_sparse<E>(&self, entry: &mut dyn Read, map: &SparseMap) -> Result<(Content, u64), E>
    where
        E: From<Error> + From<std::io::Error>,
    {
        let failed = |error| E::from(Error::from(error));
        let mut writer = ContentWriter::new(self.trees);
        let (mut at, mut buffer) = (0, vec![0; PIECE]);
        for (offset, length) in &map.data {
            writer.zeros(offset - at).map_err(failed)?;
            at = offset + length;
            let mut left = *length;
            while left > 0 {
                let piece = &mut buffer[..left.min(PIECE as u64) as usize];
                entry.read_exact(piece)?;
                writer.write(piece).map_err(failed)?;
                left -= piece.len() as u64;
            }
        }
        writer.zeros(map.size - at).map_err(failed)?;
        writer.finish().map_err(failed)
    }
}

/// Stores contents until the channel closes. After a failure it drops them, so that the sender does
/// not block.
fn store_all(trees: &Trees, waiting: &Mutex<Receiver<(usize, Vec<u8>)>>) -> Result<Stored> {
    let mut stored = Ok(Stored::new());
    loop {
        let next = waiting
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .recv();
        let Ok((number, bytes)) = next else {
            return stored;
        };
        if let Ok(list) = &mut stored {
            match trees.write_bytes(&bytes) {
                Ok((content, size)) => list.push((number, content, size)),
                Err(error) => stored = Err(error.into()),
            }
        }
    }
}
