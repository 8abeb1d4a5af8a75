//! Versions as projects write them. Their text is a stranger's: it becomes one of these types or is refused, and is
//! compared with what the host has, never used as a path.

use std::fmt;

use crate::toolchain::Family;

/// The longest text of a version.
const LONGEST: usize = 80;

/// `3`, `3.11` or `3.11.4`: one to four numbers.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Number(Vec<u32>);

impl Number {
    /// Exactly a number.
    pub fn parse(text: &str) -> Option<Number> {
        let parts: Option<Vec<u32>> = text
            .split('.')
            .map(|part| {
                let digits = !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
                digits.then(|| part.parse().ok()).flatten()
            })
            .collect();
        parts.filter(|parts| parts.len() <= 4).map(Number)
    }

    /// The number that a text begins with.
    pub fn at_start(text: &str) -> Option<Number> {
        let end = text.find(|symbol: char| !symbol.is_ascii_digit() && symbol != '.');
        let text = &text[..end.unwrap_or(text.len())];
        Number::parse(text.trim_end_matches('.'))
    }

    /// Whether `other` is this version, or one of those that this one leaves open.
    pub fn covers(&self, other: &Number) -> bool {
        other.0.starts_with(&self.0)
    }

    pub fn major(&self) -> u32 {
        self.0[0]
    }
}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts: Vec<String> = self.0.iter().map(ToString::to_string).collect();
        f.write_str(&parts.join("."))
    }
}

/// A name of a version: letters, digits and `._+-`, so that it is never a path and can be shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Label(String);

impl Label {
    pub fn parse(text: &str) -> Option<Label> {
        let first = text.bytes().next()?;
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"._+-".contains(&byte);
        let is_name = first.is_ascii_alphanumeric() && text.bytes().all(allowed);
        (is_name && text.len() <= LONGEST).then(|| Label(text.to_owned()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// What a project wants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// The one that no manager manages.
    System,
    Number(Number),
    /// This one or a later one.
    AtLeast(Number),
    /// The newest there is.
    Newest,
    /// The newest with long-term support, or the one with this major number.
    LongTerm(Option<u32>),
    Named(Label),
}

/// The names of Node's releases with long-term support.
const LONG_TERM: [(&str, u32); 11] = [
    ("argon", 4),
    ("boron", 6),
    ("carbon", 8),
    ("dubnium", 10),
    ("erbium", 12),
    ("fermium", 14),
    ("gallium", 16),
    ("hydrogen", 18),
    ("iron", 20),
    ("jod", 22),
    ("krypton", 24),
];

impl Wanted {
    /// What a text means in files and variables of this family.
    pub fn parse(family: Family, text: &str) -> Option<Wanted> {
        if text == "system" {
            return Some(Wanted::System);
        }
        match family {
            Family::Rust => rust(text),
            Family::Node => node(text),
            Family::Python => python(text),
            Family::Go => {
                Number::parse(text.strip_prefix("go").unwrap_or(text)).map(Wanted::Number)
            }
        }
    }
}

fn rust(text: &str) -> Option<Wanted> {
    match Number::parse(text) {
        Some(number) => Some(Wanted::Number(number)),
        None => Label::parse(text).map(Wanted::Named),
    }
}

fn node(text: &str) -> Option<Wanted> {
    let lower = text.to_ascii_lowercase();
    match lower.as_str() {
        "node" | "stable" | "latest" | "current" => return Some(Wanted::Newest),
        "lts" | "lts/*" => return Some(Wanted::LongTerm(None)),
        _ => {}
    }
    let codename = lower.strip_prefix("lts/").or(lower.strip_prefix("lts-"));
    if let Some(codename) = codename {
        let known = LONG_TERM.iter().find(|(name, _)| *name == codename);
        return known.map(|(_, major)| Wanted::LongTerm(Some(*major)));
    }
    Number::parse(lower.strip_prefix('v').unwrap_or(&lower)).map(Wanted::Number)
}

fn python(text: &str) -> Option<Wanted> {
    let number = Number::parse(text.strip_prefix("cpython-").unwrap_or(text));
    match number {
        Some(number) => Some(Wanted::Number(number)),
        None => Label::parse(text).map(Wanted::Named),
    }
}

impl fmt::Display for Wanted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Wanted::System => f.write_str("system"),
            Wanted::Number(number) | Wanted::AtLeast(number) => number.fmt(f),
            Wanted::Newest => f.write_str("node"),
            Wanted::LongTerm(None) => f.write_str("lts/*"),
            Wanted::LongTerm(Some(major)) => major.fmt(f),
            Wanted::Named(label) => f.write_str(label.as_str()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hostile_texts_are_no_versions() {
        let long = "1".repeat(LONGEST + 1);
        for text in [
            "",
            ".",
            "..",
            "../..",
            "/root/.rustup/toolchains/stable",
            "a/b",
            "-x",
            "--help",
            "a b",
            "a\u{1b}[31m",
            "a\nb",
            "$(id)",
            "nightly;id",
            "é",
            &long,
        ] {
            for family in Family::ALL {
                assert_eq!(Wanted::parse(family, text), None, "{family:?} {text:?}");
            }
        }
        for text in ["1..2", "1.2.3.4.5", "99999999999", "1.", ".1", "lts/none"] {
            assert_eq!(Wanted::parse(Family::Node, text), None, "{text:?}");
            assert_eq!(Wanted::parse(Family::Go, text), None, "{text:?}");
        }
    }

    #[test]
    fn versions_are_read_as_people_write_them() {
        let number = |text: &str| Some(Wanted::Number(Number::parse(text).unwrap()));
        assert_eq!(Wanted::parse(Family::Node, "v18.17.0"), number("18.17.0"));
        assert_eq!(
            Wanted::parse(Family::Node, "lts/Iron"),
            Some(Wanted::LongTerm(Some(20)))
        );
        assert_eq!(Wanted::parse(Family::Python, "3.11"), number("3.11"));
        assert_eq!(
            Wanted::parse(Family::Python, "cpython-3.12"),
            number("3.12")
        );
        assert_eq!(Wanted::parse(Family::Go, "go1.22.3"), number("1.22.3"));
        assert!(matches!(
            Wanted::parse(Family::Rust, "nightly-2026-01-02"),
            Some(Wanted::Named(_))
        ));
        let (short, long) = (
            Number::parse("3.1").unwrap(),
            Number::at_start("3.11.4-x").unwrap(),
        );
        assert!(!short.covers(&long) && Number::parse("3").unwrap().covers(&long));
    }
}
