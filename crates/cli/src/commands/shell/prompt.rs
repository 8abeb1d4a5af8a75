//! Where the lines of `avfs shell` come from: a person with history and completion, or a script.

use crate::args;
use crate::error::{Error, Result};
use rustyline::completion::{Completer, Pair};
use rustyline::error::ReadlineError;
use rustyline::history::FileHistory;
use rustyline::{CompletionType, Config, Context, Editor, Helper};
use std::ffi::OsString;
use std::io::{BufRead, IsTerminal, Read};
use std::path::{Path, PathBuf};

/// Lines that are remembered.
const HISTORY_MAX: usize = 1000;
/// The file of them, in the home.
const HISTORY: &str = "shell_history";
/// A longer line is no command.
const LINE_MAX: u64 = 1 << 20;

/// What comes next.
pub enum Line {
    Text(String),
    /// Ctrl-C, at a prompt.
    Interrupted,
    End,
}

pub enum Input {
    Person(Box<Person>),
    /// Standard input is locked for one line at a time: a verb may read the lines that follow.
    Script,
}

pub struct Person {
    editor: Editor<Words, FileHistory>,
    history: PathBuf,
}

impl Input {
    pub fn open(home: &Path) -> Result<Input> {
        let input = std::io::stdin();
        if !input.is_terminal() {
            return Ok(Input::Script);
        }
        let config = Config::builder()
            .completion_type(CompletionType::List)
            .max_history_size(HISTORY_MAX)
            .and_then(|config| config.history_ignore_dups(true))
            .map_err(failed)?
            .build();
        let mut editor = Editor::with_config(config).map_err(failed)?;
        editor.set_helper(Some(Words));
        let history = home.join(HISTORY);
        // There is none at first.
        let _ = editor.load_history(&history);
        Ok(Input::Person(Box::new(Person { editor, history })))
    }

    pub fn line(&mut self, prompt: &str) -> Result<Line> {
        match self {
            Input::Person(person) => person.line(prompt),
            Input::Script => {
                let mut line = Vec::new();
                let lines = std::io::stdin().lock();
                let read = lines.take(LINE_MAX).read_until(b'\n', &mut line);
                match read.map_err(Error::io("cannot read standard input"))? {
                    0 => Ok(Line::End),
                    // Its rest would be taken for a line of its own.
                    size if size as u64 == LINE_MAX => Err(unfit("longer than 1 MiB")),
                    _ => match String::from_utf8(line) {
                        Ok(line) => Ok(Line::Text(line)),
                        Err(_) => Err(unfit("not UTF-8")),
                    },
                }
            }
        }
    }
}

impl Person {
    fn line(&mut self, prompt: &str) -> Result<Line> {
        match self.editor.readline(prompt) {
            Ok(line) => {
                // Without history the next prompt is as good.
                let _ = self.editor.add_history_entry(line.as_str());
                let _ = self.editor.save_history(&self.history);
                Ok(Line::Text(line))
            }
            Err(ReadlineError::Interrupted) => Ok(Line::Interrupted),
            Err(ReadlineError::Eof) => Ok(Line::End),
            Err(error) => Err(failed(error)),
        }
    }
}

fn unfit(why: &str) -> Error {
    Error::Invalid {
        text: format!("a line of the script is {why}"),
        hint: None,
    }
}

fn failed(error: ReadlineError) -> Error {
    Error::Io {
        what: "cannot use the terminal".into(),
        source: std::io::Error::other(error),
    }
}

/// Completes a line as a shell would complete it after `avfs`.
struct Words;

impl Completer for Words {
    type Candidate = Pair;

    fn complete(
        &self,
        line: &str,
        at: usize,
        _: &Context<'_>,
    ) -> rustyline::Result<(usize, Vec<Pair>)> {
        let typed = &line[..at];
        // What is in quotes is completed by nobody.
        let begin = typed.rfind(char::is_whitespace).map_or(0, |at| at + 1);
        let line = typed.strip_prefix("cd ").map(|rest| format!("ls {rest}"));
        let line = line.as_deref().unwrap_or(typed);
        let mut words: Vec<OsString> = vec!["avfs".into()];
        words.extend(line.split_whitespace().map(OsString::from));
        if line.is_empty() || line.ends_with(char::is_whitespace) {
            words.push(OsString::new());
        }
        let last = words.len() - 1;
        let found = clap_complete::engine::complete(&mut args::completing(), words, last, None);
        let found = found.unwrap_or_default().into_iter();
        let pairs = found.filter_map(|candidate| {
            let text = candidate.get_value().to_str()?.to_owned();
            let is_plain = !text.contains(|c: char| c.is_whitespace() || "'\"\\".contains(c));
            is_plain.then(|| Pair {
                display: text.clone(),
                replacement: text,
            })
        });
        Ok((begin, pairs.collect()))
    }
}

impl Helper for Words {}
impl rustyline::hint::Hinter for Words {
    type Hint = String;
}
impl rustyline::highlight::Highlighter for Words {}
impl rustyline::validate::Validator for Words {}
