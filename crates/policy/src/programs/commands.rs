//! What a program does, by its name and its options.

use std::sync::LazyLock;

use super::category::Categories;
use super::category::Category::{self, *};
use super::embedded::commands_in;
use super::options::is_option;
use super::paths::is_toolchain;
use super::vocabulary::{
    DESTRUCTIVE, HOST_ESCAPE, INTERACTIVE, MUTATING, NETWORKED, Names, READ_ONLY, category_of,
    listed,
};
use super::{code, git, tools};
use crate::shell::{UNKNOWN, Word, glob_matches};

/// What a command does.
#[derive(Debug, Default)]
pub(crate) struct Effects {
    pub categories: Categories,
    pub note: Option<String>,
    /// Paths of the host that it names.
    pub host_paths: Vec<String>,
    /// Shell text that it would run.
    pub scripts: Vec<String>,
    /// It runs commands that are known only when they run.
    pub runs_unknown: bool,
    /// The subcommand of the tool is known only at run time.
    pub unknown_subcommand: bool,
}

impl Effects {
    pub fn unknown_commands() -> Effects {
        Effects {
            runs_unknown: true,
            ..Effects::of(&[Mutating])
        }
    }

    pub fn of(categories: &[Category]) -> Effects {
        Effects {
            categories: categories.iter().copied().collect(),
            ..Effects::default()
        }
    }
}

/// Programs that only read unless one of these options, or an argument that may be one, is given.
const READ_ONLY_UNLESS: &[(&str, &[&str])] = &[
    ("date", &["-s", "--set"]),
    ("fd", &["-x", "-X", "--exec", "--exec-batch"]),
    ("file", &["-C", "--compile"]),
    ("hostname", &["-F", "--file", "-b"]),
    ("iconv", &["-o", "--output"]),
    ("rg", &["--pre", "--hostname-bin"]),
    ("shuf", &["-o", "--output"]),
    ("sort", &["-o", "--output", "--compress-program", "-T"]),
    ("tree", &["-o"]),
    ("uniq", &[]),
    ("xxd", &["-r"]),
    ("yq", &["-i", "--inplace"]),
];

/// Programs that `special` and `wrappers` know.
const SPECIAL: &str = "awk bash dd env git gsed nawk rm rsync scp sed sh sudo tar unlink";

/// Classifies a command that runs no other command.
pub(crate) fn classify(name: &str, args: &[Word]) -> Effects {
    if asks_for_help(name, args) {
        return Effects::of(&[ReadOnly]);
    }
    if let Some(effects) = tools::classify(name, args).or_else(|| special(name, args)) {
        return effects;
    }
    let name = unversioned(name);
    let categories = match category_of(name) {
        Some(category) => [category],
        None => match READ_ONLY_UNLESS.iter().find(|(n, _)| *n == name) {
            Some((_, options)) if changes(name, args, options) => [Mutating],
            Some(_) => [ReadOnly],
            None => [Unknown],
        },
    };
    let note = (categories == [HostEscapeRisk]).then(|| {
        format!("{name} administers the host or the sandbox, and does not work inside one")
    });
    Effects {
        note,
        ..Effects::of(&categories)
    }
}

/// Programs whose category depends on their arguments.
fn special(name: &str, args: &[Word]) -> Option<Effects> {
    let has = |options: &[&str]| args.iter().any(|w| is_option(w, options));
    Some(match unversioned(name) {
        "git" | "hub" => git::classify(args),
        name if name.starts_with("git-") => {
            // git calls `git push` as `git-push`.
            let subcommand = Word::fixed(&name["git-".len()..]);
            git::classify(&[&[subcommand], args].concat())
        }
        "rm" | "unlink" => {
            let hard = has(&["-r", "-R", "-f", "--recursive", "--force"])
                || args.iter().any(|w| w.glob || w.starts_unknown());
            Effects::of(if hard { &[Destructive] } else { &[Mutating] })
        }
        "dd" if args.iter().any(|w| w.text.starts_with("of=")) => Effects::of(&[Destructive]),
        "dd" => Effects::of(&[ReadOnly]),
        "sed" | "gsed" if code::sed_executes(args) => Effects {
            scripts: args
                .iter()
                .flat_map(|word| commands_in(&word.text.replace(['/', '|', ',', '#'], " ")))
                .collect(),
            ..Effects::unknown_commands()
        },
        "sed" | "gsed" => Effects::of(if code::sed_reads(args) {
            &[ReadOnly]
        } else {
            &[Mutating]
        }),
        "awk" | "gawk" | "mawk" | "nawk" => code::awk(args),
        "python" | "perl" | "ruby" | "node" | "nodejs" | "php" | "lua" | "deno" => {
            code::interpreter(unversioned(name), args)
        }
        "bash" | "sh" | "dash" | "zsh" | "ksh" | "fish" | "ash" if args.is_empty() => {
            Effects::of(&[Interactive])
        }
        "mount" if args.is_empty() || has(&["-l", "-V"]) && args.len() == 1 => {
            Effects::of(&[ReadOnly])
        }
        "curl" | "wget" => {
            let saves = unversioned(name) == "wget"
                || has(&["-o", "-O", "--output", "--remote-name", "-c", "-D"]);
            Effects::of(if saves {
                &[Networked, Mutating]
            } else {
                &[Networked]
            })
        }
        "rsync" if args.iter().all(|w| !w.text.contains(':') && !w.dynamic) => {
            Effects::of(if has(&["--delete"]) {
                &[Destructive]
            } else {
                &[Mutating]
            })
        }
        "rsync" | "scp" => Effects::of(&[Networked, Mutating]),
        "tar" if lists_archive(args) => Effects::of(&[ReadOnly]),
        "unzip" if has(&["-l", "-p", "-t", "-Z"]) => Effects::of(&[ReadOnly]),
        "source" | "." => Effects::of(&[Mutating, Unknown]),
        "hash" if has(&["-p"]) => Effects::unknown_commands(),
        name if name.starts_with("mkfs.") => Effects::of(&[Destructive]),
        "test" | "[" | "let" | "printf" | "declare" | "typeset" | "read" | "unset" | "local"
        | "export" | "readonly" | "mapfile"
            if args.iter().any(may_hold_commands) =>
        {
            Effects::of(&[Unknown])
        }
        _ => return None,
    })
}

/// `python3.11` is `python`, `gcc-12` is `gcc`.
pub(crate) fn unversioned(name: &str) -> &str {
    let bare = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.' || c == '-');
    match bare {
        "python" | "perl" | "ruby" | "node" | "php" | "lua" | "gcc" | "g++" | "clang"
        | "clang++" | "pip" | "pytest" => bare,
        _ => name,
    }
}

/// Lists an archive's names, with no option that could run a program.
fn lists_archive(args: &[Word]) -> bool {
    let lists = args.iter().any(|w| {
        is_option(w, &["-t", "--list"]) || args[0] == *w && w.text.starts_with('t') && !w.dynamic
    });
    lists
        && !args
            .iter()
            .any(|w| is_option(w, &["-I", "-F"]) || runs_program(&w.text))
}

fn runs_program(option: &str) -> bool {
    [
        "--checkpoint-action",
        "--to-command",
        "--use-compress",
        "--rsh-command",
        "--info-script",
    ]
    .iter()
    .any(|long| option.starts_with(long))
}

fn changes(name: &str, args: &[Word], options: &[&str]) -> bool {
    let plain = args
        .iter()
        .filter(|w| !w.text.starts_with('-') || w.text == "-")
        .count();
    match name {
        "uniq" if plain > 1 => true,
        "hostname" if plain > 0 => true,
        _ => args
            .iter()
            .any(|w| w.starts_unknown() || is_option(w, options)),
    }
}

fn asks_for_help(name: &str, args: &[Word]) -> bool {
    let [only] = args else { return false };
    let asks = matches!(
        only.text.as_str(),
        "--version" | "--help" | "-V" | "version"
    ) || only.text == "-v" && matches!(name, "node" | "npm" | "yarn" | "pnpm");
    asks && !only.dynamic && is_known(name) && !listed(HOST_ESCAPE, name)
}

/// Every program that is known here.
fn names() -> impl Iterator<Item = &'static str> {
    let lists = [
        READ_ONLY,
        MUTATING,
        NETWORKED,
        INTERACTIVE,
        HOST_ESCAPE,
        DESTRUCTIVE,
        tools::NAMES,
        SPECIAL,
    ];
    let plain = lists.into_iter().flat_map(str::split_ascii_whitespace);
    plain.chain(READ_ONLY_UNLESS.iter().map(|(name, _)| *name))
}

pub(crate) fn is_known(name: &str) -> bool {
    static NAMES: LazyLock<Names<()>> = LazyLock::new(|| names().map(|name| (name, ())).collect());
    NAMES.contains_key(unversioned(name))
}

/// Known programs of strict categories that a pattern such as `/usr/bin/c?rl` matches.
pub(crate) fn names_like(pattern: &str) -> Vec<&'static str> {
    let pattern = pattern.rsplit('/').next().unwrap_or_default();
    if pattern.chars().all(|c| c == UNKNOWN || "*?[]".contains(c)) {
        return Vec::new();
    }
    let strict = [HOST_ESCAPE, NETWORKED, tools::NAMES, "git"];
    let strict = strict.into_iter().flat_map(str::split_ascii_whitespace);
    strict
        .filter(|name| glob_matches(pattern, name, UNKNOWN))
        .take(8)
        .collect()
}

/// The arguments that may be paths, and not text to print, patterns, code or messages.
pub(crate) fn path_arguments<'a>(name: &str, args: &'a [Word]) -> Vec<&'a Word> {
    let skip_after: &[&str] = match name {
        "echo" | "printf" | "expr" | "seq" | "export" | "declare" | "local" => return Vec::new(),
        "test" | "["
            if args
                .iter()
                .any(|w| matches!(w.text.as_str(), "=" | "==" | "!=")) =>
        {
            return Vec::new();
        }
        "git" | "hg" | "jj" => &["-m", "--message", "-S", "-G", "--grep", "--author", "-L"],
        "grep" | "egrep" | "fgrep" | "rg" | "ag" | "sed" | "find" => &[
            "-e",
            "--regexp",
            "--expression",
            "-path",
            "-wholename",
            "-regex",
            "-not",
            "-iregex",
        ],
        _ => &[],
    };
    let remote = matches!(
        name,
        "scp" | "rsync" | "ssh" | "docker" | "podman" | "kubectl" | "sftp"
    );
    let mut pattern_next =
        first_is_pattern(name) && !args.iter().any(|w| is_option(w, &["-e", "-f"]));
    let mut skip = false;
    let mut paths = Vec::new();
    for word in args {
        let taken = std::mem::replace(&mut skip, skip_after.contains(&word.text.as_str()));
        if taken || remote && word.text.contains(":/") {
            continue;
        }
        if pattern_next && !word.text.starts_with('-') {
            pattern_next = false;
            continue;
        }
        paths.push(word);
    }
    paths
}

fn first_is_pattern(name: &str) -> bool {
    matches!(
        name,
        "grep"
            | "egrep"
            | "fgrep"
            | "rg"
            | "ag"
            | "sed"
            | "gsed"
            | "awk"
            | "gawk"
            | "mawk"
            | "jq"
            | "yq"
            | "tr"
            | "zgrep"
            | "fd"
            | "pgrep"
    )
}

/// Whether a directory is one of the system, or of a toolchain, for programs.
pub(crate) fn is_program_directory(normalised: &str, given: &str) -> bool {
    const SYSTEM: &[&str] = &[
        "/bin",
        "/sbin",
        "/usr/bin",
        "/usr/sbin",
        "/usr/local/bin",
        "/usr/local/sbin",
    ];
    given.starts_with('/') && (SYSTEM.contains(&normalised) || is_toolchain(normalised))
}

/// Whether a word has a substitution in it. Builtins and arithmetic evaluate it even in quoted text.
pub(crate) fn may_hold_commands(word: &Word) -> bool {
    word.text.contains("$(") || word.text.contains('`')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_find_only_the_strict_names() {
        assert!(names_like("/usr/bin/c?rl").contains(&"curl"));
        assert!(names_like("*").is_empty());
    }
}
