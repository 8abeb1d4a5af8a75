//! Reads a file of rules (TOML): unknown keys are refused, and every example is checked.

use serde::Deserialize;
use toml::Spanned;

use super::conditions::{Conditions, Fact};
use super::decision::Action;
use super::error::Error;
use super::ruleset::{Level, Rule, RuleOrigin, Rules};
use crate::judge::{CommandForm, Judge, Network, Request};
use crate::programs::{Category, normalise};

/// A file of rules.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleFile {
    pub level: Level,
    /// Its name in messages.
    pub name: String,
    pub text: String,
}

/// One example of a rule, as `avfs policy test` reports it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Example {
    /// `FILE:LINE` of the rule.
    pub rule: String,
    pub text: String,
    /// Whether the rule should match it.
    pub wanted: bool,
    pub matches: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    #[serde(default)]
    rule: Vec<Spanned<Written>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    name: Option<String>,
    reason: Option<String>,
    command: Option<Command>,
    #[serde(default)]
    category: Texts,
    #[serde(default)]
    path: Texts,
    #[serde(default)]
    text: Texts,
    #[serde(default)]
    cwd: Texts,
    network: Option<String>,
    action: String,
    #[serde(default, rename = "match")]
    matches: Vec<String>,
    #[serde(default, rename = "no-match")]
    no_match: Vec<String>,
}

#[derive(Deserialize)]
#[serde(untagged, expecting = "expected a string or a list of strings")]
enum Texts {
    One(String),
    Many(Vec<String>),
}

#[derive(Deserialize)]
#[serde(
    untagged,
    expecting = "expected words such as \"git push\" or [\"git\", [\"push\", \"fetch\"]]"
)]
enum Command {
    Line(String),
    Words(Vec<Texts>),
}

impl Default for Texts {
    fn default() -> Texts {
        Texts::Many(Vec::new())
    }
}

impl Texts {
    fn list(self) -> Vec<String> {
        match self {
            Texts::One(text) => vec![text],
            Texts::Many(texts) => texts,
        }
    }
}

impl Rules {
    /// The rules of these files, and the defaults. An error in one file refuses all of them, because what that file
    /// forbids is not known.
    pub fn load(files: &[RuleFile]) -> Result<Rules, Error> {
        let mut rules = Vec::new();
        for file in files {
            for (rule, written) in read(file)? {
                for example in check(&rule, &written) {
                    check_example(&rule.origin, example)?;
                }
                rules.push(rule);
            }
        }
        Ok(Rules::of(rules))
    }

    /// Every example of a file with its result. A wrong example is not an error here.
    pub fn examples(file: &RuleFile) -> Result<Vec<Example>, Error> {
        let rules = read(file)?;
        Ok(rules
            .iter()
            .flat_map(|(rule, written)| check(rule, written))
            .collect())
    }
}

fn check_example(origin: &RuleOrigin, example: Example) -> Result<(), Error> {
    let (file, line) = (origin.file.clone(), origin.line);
    let example_text = example.text;
    match (example.wanted, example.matches) {
        (true, false) => Err(Error::Unmatched {
            file,
            line,
            example: example_text,
        }),
        (false, true) => Err(Error::Overmatched {
            file,
            line,
            example: example_text,
        }),
        _ => Ok(()),
    }
}

fn read(file: &RuleFile) -> Result<Vec<(Rule, Written)>, Error> {
    let unreadable = |at: usize, reason: String| Error::Unreadable {
        file: file.name.clone(),
        line: line_of(&file.text, at),
        reason,
    };
    let document: Document = toml::from_str(&file.text).map_err(|error| {
        let at = error.span().map_or(0, |span| span.start);
        unreadable(at, error.message().to_owned())
    })?;
    let mut rules = Vec::new();
    for written in document.rule {
        let at = written.span().start;
        let mut written = written.into_inner();
        let when = conditions(&mut written).map_err(|reason| unreadable(at, reason))?;
        let action = action(&written.action).map_err(|reason| unreadable(at, reason))?;
        if action < Action::RequireApproval && !when.has_subject() {
            let reason = "a rule that allows must say what: add command, category, path or text";
            return Err(unreadable(at, reason.to_owned()));
        }
        let rule = Rule {
            origin: RuleOrigin {
                level: file.level,
                file: file.name.clone(),
                line: line_of(&file.text, at),
                name: written.name.clone(),
            },
            when,
            action,
            reason: written.reason.clone(),
        };
        rules.push((rule, written));
    }
    Ok(rules)
}

fn line_of(text: &str, at: usize) -> usize {
    let before = &text.as_bytes()[..at.min(text.len())];
    1 + before.iter().filter(|byte| **byte == b'\n').count()
}

fn conditions(written: &mut Written) -> Result<Conditions, String> {
    let take = |texts: &mut Texts| std::mem::take(texts).list();
    let paths = |texts: &mut Texts| {
        let absolute = |path: String| match path.starts_with('/') {
            true => Ok(normalise(&path)),
            false => Err(format!("{path:?} is not an absolute path")),
        };
        take(texts)
            .into_iter()
            .map(absolute)
            .collect::<Result<Vec<String>, String>>()
    };
    let facts = take(&mut written.category);
    let command = match written.command.take() {
        None => Vec::new(),
        Some(Command::Line(line)) => line.split_whitespace().map(|w| vec![w.into()]).collect(),
        Some(Command::Words(words)) => words.into_iter().map(Texts::list).collect(),
    };
    if command.iter().any(Vec::is_empty) {
        return Err("a word of the command has no alternatives".to_owned());
    }
    Ok(Conditions {
        facts: facts
            .iter()
            .map(|word| fact(word))
            .collect::<Result<_, _>>()?,
        command,
        paths: paths(&mut written.path)?,
        texts: take(&mut written.text),
        cwd: paths(&mut written.cwd)?,
        network: written.network.as_deref().map(network).transpose()?,
    })
}

fn one_of<T: Copy>(what: &str, word: &str, all: &[(&str, T)]) -> Result<T, String> {
    let found = all.iter().find(|(name, _)| *name == word);
    found.map(|(_, value)| *value).ok_or_else(|| {
        let names: Vec<&str> = all.iter().map(|(name, _)| *name).collect();
        format!(
            "{word:?} is not a known {what}: use one of {}",
            names.join(", ")
        )
    })
}

fn action(word: &str) -> Result<Action, String> {
    one_of("action", word, &Action::ALL.map(|a| (a.as_str(), a)))
}

fn network(word: &str) -> Result<Network, String> {
    one_of("network", word, &Network::ALL.map(|n| (n.as_str(), n)))
}

fn fact(word: &str) -> Result<Fact, String> {
    let categories = Category::ALL.map(|c| (c.as_str(), Fact::Is(c)));
    let others = [
        (Fact::Unparseable.as_str(), Fact::Unparseable),
        (Fact::Dynamic.as_str(), Fact::Dynamic),
    ];
    let all: Vec<_> = categories.into_iter().chain(others).collect();
    one_of("category", word, &all)
}

/// Checks the examples of a rule, in a directory and with a network that fit its conditions.
fn check(rule: &Rule, written: &Written) -> Vec<Example> {
    let cwd = rule.when.cwd.first().map_or("/workspace", String::as_str);
    let network = rule.when.network.unwrap_or(Network::None);
    let example = |text: &String, wanted| {
        let request = Request {
            command: CommandForm::Shell(text),
            cwd: cwd.as_bytes(),
            network,
            env: &[],
        };
        let findings = Judge::new(&request, true).findings(&request);
        let fits = findings
            .iter()
            .any(|finding| rule.when.fit(finding, network) >= rule.needed_fit());
        Example {
            rule: rule.origin.to_string(),
            text: text.clone(),
            wanted,
            matches: fits,
        }
    };
    let wanted = written.matches.iter().map(|text| example(text, true));
    let unwanted = written.no_match.iter().map(|text| example(text, false));
    wanted.chain(unwanted).collect()
}
