//! Repositories in workspaces, by the git that the workspace has, in its sandbox.

use super::LIST;
use super::exec::ran;
use super::workspace::WorkspaceId;
use crate::mcp::answer::Json;
use crate::mcp::hands::Hands;
use crate::mcp::tools::Asked;
use crate::ops::failure::Failure;
use crate::wire::{
    Exec, GitClone, GitCommit, GitDiff, GitEntry, GitStatItem, GitState, GitStatus, GitWord,
};
use avfs_runtime::ErrorKind;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

/// Where a repository is, when nobody says.
const WORKSPACE: &str = "/workspace";

fn place(path: Option<String>) -> Option<String> {
    Some(path.unwrap_or_else(|| WORKSPACE.into()))
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Clone {
    workspace_id: WorkspaceId,
    /// `https://HOST/PATH` of a host that the workspace may reach, or a path of the workspace.
    url: String,
    /// `/workspace` when left out.
    path: Option<String>,
    branch: Option<String>,
    depth: Option<u32>,
}

impl Asked for Clone {
    const NAME: &'static str = "git_clone";
    const SENTENCE: &'static str = "Clone a repository from a host that the workspace may reach, or from a path of the workspace.";
    const ROWS: &'static [&'static str] = &["vault_list", "git_clone"];
    const IF_MISSING: Option<&'static str> = LIST;
    type Answer = Json;

    async fn run(self, hands: &Hands) -> Result<Json, Failure> {
        let vault = self.workspace_id.name(hands).await?;
        let clone = GitClone {
            url: self.url,
            path: place(self.path),
            branch: self.branch,
            depth: self.depth,
            ..GitClone::default()
        };
        let cloned = hands.ask(&vault, &clone).await?;
        Ok(Json(json!({
            "success": true, "path": cloned.path, "commit_sha": cloned.commit, "url": cloned.url,
            "branch": cloned.branch, "depth": self.depth,
        })))
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Push {
    workspace_id: WorkspaceId,
    path: Option<String>,
    remote: Option<String>,
    branch: Option<String>,
    #[serde(default)]
    force: bool,
    #[serde(default)]
    set_upstream: bool,
    timeout_secs: Option<u64>,
}

impl Asked for Push {
    const NAME: &'static str = "git_push";
    const SENTENCE: &'static str = "Push a branch. The owner approves each push.";
    const ROWS: &'static [&'static str] = &["vault_list", "exec"];
    const IF_MISSING: Option<&'static str> = LIST;
    type Answer = Json;

    async fn run(self, hands: &Hands) -> Result<Json, Failure> {
        let vault = self.workspace_id.name(hands).await?;
        let mut argv = vec!["git".to_owned(), "push".to_owned()];
        argv.extend(self.force.then(|| "--force".to_owned()));
        argv.extend(self.set_upstream.then(|| "--set-upstream".to_owned()));
        argv.push("--end-of-options".to_owned());
        argv.push(self.remote.unwrap_or_else(|| "origin".into()));
        argv.extend(self.branch);
        let exec = Exec {
            argv,
            cwd: place(self.path),
            timeout_ms: Some(self.timeout_secs.unwrap_or(120).saturating_mul(1000)),
            ..Exec::default()
        };
        let envelope = hands.run(&vault, &exec).await?;
        let success = envelope.success;
        let mut pushed = ran(envelope)?;
        pushed["success"] = json!(success);
        Ok(Json(pushed))
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Status {
    workspace_id: WorkspaceId,
    /// `/workspace` when left out.
    path: Option<String>,
}

impl Asked for Status {
    const NAME: &'static str = "git_status";
    const SENTENCE: &'static str =
        "Say which files of a repository are staged, modified, untracked or in conflict.";
    const ROWS: &'static [&'static str] = &["vault_list", "git_status"];
    const IF_MISSING: Option<&'static str> = LIST;
    type Answer = Json;

    async fn run(self, hands: &Hands) -> Result<Json, Failure> {
        status(hands, &self.workspace_id, self.path).await
    }
}

/// As [`Status`], by its older name.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct WorkspaceStatus {
    workspace_id: WorkspaceId,
    /// `/workspace` when left out.
    path: Option<String>,
}

impl Asked for WorkspaceStatus {
    const NAME: &'static str = "workspace_git_status";
    const SENTENCE: &'static str =
        "Say which files of a repository are staged, modified or untracked.";
    const ROWS: &'static [&'static str] = &["vault_list", "git_status"];
    const IF_MISSING: Option<&'static str> = LIST;
    type Answer = Json;

    async fn run(self, hands: &Hands) -> Result<Json, Failure> {
        status(hands, &self.workspace_id, self.path).await
    }
}

async fn status(
    hands: &Hands,
    workspace: &WorkspaceId,
    path: Option<String>,
) -> Result<Json, Failure> {
    let vault = workspace.name(hands).await?;
    let path = place(path);
    let asked = GitStatus {
        path: path.clone(),
        ..GitStatus::default()
    };
    match hands.ask(&vault, &asked).await {
        Ok(state) => Ok(Json(lists(&state))),
        Err(failure) if failure.problem().kind == ErrorKind::NotFound.as_str() => {
            let message = failure.problem().detail.clone();
            Ok(Json(
                json!({ "error": "not_a_git_repository", "message": message }),
            ))
        }
        Err(failure) => Err(failure),
    }
}

/// The paths of a state, by what is to be done about them.
fn lists(state: &GitState) -> Value {
    let paths = |fits: fn(&GitEntry) -> bool| -> Vec<&str> {
        let fitting = state.entries.iter().filter(|entry| fits(entry));
        fitting.map(|entry| entry.path.as_str()).collect()
    };
    use GitWord::{Conflicted, Unmodified, Untracked};
    let mut said = json!({
        // As git says it of a commit that is on no branch.
        "branch": state.branch.as_deref().unwrap_or("(detached)"),
        "ahead": state.ahead,
        "behind": state.behind,
        "staged": paths(|it| !matches!(it.staged, Unmodified | Conflicted)),
        "modified": paths(|it| !matches!(it.unstaged, Unmodified | Untracked | Conflicted)),
        "untracked": paths(|it| it.unstaged == Untracked),
        "conflicted": paths(|it| it.unstaged == Conflicted),
        "dirty": state.dirty,
    });
    if state.truncated {
        said["truncated"] = true.into();
    }
    said
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Commit {
    workspace_id: WorkspaceId,
    message: String,
    path: Option<String>,
    #[serde(default)]
    add_all: bool,
    author_name: Option<String>,
    author_email: Option<String>,
}

impl Asked for Commit {
    const NAME: &'static str = "git_commit";
    const SENTENCE: &'static str =
        "Commit what is staged in a repository, or all of it with add_all.";
    const ROWS: &'static [&'static str] = &["vault_list", "git_commit"];
    const IF_MISSING: Option<&'static str> = LIST;
    type Answer = Json;

    async fn run(self, hands: &Hands) -> Result<Json, Failure> {
        let vault = self.workspace_id.name(hands).await?;
        let commit = GitCommit {
            message: self.message,
            path: place(self.path),
            all: self.add_all,
            author_name: self.author_name,
            author_email: self.author_email,
            ..GitCommit::default()
        };
        let done = hands.ask(&vault, &commit).await?;
        Ok(Json(match done.committed {
            true => json!({
                "commit_sha": done.commit,
                "short_sha": done.short,
                "branch": done.branch.as_deref().unwrap_or("HEAD"),
                "summary": done.subject,
            }),
            false => json!({ "status": "nothing_to_commit", "message": "nothing is staged" }),
        }))
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Diff {
    workspace_id: WorkspaceId,
    path: Option<String>,
    #[serde(default)]
    staged: bool,
    #[serde(default)]
    stat: bool,
    file_path: Option<String>,
    /// 65536 when left out.
    max_bytes: Option<u64>,
}

impl Asked for Diff {
    const NAME: &'static str = "git_diff";
    const SENTENCE: &'static str = "Show what changed in a repository.";
    const ROWS: &'static [&'static str] = &["vault_list", "git_diff"];
    const IF_MISSING: Option<&'static str> = LIST;
    type Answer = Json;

    async fn run(self, hands: &Hands) -> Result<Json, Failure> {
        let vault = self.workspace_id.name(hands).await?;
        let asked = GitDiff {
            path: place(self.path),
            staged: self.staged,
            stat: self.stat,
            file: self.file_path,
            max_bytes: Some(self.max_bytes.unwrap_or(65_536)),
            ..GitDiff::default()
        };
        let found = hands.ask(&vault, &asked).await?;
        let mut said = json!({ "diff": found.diff, "truncated": found.truncated });
        if found.truncated {
            said["exec"] = found.exec.into();
        }
        if let Some(files) = &found.stat {
            said["stat"] = stat(files).into();
        }
        Ok(Json(said))
    }
}

/// One line for each file, and one for all.
fn stat(files: &[GitStatItem]) -> String {
    let mut text = String::new();
    let (mut added, mut removed) = (0, 0);
    for file in files {
        let lines = match (file.added, file.removed) {
            (Some(more), Some(less)) => {
                (added, removed) = (added + more, removed + less);
                format!("{more} insertions(+), {less} deletions(-)")
            }
            _ => "binary".into(),
        };
        text.push_str(&format!(" {} | {lines}\n", file.path));
    }
    let count = files.len();
    text + &format!(" {count} files changed, {added} insertions(+), {removed} deletions(-)\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use GitWord::{Added, Conflicted, Modified, Renamed, Unmodified, Untracked};

    #[test]
    fn paths_are_listed_by_what_they_are() {
        let entry = |path: &str, staged, unstaged| GitEntry {
            path: path.into(),
            path_b64: None,
            from: None,
            from_b64: None,
            staged,
            unstaged,
        };
        let mut state = GitState {
            exec: "x".into(),
            branch: Some("main".into()),
            commit: None,
            upstream: None,
            ahead: 2,
            behind: 1,
            dirty: true,
            entries: vec![
                entry("README.md", Unmodified, Modified),
                entry("new", Added, Modified),
                entry("now", Renamed, Unmodified),
                entry("both", Conflicted, Conflicted),
                entry("odd\nname", Unmodified, Untracked),
            ],
            truncated: false,
        };
        let expected = json!({
            "branch": "main", "ahead": 2, "behind": 1,
            "staged": ["new", "now"], "modified": ["README.md", "new"],
            "untracked": ["odd\nname"], "conflicted": ["both"], "dirty": true,
        });
        assert_eq!(lists(&state), expected);
        state.truncated = true;
        assert_eq!(lists(&state)["truncated"], true);
    }

    #[test]
    fn lines_are_counted() {
        let file = |path: &str, added, removed| GitStatItem {
            path: path.into(),
            path_b64: None,
            from: None,
            from_b64: None,
            added,
            removed,
        };
        let text = stat(&[file("a", Some(2), Some(1)), file("b", None, None)]);
        assert!(text.contains(" a | 2 insertions(+), 1 deletions(-)\n b | binary\n"));
        assert!(text.ends_with(" 2 files changed, 2 insertions(+), 1 deletions(-)\n"));
    }
}
