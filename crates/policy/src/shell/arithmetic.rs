//! Text that bash evaluates again: arithmetic, names with subscripts, prompts.
//!
//! An arithmetic expression follows variables to their values, evaluates those in turn, and runs the substitutions
//! in the subscripts it meets on the way: `x='a[$(rm y)]'; ((x))` runs `rm y`. So such text is harmless only if it is made of
//! numbers, operators and variables that hold nothing but numbers. Everything else is a command that is known only
//! when it runs.

use std::collections::BTreeMap;

use super::word::HOLE;

/// Stands in evaluated text for a number that is known only at run time.
pub(crate) const NUMBER: char = '\u{F8FE}';

/// Variables that hold a number whenever nobody gave them another value. Some evaluate what they are given.
const ALWAYS_NUMBERS: &[&str] = &[
    "BASHPID",
    "BASH_SUBSHELL",
    "EPOCHSECONDS",
    "EUID",
    "HISTCMD",
    "LINENO",
    "OPTIND",
    "PPID",
    "RANDOM",
    "SECONDS",
    "SHLVL",
    "SRANDOM",
    "UID",
];

pub(crate) fn is_always_number(name: &str) -> bool {
    ALWAYS_NUMBERS.contains(&name)
}

/// What must hold so that text can be evaluated again without harm.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Reliance {
    /// Nothing can be said: it may run any command.
    pub unknown: bool,
    /// These variables must hold numbers alone.
    pub reads: Vec<String>,
    /// These are given a number.
    pub sets: Vec<String>,
    /// These evaluate whatever they are given.
    pub evaluating: Vec<String>,
    /// These programs must be the system's own.
    pub programs: Vec<&'static str>,
}

impl Reliance {
    pub fn is_empty(&self) -> bool {
        *self == Reliance::default()
    }

    pub fn unknown() -> Reliance {
        Reliance {
            unknown: true,
            ..Reliance::default()
        }
    }

    pub fn add(&mut self, mut other: Reliance) {
        self.unknown |= other.unknown;
        self.reads.append(&mut other.reads);
        self.sets.append(&mut other.sets);
        self.evaluating.append(&mut other.evaluating);
        self.programs.append(&mut other.programs);
    }
}

/// What is known of the variables that hold numbers, over the whole of a request: a loop or a function may use a variable
/// above the line that sets it, so one value that is no number spoils the variable for good.
#[derive(Debug, Default)]
pub(crate) struct Numbers {
    /// Whether all values that a variable was given are numbers.
    kinds: BTreeMap<String, bool>,
    /// What text that was evaluated relies on, and that text.
    relied: Vec<(Reliance, String)>,
}

impl Numbers {
    /// A variable was given a value.
    pub fn set(&mut self, name: &str, number: bool) {
        match self.kinds.get_mut(name) {
            Some(all) => *all &= number,
            None => drop(self.kinds.insert(name.to_owned(), number)),
        }
    }

    /// Text was evaluated; false when it is known already that it may be harmful.
    pub fn rely(&mut self, reliance: Reliance, text: &str) -> bool {
        for name in &reliance.sets {
            self.set(name, true);
        }
        let given = |name: &String| self.kinds.contains_key(name) || is_always_number(name);
        let fits = !reliance.unknown && reliance.reads.iter().all(given);
        self.relied.push((reliance, text.to_owned()));
        fits
    }

    /// The texts that turned out to evaluate something that is no number. `replaced` says whether a program may be
    /// another than the system's.
    pub fn spoiled(self, replaced: impl Fn(&str) -> bool) -> Vec<String> {
        let Numbers { kinds, relied } = self;
        let text = |name: &String| kinds.get(name) == Some(&false);
        let spoils = |reliance: &Reliance| {
            reliance.reads.iter().any(text)
                || reliance.evaluating.iter().any(text)
                || reliance.programs.iter().any(|program| replaced(program))
        };
        let relied = relied.into_iter();
        relied
            .filter(|(reliance, _)| spoils(reliance))
            .map(|(_, text)| text)
            .collect()
    }
}

/// Whether text is one number. `vague` says that a part known only at run time may be anything.
pub(crate) fn is_number(text: &str, vague: bool) -> bool {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    let digit = |c: char| c.is_ascii_digit() || c == HOLE || c == NUMBER;
    !vague && !digits.is_empty() && digits.chars().all(digit)
}

/// The same for a remembered value, in which `HOLE` may be anything.
pub(crate) fn is_number_value(text: &str) -> bool {
    is_number(text, text.contains(HOLE))
}

/// What an expression relies on. It has been expanded: `HOLE` stands for unknown text, `NUMBER` for an unknown number.
pub(crate) fn expression(text: &str) -> Reliance {
    // Bash removes double quotes before it evaluates.
    let text = text.replace('"', "");
    let mut reliance = Reliance::default();
    let mut rest = text.as_str();
    // The last operator, as far as it makes the next variable change.
    let mut before = "";
    while let Some(first) = rest.chars().next() {
        if first.is_ascii_digit() || first == NUMBER {
            rest = match number(rest) {
                Some(after) => after,
                None => return Reliance::unknown(),
            };
            before = "";
        } else if first.is_ascii_alphabetic() || first == '_' {
            let fits = |c: char| c.is_ascii_alphanumeric() || c == '_';
            let (name, after) = rest.split_at(rest.find(|c| !fits(c)).unwrap_or(rest.len()));
            if after.starts_with(NUMBER) {
                return Reliance::unknown();
            }
            let (reads, sets) = use_of(before, after.trim_start());
            if reads {
                reliance.reads.push(name.to_owned());
            }
            if sets {
                reliance.sets.push(name.to_owned());
            }
            rest = after;
            before = "";
        } else if "+-*/%<>=!&|^~?:,()[] \t\n".contains(first) {
            let step = ["++", "--"].into_iter().find(|step| rest.starts_with(step));
            before = step.unwrap_or(if first.is_ascii_whitespace() {
                before
            } else {
                ""
            });
            rest = &rest[step.map_or(1, str::len)..];
        } else {
            return Reliance::unknown();
        }
    }
    reliance
}

/// Skips a number such as `12`, `0x1f` or `16#ff`; `None` when a part of it may be a name.
fn number(text: &str) -> Option<&str> {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '@' | '#') || c == NUMBER;
    let (token, after) = text.split_at(text.find(|c| !fits(c)).unwrap_or(text.len()));
    let mut characters = token.chars().peekable();
    while let Some(c) = characters.next() {
        let named = |c: char| c.is_ascii_alphabetic() || c == '_';
        let next = characters.peek().copied().unwrap_or(' ');
        // A number that turns out to be empty would leave a name behind.
        if c == NUMBER && named(next) || named(c) && next == NUMBER {
            return None;
        }
    }
    Some(after)
}

/// Whether a variable is read and whether it is given a value, by what stands around it.
fn use_of(before: &str, after: &str) -> (bool, bool) {
    let assigns = [
        "+=", "-=", "*=", "/=", "%=", "&=", "^=", "|=", "<<=", ">>=", "++", "--",
    ];
    let changes = assigns.iter().any(|operator| after.starts_with(operator));
    match after.strip_prefix('=') {
        Some(value) if !value.starts_with('=') => (false, true),
        _ => (true, changes || !before.is_empty()),
    }
}

/// What a variable's name relies on: `x` nothing, `a[i]` its subscript.
pub(crate) fn name(text: &str) -> Reliance {
    let plain = |name: &str| {
        let fits = |c: char| c.is_ascii_alphanumeric() || c == '_';
        name.chars().all(fits)
    };
    match text.split_once('[') {
        None if plain(text) => Reliance::default(),
        Some((name, "@]" | "*]")) if plain(name) => Reliance::default(),
        Some((name, subscript)) if plain(name) => match subscript.strip_suffix(']') {
            Some(subscript) => expression(subscript),
            None => Reliance::unknown(),
        },
        _ => Reliance::unknown(),
    }
}

/// Commands that print one number and nothing else: what they need to be for that.
pub(crate) fn counting(command: &str) -> Option<&'static str> {
    let command = command.trim();
    let plain = |c: char| c.is_ascii_alphanumeric() || "_./\"$-".contains(c);
    match command {
        "nproc" => Some("nproc"),
        "date +%s" | "date +%s%N" | "date +%s%3N" => Some("date"),
        "id -u" | "id -g" => Some("id"),
        _ => {
            let counts = ["wc -l <", "wc -c <", "wc -w <"];
            let file = counts.iter().find_map(|lead| command.strip_prefix(lead));
            file.filter(|file| file.trim().chars().all(plain))
                .map(|_| "wc")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reads(text: &str) -> Option<Vec<String>> {
        let reliance = expression(text);
        (!reliance.unknown).then_some(reliance.reads)
    }

    #[test]
    fn expressions_rely_on_the_variables_they_read() {
        for (text, names) in [
            ("1 + 2*(3 << 4) ? 0x1F : 16#ff", &[] as &[&str]),
            ("i=0", &[]),
            ("i == 0", &["i"]),
            ("i++ + --j", &["i", "j"]),
            ("a[i] = b", &["a", "i", "b"]),
            ("10#\u{F8FE}", &[]),
            ("\"i\"1", &["i1"]),
        ] {
            assert_eq!(reads(text).unwrap(), names, "{text}");
        }
        for text in [
            "$x",
            "`x`",
            "'x'",
            "a\\b",
            "\u{F8FF}",
            "a\u{F8FE}",
            "\u{F8FE}a",
            "x.y",
            "é",
            "a[$(x)]",
        ] {
            assert_eq!(reads(text), None, "{text}");
        }
        assert_eq!(expression("i++, j += k = 2").sets, ["i", "j", "k"]);
    }

    #[test]
    fn names_rely_on_their_subscripts() {
        assert_eq!(name("abc"), Reliance::default());
        assert_eq!(name("a[@]"), Reliance::default());
        assert_eq!(name("a[i+1]").reads, ["i"]);
        for text in ["a[$(x)]", "a[", "a-b", "\u{F8FF}", "a b"] {
            assert!(name(text).unknown, "{text}");
        }
    }
}
