//! Changes that a report counts by directory instead of listing them: what the ignore rules of a repository name, and
//! caches in the home directory.
//!
//! The rules are those of the tree after the command, which may have written them. So they have bounds on size, number and
//! time, and what is beyond a bound is listed: rules that cannot be used hide nothing. What is in a `.git` directory, and a
//! `.gitignore` itself, is listed whatever the rules say, unless a directory above it is ignored as a whole.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::Duration;

use avfs_vault::{Change, ChangeKind, Entry, Kind, RootId, TreeId, Trees};
use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};
use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};

use crate::live::host::HOME;
use crate::live::layer_commit::{is_beneath, is_of_home};

/// Bytes of a file of rules; the rest of a longer one is not read.
const FILE_MAX: usize = 64 << 10;
/// Rules of one file.
const LINES_MAX: usize = 1_000;
/// A longer rule names nothing.
const LINE_MAX: usize = 512;
/// A rule with more of `*`, `?` and `[` names nothing: each multiplies the work of a comparison.
const WILDCARDS_MAX: usize = 16;
/// All of these in one file.
const FILE_WILDCARDS_MAX: usize = 4_000;
/// Files of rules that are read for one report.
const FILES_MAX: usize = 256;
/// A longer path is compared with no rule.
const PATH_MAX: usize = 4_096;
/// Processor time for the rules of one report.
const TIME_MAX: Duration = Duration::from_millis(250);
/// Directories that a report names.
pub const DIRECTORIES_MAX: usize = 100;
/// Bytes of their names together.
const NAMES_MAX: usize = 16 << 10;

/// Directories of the home directory in which programs keep what they can have again.
const CACHES: [&str; 16] = [
    ".bun/install/cache",
    ".bundle/cache",
    ".cache",
    ".cargo/.global-cache",
    ".cargo/.package-cache",
    ".cargo/git",
    ".cargo/registry",
    ".composer/cache",
    ".gradle/caches",
    ".ivy2/cache",
    ".local/share/pnpm/store",
    ".m2/repository",
    ".npm",
    ".nuget/packages",
    ".yarn/berry/cache",
    "go/pkg",
];

/// Changes that are counted and not listed, by directory.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ignored {
    /// The topmost ignored directory, or the directory of an ignored file.
    #[serde(with = "directories")]
    pub directories: BTreeMap<Vec<u8>, Counts>,
    /// Those of all directories beyond the ones that are named.
    pub other: Counts,
}

/// How many paths came, changed and went, times alone excepted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    pub created: u64,
    pub modified: u64,
    pub deleted: u64,
    /// Bytes of the files that came or changed, as they are now.
    pub bytes: u64,
}

impl Counts {
    fn add(&mut self, change: &Change) {
        match change.kind {
            ChangeKind::Created => self.created += 1,
            ChangeKind::Deleted => self.deleted += 1,
            ChangeKind::Modified | ChangeKind::Mode | ChangeKind::Xattrs => self.modified += 1,
            ChangeKind::Times | ChangeKind::Renamed { .. } => return,
        }
        if let Some(Kind::File { size, .. }) = change.after.as_ref().map(|entry| &entry.kind) {
            self.bytes = self.bytes.saturating_add(*size);
        }
    }

    /// How many paths these are.
    pub fn paths(&self) -> u64 {
        self.created + self.modified + self.deleted
    }
}

impl Ignored {
    pub fn is_empty(&self) -> bool {
        self.directories.is_empty() && self.other == Counts::default()
    }

    /// How many paths these are.
    pub fn paths(&self) -> u64 {
        let named: u64 = self.directories.values().map(Counts::paths).sum();
        named + self.other.paths()
    }

    pub(crate) fn add(&mut self, directory: &[u8], change: &Change) {
        if let Some(counts) = self.directories.get_mut(directory) {
            return counts.add(change);
        }
        let named: usize = self.directories.keys().map(Vec::len).sum();
        let fits = named + directory.len() <= NAMES_MAX;
        match fits && self.directories.len() < DIRECTORIES_MAX {
            true => self
                .directories
                .entry(directory.to_vec())
                .or_default()
                .add(change),
            false => self.other.add(change),
        }
    }
}

/// Where a change is told.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Listed,
    InHome,
    /// Counted with this directory.
    Counted(Vec<u8>),
}

/// Says of one change after the other, in the order of the tree, where it is told.
pub(crate) struct Sorter<'a> {
    rules: Rules<'a>,
    caches: Vec<Vec<u8>>,
}

impl<'a> Sorter<'a> {
    /// For changes up to this root.
    pub fn new(trees: &'a Trees, after: RootId) -> Sorter<'a> {
        let cache = |name: &&str| format!("{HOME}/{name}").into_bytes();
        Sorter {
            rules: Rules::new(trees, after),
            caches: CACHES.iter().map(cache).collect(),
        }
    }

    pub fn place(&mut self, change: &Change) -> Place {
        if !is_of_home(change) {
            return match self.rules.directory_of(change) {
                Some(directory) => Place::Counted(directory),
                None => Place::Listed,
            };
        }
        let path = change.path.as_bytes();
        let cache = self.caches.iter().find(|cache| is_beneath(path, cache));
        match cache {
            Some(cache) => Place::Counted(with_slash(cache)),
            None => Place::InHome,
        }
    }
}

fn with_slash(directory: &[u8]) -> Vec<u8> {
    [directory, b"/"].concat()
}

/// The ignore rules of one tree, as far as they are needed.
struct Rules<'a> {
    trees: &'a Trees,
    root: RootId,
    /// The directory that the last change was in; nothing for the top.
    at: Vec<u8>,
    /// It and those above it, the top first; empty before the first change.
    levels: Vec<Level>,
    files: usize,
    spent: Duration,
}

/// What is known of a directory.
struct Level {
    /// Bytes of its path.
    end: usize,
    /// None if there is no such directory any more.
    tree: Option<TreeId>,
    standing: Standing,
    /// Its own rules, the stronger ones first.
    own: Vec<Gitignore>,
    /// Whether the rules of directories above it do not hold in it.
    is_repository: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Standing {
    Plain,
    /// With all that is in it.
    Ignored,
    /// What git itself keeps, which no rule names.
    Git,
}

impl<'a> Rules<'a> {
    fn new(trees: &'a Trees, root: RootId) -> Rules<'a> {
        Rules {
            trees,
            root,
            at: Vec::new(),
            levels: Vec::new(),
            files: 0,
            spent: Duration::ZERO,
        }
    }

    /// The directory with which the change is counted; none if no rule names it.
    fn directory_of(&mut self, change: &Change) -> Option<Vec<u8>> {
        let path = change.path.as_bytes();
        let cut = path.iter().rposition(|byte| *byte == b'/')?;
        let (above, name) = (&path[..cut], &path[cut + 1..]);
        if name.is_empty() {
            return None;
        }
        self.go_to(above);
        let level = self.levels.last()?;
        match level.standing {
            Standing::Ignored => return Some(with_slash(&self.at[..level.end])),
            Standing::Git => return None,
            Standing::Plain => {}
        }
        let is_dir = |entry: &Option<Entry>| entry.as_ref().is_some_and(Entry::is_dir);
        let is_dir = is_dir(&change.after) || change.after.is_none() && is_dir(&change.before);
        match (self.names(path, is_dir), is_dir) {
            (false, _) => None,
            (true, true) => Some(with_slash(path)),
            (true, false) => Some(with_slash(above)),
        }
    }

    /// Makes this directory, or the topmost ignored one above it, the last level.
    fn go_to(&mut self, directory: &[u8]) {
        if self.levels.is_empty() {
            self.enter_top();
        }
        while let Some(level) = self.levels.last()
            && !is_beneath(directory, &self.at[..level.end])
        {
            self.levels.pop();
        }
        let end = self.levels.last().map_or(0, |level| level.end);
        self.at.truncate(end);
        let mut rest = &directory[end..];
        while let Some(begun) = rest.strip_prefix(b"/") {
            let is_plain = self.levels.last();
            if is_plain.is_some_and(|level| level.standing != Standing::Plain) {
                return;
            }
            let length = begun.iter().position(|byte| *byte == b'/');
            let (name, behind) = begun.split_at(length.unwrap_or(begun.len()));
            self.enter(name);
            rest = behind;
        }
    }

    fn enter_top(&mut self) {
        let top = self.trees.root(self.root).ok();
        let tree = top.and_then(|root| tree_of(Some(&root.top)));
        let (own, is_repository) = self.read(tree);
        self.levels.push(Level {
            end: 0,
            tree,
            standing: Standing::Plain,
            own,
            is_repository,
        });
    }

    /// Goes one directory down.
    fn enter(&mut self, name: &[u8]) {
        let above = self.levels.last().and_then(|level| level.tree);
        let tree = above.and_then(|above| tree_of(self.child(above, name).as_ref()));
        self.at.push(b'/');
        self.at.extend_from_slice(name);
        let at = std::mem::take(&mut self.at);
        let standing = match name == b".git" {
            true => Standing::Git,
            false if self.names(&at, true) => Standing::Ignored,
            false => Standing::Plain,
        };
        self.at = at;
        let (own, is_repository) = match standing {
            Standing::Plain => self.read(tree),
            Standing::Ignored | Standing::Git => (Vec::new(), false),
        };
        self.levels.push(Level {
            end: self.at.len(),
            tree,
            standing,
            own,
            is_repository,
        });
    }

    /// Whether a rule of the last level, or of one above it in the repository, names the path.
    fn names(&mut self, path: &[u8], is_dir: bool) -> bool {
        let name = path.rsplit(|byte| *byte == b'/').next();
        let is_git = name.is_some_and(|name| name == b".git" || !is_dir && name == b".gitignore");
        if is_git || path.len() > PATH_MAX {
            return false;
        }
        let path = Path::new(OsStr::from_bytes(path));
        for at in (0..self.levels.len()).rev() {
            for of in 0..self.levels[at].own.len() {
                if self.spent > TIME_MAX {
                    return false;
                }
                let began = processor_time();
                let found = self.levels[at].own[of].matched(path, is_dir);
                let (is_ignored, is_found) = (found.is_ignore(), !matches!(found, Match::None));
                self.spent += processor_time().saturating_sub(began);
                if is_found {
                    return is_ignored;
                }
            }
            if self.levels[at].is_repository {
                break;
            }
        }
        false
    }

    /// The rules in a directory, and whether it is the top of a repository.
    fn read(&mut self, tree: Option<TreeId>) -> (Vec<Gitignore>, bool) {
        let Some(tree) = tree else {
            return (Vec::new(), false);
        };
        let git = self.child(tree, b".git");
        let exclude = ["info", "exclude"].into_iter();
        let exclude = exclude.fold(git.clone(), |entry, name| {
            self.child(tree_of(entry.as_ref())?, name.as_bytes())
        });
        let files = [self.child(tree, b".gitignore"), exclude];
        let mut own = Vec::new();
        for file in files.into_iter().flatten() {
            if self.files >= FILES_MAX || self.spent > TIME_MAX {
                break;
            }
            self.files += 1;
            let began = processor_time();
            own.extend(self.parse(&file));
            self.spent += processor_time().saturating_sub(began);
        }
        (own, git.is_some())
    }

    /// The rules in a file; none if it is no plain file, cannot be read, or has none.
    fn parse(&self, file: &Entry) -> Option<Gitignore> {
        let Kind::File { content, size, .. } = &file.kind else {
            return None;
        };
        let read = usize::try_from(*size).unwrap_or(usize::MAX).min(FILE_MAX);
        let mut bytes = self.trees.read(*content, 0, read).ok()?;
        if *size > FILE_MAX as u64 {
            // A part of a line would mean something else.
            let end = bytes.iter().rposition(|byte| *byte == b'\n')?;
            bytes.truncate(end);
        }
        let directory = match self.at.is_empty() {
            true => b"/".as_slice(),
            false => &self.at,
        };
        let mut builder = GitignoreBuilder::new(Path::new(OsStr::from_bytes(directory)));
        let (mut lines, mut wildcards) = (0, 0);
        for line in bytes.split(|byte| *byte == b'\n').filter_map(usable) {
            wildcards += wildcards_in(line);
            if lines == LINES_MAX || wildcards > FILE_WILDCARDS_MAX {
                break;
            }
            // git ignores invalid lines.
            lines += usize::from(builder.add_line(None, line).is_ok());
        }
        let rules = builder.build().ok()?;
        (!rules.is_empty()).then_some(rules)
    }

    /// What has this name in a directory. Damage shows where the file itself is read.
    fn child(&self, tree: TreeId, name: &[u8]) -> Option<Entry> {
        self.trees.child(tree, name).ok().flatten()
    }
}

fn tree_of(entry: Option<&Entry>) -> Option<TreeId> {
    match entry?.kind {
        Kind::Directory { tree, .. } => Some(tree),
        _ => None,
    }
}

/// A line that is a rule within the bounds.
fn usable(line: &[u8]) -> Option<&str> {
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    let line = std::str::from_utf8(line).ok()?;
    let is_rule = !line.is_empty() && !line.starts_with('#');
    let fits = line.len() <= LINE_MAX && wildcards_in(line) <= WILDCARDS_MAX;
    (is_rule && fits).then_some(line)
}

fn wildcards_in(line: &str) -> usize {
    let wild = |byte: &u8| matches!(byte, b'*' | b'?' | b'[' | b'{');
    line.bytes().filter(|byte| wild(byte)).count()
}

/// Of this thread: other work of the machine does not count.
fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(
        time.tv_sec.unsigned_abs(),
        u32::try_from(time.tv_nsec).unwrap_or(0),
    )
}

/// Directories and their counts as a list of pairs, since names need not be text.
mod directories {
    use super::{BTreeMap, Counts};
    use serde::{Deserialize, Deserializer, Serializer};

    pub fn serialize<S: Serializer>(
        value: &BTreeMap<Vec<u8>, Counts>,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        to.collect_seq(value)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<BTreeMap<Vec<u8>, Counts>, D::Error> {
        let pairs = Vec::<(Vec<u8>, Counts)>::deserialize(from)?;
        Ok(pairs.into_iter().collect())
    }
}
