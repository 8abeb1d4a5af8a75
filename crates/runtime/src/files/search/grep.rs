//! Lines of content: ripgrep's engine over a tree, on all processors.

use std::collections::BTreeMap;
use std::io;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use avfs_vault::{Content, Kind, Step, Trees, VaultPath};
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{
    BinaryDetection, Searcher, SearcherBuilder, Sink, SinkContext, SinkContextKind, SinkMatch,
};

use super::globs::Globs;
use crate::bounds::{CONTEXT_MAX, GREP_BYTES_MAX, LINE_MAX, LISTED_MAX};
use crate::gate::Verb;
use crate::runtime::{Select, lock};
use crate::session::Session;
use crate::{Error, Result};

const THREADS_MAX: usize = 8;
/// Files are searched so many at a time.
const BATCH: usize = 4096;
/// What a line takes beside its bytes.
const PER_LINE: usize = 64;
/// Files up to this size are searched in one piece.
const WHOLE_MAX: u64 = 1 << 20;

/// What to look for, and where.
#[derive(Debug, Clone)]
pub struct GrepRequest {
    pub pattern: String,
    pub path: VaultPath,
    pub ignore_case: bool,
    /// The pattern is text, not a regular expression.
    pub fixed: bool,
    /// Lines that do not match.
    pub invert: bool,
    pub before: usize,
    pub after: usize,
    pub globs: Vec<String>,
    pub detail: GrepDetail,
    /// At most so many lines.
    pub limit: usize,
}

/// What is told about each file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GrepDetail {
    Lines,
    /// How many lines there are.
    Counts,
    /// Only that there is one.
    Files,
}

#[derive(Debug)]
pub struct GrepFound {
    /// The files with matches, by path.
    pub files: Vec<GrepFile>,
    /// Whether there are more than were asked for.
    pub truncated: bool,
    pub searched: usize,
    pub version: u64,
}

#[derive(Debug)]
pub struct GrepFile {
    pub path: VaultPath,
    pub count: usize,
    /// Empty unless lines were asked for.
    pub matches: Vec<GrepMatch>,
}

/// A line that matches, and those around it.
#[derive(Debug)]
pub struct GrepMatch {
    pub line: GrepLine,
    pub before: Vec<GrepLine>,
    pub after: Vec<GrepLine>,
}

#[derive(Debug)]
pub struct GrepLine {
    pub number: u64,
    /// Without its end.
    pub bytes: Vec<u8>,
}

/// A file to be searched.
struct Candidate {
    path: VaultPath,
    content: Content,
    size: u64,
}

impl Session {
    /// The lines of text files that match. Binary files are left out.
    pub fn grep(&self, vault: Select, request: &GrepRequest) -> Result<GrepFound> {
        let matcher = matcher(request)?;
        let globs = Globs::new(&request.globs)?;
        let vault = self.vault(&vault, Verb::Read)?;
        self.check_kept(&request.path)?;
        let vault = self.up_to_date(&vault)?;
        let trees = self.inner.vaults.trees();
        let (top, _) = trees.resolve(vault.head, &request.path)?;
        let mut search = Search::new(trees, &matcher, request);
        trees.walk::<Error>(vault.head, &top, &mut |visit| {
            if search.is_full() {
                return Ok(Step::Past);
            }
            if let Kind::File { content, size, .. } = visit.entry.kind
                && size > 0
                && globs.matches(visit.path)
            {
                let path = visit.path.clone();
                search.add(Candidate {
                    path,
                    content,
                    size,
                })?;
            }
            Ok(Step::Into)
        })?;
        search.go()?;
        let (files, truncated) = search.cut();
        Ok(GrepFound {
            files,
            truncated,
            searched: search.searched,
            version: vault.version,
        })
    }
}

/// A search under way: files are gathered and searched some at a time, so that neither a vault of many files nor one of
/// many matches is ever held as a whole.
struct Search<'a> {
    trees: &'a Trees,
    matcher: &'a RegexMatcher,
    request: &'a GrepRequest,
    waiting: Vec<Candidate>,
    files: Vec<GrepFile>,
    lines: usize,
    /// How many bytes of lines may still be found.
    room: Room,
    searched: usize,
}

impl<'a> Search<'a> {
    fn new(trees: &'a Trees, matcher: &'a RegexMatcher, request: &'a GrepRequest) -> Search<'a> {
        Search {
            trees,
            matcher,
            request,
            waiting: Vec::new(),
            files: Vec::new(),
            lines: 0,
            room: Room::default(),
            searched: 0,
        }
    }

    /// Whether more would not be told.
    fn is_full(&self) -> bool {
        self.files.len() > LISTED_MAX || self.lines > limit(self.request) || self.room.is_full()
    }

    fn add(&mut self, candidate: Candidate) -> Result<()> {
        self.waiting.push(candidate);
        match self.waiting.len() == BATCH {
            true => self.go(),
            false => Ok(()),
        }
    }

    fn go(&mut self) -> Result<()> {
        let candidates = std::mem::take(&mut self.waiting);
        self.searched += candidates.len();
        let found = search_all(self, &candidates)?;
        self.lines += found.iter().map(|file| file.matches.len()).sum::<usize>();
        self.files.extend(found);
        Ok(())
    }

    /// What was found within the limits, and whether there is more.
    fn cut(&mut self) -> (Vec<GrepFile>, bool) {
        let mut files = std::mem::take(&mut self.files);
        let mut truncated = files.len() > LISTED_MAX || self.room.is_full();
        files.truncate(LISTED_MAX);
        if self.request.detail != GrepDetail::Lines {
            return (files, truncated);
        }
        let mut left = limit(self.request);
        for file in &mut files {
            truncated |= file.matches.len() > left;
            file.matches.truncate(left);
            file.count = file.matches.len();
            left -= file.count;
        }
        files.retain(|file| file.count > 0);
        (files, truncated)
    }
}

fn limit(request: &GrepRequest) -> usize {
    request.limit.min(LISTED_MAX)
}

/// The bytes of lines that were found so far.
#[derive(Default)]
struct Room(AtomicUsize);

impl Room {
    fn is_full(&self) -> bool {
        self.0.load(Ordering::Relaxed) > GREP_BYTES_MAX
    }

    fn take(&self, bytes: usize) {
        self.0.fetch_add(bytes, Ordering::Relaxed);
    }
}

fn matcher(request: &GrepRequest) -> Result<RegexMatcher> {
    let mut builder = RegexMatcherBuilder::new();
    builder
        .case_insensitive(request.ignore_case)
        .fixed_strings(request.fixed)
        .line_terminator(Some(b'\n'));
    builder
        .build(&request.pattern)
        .map_err(|error| Error::Invalid {
            what: "pattern",
            reason: error.to_string(),
        })
}

/// Files are handed out in order, so once enough lines were found, they are in those taken by then.
fn search_all(search: &Search<'_>, candidates: &[Candidate]) -> Result<Vec<GrepFile>> {
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let threads = threads.min(THREADS_MAX).min(candidates.len());
    let (next, lines) = (AtomicUsize::new(0), AtomicUsize::new(search.lines));
    let found: Mutex<BTreeMap<usize, Result<GrepFile>>> = Mutex::default();
    let work = || {
        let mut searcher = searcher(search.request);
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let (Some(candidate), true) = (
                candidates.get(at),
                lines.load(Ordering::Relaxed) <= limit(search.request) && !search.room.is_full(),
            ) else {
                return;
            };
            let searched = search_one(search, &mut searcher, candidate);
            if let Ok(file) = &searched {
                lines.fetch_add(file.matches.len(), Ordering::Relaxed);
                if file.count == 0 {
                    continue;
                }
            }
            lock(&found).insert(at, searched);
        }
    };
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(work);
        }
    });
    let found = std::mem::take(&mut *lock(&found));
    found.into_values().collect()
}

fn searcher(request: &GrepRequest) -> Searcher {
    SearcherBuilder::new()
        .line_number(true)
        .invert_match(request.invert)
        .before_context(request.before.min(CONTEXT_MAX))
        .after_context(request.after.min(CONTEXT_MAX))
        .heap_limit(Some(LINE_MAX))
        .binary_detection(BinaryDetection::quit(0))
        .bom_sniffing(false)
        .build()
}

fn search_one(
    search: &Search<'_>,
    searcher: &mut Searcher,
    candidate: &Candidate,
) -> Result<GrepFile> {
    let (trees, matcher) = (search.trees, search.matcher);
    let mut collect = Collect {
        detail: search.request.detail,
        // One more than wanted shows that there are more.
        limit: limit(search.request) + 1,
        room: &search.room,
        count: 0,
        matches: Vec::new(),
        before: Vec::new(),
        is_binary: false,
    };
    let (content, size) = (candidate.content, candidate.size);
    let searched = if trees.next_hole(content, size, 0)? < size {
        // Zeros are what tells that a file is no text.
        collect.is_binary = true;
        Ok(())
    } else if size <= WHOLE_MAX {
        let bytes = trees.read(content, 0, size as usize)?;
        searcher.search_slice(matcher, &bytes, &mut collect)
    } else {
        searcher.search_reader(matcher, trees.reader(content, size), &mut collect)
    };
    match searched {
        // A line that does not fit into the searcher's memory is no line of text.
        Err(error) if is_long_line(&error) => collect.is_binary = true,
        searched => searched.map_err(|source| Error::Io {
            what: format!("searching {}", candidate.path),
            source,
        })?,
    }
    if collect.is_binary {
        (collect.count, collect.matches) = (0, Vec::new());
    }
    Ok(GrepFile {
        path: candidate.path.clone(),
        count: collect.count,
        matches: collect.matches,
    })
}

/// Takes in what the searcher finds in one file.
struct Collect<'a> {
    detail: GrepDetail,
    limit: usize,
    room: &'a Room,
    count: usize,
    matches: Vec<GrepMatch>,
    /// Lines before a match that is still to come.
    before: Vec<GrepLine>,
    is_binary: bool,
}

impl Sink for Collect<'_> {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, found: &SinkMatch<'_>) -> io::Result<bool> {
        self.count += 1;
        match self.detail {
            GrepDetail::Files => return Ok(false),
            GrepDetail::Counts => return Ok(true),
            GrepDetail::Lines => {}
        }
        self.room.take(found.bytes().len() + PER_LINE);
        self.matches.push(GrepMatch {
            line: line(found.line_number(), found.bytes()),
            before: std::mem::take(&mut self.before),
            after: Vec::new(),
        });
        Ok(self.matches.len() < self.limit && !self.room.is_full())
    }

    fn context(&mut self, _: &Searcher, context: &SinkContext<'_>) -> io::Result<bool> {
        if self.detail != GrepDetail::Lines {
            return Ok(true);
        }
        self.room.take(context.bytes().len() + PER_LINE);
        let line = line(context.line_number(), context.bytes());
        match (context.kind(), self.matches.last_mut()) {
            (SinkContextKind::After, Some(last)) => last.after.push(line),
            _ => self.before.push(line),
        }
        Ok(!self.room.is_full())
    }

    fn binary_data(&mut self, _: &Searcher, _: u64) -> io::Result<bool> {
        self.is_binary = true;
        Ok(false)
    }
}

/// Whether the searcher ran into its own limit; whatever reading the store says is something else.
fn is_long_line(error: &io::Error) -> bool {
    let inner = error.get_ref();
    error.kind() == io::ErrorKind::Other
        && inner.is_some_and(|inner| inner.downcast_ref::<avfs_vault::Error>().is_none())
}

fn line(number: Option<u64>, bytes: &[u8]) -> GrepLine {
    GrepLine {
        number: number.unwrap_or_default(),
        bytes: bytes.strip_suffix(b"\n").unwrap_or(bytes).to_vec(),
    }
}
