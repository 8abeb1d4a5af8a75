//! Rules and their conditions as text.

use std::fmt;

use super::conditions::{Conditions, Fact};
use super::ruleset::RuleOrigin;

impl Fact {
    pub fn as_str(self) -> &'static str {
        match self {
            Fact::Is(category) => category.as_str(),
            Fact::Unparseable => "unparseable",
            Fact::Dynamic => "dynamic_command",
        }
    }
}

impl fmt::Display for RuleOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.line)
    }
}

impl fmt::Display for Conditions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut said = Vec::new();
        if !self.command.is_empty() {
            let words: Vec<String> = self.command.iter().map(|word| word.join("|")).collect();
            said.push(format!("command {}", words.join(" ")));
        }
        if !self.facts.is_empty() {
            let facts: Vec<&str> = self.facts.iter().map(|fact| fact.as_str()).collect();
            said.push(format!("category {}", facts.join("|")));
        }
        for (what, values) in [
            ("path", &self.paths),
            ("text", &self.texts),
            ("cwd", &self.cwd),
        ] {
            if !values.is_empty() {
                said.push(format!("{what} {}", values.join("|")));
            }
        }
        if let Some(network) = self.network {
            said.push(format!("network {}", network.as_str()));
        }
        match said.is_empty() {
            true => f.write_str("anything"),
            false => f.write_str(&said.join(", ")),
        }
    }
}
