//! Commands in sandboxes.

use super::LIST;
use crate::mcp::answer::{Json, Output};
use crate::mcp::guide::lifecycle::{fresh_name, no_image};
use crate::mcp::guide::workspace::{Marks, WorkspaceId};
use crate::mcp::hands::Hands;
use crate::mcp::tools::Asked;
use crate::ops::failure::Failure;
use crate::ops::modes;
use crate::wire::{
    Envelope, Exec, JobAnswer, JobItem, JobKill, JobList, JobPoll, JobStart, NetworkName,
    ProfileWord, StatusWord, VaultCreate, VaultDelete,
};
use avfs_runtime::{ErrorKind, Mode};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// How long a command may run when nobody says.
const TIMEOUT_MS: u64 = 30_000;
/// Bytes of each stream in an answer.
const OUTPUT: usize = 128 << 10;

/// Words, or text for a shell.
#[derive(Deserialize, JsonSchema)]
#[serde(untagged)]
pub(super) enum Command {
    Words(Vec<String>),
    Text(String),
}

impl Command {
    fn request(self) -> Exec {
        let (argv, shell) = match self {
            Command::Words(words) => (words, None),
            Command::Text(text) => (Vec::new(), Some(text)),
        };
        Exec {
            argv,
            shell,
            output_limit: Some(OUTPUT),
            ..Exec::default()
        }
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Run {
    command: Command,
    image: Option<String>,
    /// Every run begins in a fresh sandbox at once, with or without it.
    #[serde(default, rename = "fast")]
    _fast: bool,
    cwd: Option<String>,
    #[serde(default)]
    env: BTreeMap<String, String>,
    /// 30000 when left out.
    timeout_ms: Option<u64>,
    profile: Option<ProfileName>,
    #[serde(default)]
    network: Network,
    /// Profile and variables of an agent's program, where the call does not say otherwise.
    #[serde(default)]
    compatibility_mode: ModeName,
}

#[derive(Copy, Clone, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum ProfileName {
    Restrictive,
    Moderate,
    Permissive,
}

/// What a command can reach. More than the owner gives new vaults is refused.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Network {
    #[serde(default)]
    enabled: bool,
    #[serde(default)]
    allowed_domains: Vec<String>,
}

#[derive(Copy, Clone, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum ModeName {
    #[default]
    Native,
    Claude,
    Codex,
    Gemini,
}

impl ModeName {
    fn mode(self) -> Option<Mode> {
        match self {
            ModeName::Native => None,
            ModeName::Claude => Some(Mode::Claude),
            ModeName::Codex => Some(Mode::Codex),
            ModeName::Gemini => Some(Mode::Gemini),
        }
    }
}

impl Asked for Run {
    const NAME: &'static str = "sandbox_run";
    const SENTENCE: &'static str = "Run a command in a fresh sandbox that goes away afterwards.";
    const ROWS: &'static [&'static str] = &["vault_create", "exec", "vault_delete"];
    type Answer = Output;

    async fn run(self, hands: &Hands) -> Result<Output, Failure> {
        no_image(self.image.as_deref())?;
        let allow = match self.network.allowed_domains {
            domains if domains.is_empty() && self.network.enabled => vec!["*:*".to_owned()],
            domains => domains,
        };
        // What is named is all that is reached; where nothing is, what the owner gives new vaults.
        let network = (!allow.is_empty()).then_some(NetworkName::None);
        let mode = self.compatibility_mode.mode();
        let usual = mode.map(modes::item);
        let profile = self.profile.map(|profile| match profile {
            ProfileName::Restrictive => ProfileWord::Restrictive,
            ProfileName::Moderate => ProfileWord::Moderate,
            ProfileName::Permissive => ProfileWord::Permissive,
        });
        let mut env = usual.map(|usual| usual.env).unwrap_or_default();
        env.extend(self.env);
        let exec = Exec {
            network,
            allow,
            cwd: self.cwd,
            env,
            timeout_ms: Some(self.timeout_ms.unwrap_or(TIMEOUT_MS)),
            profile: profile.or(mode.map(modes::profile)),
            ..self.command.request()
        };
        let name = fresh_name("run");
        hands.ask("", &VaultCreate::named(name.clone())).await?;
        let ran = hands.run(&name, &exec).await;
        // Whatever became of the command, nothing of it stays.
        let removed = hands.ask(&name, &VaultDelete { force: true }).await;
        let said = said(ran?)?;
        removed?;
        Ok(said)
    }
}

/// What a command wrote, and how it ended.
fn said(envelope: Envelope) -> Result<Output, Failure> {
    let result = envelope.result;
    let why = result
        .ending
        .reason
        .clone()
        .or(result.decision.reason.clone());
    let why = why.unwrap_or_default();
    match result.status {
        StatusWord::Denied => Err(Failure::new(ErrorKind::Denied, format!("denied: {why}"))),
        StatusWord::NeedsApproval => {
            let id = result.approval_id.unwrap_or_default();
            let what = format!("Permission required: approval {id}: {why}");
            Err(Failure::new(ErrorKind::NeedsApproval, what))
        }
        StatusWord::CouldNotStart | StatusWord::NotFound => {
            Err(Failure::new(ErrorKind::NotFound, why))
        }
        status => {
            let output = format!("{}{}", result.stdout, result.stderr);
            let success = result.ending.exit_code == Some(0);
            Ok(Output {
                text: output.clone(),
                value: json!({
                    "output": output,
                    "stdout": result.stdout,
                    "stderr": result.stderr,
                    "exit_code": result.ending.exit_code,
                    "success": success,
                    "status": status,
                    "truncated": result.output.stdout.truncated || result.output.stderr.truncated,
                }),
            })
        }
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ExecIn {
    name: String,
    command: Command,
    /// Each as `NAME=VALUE`.
    #[serde(default)]
    env: Vec<String>,
    workdir: Option<String>,
    #[serde(default)]
    sudo: bool,
}

impl Asked for ExecIn {
    const NAME: &'static str = "sandbox_exec";
    const SENTENCE: &'static str = "Run a command in a sandbox.";
    const ROWS: &'static [&'static str] = &["vault_list", "meta_list", "exec"];
    const IF_MISSING: Option<&'static str> = LIST;
    type Answer = Output;

    async fn run(self, hands: &Hands) -> Result<Output, Failure> {
        let (vault, marks) = WorkspaceId(self.name.clone()).running(hands).await?;
        let exec = placed(self.command, self.workdir, self.env, self.sudo, &marks)?;
        said(hands.run(&vault, &exec).await?)
    }
}

/// A command with its directory and variables.
fn placed(
    command: Command,
    workdir: Option<String>,
    env: Vec<String>,
    sudo: bool,
    marks: &Marks,
) -> Result<Exec, Failure> {
    if sudo {
        let what = "sudo: nothing in a sandbox has more rights than the rest of it";
        return Err(Failure::new(ErrorKind::Denied, what));
    }
    let mut own = BTreeMap::new();
    for pair in env {
        let Some((name, value)) = pair.split_once('=') else {
            return Err(Failure::invalid(format!("{pair:?} is not NAME=VALUE")));
        };
        own.insert(name.to_owned(), value.to_owned());
    }
    Ok(Exec {
        cwd: workdir,
        env: marks.with(own),
        ..command.request()
    })
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Detach {
    name: String,
    command: Command,
    /// Each as `NAME=VALUE`.
    #[serde(default)]
    env: Vec<String>,
    workdir: Option<String>,
    #[serde(default)]
    sudo: bool,
}

impl Asked for Detach {
    const NAME: &'static str = "sandbox_exec_detach";
    const SENTENCE: &'static str = "Start a command in a sandbox that goes on by itself.";
    const ROWS: &'static [&'static str] = &["vault_list", "meta_list", "job_start", "job_poll"];
    const IF_MISSING: Option<&'static str> = LIST;
    type Answer = Json;

    async fn run(self, hands: &Hands) -> Result<Json, Failure> {
        let (vault, marks) = WorkspaceId(self.name.clone()).running(hands).await?;
        let mut exec = placed(self.command, self.workdir, self.env, self.sudo, &marks)?;
        exec.timeout_ms = Some(0);
        let start = JobStart {
            exec,
            ..JobStart::default()
        };
        match hands.ask(&vault, &start).await? {
            JobAnswer::Started(job) => Ok(Json(detached(&polled(hands, job.job_id).await?.0))),
            JobAnswer::Refused(envelope) => said(*envelope).map(|it| Json(it.value)),
        }
    }
}

async fn polled(hands: &Hands, job_id: u64) -> Result<(JobItem, String, String), Failure> {
    let poll = JobPoll {
        job_id,
        limit: Some(OUTPUT as u64),
        ..JobPoll::default()
    };
    let polled = hands.ask("", &poll).await?;
    Ok((polled.job, polled.stdout, polled.stderr))
}

fn detached(job: &JobItem) -> Value {
    let status = match (job.running, job.ending.exit_code) {
        (true, _) => "running",
        (false, Some(0)) => "completed",
        (false, _) => "failed",
    };
    json!({
        "id": job.job_id.to_string(),
        "sandbox": job.vault,
        "command": job.command,
        "pid": null,
        "status": status,
        "exit_code": job.ending.exit_code,
        "started_at": job.started_at,
    })
}

/// The number that an id stands for.
fn number(id: &str) -> Result<u64, Failure> {
    id.parse().map_err(|_| {
        let what = format!("there is no detached command {id:?}");
        Failure::new(ErrorKind::NotFound, what)
    })
}

/// What is called when a detached command is not there.
const LIST_DETACHED: Option<&str> = Some("sandbox_exec_list");

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Status {
    id: String,
}

impl Asked for Status {
    const NAME: &'static str = "sandbox_exec_status";
    const SENTENCE: &'static str = "Say how it stands with a detached command.";
    const ROWS: &'static [&'static str] = &["job_poll"];
    const IF_MISSING: Option<&'static str> = LIST_DETACHED;
    type Answer = Json;

    async fn run(self, hands: &Hands) -> Result<Json, Failure> {
        Ok(Json(detached(&polled(hands, number(&self.id)?).await?.0)))
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Logs {
    id: String,
    stream: Option<StreamName>,
}

#[derive(Copy, Clone, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum StreamName {
    Stdout,
    Stderr,
}

impl Asked for Logs {
    const NAME: &'static str = "sandbox_exec_logs";
    const SENTENCE: &'static str = "Show what a detached command has written by now.";
    const ROWS: &'static [&'static str] = &["job_poll"];
    const IF_MISSING: Option<&'static str> = LIST_DETACHED;
    type Answer = Json;

    async fn run(self, hands: &Hands) -> Result<Json, Failure> {
        let (_, stdout, stderr) = polled(hands, number(&self.id)?).await?;
        Ok(Json(match self.stream {
            None => json!({ "stdout": stdout, "stderr": stderr }),
            Some(StreamName::Stdout) => json!({ "stdout": stdout }),
            Some(StreamName::Stderr) => json!({ "stderr": stderr }),
        }))
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Kill {
    id: String,
}

impl Asked for Kill {
    const NAME: &'static str = "sandbox_exec_kill";
    const SENTENCE: &'static str = "End a detached command.";
    const ROWS: &'static [&'static str] = &["job_kill", "job_poll"];
    const IF_MISSING: Option<&'static str> = LIST_DETACHED;
    type Answer = Json;

    async fn run(self, hands: &Hands) -> Result<Json, Failure> {
        let job_id = number(&self.id)?;
        let kill = JobKill {
            job_id,
            signal: None,
        };
        hands.ask("", &kill).await?;
        Ok(Json(detached(&polled(hands, job_id).await?.0)))
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ListDetached {
    name: String,
}

impl Asked for ListDetached {
    const NAME: &'static str = "sandbox_exec_list";
    const SENTENCE: &'static str = "List the detached commands of a sandbox.";
    const ROWS: &'static [&'static str] = &["job_list"];
    const IF_MISSING: Option<&'static str> = LIST;
    type Answer = Json;

    async fn run(self, hands: &Hands) -> Result<Json, Failure> {
        let list = JobList {
            vault: Some(self.name),
            running: false,
            ..JobList::default()
        };
        let jobs = hands.ask("", &list).await?.jobs;
        let jobs: Vec<Value> = jobs.iter().take(200).map(detached).collect();
        Ok(Json(jobs.into()))
    }
}
