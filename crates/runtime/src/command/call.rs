//! One exec as every step of its story knows it: the request, the terms, and how it is recorded.

use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::sync::Arc;
use std::time::Duration;

use avfs_net::{HTTP_PROXY, SOCKS_PROXY};
use avfs_policy::{Decision, Part};
use avfs_sandbox::WindowSize;
use avfs_vault::{
    Cause, Checkpoint, CheckpointOrigin, Description, ExecId, JournalEvent, NewJournalEntry,
    NewVersion, Principal, RootId, Vault, VaultId, VaultName, VaultPath,
};
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::bounds::head_of;
use crate::command::approvals::safe;
use crate::command::control::Control;
use crate::command::inspection::Inspection;
use crate::command::network::ExecNetwork;
use crate::command::network_limits::NetworkLimits;
use crate::command::options::{Branch, CheckpointMode, ExecOptions, Stdin, Terms};
use crate::command::report::{
    Asked, Attempts, Captured, ExecReport, ExecStatus, ExecTerms, Timings,
};
use crate::command::run::Ran;
use crate::command::stored;
use crate::history::changes::{ChangeSet, Changes, Patch};
use crate::history::ignored::Ignored;
use crate::live::authorities;
use crate::live::git_user::makes_commits;
use crate::live::host::{HOME, shell};
use crate::live::lending::LendKey;
use crate::live::network_teller::Journal;
use crate::live::shape::{Access, Driver, Shape};
use crate::live::slot::{Inside, SessionOutcome};
use crate::runtime::{Runtime, Select};
use crate::session::Session;
use crate::{Error, Result};

/// By which programs find the authorities to trust: OpenSSL and Go, curl, git, Python's requests, pip, cargo.
const TRUST_VARIABLES: [&str; 6] = [
    "SSL_CERT_FILE",
    "CURL_CA_BUNDLE",
    "GIT_SSL_CAINFO",
    "REQUESTS_CA_BUNDLE",
    "PIP_CERT",
    "CARGO_HTTP_CAINFO",
];

/// Said before a command that commits.
const NO_IDENTITY: &str = "this host's git has no user.name and user.email, so a commit needs those of the repository: \
     `git config --global user.name NAME` (and user.email) on the host, or `git config` in the repository";

/// How many characters of a command a checkpoint before it tells.
const BEFORE_MAX: usize = 120;

/// The two ways to state a command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExecCommand {
    Argv(#[serde(with = "stored::words")] Vec<Vec<u8>>),
    Shell(String),
}

/// One top-level command that somebody wants run.
#[derive(Debug)]
pub struct ExecRequest {
    pub vault: Select,
    pub command: ExecCommand,
    /// Where it starts; without one, `/workspace` if there is one, else `/`.
    pub cwd: Option<VaultPath>,
    pub env: Vec<(Vec<u8>, Vec<u8>)>,
    pub stdin: Stdin,
    /// A terminal of this size, instead of pipes: what it reads is typed, and all it writes is one stream.
    pub terminal: Option<WindowSize>,
    /// What can be done to it while it runs.
    pub control: Arc<Control>,
    pub options: ExecOptions,
}

/// What every step carries along.
pub(crate) struct Call {
    /// The runtime, in the caller's name.
    pub runtime: Session,
    pub exec: ExecId,
    /// The vault that the caller named.
    pub asked: VaultName,
    /// The vault it runs in: that one, or a fork of it.
    pub vault: Vault,
    pub cwd: VaultPath,
    pub terms: Terms,
    pub network: ExecNetwork,
    /// Which requests it may make.
    pub inspection: Inspection,
    pub network_limits: NetworkLimits,
    /// The directories that the vault lends.
    pub lent: LendKey,
    /// The vault's variables and, over them, the caller's.
    pub env: Vec<(Vec<u8>, Vec<u8>)>,
    pub request: ExecRequest,
}

impl Runtime {
    pub(crate) fn default_cwd(&self, head: RootId) -> Result<VaultPath> {
        let workspace = VaultPath::parse(b"/workspace")?;
        let entry = self.inner.vaults.trees().entry(head, &workspace)?;
        Ok(if entry.is_some_and(|entry| entry.is_dir()) {
            workspace
        } else {
            VaultPath::root()
        })
    }
}

impl Call {
    pub fn by(&self) -> Principal {
        self.runtime.principal()
    }

    /// The report of a command that did not run; one that did adds what came of it.
    pub fn report_base(
        self,
        decision: Decision,
        status: ExecStatus,
        timings: Timings,
    ) -> ExecReport {
        ExecReport {
            exec: self.exec,
            vault: self.asked,
            cwd: self.cwd,
            asked: Asked {
                command: self.request.command,
                access: self.request.options.access,
                checkpoint: self.request.options.checkpoint.clone(),
                branch: self.request.options.branch,
            },
            decision,
            checkpoint: None,
            status,
            stdout: Captured::default(),
            stderr: Captured::default(),
            held: Vec::new(),
            duration: Duration::ZERO,
            changes: ChangeSet::default(),
            patch: None,
            ignored: Ignored::default(),
            home_changes: 0,
            home_change_list: None,
            version: None,
            uncommitted: None,
            skipped: Vec::new(),
            driver: self.request.options.driver,
            network: self.network,
            attempts: Attempts::default(),
            masked: 0,
            isolation: None,
            limits: Vec::new(),
            default_limits: Vec::new(),
            disk_reserve: None,
            limit_hit: None,
            usage: None,
            fork: None,
            leftovers: 0,
            shared_with: Vec::new(),
            shared_with_mount: false,
            retried: Vec::new(),
            approval: None,
            approver_set_up: false,
            speculation: None,
            terms: ExecTerms {
                timeout: self.terms.timeout,
                output_limit: self.terms.output_limit,
                limits: self.terms.given,
                asked: self.request.options.asked_limits(),
                nofile: self.terms.nofile,
                profile: self.terms.profile,
                network: self.network_limits,
            },
            timings,
        }
    }

    /// What happened between two roots.
    pub fn changes(&self, outcome: &SessionOutcome) -> Result<Changes> {
        let trees = self.runtime.inner.vaults.trees();
        Changes::between(trees, outcome.before, outcome.after)
    }

    /// The changes as a patch, if it is wanted.
    pub fn patch(&self, changes: &ChangeSet) -> Result<Option<Patch>> {
        let wanted = self.request.options.detail.patch;
        let trees = self.runtime.inner.vaults.trees();
        wanted.then(|| changes.patch(trees)).transpose()
    }

    /// On which terms its network is served, but for its secrets.
    pub fn network_terms(&self) -> Result<avfs_net::Terms> {
        let terms = self.runtime.terms_of_network(&self.network)?;
        Ok(self
            .network_limits
            .added_to(self.inspection.added_to(terms)))
    }

    /// Has git know the host's user as they are now; says so before a commit would fail because nobody is known.
    pub fn add_git_hint(&self, decision: &mut Decision) {
        let is_known = self.runtime.inner.host.git.refresh();
        let variables: [&[u8]; 3] = [b"GIT_COMMITTER_EMAIL", b"GIT_AUTHOR_EMAIL", b"EMAIL"];
        let is_set = self
            .env
            .iter()
            .any(|(name, _)| variables.contains(&name.as_slice()));
        let commits = |part: &Part| makes_commits(&part.text);
        if !is_known && !is_set && decision.parts.iter().any(commits) {
            decision.add_hint(NO_IDENTITY);
        }
    }

    /// The kind of sandbox that it needs.
    pub fn shape(&self) -> Shape {
        let (network, driver) = (self.network.namespace(), self.request.options.driver);
        Shape::new(network, driver, self.lent)
    }

    /// The whole environment, as it has to be where the vault is.
    pub fn environment(&self, inside: &Inside) -> Vec<(Vec<u8>, Vec<u8>)> {
        let host = &self.runtime.inner.host;
        let mut environment = host.environment(&self.vault.name, &self.env);
        if self.request.options.driver == Driver::Process {
            let root = inside.root.as_os_str().as_bytes().to_vec();
            let home = inside.root.join(&HOME[1..]).into_os_string().into_vec();
            for (name, value) in &mut environment {
                match name.as_slice() {
                    b"AVFS_MOUNTPOINT" => *value = root.clone(),
                    b"HOME" => *value = home.clone(),
                    _ => {}
                }
            }
        }
        match &self.network {
            ExecNetwork::Host => {}
            network if network.has_proxies() => {
                add_proxies(&mut environment);
                add_authorities(&mut environment);
            }
            _ => add_missing(&mut environment, &NO_RETRIES),
        }
        environment
    }

    pub fn sandbox_limits(&self) -> avfs_sandbox::Limits {
        avfs_sandbox::Limits {
            memory_bytes: self.terms.given.memory,
            cpus: self.terms.given.cpus,
            pids: self.terms.given.pids,
            nofile: self.terms.nofile,
            ..avfs_sandbox::Limits::default()
        }
    }

    pub fn keeps_fork(&self, ran: &Ran) -> bool {
        let branch = self.request.options.branch;
        branch == Branch::KeepOnSuccess && ran.status == ExecStatus::Exited(0)
    }

    /// An automatic checkpoint before a command that changed nothing is of no use to anyone.
    pub fn keep_checkpoint(
        &self,
        checkpoint: Option<Checkpoint>,
        changed: bool,
    ) -> Result<Option<Checkpoint>> {
        let Some(checkpoint) = checkpoint else {
            return Ok(None);
        };
        if changed || checkpoint.origin != CheckpointOrigin::Automatic {
            return Ok(Some(checkpoint));
        }
        let vaults = &self.runtime.inner.vaults;
        vaults.drop_automatic_checkpoint(self.vault.id, &checkpoint.name, &self.by())?;
        Ok(None)
    }

    /// What a checkpoint before it says about itself: one line of bounded length, without anything that could deceive.
    pub fn before(&self) -> Option<Description> {
        let command = safe(self.request.command.text().as_bytes());
        let shown: String = command.chars().take(BEFORE_MAX).collect();
        let more = if shown.len() < command.len() {
            "…"
        } else {
            ""
        };
        format!("before: {shown}{more}").parse().ok()
    }

    pub fn version(&self, decision: &Decision, ran: &Ran, duration: Duration) -> NewVersion {
        let mut details = self.details(decision);
        details["status"] = json!(ran.status);
        details["exit_code"] = json!(ran.status.exit_code());
        details["duration_ms"] = json!(duration.as_millis() as u64);
        NewVersion {
            by: self.by(),
            exec: Some(self.exec),
            cause: match ran.status {
                ExecStatus::Interrupted => Cause::Interrupted,
                _ => Cause::Exec,
            },
            details,
        }
    }

    pub fn record(&self, event: JournalEvent, decision: &Decision) -> Result<()> {
        self.record_with(event, self.details(decision))
    }

    pub fn record_uncommitted(&self, version: NewVersion, error: &Error) -> Result<()> {
        let mut details = version.details;
        details["error"] = json!(error.to_string());
        self.record_with(JournalEvent::ExecUncommitted, details)
    }

    pub fn record_network(&self, attempts: &Attempts) -> Result<()> {
        self.record_with(JournalEvent::ExecNetwork, json!(attempts))
    }

    /// Writes what it tries to reach into the journal, while it runs.
    pub fn network_journal(&self) -> Journal {
        let (session, vault, exec) = (self.runtime.clone(), self.vault.id, self.exec);
        Arc::new(move |tried, others| {
            let attempts = Attempts::from(tried.clone(), others);
            let of = (&session, vault, exec);
            record_of(of, JournalEvent::ExecNetwork, json!(attempts))
        })
    }

    fn record_with(&self, event: JournalEvent, details: serde_json::Value) -> Result<()> {
        let of = (&self.runtime, self.vault.id, self.exec);
        record_of(of, event, details)
    }

    pub fn details(&self, decision: &Decision) -> serde_json::Value {
        let categories: Vec<_> = decision
            .categories
            .iter()
            .map(|category| category.as_str())
            .collect();
        let mut details = json!({
            "command": head_of(self.request.command.text()),
            "cwd": self.cwd.to_string(),
            "decision": decision.action.as_str(),
            "categories": categories,
            "rule": decision.rule,
        });
        self.note_choices(&mut details);
        details
    }

    /// What the caller chose otherwise than usual is to be found later.
    fn note_choices(&self, details: &mut serde_json::Value) {
        let options = &self.request.options;
        if self.network != ExecNetwork::default() {
            details["network"] = json!(self.network.to_string());
        }
        if options.driver != Driver::Namespace {
            details["driver"] = json!(options.driver.as_str());
        }
        if options.checkpoint == CheckpointMode::Never {
            details["checkpoint"] = json!("never");
        }
        if options.access == Access::ReadOnly {
            details["readonly"] = json!(true);
        }
        if self.vault.name != self.asked {
            details["fork_of"] = json!(self.asked.as_str());
        }
    }
}

/// Writes an entry of an exec into the journal.
fn record_of(
    (session, vault, exec): (&Session, VaultId, ExecId),
    event: JournalEvent,
    details: serde_json::Value,
) -> Result<()> {
    session.inner.vaults.record(NewJournalEntry {
        vault: Some(vault),
        exec: Some(exec),
        principal: session.principal(),
        operation: event.into(),
        details,
    })?;
    Ok(())
}

/// Names the proxies of the sandbox, for programs that look for them. What connects by itself gets there as well. What
/// the caller or the vault sets goes first.
fn add_proxies(environment: &mut Vec<(Vec<u8>, Vec<u8>)>) {
    let http = format!("http://{HTTP_PROXY}");
    let socks = format!("socks5h://{SOCKS_PROXY}");
    let own = "localhost,127.0.0.1,::1";
    let variables = [
        ("HTTP_PROXY", &*http),
        ("http_proxy", &http),
        ("HTTPS_PROXY", &http),
        ("https_proxy", &http),
        ("ALL_PROXY", &socks),
        ("all_proxy", &socks),
        ("NO_PROXY", own),
        ("no_proxy", own),
    ];
    add_missing(environment, &variables);
}

/// Without a network nothing gets better by waiting, which npm does for more than a minute.
const NO_RETRIES: [(&str, &str); 3] = [
    ("npm_config_fetch_retries", "0"),
    ("PIP_RETRIES", "0"),
    ("CARGO_NET_RETRY", "0"),
];

fn add_missing(environment: &mut Vec<(Vec<u8>, Vec<u8>)>, variables: &[(&str, &str)]) {
    for (name, value) in variables {
        add(environment, name, value);
    }
}

/// Names the file with the authorities that the sandbox trusts, its own among them. Node adds one to those it has.
fn add_authorities(environment: &mut Vec<(Vec<u8>, Vec<u8>)>) {
    // Inside pip, these go before PIP_CERT, so they must not be set beside one that somebody chose.
    let before_pip = ["REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"];
    let is_chosen = environment.iter().any(|(set, _)| set == b"PIP_CERT");
    let names = TRUST_VARIABLES.iter();
    for name in names.filter(|name| !is_chosen || !before_pip.contains(name)) {
        add(environment, name, &authorities::all());
    }
    // A host's own configuration of npm, which is lent, may name other authorities, and those go before node's.
    if !environment
        .iter()
        .any(|(set, _)| set == b"NODE_EXTRA_CA_CERTS")
    {
        add(environment, "npm_config_cafile", &authorities::all());
    }
    add(environment, "NODE_EXTRA_CA_CERTS", &authorities::own());
}

/// Sets a variable that nobody has set.
pub(crate) fn add(environment: &mut Vec<(Vec<u8>, Vec<u8>)>, name: &str, value: &str) {
    if !environment.iter().any(|(set, _)| set == name.as_bytes()) {
        environment.push((name.into(), value.into()));
    }
}

impl ExecCommand {
    pub(crate) fn argv(&self) -> Vec<Vec<u8>> {
        match self {
            ExecCommand::Argv(argv) => argv.clone(),
            ExecCommand::Shell(text) => {
                vec![shell().into(), b"-c".to_vec(), text.clone().into_bytes()]
            }
        }
    }

    /// The command on one line, for people.
    pub fn text(&self) -> String {
        match self {
            ExecCommand::Shell(text) => text.clone(),
            ExecCommand::Argv(argv) => {
                let words: Vec<_> = argv
                    .iter()
                    .map(|word| String::from_utf8_lossy(word))
                    .collect();
                words.join(" ")
            }
        }
    }
}
