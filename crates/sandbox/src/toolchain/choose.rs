//! Which of the versions that are there is the one that is wanted.

use std::path::{Path, PathBuf};

use crate::toolchain::Family;
use crate::toolchain::catalogue::{Installed, system_program};
use crate::toolchain::version::{Label, Number, Wanted};

/// The version to run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Choice {
    Installed(Installed),
    /// The one that no manager manages.
    System,
}

/// The best of `installed` for what is wanted, if one will do. `ask` runs a program to learn its version; it is asked
/// only where names do not say it.
pub(crate) fn choose(
    family: Family,
    wanted: &Wanted,
    installed: &[Installed],
    ask: &dyn Fn(Family, &Path) -> Option<Number>,
) -> Option<Choice> {
    let fits = |number: &Number| match wanted {
        Wanted::Number(wanted) => wanted.covers(number),
        Wanted::AtLeast(least) => number >= least,
        Wanted::LongTerm(Some(major)) => number.major() == *major,
        Wanted::LongTerm(None) => number.major().is_multiple_of(2),
        Wanted::Newest => true,
        Wanted::System | Wanted::Named(_) => false,
    };
    let by_name = match wanted {
        Wanted::System => return Some(Choice::System),
        Wanted::Named(label) => installed.iter().find(|version| is_called(version, label)),
        _ => newest(
            installed
                .iter()
                .filter(|version| version.number().is_some_and(|number| fits(&number))),
        ),
    };
    if let Some(version) = by_name {
        return Some(Choice::Installed(version.clone()));
    }
    if matches!(wanted, Wanted::Named(_)) {
        return None;
    }
    let (program, _) = family.asked();
    if system_program(program).is_some_and(|path| ask(family, &path).is_some_and(|it| fits(&it))) {
        return Some(Choice::System);
    }
    // `stable` has a number, too.
    let unnumbered = installed
        .iter()
        .filter(|version| version.number().is_none());
    let asked = unnumbered.map(|version| (version, version.bin.join(program)));
    let mut asked = asked.filter_map(|(version, path): (_, PathBuf)| {
        ask(family, &path).filter(&fits).map(|_| version)
    });
    asked.next().cloned().map(Choice::Installed)
}

/// The one with the highest number; of equal ones the first.
pub(crate) fn newest<'a>(versions: impl Iterator<Item = &'a Installed>) -> Option<&'a Installed> {
    let mut best: Option<&Installed> = None;
    for version in versions {
        if best.is_none_or(|best| version.number() > best.number()) {
            best = Some(version);
        }
    }
    best
}

/// Whether a version has this name, whether or not the name says for which machine: `nightly` is
/// `nightly-x86_64-unknown-linux-gnu`, but not `nightly-2026-01-02-x86_64-unknown-linux-gnu`.
fn is_called(version: &Installed, label: &Label) -> bool {
    let Some(rest) = version.name.strip_prefix(label.as_str()) else {
        return false;
    };
    let is_triple = |rest: &str| {
        let begins = rest.starts_with(|first: char| first.is_ascii_alphabetic());
        begins && rest.matches('-').count() >= 2
    };
    rest.is_empty()
        || version.family == Family::Rust && rest.strip_prefix('-').is_some_and(is_triple)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn there(family: Family, names: &[&str]) -> Vec<Installed> {
        let names = names.iter();
        names
            .map(|name| Installed {
                family,
                name: (*name).to_owned(),
                bin: Path::new("/nowhere").join(name).join("bin"),
            })
            .collect()
    }

    fn chosen(family: Family, text: &str, names: &[&str]) -> Option<String> {
        let wanted = Wanted::parse(family, text).unwrap();
        let ask = |_: Family, path: &Path| {
            path.starts_with("/nowhere/stable-x86_64-unknown-linux-gnu")
                .then(|| Number::parse("1.95.0").unwrap())
        };
        match choose(family, &wanted, &there(family, names), &ask) {
            Some(Choice::Installed(version)) => Some(version.name),
            Some(Choice::System) => Some("system".into()),
            None => None,
        }
    }

    #[test]
    fn a_rust_channel_is_the_one_of_that_name_alone() {
        let names = [
            "nightly-2026-01-02-x86_64-unknown-linux-gnu",
            "nightly-x86_64-unknown-linux-gnu",
            "stable-x86_64-unknown-linux-gnu",
            "mine",
        ];
        let pick = |text| chosen(Family::Rust, text, &names);
        assert_eq!(pick("nightly").as_deref(), Some(names[1]));
        assert_eq!(pick("nightly-2026-01-02").as_deref(), Some(names[0]));
        assert_eq!(pick(names[2]).as_deref(), Some(names[2]));
        assert_eq!(pick("mine").as_deref(), Some("mine"));
        for missing in ["nightly-2026-01-03", "beta", "min", "night"] {
            assert_eq!(pick(missing), None, "{missing}");
        }
        // Its name does not say so, but it is that version.
        assert_eq!(pick("1.95").as_deref(), Some(names[2]));
        assert_eq!(pick("1.94"), None);
    }

    #[test]
    fn the_newest_version_that_fits_is_taken() {
        let names = ["v18.1.0", "v18.20.0", "v20.3.0", "v21.0.0"];
        let pick = |text| chosen(Family::Node, text, &names);
        assert_eq!(pick("18").as_deref(), Some("v18.20.0"));
        assert_eq!(pick("18.1").as_deref(), Some("v18.1.0"));
        assert_eq!(pick("lts/*").as_deref(), Some("v20.3.0"));
        assert_eq!(pick("lts/hydrogen").as_deref(), Some("v18.20.0"));
        assert_eq!(pick("node").as_deref(), Some("v21.0.0"));
        assert_eq!(pick("1"), None);
        assert_eq!(pick("system").as_deref(), Some("system"));
        let names = [
            "3.9.18",
            "3.12.1",
            "cpython-3.12.4-linux-x86_64-gnu",
            "pypy3.9-7.3.11",
        ];
        let pick = |text| chosen(Family::Python, text, &names);
        assert_eq!(pick("3.12").as_deref(), Some(names[2]));
        assert_eq!(pick("pypy3.9-7.3.11").as_deref(), Some(names[3]));
        assert_eq!(pick("3.1"), None);
    }
}
