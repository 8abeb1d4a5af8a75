//! `avfs approval approve --always`: the rule that makes the same question needless.

use crate::error::{Error, Result};
use crate::output::quoted::quoted;
use crate::session::Session;
use crate::terminal::Terminal;
use avfs_api::wire::{ApprovalItem, PolicyList, PolicySet, PolicyValidate};

/// Whether a rule is to be added, and who says so.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum AddRule {
    No,
    IfConfirmed,
    Yes,
}

/// A rule for a vault.
pub struct Rule {
    vault: String,
    text: String,
}

impl Rule {
    /// Whether it allows whatever falls into a category, and not one command.
    fn is_wide(&self) -> bool {
        let narrow = ["command =", "text =", "path ="];
        let is_narrow = |line: &str| narrow.iter().any(|key| line.starts_with(key));
        !self.text.lines().any(is_narrow)
    }
}

/// The rule of a request, if one is to be added.
pub fn rule(item: &ApprovalItem, add: AddRule) -> Result<Option<Rule>> {
    if add == AddRule::No {
        return Ok(None);
    }
    let refuse = |text: String, hint: &str| Error::Invalid {
        text,
        hint: Some(hint.into()),
    };
    let rule = match (&item.smallest_rule, &item.vault) {
        (Some(text), Some(vault)) => Rule {
            vault: vault.clone(),
            text: text.clone(),
        },
        (_, None) => return Err(refuse("its vault is gone".into(), "leave out --always")),
        (None, _) => {
            let text = format!("no rule would allow it while {} is there", item.rule);
            return Err(refuse(text, "change that rule: `avfs policy edit`"));
        }
    };
    if add == AddRule::Yes && rule.is_wide() {
        return Err(refuse(
            "the smallest rule for it allows every command of a category".into(),
            "leave out --yes, and look at it",
        ));
    }
    Ok(Some(rule))
}

/// Shows the rule, and asks.
pub fn confirm(rule: &Rule, add: AddRule, terminal: &mut Terminal) -> Result<()> {
    let vault = &rule.vault;
    terminal.say(&format!("  to be added to the rules of vault {vault}:\n"))?;
    terminal.say(&quoted([rule.text.as_str()]))?;
    if rule.is_wide() {
        terminal.say("  it allows every command of this category, not only this one\n")?;
    }
    if add == AddRule::Yes {
        return Ok(());
    }
    match terminal.ask("Add it? [y = yes] ")?.as_deref() {
        Some("y" | "yes") => Ok(()),
        _ => Err(Error::Invalid {
            text: "nothing was approved, and no rule was added".into(),
            hint: Some("leave out --always to let it run once".into()),
        }),
    }
}

/// Adds the rule to those that the vault has now.
pub fn write(rule: &Rule, session: &mut Session) -> Result<()> {
    let listing = session.call_on(&rule.vault, &PolicyList {})?;
    let mut sources = listing.sources.into_iter();
    let own = sources.find(|source| source.level == "vault");
    let seen = own.and_then(|source| source.text);
    let mut text = seen.clone().unwrap_or_default();
    if !text.is_empty() {
        text = format!("{}\n\n", text.trim_end());
    }
    text = format!("{text}{}\n", rule.text);
    let checked = PolicyValidate {
        level: "vault".into(),
        text: text.clone(),
    };
    session.call_on(&rule.vault, &checked)?;
    let text = Some(text);
    session.call_on(&rule.vault, &PolicySet { seen, text })?;
    Ok(())
}
