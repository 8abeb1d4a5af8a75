//! A git repository at a revision, read through git's own plumbing.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};

use avfs_vault::{Content, Entry, Kind, Time, VaultPath};

use super::git::GitEnvironment;
use super::{Found, Importer, Incoming};
use crate::error::{Error, Result};
use crate::report::Skipped;

/// Reads the tree of `revision` in the repository at `dir`.
pub(super) fn read_revision(
    importer: &Importer<'_>,
    dir: &Path,
    revision: &str,
) -> Result<Incoming> {
    let git = Git {
        environment: importer.git,
        dir,
        revision,
    };
    let commit = git.commit()?;
    let time = git.time_of(&commit)?;
    let listed = git.output(&["ls-tree", "-r", "-t", "-z", &commit])?;
    let mut incoming = Incoming::default();
    let (mut left_out, mut blobs) = (BTreeMap::new(), Vec::new());
    for line in listed
        .split(|byte| *byte == 0)
        .filter(|line| !line.is_empty())
    {
        let item = Item::parse(line).ok_or_else(|| git.failed("it lists what makes no sense"))?;
        sort_out(
            importer,
            item,
            time,
            &mut incoming,
            &mut left_out,
            &mut blobs,
        );
    }
    read_blobs(importer, &git, &blobs, &mut incoming)?;
    let left_out = left_out.into_iter().map(|(path, reason)| Skipped {
        path: path.as_bytes()[1..].to_vec(),
        reason,
    });
    incoming.skipped.extend(left_out);
    Ok(incoming)
}

/// One line of a listing.
struct Item<'a> {
    mode: &'a [u8],
    object: &'a str,
    path: &'a [u8],
}

impl Item<'_> {
    /// `mode SP type SP object TAB path`
    fn parse(line: &[u8]) -> Option<Item<'_>> {
        let tab = line.iter().position(|byte| *byte == b'\t')?;
        let mut words = line[..tab].split(|byte| *byte == b' ');
        let (mode, _, object) = (words.next()?, words.next()?, words.next()?);
        Some(Item {
            mode,
            object: std::str::from_utf8(object).ok()?,
            path: &line[tab + 1..],
        })
    }
}

/// Content that is still to be read, and the entry it belongs to.
struct Blob {
    object: String,
    found: Found,
}

fn sort_out(
    importer: &Importer<'_>,
    item: Item<'_>,
    time: Time,
    incoming: &mut Incoming,
    left_out: &mut BTreeMap<VaultPath, String>,
    blobs: &mut Vec<Blob>,
) {
    let relative = [b"/", item.path].concat();
    let skip = |reason: String| Skipped {
        path: item.path.to_vec(),
        reason,
    };
    let path = match VaultPath::parse(&relative) {
        Ok(path) => path,
        Err(error) => return incoming.skipped.push(skip(error.to_string())),
    };
    let is_dir = item.mode == b"040000";
    if path.is_root() {
        incoming.top = Some(importer.plain_meta(0o755, time));
        return;
    }
    if let Some((top, reason)) = importer.exclusions.refuses_beneath(&path, is_dir) {
        left_out.insert(top, reason);
        return;
    }
    let at = importer.place(&path);
    let found = |entry| Found {
        path: at.clone(),
        entry,
        inode: None,
    };
    let file = |mode| {
        let meta = importer.plain_meta(mode, time);
        Entry::file(Content::EMPTY, 0, meta)
    };
    let waits_for_content = match item.mode {
        b"040000" => {
            let mut entry = Entry::directory(0o755, time);
            entry.meta = importer.plain_meta(0o755, time);
            incoming.push(found(entry));
            return;
        }
        b"100755" => file(0o755),
        b"120000" => Entry {
            kind: Kind::Symlink { target: Vec::new() },
            meta: importer.plain_meta(0o777, time),
        },
        b"160000" => {
            let reason = "it is a submodule; import its repository by itself";
            return incoming.skipped.push(skip(reason.into()));
        }
        _ => file(0o644),
    };
    blobs.push(Blob {
        object: item.object.to_owned(),
        found: found(waits_for_content),
    });
}

/// Reads all content, with one git for each thread.
fn read_blobs(
    importer: &Importer<'_>,
    git: &Git<'_>,
    blobs: &[Blob],
    incoming: &mut Incoming,
) -> Result<()> {
    let next = AtomicUsize::new(0);
    let threads = std::thread::available_parallelism().map_or(2, NonZero::get);
    let threads = threads.clamp(1, 4).min(blobs.len());
    let work = || -> Result<Vec<Found>> {
        let mut reader = git.reader()?;
        let mut read = Vec::new();
        while let Some(blob) = blobs.get(next.fetch_add(1, Ordering::Relaxed)) {
            let found = reader.fill(importer, git, blob)?;
            importer.tally.add(1, found.entry.size())?;
            read.push(found);
        }
        Ok(read)
    };
    let parts = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        let join = |worker: std::thread::ScopedJoinHandle<'_, _>| match worker.join() {
            Ok(part) => part,
            Err(panic) => std::panic::resume_unwind(panic),
        };
        workers.into_iter().map(join).collect::<Vec<_>>()
    });
    for part in parts {
        part?.into_iter().for_each(|found| incoming.push(found));
    }
    Ok(())
}

/// git, asked about one revision of one repository.
struct Git<'a> {
    environment: GitEnvironment<'a>,
    dir: &'a Path,
    revision: &'a str,
}

impl Git<'_> {
    fn command(&self, words: &[&str]) -> Command {
        self.environment.command(self.dir, words)
    }

    fn output(&self, words: &[&str]) -> Result<Vec<u8>> {
        let output = self.command(words).output();
        let output = output.map_err(|source| Error::NoGit { source })?;
        match output.status.success() {
            true => Ok(output.stdout),
            false => Err(self.failed(&String::from_utf8_lossy(&output.stderr))),
        }
    }

    fn failed(&self, reason: &str) -> Error {
        let line = reason.lines().next().unwrap_or_default();
        let line = line.strip_prefix("fatal: ").unwrap_or(line);
        Error::Revision {
            revision: self.revision.to_owned(),
            repository: PathBuf::from(self.dir),
            reason: line.to_owned(),
        }
    }

    /// The commit that the revision means.
    fn commit(&self) -> Result<String> {
        let wanted = format!("{}^{{commit}}", self.revision);
        let words = ["rev-parse", "--verify", "--end-of-options", &wanted];
        let printed = self.output(&words)?;
        let text = String::from_utf8_lossy(&printed).trim().to_owned();
        let is_id = text.len() >= 40 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        is_id
            .then_some(text)
            .ok_or_else(|| self.failed("it names no single commit"))
    }

    fn time_of(&self, commit: &str) -> Result<Time> {
        let text = self.output(&["cat-file", "commit", commit])?;
        let text = String::from_utf8_lossy(&text);
        let line = text.lines().find(|line| line.starts_with("committer "));
        // `committer NAME <ADDRESS> SECONDS ZONE`
        let secs = line.and_then(|line| line.rsplit(' ').nth(1)?.parse().ok());
        Ok(Time {
            secs: secs.unwrap_or(0),
            nanos: 0,
        })
    }

    fn reader(&self) -> Result<Reader> {
        let spawned = self
            .command(&["cat-file", "--batch"])
            .stdin(Stdio::piped())
            .stderr(Stdio::null())
            .spawn();
        let mut child = spawned.map_err(|source| Error::NoGit { source })?;
        let taken = child.stdin.take().zip(child.stdout.take());
        let (asks, answers) = taken.ok_or_else(|| self.failed("it cannot be talked to"))?;
        Ok(Reader {
            child,
            asks,
            answers: BufReader::new(answers),
        })
    }
}

/// A `git cat-file --batch` process.
struct Reader {
    child: Child,
    asks: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Reader {
    fn fill(&mut self, importer: &Importer<'_>, git: &Git<'_>, blob: &Blob) -> Result<Found> {
        let lost = |error: std::io::Error| git.failed(&format!("git stopped: {error}"));
        self.asks
            .write_all(format!("{}\n", blob.object).as_bytes())
            .map_err(lost)?;
        let mut head = String::new();
        self.answers.read_line(&mut head).map_err(lost)?;
        // `object SP type SP size`, or `object SP missing`
        let size = head.trim_end().rsplit(' ').next();
        let size: u64 = size
            .and_then(|size| size.parse().ok())
            .ok_or_else(|| git.failed(&format!("object {} cannot be read", blob.object)))?;
        let mut body = (&mut self.answers).take(size);
        let entry = match &blob.found.entry.kind {
            Kind::Symlink { .. } => {
                let mut target = Vec::new();
                body.read_to_end(&mut target).map_err(lost)?;
                Entry {
                    kind: Kind::Symlink { target },
                    meta: blob.found.entry.meta.clone(),
                }
            }
            _ => {
                let (content, read) = importer.trees.write_content(&mut body)?;
                if read != size {
                    return Err(git.failed(&format!("object {} is cut short", blob.object)));
                }
                Entry::file(content, read, blob.found.entry.meta.clone())
            }
        };
        let mut newline = [0];
        self.answers.read_exact(&mut newline).map_err(lost)?;
        Ok(Found {
            path: blob.found.path.clone(),
            entry,
            inode: None,
        })
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        // It exits when its input closes, but not while it blocks on writing its output.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
