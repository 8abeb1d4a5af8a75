//! Room that is kept for getting out of a full disk.
//!
//! `reserve/` holds preallocated files. They are removed for work that frees room or writes down what happened, and
//! made again as soon as there is room. While any of it is missing, no other work is stored: so nothing but the way
//! out ever uses it.

use std::cell::Cell;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io;
use std::marker::PhantomData;
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::fs::{FallocateFlags, fallocate, statvfs};

use crate::error::is_full;
use crate::{Error, Result};

/// The most that is kept, and the least on a disk that is not tiny.
const MOST: u64 = 16 << 20;
const LEAST: u64 = 1 << 20;
/// Of a disk, one part in so many is kept; of a tiny one, one part in so few.
const SHARE: u64 = 32;
const SHARE_OF_TINY: u64 = 8;
/// File systems run out of files, too: so many are kept in each part.
const FILES: usize = 8;
/// What is written to see whether there is room.
const TRIAL: u64 = 64 << 10;
/// Less is not worth another try.
const STEP: u64 = 16 << 10;

thread_local! {
    /// On what kind of way out this thread is.
    static WAY_OUT: Cell<Option<WayOut>> = const { Cell::new(None) };
}

/// Work that may go on when the disk is full.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum WayOut {
    /// Whoever can remove or restore something could do so again and again, and each time a little is written. So
    /// this has only a part of the reserve.
    Small,
    /// Work of the owner that gives room back: gc, compaction, deleting a vault.
    Large,
}

/// The two parts of the reserve.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Part {
    First,
    Last,
}

impl Part {
    /// The last one is given up last, and made again first.
    const ALL: [Part; 2] = [Part::Last, Part::First];

    fn name(self) -> &'static str {
        match self {
            Part::First => "first",
            Part::Last => "last",
        }
    }
}

impl WayOut {
    fn parts(self) -> &'static [Part] {
        match self {
            WayOut::Small => &[Part::First],
            WayOut::Large => &[Part::First, Part::Last],
        }
    }

    /// How often more room can be made for it.
    pub fn steps(self) -> usize {
        self.parts().len()
    }
}

pub struct Reserve {
    dir: PathBuf,
    /// Bytes of each part.
    bytes: u64,
    /// Whether all of it is there, or none can be.
    whole: AtomicBool,
    /// How many threads are on a way out. What was given up for them is not for others to take back.
    ways: AtomicUsize,
    changing: Mutex<()>,
}

impl Reserve {
    /// The reserve of a home, as far as it is there. It is made by [`Reserve::fill`].
    pub fn of(home: &Path) -> Reserve {
        Reserve {
            dir: home.join("reserve"),
            bytes: size(home) / 2,
            whole: AtomicBool::new(false),
            ways: AtomicUsize::new(0),
            changing: Mutex::new(()),
        }
    }

    /// Whether nothing of it was given up.
    pub fn is_whole(&self) -> bool {
        self.whole.load(Ordering::Acquire)
    }

    /// An error where the work of this thread must not use what is left of the disk.
    pub fn admit(&self) -> Result<()> {
        if self.is_whole() || on_the_way().is_some() || self.fill() {
            return Ok(());
        }
        Err(Error::Full)
    }

    /// How many bytes of it are missing.
    pub fn missing(&self) -> u64 {
        if self.is_whole() {
            return 0;
        }
        let missing = |part: Part| {
            let there = std::fs::metadata(self.path(part)).map_or(0, |meta| meta.blocks() * 512);
            self.bytes.saturating_sub(there)
        };
        Part::ALL.into_iter().map(missing).sum()
    }

    /// Makes what is missing, as far as there is room. True if all of it is there.
    pub fn fill(&self) -> bool {
        if self.ways.load(Ordering::Acquire) > 0 {
            return self.is_whole();
        }
        let _one_at_a_time = self.changing();
        let filled = self.fill_parts();
        // Where none can be made, nothing depends on it.
        let whole = !filled.is_err_and(|error| is_full(&error));
        self.whole.store(whole, Ordering::Release);
        whole
    }

    fn fill_parts(&self) -> io::Result<()> {
        match DirBuilder::new().mode(0o700).create(&self.dir) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
        for part in Part::ALL {
            self.fill_part(part)?;
        }
        Ok(())
    }

    fn fill_part(&self, part: Part) -> io::Result<()> {
        let mut options = OpenOptions::new();
        options.write(true).create(true).mode(0o600);
        let file = options.open(self.path(part))?;
        let there = allocated(&file)?;
        for number in 0..FILES {
            let path = self.dir.join(format!("{}.{number}", part.name()));
            options.open(path)?;
        }
        let mut step = self.bytes.saturating_sub(there);
        while step > 0 {
            let at = allocated(&file)?;
            let wanted = step.min(self.bytes.saturating_sub(at));
            match allocate(&file, at, wanted) {
                Ok(()) if allocated(&file)? >= self.bytes => return Ok(()),
                // On some file systems blocks are counted otherwise than asked for.
                Ok(()) if allocated(&file)? <= at => return Ok(()),
                Ok(()) => {}
                Err(error) if is_full(&error) && step / 2 >= STEP => step /= 2,
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Gives room up for a way out that found none. False when there is no more for it.
    pub fn give(&self, way: WayOut) -> bool {
        let _one_at_a_time = self.changing();
        for part in way.parts() {
            let mut given = false;
            let names = (0..FILES).map(|number| format!("{}.{number}", part.name()));
            for name in std::iter::once(part.name().to_owned()).chain(names) {
                given |= std::fs::remove_file(self.dir.join(name)).is_ok();
            }
            if given {
                self.whole.store(false, Ordering::Release);
                return true;
            }
        }
        false
    }

    /// Tries to write a little, and says whether there was no room for it.
    pub fn finds_no_room(&self) -> bool {
        let path = self.dir.join("trial");
        let mut options = OpenOptions::new();
        let file = options.write(true).create(true).mode(0o600).open(&path);
        let tried = file.and_then(|file| write_zeros(&file, 0, TRIAL));
        let _ = std::fs::remove_file(path);
        tried.is_err_and(|error| is_full(&error))
    }

    fn path(&self, part: Part) -> PathBuf {
        self.dir.join(part.name())
    }

    fn changing(&self) -> MutexGuard<'_, ()> {
        self.changing.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How much is kept on the disk of a home.
fn size(home: &Path) -> u64 {
    let total = statvfs(home).map_or(0, |now| now.f_blocks.saturating_mul(now.f_frsize));
    let share = (total / SHARE).clamp(LEAST, MOST);
    share.min(total / SHARE_OF_TINY)
}

fn allocated(file: &File) -> io::Result<u64> {
    Ok(file.metadata()?.blocks() * 512)
}

fn allocate(file: &File, at: u64, bytes: u64) -> io::Result<()> {
    match fallocate(file, FallocateFlags::empty(), at, bytes) {
        Err(rustix::io::Errno::OPNOTSUPP) => write_zeros(file, at, bytes),
        allocated => Ok(allocated?),
    }
}

/// For file systems that cannot allocate ahead.
fn write_zeros(file: &File, at: u64, bytes: u64) -> io::Result<()> {
    let zeros = [0; STEP as usize];
    for offset in (0..bytes).step_by(zeros.len()) {
        file.write_all_at(&zeros, at + offset)?;
    }
    Ok(())
}

fn on_the_way() -> Option<WayOut> {
    WAY_OUT.get()
}

/// This thread is on a way out until it is dropped.
pub struct OnTheWay<'a> {
    before: Option<WayOut>,
    reserve: &'a Reserve,
    /// It belongs to its thread.
    _not_sent: PhantomData<*const ()>,
}

impl OnTheWay<'_> {
    /// None when the thread is on such a way already: whoever began it sees to the room.
    pub fn begin(reserve: &Reserve, way: WayOut) -> Option<OnTheWay<'_>> {
        let before = on_the_way();
        if before.is_some_and(|before| before >= way) {
            return None;
        }
        WAY_OUT.set(Some(way));
        reserve.ways.fetch_add(1, Ordering::AcqRel);
        Some(OnTheWay {
            before,
            reserve,
            _not_sent: PhantomData,
        })
    }
}

impl Drop for OnTheWay<'_> {
    fn drop(&mut self) {
        WAY_OUT.set(self.before);
        self.reserve.ways.fetch_sub(1, Ordering::AcqRel);
    }
}
