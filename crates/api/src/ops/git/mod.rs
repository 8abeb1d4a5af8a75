//! Repositories in a vault: structured answers of the vault's own git.

mod read;
mod run;
mod source;

use super::caller::Ask;
use super::failure::Failure;
use super::files::vault_path;
use super::handler::Reply;
use crate::wire::{
    GitBranch, GitBranches, GitClone, GitCloned, GitCommit, GitCommitted, GitDiff, GitDiffReport,
    GitHistory, GitLog, GitStatus, from_text, to_text,
};
use avfs_runtime::{Select, VaultPath, Watcher};
use run::{Git, OUTPUT_MAX, revision};

/// Bytes of a patch, unless the caller says otherwise.
const DIFF_BYTES: usize = 64 << 10;
/// Commits of a list, unless the caller says otherwise; and at most.
const COMMITS: u32 = 20;
const COMMITS_MAX: u32 = 1_000;
/// Where a clone goes, unless the caller says otherwise.
const CLONE_AT: &str = "/workspace";

pub(crate) fn status(
    ask: &Ask,
    vault: Select,
    request: GitStatus,
    watcher: &dyn Watcher,
) -> Reply<GitStatus> {
    let place = (&request.path, &request.path_b64);
    let git = Git::at(place, ask, vault, watcher)?;
    let ran = git.succeed(&[
        b"status",
        b"--porcelain=v2",
        b"--branch",
        b"-z",
        b"--untracked-files=all",
    ])?;
    let mut state = read::status(&ran.stdout, ran.exec);
    state.truncated |= ran.is_cut;
    Ok(state)
}

pub(crate) fn diff(
    ask: &Ask,
    vault: Select,
    request: GitDiff,
    watcher: &dyn Watcher,
) -> Reply<GitDiff> {
    let place = (&request.path, &request.path_b64);
    let git = Git::at(place, ask, vault, watcher)?;
    // The content as it is: programs that the repository names would show something else.
    let mut words: Vec<&[u8]> = vec![
        b"-c",
        b"diff.autoRefreshIndex=false",
        b"diff",
        b"--no-color",
        b"--no-ext-diff",
        b"--no-textconv",
    ];
    let mut rest: Vec<&[u8]> = vec![b"--end-of-options"];
    words.extend(request.staged.then_some(b"--cached".as_slice()));
    if let Some(commit) = &request.commit {
        rest.push(revision(commit)?);
    }
    rest.push(b"--");
    let file = request.file.as_deref().unwrap_or_default();
    let file = from_text(file, request.file_b64.as_ref());
    rest.extend((!file.is_empty()).then_some(file.as_slice()));
    let bytes = request.max_bytes.map_or(DIFF_BYTES, |bytes| {
        usize::try_from(bytes).unwrap_or(usize::MAX)
    });
    let all: Vec<&[u8]> = words.iter().chain(&rest).copied().collect();
    let ran = git.run_keeping(&all, bytes.clamp(1, OUTPUT_MAX))?;
    if ran.code != 0 {
        return Err(git.failed(&ran));
    }
    let stat = match request.stat {
        false => None,
        true => {
            words.extend([b"--numstat".as_slice(), b"-z"]);
            let all: Vec<&[u8]> = words.into_iter().chain(rest).collect();
            Some(read::stat(&git.succeed(&all)?.stdout))
        }
    };
    let mut patch = ran.stdout;
    if ran.is_cut {
        patch.truncate(whole_lines(&patch));
    }
    let (diff, diff_b64) = to_text(patch);
    Ok(GitDiffReport {
        exec: ran.exec,
        diff,
        diff_b64,
        bytes: ran.total,
        truncated: ran.is_cut,
        stat,
    })
}

/// Where the last whole line ends; a single line that is too long is cut anywhere.
fn whole_lines(text: &[u8]) -> usize {
    let end = text.iter().rposition(|byte| *byte == b'\n');
    end.map_or(text.len(), |at| at + 1)
}

pub(crate) fn commit(
    ask: &Ask,
    vault: Select,
    request: GitCommit,
    watcher: &dyn Watcher,
) -> Reply<GitCommit> {
    if request.message.trim().is_empty() {
        return Err(Failure::invalid("a commit needs a message"));
    }
    let place = (&request.path, &request.path_b64);
    let git = Git::at(place, ask, vault, watcher)?;
    if request.all {
        git.succeed(&[b"add", b"--all"])?;
    }
    let setting = |key: &str, value: &Option<String>| {
        let value = value.as_ref()?;
        Some(format!("{key}={value}"))
    };
    let name = setting("user.name", &request.author_name);
    let email = setting("user.email", &request.author_email);
    let message = format!("--message={}", request.message);
    let settings = name.iter().chain(&email);
    let settings = settings.flat_map(|it| [b"-c".as_slice(), it.as_bytes()]);
    let commit: [&[u8]; 3] = [b"commit", b"--quiet", message.as_bytes()];
    let words: Vec<&[u8]> = settings.chain(commit).collect();
    let ran = git.run(&words)?;
    // Nothing to commit, and a hook that objects, both exit with 1.
    let nothing = ran.code == 1 && git.run(&[b"diff", b"--cached", b"--quiet"])?.code == 0;
    if ran.code != 0 && !nothing {
        return Err(git.failed(&ran));
    }
    let (commit, branch) = checked_out(&git)?;
    Ok(GitCommitted {
        committed: !nothing,
        short: commit.as_ref().map(|it| it.short.clone()),
        subject: commit.as_ref().map(|it| it.subject.clone()),
        commit: commit.map(|it| it.id),
        branch,
    })
}

/// The commit that is checked out.
struct Head {
    id: String,
    short: String,
    subject: String,
}

/// The commit and the branch that are checked out.
fn checked_out(git: &Git<'_>) -> Result<(Option<Head>, Option<String>), Failure> {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim_end().to_owned();
    let branch = git.run(&[b"symbolic-ref", b"--short", b"--quiet", b"HEAD"])?;
    let branch = (branch.code == 0).then(|| text(&branch.stdout));
    let shown = git.run(&[
        b"log",
        b"-1",
        b"--no-show-signature",
        b"--format=%H%x00%h%x00%s",
    ])?;
    let fields: Vec<String> = shown.stdout.split(|byte| *byte == 0).map(text).collect();
    let commit = match (shown.code, <[String; 3]>::try_from(fields)) {
        (0, Ok([id, short, subject])) => Some(Head { id, short, subject }),
        _ => None,
    };
    Ok((commit, branch))
}

pub(crate) fn branch(
    ask: &Ask,
    vault: Select,
    request: GitBranch,
    watcher: &dyn Watcher,
) -> Reply<GitBranch> {
    let place = (&request.path, &request.path_b64);
    let git = Git::at(place, ask, vault, watcher)?;
    if request.from.is_some() && request.create.is_none() {
        return Err(Failure::invalid("`from` is where a new branch begins")
            .hint("give the name of the branch as `create`"));
    }
    if let Some(name) = &request.create {
        let mut words: Vec<&[u8]> = vec![b"branch", b"--end-of-options", revision(name)?];
        if let Some(from) = &request.from {
            words.push(revision(from)?);
        }
        git.succeed(&words)?;
    }
    if let Some(name) = &request.switch {
        git.succeed(&[b"switch", b"--quiet", b"--no-guess", revision(name)?])?;
    }
    let listed = git.succeed(&[b"for-each-ref", read::BRANCH.as_bytes(), b"refs/heads"])?;
    let (branches, current) = read::branches(&listed.stdout);
    let truncated = listed.is_cut || branches.len() == read::ENTRIES_MAX;
    let current = match current {
        Some(current) => Some(current),
        // A branch without a commit is not listed.
        None => checked_out(&git)?.1,
    };
    Ok(GitBranches {
        current,
        branches,
        truncated,
    })
}

pub(crate) fn log(
    ask: &Ask,
    vault: Select,
    request: GitLog,
    watcher: &dyn Watcher,
) -> Reply<GitLog> {
    let place = (&request.path, &request.path_b64);
    let git = Git::at(place, ask, vault, watcher)?;
    let limit = request.limit.unwrap_or(COMMITS).clamp(1, COMMITS_MAX);
    // One more than asked for says whether there are more.
    let count = format!("--max-count={}", limit + 1);
    let from = request.from.as_deref().unwrap_or("HEAD");
    let ran = git.run(&[
        b"log",
        b"-z",
        b"--no-color",
        b"--no-show-signature",
        b"--no-notes",
        count.as_bytes(),
        read::COMMIT.as_bytes(),
        b"--end-of-options",
        revision(from)?,
        b"--",
    ])?;
    if ran.code != 0 {
        // A repository without a commit has an empty history.
        let is_empty = request.from.is_none() && checked_out(&git)?.0.is_none();
        let unborn = git.run(&[b"rev-parse", b"--git-dir"])?.code == 0;
        return match is_empty && unborn {
            true => Ok(GitHistory {
                commits: Vec::new(),
                truncated: false,
            }),
            false => Err(git.failed(&ran)),
        };
    }
    let mut commits = read::log(&ran.stdout);
    let truncated = ran.is_cut || commits.len() > limit as usize;
    commits.truncate(limit as usize);
    Ok(GitHistory { commits, truncated })
}

pub(crate) fn clone(
    ask: &Ask,
    vault: Select,
    request: GitClone,
    watcher: &dyn Watcher,
) -> Reply<GitClone> {
    let source = source::of(&request.url, || {
        let (_, network) = ask.session.network(&vault)?;
        Ok(network)
    })?;
    let text = request.path.as_deref().unwrap_or(CLONE_AT);
    let place = vault_path(text, request.path_b64.as_ref())?;
    let top = VaultPath::parse(b"/").map_err(avfs_runtime::Error::from)?;
    let git = |path| Git {
        ask,
        vault: vault.clone(),
        path: Some(path),
        watcher,
    };
    let depth = request.depth.map(|depth| format!("--depth={depth}"));
    let branch = request.branch.as_deref().map(revision).transpose()?;
    let mut words: Vec<&[u8]> = vec![b"clone", b"--quiet", b"--no-recurse-submodules"];
    words.extend(depth.iter().map(|it| it.as_bytes()));
    words.extend(
        branch
            .iter()
            .flat_map(|name| [b"--branch".as_slice(), name]),
    );
    words.extend([b"--".as_slice(), source.as_bytes(), place.as_bytes()]);
    git(top).succeed(&words)?;
    let (commit, branch) = checked_out(&git(place.clone()))?;
    Ok(GitCloned {
        url: request.url.clone(),
        path: String::from_utf8_lossy(place.as_bytes()).into_owned(),
        commit: commit.map(|it| it.id),
        branch,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_looks_like_an_option_is_no_name() {
        for name in ["", "-", "--output=/x", "-D"] {
            assert!(revision(name).is_err(), "{name}");
        }
        assert!(revision("feature/x").is_ok());
    }

    #[test]
    fn a_patch_is_cut_between_lines() {
        assert_eq!(whole_lines(b"a\nb\nc"), 4);
        assert_eq!(whole_lines(b"abc"), 3);
    }
}
