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
use crate::gate::Verb;
use crate::runtime::{Select, lock};
use crate::session::Session;
use crate::{Error, Result};

const THREADS_MAX: usize = 8;
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
        let mut candidates = Vec::new();
        trees.walk::<Error>(vault.head, &top, &mut |visit| {
            if let Kind::File { content, size, .. } = visit.entry.kind
                && size > 0
                && globs.matches(visit.path)
            {
                let path = visit.path.clone();
                candidates.push(Candidate {
                    path,
                    content,
                    size,
                });
            }
            Ok(Step::Into)
        })?;
        let files = search_all(trees, &matcher, request, &candidates)?;
        let (files, truncated) = cut(files, request);
        Ok(GrepFound {
            files,
            truncated,
            searched: candidates.len(),
            version: vault.version,
        })
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
fn search_all(
    trees: &Trees,
    matcher: &RegexMatcher,
    request: &GrepRequest,
    candidates: &[Candidate],
) -> Result<Vec<GrepFile>> {
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let threads = threads.min(THREADS_MAX).min(candidates.len());
    let (next, lines) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let found: Mutex<BTreeMap<usize, Result<GrepFile>>> = Mutex::default();
    let work = || {
        let mut searcher = searcher(request);
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let (Some(candidate), true) = (
                candidates.get(at),
                lines.load(Ordering::Relaxed) <= request.limit,
            ) else {
                return;
            };
            let searched = search_one(trees, matcher, request, &mut searcher, candidate);
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
        .before_context(request.before)
        .after_context(request.after)
        .binary_detection(BinaryDetection::quit(0))
        .bom_sniffing(false)
        .build()
}

fn search_one(
    trees: &Trees,
    matcher: &RegexMatcher,
    request: &GrepRequest,
    searcher: &mut Searcher,
    candidate: &Candidate,
) -> Result<GrepFile> {
    let mut collect = Collect {
        detail: request.detail,
        // One more than wanted shows that there are more.
        limit: request.limit.saturating_add(1),
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
    searched.map_err(|source| Error::Io {
        what: format!("searching {}", candidate.path),
        source,
    })?;
    if collect.is_binary {
        (collect.count, collect.matches) = (0, Vec::new());
    }
    Ok(GrepFile {
        path: candidate.path.clone(),
        count: collect.count,
        matches: collect.matches,
    })
}

fn cut(mut files: Vec<GrepFile>, request: &GrepRequest) -> (Vec<GrepFile>, bool) {
    if request.detail != GrepDetail::Lines {
        return (files, false);
    }
    let mut left = request.limit;
    let mut truncated = false;
    for file in &mut files {
        truncated |= file.matches.len() > left;
        file.matches.truncate(left);
        file.count = file.matches.len();
        left -= file.count;
    }
    files.retain(|file| file.count > 0);
    (files, truncated)
}

/// Takes in what the searcher finds in one file.
struct Collect {
    detail: GrepDetail,
    limit: usize,
    count: usize,
    matches: Vec<GrepMatch>,
    /// Lines before a match that is still to come.
    before: Vec<GrepLine>,
    is_binary: bool,
}

impl Sink for Collect {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, found: &SinkMatch<'_>) -> io::Result<bool> {
        self.count += 1;
        match self.detail {
            GrepDetail::Files => return Ok(false),
            GrepDetail::Counts => return Ok(true),
            GrepDetail::Lines => {}
        }
        self.matches.push(GrepMatch {
            line: line(found.line_number(), found.bytes()),
            before: std::mem::take(&mut self.before),
            after: Vec::new(),
        });
        Ok(self.matches.len() < self.limit)
    }

    fn context(&mut self, _: &Searcher, context: &SinkContext<'_>) -> io::Result<bool> {
        if self.detail != GrepDetail::Lines {
            return Ok(true);
        }
        let line = line(context.line_number(), context.bytes());
        match (context.kind(), self.matches.last_mut()) {
            (SinkContextKind::After, Some(last)) => last.after.push(line),
            _ => self.before.push(line),
        }
        Ok(true)
    }

    fn binary_data(&mut self, _: &Searcher, _: u64) -> io::Result<bool> {
        self.is_binary = true;
        Ok(false)
    }
}

fn line(number: Option<u64>, bytes: &[u8]) -> GrepLine {
    GrepLine {
        number: number.unwrap_or_default(),
        bytes: bytes.strip_suffix(b"\n").unwrap_or(bytes).to_vec(),
    }
}
