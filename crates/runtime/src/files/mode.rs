//! Permission bits as people write them: octal, or symbolic as `chmod` takes them.

use std::str::FromStr;

use crate::{Error, Result};

const ALL: u32 = 0o7777;

/// A change of permission bits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ModeChange {
    Set(u32),
    Steps(Vec<ModeStep>),
}

/// One clause of a symbolic mode, such as `go-w`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ModeStep {
    operator: Operator,
    /// The bits of the users meant.
    who: u32,
    bits: u32,
    /// `X`: execution, for directories and for what somebody may already execute.
    execute_if_any: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operator {
    Add,
    Remove,
    Assign,
}

impl ModeChange {
    /// The bits afterwards.
    pub fn apply(&self, mode: u32, is_directory: bool) -> u32 {
        match self {
            ModeChange::Set(mode) => *mode,
            ModeChange::Steps(steps) => steps
                .iter()
                .fold(mode, |mode, step| step.apply(mode, is_directory)),
        }
    }
}

impl ModeStep {
    fn apply(&self, mode: u32, is_directory: bool) -> u32 {
        let mut bits = self.bits;
        if self.execute_if_any && (is_directory || mode & 0o111 != 0) {
            bits |= 0o111;
        }
        let bits = bits & self.who;
        match self.operator {
            Operator::Add => mode | bits,
            Operator::Remove => mode & !bits,
            Operator::Assign => mode & !self.who | bits,
        }
    }
}

impl FromStr for ModeChange {
    type Err = Error;

    fn from_str(text: &str) -> Result<ModeChange> {
        let refuse = |reason: &str| Error::Invalid {
            what: "mode",
            reason: format!("{text:?}: {reason}"),
        };
        if text.starts_with(|first: char| first.is_ascii_digit()) {
            return match u32::from_str_radix(text, 8) {
                Ok(mode) if mode <= ALL => Ok(ModeChange::Set(mode)),
                _ => Err(refuse("an octal mode is at most 7777")),
            };
        }
        let steps: Option<Vec<ModeStep>> = text.split(',').map(clause).collect();
        steps
            .map(ModeChange::Steps)
            .ok_or_else(|| refuse("write it as 755 or as u+x,go-w"))
    }
}

/// `[ugoa]*[+-=][rwxXst]*`
fn clause(text: &str) -> Option<ModeStep> {
    let at = text.find(['+', '-', '='])?;
    let operator = match &text[at..=at] {
        "+" => Operator::Add,
        "-" => Operator::Remove,
        _ => Operator::Assign,
    };
    let mut who = 0;
    for letter in text[..at].chars() {
        who |= match letter {
            'u' => 0o4700,
            'g' => 0o2070,
            'o' => 0o1007,
            'a' => ALL,
            _ => return None,
        };
    }
    let mut step = ModeStep {
        operator,
        who: if who == 0 { ALL } else { who },
        bits: 0,
        execute_if_any: false,
    };
    for letter in text[at + 1..].chars() {
        match letter {
            'r' => step.bits |= 0o444,
            'w' => step.bits |= 0o222,
            'x' => step.bits |= 0o111,
            'X' => step.execute_if_any = true,
            's' => step.bits |= 0o6000,
            't' => step.bits |= 0o1000,
            _ => return None,
        }
    }
    Some(step)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_change_as_chmod_changes_them() {
        let cases = [
            ("755", 0o644, false, 0o755),
            ("0600", 0o777, false, 0o600),
            ("u+x", 0o644, false, 0o744),
            ("+x", 0o644, false, 0o755),
            ("go-w", 0o666, false, 0o644),
            ("a=r", 0o777, false, 0o444),
            ("u=rwx,go=", 0o644, false, 0o700),
            ("a+X", 0o644, false, 0o644),
            ("a+X", 0o744, false, 0o755),
            ("a+X", 0o644, true, 0o755),
            ("u+s", 0o755, false, 0o4755),
            ("g+s", 0o755, true, 0o2755),
            ("+t", 0o777, true, 0o1777),
        ];
        for (text, mode, is_directory, expected) in cases {
            let change: ModeChange = text.parse().unwrap();
            let found = change.apply(mode, is_directory);
            assert_eq!(found, expected, "{text} on {mode:o}: {found:o}");
        }
    }

    #[test]
    fn what_is_no_mode_is_refused() {
        for text in [
            "", "8", "78", "10000", "rwx", "u", "u+q", "z+x", "u+x,", "-1",
        ] {
            assert!(text.parse::<ModeChange>().is_err(), "{text}");
        }
    }
}
