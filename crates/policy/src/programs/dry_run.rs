//! Commands that would publish, and are told not to: `--dry-run`.
//!
//! Each word is compared with a list, and must be known exactly. An option that is not listed may take the next word as its
//! value, or take `--dry-run` back. So with any other word the command publishes, as far as policy knows.

use super::category::Category::{self, Mutating, Networked};
use super::vocabulary::listed;
use crate::shell::{UNKNOWN, Word};

/// What a dry run does. Hooks of a repository and scripts of a package may run.
pub(crate) const DRY_RUN: [Category; 2] = [Networked, Mutating];

/// A subcommand that publishes, and all words that may stand after it in a dry run.
struct DryRun {
    program: &'static str,
    subcommand: &'static str,
    /// One of these makes it a dry run.
    says_so: &'static str,
    /// Options that take no value.
    options: &'static str,
    /// Whether it takes names: of a remote and of branches.
    takes_names: bool,
}

const DRY_RUNS: &[DryRun] = &[
    DryRun {
        program: "git",
        subcommand: "push",
        says_so: "--dry-run -n",
        options: "\
            --all --atomic --delete --follow-tags --force --no-verify --porcelain --progress --prune --quiet \
            --set-upstream --tags --verbose -d -f -q -u -v",
        takes_names: true,
    },
    DryRun {
        program: "cargo",
        subcommand: "publish",
        says_so: "--dry-run -n",
        options: "\
            --all-features --allow-dirty --frozen --locked --no-default-features --no-verify --offline --quiet \
            --verbose --workspace -q -v",
        takes_names: false,
    },
    // A word after one of its options could be the option's value: `--dry-run false`.
    DryRun {
        program: "npm",
        subcommand: "publish",
        says_so: "--dry-run",
        options: "--json",
        takes_names: false,
    },
];

/// Whether a program with these arguments certainly only says what it would publish.
pub(crate) fn is_dry_run(program: &str, args: &[Word]) -> bool {
    let Some((subcommand, rest)) = args.split_first() else {
        return false;
    };
    let is_meant = |it: &&DryRun| it.program == program && is_exactly(subcommand, it.subcommand);
    let Some(known) = DRY_RUNS.iter().find(is_meant) else {
        return false;
    };
    let is_known = |word: &Word| {
        let option = listed(known.says_so, &word.text) || listed(known.options, &word.text);
        is_certain(word) && (option || known.takes_names && is_name(&word.text))
    };
    let says_so = rest.iter().any(|word| listed(known.says_so, &word.text));
    says_so && rest.iter().all(is_known)
}

fn is_exactly(word: &Word, text: &str) -> bool {
    is_certain(word) && word.text == text
}

fn is_certain(word: &Word) -> bool {
    !word.dynamic && !word.glob && !word.text.contains(UNKNOWN)
}

/// The name of a remote, a branch or a tag. Nothing that names a host, a transport (`ext::sh`) or a file.
fn is_name(text: &str) -> bool {
    let is_plain =
        |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-' | b'/');
    let begins = text.bytes().next();
    begins.is_some_and(|byte| byte.is_ascii_alphanumeric()) && text.bytes().all(is_plain)
}
