//! Commands.

use super::LIST_VAULTS;
use crate::mcp::answer::{Outcome, bytes_of, fitting, with_gap, word};
use crate::mcp::hands::Hands;
use crate::mcp::tools::Asked;
use crate::ops::failure::Failure;
use crate::wire::{
    Base64, ByteCounts, Envelope, EnvelopeResult, Exec, ForkWord, JobAnswer, JobStart,
    PolicyExplain, StatusWord, StdinItem, StreamWord, from_text,
};
use rmcp::model::Resource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Paths that an answer lists; the rest is in the diff.
const LISTED: usize = 2_000;
/// Directories of ignored changes that an answer names.
const IGNORED_LISTED: usize = 3;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ExecTool {
    /// Shell text.
    command: String,
    vault: Option<String>,
    cwd: Option<String>,
    #[serde(default)]
    env: BTreeMap<String, String>,
    stdin: Option<String>,
    timeout_secs: Option<u64>,
    /// Start a job instead of waiting.
    #[serde(default)]
    background: bool,
    /// Run in a throwaway fork.
    fork: Option<ForkName>,
    /// Only say what policy decides.
    #[serde(default)]
    dry_run: bool,
    /// Id of an approval the owner gave.
    approval: Option<String>,
    max_tokens: Option<usize>,
}

#[derive(Copy, Clone, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ForkName {
    Discard,
    KeepOnSuccess,
}

/// What became of a command: an envelope in few words.
#[derive(Default, Serialize, JsonSchema)]
pub(crate) struct ExecSaid {
    status: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    exit_code: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(skip)]
    signal: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stdout: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stderr: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    changed_files: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(skip)]
    changes_total: Option<u64>,
    /// Paths that differ and are not listed, in the directories with most of them.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(skip)]
    ignored_changes: BTreeMap<String, u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    exec: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    job_id: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(skip)]
    vault: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(skip)]
    version: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(skip)]
    checkpoint: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(skip)]
    fork: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(skip)]
    duration_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    approval_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

impl Asked for ExecTool {
    const NAME: &'static str = "exec";
    const SENTENCE: &'static str = "Run a shell command in a vault's sandbox. Tells exit code, output and \
        changed files. Long output is cut: read or search the rest.";
    const ROWS: &'static [&'static str] = &["exec", "job_start", "policy_explain"];
    const IF_MISSING: Option<&'static str> = LIST_VAULTS;
    type Answer = Outcome<ExecSaid>;

    async fn run(self, hands: &Hands) -> Result<Outcome<ExecSaid>, Failure> {
        let budget = bytes_of(self.max_tokens);
        let vault = hands.vault(self.vault.as_deref()).to_owned();
        if self.dry_run {
            return self.explain(hands, &vault).await;
        }
        let background = self.background;
        let exec = self.request(budget / 2);
        if !background {
            let envelope = hands.run(&vault, &exec).await?;
            return Ok(command_said(envelope, budget));
        }
        let start = JobStart {
            exec,
            ..JobStart::default()
        };
        Ok(match hands.ask(&vault, &start).await? {
            JobAnswer::Refused(envelope) => command_said(*envelope, budget),
            JobAnswer::Started(started) => {
                let next = format!("job {{\"action\":\"wait\",\"job_id\":{}}}", started.job_id);
                Outcome {
                    said: ExecSaid {
                        status: "started".into(),
                        job_id: Some(started.job_id),
                        exec: Some(started.exec),
                        vault: Some(started.vault),
                        next: Some(next),
                        ..ExecSaid::default()
                    },
                    failed: false,
                    links: Vec::new(),
                }
            }
        })
    }
}

impl ExecTool {
    fn request(self, output_limit: usize) -> Exec {
        Exec {
            shell: Some(self.command),
            cwd: self.cwd,
            env: self.env,
            timeout_ms: self.timeout_secs.map(|secs| secs.saturating_mul(1000)),
            output_limit: Some(output_limit),
            stdin: self.stdin.map(StdinItem::Text),
            fork: self.fork.map(|fork| match fork {
                ForkName::Discard => ForkWord::Discard,
                ForkName::KeepOnSuccess => ForkWord::KeepOnSuccess,
            }),
            approval: self.approval,
            ..Exec::default()
        }
    }

    async fn explain(self, hands: &Hands, vault: &str) -> Result<Outcome<ExecSaid>, Failure> {
        let question = PolicyExplain {
            shell: Some(self.command),
            cwd: self.cwd,
            env: self.env,
            ..PolicyExplain::default()
        };
        let explained = hands.ask(vault, &question).await?;
        let decision = explained.decision;
        Ok(Outcome {
            said: ExecSaid {
                status: decision.action,
                reason: Some(decision.reason.unwrap_or(decision.rule)),
                vault: Some(vault.to_owned()),
                ..ExecSaid::default()
            },
            failed: false,
            links: Vec::new(),
        })
    }
}

/// An envelope in few words; the whole of what was left out can still be read.
pub(crate) fn command_said(envelope: Envelope, budget: usize) -> Outcome<ExecSaid> {
    let limit = envelope.request.output_limit;
    let result = envelope.result;
    let (streams, next) = (streams(&result, limit), next(&result));
    let ignored_changes = most_ignored(&result);
    let (changed_files, whole) = fitting(result.changed_files, (budget / 4).min(LISTED * 4));
    let whole = whole && !result.changes_truncated;
    let never_ran = matches!(
        result.status,
        StatusWord::Denied
            | StatusWord::NeedsApproval
            | StatusWord::NotFound
            | StatusWord::CouldNotStart
    );
    let mut links = Vec::new();
    if result.output.stdout.truncated || result.output.stderr.truncated {
        links.push(exec_link(&result.exec, StreamWord::Stdout));
    }
    let [stdout, stderr] = streams;
    let reason = result.ending.reason.or(match never_ran {
        true => result.decision.reason,
        false => result.uncommitted.map(|it| it.message),
    });
    let said = ExecSaid {
        status: word(result.status),
        exit_code: result.ending.exit_code,
        signal: result.ending.signal,
        stdout: Some(stdout),
        stderr: Some(stderr),
        changed_files,
        changes_total: (!whole).then_some(result.changes_total),
        ignored_changes,
        exec: Some(result.exec),
        job_id: None,
        vault: Some(result.vault),
        version: result.version,
        checkpoint: result.checkpoint,
        fork: result.fork.filter(|fork| fork.kept).map(|fork| fork.name),
        duration_ms: Some(result.duration_ms),
        approval_id: result.approval_id,
        reason,
        next,
    };
    Outcome {
        said,
        failed: never_ran,
        links,
    }
}

/// The directories with most ignored changes.
fn most_ignored(result: &EnvelopeResult) -> BTreeMap<String, u64> {
    let counted = result.ignored_changes.iter();
    let counted = counted.map(|(name, it)| (it.created + it.modified + it.deleted, name));
    let mut most: Vec<(u64, &String)> = counted.collect();
    most.sort_by(|a, b| b.cmp(a));
    let named = most.into_iter().take(IGNORED_LISTED);
    named.map(|(paths, name)| (name.clone(), paths)).collect()
}

fn streams(result: &EnvelopeResult, limit: usize) -> [String; 2] {
    let stream = |text: &str, exact: Option<&Base64>, counts: ByteCounts, name: &str| {
        if !counts.truncated {
            return text.to_owned();
        }
        let kept = from_text(text, exact);
        let how = format!(
            "read {{\"exec\":\"{}\",\"stream\":\"{name}\",\"offset\":{}}}, or search it",
            result.exec,
            (limit / 2).min(kept.len()),
        );
        with_gap(&kept, limit, counts.bytes, &how)
    };
    let (out, err) = (&result.output.stdout, &result.output.stderr);
    [
        stream(&result.stdout, result.stdout_b64.as_ref(), *out, "stdout"),
        stream(&result.stderr, result.stderr_b64.as_ref(), *err, "stderr"),
    ]
}

/// What to do where the command did not run, or its work is in no version.
fn next(result: &EnvelopeResult) -> Option<String> {
    let text = match (result.status, &result.approval_id) {
        (StatusWord::NeedsApproval, Some(id)) => format!(
            "ask the owner to run `avfs approval show {id}`; once approved, repeat this exec with \"approval\":\"{id}\""
        ),
        (StatusWord::NeedsApproval, None) => "ask the owner to set up approvals".into(),
        (StatusWord::Denied, _) => {
            "do it another way, or tell the owner which rule is in the way".into()
        }
        (StatusWord::TimedOut, _) => "give a larger timeout_secs, or run it with background".into(),
        (StatusWord::OutOfMemory | StatusWord::LimitExceeded, _) => {
            "use less at once, or ask the owner for a larger limit".into()
        }
        _ => match &result.uncommitted {
            Some(uncommitted) => uncommitted.hint.clone()?,
            None if result.leftovers > 0 => {
                "what it left running was ended; run with background what shall go on".into()
            }
            None => return None,
        },
    };
    Some(text)
}

/// A link to all that a command wrote to a stream.
pub(crate) fn exec_link(exec: &str, stream: StreamWord) -> Resource {
    let name = match stream {
        StreamWord::Stdout => "stdout",
        StreamWord::Stderr => "stderr",
    };
    Resource::new(
        format!("avfs://exec/{exec}/{name}"),
        format!("{name} of {exec}"),
    )
    .with_mime_type("text/plain")
}
