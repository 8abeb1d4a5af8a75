//! What a git command does: subcommand by subcommand.

use super::carriers::within;
use super::category::Category::{self, *};
use super::commands::Known;
use super::options::is_option;
use super::vocabulary::listed;
use crate::shell::{HOLE, Word, glob_matches, line_of};

/// Subcommands that only read, unless an option below says otherwise.
const READERS: &str = "\
    annotate blame cat-file check-attr check-ignore check-ref-format cherry count-objects \
    describe diff diff-files diff-index diff-tree for-each-ref fsck get-tar-commit-id grep \
    help log ls-files ls-tree merge-base merge-tree name-rev range-diff rev-list rev-parse \
    shortlog show show-branch show-index show-ref status var verify-commit verify-pack \
    verify-tag version whatchanged";

/// Options with which even a reader writes a file or runs a program.
const READERS_NOT_WITH: &[&str] = &[
    "--output",
    "--ext-diff",
    "--textconv",
    "--open-files-in-pager",
    "--output-directory",
];

const WRITERS: &str = "\
    add am apply archive bisect branch bundle checkout-index cherry-pick commit commit-graph \
    commit-tree config fast-import format-patch gc hash-object index-pack init \
    interpret-trailers lfs maintenance merge merge-file mergetool mktag mktree \
    multi-pack-index mv notes pack-objects pack-refs read-tree rebase reflog remote repack \
    replace rerere revert rm sparse-checkout stage stash stripspace submodule subtree \
    symbolic-ref tag update-index update-server-info worktree write-tree";

/// Configuration that may be set for one command without changing what it runs.
const HARMLESS_CONFIG: &str = "\
    advice. author. color. column. committer. core.abbrev core.autocrlf core.filemode \
    core.longpaths core.quotepath diff.algorithm diff.context diff.renames fetch. i18n. \
    init.defaultbranch log. merge.conflictstyle pull. push.default rebase. safe.directory \
    status. user.email user.name";

pub(crate) fn classify(args: &[Word]) -> Known {
    let mut known = Known::default();
    let rest = global_options(args, &mut known);
    let Some((subcommand, rest)) = rest.split_first() else {
        known.categories.insert(if known.categories.is_empty() {
            ReadOnly
        } else {
            Unknown
        });
        return known;
    };
    if subcommand.dynamic {
        known.half_known = true;
        known.categories.extend([Unknown, Networked]);
    }
    known
        .categories
        .extend(by_subcommand(&subcommand.text, rest).iter().copied());
    if may_mean(subcommand, "push") {
        known.categories.extend([Publishing, Networked]);
    }
    runs_commands(&subcommand.text, rest, &mut known);
    known
}

/// Reads `-C dir`, `-c key=value` and the like; returns the subcommand and what follows.
fn global_options<'a>(args: &'a [Word], known: &mut Known) -> &'a [Word] {
    let mut rest = args;
    while let Some((option, after)) = rest.split_first() {
        match option.text.as_str() {
            "-C" | "--git-dir" | "--work-tree" | "--namespace" => {
                rest = after.get(1..).unwrap_or_default();
            }
            "-c" | "--config-env" => {
                match after.first() {
                    Some(setting) if option.text == "-c" => configured(&setting.text, known),
                    _ => known.categories.insert(Unknown),
                }
                rest = after.get(1..).unwrap_or_default();
            }
            text if text.starts_with("-c") => {
                configured(&text[2..], known);
                rest = after;
            }
            text if text.starts_with("--exec-path=") || text.starts_with("--config-env=") => {
                known.categories.insert(Unknown);
                rest = after;
            }
            text if text.starts_with('-') => rest = after,
            _ => break,
        }
    }
    rest
}

/// One `key=value`: an alias or a program to run is judged as the shell text it is.
fn configured(setting: &str, known: &mut Known) {
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
    known.categories.insert(Unknown);
    if let Some(alias) = key.strip_prefix("alias.").and(Some(value)) {
        let script = alias
            .strip_prefix('!')
            .map_or_else(|| format!("git {alias}"), str::to_owned);
        known.scripts.push(script);
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
        known.scripts.push(value.trim_start_matches('!').to_owned());
    } else {
        known.scripts.extend(within(value));
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
        reader if listed(READERS, reader) => {
            let pager = reader == "grep" && has(&["-O"]);
            if has(READERS_NOT_WITH) || pager {
                &[Mutating, Unknown]
            } else {
                &[ReadOnly]
            }
        }
        writer if listed(WRITERS, writer) => &[Mutating],
        _ => &[Unknown],
    }
}

/// A push that can take commits away from the other side is destructive too.
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

/// `branch` and `tag`: a list, a deletion or a change.
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

/// Whether a word that is only half known may be this one.
pub(crate) fn may_mean(word: &Word, meant: &str) -> bool {
    let open = |c: char| c == HOLE || matches!(c, '*' | '?' | '[' | ']');
    let half_known = word.glob || word.text.contains(HOLE);
    half_known && !word.text.chars().all(open) && glob_matches(&word.text, meant, HOLE)
}

/// `config key value` makes an alias or a program known that a later command runs.
fn configures(args: &[Word], known: &mut Known) {
    let plain: Vec<&str> = args
        .iter()
        .map(|word| word.text.as_str())
        .filter(|text| !text.starts_with('-') && *text != "set")
        .collect();
    if let [key, value] = plain.as_slice() {
        configured(&format!("{key}={value}"), known);
    }
}

/// Subcommands and options that run shell text.
fn runs_commands(subcommand: &str, args: &[Word], known: &mut Known) {
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
        [script] => known.scripts.push(script.text.clone()),
        words => known.scripts.push(line_of(words)),
    }
    if subcommand == "config" {
        configures(args, known);
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
            known.scripts.extend(within(text.trim_start_matches("-O")));
        }
        if let Some((option, value)) = text.split_once('=').filter(|(o, _)| takes_command(o)) {
            known
                .categories
                .insert(if option.is_empty() { ReadOnly } else { Unknown });
            known.scripts.push(value.to_owned());
        } else if takes_command(text) {
            known.categories.insert(Unknown);
            known
                .scripts
                .extend(texts.get(i + 1).map(|s| (*s).to_owned()));
        } else if let Some((_, command)) = text.split_once("ext::") {
            known.categories.insert(Unknown);
            known.scripts.push(command.replace("% ", "\\ "));
        } else if *text == "-c" || text.starts_with("--config=") {
            // `clone -c key=value` configures the clone and what it runs.
            let setting = text.strip_prefix("--config=").or(texts.get(i + 1).copied());
            if let ("clone", Some(setting)) = (subcommand, setting) {
                configured(setting, known);
            }
        }
    }
}
