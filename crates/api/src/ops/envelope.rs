//! The request of an exec for the runtime, and its report as an envelope.

use super::envelope_approval;
use super::exec_options;
use super::failure::Failure;
use super::files::vault_path_if_any;
use super::items;
use super::network;
use super::retried;
use crate::wire::{
    Base64, ByteCounts, CommandMode, DecisionItem, DecisionPart, Ending, Envelope, EnvelopeRequest,
    EnvelopeResult, Exec, ForkItem, OutputCounts, StatusWord, StdinItem, TimeoutItem, TimingItem,
    UncommittedItem, to_text,
};
use avfs_runtime::{
    Access, Captured, Categories, Control, Decision, ExecCommand, ExecId, ExecOptions, ExecReport,
    ExecRequest, ExecStatus, Limit, Select, Stdin, Timings, Uncommitted, VaultPath, WindowSize,
};
use std::sync::Arc;

/// The variable TERM.
const TERM: &str = "TERM";

/// Variables and their values.
type Environment = Vec<(Vec<u8>, Vec<u8>)>;

/// A checked exec request.
pub(crate) struct Asked {
    vault: Select,
    command: ExecCommand,
    cwd: Option<VaultPath>,
    env: Environment,
    options: ExecOptions,
    stdin: Option<StdinItem>,
    terminal: Option<WindowSize>,
}

impl Asked {
    pub fn new(vault: Select, exec: Exec) -> Result<Asked, Failure> {
        let cwd = vault_path_if_any(exec.cwd.as_deref(), exec.cwd_b64.as_ref())?;
        Ok(Asked {
            vault,
            env: environment(&exec),
            terminal: exec.tty.as_ref().map(|tty| WindowSize {
                rows: tty.rows,
                columns: tty.columns,
            }),
            options: exec_options::options(&exec)?,
            stdin: exec.stdin.clone(),
            command: command(exec)?,
            cwd,
        })
    }

    pub fn request(self, stdin: Stdin, control: Arc<Control>) -> ExecRequest {
        ExecRequest {
            vault: self.vault,
            command: self.command,
            cwd: self.cwd,
            env: self.env,
            stdin,
            terminal: self.terminal,
            control,
            options: self.options,
        }
    }

    pub fn stdin(&self) -> Option<&StdinItem> {
        self.stdin.as_ref()
    }
}

fn command(exec: Exec) -> Result<ExecCommand, Failure> {
    let argv: Vec<Vec<u8>> = match exec.argv_b64 {
        Some(exact) => exact.into_iter().map(|part| part.0).collect(),
        None => exec.argv.into_iter().map(String::into_bytes).collect(),
    };
    match (exec.shell, argv.is_empty()) {
        (Some(_), false) => Err(Failure::invalid(
            "a command is either an argv or shell text, not both",
        )),
        (None, true) => Err(Failure::invalid("there is no command")
            .hint("put it after `--`, or give shell text with `--shell`")),
        (Some(text), true) => Ok(ExecCommand::Shell(text)),
        (None, false) => Ok(ExecCommand::Argv(argv)),
    }
}

fn environment(exec: &Exec) -> Environment {
    let bytes = |name: &str, value: &[u8]| (name.as_bytes().to_vec(), value.to_vec());
    let plain = exec.env.iter();
    let plain = plain.map(|(name, value)| bytes(name, value.as_bytes()));
    let exact = exec.env_b64.iter();
    let exact = exact.map(|(name, value)| bytes(name, &value.0));
    let term = exec.tty.as_ref().and_then(|tty| tty.term.as_ref());
    let is_set = exec.env.contains_key(TERM) || exec.env_b64.contains_key(TERM);
    let term = term.filter(|_| !is_set);
    let term = term.map(|term| bytes(TERM, term.as_bytes()));
    plain.chain(exact).chain(term).collect()
}

/// The envelope of a report.
pub(crate) fn envelope(report: ExecReport) -> Envelope {
    let request = request_item(&report);
    let result = result_item(&request, report);
    Envelope {
        schema_version: Envelope::SCHEMA_VERSION,
        kind: Envelope::KIND.into(),
        success: result.ending.exit_code == Some(0) && result.uncommitted.is_none(),
        request,
        result,
    }
}

fn request_item(report: &ExecReport) -> EnvelopeRequest {
    let asked = &report.asked;
    let (command, command_mode, argv, argv_b64) = match &asked.command {
        ExecCommand::Shell(text) => (text.clone(), CommandMode::Shell, None, None),
        ExecCommand::Argv(argv) => {
            let (text, exact) = to_texts(argv.iter().map(Vec::as_slice));
            (shell_words(&text), CommandMode::Argv, Some(text), exact)
        }
    };
    EnvelopeRequest {
        vault: report.vault.to_string(),
        cwd: report.cwd.to_string(),
        readonly: asked.access == Access::ReadOnly,
        keep_mount: false,
        mountpoint: None,
        checkpoint_mode: exec_options::checkpoint_mode(&asked.checkpoint).into(),
        command,
        command_mode,
        timeout: match report.terms.timeout {
            Some(timeout) => TimeoutItem::After {
                millis: timeout.as_millis() as u64,
            },
            None => TimeoutItem::NONE,
        },
        driver: exec_options::driver_word(report.driver),
        network: exec_options::network_word(&report.network),
        network_hosts: exec_options::network_hosts(&report.network),
        profile: report.terms.profile.map(exec_options::profile_word),
        limits: exec_options::limits_item(report.terms.limits),
        fork: exec_options::fork_word(asked.branch),
        output_limit: report.terms.output_limit,
        argv,
        argv_b64,
    }
}

fn output_counts(report: &ExecReport) -> OutputCounts {
    OutputCounts {
        stdout: counts(&report.stdout),
        stderr: counts(&report.stderr),
    }
}

fn result_item(request: &EnvelopeRequest, report: ExecReport) -> EnvelopeResult {
    let ended = Ended::of(&report.status);
    let changed = report.changed_files();
    let (changed_files, changed_files_b64) = to_texts(changed.iter().map(VaultPath::as_bytes));
    let (cwd, cwd_b64) = items::path(&report.cwd);
    let output = output_counts(&report);
    let approval_id = envelope_approval::id(&report);
    let asked = envelope_approval::reason(&report);
    let (state, limits) = (state(&ended), exec_options::limits_in_force(&report));
    let (patch, patch_truncated) = items::patch(report.patch);
    let (stdout, stdout_b64) = to_text(report.stdout.bytes);
    let (stderr, stderr_b64) = to_text(report.stderr.bytes);
    EnvelopeResult {
        exec: report.exec.to_string(),
        vault: report.vault.to_string(),
        mountpoint: "/".into(),
        cwd,
        cwd_b64,
        command: request.command.clone(),
        status: ended.status,
        ending: Ending {
            reason: ended.ending.reason.or(asked),
            ..ended.ending
        },
        stdout,
        stdout_b64,
        stderr,
        stderr_b64,
        output,
        masked: report.masked,
        network: network::used(&report.network, &report.attempts, report.terms.network),
        readonly: request.readonly,
        kept_mounted: false,
        duration_ms: report.duration.as_millis() as u64,
        checkpoint: report.checkpoint.as_ref().map(ToString::to_string),
        changed_files,
        changed_files_b64,
        changes_total: report.changes.total,
        changes_truncated: report.changes.is_truncated(),
        changes: report.changes.listed.iter().map(items::change).collect(),
        ignored_changes: items::ignored(&report.ignored),
        patch,
        patch_truncated,
        home_changes: report.home_changes,
        home_change_list: report
            .home_change_list
            .map(|changes| changes.iter().map(items::change).collect()),
        version: report.version,
        uncommitted: report.uncommitted.map(uncommitted),
        decision: decision(&report.decision),
        approval_id,
        speculation: report.speculation.map(envelope_approval::speculation),
        state: state.into(),
        timed_out: ended.status == StatusWord::TimedOut,
        skipped: report.skipped.into_iter().map(items::skipped).collect(),
        driver: request.driver,
        isolation: exec_options::isolation(report.driver, report.isolation),
        limits,
        limit_hit: report.limit_hit.map(exec_options::limit_hit),
        usage: report.usage.map(exec_options::usage),
        fork: report.fork.map(|fork| ForkItem {
            name: fork.name.to_string(),
            kept: fork.kept,
        }),
        leftovers: report.leftovers,
        retried: retried::words(report.retried),
        shared_with: shared_with(&report.shared_with, report.shared_with_mount),
        timings: timings(report.timings),
    }
}

/// Whose changes may be among those of a command.
fn shared_with(execs: &[ExecId], mount: bool) -> Vec<String> {
    let mount = mount.then(|| Envelope::SHARED_WITH_MOUNT.to_owned());
    execs.iter().map(ToString::to_string).chain(mount).collect()
}

fn state(ended: &Ended) -> &'static str {
    match ended.status {
        StatusWord::TimedOut => "timed_out",
        _ if ended.ran => "completed",
        _ => "failed",
    }
}

fn timings(timings: Timings) -> TimingItem {
    TimingItem {
        decide_us: timings.decide_us,
        checkpoint_us: timings.checkpoint_us,
        view_us: timings.view_us,
        run_us: timings.run_us,
        commit_us: timings.commit_us,
    }
}

fn uncommitted(uncommitted: Uncommitted) -> UncommittedItem {
    UncommittedItem {
        error: uncommitted.kind.as_str().into(),
        message: uncommitted.message,
        hint: uncommitted.hint,
        checkpoint: uncommitted.checkpoint.map(|name| name.to_string()),
    }
}

/// How a command ended, as a word of the API.
pub(crate) struct Ended {
    pub status: StatusWord,
    pub ending: Ending,
    pub ran: bool,
}

impl Ended {
    pub fn of(status: &ExecStatus) -> Ended {
        let (word, signal, reason, ran) = match status {
            ExecStatus::Exited(_) => (StatusWord::Exited, None, None, true),
            ExecStatus::Signaled(signal) => (StatusWord::Signaled, Some(*signal), None, true),
            ExecStatus::LimitExceeded { limit, signal } => {
                let word = match limit {
                    Limit::Memory => StatusWord::OutOfMemory,
                    _ => StatusWord::LimitExceeded,
                };
                let reason = format!("it exceeded its limit on {}", limit.name());
                (word, Some(*signal), Some(reason), true)
            }
            ExecStatus::TimedOut { signal } => (StatusWord::TimedOut, Some(*signal), None, true),
            ExecStatus::Cancelled => (StatusWord::Cancelled, None, None, false),
            ExecStatus::Denied => (StatusWord::Denied, None, None, false),
            ExecStatus::NeedsApproval => (StatusWord::NeedsApproval, None, None, false),
            ExecStatus::CouldNotStart { reason, not_found } => {
                let word = match not_found {
                    true => StatusWord::NotFound,
                    false => StatusWord::CouldNotStart,
                };
                (word, None, Some(reason.clone()), false)
            }
            ExecStatus::Interrupted => (StatusWord::Interrupted, None, None, false),
        };
        Ended {
            status: word,
            ending: Ending {
                exit_code: status.exit_code(),
                signal,
                reason,
            },
            ran,
        }
    }
}

fn counts(captured: &Captured) -> ByteCounts {
    ByteCounts {
        bytes: captured.total,
        truncated: captured.truncated,
        spilled: captured.spilled,
    }
}

pub(crate) fn decision(decision: &Decision) -> DecisionItem {
    DecisionItem {
        action: decision.action.as_str().into(),
        categories: categories(decision.categories),
        reason: decision.reason.clone(),
        rule: decision.rule.clone(),
        smallest_rule: decision.smallest_rule.clone(),
        parts: decision
            .parts
            .iter()
            .map(|part| DecisionPart {
                command: part.text.clone(),
                action: part.action.as_str().into(),
                categories: categories(part.categories),
                rule: part.rule.clone(),
            })
            .collect(),
    }
}

fn categories(categories: Categories) -> Vec<String> {
    categories
        .iter()
        .map(|category| category.as_str().to_owned())
        .collect()
}

/// Texts, and the exact bytes of all of them if one is not UTF-8.
fn to_texts<'a>(
    parts: impl Iterator<Item = &'a [u8]> + Clone,
) -> (Vec<String>, Option<Vec<Base64>>) {
    let texts = parts
        .clone()
        .map(|part| String::from_utf8_lossy(part).into_owned())
        .collect();
    let all_text = parts.clone().all(|part| std::str::from_utf8(part).is_ok());
    let exact = (!all_text).then(|| parts.map(|part| Base64(part.to_vec())).collect());
    (texts, exact)
}

/// One line that a shell would split into these words.
fn shell_words(argv: &[String]) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_@%+=:,./-".contains(c);
    let words: Vec<String> = argv
        .iter()
        .map(|word| {
            if !word.is_empty() && word.chars().all(plain) {
                word.clone()
            } else {
                format!("'{}'", word.replace('\'', r"'\''"))
            }
        })
        .collect();
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use avfs_runtime::Timeout;

    fn refusal(exec: Exec) -> String {
        match Asked::new(Select::Current, exec) {
            Err(failure) => failure.problem().detail.clone(),
            Ok(_) => panic!("it was accepted"),
        }
    }

    #[test]
    fn a_command_is_one_thing() {
        assert!(refusal(Exec::default()).contains("no command"));
        let both = Exec {
            argv: vec!["a".into()],
            shell: Some("b".into()),
            ..Exec::default()
        };
        assert!(refusal(both).contains("not both"));
    }

    #[test]
    fn a_timeout_of_zero_is_none() {
        let argv = vec!["a".to_owned()];
        let zero = Exec {
            argv: argv.clone(),
            timeout_ms: Some(0),
            ..Exec::default()
        };
        let asked = Asked::new(Select::Current, zero).unwrap();
        assert_eq!(asked.options.timeout, Timeout::Never);
        let left_out = Exec {
            argv,
            ..Exec::default()
        };
        let asked = Asked::new(Select::Current, left_out).unwrap();
        assert_eq!(asked.options.timeout, Timeout::Unsaid);
    }

    #[test]
    fn words_survive_a_shell() {
        let words = ["echo", "a b", "it's", "", "x=1"].map(String::from);
        assert_eq!(shell_words(&words), r"echo 'a b' 'it'\''s' '' x=1");
    }
}
