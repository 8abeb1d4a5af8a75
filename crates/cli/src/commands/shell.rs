//! `avfs shell`: the verbs of a vault at a prompt, with a directory that relative paths start from.
//!
//! A line is a verb as after `avfs`, `cd`, `pwd`, `exit`, or `!` and a command for the vault's sandbox. If standard input
//! is no terminal, its lines are run like a script. An error ends nothing.

mod prompt;
mod words;

use super::paths;
use crate::args::{self, Cli, ProxyVerb, Verb};
use crate::environment;
use crate::error::{Error, Result};
use crate::exit;
use crate::output::changes::printable;
use crate::output::{Output, say};
use crate::session::Session;
use avfs_api::wire::{Stat, TypeWord, VaultInfo};
use clap::parser::ValueSource;
use clap::{ArgMatches, FromArgMatches};
use prompt::{Input, Line};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

/// Verbs that have no place at a prompt over a vault.
const ELSEWHERE: [&str; 11] = [
    "shell",
    "serve",
    "service",
    "mcp",
    "daemon",
    "demo",
    "doctor",
    "completions",
    "aliases",
    "man",
    "pwd",
];

const HELP: &str = "\
ls, cat, write, tree, grep, diff, checkpoint, …   as after `avfs`; relative paths start where you are
cd [DIR], pwd                                     change the directory, print it
!COMMAND                                          run a command in the vault's sandbox, here
VERB --help, help, exit";

pub fn run(session: Session, output: Output) -> Result<u8> {
    let mut shell = Shell {
        session,
        output,
        cwd: b"/".to_vec(),
        last: exit::OK,
    };
    let info = shell.session.call(&VaultInfo {})?;
    shell
        .enter(OsStr::new("/workspace"))
        .or_else(|_| shell.enter(OsStr::new("/")))?;
    let mut input = Input::open(&environment::home()?)?;
    loop {
        let place = String::from_utf8_lossy(&shell.cwd).into_owned();
        let line = input.line(&format!("{}:{}> ", info.item.name, printable(&place)))?;
        match line {
            Line::Text(line) => {
                if shell.obey(line.trim()) == Next::End {
                    return Ok(shell.last);
                }
            }
            Line::Interrupted => {}
            Line::End => return Ok(shell.last),
        }
    }
}

/// Refuses verbs that need no vault, or take the terminal for themselves.
fn is_for_a_prompt(verb: &str) -> Result<()> {
    match ELSEWHERE.contains(&verb) {
        true => Err(Error::Invalid {
            text: format!("{verb} is not for this prompt"),
            hint: Some(format!("leave it with `exit`, and run `avfs {verb}`")),
        }),
        false => Ok(()),
    }
}

#[derive(PartialEq, Eq)]
enum Next {
    Line,
    End,
}

struct Shell {
    session: Session,
    output: Output,
    cwd: Vec<u8>,
    /// The exit code of the last line.
    last: u8,
}

impl Shell {
    fn obey(&mut self, line: &str) -> Next {
        if line.is_empty() || line.starts_with('#') {
            return Next::Line;
        }
        if let "exit" | "quit" = line {
            return Next::End;
        }
        let done = match line.strip_prefix('!') {
            Some(command) => self.command(command.trim()),
            None => words::split(line).and_then(|words| self.verb(&words)),
        };
        self.last = match done {
            Ok(code) => code,
            Err(Error::OutputClosed) => {
                self.last = exit::OUTPUT_CLOSED;
                return Next::End;
            }
            Err(Error::Api(avfs_api::Error::Interrupted)) => exit::INTERRUPTED,
            Err(error) => {
                self.output.error(&error);
                1
            }
        };
        super::tell_retried();
        Next::Line
    }

    /// Runs a line of shell text in the sandbox, in the directory of the prompt.
    fn command(&mut self, text: &str) -> Result<u8> {
        if text.is_empty() {
            return Err(Error::Invalid {
                text: "there is no command".into(),
                hint: Some("for example !make test".into()),
            });
        }
        let words = ["exec", "--shell", text].map(OsString::from);
        self.parsed(&words)
    }

    fn verb(&mut self, words: &[OsString]) -> Result<u8> {
        let first = words.first().and_then(|word| word.to_str());
        match (first.unwrap_or_default(), &words[1..]) {
            ("cd", []) => self.enter(OsStr::new("/")).map(|()| exit::OK),
            ("cd", [dir]) => self.enter(dir).map(|()| exit::OK),
            ("cd", _) => Err(Error::Invalid {
                text: "cd takes one directory".into(),
                hint: None,
            }),
            ("pwd", []) => {
                let place = String::from_utf8_lossy(&self.cwd).into_owned();
                say(&printable(&place)).map(|()| exit::OK)
            }
            ("help", []) => say(&HELP).map(|()| exit::OK),
            _ => self.parsed(words),
        }
    }

    /// Runs the words as after `avfs`.
    fn parsed(&mut self, words: &[OsString]) -> Result<u8> {
        let line: Vec<OsString> = [OsString::from("avfs")]
            .iter()
            .chain(words)
            .cloned()
            .collect();
        let parsed = args::command().try_get_matches_from(&line);
        let parsed = parsed.and_then(|found| Ok((Cli::from_arg_matches(&found)?, found)));
        let cli = match parsed {
            Ok((mut cli, found)) => {
                is_for_a_prompt(found.subcommand_name().unwrap_or_default())?;
                self.place(&mut cli.verb, &found);
                cli
            }
            Err(error) => return Ok(crate::usage::refuse(&error, &line)),
        };
        let output = match cli.global.json {
            true => Output::json(),
            false => self.output,
        };
        let verb = match cli.verb {
            Verb::Proxy(ProxyVerb::Exec(args)) => Verb::Exec(args),
            verb => verb,
        };
        match cli.global.vault {
            Some(vault) if vault != self.session.vault() => {
                let mut other = Session::from_environment(Some(vault))?;
                super::with_session(verb, &mut other, output)
            }
            _ => super::with_session(verb, &mut self.session, output),
        }
    }

    /// What is left out means the directory of the prompt, not the top of the vault.
    fn place(&self, verb: &mut Verb, found: &ArgMatches) {
        let here = || OsString::from_vec(self.cwd.clone());
        let is_left_out = found.subcommand().is_some_and(|(_, it)| {
            let path = it.try_contains_id("path").is_ok();
            path && it.value_source("path") == Some(ValueSource::DefaultValue)
        });
        match verb {
            Verb::Exec(args) | Verb::Proxy(ProxyVerb::Exec(args)) => {
                args.run.cwd.get_or_insert_with(here);
            }
            Verb::Ls(args) if is_left_out => args.path = here(),
            Verb::Tree(args) if is_left_out => args.path = here(),
            Verb::Find(args) if is_left_out => args.path = here(),
            Verb::Grep(args) if is_left_out => args.path = here(),
            _ => {}
        }
    }

    fn enter(&mut self, dir: &OsStr) -> Result<()> {
        let to = paths::joined(&self.cwd, dir.as_bytes());
        let (path, path_b64) = avfs_api::wire::to_text(to.clone());
        let found = self.session.call(&Stat { path, path_b64 })?;
        if found.attributes.kind != TypeWord::Directory {
            return Err(Error::Invalid {
                text: format!("{} is not a directory", found.path),
                hint: None,
            });
        }
        paths::change_directory(&to);
        self.cwd = to;
        Ok(())
    }
}
