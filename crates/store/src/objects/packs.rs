//! Pack files: records appended one after another, never changed.

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::ops::Range;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::fs::{FallocateFlags, fallocate};
use rustix::io::Errno;

use crate::engine::RecordLocation;
use crate::{Error, Result};

/// A pack that has reached this length is left alone and the next one begun.
const PACK_BYTES: u64 = 256 << 20;
/// Records are gathered in memory and written in pieces of about this length.
const BUFFER_BYTES: usize = 1 << 20;
/// How much room for them is kept while there are none.
const BUFFER_KEPT: usize = 64 << 10;
/// What a disk gives back or not.
const BLOCK: usize = 4096;
/// Read handles kept open.
const OPEN_PACKS: usize = 64;

pub struct Packs {
    dir: PathBuf,
    tail: Mutex<Tail>,
    readers: Mutex<HashMap<u32, Arc<File>>>,
}

/// The pack that is being appended to.
struct Tail {
    pack: u32,
    /// Opened, and made where it is missing, when something is written to it.
    file: Option<Arc<File>>,
    /// Bytes of the file: where the buffer will go.
    written: u64,
    buffer: Vec<u8>,
    /// Bytes of the file known to be on the disk.
    synced: u64,
    /// Packs that were full before they were synced.
    unsynced: Vec<(u32, Arc<File>)>,
    /// Whether a file was made since the directory was synced.
    new_file: bool,
}

impl Packs {
    /// Goes on with the newest pack. Its length is where it ends, torn tail included: nothing
    /// refers to torn bytes, and a scan steps over them. Nothing is written yet.
    pub fn open(dir: PathBuf) -> Result<Packs> {
        let newest = pack_numbers(&dir)?.into_iter().max();
        let written = match newest {
            Some(pack) => length(&pack_path(&dir, pack))?,
            None => 0,
        };
        let tail = Tail {
            pack: newest.unwrap_or(1),
            file: None,
            written,
            buffer: Vec::new(),
            synced: written,
            unsynced: Vec::new(),
            new_file: false,
        };
        Ok(Packs {
            dir,
            tail: Mutex::new(tail),
            readers: Mutex::new(HashMap::new()),
        })
    }

    /// Takes a record in; it can be read at once and is on the disk after the next `sync`.
    pub fn append(&self, record: &[u8]) -> Result<RecordLocation> {
        let mut tail = self.tail();
        if tail.buffer.len() + record.len() > BUFFER_BYTES {
            self.write_out(&mut tail)?;
            if tail.written >= PACK_BYTES {
                next_pack(&mut tail);
            }
        }
        let place = RecordLocation {
            pack: tail.pack,
            offset: tail.written + tail.buffer.len() as u64,
        };
        tail.buffer.extend_from_slice(record);
        Ok(place)
    }

    /// The bytes at `place`. What is not, or not wholly, there is `None`.
    pub fn read(&self, place: RecordLocation, length: u64) -> Result<Option<Vec<u8>>> {
        let length = usize::try_from(length).expect("records fit in memory");
        if let Some(record) = self.read_buffered(place, length) {
            return Ok(Some(record));
        }
        let file = match self.reader(place.pack) {
            Err(Error::Io { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => {
                return Ok(None);
            }
            opened => opened?,
        };
        let mut record = vec![0; length];
        match file.read_exact_at(&mut record, place.offset) {
            Ok(()) => Ok(Some(record)),
            Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => Ok(None),
            Err(error) => Err(Error::io("read", pack_path(&self.dir, place.pack))(error)),
        }
    }

    /// Puts everything appended so far on the disk. Without anything new it does nothing.
    pub fn sync(&self) -> Result<()> {
        let (mut files, upto, new_file) = {
            let mut tail = self.tail();
            self.write_out(&mut tail)?;
            tail.buffer.shrink_to(BUFFER_KEPT);
            let mut files = tail.unsynced.clone();
            if let Some(file) = tail.file.clone().filter(|_| tail.synced < tail.written) {
                files.push((tail.pack, file));
            }
            (files, (tail.pack, tail.written), tail.new_file)
        };
        // Without the lock: others may append meanwhile, and those bytes wait for the next sync.
        for (pack, file) in &files {
            file.sync_data()
                .map_err(Error::io("sync", pack_path(&self.dir, *pack)))?;
        }
        if new_file {
            sync_dir(&self.dir)?;
        }
        let mut tail = self.tail();
        if tail.pack == upto.0 {
            tail.synced = upto.1;
            tail.new_file &= !new_file;
        }
        files.retain(|(pack, _)| *pack != upto.0);
        tail.unsynced
            .retain(|(pack, _)| !files.iter().any(|(synced, _)| synced == pack));
        Ok(())
    }

    /// Where the next record will lie.
    pub fn end(&self) -> RecordLocation {
        let tail = self.tail();
        RecordLocation {
            pack: tail.pack,
            offset: tail.written + tail.buffer.len() as u64,
        }
    }

    /// Every pack and its length, oldest first.
    pub fn lengths(&self) -> Result<Vec<(u32, u64)>> {
        let end = self.end();
        let mut lengths = Vec::new();
        for pack in pack_numbers(&self.dir)? {
            let length = length(&pack_path(&self.dir, pack))?;
            let buffered = if pack == end.pack { end.offset } else { 0 };
            lengths.push((pack, length.max(buffered)));
        }
        Ok(lengths)
    }

    /// Gives up what is only in memory. Gives where that began.
    pub fn discard(&self) -> RecordLocation {
        let mut tail = self.tail();
        tail.buffer.clear();
        RecordLocation {
            pack: tail.pack,
            offset: tail.written,
        }
    }

    /// Gives up what no sync has covered and goes on in a new pack.
    pub fn abandon(&self) {
        let mut tail = self.tail();
        tail.buffer.clear();
        // Nothing will refer to what is there, so nobody has to sync it.
        tail.synced = tail.written;
        tail.unsynced.clear();
        next_pack(&mut tail);
    }

    /// Cuts a sealed pack off behind its first `length` bytes.
    pub fn cut(&self, pack: u32, length: u64) -> Result<()> {
        let path = pack_path(&self.dir, pack);
        let cut = || OpenOptions::new().write(true).open(&path)?.set_len(length);
        cut().map_err(Error::io("cut", &path))
    }

    /// Makes a hole of these bytes of a sealed pack, where the file system has holes.
    pub fn free(&self, pack: u32, bytes: Range<u64>) -> Result<()> {
        let path = pack_path(&self.dir, pack);
        let file = OpenOptions::new().write(true).open(&path);
        let file = file.map_err(Error::io("open", &path))?;
        let hole = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        match fallocate(&file, hole, bytes.start, bytes.end - bytes.start) {
            Ok(()) | Err(Errno::OPNOTSUPP) => Ok(()),
            Err(error) => Err(Error::io("make a hole in", &path)(error.into())),
        }
    }

    /// Makes sure that nothing more is appended to `pack`.
    pub fn seal(&self, pack: u32) -> Result<()> {
        let mut tail = self.tail();
        if tail.pack != pack {
            return Ok(());
        }
        self.write_out(&mut tail)?;
        next_pack(&mut tail);
        Ok(())
    }

    /// Removes a sealed pack that nothing refers to any more.
    pub fn remove(&self, pack: u32) -> Result<()> {
        self.readers().remove(&pack);
        self.tail().unsynced.retain(|(number, _)| *number != pack);
        let path = pack_path(&self.dir, pack);
        match std::fs::remove_file(&path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(Error::io("remove", &path)(error))
            }
            _ => Ok(()),
        }
    }

    /// The bytes of a pack, for rebuilding the index.
    pub fn bytes(&self, pack: u32) -> Result<Vec<u8>> {
        self.write_out(&mut self.tail())?;
        let path = pack_path(&self.dir, pack);
        let read = std::fs::read(&path).map_err(Error::io("read", &path));
        match read {
            Err(error) if error.is_damage() => read_around(&path),
            read => read,
        }
    }

    fn tail(&self) -> MutexGuard<'_, Tail> {
        // The buffer and the lengths change together only after the fallible part has succeeded.
        self.tail.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn readers(&self) -> MutexGuard<'_, HashMap<u32, Arc<File>>> {
        self.readers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn read_buffered(&self, place: RecordLocation, length: usize) -> Option<Vec<u8>> {
        let tail = self.tail();
        if place.pack != tail.pack || place.offset < tail.written {
            return None;
        }
        let start = usize::try_from(place.offset - tail.written).ok()?;
        tail.buffer
            .get(start..start.checked_add(length)?)
            .map(<[u8]>::to_vec)
    }

    /// Writes at a fixed place, so that a failed attempt (a full disk) can be repeated.
    fn write_out(&self, tail: &mut Tail) -> Result<()> {
        if tail.buffer.is_empty() {
            return Ok(());
        }
        let path = pack_path(&self.dir, tail.pack);
        let file = match &tail.file {
            Some(file) => file.clone(),
            None => {
                tail.new_file |= !path.exists();
                tail.file.insert(Arc::new(open_pack(&path)?)).clone()
            }
        };
        file.write_all_at(&tail.buffer, tail.written)
            .map_err(Error::io("write", path))?;
        tail.written += tail.buffer.len() as u64;
        tail.buffer.clear();
        tail.buffer.shrink_to(BUFFER_BYTES);
        Ok(())
    }

    fn reader(&self, pack: u32) -> Result<Arc<File>> {
        let mut readers = self.readers();
        if let Some(file) = readers.get(&pack) {
            return Ok(file.clone());
        }
        let path = pack_path(&self.dir, pack);
        let file = Arc::new(File::open(&path).map_err(Error::io("open", &path))?);
        if readers.len() >= OPEN_PACKS {
            readers.clear();
        }
        readers.insert(pack, file.clone());
        Ok(file)
    }
}

/// Goes on in a new pack, whose file is made when something is written to it.
fn next_pack(tail: &mut Tail) {
    let full = tail.file.take().filter(|_| tail.synced < tail.written);
    tail.unsynced.extend(full.map(|file| (tail.pack, file)));
    (tail.pack, tail.written, tail.synced) = (tail.pack + 1, 0, 0);
}

fn length(path: &Path) -> Result<u64> {
    let length = || Ok(std::fs::metadata(path)?.len());
    length().map_err(Error::io("measure", path))
}

/// A file of which the disk cannot give back all, with zeros for what is lost.
fn read_around(path: &Path) -> Result<Vec<u8>> {
    let file = File::open(path).map_err(Error::io("open", path))?;
    let length = file.metadata().map_err(Error::io("measure", path))?.len();
    let mut bytes = vec![0; usize::try_from(length).expect("packs fit in memory")];
    for (number, block) in bytes.chunks_mut(BLOCK).enumerate() {
        match file.read_exact_at(block, (number * BLOCK) as u64) {
            Ok(()) => {}
            Err(error) => match Error::io("read", path)(error) {
                error if error.is_damage() => block.fill(0),
                error => return Err(error),
            },
        }
    }
    Ok(bytes)
}

pub fn sync_dir(dir: &Path) -> Result<()> {
    let sync = || File::open(dir)?.sync_all();
    sync().map_err(Error::io("sync", dir))
}

fn open_pack(path: &Path) -> Result<File> {
    let mut options = OpenOptions::new();
    options
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600);
    options.open(path).map_err(Error::io("open", path))
}

fn pack_path(dir: &Path, pack: u32) -> PathBuf {
    dir.join(format!("{pack:08}.pack"))
}

fn pack_numbers(dir: &Path) -> Result<Vec<u32>> {
    let mut numbers = Vec::new();
    for entry in std::fs::read_dir(dir).map_err(Error::io("list", dir))? {
        let name = entry.map_err(Error::io("list", dir))?.file_name();
        let number = name.to_str().and_then(|name| name.strip_suffix(".pack"));
        numbers.extend(number.and_then(|number| number.parse::<u32>().ok()));
    }
    numbers.sort_unstable();
    Ok(numbers)
}
