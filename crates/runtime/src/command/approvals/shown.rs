//! Text as an approver must see it: exactly what it is, with nothing that moves the cursor, turns the line around or
//! looks like something else.

use avfs_policy::Decision;
use avfs_vault::{Approval, RootId, Speculation, VaultPath};
use serde_json::{Value, json};

use super::binding::Fields;
use crate::bounds::head_of;
use crate::command::call::{Call, ExecCommand};
use crate::command::options::{Branch, CheckpointMode};
use crate::live::shape::Access;

/// The text with every character escaped that could deceive. Two different texts never look the same.
pub fn safe(bytes: &[u8]) -> String {
    let mut shown = String::new();
    for chunk in bytes.utf8_chunks() {
        for character in chunk.valid().chars() {
            match character {
                '\\' => shown.push_str("\\\\"),
                '\n' => shown.push_str("\\n"),
                '\t' => shown.push_str("\\t"),
                c if is_plain(c) => shown.push(c),
                c => shown.push_str(&format!("\\u{{{:x}}}", u32::from(c))),
            }
        }
        for byte in chunk.invalid() {
            shown.push_str(&format!("\\x{byte:02x}"));
        }
    }
    shown
}

/// Characters that are what they look like: ASCII, accented Latin, and scripts without Latin's shapes.
fn is_plain(character: char) -> bool {
    matches!(character,
        ' '..='~'
        | '\u{c0}'..='\u{d6}' | '\u{d8}'..='\u{f6}' | '\u{f8}'..='\u{ff}'
        | '\u{3041}'..='\u{3096}' | '\u{30a1}'..='\u{30fa}'
        | '\u{4e00}'..='\u{9fff}' | '\u{ac00}'..='\u{d7a3}')
}

/// What the approver is shown, and the part of it that the journal keeps: values of variables may be secret.
pub(crate) fn request(call: &Call, decision: &Decision) -> Value {
    let lines: Vec<String> = match &call.request.command {
        ExecCommand::Shell(text) => text.split('\n').map(|line| safe(line.as_bytes())).collect(),
        ExecCommand::Argv(argv) => argv.iter().map(|word| safe(word)).collect(),
    };
    let kind = match &call.request.command {
        ExecCommand::Shell(_) => "shell",
        ExecCommand::Argv(_) => "argv",
    };
    let env: Vec<String> = call
        .env
        .iter()
        .map(|(name, value)| format!("{}={}", safe(name), safe(value)))
        .collect();
    let categories: Vec<&str> = decision.categories.iter().map(|c| c.as_str()).collect();
    let options = &call.request.options;
    json!({
        "summary": {
            "command": head_of(call.request.command.text()),
            "cwd": call.cwd.to_string(),
            "rule": decision.rule,
        },
        "kind": kind,
        "lines": lines,
        "cwd": safe(call.cwd.as_bytes()),
        "env": env,
        "network": call.network.to_string(),
        "driver": options.driver.as_str(),
        "terms": terms(call),
        "categories": categories,
        "rule": decision.rule,
        "smallest_rule": decision.smallest_rule,
        "reason": decision.reason.as_deref().map(|reason| safe(reason.as_bytes())),
    })
}

/// On what terms it runs, besides the network and the driver.
fn terms(call: &Call) -> Vec<String> {
    let options = &call.request.options;
    let limits = &call.terms.limits;
    let mut terms = vec![match call.terms.timeout {
        Some(timeout) => format!("at most {} ms", timeout.as_millis()),
        None => "no limit of time".to_owned(),
    }];
    let mut add = |term: Option<String>| terms.extend(term);
    add(limits.memory.map(|bytes| format!("memory {bytes} bytes")));
    add(limits.cpus.map(|cpus| format!("{cpus} processors")));
    add(limits.pids.map(|pids| format!("{pids} processes")));
    add(limits.disk.map(|bytes| format!("disk {bytes} bytes")));
    add(call.terms.profile.map(|name| format!("profile {name}")));
    add((options.access == Access::ReadOnly).then(|| "read-only".to_owned()));
    add(match options.branch {
        Branch::Here => None,
        Branch::Throwaway => Some("in a fork that goes away".to_owned()),
        Branch::KeepOnSuccess => Some("in a fork that stays if it succeeds".to_owned()),
    });
    add(match &options.checkpoint {
        CheckpointMode::Auto => None,
        CheckpointMode::Named(name) => Some(format!("checkpoint {name} before it")),
        CheckpointMode::Never => Some("no checkpoint before it".to_owned()),
    });
    terms
}

/// The state of the vault that an approver looks at, and what names all that was shown.
#[derive(Debug, Clone)]
pub struct Shown {
    pub root: RootId,
    pub version: u64,
    /// What changed since the command was asked for; none where that state is not kept any more.
    pub changed: Option<ChangedSince>,
    /// To be given back with the approval.
    pub fingerprint: String,
}

/// Paths of a vault that changed.
#[derive(Debug, Clone, Default)]
pub struct ChangedSince {
    /// How many there are.
    pub count: usize,
    /// The first of them.
    pub paths: Vec<VaultPath>,
}

/// Names what was shown: the request, what it is bound to, the state it would run on, and what it did when it was tried.
pub(super) fn fingerprint(
    approval: &Approval,
    (root, version): (RootId, u64),
    tried: Option<&Speculation>,
) -> String {
    let mut hash = Fields::new(b"agentvfs shown 1");
    hash.add(approval.id.as_bytes());
    hash.add(&approval.binding);
    hash.add(approval.request.to_string().as_bytes());
    hash.add(root.object().as_bytes());
    hash.count(version as usize);
    if let Some(tried) = tried {
        hash.add(tried.root.object().as_bytes());
        hash.add(tried.outcome.to_string().as_bytes());
        hash.add(&tried.stdout);
        hash.add(&tried.stderr);
    }
    blake3::Hash::from_bytes(hash.finish()).to_hex().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_deceives() {
        for (text, shown) in [
            ("git push", "git push"),
            ("a\x1b[2Jb", "a\\u{1b}[2Jb"),
            ("a\rb\x08", "a\\u{d}b\\u{8}"),
            ("safe\u{202e}gnp.exe", "safe\\u{202e}gnp.exe"),
            ("zero\u{200b}width\u{feff}", "zero\\u{200b}width\\u{feff}"),
            ("\u{441}url", "\\u{441}url"),
            ("ｇｉｔ", "\\u{ff47}\\u{ff49}\\u{ff54}"),
            ("𝐠it", "\\u{1d420}it"),
            ("caf\u{e9} \u{65e5}\u{672c}", "café 日本"),
            ("e\u{301}", "e\\u{301}"),
            ("\u{a0}\u{2028}", "\\u{a0}\\u{2028}"),
            ("tab\tnew\nline", "tab\\tnew\\nline"),
            ("back\\u{1b}", "back\\\\u{1b}"),
            ("\u{e0041}", "\\u{e0041}"),
        ] {
            assert_eq!(safe(text.as_bytes()), shown);
        }
        assert_eq!(safe(b"\xff\x00"), "\\xff\\u{0}");
    }
}
