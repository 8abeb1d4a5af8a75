//! What git does, by subcommand.

use super::category::Category::{self, *};
use super::commands::Effects;
use super::embedded::commands_in;
use super::options::is_option;
use super::vocabulary::listed;
use crate::shell::{UNKNOWN, Word, glob_matches, quoted_line};

/// Subcommands that only read, unless they have an option of the next list.
const READ_ONLY: &str = "\
    annotate blame cat-file check-attr check-ignore check-ref-format cherry count-objects \
    describe diff diff-files diff-index diff-tree for-each-ref fsck get-tar-commit-id grep \
    help log ls-files ls-tree merge-base merge-tree name-rev range-diff rev-list rev-parse \
    shortlog show show-branch show-index show-ref status var verify-commit verify-pack \
    verify-tag version whatchanged";

/// Options that make such a subcommand write a file or run a program.
const READ_ONLY_UNLESS: &[&str] = &[
    "--output",
    "--ext-diff",
    "--textconv",
    "--open-files-in-pager",
    "--output-directory",
];

const MUTATING: &str = "\
    add am apply archive bisect branch bundle checkout-index cherry-pick commit commit-graph \
    commit-tree config fast-import format-patch gc hash-object index-pack init \
    interpret-trailers lfs maintenance merge merge-file mergetool mktag mktree \
    multi-pack-index mv notes pack-objects pack-refs read-tree rebase reflog remote repack \
    replace rerere revert rm sparse-checkout stage stash stripspace submodule subtree \
    symbolic-ref tag update-index update-server-info worktree write-tree";

/// Configuration keys that do not change which programs run.
const HARMLESS_CONFIG: &str = "\
    advice. author. color. column. committer. core.abbrev core.autocrlf core.filemode \
    core.longpaths core.quotepath diff.algorithm diff.autorefreshindex diff.context diff.renames fetch. i18n. \
    init.defaultbranch log. merge.conflictstyle pull. push.default rebase. safe.directory \
    status. user.email user.name";

pub(crate) fn classify(args: &[Word]) -> Effects {
    let mut effects = Effects::default();
    let rest = global_options(args, &mut effects);
    let Some((subcommand, rest)) = rest.split_first() else {
        effects.categories.insert(if effects.categories.is_empty() {
            ReadOnly
        } else {
            Unknown
        });
        return effects;
    };
    if subcommand.dynamic {
        effects.unknown_subcommand = true;
        effects.categories.extend([Unknown, Networked]);
    }
    effects
        .categories
        .extend(by_subcommand(&subcommand.text, rest).iter().copied());
    if may_mean(subcommand, "push") {
        effects.categories.extend([Publishing, Networked]);
    }
    runs_commands(&subcommand.text, rest, &mut effects);
    effects
}

/// Reads `-C dir`, `-c key=value` and the like. Returns the subcommand and its arguments.
fn global_options<'a>(args: &'a [Word], effects: &mut Effects) -> &'a [Word] {
    let mut rest = args;
    while let Some((option, after)) = rest.split_first() {
        match option.text.as_str() {
            "-C" | "--git-dir" | "--work-tree" | "--namespace" => {
                rest = after.get(1..).unwrap_or_default();
            }
            "-c" | "--config-env" => {
                match after.first() {
                    Some(setting) if option.text == "-c" => configured(&setting.text, effects),
                    _ => effects.categories.insert(Unknown),
                }
                rest = after.get(1..).unwrap_or_default();
            }
            text if text.starts_with("-c") => {
                configured(&text[2..], effects);
                rest = after;
            }
            text if text.starts_with("--exec-path=") || text.starts_with("--config-env=") => {
                effects.categories.insert(Unknown);
                rest = after;
            }
            text if text.starts_with('-') => rest = after,
            _ => break,
        }
    }
    rest
}

/// Applies one `key=value`. The value of an alias, or of a key that names a program, is judged as shell text.
fn configured(setting: &str, effects: &mut Effects) {
    let (key, value) = setting.split_once('=').unwrap_or((setting, "true"));
    let key = key.to_ascii_lowercase();
    if HARMLESS_CONFIG
        .split_ascii_whitespace()
        .any(|harmless| key.starts_with(harmless))
    {
        return;
    }
    if key.contains("pager") && matches!(value, "cat" | "" | "false" | "less") {
        return;
    }
    effects.categories.insert(Unknown);
    if let Some(alias) = key.strip_prefix("alias.").and(Some(value)) {
        let script = alias
            .strip_prefix('!')
            .map_or_else(|| format!("git {alias}"), str::to_owned);
        effects.scripts.push(script);
    } else if [
        "pager",
        "command",
        "editor",
        "helper",
        "external",
        "fsmonitor",
        "program",
        "cmd",
    ]
    .iter()
    .any(|part| key.contains(part))
    {
        effects
            .scripts
            .push(value.trim_start_matches('!').to_owned());
    } else {
        effects.scripts.extend(commands_in(value));
    }
}

fn by_subcommand(subcommand: &str, args: &[Word]) -> &'static [Category] {
    let has = |options: &[&str]| args.iter().any(|w| is_option(w, options));
    let first = args
        .iter()
        .map(|w| w.text.as_str())
        .find(|t| !t.starts_with('-'));
    let open = args.iter().any(Word::starts_unknown);
    match subcommand {
        "push" => push(args),
        "send-email" | "send-pack" | "svn" | "p4" | "request-pull" => &[Publishing, Networked],
        "lfs" | "subtree" if first == Some("push") => &[Publishing, Networked],
        "clone" if args.iter().any(is_local) && !args.iter().any(is_remote) => &[Mutating],
        "clone" | "fetch" | "pull" => &[Networked, Mutating],
        "ls-remote" => &[Networked],
        "submodule" if matches!(first, Some("update" | "add")) => &[Networked, Mutating],
        "submodule" if matches!(first, None | Some("status" | "summary")) => &[ReadOnly],
        "remote" if matches!(first, Some("update" | "show" | "prune")) => &[Networked, Mutating],
        "remote" if matches!(first, None | Some("get-url")) && !open => &[ReadOnly],
        "lfs" if !matches!(first, Some("status" | "ls-files" | "env")) => &[Networked, Mutating],
        "archive" if has(&["--remote"]) => &[Networked, Mutating],
        "clean" if has(&["-n", "--dry-run"]) && !has(&["-e", "--exclude"]) => &[ReadOnly],
        "clean" | "restore" | "prune" | "filter-branch" | "filter-repo" => &[Destructive],
        "reset" if has(&["--hard", "--merge", "--keep"]) || open => &[Destructive],
        "reset" => &[Mutating],
        "checkout" | "switch" => checkout(args),
        "update-ref" => {
            if has(&["-d", "--stdin"]) {
                &[Destructive]
            } else {
                &[Mutating]
            }
        }
        "stash" => match first {
            Some("list" | "show") if !open => &[ReadOnly],
            Some("drop" | "clear") => &[Destructive],
            _ => &[Mutating],
        },
        "branch" | "tag" => names(args),
        "config" => config(args),
        "reflog" | "worktree" | "notes" | "bisect" => match first {
            Some("expire" | "delete" | "remove" | "prune" | "drop") => &[Destructive],
            Some("list" | "show" | "log" | "exists") if !open => &[ReadOnly],
            None if subcommand != "worktree" && !open => &[ReadOnly],
            _ => &[Mutating],
        },
        "symbolic-ref" if args.len() == 1 && !open => &[ReadOnly],
        "rm" if has(&["-r", "-f", "--force"]) => &[Destructive],
        reader if listed(READ_ONLY, reader) => {
            let pager = reader == "grep" && has(&["-O"]);
            if has(READ_ONLY_UNLESS) || pager {
                &[Mutating, Unknown]
            } else {
                &[ReadOnly]
            }
        }
        writer if listed(MUTATING, writer) => &[Mutating],
        _ => &[Unknown],
    }
}

/// A push that can remove commits from the remote is also destructive.
fn push(args: &[Word]) -> &'static [Category] {
    let options = [
        "-f",
        "--force",
        "--force-with-lease",
        "--mirror",
        "-d",
        "--delete",
    ];
    let takes_away = |w: &Word| is_option(w, &options) || w.text.starts_with(['+', ':']);
    if args.iter().any(takes_away) {
        &[Publishing, Networked, Destructive]
    } else {
        &[Publishing, Networked]
    }
}

fn checkout(args: &[Word]) -> &'static [Category] {
    let discards = args.iter().any(|w| {
        matches!(w.text.as_str(), "--" | ".")
            || is_option(w, &["-f", "--force", "--discard-changes"])
            || w.starts_unknown()
    });
    if discards {
        &[Destructive]
    } else {
        &[Mutating]
    }
}

/// `branch` and `tag`, which list, delete or change names.
fn names(args: &[Word]) -> &'static [Category] {
    let text = |w: &Word| w.text.clone();
    let lists = args.iter().any(|w| {
        matches!(
            text(w).as_str(),
            "-l" | "--list"
                | "-a"
                | "--all"
                | "-r"
                | "--remotes"
                | "-v"
                | "-vv"
                | "--show-current"
                | "--contains"
                | "--merged"
                | "--no-merged"
                | "--points-at"
                | "-n"
        ) || text(w).starts_with("--sort")
            || text(w).starts_with("--format")
    });
    if args.iter().any(|w| {
        matches!(
            text(w).as_str(),
            "-d" | "-D" | "--delete" | "-f" | "--force"
        )
    }) {
        &[Destructive]
    } else if args
        .iter()
        .any(|w| w.starts_unknown() || is_option(w, &["-m", "-M", "-c", "-C", "-u"]))
    {
        &[Mutating]
    } else if args.is_empty() || lists {
        &[ReadOnly]
    } else {
        &[Mutating]
    }
}

fn config(args: &[Word]) -> &'static [Category] {
    let reads = args.iter().any(|w| {
        matches!(
            w.text.as_str(),
            "--get" | "--get-all" | "--get-regexp" | "--list" | "-l" | "get" | "list"
        )
    });
    let plain = args.iter().filter(|w| !w.text.starts_with('-')).count();
    let open = args.iter().any(Word::starts_unknown);
    let writes = args.iter().any(|w| {
        w.text.starts_with("--unset")
            || w.text.starts_with("--re")
            || w.text.starts_with("--add")
            || w.text == "--edit"
            || w.text == "-e"
    });
    if !open && !writes && (reads || plain == 1) {
        &[ReadOnly]
    } else {
        &[Mutating]
    }
}

fn is_local(word: &Word) -> bool {
    let text = word.text.as_str();
    text.starts_with(['/', '.']) || text.starts_with("file://")
}

fn is_remote(word: &Word) -> bool {
    let text = word.text.as_str();
    word.starts_unknown() || text.contains("::") || text.contains(':') && !text.starts_with("file:")
}

/// Whether a word that is partly unknown, or a pattern, may be this word.
pub(crate) fn may_mean(word: &Word, meant: &str) -> bool {
    let open = |c: char| c == UNKNOWN || matches!(c, '*' | '?' | '[' | ']');
    let unknown_subcommand = word.glob || word.text.contains(UNKNOWN);
    unknown_subcommand && !word.text.chars().all(open) && glob_matches(&word.text, meant, UNKNOWN)
}

/// `config key value` sets an alias or a program that a later command runs.
fn configures(args: &[Word], effects: &mut Effects) {
    let plain: Vec<&str> = args
        .iter()
        .map(|word| word.text.as_str())
        .filter(|text| !text.starts_with('-') && *text != "set")
        .collect();
    if let [key, value] = plain.as_slice() {
        configured(&format!("{key}={value}"), effects);
    }
}

/// Subcommands and options that run shell text.
fn runs_commands(subcommand: &str, args: &[Word], effects: &mut Effects) {
    let texts: Vec<&str> = args.iter().map(|w| w.text.as_str()).collect();
    let tail = match (subcommand, texts.as_slice()) {
        ("bisect", ["run", command @ ..]) => command,
        ("submodule", ["foreach", command @ ..]) => command,
        _ => &[],
    };
    let words: Vec<Word> = tail
        .iter()
        .filter(|word| !matches!(**word, "--recursive" | "--quiet"))
        .map(|word| Word::fixed(*word))
        .collect();
    match words.as_slice() {
        [] => {}
        [script] => effects.scripts.push(script.text.clone()),
        words => effects.scripts.push(quoted_line(words)),
    }
    if subcommand == "config" {
        configures(args, effects);
    }
    let takes_command = |option: &str| {
        matches!(
            (subcommand, option),
            ("rebase", "-x" | "--exec")
                | ("difftool", "-x" | "--extcmd")
                | (
                    "clone" | "fetch" | "pull" | "ls-remote",
                    "-u" | "--upload-pack"
                )
                | ("push" | "send-pack", "--receive-pack" | "--exec")
                | ("archive", "--exec")
        ) || subcommand == "filter-branch" && option.ends_with("-filter")
    };
    for (i, text) in texts.iter().enumerate() {
        if subcommand == "grep" && (text.starts_with("-O") || text.starts_with("--open-files")) {
            effects
                .scripts
                .extend(commands_in(text.trim_start_matches("-O")));
        }
        if let Some((option, value)) = text.split_once('=').filter(|(o, _)| takes_command(o)) {
            effects
                .categories
                .insert(if option.is_empty() { ReadOnly } else { Unknown });
            effects.scripts.push(value.to_owned());
        } else if takes_command(text) {
            effects.categories.insert(Unknown);
            effects
                .scripts
                .extend(texts.get(i + 1).map(|s| (*s).to_owned()));
        } else if let Some((_, command)) = text.split_once("ext::") {
            effects.categories.insert(Unknown);
            effects.scripts.push(command.replace("% ", "\\ "));
        } else if *text == "-c" || text.starts_with("--config=") {
            // `clone -c key=value` configures the clone and what it runs.
            let setting = text.strip_prefix("--config=").or(texts.get(i + 1).copied());
            if let ("clone", Some(setting)) = (subcommand, setting) {
                configured(setting, effects);
            }
        }
    }
}
