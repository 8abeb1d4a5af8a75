//! Programs that run other programs: what they would run.

use crate::Category::{self, *};
use crate::commands::is_option;
use crate::judge::Stdin;
use crate::word::Word;

/// A wrapper taken apart.
#[derive(Debug)]
pub(crate) struct Unwrapped {
    /// What the wrapper itself is, beyond what it runs.
    pub categories: Vec<Category>,
    pub note: Option<String>,
    /// How many arguments are the wrapper's own.
    pub own_arguments: usize,
    pub assignments: Vec<Word>,
    /// Shell text it runs.
    pub scripts: Vec<Word>,
    /// Commands it runs.
    pub commands: Vec<Vec<Word>>,
    /// What they read.
    pub stdin: Stdin,
}

impl Unwrapped {
    fn new(stdin: &Stdin) -> Unwrapped {
        Unwrapped {
            categories: Vec::new(),
            note: None,
            own_arguments: usize::MAX,
            assignments: Vec::new(),
            scripts: Vec::new(),
            commands: Vec::new(),
            stdin: stdin.clone(),
        }
    }

    fn is(mut self, categories: &[Category]) -> Unwrapped {
        self.categories.extend_from_slice(categories);
        self
    }

    fn script(mut self, script: Word) -> Unwrapped {
        self.scripts.push(script);
        self
    }
}

/// How a simple wrapper's options are laid out before the command it runs.
struct Layout {
    name: &'static str,
    /// Options whose value is the next argument.
    valued: &'static [&'static str],
    /// Arguments of its own before the command.
    positionals: usize,
    /// What the wrapper adds to the command.
    adds: &'static [Category],
}

const fn plain(name: &'static str) -> Layout {
    Layout {
        name,
        valued: &[],
        positionals: 0,
        adds: &[],
    }
}

const LAYOUTS: &[Layout] = &[
    plain("nohup"),
    plain("setsid"),
    plain("builtin"),
    plain("unbuffer"),
    plain("catchsegv"),
    plain("winpty"),
    Layout {
        valued: &["-a"],
        ..plain("exec")
    },
    Layout {
        valued: &["-n", "--adjustment"],
        ..plain("nice")
    },
    Layout {
        valued: &["-c", "-n", "-p", "--class", "--classdata"],
        ..plain("ionice")
    },
    Layout {
        valued: &["-k", "-s", "--kill-after", "--signal"],
        positionals: 1,
        ..plain("timeout")
    },
    Layout {
        valued: &["-i", "-o", "-e", "--input", "--output", "--error"],
        ..plain("stdbuf")
    },
    Layout {
        valued: &["-o", "-f", "--output", "--format"],
        ..plain("time")
    },
    Layout {
        valued: &["-c", "--cpu-list"],
        positionals: 1,
        ..plain("taskset")
    },
    Layout {
        positionals: 1,
        ..plain("chrt")
    },
    Layout {
        positionals: 1,
        ..plain("faketime")
    },
    Layout {
        positionals: 1,
        ..plain("setarch")
    },
    Layout {
        valued: &["-o", "-e", "-p", "-s", "-u"],
        adds: &[Mutating],
        ..plain("strace")
    },
    Layout {
        valued: &["-o", "-e", "-p", "-s", "-u"],
        adds: &[Mutating],
        ..plain("ltrace")
    },
    Layout {
        valued: &["-o"],
        adds: &[Mutating],
        ..plain("valgrind")
    },
    Layout {
        valued: &["-n", "-d"],
        adds: &[Interactive],
        ..plain("watch")
    },
    Layout {
        valued: &["-u", "-C"],
        adds: &[Unknown],
        ..plain("doas")
    },
    Layout {
        valued: &[
            "-u", "-g", "-h", "-p", "-C", "-r", "-t", "-T", "-U", "-D", "-R", "--user", "--group",
            "--host", "--prompt", "--chdir", "--chroot",
        ],
        adds: &[Unknown],
        ..plain("sudo")
    },
    Layout {
        valued: &[
            "-I",
            "-n",
            "-P",
            "-L",
            "-s",
            "-d",
            "-a",
            "-E",
            "--max-args",
            "--max-procs",
            "--max-lines",
            "--delimiter",
            "--arg-file",
            "--replace",
            "--max-chars",
        ],
        ..plain("xargs")
    },
    Layout {
        valued: &["-j", "-n", "-N", "--jobs"],
        adds: &[Mutating],
        ..plain("parallel")
    },
    Layout {
        adds: &[Interactive],
        ..plain("entr")
    },
    Layout {
        adds: &[Mutating],
        ..plain("npx")
    },
    Layout {
        adds: &[Mutating],
        ..plain("bunx")
    },
];

/// Wrappers that are a tool's subcommand: `poetry run pytest`.
const RUNNERS: &[(&str, &str, usize)] = &[
    ("bundle", "exec", 0),
    ("cargo", "watch", 0),
    ("conda", "run", 0),
    ("direnv", "exec", 1),
    ("hatch", "run", 0),
    ("nvm", "exec", 1),
    ("pipenv", "run", 0),
    ("pipx", "run", 0),
    ("poetry", "run", 0),
    ("rustup", "run", 1),
    ("uv", "run", 0),
];

/// Takes a wrapper apart; `None` when the program runs no other that it names.
pub(crate) fn unwrap(name: &str, args: &[Word], stdin: &Stdin) -> Option<Unwrapped> {
    let new = || Unwrapped::new(stdin);
    match name {
        "bash" | "sh" | "dash" | "zsh" | "ksh" | "ash" | "fish" | "rbash" | "mksh" => {
            shell(args, stdin)
        }
        "eval" => Some(new().script(joined(args))),
        "env" => Some(env(args, stdin)),
        "command" if args.iter().any(|w| is_option(w, &["-v", "-V"])) => None,
        "command" => after_options(&plain("command"), args, stdin),
        "su" | "runuser" => su(args, stdin),
        "busybox" | "toybox" => Some(inner(new(), args, 0)),
        "find" => find(args, stdin),
        "tar" | "bsdtar" => tar(args, stdin),
        "ssh" | "sftp" | "scp" | "rsync" => remote(args, stdin),
        "vim" | "vi" | "nvim" | "ex" | "view" => editor(args, stdin),
        "trap" => first_script(args, stdin, &[]),
        "alias" => aliases(args, stdin),
        "script" | "flock" => with_dash_c(args, stdin),
        "make" | "gmake" | "ninja" | "just" => make(args, stdin),
        "python" | "python3" => module(args, stdin),
        _ if name.starts_with("ld-linux") || name.starts_with("ld-musl") => {
            Some(inner(new().is(&[Unknown]), args, 0))
        }
        _ => runner(name, args, stdin).or_else(|| {
            let layout = LAYOUTS.iter().find(|layout| layout.name == name)?;
            after_options(layout, args, stdin)
        }),
    }
}

/// The command that begins at `start`; an open place if there may be one that is not seen.
fn inner(mut unwrapped: Unwrapped, args: &[Word], start: usize) -> Unwrapped {
    unwrapped.own_arguments = start;
    if start < args.len() {
        unwrapped.commands.push(args[start..].to_vec());
    }
    unwrapped
}

fn joined(args: &[Word]) -> Word {
    Word {
        text: args
            .iter()
            .map(|w| w.text.as_str())
            .collect::<Vec<_>>()
            .join(" "),
        dynamic: args.iter().any(|w| w.dynamic),
        ..Word::default()
    }
}

/// Where the options of a wrapper end.
fn options_end(valued: &[&str], args: &[Word]) -> usize {
    let mut at = 0;
    while let Some(word) = args.get(at) {
        let text = word.text.as_str();
        if text == "--" {
            return at + 1;
        }
        if !text.starts_with('-') || text == "-" {
            return at;
        }
        at += if takes_next(valued, text) { 2 } else { 1 };
    }
    args.len()
}

/// `-n 5` and `-En 5` take the next argument; `-n5` and `--max-args=5` do not.
fn takes_next(valued: &[&str], text: &str) -> bool {
    if text.starts_with("--") {
        return valued.contains(&text);
    }
    let letters = text[1..].char_indices();
    for (i, letter) in letters {
        if valued
            .iter()
            .any(|v| v.strip_prefix('-') == Some(letter.encode_utf8(&mut [0; 4])))
        {
            return i + 1 + letter.len_utf8() == text.len();
        }
    }
    false
}

fn after_options(layout: &Layout, args: &[Word], stdin: &Stdin) -> Option<Unwrapped> {
    let mut unwrapped = Unwrapped::new(stdin).is(layout.adds);
    let mut start = options_end(layout.valued, args);
    if matches!(layout.name, "sudo" | "doas") {
        unwrapped.note = Some("there is no root inside: sudo has nothing to give".to_owned());
        if args[..start.min(args.len())]
            .iter()
            .any(|w| is_option(w, &["-s", "-i"]))
        {
            unwrapped.categories.push(Interactive);
        }
        while args.get(start).is_some_and(is_assignment) {
            unwrapped.assignments.push(args[start].clone());
            start += 1;
        }
    }
    start += layout.positionals;
    if args[..start.min(args.len())]
        .iter()
        .any(Word::starts_unknown)
    {
        unwrapped.categories.push(Unknown);
    }
    let mut unwrapped = inner(unwrapped, args, start);
    match (layout.name, unwrapped.commands.first_mut()) {
        ("xargs" | "parallel", Some(command)) => {
            // What comes down the pipe are further arguments.
            command.push(Word::unknown());
            unwrapped.stdin = Stdin::Inherited;
        }
        ("watch", Some(_)) => {
            unwrapped.scripts.push(joined(&args[start..]));
            unwrapped.commands.clear();
        }
        ("npx" | "bunx", Some(command)) => {
            // Without a local copy it would be downloaded.
            let bare = command[0]
                .text
                .split('@')
                .next()
                .unwrap_or_default()
                .to_owned();
            command[0].text = if bare.is_empty() {
                command[0].text.clone()
            } else {
                bare
            };
            unwrapped.categories.push(Networked);
        }
        ("exec" | "setsid", None) => unwrapped.categories.push(ReadOnly),
        _ => {}
    }
    Some(unwrapped)
}

fn is_assignment(word: &Word) -> bool {
    word.text.split_once('=').is_some_and(|(name, _)| {
        !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    })
}

fn env(args: &[Word], stdin: &Stdin) -> Unwrapped {
    const VALUED: &[&str] = &[
        "-u",
        "-C",
        "-S",
        "-P",
        "-a",
        "--unset",
        "--chdir",
        "--split-string",
        "--argv0",
    ];
    let mut unwrapped = Unwrapped::new(stdin);
    let mut start = options_end(VALUED, args);
    for (i, word) in args[..start.min(args.len())].iter().enumerate() {
        let text = word.text.as_str();
        let packed = text
            .strip_prefix("--split-string=")
            .map(str::to_owned)
            .or_else(|| {
                let (_, value) = text
                    .strip_prefix('-')
                    .filter(|t| !t.starts_with('-'))?
                    .split_once('S')?;
                let next = args.get(i + 1).map(|w| w.text.clone()).unwrap_or_default();
                Some(if value.is_empty() {
                    next
                } else {
                    value.to_owned()
                })
            });
        if let Some(packed) = packed {
            let rest = args.get(start..).map(joined).unwrap_or_default();
            let text = format!("env {packed} {}", rest.text);
            unwrapped.own_arguments = start;
            return unwrapped.script(Word {
                text,
                dynamic: word.dynamic,
                ..rest
            });
        }
    }
    while args.get(start).is_some_and(is_assignment) {
        unwrapped.assignments.push(args[start].clone());
        start += 1;
    }
    let unwrapped = inner(unwrapped, args, start);
    if start >= args.len() {
        unwrapped.is(&[ReadOnly])
    } else {
        unwrapped
    }
}

/// A shell: `-c text`, a script, or what it reads from its input.
fn shell(args: &[Word], stdin: &Stdin) -> Option<Unwrapped> {
    let valued: &[&str] = &["-o", "-O", "--rcfile", "--init-file"];
    let mut at = 0;
    let mut takes_text = false;
    while let Some(word) = args.get(at) {
        let text = word.text.as_str();
        if !text.starts_with(['-', '+']) || text == "-" || text == "--" {
            break;
        }
        if word.starts_unknown() {
            return Some(Unwrapped::new(stdin).is(&[Unknown]));
        }
        takes_text |= !text.starts_with("--") && text.starts_with('-') && text.contains('c');
        at += if takes_next(valued, text) || text == "+o" || text == "+O" {
            2
        } else {
            1
        };
    }
    while args
        .get(at)
        .is_some_and(|w| matches!(w.text.as_str(), "-" | "--"))
    {
        at += 1;
    }
    let mut unwrapped = Unwrapped::new(stdin);
    unwrapped.own_arguments = at + 1;
    match (args.get(at), stdin) {
        (Some(script), _) if takes_text => {
            unwrapped.own_arguments = at;
            let mut script = script.clone();
            script.dynamic |= script.text.contains("$@") || script.text.contains("$1");
            // `bash -c '"$@"' _ curl x`: the arguments may be the command.
            let extra = args.get(at + 2..).unwrap_or_default();
            if !extra.is_empty() {
                unwrapped.commands.push(extra.to_vec());
            }
            Some(unwrapped.script(script))
        }
        (None, _) if takes_text => Some(unwrapped.is(&[Unknown])),
        (Some(word), _) if !args[..at].iter().any(|w| is_option(w, &["-s"])) => {
            let open = word.dynamic || word.text.starts_with("/dev/");
            Some(unwrapped.is(if open {
                &[Mutating, Unknown]
            } else {
                &[Mutating]
            }))
        }
        (_, Stdin::Text(text)) => Some(unwrapped.script(Word::fixed(text.clone()))),
        (_, Stdin::Piped) => Some(unwrapped.is(&[Unknown])),
        (_, Stdin::Inherited) => Some(unwrapped.is(&[Interactive])),
    }
}

fn su(args: &[Word], stdin: &Stdin) -> Option<Unwrapped> {
    let mut unwrapped = Unwrapped::new(stdin).is(&[Unknown]);
    unwrapped.note = Some("there is no other user inside: su has nothing to give".to_owned());
    for (i, word) in args.iter().enumerate() {
        if is_option(word, &["-c", "--command"]) {
            let value = word.text.strip_prefix("--command=").map(Word::fixed);
            unwrapped
                .scripts
                .extend(value.or_else(|| args.get(i + 1).cloned()));
        }
    }
    if unwrapped.scripts.is_empty() {
        unwrapped.categories.push(Interactive);
    }
    Some(unwrapped)
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
                // The name that was found takes the place of the braces.
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

/// `tar` with an option that runs a program; plain archives are ordinary commands.
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
        }
    }
    (!unwrapped.scripts.is_empty()).then_some(unwrapped)
}

/// `ssh` and its kin with a proxy or a shell of their own.
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
        if lower.starts_with("proxycommand") || lower.starts_with("localcommand") {
            let value = option.split_once(['=', ' ']).map_or("", |(_, v)| v);
            unwrapped.scripts.push(Word::fixed(value));
        } else if matches!(text, "-e" | "--rsh") {
            unwrapped.scripts.push(Word::fixed(next));
        } else if let Some(value) = text.strip_prefix("--rsh=") {
            unwrapped.scripts.push(Word::fixed(value));
        }
    }
    (!unwrapped.scripts.is_empty()).then_some(unwrapped)
}

/// An editor told to run something: `vim -c ':!cmd'`.
fn editor(args: &[Word], stdin: &Stdin) -> Option<Unwrapped> {
    let mut unwrapped = Unwrapped::new(stdin).is(&[Interactive, Mutating]);
    for (i, word) in args.iter().enumerate() {
        let text = word.text.as_str();
        let command = match text {
            "-c" | "--cmd" | "-S" => args.get(i + 1).map(|w| w.text.as_str()),
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
    match args.iter().position(|w| is_option(w, &["-c", "--command"])) {
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

/// `make SHELL=…` and `make --eval=…` change what every recipe means.
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
        unwrapped
    })
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

fn runner(name: &str, args: &[Word], stdin: &Stdin) -> Option<Unwrapped> {
    let (_, _, positionals) = RUNNERS
        .iter()
        .find(|(tool, verb, _)| *tool == name && args.first().is_some_and(|w| w.text == *verb))?;
    let options = options_end(
        &["-n", "--name", "--with", "--python", "-p", "-x"],
        &args[1..],
    );
    let unwrapped = Unwrapped::new(stdin).is(&[Mutating]);
    Some(inner(unwrapped, args, 1 + options + positionals))
}
