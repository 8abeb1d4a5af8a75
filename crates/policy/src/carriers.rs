//! Command lines that a program is handed as text, in its arguments or on its input, to be run at its pleasure.

use crate::Category;
use crate::code::strings;
use crate::commands::{is_known, is_option};
use crate::judge::Stdin;
use crate::shell;
use crate::tools;
use crate::vocabulary::{listed, purpose};
use crate::word::{HOLE, Word};

/// What a program may take for a command line.
#[derive(Default)]
struct Takes {
    arguments: bool,
    /// The strings in its arguments.
    strings: bool,
    /// The lines of its input.
    lines: bool,
}

fn takes(name: &str) -> Takes {
    let lines = Takes {
        lines: true,
        ..Takes::default()
    };
    let arguments = Takes {
        arguments: true,
        ..Takes::default()
    };
    match name {
        "ed" | "ex" => lines,
        "at" | "batch" | "crontab" | "gdb" | "mysql" | "psql" | "sqlite3" | "tclsh" => Takes {
            arguments: true,
            ..lines
        },
        "concurrently" | "entr" | "hyperfine" | "less" | "lldb" | "man" | "nodemon" | "screen"
        | "tmux" | "watchexec" => arguments,
        "emacs" | "expect" | "lua" | "osascript" => Takes {
            strings: true,
            ..arguments
        },
        _ => Takes::default(),
    }
}

/// Options whose value is a command.
const OPTIONS: &[(&str, &[&str])] = &[
    ("complete", &["-C"]),
    ("compgen", &["-C"]),
    ("cargo", &["--config"]),
    ("just", &["--shell"]),
    ("mapfile", &["-C"]),
    ("nix-shell", &["--run", "--command"]),
    ("npm", &["-c", "--call"]),
    ("npx", &["-c", "--call"]),
    ("readarray", &["-C"]),
    ("rg", &["--pre"]),
    ("scp", &["-S"]),
    ("sftp", &["-S"]),
    ("sort", &["--compress-program"]),
    ("zip", &["-TT", "--unzip-command"]),
];

/// What stands before the command in the languages of such programs.
const LEADS: &[&str] = &[
    "!", ":", "+", "\\!", ".shell ", ".system ", "exec ", "shell ", "spawn ", "-H", "-P",
];

/// All command lines that a command carries.
pub(crate) fn carried(name: &str, args: &[Word], stdin: &Stdin) -> Vec<String> {
    let mut found = Vec::new();
    let takes = takes(name);
    if takes.arguments {
        found.extend(args.iter().filter_map(|word| command_line(&word.text)));
        found.extend(strict_tail(args));
    } else if args.len() > 1 && !is_known(name) {
        found.extend(strict_tail(args));
    }
    if takes.strings {
        let strings = args.iter().flat_map(|word| strings(&word.text));
        found.extend(strings.filter_map(|string| command_line(&string)));
    }
    if let (Stdin::Text(text), true) = (stdin, takes.lines) {
        found.extend(text.lines().filter_map(scheduled));
    }
    if let Some((_, options)) = OPTIONS.iter().find(|(program, _)| *program == name) {
        found.extend(values(options, args));
    }
    match name {
        "make" | "gmake" => make(args, stdin, &mut found),
        "fd" => {
            let executes = |word: &Word| is_option(word, &["-x", "-X", "--exec", "--exec-batch"]);
            let at = args.iter().position(executes);
            found.extend(at.map(|at| line_of(&args[at + 1..])));
        }
        "." | "source" => {
            let reads = args.first().is_some_and(|word| word.text == "/dev/stdin");
            if let (true, Stdin::Text(text)) = (reads, stdin) {
                found.push(text.clone());
            }
        }
        "sed" | "gsed" => found.extend(args.iter().filter_map(|word| sed_runs(&word.text))),
        _ => {}
    }
    found
}

/// Words as one line of shell text that means just them.
pub(crate) fn line_of(words: &[Word]) -> String {
    let quoted = |word: &Word| {
        let text = word.text.replace('\'', "'\\''");
        format!("'{}'", text.replace(HOLE, "'$_'"))
    };
    words.iter().map(quoted).collect::<Vec<_>>().join(" ")
}

/// The text, if it reads as a command line of a program that is known.
pub(crate) fn command_line(text: &str) -> Option<String> {
    let mut text = text.trim();
    while let Some(rest) = LEADS.iter().find_map(|lead| text.strip_prefix(lead)) {
        text = rest.trim_start();
    }
    let program = text.split_whitespace().next()?;
    let program = program.rsplit('/').next().unwrap_or(program);
    let reads = text.contains(char::is_whitespace) && is_known(program) && shell::parses(text);
    reads.then(|| text.to_owned())
}

/// A line of input; a timetable has five fields before the command.
fn scheduled(line: &str) -> Option<String> {
    let mut after = line;
    for _ in 0..5 {
        after = after
            .trim_start()
            .split_once(' ')
            .map_or("", |(_, rest)| rest);
    }
    command_line(line).or_else(|| command_line(after))
}

/// The command that begins at the first argument that names a program of consequence: an unknown program may
/// well run it.
fn strict_tail(args: &[Word]) -> Option<String> {
    let strict = |word: &Word| {
        let name = word.text.rsplit('/').next().unwrap_or_default();
        let strict = matches!(
            purpose(name),
            Some(Category::Networked | Category::Destructive)
        );
        strict || listed("bash dd git rm rsync sh zsh", name) || listed(tools::NAMES, name)
    };
    let at = args.iter().position(strict)?;
    (at + 1 < args.len()).then(|| line_of(&args[at..]))
}

/// The values of these options, joined to them or in the next argument.
fn values(options: &[&str], args: &[Word]) -> Vec<String> {
    let mut found = Vec::new();
    for (i, word) in args.iter().enumerate() {
        for option in options {
            let joined = word.text.strip_prefix(option);
            found.extend(match joined {
                Some("") => args.get(i + 1).map(|next| next.text.replace(HOLE, "$_")),
                Some(value) => value.strip_prefix('=').and_then(command_line),
                None => None,
            });
        }
    }
    found
}

/// Variables that are commands, `$(shell …)`, and recipes on the input.
fn make(args: &[Word], stdin: &Stdin, found: &mut Vec<String>) {
    let mut texts: Vec<&str> = args.iter().map(|word| word.text.as_str()).collect();
    for (_, value) in args.iter().filter_map(|word| word.text.split_once('=')) {
        found.extend(command_line(value));
    }
    if let Stdin::Text(text) = stdin {
        let recipes = text.lines().filter_map(|line| line.strip_prefix('\t'));
        found.extend(recipes.map(|line| line.trim_start_matches(['@', '-', '+']).to_owned()));
        texts.push(text);
    }
    for text in texts {
        let inner = text.split("$(shell ").skip(1);
        found.extend(
            inner
                .filter_map(|rest| rest.split(')').next())
                .map(str::to_owned),
        );
    }
}

/// What the `e` command of a sed script runs.
fn sed_runs(script: &str) -> Option<String> {
    let address = |c: char| c.is_ascii_digit() || matches!(c, '$' | ',' | ' ');
    let command = script.trim_start_matches(address).strip_prefix("e ")?;
    command_line(command)
}
