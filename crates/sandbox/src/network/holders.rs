//! The agent's search for the commands that have a socket open.
//!
//! A command may hide: it forks all the time, has many descriptors, cannot be looked into, or has put its socket into
//! the queue of a Unix socket. What hides in such a way is a candidate. So a command can make an answer less certain, but not
//! remove itself from it.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::owners::Owners;
use crate::plan::ExecKey;
use crate::sys;

/// The most sockets in one search.
pub(crate) const SOCKETS_MAX: usize = 64;
/// The most commands in the answer about one socket.
const KEYS_MAX: usize = 16;
/// How many descriptors of one process are looked at, and of all together. One takes about 2 µs.
const DESCRIPTORS_MAX: usize = 1024;
const DESCRIPTORS_OF_ALL: usize = 4096;
/// How many processes are looked at.
const PROCESSES_MAX: usize = 1024;
/// How long a search may take, on a host that is too busy for it.
const PATIENCE: Duration = Duration::from_millis(100);
/// How often processes are listed again, to find those that were forked meanwhile.
const ROUNDS: u32 = 4;
/// The most ancestors of a process.
const ANCESTORS_MAX: u32 = 1000;

/// The processes of an agent that are no commands, and the commands that run.
pub(crate) struct Family<'a> {
    pub mover: Option<i32>,
    /// The supervisors, and the keys of their commands.
    pub supervisors: &'a [(i32, ExecKey)],
}

/// Who has each of these sockets open. There is one answer for each.
pub(crate) fn find(inodes: &[u32], family: &Family<'_>) -> Vec<Owners> {
    let keys: BTreeSet<ExecKey> = family.supervisors.iter().map(|(_, key)| *key).collect();
    let mut keys = keys.into_iter();
    match (keys.next(), keys.next()) {
        (None, _) => vec![Owners::Unknown; inodes.len()],
        // Nobody else can have it.
        (Some(only), None) => vec![Owners::One(only); inodes.len()],
        _ => Search::new(inodes, family).run(),
    }
}

/// What is known of one process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Seen {
    /// All its descriptors were looked at.
    Whole,
    /// It may have any socket.
    Part,
}

/// The search cannot be finished.
struct Lost;

struct Search<'a> {
    names: Vec<PathBuf>,
    family: &'a Family<'a>,
    /// Who has each socket.
    having: Vec<BTreeSet<ExecKey>>,
    /// Who may have any of them.
    hiding: BTreeSet<ExecKey>,
    /// How many descriptors may still be looked at.
    left: usize,
    deadline: Instant,
}

impl<'a> Search<'a> {
    fn new(inodes: &[u32], family: &'a Family<'a>) -> Search<'a> {
        let name = |inode: &u32| PathBuf::from(format!("socket:[{inode}]"));
        Search {
            names: inodes.iter().map(name).collect(),
            family,
            having: vec![BTreeSet::new(); inodes.len()],
            hiding: BTreeSet::new(),
            left: DESCRIPTORS_OF_ALL,
            deadline: Instant::now() + PATIENCE,
        }
    }

    fn run(mut self) -> Vec<Owners> {
        match self.look_at_all() {
            Ok(()) => {
                let answer = |having: &BTreeSet<ExecKey>| self.answer(having);
                self.having.iter().map(answer).collect()
            }
            Err(Lost) => vec![Owners::Unknown; self.names.len()],
        }
    }

    fn answer(&self, having: &BTreeSet<ExecKey>) -> Owners {
        let candidates: Vec<ExecKey> = having.union(&self.hiding).copied().collect();
        match candidates[..] {
            // Closed, in flight between two processes, or forked away from each look.
            _ if having.is_empty() => Owners::Unknown,
            [only] => Owners::One(only),
            _ if candidates.len() > KEYS_MAX => Owners::Unknown,
            _ => Owners::AnyOf(candidates),
        }
    }

    fn look_at_all(&mut self) -> Result<(), Lost> {
        let mut known: BTreeSet<i32> = BTreeSet::from([1]);
        known.extend(self.family.supervisors.iter().map(|(pid, _)| *pid));
        known.extend(self.family.mover);
        for _ in 0..ROUNDS {
            let new = new_processes(&mut known);
            if new.is_empty() {
                return Ok(());
            }
            if known.len() > PROCESSES_MAX {
                return Err(Lost);
            }
            for pid in new {
                if self.look_at(pid)? == Seen::Part {
                    let key = self.command_of(pid)?;
                    self.hiding.extend(key);
                }
            }
        }
        // Those that never stop forking were not all seen.
        for pid in new_processes(&mut known) {
            let key = self.command_of(pid)?;
            self.hiding.extend(key);
        }
        Ok(())
    }

    /// Looks at the descriptors of a process.
    fn look_at(&mut self, pid: i32) -> Result<Seen, Lost> {
        let dir = PathBuf::from(format!("/proc/{pid}"));
        let entries = match fs::read_dir(dir.join("fd")) {
            Ok(entries) => entries,
            Err(error) if has_ended(&error) => return Ok(Seen::Whole),
            // Not dumpable.
            Err(_) => return Ok(Seen::Part),
        };
        let (mut count, mut seen) = (0, Seen::Whole);
        for entry in entries {
            if Instant::now() > self.deadline {
                return Err(Lost);
            }
            let Ok(entry) = entry else {
                return Ok(Seen::Part);
            };
            count += 1;
            if count > DESCRIPTORS_MAX || self.left == 0 {
                return Ok(Seen::Part);
            }
            self.left -= 1;
            // Closed meanwhile, if it cannot be read.
            let link = fs::read_link(entry.path()).unwrap_or_default();
            if let Some(place) = self.names.iter().position(|name| *name == link) {
                let key = self.command_of(pid)?;
                self.having[place].extend(key);
            } else if is_socket(&link) && has_queued(&dir.join("fdinfo").join(entry.file_name())) {
                seen = Seen::Part;
            }
        }
        // The table of descriptors is that of the first thread, which may have ended before the others.
        if count == 0 && has_threads(&dir) {
            return Ok(Seen::Part);
        }
        Ok(seen)
    }

    /// The command that a process belongs to. `None` if it is one of ours, or has ended.
    fn command_of(&self, pid: i32) -> Result<Option<ExecKey>, Lost> {
        let mut process = pid;
        for _ in 0..ANCESTORS_MAX {
            if Instant::now() > self.deadline {
                break;
            }
            let supervisors = self.family.supervisors.iter();
            if let Some((_, key)) = supervisors.into_iter().find(|(pid, _)| *pid == process) {
                return Ok(Some(*key));
            }
            if self.family.mover == Some(process) {
                return Ok(None);
            }
            process = match sys::parent_of(process) {
                Some(parent) if parent > 1 => parent,
                // A child of the agent that it does not know, or one from outside.
                Some(_) => break,
                None if process == pid => return Ok(None),
                // An ancestor has ended, and the process has another parent now.
                None => pid,
            };
        }
        Err(Lost)
    }
}

/// The processes that are not in `known`, which are added to it.
fn new_processes(known: &mut BTreeSet<i32>) -> Vec<i32> {
    let mut new = sys::process_ids();
    new.retain(|pid| known.insert(*pid));
    new
}

fn has_ended(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::ENOENT | libc::ESRCH))
}

fn is_socket(link: &Path) -> bool {
    link.as_os_str().as_encoded_bytes().starts_with(b"socket:[")
}

/// Whether descriptors wait in the queue of a Unix socket; false for all other sockets.
fn has_queued(info: &Path) -> bool {
    let text = fs::read_to_string(info).unwrap_or_default();
    let queued = text.lines().find_map(|line| line.strip_prefix("scm_fds:"));
    queued.is_some_and(|number| number.trim() != "0")
}

fn has_threads(dir: &Path) -> bool {
    fs::read_dir(dir.join("task")).is_ok_and(|tasks| tasks.count() > 1)
}
