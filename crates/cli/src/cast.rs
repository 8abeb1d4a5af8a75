//! A recording of a terminal: asciicast, version 2.

use crate::environment;
use crate::error::{Error, Result};
use serde_json::{Value, json};
use std::fs::File;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// An open recording: one line per event.
pub struct Cast {
    file: File,
    path: PathBuf,
    began: Instant,
    size: (u16, u16),
    /// The beginning of an incomplete UTF-8 character.
    rest: Vec<u8>,
}

impl Cast {
    /// Begins a recording in a new file.
    pub fn begin(path: &Path, size: (u16, u16), command: &str) -> Result<Cast> {
        let mut options = File::options();
        let opened = options.write(true).create_new(true).mode(0o600).open(path);
        let mut cast = Cast {
            file: opened.map_err(|error| Error::Invalid {
                text: format!("cannot record to {}: {error}", path.display()),
                hint: Some("--record needs a file that does not exist yet".into()),
            })?,
            path: path.to_owned(),
            began: Instant::now(),
            size,
            rest: Vec::new(),
        };
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        cast.line(&json!({
            "version": 2,
            "width": size.1,
            "height": size.0,
            "timestamp": since.map_or(0, |since| since.as_secs()),
            "command": command,
            "env": { "TERM": environment::term() },
        }))?;
        Ok(cast)
    }

    pub fn output(&mut self, bytes: &[u8]) -> Result<()> {
        let text = whole(&mut self.rest, bytes);
        match text.is_empty() {
            true => Ok(()),
            false => self.event("o", &text),
        }
    }

    pub fn resize(&mut self, size: (u16, u16)) -> Result<()> {
        if self.size == size {
            return Ok(());
        }
        self.size = size;
        self.event("r", &format!("{}x{}", size.1, size.0))
    }

    fn event(&mut self, code: &str, data: &str) -> Result<()> {
        let at = self.began.elapsed().as_micros() as f64 / 1e6;
        self.line(&json!([at, code, data]))
    }

    fn line(&mut self, value: &Value) -> Result<()> {
        let written = self.file.write_all(format!("{value}\n").as_bytes());
        written.map_err(Error::io(format!("cannot write {}", self.path.display())))
    }
}

/// A recording that several threads may add to, or none.
#[derive(Clone, Default)]
pub struct Recording(Option<Arc<Mutex<State>>>);

/// The state; after a failure nothing more is written.
pub struct State {
    cast: Cast,
    failed: Option<Error>,
}

impl Recording {
    pub fn new(cast: Option<Cast>) -> Recording {
        let state = cast.map(|cast| State { cast, failed: None });
        Recording(state.map(|state| Arc::new(Mutex::new(state))))
    }

    pub fn output(&self, bytes: &[u8]) {
        self.add(|cast| cast.output(bytes));
    }

    pub fn resize(&self, size: (u16, u16)) {
        self.add(|cast| cast.resize(size));
    }

    /// Reports a failed recording. The program went on without it.
    pub fn end(&self) -> Result<()> {
        let failed = self.with(|state| state.failed.take()).flatten();
        failed.map_or(Ok(()), Err)
    }

    fn add(&self, write: impl FnOnce(&mut Cast) -> Result<()>) {
        self.with(|state| {
            if state.failed.is_none() {
                state.failed = write(&mut state.cast).err();
            }
        });
    }

    fn with<T>(&self, act: impl FnOnce(&mut State) -> T) -> Option<T> {
        let state = self.0.as_ref()?;
        Some(act(&mut state
            .lock()
            .unwrap_or_else(PoisonError::into_inner)))
    }
}

/// All complete characters of the rest and the new bytes; invalid bytes are replaced.
fn whole(rest: &mut Vec<u8>, bytes: &[u8]) -> String {
    rest.extend_from_slice(bytes);
    let mut text = String::new();
    loop {
        match std::str::from_utf8(rest) {
            Ok(all) => {
                text.push_str(all);
                rest.clear();
                return text;
            }
            Err(error) => {
                let good = error.valid_up_to();
                text.push_str(&String::from_utf8_lossy(&rest[..good]));
                let Some(bad) = error.error_len() else {
                    rest.drain(..good);
                    return text;
                };
                text.push(char::REPLACEMENT_CHARACTER);
                rest.drain(..good + bad);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_are_whole_however_they_are_cut() {
        let text = "aäb→c";
        for cut in 0..text.len() {
            let mut rest = Vec::new();
            let (first, second) = text.as_bytes().split_at(cut);
            let joined = whole(&mut rest, first) + &whole(&mut rest, second);
            assert_eq!(joined, text, "cut at {cut}");
            assert!(rest.is_empty());
        }
        let mut rest = Vec::new();
        assert_eq!(whole(&mut rest, b"a\xffb"), "a\u{fffd}b");
    }

    #[test]
    fn a_recording_is_lines_of_json() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.cast");
        let mut cast = Cast::begin(&path, (24, 80), "vim").unwrap();
        cast.output(b"hello\x1b[0m").unwrap();
        cast.resize((24, 80)).unwrap();
        cast.resize((30, 100)).unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        let lines: Vec<Value> = text
            .lines()
            .map(|l| serde_json::from_str(l).unwrap())
            .collect();
        assert_eq!(
            (&lines[0]["version"], &lines[0]["width"]),
            (&json!(2), &json!(80))
        );
        assert_eq!(lines[1][2], "hello\x1b[0m");
        assert_eq!(
            (&lines[2][1], &lines[2][2]),
            (&json!("r"), &json!("100x30"))
        );
        assert_eq!(lines.len(), 3, "the same size is no news");
        assert!(
            Cast::begin(&path, (24, 80), "vim").is_err(),
            "nothing is overwritten"
        );
    }
}
