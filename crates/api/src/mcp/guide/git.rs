//! Repositories in workspaces, by the git that the workspace has, in its sandbox.

use super::LIST;
use super::workspace::{WorkspaceId, without_network};
use crate::mcp::answer::{Json, beginning};
use crate::mcp::hands::Hands;
use crate::mcp::tools::Asked;
use crate::ops::failure::Failure;
use crate::wire::{EnvelopeResult, Exec};
use avfs_runtime::ErrorKind;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

/// Where a repository is, when nobody says.
const WORKSPACE: &str = "/workspace";

/// Runs git in a repository. Nothing is put together as text: every word stays one.
async fn git(
    hands: &Hands,
    vault: &str,
    path: &Option<String>,
    words: &[&str],
) -> Result<EnvelopeResult, Failure> {
    let path = path.as_deref().unwrap_or(WORKSPACE);
    let base = ["git", "--no-pager", "-C", path];
    let argv = base.iter().chain(words).map(|word| (*word).to_owned());
    let exec = Exec {
        argv: argv.collect(),
        ..Exec::default()
    };
    let result = hands.run(vault, &exec).await?.result;
    match result.ending.exit_code {
        Some(_) => Ok(result),
        None => {
            let why = result.ending.reason.or(result.decision.reason);
            let what = format!("git did not run: {}", why.unwrap_or_default());
            Err(Failure::new(ErrorKind::Unavailable, what))
        }
    }
}

/// What git printed; how it failed is a failure.
fn printed(result: EnvelopeResult) -> Result<String, Failure> {
    match result.ending.exit_code {
        Some(0) => Ok(result.stdout),
        _ => {
            let what = format!("git failed: {}", beginning(result.stderr.trim(), 2_000));
            Err(Failure::new(ErrorKind::Conflict, what))
        }
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "it is read only to be refused in the end")]
pub(super) struct Clone {
    workspace_id: WorkspaceId,
    url: String,
    path: Option<String>,
    branch: Option<String>,
    depth: Option<u32>,
}

impl Asked for Clone {
    const NAME: &'static str = "git_clone";
    const SENTENCE: &'static str = "Clone a repository; refused, as workspaces have no network.";
    const ROWS: &'static [&'static str] = &["vault_list"];
    type Answer = Json;

    async fn run(self, _: &Hands) -> Result<Json, Failure> {
        Err(without_network("git_clone"))
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "it is read only to be refused in the end")]
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
    const SENTENCE: &'static str = "Push a branch; refused, as workspaces have no network.";
    const ROWS: &'static [&'static str] = &["vault_list"];
    type Answer = Json;

    async fn run(self, _: &Hands) -> Result<Json, Failure> {
        Err(without_network("git_push"))
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
    const ROWS: &'static [&'static str] = &["vault_list", "exec"];
    const IF_MISSING: Option<&'static str> = LIST;
    type Answer = Json;

    async fn run(self, hands: &Hands) -> Result<Json, Failure> {
        status(hands, &self.workspace_id, &self.path).await
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
    const ROWS: &'static [&'static str] = &["vault_list", "exec"];
    const IF_MISSING: Option<&'static str> = LIST;
    type Answer = Json;

    async fn run(self, hands: &Hands) -> Result<Json, Failure> {
        status(hands, &self.workspace_id, &self.path).await
    }
}

async fn status(
    hands: &Hands,
    workspace: &WorkspaceId,
    path: &Option<String>,
) -> Result<Json, Failure> {
    let vault = workspace.name(hands).await?;
    let words = [
        "status",
        "--porcelain=v2",
        "--branch",
        "-z",
        "--untracked-files=all",
    ];
    let result = git(hands, &vault, path, &words).await?;
    if result.ending.exit_code != Some(0) && result.stderr.contains("not a git repository") {
        let path = path.as_deref().unwrap_or(WORKSPACE);
        let message = format!("{path} is not a git repository");
        return Ok(Json(
            json!({ "error": "not_a_git_repository", "message": message }),
        ));
    }
    Ok(Json(read_status(&printed(result)?)))
}

/// What `git status --porcelain=v2 --branch -z` says.
fn read_status(text: &str) -> Value {
    let mut branch = Value::Null;
    let (mut ahead, mut behind) = (0, 0);
    let mut lists: [Vec<String>; 4] = Default::default();
    let mut items = text.split('\0');
    while let Some(item) = items.next() {
        let (kind, rest) = item.split_once(' ').unwrap_or((item, ""));
        let path = |fields: usize| {
            rest.splitn(fields, ' ')
                .last()
                .unwrap_or_default()
                .to_owned()
        };
        match kind {
            "#" => match rest.split_once(' ') {
                Some(("branch.head", name)) => branch = json!(name),
                Some(("branch.ab", counts)) => {
                    let mut counts = counts
                        .split(' ')
                        .map(|it| it.parse::<i64>().unwrap_or(0).abs());
                    ahead = counts.next().unwrap_or(0);
                    behind = counts.next().unwrap_or(0);
                }
                _ => {}
            },
            "1" | "2" => {
                let path = path(if kind == "1" { 8 } else { 9 });
                let mut marks = rest.chars();
                if marks.next().is_some_and(|mark| mark != '.') {
                    lists[0].push(path.clone());
                }
                if marks.next().is_some_and(|mark| mark != '.') {
                    lists[1].push(path);
                }
                if kind == "2" {
                    // The name before.
                    items.next();
                }
            }
            "?" => lists[2].push(rest.to_owned()),
            "u" => lists[3].push(path(10)),
            _ => {}
        }
    }
    let dirty = lists.iter().any(|list| !list.is_empty());
    let [staged, modified, untracked, conflicted] = lists;
    json!({
        "branch": branch, "ahead": ahead, "behind": behind,
        "staged": staged, "modified": modified, "untracked": untracked, "conflicted": conflicted,
        "dirty": dirty,
    })
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
    const ROWS: &'static [&'static str] = &["vault_list", "exec"];
    const IF_MISSING: Option<&'static str> = LIST;
    type Answer = Json;

    async fn run(self, hands: &Hands) -> Result<Json, Failure> {
        let vault = self.workspace_id.name(hands).await?;
        let run = async |words: &[&str]| git(hands, &vault, &self.path, words).await;
        if self.add_all {
            printed(run(&["add", "--all"]).await?)?;
        }
        if run(&["diff", "--cached", "--quiet"])
            .await?
            .ending
            .exit_code
            == Some(0)
        {
            let message = "nothing is staged";
            return Ok(Json(
                json!({ "status": "nothing_to_commit", "message": message }),
            ));
        }
        let name = self
            .author_name
            .as_ref()
            .map(|it| format!("user.name={it}"));
        let email = self
            .author_email
            .as_ref()
            .map(|it| format!("user.email={it}"));
        let settings = name.iter().chain(&email).flat_map(|it| ["-c", it]);
        let commit = ["commit", "--quiet", "--message", &self.message];
        let words: Vec<&str> = settings.chain(commit).collect();
        printed(run(&words).await?)?;
        let shown = ["log", "-1", "--format=%H%n%h%n%s"];
        let shown = printed(run(&shown).await?)?;
        let mut lines = shown.lines();
        let branch = printed(run(&["rev-parse", "--abbrev-ref", "HEAD"]).await?)?;
        Ok(Json(json!({
            "commit_sha": lines.next(),
            "short_sha": lines.next(),
            "branch": branch.trim(),
            "summary": lines.next(),
        })))
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
    max_bytes: Option<usize>,
}

impl Asked for Diff {
    const NAME: &'static str = "git_diff";
    const SENTENCE: &'static str = "Show what changed in a repository.";
    const ROWS: &'static [&'static str] = &["vault_list", "exec"];
    const IF_MISSING: Option<&'static str> = LIST;
    type Answer = Json;

    async fn run(self, hands: &Hands) -> Result<Json, Failure> {
        let vault = self.workspace_id.name(hands).await?;
        let mut words = vec!["diff", "--no-color", "--no-ext-diff"];
        words.extend(self.staged.then_some("--cached"));
        let file = self.file_path.as_deref();
        let of_file = file.into_iter().flat_map(|file| ["--", file]);
        let all: Vec<&str> = words.iter().copied().chain(of_file.clone()).collect();
        let result = git(hands, &vault, &self.path, &all).await?;
        let was_cut = result.output.stdout.truncated;
        let diff = printed(result)?;
        let shown = beginning(&diff, self.max_bytes.unwrap_or(65_536));
        let mut said = json!({ "diff": shown, "truncated": was_cut || shown.len() < diff.len() });
        if self.stat {
            words.push("--stat");
            let all: Vec<&str> = words.into_iter().chain(of_file).collect();
            said["stat"] = json!(printed(git(hands, &vault, &self.path, &all).await?)?);
        }
        Ok(Json(said))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_is_read() {
        let text = "# branch.oid abc\0# branch.head main\0# branch.ab +2 -1\0\
            1 .M N... 100644 100644 100644 a b README.md\0\
            1 A. N... 000000 100644 100644 a b new file.txt\0\
            2 R. N... 100644 100644 100644 a b R100 now\0before\0\
            u UU N... 1 2 3 4 a b c both\0? odd\nname\0";
        let status = read_status(text);
        let expected = json!({
            "branch": "main", "ahead": 2, "behind": 1,
            "staged": ["new file.txt", "now"], "modified": ["README.md"],
            "untracked": ["odd\nname"], "conflicted": ["both"], "dirty": true,
        });
        assert_eq!(status, expected);
        assert_eq!(read_status("# branch.head x\0")["dirty"], false);
    }
}
