//! What git prints for programs, read. All of it is written by whoever wrote the repository: names have any bytes, and
//! a record that makes no sense is left out.

use crate::wire::{
    GitBranchItem, GitCommitItem, GitEntry, GitStatItem, GitState, GitWord, to_text,
};

/// Paths in one answer.
pub(super) const ENTRIES_MAX: usize = 10_000;

/// The records of output that ends each with NUL. One that is cut off is left out.
fn records(output: &[u8]) -> impl Iterator<Item = &[u8]> {
    let end = output
        .iter()
        .rposition(|byte| *byte == 0)
        .map_or(0, |at| at + 1);
    let whole = &output[..end];
    whole
        .split_inclusive(|byte| *byte == 0)
        .map(|it| &it[..it.len() - 1])
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The words of a record: the last one has the rest of it, spaces included.
fn words(record: &[u8], count: usize) -> Option<Vec<&[u8]>> {
    let words: Vec<&[u8]> = record.splitn(count, |byte| *byte == b' ').collect();
    (words.len() == count).then_some(words)
}

fn word(mark: u8) -> GitWord {
    match mark {
        b'M' => GitWord::Modified,
        b'A' => GitWord::Added,
        b'D' => GitWord::Deleted,
        b'R' => GitWord::Renamed,
        b'C' => GitWord::Copied,
        b'T' => GitWord::TypeChanged,
        b'U' => GitWord::Conflicted,
        _ => GitWord::Unmodified,
    }
}

fn entry(path: &[u8], from: Option<&[u8]>, staged: GitWord, unstaged: GitWord) -> GitEntry {
    let (path, path_b64) = to_text(path.to_vec());
    let (from, from_b64) = from.map(|from| to_text(from.to_vec())).unzip();
    GitEntry {
        path,
        path_b64,
        from,
        from_b64: from_b64.flatten(),
        staged,
        unstaged,
    }
}

/// `git status --porcelain=v2 --branch -z`.
pub(super) fn status(output: &[u8], exec: String) -> GitState {
    let mut state = GitState {
        exec,
        branch: None,
        commit: None,
        upstream: None,
        ahead: 0,
        behind: 0,
        dirty: false,
        entries: Vec::new(),
        truncated: false,
    };
    let mut records = records(output);
    while let Some(record) = records.next() {
        if let Some(header) = record.strip_prefix(b"# ") {
            read_header(header, &mut state);
            continue;
        }
        let Some(found) = changed(record, &mut records) else {
            continue;
        };
        state.dirty = true;
        match state.entries.len() < ENTRIES_MAX {
            true => state.entries.push(found),
            false => state.truncated = true,
        }
    }
    state
}

fn read_header(header: &[u8], state: &mut GitState) {
    let header = text(header);
    let Some((key, value)) = header.split_once(' ') else {
        return;
    };
    match (key, value) {
        ("branch.oid", "(initial)") | ("branch.head", "(detached)") => {}
        ("branch.oid", commit) => state.commit = Some(commit.into()),
        ("branch.head", name) => state.branch = Some(name.into()),
        ("branch.upstream", name) => state.upstream = Some(name.into()),
        ("branch.ab", counts) => {
            let mut counts = counts.split(' ').map(|count| {
                let digits = count.trim_start_matches(['+', '-']);
                digits.parse().unwrap_or(0)
            });
            state.ahead = counts.next().unwrap_or(0);
            state.behind = counts.next().unwrap_or(0);
        }
        _ => {}
    }
}

/// One path of a status. The name before a rename is a record of its own.
fn changed<'a>(record: &[u8], more: &mut impl Iterator<Item = &'a [u8]>) -> Option<GitEntry> {
    let marks = |words: &[&[u8]]| match words.get(1) {
        Some([staged, unstaged]) => (word(*staged), word(*unstaged)),
        _ => (GitWord::Unmodified, GitWord::Unmodified),
    };
    match record.first()? {
        b'1' => {
            let words = words(record, 9)?;
            let (staged, unstaged) = marks(&words);
            Some(entry(words[8], None, staged, unstaged))
        }
        b'2' => {
            let words = words(record, 10)?;
            let (staged, unstaged) = marks(&words);
            Some(entry(words[9], Some(more.next()?), staged, unstaged))
        }
        b'u' => {
            let path = words(record, 11)?[10];
            let both = GitWord::Conflicted;
            Some(entry(path, None, both, both))
        }
        b'?' => {
            let path = words(record, 2)?[1];
            let not_staged = GitWord::Unmodified;
            Some(entry(path, None, not_staged, GitWord::Untracked))
        }
        _ => None,
    }
}

/// `git diff --numstat -z`.
pub(super) fn stat(output: &[u8]) -> Vec<GitStatItem> {
    let mut items = Vec::new();
    let mut records = records(output);
    while let Some(record) = records.next() {
        let mut fields = record.splitn(3, |byte| *byte == b'\t');
        let count = |field: Option<&[u8]>| text(field.unwrap_or_default()).parse().ok();
        let (added, removed) = (count(fields.next()), count(fields.next()));
        let Some(path) = fields.next() else { continue };
        // A rename has its two names in records of their own.
        let (from, path) = match path {
            [] => (records.next(), records.next().unwrap_or_default()),
            path => (None, path),
        };
        let names = entry(path, from, GitWord::Unmodified, GitWord::Unmodified);
        items.push(GitStatItem {
            path: names.path,
            path_b64: names.path_b64,
            from: names.from,
            from_b64: names.from_b64,
            added,
            removed,
        });
        if items.len() == ENTRIES_MAX {
            break;
        }
    }
    items
}

/// The fields of each commit in `git log -z`.
pub(super) const COMMIT: &str = "--format=%H%x00%P%x00%an%x00%ae%x00%aI%x00%s%x00%b";

/// `git log -z` with that format.
pub(super) fn log(output: &[u8]) -> Vec<GitCommitItem> {
    let fields: Vec<&[u8]> = records(output).collect();
    let commits = fields.chunks_exact(7).map(|fields| GitCommitItem {
        commit: text(fields[0]),
        parents: text(fields[1]).split_whitespace().map(Into::into).collect(),
        author_name: text(fields[2]),
        author_email: text(fields[3]),
        time: text(fields[4]),
        subject: text(fields[5]),
        body: text(fields[6]).trim_end().to_owned(),
    });
    commits.collect()
}

/// The fields of each branch in `git for-each-ref`; a line ends each.
pub(super) const BRANCH: &str = "--format=%(HEAD)%00%(refname:lstrip=2)%00%(objectname)%00%(upstream:short)%00%(contents:subject)%00";

/// `git for-each-ref` with that format: the branches, and which of them is checked out.
pub(super) fn branches(output: &[u8]) -> (Vec<GitBranchItem>, Option<String>) {
    let fields: Vec<&[u8]> = records(output).collect();
    let mut current = None;
    let mut branches = Vec::new();
    for fields in fields.chunks_exact(5).take(ENTRIES_MAX) {
        // The end of the line before.
        let mark = fields[0].strip_prefix(b"\n").unwrap_or(fields[0]);
        let (name, name_b64) = to_text(fields[1].to_vec());
        if mark == b"*" {
            current = Some(name.clone());
        }
        let upstream = text(fields[3]);
        branches.push(GitBranchItem {
            name,
            name_b64,
            commit: text(fields[2]),
            subject: text(fields[4]),
            upstream: (!upstream.is_empty()).then_some(upstream),
        });
    }
    (branches, current)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::Base64;

    #[test]
    fn a_status_is_read_whatever_the_names_are() {
        let output = b"# branch.oid abc\0# branch.head main\0# branch.upstream o/main\0\
            # branch.ab +2 -1\0\
            1 .M N... 100644 100644 100644 a b README.md\0\
            1 A. N... 000000 100644 100644 a b new \n\tfile\xff\0\
            2 R. N... 100644 100644 100644 a b R100 now\0# branch.head forged\0\
            u UU N... 1 2 3 4 a b c both sides\0? odd\nname\0? \0";
        let state = status(output, "x".into());
        assert_eq!(state.branch.as_deref(), Some("main"), "a name is no header");
        assert_eq!(state.commit.as_deref(), Some("abc"));
        assert_eq!(state.upstream.as_deref(), Some("o/main"));
        assert_eq!((state.ahead, state.behind), (2, 1));
        assert!(state.dirty && !state.truncated);
        let entries = &state.entries;
        let marks = |at: usize| (entries[at].staged, entries[at].unstaged);
        assert_eq!(entries[0].path, "README.md");
        assert_eq!(marks(0), (GitWord::Unmodified, GitWord::Modified));
        let exact = Some(Base64(b"new \n\tfile\xff".to_vec()));
        assert_eq!(entries[1].path_b64, exact);
        assert_eq!(marks(1), (GitWord::Added, GitWord::Unmodified));
        assert_eq!(entries[2].path, "now");
        assert_eq!(entries[2].from.as_deref(), Some("# branch.head forged"));
        assert_eq!(entries[3].path, "both sides");
        assert_eq!(marks(3), (GitWord::Conflicted, GitWord::Conflicted));
        assert_eq!(entries[4].path, "odd\nname");
        assert_eq!(marks(4), (GitWord::Unmodified, GitWord::Untracked));
        let fresh = status(
            b"# branch.oid (initial)\0# branch.head (detached)\0",
            "x".into(),
        );
        assert_eq!(
            (fresh.branch, fresh.commit, fresh.dirty),
            (None, None, false)
        );
    }

    #[test]
    fn nonsense_is_left_out_and_lists_end() {
        for output in [
            &b"1 .M too few\0"[..],
            b"2 R. N... 1 2 3 a b R100 now\0",
            b"x\0\0",
            b"? cut off",
            b"\xff\0# \0#\0? ",
        ] {
            assert!(status(output, "x".into()).entries.is_empty(), "{output:?}");
        }
        let many = b"? f\0".repeat(ENTRIES_MAX + 1);
        let state = status(&many, "x".into());
        assert_eq!(state.entries.len(), ENTRIES_MAX);
        assert!(state.truncated);
        assert!(log(b"abc\0def\0").is_empty());
        assert!(branches(b"\n*\0").0.is_empty());
        assert!(stat(b"1\t2\0").is_empty());
    }

    #[test]
    fn lines_are_counted_by_file() {
        let items = stat(b"1\t2\ta\tb\n\0-\t-\tbinary\x000\t0\t\0old\0new\0");
        assert_eq!(items.len(), 3);
        assert_eq!(
            (items[0].path.as_str(), items[0].added),
            ("a\tb\n", Some(1))
        );
        assert_eq!((items[1].added, items[1].removed), (None, None));
        assert_eq!(items[2].from.as_deref(), Some("old"));
        assert_eq!(items[2].path, "new");
    }

    #[test]
    fn commits_and_branches_are_read() {
        let output = b"h1\0p1 p2\0A\nB\0a@b\x002026-01-01T00:00:00Z\0subject\0body\n\n\0\
            h2\0\0\0\0t\0\0\0";
        let commits = log(output);
        assert_eq!(commits.len(), 2);
        assert_eq!(commits[0].parents, ["p1", "p2"]);
        assert_eq!(commits[0].body, "body");
        assert_eq!(commits[1].parents, [""; 0]);
        let (branches, current) = branches(b" \0a\0h1\0\0one\0\n*\0main\0h2\0origin/main\0two\0\n");
        assert_eq!(current.as_deref(), Some("main"));
        assert_eq!(branches[0].upstream, None);
        assert_eq!(branches[1].upstream.as_deref(), Some("origin/main"));
        assert_eq!(branches[1].subject, "two");
    }
}
