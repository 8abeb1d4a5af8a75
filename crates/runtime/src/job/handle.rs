//! One job: what is known of it now, what it has written, and what is wanted of it.

use std::fs::File;
use std::io::Write;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::record::{JobState, Lifetime, Record, log_path, now, save_report};
use crate::command::control::Control;
use crate::command::report::ExecReport;
use crate::command::run::Cancel;
use crate::common::Stream;
use crate::runtime::lock;
use crate::{Error, Result};

/// Kept of one stream at most, from its beginning: an offset always means the same byte.
pub const LOG_MAX: u64 = 256 << 20;

pub(crate) struct Job {
    pub dir: PathBuf,
    pub control: Arc<Control>,
    live: Mutex<Live>,
    /// Told of all that changes.
    news: Condvar,
    /// Where its input goes, while it takes any.
    input: Mutex<Option<OwnedFd>>,
    /// Why it ends, if somebody ends it, and how it is asked to if it is.
    end: Mutex<Option<(Option<Cancel>, String)>>,
    attention: Mutex<Attention>,
}

struct Live {
    record: Record,
    /// Bytes of each log that can be read.
    kept: [u64; 2],
    /// Bytes of each stream in all.
    written: [u64; 2],
}

/// Who still asks after a job.
struct Attention {
    watchers: usize,
    last: Instant,
}

/// A part of what a job wrote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogPart {
    pub bytes: Vec<u8>,
    /// Where it begins.
    pub from: u64,
    /// How many bytes can be read by now.
    pub kept: u64,
    /// How many were written by now; more than are kept once the log is full.
    pub written: u64,
}

/// A job as it was at one moment.
pub(crate) struct Sight {
    pub record: Record,
    pub kept: [u64; 2],
    pub written: [u64; 2],
}

pub(super) fn index(stream: Stream) -> usize {
    match stream {
        Stream::Stdout => 0,
        Stream::Stderr => 1,
    }
}

impl Job {
    pub fn new(dir: PathBuf, record: Record, control: Arc<Control>, input: Option<OwnedFd>) -> Job {
        let length = |stream| std::fs::metadata(log_path(&dir, stream)).map_or(0, |m| m.len());
        let kept = [length(Stream::Stdout), length(Stream::Stderr)];
        let live = Live {
            written: record.written.unwrap_or(kept),
            record,
            kept,
        };
        Job {
            dir,
            control,
            live: Mutex::new(live),
            news: Condvar::new(),
            input: Mutex::new(input),
            end: Mutex::default(),
            attention: Mutex::new(Attention {
                watchers: 0,
                last: Instant::now(),
            }),
        }
    }

    pub fn sight(&self) -> Sight {
        let live = lock(&self.live);
        Sight {
            record: live.record.clone(),
            kept: live.kept,
            written: live.written,
        }
    }

    pub fn is_running(&self) -> bool {
        lock(&self.live).record.state == JobState::Running
    }

    /// Bytes on disk.
    pub fn size(&self) -> u64 {
        lock(&self.live).kept.iter().sum()
    }

    /// Notes that a log has grown.
    pub fn grew(&self, stream: Stream, kept: u64, written: u64) {
        let mut live = lock(&self.live);
        live.kept[index(stream)] = kept;
        live.written[index(stream)] = written;
        self.news.notify_all();
    }

    /// Writes down that it is over, and how.
    pub fn conclude(&self, state: JobState, report: Option<&ExecReport>) -> Result<()> {
        let saved = report.map_or(Ok(()), |report| save_report(&self.dir, report));
        lock(&self.input).take();
        let mut live = lock(&self.live);
        live.record.state = state;
        live.record.ended = Some(now());
        live.record.written = Some(live.written);
        let recorded = live.record.save(&self.dir);
        self.news.notify_all();
        saved.and(recorded)
    }

    /// Waits until it is over, or as long as that.
    pub fn wait(&self, patience: Duration) -> Sight {
        self.wait_while(patience, |live| live.record.state == JobState::Running);
        self.sight()
    }

    /// Waits until there is more to read than that, it is over, or as long as that.
    pub fn wait_for_more(&self, from: [u64; 2], patience: Duration) -> Sight {
        self.wait_while(patience, |live| {
            live.record.state == JobState::Running
                && live.kept[0] <= from[0]
                && live.kept[1] <= from[1]
        });
        self.sight()
    }

    fn wait_while(&self, patience: Duration, unchanged: impl Fn(&Live) -> bool) {
        let deadline = Instant::now() + patience;
        let mut live: MutexGuard<'_, Live> = lock(&self.live);
        while unchanged(&live) {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            let waited = self.news.wait_timeout(live, left);
            live = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    pub fn read(&self, stream: Stream, from: u64, most: u64) -> Result<LogPart> {
        let sight = self.sight();
        let kept = sight.kept[index(stream)];
        if from > kept {
            return Err(Error::Invalid {
                what: "offset",
                reason: format!("{from}: {kept} bytes of {} are kept", stream.name()),
            });
        }
        let size = (kept - from).min(most);
        let mut bytes = vec![0; usize::try_from(size).unwrap_or(usize::MAX)];
        if size > 0 {
            let reading = || Error::io(format!("reading the log of job {}", sight.record.id));
            let file = File::open(log_path(&self.dir, stream)).map_err(reading())?;
            file.read_exact_at(&mut bytes, from).map_err(reading())?;
        }
        Ok(LogPart {
            bytes,
            from,
            kept,
            written: sight.written[index(stream)],
        })
    }

    /// A handle on its input; none when it takes none any more.
    pub fn input(&self) -> std::io::Result<Option<File>> {
        let input = lock(&self.input);
        input
            .as_ref()
            .map(OwnedFd::try_clone)
            .transpose()
            .map(|fd| fd.map(File::from))
    }

    /// Nothing more will come.
    pub fn end_input(&self) {
        lock(&self.input).take();
    }

    /// Has it asked to end, and ended if it does not.
    pub fn want_end(&self, why: &str) {
        lock(&self.end).get_or_insert_with(|| (Some(Cancel::Leave), why.to_owned()));
    }

    /// Notes why it is about to be ended by somebody else.
    pub fn note_end(&self, why: &str) {
        lock(&self.end).get_or_insert_with(|| (None, why.to_owned()));
    }

    pub fn end_reason(&self) -> Option<String> {
        lock(&self.end).as_ref().map(|(_, why)| why.clone())
    }

    /// Whether it is to end, for lack of attention or because somebody wants it to.
    pub fn wanted_end(&self, lifetime: Lifetime) -> Option<Cancel> {
        if let Lifetime::Client { lease } = lifetime
            && self.is_forgotten(lease)
        {
            let seconds = lease.as_secs_f64();
            self.want_end(&format!("nobody asked after it for {seconds} s"));
        }
        lock(&self.end).as_ref().and_then(|(how, _)| *how)
    }

    fn is_forgotten(&self, lease: Duration) -> bool {
        let attention = lock(&self.attention);
        attention.watchers == 0 && attention.last.elapsed() >= lease
    }

    /// Notes that somebody asks after it, for as long as the guard lives.
    pub fn attend(self: &Arc<Self>) -> Attending {
        lock(&self.attention).watchers += 1;
        Attending(self.clone())
    }
}

/// Somebody who asks after a job.
pub struct Attending(Arc<Job>);

impl Drop for Attending {
    fn drop(&mut self) {
        let mut attention = lock(&self.0.attention);
        attention.watchers -= 1;
        attention.last = Instant::now();
    }
}

/// The log of one stream, being written.
pub(super) struct LogFile {
    file: File,
    kept: u64,
    written: u64,
    /// Whether the disk took all so far.
    whole: bool,
}

impl LogFile {
    pub fn create(dir: &Path, stream: Stream) -> Result<LogFile> {
        let path = log_path(dir, stream);
        let mut options = File::options();
        options.write(true).create_new(true).mode(0o600);
        let file = options.open(&path);
        Ok(LogFile {
            file: file.map_err(Error::io(format!("creating {}", path.display())))?,
            kept: 0,
            written: 0,
            whole: true,
        })
    }

    /// Adds bytes as far as they are kept; gives how many are, and how many were written in all.
    pub fn append(&mut self, bytes: &[u8]) -> (u64, u64) {
        self.written += bytes.len() as u64;
        let room = usize::try_from(LOG_MAX - self.kept).unwrap_or(usize::MAX);
        let fitting = &bytes[..bytes.len().min(room)];
        // After a gap nothing can follow: offsets would lie.
        if self.whole && !fitting.is_empty() {
            self.whole = self.file.write_all(fitting).is_ok() && fitting.len() == bytes.len();
            self.kept = match self.whole {
                true => self.kept + fitting.len() as u64,
                false => self.file.metadata().map_or(self.kept, |m| m.len()),
            };
        }
        (self.kept, self.written)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_grows_and_says_how_far() {
        let dir = tempfile::tempdir().unwrap();
        let mut log = LogFile::create(dir.path(), Stream::Stdout).unwrap();
        assert_eq!(log.append(b"abc"), (3, 3));
        assert_eq!(log.append(b"de"), (5, 5));
        log.kept = LOG_MAX - 1;
        assert_eq!(log.append(b"fg").1, 7, "what is not kept is counted");
        assert!(!log.whole);
        let kept = log.kept;
        assert_eq!(log.append(b"h"), (kept, 8));
        assert!(LogFile::create(dir.path(), Stream::Stdout).is_err());
    }
}
