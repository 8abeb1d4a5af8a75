//! Changes as text: unified patches that `git apply` takes, and counts of lines.

use std::fmt::{self, Write};

use avfs_vault::{Change, ChangeKind, Entry, Kind, Trees, VaultPath};
use imara_diff::{
    Algorithm, Diff as LineDiff, InternedInput, Interner, Token, UnifiedDiffConfig,
    UnifiedDiffPrinter,
};

use crate::Result;
use crate::bounds::PATCH_MAX;

/// Larger files are named in a patch, not shown.
const SHOWN_MAX: u64 = 2 << 20;
const CONTEXT: u32 = 3;
const NO_NEWLINE: &str = "\\ No newline at end of file";

/// How many lines of a file came and went.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LineCounts {
    pub added: u32,
    pub removed: u32,
    /// Whether it has no lines to count.
    pub binary: bool,
}

/// One line of a file's difference.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DiffLine {
    pub kind: LineKind,
    /// Where it is: before for a removed line, after for the others. The first is 1.
    pub number: u32,
    pub text: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LineKind {
    Added,
    Removed,
    Context,
}

/// The text of one side of a change.
enum Text {
    Shown(String),
    Binary,
}

/// Both texts, cut into lines and compared.
struct Compared<'a> {
    input: InternedInput<&'a str>,
    diff: LineDiff,
}

impl<'a> Compared<'a> {
    fn new(old: &'a str, new: &'a str) -> Compared<'a> {
        let input = InternedInput::new(old, new);
        let mut diff = LineDiff::compute(Algorithm::Histogram, &input);
        diff.postprocess_lines(&input);
        Compared { input, diff }
    }

    fn unified(&self) -> String {
        let mut config = UnifiedDiffConfig::default();
        config.context_len(CONTEXT);
        let printer = Printer(&self.input.interner);
        self.diff
            .unified_diff(&printer, config, &self.input)
            .to_string()
    }

    fn lines(&self) -> Vec<DiffLine> {
        let mut lines = Vec::new();
        let (old, new) = (&self.input.before, &self.input.after);
        let mut push = |kind, number: u32, token: Token| {
            let text: &str = self.input.interner[token];
            lines.push(DiffLine {
                kind,
                number: number + 1,
                text: text.strip_suffix('\n').unwrap_or(text).to_owned(),
            });
        };
        let hunks: Vec<_> = self.diff.hunks().collect();
        // What has been shown of the text after.
        let mut shown = 0;
        for (at, hunk) in hunks.iter().enumerate() {
            let from = hunk.after.start.saturating_sub(CONTEXT).max(shown);
            for number in from..hunk.after.start {
                push(LineKind::Context, number, new[number as usize]);
            }
            for number in hunk.before.clone() {
                push(LineKind::Removed, number, old[number as usize]);
            }
            for number in hunk.after.clone() {
                push(LineKind::Added, number, new[number as usize]);
            }
            let next = hunks
                .get(at + 1)
                .map_or(new.len() as u32, |hunk| hunk.after.start);
            shown = hunk.after.end.saturating_add(CONTEXT).min(next);
            for number in hunk.after.end..shown {
                push(LineKind::Context, number, new[number as usize]);
            }
        }
        lines
    }
}

/// Prints hunks as git does, also where a file does not end in a newline.
struct Printer<'a>(&'a Interner<&'a str>);

impl Printer<'_> {
    fn line(&self, f: &mut impl Write, sign: char, token: Token) -> fmt::Result {
        let line: &str = self.0[token];
        match line.strip_suffix('\n') {
            Some(text) => writeln!(f, "{sign}{text}"),
            None => writeln!(f, "{sign}{line}\n{NO_NEWLINE}"),
        }
    }
}

impl UnifiedDiffPrinter for Printer<'_> {
    fn display_header(
        &self,
        mut f: impl Write,
        start_before: u32,
        start_after: u32,
        len_before: u32,
        len_after: u32,
    ) -> fmt::Result {
        // A side without lines begins before its first one.
        let start = |start: u32, length: u32| start + u32::from(length > 0);
        writeln!(
            f,
            "@@ -{},{len_before} +{},{len_after} @@",
            start(start_before, len_before),
            start(start_after, len_after),
        )
    }

    fn display_context_token(&self, mut f: impl Write, token: Token) -> fmt::Result {
        self.line(&mut f, ' ', token)
    }

    fn display_hunk(&self, mut f: impl Write, before: &[Token], after: &[Token]) -> fmt::Result {
        for token in before {
            self.line(&mut f, '-', *token)?;
        }
        for token in after {
            self.line(&mut f, '+', *token)?;
        }
        Ok(())
    }
}

/// The patches of changes, each with what its file was called before, until they are too much for one answer; and how
/// many changes they are of.
pub(crate) fn patches<'a>(
    trees: &Trees,
    changes: impl Iterator<Item = (&'a Change, VaultPath)>,
) -> Result<(String, usize)> {
    let (mut text, mut done) = (String::new(), 0);
    for (change, old_path) in changes {
        let one = patch(trees, change, &old_path)?;
        if text.len() + one.len() > PATCH_MAX {
            break;
        }
        text += &one;
        done += 1;
    }
    Ok((text, done))
}

/// What a changed file was called before.
pub(crate) fn old_path(change: &Change) -> VaultPath {
    match &change.kind {
        ChangeKind::Renamed { from } => from.clone(),
        _ => change.path.clone(),
    }
}

/// The patch of one change, whose file was called `old_path` before.
fn patch(trees: &Trees, change: &Change, old_path: &VaultPath) -> Result<String> {
    let is_shown = |entry: &&Entry| !entry.is_dir();
    let before = change.before.as_ref().filter(is_shown);
    let after = change.after.as_ref().filter(is_shown);
    match (before, after) {
        (None, None) => Ok(String::new()),
        // What became another kind of thing went, and something else came.
        (Some(old), Some(new)) if git_type(old) != git_type(new) => {
            let gone = one_patch(trees, change, old_path, Some(old), None)?;
            Ok(gone + &one_patch(trees, change, old_path, None, Some(new))?)
        }
        (before, after) => one_patch(trees, change, old_path, before, after),
    }
}

fn one_patch(
    trees: &Trees,
    change: &Change,
    old_path: &VaultPath,
    before: Option<&Entry>,
    after: Option<&Entry>,
) -> Result<String> {
    let old_name = quoted("a", old_path);
    let new_name = quoted("b", &change.path);
    let mut patch = format!("diff --git {old_name} {new_name}\n");
    match (before, after) {
        (None, Some(new)) => patch += &format!("new file mode {}\n", git_mode(new)),
        (Some(old), None) => patch += &format!("deleted file mode {}\n", git_mode(old)),
        (Some(old), Some(new)) if git_mode(old) != git_mode(new) => {
            let (old, new) = (git_mode(old), git_mode(new));
            patch += &format!("old mode {old}\nnew mode {new}\n");
        }
        _ => {}
    }
    if let ChangeKind::Renamed { from } = &change.kind {
        let (from, to) = (quoted("", from), quoted("", &change.path));
        patch += &format!("rename from {from}\nrename to {to}\n");
    }
    let old_name = before.map_or("/dev/null", |_| &old_name);
    let new_name = after.map_or("/dev/null", |_| &new_name);
    match (text(trees, before)?, text(trees, after)?) {
        (Text::Shown(old), Text::Shown(new)) if old == new => {}
        (Text::Shown(old), Text::Shown(new)) => {
            patch += &format!("--- {old_name}\n+++ {new_name}\n");
            patch += &Compared::new(&old, &new).unified();
        }
        _ if same_content(before, after) => {}
        _ => patch += &format!("Binary files {old_name} and {new_name} differ\n"),
    }
    Ok(patch)
}

/// How many lines of a change came and went.
pub(crate) fn line_counts(trees: &Trees, change: &Change) -> Result<LineCounts> {
    let (before, after) = (change.before.as_ref(), change.after.as_ref());
    match (text(trees, before)?, text(trees, after)?) {
        (Text::Shown(old), Text::Shown(new)) => {
            let compared = Compared::new(&old, &new);
            Ok(LineCounts {
                added: compared.diff.count_additions(),
                removed: compared.diff.count_removals(),
                binary: false,
            })
        }
        _ => Ok(LineCounts {
            binary: true,
            ..LineCounts::default()
        }),
    }
}

/// The lines in which two files differ, with some around them; none for what has no lines.
pub(crate) fn lines(
    trees: &Trees,
    before: Option<&Entry>,
    after: Option<&Entry>,
) -> Result<Option<Vec<DiffLine>>> {
    match (text(trees, before)?, text(trees, after)?) {
        (Text::Shown(old), Text::Shown(new)) => Ok(Some(Compared::new(&old, &new).lines())),
        _ => Ok(None),
    }
}

/// The text to compare: nothing for what is absent, a target for a link.
fn text(trees: &Trees, entry: Option<&Entry>) -> Result<Text> {
    let bytes = match entry.map(|entry| &entry.kind) {
        None | Some(Kind::Directory { .. }) => Vec::new(),
        Some(Kind::Symlink { target }) => target.clone(),
        Some(Kind::File { content, size, .. }) if *size <= SHOWN_MAX => {
            trees.read(*content, 0, *size as usize)?
        }
        Some(Kind::File { .. } | Kind::Fifo) => return Ok(Text::Binary),
    };
    Ok(match String::from_utf8(bytes) {
        Ok(text) if !text.contains('\0') => Text::Shown(text),
        _ => Text::Binary,
    })
}

fn same_content(before: Option<&Entry>, after: Option<&Entry>) -> bool {
    match (before.map(|it| &it.kind), after.map(|it| &it.kind)) {
        (Some(Kind::File { content: a, .. }), Some(Kind::File { content: b, .. })) => a == b,
        (Some(Kind::Fifo), Some(Kind::Fifo)) => true,
        _ => false,
    }
}

fn git_type(entry: &Entry) -> u32 {
    match entry.kind {
        Kind::File { .. } => 0o100_000,
        Kind::Symlink { .. } => 0o120_000,
        Kind::Directory { .. } => 0o040_000,
        Kind::Fifo => 0o010_000,
    }
}

fn git_mode(entry: &Entry) -> String {
    let bits = if entry.is_symlink() {
        0
    } else {
        entry.meta.mode
    };
    format!("{:06o}", git_type(entry) | bits)
}

/// A path as git writes it in a patch: quoted where it would be misread.
fn quoted(side: &str, path: &VaultPath) -> String {
    let bytes = path.as_bytes();
    let bytes = if side.is_empty() { &bytes[1..] } else { bytes };
    let plain = std::str::from_utf8(bytes)
        .ok()
        .filter(|text| !text.contains(|c: char| c.is_control() || c == '"' || c == '\\'));
    if let Some(text) = plain {
        return format!("{side}{text}");
    }
    let mut name = format!("\"{side}");
    for &byte in bytes {
        match byte {
            b'"' | b'\\' => {
                name.push('\\');
                name.push(char::from(byte));
            }
            0x20..=0x7e => name.push(char::from(byte)),
            _ => name.push_str(&format!("\\{byte:03o}")),
        }
    }
    name + "\""
}
