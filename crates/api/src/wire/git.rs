//! Repositories in a vault, read and changed by the vault's own git in its sandbox.

use super::Base64;
use super::exec::is_false;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Reads the state of a repository.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GitStatus {
    /// A directory of the repository. Left out: `/workspace` if that exists, else `/`.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub path: Option<String>,
    /// The exact bytes of `path`, where it is not UTF-8.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub path_b64: Option<Base64>,
}

/// The state of a repository.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct GitState {
    /// The exec that read it.
    pub exec: String,
    /// The branch; null if none is checked out.
    pub branch: Option<String>,
    /// The commit that is checked out; null before the first one.
    pub commit: Option<String>,
    /// The branch that it follows.
    pub upstream: Option<String>,
    /// Commits that the upstream does not have.
    pub ahead: u64,
    /// Commits that only the upstream has.
    pub behind: u64,
    /// Whether any path differs from the commit.
    pub dirty: bool,
    /// The paths that differ from the commit.
    pub entries: Vec<GitEntry>,
    /// Whether the list is cut.
    #[serde(skip_serializing_if = "is_false", default)]
    pub truncated: bool,
}

/// A path that differs from the commit.
#[derive(Clone, Debug, Eq, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GitEntry {
    /// The path, relative to the top of the repository.
    pub path: String,
    /// The exact bytes of `path`, where it is not UTF-8.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub path_b64: Option<Base64>,
    /// What it was renamed or copied from.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub from: Option<String>,
    /// The exact bytes of `from`, where it is not UTF-8.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub from_b64: Option<Base64>,
    /// What the next commit would do to it.
    pub staged: GitWord,
    /// How the file differs from what is staged.
    pub unstaged: GitWord,
}

/// How a path differs.
#[derive(Copy, Clone, Debug, Eq, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum GitWord {
    /// Not at all.
    Unmodified,
    /// Other content or mode.
    Modified,
    /// It is new.
    Added,
    /// It is gone.
    Deleted,
    /// It had another name.
    Renamed,
    /// It is a copy of another path.
    Copied,
    /// Another type of file.
    TypeChanged,
    /// Git does not know it.
    Untracked,
    /// Two sides of a merge disagree.
    Conflicted,
}

/// Compares files of a repository with what is staged, or what is staged with a commit.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GitDiff {
    /// A directory of the repository. Left out: `/workspace` if that exists, else `/`.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub path: Option<String>,
    /// The exact bytes of `path`, where it is not UTF-8.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub path_b64: Option<Base64>,
    /// Compares what is staged with the commit, instead of files with what is staged.
    #[serde(skip_serializing_if = "is_false", default)]
    pub staged: bool,
    /// Compares with this commit instead.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub commit: Option<String>,
    /// Only this path, relative to `path`.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub file: Option<String>,
    /// The exact bytes of `file`, where it is not UTF-8.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub file_b64: Option<Base64>,
    /// Counts lines for each file, too.
    #[serde(skip_serializing_if = "is_false", default)]
    pub stat: bool,
    /// How many bytes of the patch are answered. Default: 64 KiB; at most 2 MiB.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub max_bytes: Option<u64>,
}

/// A difference as git shows it.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct GitDiffReport {
    /// The exec that made it; the operation `output` reads all of its output.
    pub exec: String,
    /// The patch.
    pub diff: String,
    /// The exact bytes of `diff`, where it is not UTF-8.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub diff_b64: Option<Base64>,
    /// How many bytes the whole patch has.
    pub bytes: u64,
    /// Whether `diff` is only the beginning of it.
    pub truncated: bool,
    /// Lines by file, if requested.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub stat: Option<Vec<GitStatItem>>,
}

/// Lines that differ in a file.
#[derive(Clone, Debug, Eq, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GitStatItem {
    /// The path, relative to the top of the repository.
    pub path: String,
    /// The exact bytes of `path`, where it is not UTF-8.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub path_b64: Option<Base64>,
    /// The path before.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub from: Option<String>,
    /// The exact bytes of `from`, where it is not UTF-8.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub from_b64: Option<Base64>,
    /// Lines that were added; null for a binary file.
    pub added: Option<u64>,
    /// Lines that were removed; null for a binary file.
    pub removed: Option<u64>,
}

/// Commits what is staged in a repository.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GitCommit {
    /// The message.
    pub message: String,
    /// A directory of the repository. Left out: `/workspace` if that exists, else `/`.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub path: Option<String>,
    /// The exact bytes of `path`, where it is not UTF-8.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub path_b64: Option<Base64>,
    /// Stages everything first: new, changed and removed files.
    #[serde(skip_serializing_if = "is_false", default)]
    pub all: bool,
    /// Author and committer. Default: as the repository or the host's user says.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub author_name: Option<String>,
    /// The address of author and committer.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub author_email: Option<String>,
}

/// The answer to [`GitCommit`].
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct GitCommitted {
    /// False if nothing was staged.
    pub committed: bool,
    /// The commit that is checked out now; null if there is none.
    pub commit: Option<String>,
    /// Its short form.
    pub short: Option<String>,
    /// The branch; null if none is checked out.
    pub branch: Option<String>,
    /// The first line of its message.
    pub subject: Option<String>,
}

/// Lists the branches of a repository, or creates one.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GitBranch {
    /// A directory of the repository. Left out: `/workspace` if that exists, else `/`.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub path: Option<String>,
    /// The exact bytes of `path`, where it is not UTF-8.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub path_b64: Option<Base64>,
    /// Creates this branch.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub create: Option<String>,
    /// Where the new branch begins. Default: at the commit that is checked out.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub from: Option<String>,
    /// Checks this branch out, after creating it if `create` has the same name.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub switch: Option<String>,
}

/// The branches of a repository.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct GitBranches {
    /// The branch that is checked out; null if none is.
    pub current: Option<String>,
    /// All local branches, by name.
    pub branches: Vec<GitBranchItem>,
    /// Whether the list is cut.
    #[serde(skip_serializing_if = "is_false", default)]
    pub truncated: bool,
}

/// A branch.
#[derive(Clone, Debug, Eq, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GitBranchItem {
    /// Its name.
    pub name: String,
    /// The exact bytes of `name`, where it is not UTF-8.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub name_b64: Option<Base64>,
    /// Its last commit.
    pub commit: String,
    /// The first line of the message.
    pub subject: String,
    /// The branch that it follows.
    pub upstream: Option<String>,
}

/// Lists the commits of a repository.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GitLog {
    /// A directory of the repository. Left out: `/workspace` if that exists, else `/`.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub path: Option<String>,
    /// The exact bytes of `path`, where it is not UTF-8.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub path_b64: Option<Base64>,
    /// The first commit of the list. Default: the one that is checked out.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub from: Option<String>,
    /// How many. Default: 20; at most 1,000.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub limit: Option<u32>,
}

/// Commits of a repository, the newest first.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct GitHistory {
    /// The commits.
    pub commits: Vec<GitCommitItem>,
    /// Whether there are more.
    pub truncated: bool,
}

/// A commit.
#[derive(Clone, Debug, Eq, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GitCommitItem {
    /// Its hash.
    pub commit: String,
    /// The hashes of the commits before it.
    pub parents: Vec<String>,
    /// Who wrote it.
    pub author_name: String,
    /// The address of who wrote it.
    pub author_email: String,
    /// When, as the author says.
    pub time: String,
    /// The first line of its message.
    pub subject: String,
    /// The rest of its message.
    #[serde(skip_serializing_if = "String::is_empty", default)]
    pub body: String,
}

/// Clones a repository that is in the vault already; others need a network, which vaults do not have.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GitClone {
    /// An absolute path of the vault, or `file://` and one.
    pub url: String,
    /// The new directory. Default: `/workspace`.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub path: Option<String>,
    /// The exact bytes of `path`, where it is not UTF-8.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub path_b64: Option<Base64>,
    /// The branch to check out. Default: as the source has it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub branch: Option<String>,
    /// Only so many commits of each branch.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub depth: Option<u32>,
}

/// The answer to [`GitClone`].
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct GitCloned {
    /// Where it came from.
    pub url: String,
    /// The new directory.
    pub path: String,
    /// The commit that is checked out; null if the repository is empty.
    pub commit: Option<String>,
    /// The branch; null if none is checked out.
    pub branch: Option<String>,
}
