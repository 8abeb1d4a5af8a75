//! Everything that is printed: answers as text or JSON, errors, notes.

pub mod changes;
pub mod exec;
pub mod progress;
pub mod quoted;
pub mod style;
pub mod summary;
pub mod table;

use crate::error::{Error, Result};
use anstream::AutoStream;
use avfs_api::wire::{RetriedWord, SCHEMA_VERSION};
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeSet;
use std::fmt;
use std::io::Write;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

/// The output format.
#[derive(Copy, Clone, Debug, Eq, PartialEq)]
enum Form {
    Text,
    Json,
}

/// How a verb prints its answer.
#[derive(Copy, Clone, Debug)]
pub struct Output {
    form: Form,
}

/// An error as JSON.
#[derive(Serialize, JsonSchema)]
pub struct ErrorItem<'a> {
    /// Its kind, such as `NotFound`.
    error: &'a str,
    /// What is wrong.
    message: String,
    /// One thing to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
    /// The path that it is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    path: Option<&'a str>,
}

impl ErrorItem<'_> {
    pub fn schema() -> serde_json::Value {
        avfs_api::table::schema_of::<ErrorItem<'static>>()
    }
}

impl Output {
    pub fn new(json: bool) -> Output {
        Output {
            form: if json { Form::Json } else { Form::Text },
        }
    }

    pub fn json() -> Output {
        Output { form: Form::Json }
    }

    pub fn is_json(self) -> bool {
        self.form == Form::Json
    }

    /// Prints an answer: as JSON, or as the text that `text` makes from it.
    pub fn answer<T: Serialize, D: fmt::Display>(
        self,
        answer: &T,
        text: impl FnOnce(&T) -> D,
    ) -> Result<()> {
        match self.form {
            Form::Json => self.value(answer),
            Form::Text => say(&text(answer)),
        }
    }

    /// Prints a value as JSON, with nothing added.
    pub fn exact(self, value: &impl Serialize) -> Result<()> {
        let text = serde_json::to_string_pretty(value).map_err(unwritten)?;
        raw(text.as_bytes())?;
        raw(b"\n")
    }

    /// Prints an answer as JSON.
    pub fn value(self, value: &impl Serialize) -> Result<()> {
        let is_all_told = retried().is_empty() && UNCOMMITTED.get().is_none();
        let text = match is_all_told {
            true => serde_json::to_string_pretty(value),
            false => with_notes(value).and_then(|noted| serde_json::to_string_pretty(&noted)),
        };
        let text = text.map_err(unwritten)?;
        raw(versioned(text).as_bytes())?;
        raw(b"\n")
    }

    pub fn error(self, error: &Error) {
        let hint = error.hint();
        // If printing fails, there is nowhere to report it.
        let _ = match self.form {
            Form::Json => self.value(&ErrorItem {
                error: error.kind().as_str(),
                message: error.message(),
                hint,
                path: error.path(),
            }),
            Form::Text => {
                let message = changes::printable_lines(&error.message());
                let mut text = format!("{} {message}", style::bad("error:"));
                if let Some(hint) = hint {
                    let hint = changes::printable_lines(&hint);
                    text.push_str(&format!("\n{} {hint}", style::good("hint:")));
                }
                note(&text)
            }
        };
    }
}

/// An answer with `schema_version`, if it is an object: a list has no field for it. Only fields of the outermost object are
/// indented by two spaces.
fn versioned(text: String) -> String {
    if !text.starts_with('{') || text.contains("\n  \"schema_version\": ") {
        return text;
    }
    match text.strip_prefix("{\n") {
        Some(fields) => format!("{{\n  \"schema_version\": {SCHEMA_VERSION},\n{fields}"),
        None => format!("{{\n  \"schema_version\": {SCHEMA_VERSION}\n}}"),
    }
}

/// Helpers that were restarted for this invocation, and not reported yet.
static RETRIED: Mutex<BTreeSet<RetriedWord>> = Mutex::new(BTreeSet::new());

fn retried() -> MutexGuard<'static, BTreeSet<RetriedWord>> {
    RETRIED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Records restarted helpers, to be reported with the answer.
pub fn note_retried(words: impl IntoIterator<Item = RetriedWord>) {
    retried().extend(words);
}

/// Takes what is to be reported.
pub fn take_retried() -> BTreeSet<RetriedWord> {
    std::mem::take(&mut *retried())
}

/// An answer with `retried` and `uncommitted` added. A JSON list has no field for them.
fn with_notes(value: &impl Serialize) -> serde_json::Result<serde_json::Value> {
    let mut value = serde_json::to_value(value)?;
    if let Some(answer) = value.as_object_mut() {
        let own = answer.remove_entry("uncommitted");
        answer.extend(notes());
        answer.extend(own);
    }
    Ok(value)
}

/// Fields that an answer has beside its own.
pub type Notes = serde_json::Map<String, serde_json::Value>;

/// What is to be noted in the next answer.
pub fn notes() -> Notes {
    let mut notes = Notes::new();
    let retried = take_retried();
    if !retried.is_empty() {
        let words: Vec<_> = retried.into_iter().map(RetriedWord::as_str).collect();
        notes.insert("retried".into(), words.into());
    }
    if let Some(why) = UNCOMMITTED.get() {
        notes.insert("uncommitted".into(), why.as_str().into());
    }
    notes
}

/// JSON could not be made or written.
pub fn unwritten(error: serde_json::Error) -> Error {
    Error::Io {
        what: "cannot write JSON".into(),
        source: error.into(),
    }
}

/// One line that lists what was retried.
pub fn retried_line(words: impl IntoIterator<Item = RetriedWord>) -> Option<String> {
    let words: Vec<_> = words.into_iter().map(RetriedWord::as_str).collect();
    (!words.is_empty()).then(|| {
        format!(
            "retried because a process of avfs had died: {}",
            words.join(", ")
        )
    })
}

/// Why the vault has uncommitted writes.
static UNCOMMITTED: OnceLock<String> = OnceLock::new();

/// Reports it once: on standard error, and in the answer if that is a JSON object.
pub fn note_uncommitted(why: &str) -> Result<()> {
    match UNCOMMITTED.set(why.to_owned()) {
        Ok(()) => note(&format!("{} {why}", style::good("note:"))),
        Err(_) => Ok(()),
    }
}

/// Prints text to standard output; colours only on a terminal.
pub fn say(text: &impl fmt::Display) -> Result<()> {
    let text = text.to_string();
    if text.is_empty() {
        return Ok(());
    }
    let mut out = anstream::stdout().lock();
    writeln!(out, "{}", text.trim_end_matches('\n')).map_err(Error::output)
}

/// Prints text to standard error.
pub fn note(text: &impl fmt::Display) -> Result<()> {
    let mut out = std::io::stderr().lock();
    // One write: standard error is unbuffered, and other processes may write to it.
    let mut line = AutoStream::new(Vec::new(), AutoStream::choice(&out));
    writeln!(line, "{text}")
        .and_then(|()| out.write_all(&line.into_inner()))
        .map_err(Error::output)
}

/// Prints bytes unchanged.
pub fn raw(bytes: &[u8]) -> Result<()> {
    let mut out = std::io::stdout().lock();
    out.write_all(bytes)
        .and_then(|()| out.flush())
        .map_err(Error::output)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_says_the_version_of_its_shape_once() {
        let pretty = |value: serde_json::Value| {
            versioned(serde_json::to_string_pretty(&value).expect("a value is JSON"))
        };
        let nested =
            serde_json::json!({ "a": { "schema_version": 7 }, "b": "\n  \"schema_version\": " });
        let read: serde_json::Value = serde_json::from_str(&pretty(nested)).expect("JSON");
        assert_eq!(read["schema_version"], 1);
        assert_eq!(read["a"]["schema_version"], 7);
        let own = serde_json::json!({ "a": 1, "schema_version": 1 });
        assert_eq!(pretty(own.clone()).matches("schema_version").count(), 1);
        assert_eq!(
            pretty(serde_json::json!({})),
            "{\n  \"schema_version\": 1\n}"
        );
        assert_eq!(pretty(serde_json::json!([{}])), "[\n  {}\n]");
    }
}
