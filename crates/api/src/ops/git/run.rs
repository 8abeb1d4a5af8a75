//! Git in the sandbox of a vault. Each run is an exec like any other: judged by policy, journaled and limited. Whatever a
//! repository's configuration makes git run, runs there too.

use super::Ask;
use crate::ops::envelope_approval;
use crate::ops::failure::Failure;
use crate::ops::files::vault_path;
use crate::wire::Base64;
use avfs_runtime::{
    Cancel, Control, ErrorKind, ExecCommand, ExecOptions, ExecReport, ExecRequest, ExecStatus,
    OutputSink, Select, Stdin, Stream, VaultPath, Watcher,
};
use std::sync::Arc;
use std::time::Instant;

/// Bytes of output that are read.
pub(super) const OUTPUT_MAX: usize = 2 << 20;
/// Bytes of git's own words in an error.
const WORDS_MAX: usize = 2_000;

/// A repository of a vault, and who asks.
pub(super) struct Git<'a> {
    pub ask: &'a Ask,
    pub vault: Select,
    /// A directory of the repository, if it is named.
    pub path: Option<VaultPath>,
    pub watcher: &'a dyn Watcher,
}

/// What a run of git came to.
pub(super) struct Ran {
    pub exec: String,
    pub code: i32,
    /// The beginning of its output.
    pub stdout: Vec<u8>,
    /// How much there was.
    pub total: u64,
    pub is_cut: bool,
    stderr: String,
}

/// Nobody is told the output; whoever goes away ends it.
struct Quiet<'a>(&'a dyn Watcher);

impl OutputSink for Quiet<'_> {
    fn output(&self, _: Stream, _: &[u8], _: Option<Instant>) {}

    fn cancelled(&self) -> Option<Cancel> {
        self.0.cancelled().then_some(Cancel::Leave)
    }
}

/// A name of a branch or commit, which must not be taken for an option.
pub(super) fn revision(name: &str) -> Result<&[u8], Failure> {
    match name.starts_with('-') || name.is_empty() {
        true => Err(Failure::invalid(format!(
            "{name:?} cannot be a branch or a commit"
        ))),
        false => Ok(name.as_bytes()),
    }
}

impl<'a> Git<'a> {
    /// Git in the directory that a request names, if it names one.
    pub fn at(
        (text, exact): (&Option<String>, &Option<Base64>),
        ask: &'a Ask,
        vault: Select,
        watcher: &'a dyn Watcher,
    ) -> Result<Git<'a>, Failure> {
        let path = match (text, exact) {
            (None, None) => None,
            (text, exact) => Some(vault_path(
                text.as_deref().unwrap_or_default(),
                exact.as_ref(),
            )?),
        };
        Ok(Git {
            ask,
            vault,
            path,
            watcher,
        })
    }

    /// Runs git with these words. Any exit code is an answer; not to run at all is a failure.
    pub fn run(&self, words: &[&[u8]]) -> Result<Ran, Failure> {
        self.run_keeping(words, OUTPUT_MAX)
    }

    /// As [`Git::run`], with so many bytes of output.
    pub fn run_keeping(&self, words: &[&[u8]], bytes: usize) -> Result<Ran, Failure> {
        // Options that take names as they are, ask nobody and leave the index alone when it is only read.
        let base: [&[u8]; 4] = [
            b"git",
            b"--no-pager",
            b"--no-optional-locks",
            b"--literal-pathspecs",
        ];
        let argv = base.iter().chain(words).map(|word| word.to_vec()).collect();
        let env = [("LC_ALL", "C.UTF-8"), ("GIT_TERMINAL_PROMPT", "0")];
        let env = env.map(|(name, value)| (name.into(), value.into()));
        let request = ExecRequest {
            vault: self.vault.clone(),
            command: ExecCommand::Argv(argv),
            cwd: self.path.clone(),
            env: env.to_vec(),
            stdin: Stdin::Empty,
            terminal: None,
            control: Arc::<Control>::default(),
            options: ExecOptions {
                // Of output that does not fit, the first and the last half are kept.
                output_limit: Some(2 * bytes),
                ..ExecOptions::default()
            },
        };
        let report = self.ask.session.exec(request, &Quiet(self.watcher))?;
        self.ran(report, bytes)
    }

    fn ran(&self, report: ExecReport, bytes: usize) -> Result<Ran, Failure> {
        let ExecStatus::Exited(code) = report.status else {
            return Err(did_not_run(&report));
        };
        let whole = !report.stdout.truncated && report.stdout.bytes.len() <= bytes;
        let mut stdout = report.stdout.bytes;
        stdout.truncate(bytes);
        Ok(Ran {
            exec: report.exec.to_string(),
            code,
            stdout,
            total: report.stdout.total,
            is_cut: !whole,
            stderr: String::from_utf8_lossy(&report.stderr.bytes).into_owned(),
        })
    }

    /// Runs git, which must succeed.
    pub fn succeed(&self, words: &[&[u8]]) -> Result<Ran, Failure> {
        let ran = self.run(words)?;
        match ran.code {
            0 => Ok(ran),
            _ => Err(self.failed(&ran)),
        }
    }

    /// Git's own words as a failure.
    pub fn failed(&self, ran: &Ran) -> Failure {
        let said = ran.stderr.trim();
        let has = |words: &str| said.contains(words);
        if has("not a git repository") {
            let place = self.path.as_ref().map_or("the directory".into(), |path| {
                String::from_utf8_lossy(path.as_bytes()).into_owned()
            });
            let what = format!("{place} is not in a git repository");
            return Failure::new(ErrorKind::NotFound, what)
                .at(&place)
                .hint("name a directory of a repository, or run `git init` there");
        }
        let kind = if has("already exists") {
            ErrorKind::AlreadyExists
        } else if has("unknown revision") || has("bad revision") || has("invalid reference") {
            ErrorKind::NotFound
        } else {
            ErrorKind::Conflict
        };
        let failure = Failure::new(kind, format!("git failed: {}", readable(said)));
        match has("Please tell me who you are") || has("unable to auto-detect email") {
            true => failure.hint("give the name and the e-mail address of an author"),
            false => failure.hint(format!(
                "its output is kept: `avfs output {} --stream stderr`",
                ran.exec
            )),
        }
    }
}

/// The beginning of a text of a program's, without control characters.
fn readable(text: &str) -> String {
    let plain = |c: char| if c.is_control() && c != '\n' { '?' } else { c };
    text[..text.floor_char_boundary(WORDS_MAX)]
        .chars()
        .map(plain)
        .collect()
}

/// Why a command has no exit code.
fn did_not_run(report: &ExecReport) -> Failure {
    let asked = envelope_approval::reason(report);
    let by_rule = || {
        let reason = report
            .decision
            .reason
            .as_deref()
            .unwrap_or("policy says so");
        format!("{reason} (rule {})", report.decision.rule)
    };
    let failure = |kind, what: String| Failure::new(kind, what);
    match &report.status {
        ExecStatus::Denied => {
            let denied = failure(ErrorKind::Denied, format!("git may not run: {}", by_rule()));
            let rule = report.decision.smallest_rule.clone();
            denied.hint(asked.or(rule).unwrap_or_else(|| {
                "do without it, or ask the owner of these rules: `avfs policy list`".into()
            }))
        }
        ExecStatus::NeedsApproval => {
            let what = format!("git needs approval: {}", by_rule());
            failure(ErrorKind::NeedsApproval, what).hint(match envelope_approval::id(report) {
                Some(id) => format!(
                    "the owner runs `avfs approval approve {id}`; then run the command itself with that approval: \
                     `avfs approval show {id}` has it"
                ),
                None => asked.unwrap_or_else(|| "ask the owner".into()),
            })
        }
        ExecStatus::CouldNotStart {
            not_found: true, ..
        } => failure(
            ErrorKind::Unavailable,
            "there is no git in this vault".into(),
        )
        .hint("install git on this machine, or in the vault"),
        ExecStatus::CouldNotStart { reason, .. } => failure(
            ErrorKind::Invalid,
            format!("git could not start: {}", readable(reason)),
        )
        .hint("name a directory that exists"),
        ExecStatus::TimedOut { .. } => {
            failure(ErrorKind::TimedOut, "git took too long".into()).hint("run it as a job")
        }
        ExecStatus::LimitExceeded { .. } => {
            failure(ErrorKind::Quota, "git exceeded a limit of the vault".into())
        }
        ExecStatus::Exited(_)
        | ExecStatus::Signaled(_)
        | ExecStatus::Cancelled
        | ExecStatus::Interrupted => failure(
            ErrorKind::Unavailable,
            "git was ended before it was done".into(),
        ),
    }
}
