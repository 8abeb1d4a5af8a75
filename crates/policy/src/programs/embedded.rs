//! Command lines in the arguments or the input of a program, which it executes.

use super::category::Category;
use super::code::strings;
use super::commands::is_known;
use super::options::is_option;
use super::stdin::Stdin;
use super::tools;
use super::vocabulary::{category_of, listed};
use crate::shell::{UNKNOWN, Word, parses, quoted_line};

/// Where a program may get command lines from.
#[derive(Default)]
struct Accepted {
    arguments: bool,
    /// Quoted strings in its arguments.
    strings: bool,
    /// Lines of its standard input.
    lines: bool,
}

fn accepted(name: &str) -> Accepted {
    let lines = Accepted {
        lines: true,
        ..Accepted::default()
    };
    let arguments = Accepted {
        arguments: true,
        ..Accepted::default()
    };
    match name {
        "ed" | "ex" => lines,
        "at" | "batch" | "crontab" | "gdb" | "mysql" | "psql" | "sqlite3" | "tclsh" => Accepted {
            arguments: true,
            ..lines
        },
        "concurrently" | "dc" | "docker" | "entr" | "hyperfine" | "kubectl" | "less" | "lldb"
        | "man" | "nodemon" | "podman" | "screen" | "ssh" | "tmux" | "watchexec" => arguments,
        "emacs" | "expect" | "lua" | "osascript" => Accepted {
            strings: true,
            ..arguments
        },
        _ => Accepted::default(),
    }
}

/// Options whose value is a command.
const OPTIONS: &[(&str, &[&str])] = &[
    ("bazel", &["--run_under"]),
    ("complete", &["-C"]),
    ("compgen", &["-C"]),
    (
        "go",
        &[
            "-exec",
            "--exec",
            "-toolexec",
            "--toolexec",
            "-vettool",
            "--vettool",
        ],
    ),
    ("just", &["--shell"]),
    ("man", &["-P", "--pager", "-H", "--html"]),
    ("mapfile", &["-C"]),
    ("nc", &["-e", "-c", "--exec", "--sh-exec"]),
    ("ncat", &["-e", "-c", "--exec", "--sh-exec"]),
    ("nix-shell", &["--run", "--command"]),
    ("npm", &["-c", "--call", "--script-shell"]),
    ("npx", &["-c", "--call"]),
    ("readarray", &["-C"]),
    ("rg", &["--pre", "--hostname-bin"]),
    ("scp", &["-S"]),
    ("sftp", &["-S", "-D"]),
    ("sort", &["--compress-program"]),
    ("tcpdump", &["-z"]),
    ("wget", &["--use-askpass"]),
    ("zip", &["-TT", "--unzip-command"]),
];

/// Programs with settings, addresses or scripts as arguments that may have a command in them.
const SETTINGS: &str = "\
    apt apt-get c++ cargo clang clang++ cmake dpkg emacs ex g++ gcc gdb gradle hg java jj \
    lldb make meson mvn ninja nmap nvim php rake socat svn vi view vim wget";

/// Words taken for one command that is found in other text.
const LONGEST_LINE: usize = 24;
/// Commands taken from one text.
const MOST_LINES: usize = 8;

/// What introduces a command in the languages of these programs.
const PREFIXES: &[&str] = &[
    "!", ":", "+", "\\!", ".shell ", ".system ", "exec ", "shell ", "spawn ", "-H", "-P",
];

/// All command lines in the arguments and the input of a command.
pub(crate) fn embedded_commands(name: &str, args: &[Word], stdin: &Stdin) -> Vec<String> {
    let mut found = Vec::new();
    let accepted = accepted(name);
    if accepted.arguments {
        found.extend(args.iter().filter_map(|word| command_line(&word.text)));
        found.extend(tail_command(args));
    } else if args.len() > 1 && !is_known(name) {
        found.extend(tail_command(args));
    }
    if accepted.strings {
        let strings = args.iter().flat_map(|word| strings(&word.text));
        found.extend(strings.filter_map(|string| command_line(&string)));
    }
    if let (Stdin::Text(text), true) = (stdin, accepted.lines) {
        found.extend(text.lines().filter_map(crontab_line));
    }
    if listed(SETTINGS, name) {
        found.extend(args.iter().flat_map(|word| commands_in(&word.text)));
    }
    if let Some((_, options)) = OPTIONS.iter().find(|(program, _)| *program == name) {
        found.extend(values(options, args));
    }
    match name {
        "make" | "gmake" => make(args, stdin, &mut found),
        "fd" => {
            let executes = |word: &Word| is_option(word, &["-x", "-X", "--exec", "--exec-batch"]);
            let at = args.iter().position(executes);
            found.extend(at.map(|at| quoted_line(&args[at + 1..])));
        }
        "." | "source" => {
            let reads = args.first().is_some_and(|word| word.text == "/dev/stdin");
            if let (true, Stdin::Text(text)) = (reads, stdin) {
                found.push(text.clone());
            }
        }
        "compgen" | "complete" => {
            // Bash expands the list of words before splitting it.
            let words = values(&["-W"], args).into_iter();
            found.extend(words.map(|words| format!(": \"{}\"", words.replace('"', "\\\""))));
        }
        "cargo" => {
            let own = args.iter().position(|word| word.text == "--");
            let runs = args
                .iter()
                .any(|word| listed("bench r run t test", &word.text));
            let own = own.filter(|_| runs).map(|at| &args[at + 1..]);
            found.extend(own.and_then(tail_command));
        }
        "sed" | "gsed" => found.extend(args.iter().flat_map(|word| sed_runs(&word.text))),
        _ => {}
    }
    found
}

/// The text, if it can be parsed as a command line of a known program.
pub(crate) fn command_line(text: &str) -> Option<String> {
    let mut text = text.trim();
    while let Some(rest) = PREFIXES.iter().find_map(|lead| text.strip_prefix(lead)) {
        text = rest.trim_start();
    }
    let program = text.split_whitespace().next()?;
    let program = program.rsplit('/').next().unwrap_or(program);
    let reads = text.contains(char::is_whitespace) && is_known(program) && parses(text);
    reads.then(|| text.to_owned())
}

/// A line of input that is a command, with or without the five fields of a crontab before it.
fn crontab_line(line: &str) -> Option<String> {
    let mut after = line;
    for _ in 0..5 {
        after = after
            .trim_start()
            .split_once(' ')
            .map_or("", |(_, rest)| rest);
    }
    command_line(line).or_else(|| command_line(after))
}

/// The arguments from the first one that names a consequential program. An unknown program may run them as a command.
pub(crate) fn tail_command(args: &[Word]) -> Option<String> {
    let at = args.iter().position(|word| is_consequential(&word.text))?;
    (at + 1 < args.len()).then(|| quoted_line(&args[at..]))
}

/// Whether a program may destroy, use the network, publish or run others.
fn is_consequential(program: &str) -> bool {
    let name = program.rsplit('/').next().unwrap_or_default();
    let consequence = [
        Category::Networked,
        Category::Destructive,
        Category::HostEscapeRisk,
    ];
    category_of(name).is_some_and(|category_of| consequence.contains(&category_of))
        || listed("bash busybox dash dd git perl rm rsync sh sudo zsh", name)
        || listed(tools::NAMES, name)
}

/// Command lines inside options, settings or code, one from each word that names a consequential program.
pub(crate) fn commands_in(text: &str) -> Vec<String> {
    let is_word = |c: char| c.is_ascii_alphanumeric() || "_./@+~%-:".contains(c) || c == UNKNOWN;
    // `EXEC:git` names a program.
    let bare = |word: &'_ str| {
        let after = word.rfind(':').map_or(0, |at| at + 1);
        after > 0 && is_consequential(&word[after..])
    };
    let words: Vec<&str> = text
        .split(|c: char| !is_word(c))
        .map(|word| match bare(word) {
            true => word.rsplit(':').next().unwrap_or(word),
            false => word,
        })
        .filter(|word| !word.is_empty())
        .collect();
    let starts = (0..words.len()).filter(|at| is_consequential(words[*at]) && at + 1 < words.len());
    let line = |at: usize| {
        let words = words[at..].iter().take(LONGEST_LINE);
        quoted_line(&words.map(|word| Word::fixed(*word)).collect::<Vec<_>>())
    };
    starts.take(MOST_LINES).map(line).collect()
}

/// The values of these options, in the same argument or the next.
fn values(options: &[&str], args: &[Word]) -> Vec<String> {
    let mut found = Vec::new();
    for (i, word) in args.iter().enumerate() {
        for option in options {
            let joined = word.text.strip_prefix(option);
            found.extend(match joined {
                Some("") => args.get(i + 1).map(|next| next.text.replace(UNKNOWN, "$_")),
                Some(value) => match value.strip_prefix('=') {
                    Some(value) => Some(value.replace(UNKNOWN, "$_")),
                    None if option.len() == 2 => command_line(value),
                    None => None,
                },
                None => None,
            });
        }
    }
    found
}

/// Variables that are commands, `$(shell …)`, and recipes on the standard input.
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

/// The commands that the `e` commands of a sed script run.
fn sed_runs(script: &str) -> Vec<String> {
    let commands = script.split(['\n', ';', '{', '}']);
    let executed = |command: &str| {
        let (before, line) = command.split_once("e ")?;
        let address = |c: char| c.is_ascii_digit() || " $,~+!/".contains(c);
        let addresses = before.chars().all(address) || before.ends_with('/');
        addresses.then(|| line.to_owned())
    };
    commands
        .filter_map(executed)
        .filter_map(|line| command_line(&line))
        .collect()
}
