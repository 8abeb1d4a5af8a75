//! Output beyond what a report keeps: on disk for a while, to be read back in parts.

use std::fs::{self, DirBuilder, File};
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use avfs_vault::ExecId;

use crate::command::capture::Room;
use crate::common::Stream;
use crate::runtime::Runtime;
use crate::session::Session;
use crate::{Error, Result};

/// Kept of one stream at most.
const STREAM_MAX: u64 = 256 << 20;
/// Kept in all; the oldest goes first.
const TOTAL_MAX: u64 = 1 << 30;
/// How long it is kept.
const AGE_MAX: Duration = Duration::from_secs(7 * 24 * 3600);
/// Given back at once at most.
pub const PART_MAX: u64 = 1 << 20;

/// The spilled output of a home.
pub(crate) struct Spills {
    dir: PathBuf,
    /// For what is not spilled.
    room: Arc<Room>,
}

/// Where one exec's output goes when it becomes too much.
pub(crate) struct ExecSpills {
    dir: PathBuf,
    exec: ExecId,
    pub room: Arc<Room>,
}

/// What was spilled of one stream.
pub(crate) enum Spill {
    Not(PathBuf),
    To {
        file: File,
        written: u64,
    },
    /// Full, or the disk is: what was written stays.
    Over {
        written: u64,
    },
}

/// A part of what a command wrote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutputPart {
    pub bytes: Vec<u8>,
    /// Where it begins.
    pub from: u64,
    /// How many bytes are kept.
    pub kept: u64,
}

/// What a sweep removed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SweptOutput {
    pub files: u64,
    pub bytes: u64,
}

impl Spills {
    pub fn new(home: &Path) -> Spills {
        Spills {
            dir: home.join("output"),
            room: Arc::default(),
        }
    }

    pub fn of(&self, exec: ExecId) -> ExecSpills {
        ExecSpills {
            dir: self.dir.clone(),
            exec,
            room: self.room.clone(),
        }
    }

    /// Removes what is too old or, from the oldest on, too much.
    pub fn sweep(&self, age: Duration) -> SweptOutput {
        let mut files: Vec<(SystemTime, u64, PathBuf)> = fs::read_dir(&self.dir)
            .into_iter()
            .flatten()
            .flatten()
            .filter_map(|entry| {
                let metadata = entry.metadata().ok()?;
                Some((metadata.modified().ok()?, metadata.len(), entry.path()))
            })
            .collect();
        files.sort();
        let mut total: u64 = files.iter().map(|(_, size, _)| size).sum();
        let mut swept = SweptOutput::default();
        for (time, size, path) in files {
            let old = time.elapsed().is_ok_and(|passed| passed >= age);
            if (old || total > TOTAL_MAX) && fs::remove_file(path).is_ok() {
                total -= size;
                swept.files += 1;
                swept.bytes += size;
            }
        }
        swept
    }
}

impl ExecSpills {
    pub fn stream(&self, stream: Stream) -> Spill {
        Spill::Not(path(&self.dir, self.exec, stream))
    }
}

fn path(dir: &Path, exec: ExecId, stream: Stream) -> PathBuf {
    dir.join(format!("{exec}.{}", stream.name()))
}

impl Spill {
    /// Adds bytes; `before` is all that came earlier, should these be the first.
    pub fn add(&mut self, before: &[&[u8]], bytes: &[u8]) {
        if let Spill::Not(path) = self {
            *self = match create(path) {
                Ok(file) => Spill::To { file, written: 0 },
                Err(_) => Spill::Over { written: 0 },
            };
            before.iter().for_each(|part| self.write(part));
        }
        self.write(bytes);
    }

    fn write(&mut self, bytes: &[u8]) {
        let Spill::To { file, written } = self else {
            return;
        };
        let room = usize::try_from(STREAM_MAX - *written).unwrap_or(usize::MAX);
        let fitting = &bytes[..bytes.len().min(room)];
        match file.write_all(fitting) {
            Ok(()) => *written += fitting.len() as u64,
            Err(_) => {
                // A full disk: the report says how much is there.
                let whole = file.metadata().map_or(0, |metadata| metadata.len());
                *self = Spill::Over { written: whole };
                return;
            }
        }
        if fitting.len() < bytes.len() {
            *self = Spill::Over { written: *written };
        }
    }

    pub fn written(&self) -> u64 {
        match self {
            Spill::Not(_) => 0,
            Spill::To { written, .. } | Spill::Over { written } => *written,
        }
    }
}

fn create(path: &Path) -> std::io::Result<File> {
    if let Some(dir) = path.parent() {
        DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
    }
    File::options()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)
}

impl Session {
    /// Bytes `from..to` of what a command wrote, as far as they are kept; at most [`PART_MAX`] of them.
    pub fn output(&self, exec: ExecId, stream: Stream, from: u64, to: u64) -> Result<OutputPart> {
        self.check_exec(exec)?;
        let path = path(&self.inner.spills.dir, exec, stream);
        let reading = || Error::io(format!("reading the output of {exec}"));
        let mut file = match File::open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Err(Error::NoOutput { exec, stream });
            }
            Err(error) => return Err(reading()(error)),
        };
        let kept = file.metadata().map_err(reading())?.len();
        if from > to || from > kept {
            return Err(Error::Invalid {
                what: "range",
                reason: format!("{from}-{to}: {kept} bytes are kept"),
            });
        }
        let mut bytes = Vec::new();
        file.seek(SeekFrom::Start(from)).map_err(reading())?;
        file.take((to - from).min(PART_MAX))
            .read_to_end(&mut bytes)
            .map_err(reading())?;
        Ok(OutputPart { bytes, from, kept })
    }
}

impl Runtime {
    /// Removes spilled output that is older than `age`, or than a week.
    pub(crate) fn sweep_output(&self, age: Option<Duration>) -> SweptOutput {
        self.inner.spills.sweep(age.unwrap_or(AGE_MAX).min(AGE_MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_came_before_is_spilled_first() {
        let home = tempfile::tempdir().unwrap();
        let exec = ExecId::new();
        let spills = Spills::new(home.path());
        let mut spill = spills.of(exec).stream(Stream::Stdout);
        assert_eq!(spill.written(), 0);
        assert!(!spills.dir.exists(), "nothing is made before it is needed");
        spill.add(&[b"ab", b"cd"], b"ef");
        spill.add(&[b"ab"], b"gh");
        assert_eq!(spill.written(), 8);
        let text = fs::read(path(&spills.dir, exec, Stream::Stdout)).unwrap();
        assert_eq!(text, b"abcdefgh");
        assert_eq!(spills.sweep(AGE_MAX), SweptOutput::default());
        let all = SweptOutput { files: 1, bytes: 8 };
        assert_eq!(spills.sweep(Duration::ZERO), all);
    }

    #[test]
    fn a_place_that_cannot_be_written_spills_nothing() {
        let home = tempfile::tempdir().unwrap();
        fs::write(home.path().join("output"), "in the way").unwrap();
        let spills = Spills::new(home.path());
        let mut spill = spills.of(ExecId::new()).stream(Stream::Stderr);
        spill.add(&[b"a"], b"b");
        assert_eq!(spill.written(), 0);
    }
}
