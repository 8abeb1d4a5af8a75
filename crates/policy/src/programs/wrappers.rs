//! Programs whose purpose is to run another program: `env`, `sudo`, `timeout`, `xargs`, shells.

use super::category::Category::{self, *};
use super::embedded::{command_line, tail_command};
use super::options::is_option;
use super::runners;
use super::stdin::Stdin;
use crate::shell::Word;

/// A command that runs others, taken apart.
#[derive(Debug)]
pub(crate) struct Unwrapped {
    /// The categories of the wrapper itself.
    pub categories: Vec<Category>,
    pub note: Option<String>,
    /// How many of the arguments are for the wrapper itself.
    pub own_arguments: usize,
    pub assignments: Vec<Word>,
    /// Shell text it runs.
    pub scripts: Vec<Word>,
    /// Commands it runs.
    pub commands: Vec<Vec<Word>>,
    /// The standard input of these commands.
    pub stdin: Stdin,
    /// The commands that it runs are known only when they run.
    pub dynamic: bool,
}

impl Unwrapped {
    pub fn new(stdin: &Stdin) -> Unwrapped {
        Unwrapped {
            categories: Vec::new(),
            note: None,
            own_arguments: usize::MAX,
            assignments: Vec::new(),
            scripts: Vec::new(),
            commands: Vec::new(),
            stdin: stdin.clone(),
            dynamic: false,
        }
    }

    pub fn is(mut self, categories: &[Category]) -> Unwrapped {
        self.categories.extend_from_slice(categories);
        self
    }

    pub fn script(mut self, script: Word) -> Unwrapped {
        self.scripts.push(script);
        self
    }
}

/// The arguments of a wrapper before the command that it runs.
struct Layout {
    name: &'static str,
    /// Options whose value is the next argument.
    valued: &'static [&'static str],
    /// How many arguments follow the options.
    positionals: usize,
    /// The categories of the wrapper itself.
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

/// The commands that a command runs. `None` when it names none.
pub(crate) fn unwrap_command(name: &str, args: &[Word], stdin: &Stdin) -> Option<Unwrapped> {
    let new = || Unwrapped::new(stdin);
    match name {
        "bash" | "sh" | "dash" | "zsh" | "ksh" | "ash" | "fish" | "rbash" | "mksh" => {
            shell(args, stdin)
        }
        "eval" => Some(new().script(joined(args))),
        "env" => Some(env(args, stdin)),
        "command"
            if args[..options_end(&[], args)]
                .iter()
                .any(|w| is_option(w, &["-v", "-V"])) =>
        {
            None
        }
        "command" => after_options(&plain("command"), args, stdin),
        // `jobs -x` runs a command with its job specifications replaced.
        "jobs" if args.first().is_some_and(|word| word.text == "-x") => Some(inner(new(), args, 1)),
        "busybox" | "toybox" => Some(inner(new(), args, 0)),
        _ if name.starts_with("ld-linux") || name.starts_with("ld-musl") => {
            Some(inner(new().is(&[Unknown]), args, 0))
        }
        _ => runners::unwrap_command(name, args, stdin).or_else(|| {
            let layout = LAYOUTS.iter().find(|layout| layout.name == name)?;
            after_options(layout, args, stdin)
        }),
    }
}

/// Adds the command that begins at the argument `start`, if there is one.
pub(crate) fn inner(mut unwrapped: Unwrapped, args: &[Word], start: usize) -> Unwrapped {
    unwrapped.own_arguments = start;
    if start < args.len() {
        unwrapped.commands.push(args[start..].to_vec());
    }
    unwrapped
}

fn joined(args: &[Word]) -> Word {
    let text = |words: &[&str]| words.join(" ");
    let words: Vec<&str> = args.iter().map(|w| w.text.as_str()).collect();
    let mut alternatives = Vec::new();
    for (i, word) in args.iter().enumerate() {
        for other in &word.alternatives {
            let mut words = words.clone();
            words[i] = other;
            alternatives.push(text(&words));
        }
    }
    let several = args
        .iter()
        .filter(|word| !word.alternatives.is_empty())
        .count()
        > 1;
    Word {
        text: text(&words),
        dynamic: args.iter().any(|w| w.dynamic),
        any_text: args.iter().any(|w| w.any_text),
        one_of_several: several || args.iter().any(|w| w.one_of_several),
        alternatives,
        ..Word::default()
    }
}

/// The index of the first argument that is not an option, or the value of one.
pub(crate) fn options_end(valued: &[&str], args: &[Word]) -> usize {
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

/// Whether an option takes the next argument: `-n 5` and `-En 5` do, `-n5` and `--max-args=5` do not.
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
        unwrapped.note =
            Some("the sandbox has no root user, so sudo gives no more rights".to_owned());
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
    if start > 0 {
        // An unknown option may take the next argument as its value, or not. So the rest is also tried from a
        // consequential program on.
        let tail = tail_command(args).into_iter().map(Word::fixed);
        unwrapped.scripts.extend(tail);
    }
    let mut unwrapped = inner(unwrapped, args, start);
    adapt_command(layout.name, args, &mut unwrapped);
    Some(unwrapped)
}

/// What some wrappers change about the command that follows their options.
fn adapt_command(wrapper: &str, args: &[Word], unwrapped: &mut Unwrapped) {
    match (wrapper, unwrapped.commands.first_mut()) {
        ("xargs" | "parallel", Some(command)) => {
            let words = command.split(|word| word.text.starts_with(":::"));
            let line = words.clone().next().map(joined).unwrap_or_default();
            if wrapper == "parallel" {
                // `parallel` runs its words as one line of shell text. Without words, each argument is a line.
                let lines = words.skip(usize::from(!line.text.is_empty())).flatten();
                unwrapped
                    .scripts
                    .extend(lines.filter(|_| line.text.is_empty()).cloned());
                unwrapped.scripts.push(line);
            }
            // The standard input becomes further arguments.
            command.push(Word::unknown());
            unwrapped.stdin = Stdin::Inherited;
        }
        ("watch", Some(command)) => {
            unwrapped.scripts.push(joined(command));
            unwrapped.commands.clear();
        }
        ("npx" | "bunx", Some(command)) => {
            // A package that is not installed is downloaded. `tool@1.2` is the program `tool`.
            let program = &mut command[0].text;
            let length = program.find('@').filter(|at| *at > 0);
            program.truncate(length.unwrap_or(program.len()));
            unwrapped.categories.push(Networked);
            unwrapped.scripts.extend(runners::called(args));
        }
        ("exec" | "setsid", None) => unwrapped.categories.push(ReadOnly),
        _ => {}
    }
}

pub(crate) fn is_assignment(word: &Word) -> bool {
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
    // A lone dash means `-i`. Every argument with a `=` is a variable, also with an unusual name.
    start += usize::from(args.get(start).is_some_and(|word| word.text == "-"));
    while args.get(start).is_some_and(|word| word.text.contains('=')) {
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

/// A shell runs the text of `-c`, a script, or its standard input.
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
    // `--rcfile <(…)` is executed, too.
    let own = &args[..at.min(args.len())];
    unwrapped.dynamic = own.iter().any(|word| word.text.contains("/dev/"));
    unwrapped.own_arguments = at + 1;
    match (args.get(at), stdin) {
        (Some(script), _) if takes_text => {
            unwrapped.own_arguments = at;
            let mut script = script.clone();
            script.dynamic |= script.text.contains("$@") || script.text.contains("$1");
            // `bash -c '"$@"' _ curl x` runs the arguments as a command.
            let first = if script.text.contains("$0") { 1 } else { 2 };
            let extra = args.get(at + first..).unwrap_or_default();
            let lines = extra.iter().filter_map(|word| command_line(&word.text));
            unwrapped.scripts.extend(lines.map(Word::fixed));
            if !extra.is_empty() {
                unwrapped.commands.push(extra.to_vec());
            }
            Some(unwrapped.script(script))
        }
        (None, _) if takes_text => Some(unwrapped.is(&[Unknown])),
        (Some(word), _) if !args[..at].iter().any(|w| is_option(w, &["-s"])) => {
            if let ("/dev/stdin", Stdin::Text(text)) = (word.text.as_str(), stdin) {
                return Some(unwrapped.script(Word::fixed(text.clone())));
            }
            let open = word.dynamic || word.text.starts_with("/dev/");
            unwrapped.dynamic |= word.text.starts_with("/dev/");
            Some(unwrapped.is(if open {
                &[Mutating, Unknown]
            } else {
                &[Mutating]
            }))
        }
        (_, Stdin::Text(text)) => Some(unwrapped.script(Word::fixed(text.clone()))),
        (_, Stdin::File) => Some(unwrapped.is(&[Unknown])),
        (_, Stdin::Piped) => {
            unwrapped.dynamic = true;
            Some(unwrapped.is(&[Unknown]))
        }
        (_, Stdin::Inherited) => Some(unwrapped.is(&[Interactive])),
    }
}
