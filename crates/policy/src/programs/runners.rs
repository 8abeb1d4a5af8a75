//! Programs with an option or a subcommand that runs a command: `find -exec`, `tar --to-command`, `poetry run`.

use super::category::Category::{self, *};
use super::commands::unversioned;
use super::embedded;
use super::options::is_option;
use super::stdin::Stdin;
use super::wrappers::{Unwrapped, inner, is_assignment, options_end};
use crate::shell::Word;

/// Tools with a subcommand that runs a command, and how many arguments it takes before that: `poetry run pytest`.
const RUNNERS: &[(&str, &str, usize)] = &[
    ("bun", "x", 0),
    ("bundle", "exec", 0),
    ("cargo", "watch", 0),
    ("conda", "run", 0),
    ("direnv", "exec", 1),
    ("hatch", "run", 0),
    ("npm", "exec", 0),
    ("npm", "explore", 1),
    ("npm", "x", 0),
    ("nvm", "exec", 1),
    ("pipenv", "run", 0),
    ("pipx", "run", 0),
    ("pnpm", "dlx", 0),
    ("pnpm", "exec", 0),
    ("poetry", "run", 0),
    ("rustup", "run", 1),
    ("uv", "run", 0),
    ("yarn", "dlx", 0),
    ("yarn", "exec", 0),
];

/// The commands that a command runs. `None` when it runs none.
pub(crate) fn unwrap_command(name: &str, args: &[Word], stdin: &Stdin) -> Option<Unwrapped> {
    match name {
        "find" => find(args, stdin),
        "su" | "runuser" => su(args, stdin),
        "tar" | "bsdtar" => tar(args, stdin),
        "ssh" | "sftp" | "scp" | "rsync" => remote(args, stdin),
        "vim" | "vi" | "nvim" | "ex" | "view" => editor(args, stdin),
        "trap" => first_script(args, stdin, &[]),
        "alias" => aliases(args, stdin),
        "script" | "flock" => with_dash_c(args, stdin),
        "make" | "gmake" | "ninja" | "just" => make(args, stdin),
        "cmake" => cmake(args, stdin),
        _ if unversioned(name) == "python" => module(args, stdin),
        _ => runner(name, args, stdin),
    }
}

/// `find`: it reads, unless it deletes, writes or runs something.
fn find(args: &[Word], stdin: &Stdin) -> Option<Unwrapped> {
    let mut unwrapped = Unwrapped::new(stdin);
    let mut at = 0;
    while let Some(word) = args.get(at) {
        match word.text.as_str() {
            "-delete" => unwrapped.categories.push(Destructive),
            "-fprint" | "-fprint0" | "-fprintf" | "-fls" => unwrapped.categories.push(Mutating),
            "-exec" | "-execdir" | "-ok" | "-okdir" => {
                let rest = &args[at + 1..];
                let end = rest
                    .iter()
                    .position(|w| matches!(w.text.as_str(), ";" | "+"));
                let mut command = rest[..end.unwrap_or(rest.len())].to_vec();
                if word.text.starts_with("-ok") {
                    unwrapped.categories.push(Interactive);
                }
                at += command.len() + 1;
                if command.is_empty() {
                    unwrapped.categories.push(Unknown);
                }
                // `find` puts a name in the place of the braces.
                for word in command.iter_mut().filter(|w| w.text == "{}") {
                    word.text = "./found".to_owned();
                }
                unwrapped.commands.push(command);
            }
            _ if word.starts_unknown() => unwrapped.categories.push(Mutating),
            _ => {}
        }
        at += 1;
    }
    let first_exec = args
        .iter()
        .position(|w| w.text.starts_with("-exec") || w.text.starts_with("-ok"));
    unwrapped.own_arguments = first_exec.unwrap_or(args.len());
    if unwrapped.categories.is_empty() {
        unwrapped.categories.push(ReadOnly);
    }
    Some(unwrapped)
}

/// `tar` with an option that runs a program. `None` without one.
fn tar(args: &[Word], stdin: &Stdin) -> Option<Unwrapped> {
    let mut unwrapped = Unwrapped::new(stdin).is(&[Mutating]);
    for (i, word) in args.iter().enumerate() {
        let text = word.text.as_str();
        let value = text.split_once('=').map(|(_, v)| v.to_owned());
        let value = value
            .or_else(|| args.get(i + 1).map(|w| w.text.clone()))
            .unwrap_or_default();
        if text.starts_with("--checkpoint-action") {
            let script = value.strip_prefix("exec=").unwrap_or_default();
            unwrapped.scripts.push(Word::fixed(script));
        } else if [
            "--to-command",
            "--use-compress-program",
            "--info-script",
            "--rsh-command",
        ]
        .iter()
        .any(|option| text.starts_with(option))
            || text == "-I"
            || text == "-F"
        {
            unwrapped.scripts.push(Word::fixed(value));
        } else if let Some(joined) = text.strip_prefix("-I").or(text.strip_prefix("-F")) {
            unwrapped.scripts.push(Word::fixed(joined));
        }
    }
    (!unwrapped.scripts.is_empty()).then_some(unwrapped)
}

/// `ssh`, `scp`, `sftp` and `rsync` with an option that runs a local command.
fn remote(args: &[Word], stdin: &Stdin) -> Option<Unwrapped> {
    let mut unwrapped = Unwrapped::new(stdin).is(&[Networked, Mutating]);
    for (i, word) in args.iter().enumerate() {
        let next = args.get(i + 1).map(|w| w.text.as_str()).unwrap_or_default();
        let text = word.text.as_str();
        let option = if text == "-o" {
            next
        } else {
            text.strip_prefix("-o").unwrap_or(text)
        };
        let lower = option.to_ascii_lowercase();
        let commands = ["proxycommand", "localcommand", "knownhostscommand"];
        if commands.iter().any(|command| lower.starts_with(command)) {
            let value = option.split_once(['=', ' ']).map_or("", |(_, v)| v);
            unwrapped.scripts.push(Word::fixed(value));
        } else if matches!(text, "-e" | "--rsh") {
            unwrapped.scripts.push(Word::fixed(next));
        } else if let Some(value) = text
            .strip_prefix("--rsh=")
            .or(text.strip_prefix("--rsync-path="))
        {
            unwrapped.scripts.push(Word::fixed(value));
        }
    }
    (!unwrapped.scripts.is_empty()).then_some(unwrapped)
}

/// An editor with a command to run: `vim -c ':!cmd'`.
fn editor(args: &[Word], stdin: &Stdin) -> Option<Unwrapped> {
    let mut unwrapped = Unwrapped::new(stdin).is(&[Interactive, Mutating]);
    for (i, word) in args.iter().enumerate() {
        let text = word.text.as_str();
        let cluster = text.starts_with('-') && !text.starts_with("--") && text.ends_with('c');
        let command = match text {
            "--cmd" | "-S" => args.get(i + 1).map(|w| w.text.as_str()),
            _ if cluster => args.get(i + 1).map(|w| w.text.as_str()),
            _ => text.strip_prefix("+").or_else(|| text.strip_prefix("-c")),
        };
        let shell = command
            .map(|c| c.trim_start_matches([':', ' ']))
            .and_then(|c| {
                c.strip_prefix('!')
                    .or_else(|| c.strip_prefix("r!"))
                    .or_else(|| c.strip_prefix("r !"))
            });
        unwrapped.scripts.extend(shell.map(Word::fixed));
    }
    (!unwrapped.scripts.is_empty()).then_some(unwrapped)
}

fn first_script(args: &[Word], stdin: &Stdin, adds: &[Category]) -> Option<Unwrapped> {
    let script = args
        .iter()
        .find(|w| !w.text.starts_with('-') || w.text == "-")?;
    let unwrapped = Unwrapped::new(stdin).is(adds);
    Some(if script.text == "-" {
        unwrapped.is(&[ReadOnly])
    } else {
        unwrapped.script(script.clone())
    })
}

fn aliases(args: &[Word], stdin: &Stdin) -> Option<Unwrapped> {
    let mut unwrapped = Unwrapped::new(stdin).is(&[ReadOnly]);
    for word in args {
        if let Some((_, value)) = word.text.split_once('=') {
            unwrapped.scripts.push(Word {
                text: value.to_owned(),
                ..word.clone()
            });
        }
    }
    Some(unwrapped)
}

/// `script -c text` and `flock file -c text`, or `flock file command`.
fn with_dash_c(args: &[Word], stdin: &Stdin) -> Option<Unwrapped> {
    let unwrapped = Unwrapped::new(stdin).is(&[Mutating]);
    let own = options_end(&["-w", "-E", "--timeout"], args) + 2;
    let own = &args[..own.min(args.len())];
    match own.iter().position(|w| is_option(w, &["-c", "--command"])) {
        Some(at) if args[at].text.contains('=') => {
            let (_, script) = args[at].text.split_once('=')?;
            Some(unwrapped.script(Word {
                text: script.to_owned(),
                ..args[at].clone()
            }))
        }
        Some(at) => Some(match args.get(at + 1) {
            Some(script) => unwrapped.script(script.clone()),
            None => unwrapped.is(&[Unknown]),
        }),
        None => {
            let start = options_end(&["-w", "-E", "--timeout"], args) + 1;
            Some(inner(unwrapped, args, start))
        }
    }
}

/// `make SHELL=…` and `make --eval=…`, which change what every recipe runs.
fn make(args: &[Word], stdin: &Stdin) -> Option<Unwrapped> {
    let changed = args.iter().any(|w| {
        w.text.starts_with("SHELL=")
            || w.text.starts_with(".SHELLFLAGS=")
            || w.text.contains("--eval")
    });
    changed.then(|| {
        let mut unwrapped = Unwrapped::new(stdin).is(&[Mutating, Unknown]);
        unwrapped.assignments = args.iter().filter(|w| is_assignment(w)).cloned().collect();
        let shells = args.iter().filter_map(|w| w.text.strip_prefix("SHELL="));
        unwrapped.scripts.extend(shells.map(Word::fixed));
        let embedded_commands = embedded::embedded_commands("make", args, stdin);
        unwrapped
            .scripts
            .extend(embedded_commands.into_iter().map(Word::fixed));
        unwrapped
    })
}

/// `cmake -E env command`, and the like.
fn cmake(args: &[Word], stdin: &Stdin) -> Option<Unwrapped> {
    let at = args.iter().position(|word| word.text == "-E")?;
    let start = match args.get(at + 1)?.text.as_str() {
        "time" => at + 2,
        "chdir" => at + 3,
        "env" => {
            let own = |word: &Word| word.text.starts_with('-') || is_assignment(word);
            let after = &args[at + 2..];
            at + 2 + after.iter().take_while(|word| own(word)).count()
        }
        _ => return None,
    };
    let mut unwrapped = Unwrapped::new(stdin).is(&[Mutating]);
    let own = &args[at..start.min(args.len())];
    unwrapped.assignments = own
        .iter()
        .filter(|word| is_assignment(word))
        .cloned()
        .collect();
    Some(inner(unwrapped, args, start))
}

/// `python -m pip …` is `pip …`.
fn module(args: &[Word], stdin: &Stdin) -> Option<Unwrapped> {
    let at = args.iter().position(|w| w.text == "-m")?;
    let mut unwrapped = Unwrapped::new(stdin).is(&[Mutating]);
    unwrapped.own_arguments = at;
    let tool = matches!(
        args.get(at + 1)?.text.as_str(),
        "pip" | "pipx" | "twine" | "poetry" | "uv" | "hatch" | "flit" | "build" | "virtualenv"
    );
    if tool && args[..at].iter().all(|w| w.text.starts_with('-')) {
        unwrapped.commands.push(args[at + 1..].to_vec());
        return Some(unwrapped);
    }
    None
}

/// The shell text of `npm exec -c text` and `npx -c text`.
pub(crate) fn called(args: &[Word]) -> Option<Word> {
    let at = args
        .iter()
        .position(|w| matches!(w.text.as_str(), "-c" | "--call"))?;
    args.get(at + 1).cloned()
}

fn runner(name: &str, args: &[Word], stdin: &Stdin) -> Option<Unwrapped> {
    let (_, _, positionals) = RUNNERS
        .iter()
        .find(|(tool, verb, _)| *tool == name && args.first().is_some_and(|w| w.text == *verb))?;
    let options = options_end(
        &["-n", "--name", "--with", "--python", "-p", "-x"],
        &args[1..],
    );
    let mut unwrapped = Unwrapped::new(stdin).is(&[Mutating]);
    if matches!(name, "bun" | "npm" | "pipx" | "pnpm" | "yarn") {
        // A package that is not installed is downloaded.
        unwrapped.categories.push(Networked);
        unwrapped.scripts.extend(called(args));
    }
    let dashes = args.get(1 + options + positionals);
    let dashes = usize::from(dashes.is_some_and(|word| word.text == "--"));
    Some(inner(unwrapped, args, 1 + options + positionals + dashes))
}

/// `su -c text`, `runuser -u name -- command`.
fn su(args: &[Word], stdin: &Stdin) -> Option<Unwrapped> {
    let mut unwrapped = Unwrapped::new(stdin).is(&[Unknown]);
    unwrapped.note =
        Some("the sandbox has only one user, so su cannot change to another".to_owned());
    for (i, word) in args.iter().enumerate() {
        if is_option(word, &["-c", "--command"]) {
            let value = word.text.strip_prefix("--command=").map(Word::fixed);
            unwrapped
                .scripts
                .extend(value.or_else(|| args.get(i + 1).cloned()));
        }
    }
    // `runuser -u name -- command`
    let user = args
        .iter()
        .position(|word| is_option(word, &["-u", "--user"]));
    if let Some(at) = user {
        let joined = args[at].text.contains('=');
        let start = at + 2 - usize::from(joined);
        let dashes = usize::from(args.get(start).is_some_and(|word| word.text == "--"));
        unwrapped
            .commands
            .extend(args.get(start + dashes..).map(<[Word]>::to_vec));
    }
    if unwrapped.scripts.is_empty() && unwrapped.commands.is_empty() {
        unwrapped.categories.push(Interactive);
    }
    Some(unwrapped)
}
