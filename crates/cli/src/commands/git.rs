//! `avfs git`: repositories in the vault, by the vault's own git.

use super::paths;
use crate::args::{
    GitBranchArgs, GitCloneArgs, GitCommitArgs, GitDiffArgs, GitLogArgs, GitVerb, RepositoryArgs,
};
use crate::error::Result;
use crate::output::Output;
use crate::output::changes::{printable, printable_line};
use crate::output::table::{table, time};
use crate::session::Session;
use avfs_api::wire::{
    Base64, GitBranch, GitBranches, GitClone, GitCloned, GitCommit, GitCommitted, GitDiff,
    GitDiffReport, GitEntry, GitHistory, GitLog, GitState, GitStatus, GitWord,
};
use std::ffi::OsString;

pub fn run(verb: GitVerb, session: &mut Session, output: Output) -> Result<()> {
    match verb {
        GitVerb::Status(args) => {
            let (path, path_b64) = directory(args);
            output.answer(&session.call(&GitStatus { path, path_b64 })?, status)
        }
        GitVerb::Diff(args) => output.answer(&session.call(&diff_of(args))?, diff),
        GitVerb::Commit(args) => output.answer(&session.call(&commit_of(args))?, committed),
        GitVerb::Branch(args) => output.answer(&session.call(&branch_of(args))?, branches),
        GitVerb::Log(args) => output.answer(&session.call(&log_of(args))?, history),
        GitVerb::Clone(args) => output.answer(&session.call(&clone_of(args))?, cloned),
    }
}

type Named = (Option<String>, Option<Base64>);

fn directory(args: RepositoryArgs) -> Named {
    named(args.path)
}

fn named(path: Option<OsString>) -> Named {
    match path {
        None => (None, None),
        Some(path) => {
            let (path, exact) = paths::in_vault(&path);
            (Some(path), exact)
        }
    }
}

fn diff_of(args: GitDiffArgs) -> GitDiff {
    let (path, path_b64) = directory(args.repository);
    let file = args.file.map(|file| {
        use std::os::unix::ffi::OsStringExt;
        avfs_api::wire::to_text(file.into_vec())
    });
    let (file, file_b64) = file.unzip();
    GitDiff {
        path,
        path_b64,
        staged: args.staged,
        commit: args.commit,
        file,
        file_b64: file_b64.flatten(),
        stat: args.stat,
        max_bytes: args.max_bytes,
    }
}

fn commit_of(args: GitCommitArgs) -> GitCommit {
    let (path, path_b64) = directory(args.repository);
    GitCommit {
        message: args.message,
        path,
        path_b64,
        all: args.all,
        author_name: args.author_name,
        author_email: args.author_email,
    }
}

fn branch_of(args: GitBranchArgs) -> GitBranch {
    let (path, path_b64) = directory(args.repository);
    GitBranch {
        path,
        path_b64,
        create: args.create,
        from: args.from,
        switch: args.switch,
    }
}

fn log_of(args: GitLogArgs) -> GitLog {
    let (path, path_b64) = directory(args.repository);
    GitLog {
        path,
        path_b64,
        from: args.from,
        limit: args.limit,
    }
}

fn clone_of(args: GitCloneArgs) -> GitClone {
    let (path, path_b64) = named(args.path);
    GitClone {
        url: args.url,
        path,
        path_b64,
        branch: args.branch,
        depth: args.depth,
    }
}

fn status(state: &GitState) -> String {
    let branch = state
        .branch
        .as_deref()
        .map_or("no branch".into(), printable);
    let mut first = format!("on {branch}");
    if let Some(upstream) = &state.upstream {
        let upstream = printable(upstream);
        let (ahead, behind) = (state.ahead, state.behind);
        first += &format!(", {ahead} ahead of and {behind} behind {upstream}");
    }
    let mut lines = vec![first];
    lines.extend(state.entries.iter().map(entry));
    if !state.dirty {
        lines.push("nothing has changed".into());
    }
    if state.truncated {
        lines.push("… and more".into());
    }
    lines.join("\n")
}

fn entry(entry: &GitEntry) -> String {
    let (mark, word) = match (entry.staged, entry.unstaged) {
        (GitWord::Conflicted, _) => ("conflict", "both sides"),
        (_, GitWord::Untracked) => ("untracked", ""),
        (GitWord::Unmodified, unstaged) => ("changed", word(unstaged)),
        (staged, GitWord::Unmodified) => ("staged", word(staged)),
        (_, unstaged) => ("staged and changed", word(unstaged)),
    };
    let mut line = format!("  {mark}: {}", printable(&entry.path));
    if !word.is_empty() {
        line += &format!(" ({word})");
    }
    match &entry.from {
        Some(from) => line + &format!(" from {}", printable(from)),
        None => line,
    }
}

fn word(word: GitWord) -> &'static str {
    match word {
        GitWord::Unmodified => "unmodified",
        GitWord::Modified => "modified",
        GitWord::Added => "added",
        GitWord::Deleted => "deleted",
        GitWord::Renamed => "renamed",
        GitWord::Copied => "copied",
        GitWord::TypeChanged => "type changed",
        GitWord::Untracked => "untracked",
        GitWord::Conflicted => "conflicted",
    }
}

fn diff(report: &GitDiffReport) -> String {
    let mut lines = Vec::new();
    for file in report.stat.iter().flatten() {
        let count = |lines: Option<u64>| lines.map_or("-".into(), |it| it.to_string());
        let (added, removed) = (count(file.added), count(file.removed));
        lines.push(format!("+{added} -{removed} {}", printable(&file.path)));
    }
    let patch = report.diff.lines().map(printable_line);
    lines.extend(patch);
    if report.truncated {
        let total = report.bytes;
        let exec = &report.exec;
        lines.push(format!("… {total} bytes in all: `avfs output {exec}`"));
    }
    if lines.is_empty() {
        lines.push("nothing has changed".into());
    }
    lines.join("\n")
}

fn committed(done: &GitCommitted) -> String {
    if !done.committed {
        return "nothing is staged".into();
    }
    let text = |text: &Option<String>| text.as_deref().map_or("-".into(), printable);
    let (short, branch, subject) = (text(&done.short), text(&done.branch), text(&done.subject));
    format!("committed {short} on {branch}: {subject}")
}

fn branches(listing: &GitBranches) -> String {
    let mut rows = Vec::new();
    for branch in &listing.branches {
        let is_current = listing.current.as_deref() == Some(branch.name.as_str());
        rows.push(vec![
            if is_current { "*" } else { "" }.to_owned(),
            printable(&branch.name),
            branch.commit.chars().take(10).collect(),
            printable(&branch.subject),
        ]);
    }
    let text = table(&["", "BRANCH", "COMMIT", "SUBJECT"], rows).to_string();
    match listing.truncated {
        true => text + "\n… and more",
        false => text,
    }
}

fn history(history: &GitHistory) -> String {
    let rows = history.commits.iter().map(|commit| {
        vec![
            commit.commit.chars().take(10).collect(),
            time(&commit.time),
            printable(&commit.author_name),
            printable(&commit.subject),
        ]
    });
    table(&["COMMIT", "WHEN", "AUTHOR", "SUBJECT"], rows.collect()).to_string()
}

fn cloned(cloned: &GitCloned) -> String {
    let branch = cloned
        .branch
        .as_deref()
        .map_or("no branch".into(), printable);
    let path = printable(&cloned.path);
    format!("cloned {} to {path}, on {branch}", printable(&cloned.url))
}
