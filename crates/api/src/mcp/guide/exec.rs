//! Commands in workspaces.

use super::LIST;
use super::workspace::{Marks, WorkspaceId, set_env};
use crate::mcp::answer::{Json, TOKENS_MAX};
use crate::mcp::hands::Hands;
use crate::mcp::tools::Asked;
use crate::ops::failure::Failure;
use crate::wire::{Envelope, Exec, JobAnswer, JobKill, JobPoll, JobStart, StatusWord};
use avfs_runtime::ErrorKind;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::Instant;
use tokio::task::JoinSet;

/// What the guide gives when nobody says otherwise.
const TIMEOUT_SECS: u64 = 120;
const PARALLEL_TIMEOUT_SECS: u64 = 300;
const OUTPUT_BYTES: usize = 262_144;
/// The most commands at once.
const PARALLEL: usize = 20;

type Environment = BTreeMap<String, String>;

/// A command as the guide's tools ask for it.
struct Command {
    text: String,
    workdir: Option<String>,
    env: Environment,
    timeout_secs: Option<u64>,
    max_output_bytes: Option<usize>,
}

impl Command {
    fn request(self, marks: &Marks) -> Exec {
        let most = self.max_output_bytes.unwrap_or(OUTPUT_BYTES);
        Exec {
            shell: Some(self.text),
            cwd: self.workdir,
            env: marks.with(self.env),
            timeout_ms: self.timeout_secs.map(|secs| secs.saturating_mul(1000)),
            output_limit: Some(most.min(TOKENS_MAX * 4)),
            limits: marks.sizes.limits(),
            ..Exec::default()
        }
    }
}

/// `{"exit_code", "stdout", "stderr"}` of a command that ran; why it did not run is a failure.
pub(super) fn ran(envelope: Envelope) -> Result<Value, Failure> {
    let result = envelope.result;
    let why = result
        .ending
        .reason
        .clone()
        .or(result.decision.reason.clone());
    let why = why.unwrap_or_default();
    let refuse = |kind, what: String| Err(Failure::new(kind, what));
    match result.status {
        StatusWord::Denied => refuse(ErrorKind::Denied, format!("denied: {why}")),
        StatusWord::NeedsApproval => {
            let id = result.approval_id.unwrap_or_default();
            let what = format!("needs the owner's approval {id}: {why}");
            refuse(ErrorKind::NeedsApproval, what)
        }
        StatusWord::TimedOut => {
            let what = format!(
                "timed out; it had written: {}{}",
                result.stdout, result.stderr
            );
            let failure = Failure::new(ErrorKind::TimedOut, what);
            Err(failure.hint("raise timeout_secs, or use exec_background"))
        }
        StatusWord::CouldNotStart => refuse(ErrorKind::Unavailable, why),
        _ => {
            // A shell says it so; null would be no number.
            let by_signal = result.ending.signal.map(|signal| 128 + signal);
            Ok(json!({
                "exit_code": result.ending.exit_code.or(by_signal),
                "stdout": result.stdout,
                "stderr": result.stderr,
            }))
        }
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Run {
    workspace_id: WorkspaceId,
    command: String,
    timeout_secs: Option<u64>,
    workdir: Option<String>,
    #[serde(default)]
    env: Environment,
    max_output_bytes: Option<usize>,
}

impl Asked for Run {
    const NAME: &'static str = "exec";
    const SENTENCE: &'static str = "Run a shell command in a workspace.";
    const ROWS: &'static [&'static str] = &["vault_list", "meta_list", "exec"];
    const IF_MISSING: Option<&'static str> = LIST;
    type Answer = Json;

    async fn run(self, hands: &Hands) -> Result<Json, Failure> {
        let (vault, marks) = self.workspace_id.running(hands).await?;
        let command = Command {
            text: self.command,
            workdir: self.workdir,
            env: self.env,
            timeout_secs: Some(self.timeout_secs.unwrap_or(TIMEOUT_SECS)),
            max_output_bytes: self.max_output_bytes,
        };
        let envelope = hands.run(&vault, &command.request(&marks)).await?;
        ran(envelope).map(Json)
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Background {
    workspace_id: WorkspaceId,
    command: String,
    workdir: Option<String>,
    #[serde(default)]
    env: Environment,
}

impl Asked for Background {
    const NAME: &'static str = "exec_background";
    const SENTENCE: &'static str = "Start a command in the background; exec_poll follows it.";
    const ROWS: &'static [&'static str] = &["vault_list", "meta_list", "job_start"];
    const IF_MISSING: Option<&'static str> = LIST;
    type Answer = Json;

    async fn run(self, hands: &Hands) -> Result<Json, Failure> {
        let (vault, marks) = self.workspace_id.running(hands).await?;
        let command = Command {
            text: self.command,
            workdir: self.workdir,
            env: self.env,
            timeout_secs: Some(0),
            max_output_bytes: None,
        };
        let start = JobStart {
            exec: command.request(&marks),
            ..JobStart::default()
        };
        match hands.ask(&vault, &start).await? {
            JobAnswer::Started(job) => {
                Ok(Json(json!({ "job_id": job.job_id, "status": "started" })))
            }
            JobAnswer::Refused(envelope) => ran(*envelope).map(Json),
        }
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Poll {
    workspace_id: WorkspaceId,
    job_id: u64,
}

impl Asked for Poll {
    const NAME: &'static str = "exec_poll";
    const SENTENCE: &'static str =
        "Say how it stands with a background command, with what it wrote by now.";
    const ROWS: &'static [&'static str] = &["vault_list", "job_poll"];
    const IF_MISSING: Option<&'static str> = Some("exec_background");
    type Answer = Json;

    async fn run(self, hands: &Hands) -> Result<Json, Failure> {
        let polled = job_of(hands, &self.workspace_id, self.job_id).await?;
        Ok(Json(polled))
    }
}

/// A job, if it is one of that workspace.
async fn job_of(hands: &Hands, workspace: &WorkspaceId, job_id: u64) -> Result<Value, Failure> {
    let vault = workspace.name(hands).await?;
    let poll = JobPoll {
        job_id,
        limit: Some(OUTPUT_BYTES as u64),
        ..JobPoll::default()
    };
    let polled = hands.ask("", &poll).await?;
    if polled.job.vault != vault {
        let what = format!("workspace {vault} has no job {job_id}");
        return Err(Failure::new(ErrorKind::NotFound, what));
    }
    let by_signal = polled.job.ending.signal.map(|signal| 128 + signal);
    Ok(json!({
        "job_id": job_id,
        "running": polled.job.running,
        "exit_code": polled.job.ending.exit_code.or(by_signal),
        "stdout": polled.stdout,
        "stderr": polled.stderr,
    }))
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Kill {
    workspace_id: WorkspaceId,
    job_id: u64,
    signal: Option<i32>,
}

impl Asked for Kill {
    const NAME: &'static str = "exec_kill";
    const SENTENCE: &'static str = "Send a background command a signal; 9 when left out.";
    const ROWS: &'static [&'static str] = &["vault_list", "job_poll", "job_kill"];
    const IF_MISSING: Option<&'static str> = Some("exec_background");
    type Answer = Json;

    async fn run(self, hands: &Hands) -> Result<Json, Failure> {
        job_of(hands, &self.workspace_id, self.job_id).await?;
        let signal = self.signal.unwrap_or(9);
        let kill = JobKill {
            job_id: self.job_id,
            signal: Some(signal),
        };
        hands.ask("", &kill).await?;
        Ok(Json(
            json!({ "job_id": self.job_id, "signal": signal, "status": "killed" }),
        ))
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Parallel {
    workspace_ids: Vec<WorkspaceId>,
    commands: OneOrEach,
    timeout_secs: Option<u64>,
    workdir: Option<String>,
    #[serde(default)]
    env: Environment,
    max_output_bytes: Option<usize>,
}

/// One command for all, or one for each.
#[derive(Deserialize, JsonSchema)]
#[serde(untagged)]
pub(super) enum OneOrEach {
    One(String),
    Each(Vec<String>),
}

impl Asked for Parallel {
    const NAME: &'static str = "exec_parallel";
    const SENTENCE: &'static str =
        "Run commands in several workspaces at once: one for all, or one for each.";
    const ROWS: &'static [&'static str] = &["vault_list", "vault_info", "meta_list", "exec"];
    const IF_MISSING: Option<&'static str> = LIST;
    type Answer = Json;

    async fn run(self, hands: &Hands) -> Result<Json, Failure> {
        let begun = Instant::now();
        let commands = self.checked()?;
        let mut running = JoinSet::new();
        for (number, (workspace, text)) in self.workspace_ids.into_iter().zip(commands).enumerate()
        {
            let command = Command {
                text,
                workdir: self.workdir.clone(),
                env: self.env.clone(),
                timeout_secs: Some(self.timeout_secs.unwrap_or(PARALLEL_TIMEOUT_SECS)),
                max_output_bytes: self.max_output_bytes,
            };
            let hands = hands.clone();
            running.spawn(async move { (number, one(&hands, workspace, command).await) });
        }
        let mut results = running.join_all().await;
        results.sort_by_key(|(number, _)| *number);
        let results: Vec<Value> = results.into_iter().map(|(_, result)| result).collect();
        let count = |holds: &dyn Fn(&Value) -> bool| results.iter().filter(|it| holds(it)).count();
        let succeeded = count(&|it| it["exit_code"] == 0);
        let timed_out = count(&|it| it["timed_out"] == true);
        let total = results.len();
        Ok(Json(json!({
            "results": results,
            "summary": {
                "total": total,
                "succeeded": succeeded,
                "failed": total - succeeded,
                "timed_out": timed_out,
                "elapsed_ms": begun.elapsed().as_millis() as u64,
            },
        })))
    }
}

impl Parallel {
    /// A command for every workspace.
    fn checked(&self) -> Result<Vec<String>, Failure> {
        let count = self.workspace_ids.len();
        if count == 0 || count > PARALLEL {
            return Err(Failure::invalid(format!(
                "1 to {PARALLEL} workspaces, not {count}"
            )));
        }
        match &self.commands {
            OneOrEach::One(command) => Ok(vec![command.clone(); count]),
            OneOrEach::Each(commands) if commands.len() == count => Ok(commands.clone()),
            OneOrEach::Each(commands) => Err(Failure::invalid(format!(
                "{} commands for {count} workspaces",
                commands.len()
            ))),
        }
    }
}

async fn one(hands: &Hands, workspace: WorkspaceId, command: Command) -> Value {
    let run = async {
        let (vault, marks) = workspace.running(hands).await?;
        let envelope = hands.run(&vault, &command.request(&marks)).await?;
        Ok::<_, Failure>((vault, envelope))
    };
    match run.await {
        Ok((vault, envelope)) => {
            let result = envelope.result;
            json!({
                "workspace_id": workspace.0,
                "workspace_name": vault,
                "exit_code": result.ending.exit_code,
                "stdout": result.stdout,
                "stderr": result.stderr,
                "timed_out": result.timed_out,
            })
        }
        Err(failure) => json!({
            "workspace_id": workspace.0,
            "workspace_name": null,
            "exit_code": null,
            "stdout": "",
            "stderr": failure.problem().detail,
            "timed_out": false,
        }),
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct SetEnv {
    workspace_id: WorkspaceId,
    vars: Environment,
}

impl Asked for SetEnv {
    const NAME: &'static str = "set_env";
    const SENTENCE: &'static str = "Set variables for every later command in a workspace.";
    const ROWS: &'static [&'static str] = &["vault_list", "meta_import"];
    const IF_MISSING: Option<&'static str> = LIST;
    type Answer = Json;

    async fn run(self, hands: &Hands) -> Result<Json, Failure> {
        let vault = self.workspace_id.name(hands).await?;
        let count = set_env(hands, &vault, self.vars).await?;
        Ok(Json(json!({ "count": count, "status": "set" })))
    }
}
