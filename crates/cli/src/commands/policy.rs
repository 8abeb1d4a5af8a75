//! `avfs policy`: list, test and change rules.

use crate::args::{LevelName, PolicyVerb, QuestionArgs};
use crate::error::{Error, Result};
use crate::exit;
use crate::output::changes::printable;
use crate::output::table::{count, table};
use crate::output::{Output, style};
use crate::session::Session;
use avfs_api::wire::{
    DecisionItem, PolicyExplain, PolicyExplained, PolicyList, PolicyListing, PolicySet,
    PolicySourceItem, PolicyTest, PolicyTested, PolicyValidate, PolicyWrite,
};
use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The text that an editor shows for an empty file of rules.
const TEMPLATE: &str = "\
# Rules for commands. The strictest rule that fits decides; what no rule here answers for is left
# to the defaults, which `avfs policy list` shows. `docs/policy.md` explains every key.
#
# [[rule]]
# command = [\"git\", \"push\", \"origin\"]
# action = \"allow_with_checkpoint\"
# match = [\"git push origin main\"]
# no-match = [\"git push other\"]
";

pub fn run(verb: PolicyVerb, session: &mut Session, output: Output) -> Result<u8> {
    match verb {
        PolicyVerb::List { sources } => list(sources, session, output),
        PolicyVerb::Check(args) => check(args, session, output),
        PolicyVerb::Explain(args) => explain(args, session, output),
        PolicyVerb::Test => test(session, output),
        PolicyVerb::Edit { level, from } => edit(level, from, session, output),
    }
}

fn list(sources: bool, session: &mut Session, output: Output) -> Result<u8> {
    let listing = session.call(&PolicyList {})?;
    output.answer(&listing, |listing| match sources {
        true => sources_text(listing),
        false => rules_text(listing),
    })?;
    Ok(if listing.problem.is_none() {
        exit::OK
    } else {
        1
    })
}

fn sources_text(listing: &PolicyListing) -> String {
    let text = |source: &PolicySourceItem| {
        let body = match &source.text {
            None => style::faint("  no rules").to_string(),
            Some(text) => text
                .lines()
                .map(|l| format!("  {}\n", printable(l)))
                .collect(),
        };
        format!("{} {}\n{body}", style::strong(&source.level), source.name)
    };
    let all: Vec<String> = listing.sources.iter().map(text).collect();
    all.join("\n")
}

fn rules_text(listing: &PolicyListing) -> String {
    if let Some(problem) = &listing.problem {
        return format!(
            "{} {problem}\nno command runs until this is fixed",
            style::bad("error:")
        );
    }
    let rows = listing.rules.iter().map(|rule| {
        vec![
            rule.action.clone(),
            printable(&rule.when),
            rule.rule.clone(),
            rule.name.clone().unwrap_or_default(),
        ]
    });
    table(&["ACTION", "WHEN", "RULE", "NAME"], rows.collect()).trim_fmt()
}

fn question(args: QuestionArgs) -> Result<PolicyExplain> {
    let mut env = BTreeMap::new();
    for pair in args.env {
        let (name, value) = pair.split_once('=').ok_or_else(|| Error::Invalid {
            text: format!("{pair:?} is not NAME=VALUE"),
            hint: Some("for example --env CI=1".into()),
        })?;
        env.insert(name.to_owned(), value.to_owned());
    }
    let command = args.command.into_iter();
    Ok(PolicyExplain {
        argv: command.map(|w| w.to_string_lossy().into_owned()).collect(),
        shell: args.shell,
        cwd: args.cwd,
        env,
        network: args.network.map(|kind| kind.as_str().to_owned()),
    })
}

fn check(args: QuestionArgs, session: &mut Session, output: Output) -> Result<u8> {
    let explained = session.call(&question(args)?)?;
    output.answer(&explained, |explained| {
        let decision = &explained.decision;
        format!("{} ({})", verdict(&decision.action), decision.rule)
    })?;
    Ok(code(&explained))
}

fn explain(args: QuestionArgs, session: &mut Session, output: Output) -> Result<u8> {
    let explained = session.call(&question(args)?)?;
    output.answer(&explained, |explained| decision_text(&explained.decision))?;
    Ok(code(&explained))
}

fn code(explained: &PolicyExplained) -> u8 {
    match explained.decision.action.as_str() {
        "allow" | "allow_with_checkpoint" => exit::OK,
        _ => 126,
    }
}

fn verdict(action: &str) -> String {
    match action {
        "allow" | "allow_with_checkpoint" => style::good(action).to_string(),
        "require_approval" => style::notable(action).to_string(),
        _ => style::bad(action).to_string(),
    }
}

/// The decision, part by part.
pub fn decision_text(decision: &DecisionItem) -> String {
    let parts = decision.parts.iter().map(|part| {
        vec![
            part.action.clone(),
            part.categories.join(", "),
            part.rule.clone(),
            printable(&part.command),
        ]
    });
    let mut text = table(
        &["ACTION", "CATEGORIES", "RULE", "COMMAND"],
        parts.collect(),
    )
    .trim_fmt();
    text.push_str(&format!(
        "\n\n{} by {}",
        verdict(&decision.action),
        style::strong(&decision.rule)
    ));
    if let Some(reason) = &decision.reason {
        text.push_str(&format!("\n  {}", printable(reason)));
    }
    if let Some(rule) = &decision.smallest_rule {
        let rule: String = rule
            .lines()
            .map(|l| format!("\n  {}", printable(l)))
            .collect();
        text.push_str(&format!("\n\nthe smallest rule that would allow it:{rule}"));
    }
    text
}

fn test(session: &mut Session, output: Output) -> Result<u8> {
    let tested = session.call(&PolicyTest {})?;
    output.answer(&tested, tested_text)?;
    Ok(if tested.failed == 0 { exit::OK } else { 1 })
}

fn tested_text(tested: &PolicyTested) -> String {
    let mut lines = Vec::new();
    for example in &tested.examples {
        if example.wanted != example.matches {
            let what = if example.wanted {
                "does not match"
            } else {
                "matches"
            };
            let text = printable(&example.example);
            lines.push(format!(
                "{} {} {what} {text}",
                style::bad("wrong"),
                example.rule
            ));
        }
    }
    let all = count(tested.examples.len() as u64, "example");
    lines.push(match tested.failed {
        0 => format!("{all}: all match their rules"),
        failed => format!("{all}: {failed} contradict their rules"),
    });
    lines.join("\n")
}

fn edit(
    level: LevelName,
    from: Option<PathBuf>,
    session: &mut Session,
    output: Output,
) -> Result<u8> {
    let listing = session.call(&PolicyList {})?;
    let mut sources = listing.sources.into_iter();
    let source = sources.find(|source| source.level == level.word());
    let Some(source) = source else {
        return Err(Error::Unavailable {
            text: format!("the daemon has no file for {} rules", level.word()),
            hint: Some("set HOME, and restart the daemon with `avfs daemon stop`".into()),
        });
    };
    let before = source.text.clone().unwrap_or_default();
    let text = match from {
        Some(path) => fs::read_to_string(&path)
            .map_err(Error::io(format!("cannot read {}", path.display())))?,
        None => edited(&before)?,
    };
    if text == before {
        output.answer(
            &serde_json::json!({ "changed": false }),
            |_| "nothing changed",
        )?;
        return Ok(exit::OK);
    }
    let tested = session.call(&PolicyValidate {
        level: level.word().into(),
        text: text.clone(),
    })?;
    match level {
        LevelName::Vault => {
            let text = Some(text).filter(|text| !text.trim().is_empty());
            let seen = source.text;
            session.call(&PolicySet { seen, text })?;
        }
        LevelName::User | LevelName::System => {
            let seen = source.text;
            let level = level.word().into();
            session.call(&PolicyWrite { level, seen, text })?;
        }
    }
    output.answer(
        &serde_json::json!({ "changed": true, "level": level.word(), "name": source.name,
            "examples": tested.examples.len() }),
        |_| format!("the rules of {} are replaced", source.name),
    )?;
    Ok(exit::OK)
}

/// Opens an editor on a copy; returns its text.
fn edited(before: &str) -> Result<String> {
    let editor = crate::environment::editor();
    let file = scratch_file(if before.is_empty() { TEMPLATE } else { before })?;
    // As git does it: the variable may hold a command with arguments.
    let status = Command::new("sh")
        .args(["-c", &format!("{editor} \"$1\""), "sh"])
        .arg(&file.0)
        .status()
        .map_err(Error::io(format!("cannot start the editor {editor}")))?;
    if !status.success() {
        return Err(Error::Invalid {
            text: format!("the editor {editor} ended with {status}; nothing was changed"),
            hint: None,
        });
    }
    fs::read_to_string(&file.0).map_err(Error::io("cannot read the edited file"))
}

/// A file of this user alone, removed when dropped.
struct Scratch(PathBuf);

impl Drop for Scratch {
    fn drop(&mut self) {
        // A leftover file holds nothing secret.
        let _ = fs::remove_file(&self.0);
    }
}

fn scratch_file(text: &str) -> Result<Scratch> {
    let home = crate::environment::home()?;
    let path = home.join(format!("policy-{}.toml", std::process::id()));
    write_new(&path, text)?;
    Ok(Scratch(path))
}

fn write_new(path: &Path, text: &str) -> Result<()> {
    let failed = || Error::io(format!("cannot write {}", path.display()));
    // An existing file was left by an earlier process with this pid.
    let _ = fs::remove_file(path);
    let mut options = fs::OpenOptions::new();
    std::os::unix::fs::OpenOptionsExt::mode(options.write(true).create_new(true), 0o600);
    let mut file = options.open(path).map_err(failed())?;
    file.write_all(text.as_bytes())
        .and_then(|()| file.sync_all())
        .map_err(failed())
}
