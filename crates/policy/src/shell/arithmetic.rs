//! Text that bash evaluates a second time: arithmetic, names with subscripts, prompts.
//!
//! An arithmetic expression evaluates the values of its variables as expressions, too, and runs the substitutions in
//! their subscripts: `x='a[$(rm y)]'; ((x))` runs `rm y`. Such text is harmless only if it consists of numbers,
//! operators and variables that hold nothing but numbers. Everything else may run any command.

use std::collections::BTreeMap;

use super::word::UNKNOWN;

/// Stands in evaluated text for a number that is known only at run time.
pub(crate) const NUMBER: char = '\u{F8FE}';

/// Variables that hold a number unless the text assigns something else. Some of them evaluate what is assigned.
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

/// What must hold so that evaluating text a second time runs no command.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Assumptions {
    /// It cannot be known, so the text may run any command.
    pub unknown: bool,
    /// Variables that must hold nothing but numbers.
    pub reads: Vec<String>,
    /// Variables that the text gives a number.
    pub sets: Vec<String>,
    /// Variables that evaluate whatever is assigned to them (`declare -i`).
    pub evaluating: Vec<String>,
    /// Programs that must be the ones of the system, because they print a number.
    pub programs: Vec<&'static str>,
}

impl Assumptions {
    pub fn is_empty(&self) -> bool {
        *self == Assumptions::default()
    }

    pub fn unknown() -> Assumptions {
        Assumptions {
            unknown: true,
            ..Assumptions::default()
        }
    }

    pub fn add(&mut self, mut other: Assumptions) {
        self.unknown |= other.unknown;
        self.reads.append(&mut other.reads);
        self.sets.append(&mut other.sets);
        self.evaluating.append(&mut other.evaluating);
        self.programs.append(&mut other.programs);
    }
}

/// Which variables hold only numbers, over a whole request. A loop or a function may use a variable above the line
/// that sets it. So one value that is not a number makes the variable not numeric everywhere.
#[derive(Debug, Default)]
pub(crate) struct NumericVars {
    /// For each variable, whether all its assigned values are numbers.
    kinds: BTreeMap<String, bool>,
    /// The assumptions of each evaluated text, and the text.
    assumed: Vec<(Assumptions, String)>,
}

impl NumericVars {
    /// Records that a variable was given a value.
    pub fn set(&mut self, name: &str, number: bool) {
        match self.kinds.get_mut(name) {
            Some(all) => *all &= number,
            None => drop(self.kinds.insert(name.to_owned(), number)),
        }
    }

    /// Records that text was evaluated. False if its assumptions are already known not to hold.
    pub fn assume(&mut self, assumptions: Assumptions, text: &str) -> bool {
        for name in &assumptions.sets {
            self.set(name, true);
        }
        let given = |name: &String| self.kinds.contains_key(name) || is_always_number(name);
        let fits = !assumptions.unknown && assumptions.reads.iter().all(given);
        self.assumed.push((assumptions, text.to_owned()));
        fits
    }

    /// The evaluated texts whose assumptions do not hold. `replaced` says whether a program may be a different one
    /// than the system's.
    pub fn violated(self, replaced: impl Fn(&str) -> bool) -> Vec<String> {
        let NumericVars { kinds, assumed } = self;
        let text = |name: &String| kinds.get(name) == Some(&false);
        let violates = |assumptions: &Assumptions| {
            assumptions.reads.iter().any(text)
                || assumptions.evaluating.iter().any(text)
                || assumptions.programs.iter().any(|program| replaced(program))
        };
        let assumed = assumed.into_iter();
        assumed
            .filter(|(assumptions, _)| violates(assumptions))
            .map(|(_, text)| text)
            .collect()
    }
}

/// Whether text is one number. `any_text` says that the unknown part of it may be any text.
pub(crate) fn is_number(text: &str, any_text: bool) -> bool {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    let digit = |c: char| c.is_ascii_digit() || c == UNKNOWN || c == NUMBER;
    !any_text && !digits.is_empty() && digits.chars().all(digit)
}

/// Whether the stored value of a variable is one number. `UNKNOWN` in it may be any text.
pub(crate) fn is_number_value(text: &str) -> bool {
    is_number(text, text.contains(UNKNOWN))
}

/// The assumptions of an expanded expression. `UNKNOWN` stands for unknown text, `NUMBER` for an unknown number.
pub(crate) fn expression(text: &str) -> Assumptions {
    // Bash removes double quotes before it evaluates.
    let text = text.replace('"', "");
    let mut assumptions = Assumptions::default();
    let mut rest = text.as_str();
    // `++` or `--` before the next variable, which changes it.
    let mut before = "";
    while let Some(first) = rest.chars().next() {
        if first.is_ascii_digit() || first == NUMBER {
            rest = match number(rest) {
                Some(after) => after,
                None => return Assumptions::unknown(),
            };
            before = "";
        } else if first.is_ascii_alphabetic() || first == '_' {
            let fits = |c: char| c.is_ascii_alphanumeric() || c == '_';
            let (name, after) = rest.split_at(rest.find(|c| !fits(c)).unwrap_or(rest.len()));
            if after.starts_with(NUMBER) {
                return Assumptions::unknown();
            }
            let (reads, sets) = use_of(before, after.trim_start());
            if reads {
                assumptions.reads.push(name.to_owned());
            }
            if sets {
                assumptions.sets.push(name.to_owned());
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
            return Assumptions::unknown();
        }
    }
    assumptions
}

/// Skips a number such as `12`, `0x1f` or `16#ff`; `None` when a part of it may be a name.
fn number(text: &str) -> Option<&str> {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '@' | '#') || c == NUMBER;
    let (token, after) = text.split_at(text.find(|c| !fits(c)).unwrap_or(text.len()));
    let mut characters = token.chars().peekable();
    while let Some(c) = characters.next() {
        let named = |c: char| c.is_ascii_alphabetic() || c == '_';
        let next = characters.peek().copied().unwrap_or(' ');
        // If the unknown number is empty, the rest is a name.
        if c == NUMBER && named(next) || named(c) && next == NUMBER {
            return None;
        }
    }
    Some(after)
}

/// Whether a variable is read, and whether it is assigned, by the operators around it.
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

/// The assumptions of a variable's name: `x` has none, `a[i]` those of its subscript.
pub(crate) fn name(text: &str) -> Assumptions {
    let plain = |name: &str| {
        let fits = |c: char| c.is_ascii_alphanumeric() || c == '_';
        name.chars().all(fits)
    };
    match text.split_once('[') {
        None if plain(text) => Assumptions::default(),
        Some((name, "@]" | "*]")) if plain(name) => Assumptions::default(),
        Some((name, subscript)) if plain(name) => match subscript.strip_suffix(']') {
            Some(subscript) => expression(subscript),
            None => Assumptions::unknown(),
        },
        _ => Assumptions::unknown(),
    }
}

/// The program of a command that prints one number and nothing else.
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
        let assumptions = expression(text);
        (!assumptions.unknown).then_some(assumptions.reads)
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
        assert_eq!(name("abc"), Assumptions::default());
        assert_eq!(name("a[@]"), Assumptions::default());
        assert_eq!(name("a[i+1]").reads, ["i"]);
        for text in ["a[$(x)]", "a[", "a-b", "\u{F8FF}", "a b"] {
            assert!(name(text).unknown, "{text}");
        }
    }
}
