//! Finding lines and paths, in files and in the output of commands.

use super::LIST_VAULTS;
use super::files::StreamName;
use crate::mcp::answer::{Object, beginning, bytes_of, fitting, word};
use crate::mcp::hands::Hands;
use crate::mcp::tools::Asked;
use crate::ops::failure::Failure;
use crate::wire::{Find, Grep, GrepOutput, Output, Search, from_text};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Lines, or paths, that are looked for at most.
const LIMIT: usize = 200;
/// Bytes of a line that are shown.
const LINE: usize = 400;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SearchTool {
    /// Regex for lines; plain text with exec.
    pattern: Option<String>,
    /// Glob for file names.
    name: Option<String>,
    /// Words, best files first.
    words: Option<String>,
    path: Option<String>,
    vault: Option<String>,
    /// Search this exec's output.
    exec: Option<String>,
    stream: Option<StreamName>,
    #[serde(default)]
    ignore_case: bool,
    max_tokens: Option<usize>,
}

#[derive(Default, Serialize, JsonSchema)]
pub(crate) struct SearchSaid {
    matches: Vec<Match>,
    truncated: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

#[derive(Default, Serialize, JsonSchema)]
pub(crate) struct Match {
    #[serde(skip_serializing_if = "Option::is_none")]
    path: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(skip)]
    r#type: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(skip)]
    size: Option<u64>,
    /// Where the line begins in an output.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(skip)]
    offset: Option<u64>,
}

impl Asked for SearchTool {
    const NAME: &'static str = "search";
    const SENTENCE: &'static str =
        "Find lines by pattern, files by name, or files by words; also in the output of an exec.";
    const ROWS: &'static [&'static str] = &["grep", "find", "search", "output"];
    const IF_MISSING: Option<&'static str> = LIST_VAULTS;
    type Answer = Object<SearchSaid>;

    async fn run(self, hands: &Hands) -> Result<Object<SearchSaid>, Failure> {
        let asked = (&self.pattern, &self.name, &self.words, &self.exec);
        let (found, more) = match asked {
            (Some(pattern), None, None, Some(exec)) => self.in_output(hands, exec, pattern).await?,
            (Some(pattern), _, None, None) => self.lines(hands, pattern).await?,
            (None, Some(name), None, None) => self.paths(hands, name).await?,
            (None, None, Some(words), None) => self.words(hands, words).await?,
            _ => {
                let what =
                    "search takes a pattern (with a name as filter, or an exec), a name, or words";
                return Err(Failure::invalid(what));
            }
        };
        let (matches, whole) = fitting(found, bytes_of(self.max_tokens));
        let truncated = more || !whole;
        let next = "search below a path, or for something narrower";
        Ok(Object(SearchSaid {
            matches,
            truncated,
            next: truncated.then(|| next.into()),
        }))
    }
}

/// What was found, and whether there is more.
type Found = Result<(Vec<Match>, bool), Failure>;

impl SearchTool {
    fn vault<'a>(&'a self, hands: &'a Hands) -> &'a str {
        hands.vault(self.vault.as_deref())
    }

    fn path(&self) -> String {
        self.path.clone().unwrap_or_else(|| "/".into())
    }

    async fn lines(&self, hands: &Hands, pattern: &str) -> Found {
        let grep = Grep {
            pattern: pattern.to_owned(),
            path: self.path(),
            path_b64: None,
            ignore_case: self.ignore_case,
            fixed_strings: false,
            invert: false,
            before_context: 0,
            after_context: 0,
            globs: self.name.iter().cloned().collect(),
            output: GrepOutput::Lines,
            limit: LIMIT,
        };
        let report = hands.ask(self.vault(hands), &grep).await?;
        let found = report.matches.into_iter().map(|found| Match {
            path: Some(found.path),
            line: Some(found.line.line_number),
            text: Some(shown(&found.line.line)),
            ..Match::default()
        });
        Ok((found.collect(), report.truncated))
    }

    async fn paths(&self, hands: &Hands, name: &str) -> Found {
        let find = Find {
            path: self.path(),
            path_b64: None,
            name: Some(name.to_owned()),
            ignore_case: self.ignore_case,
            types: Vec::new(),
            sizes: Vec::new(),
            min_size: None,
            max_size: None,
            mtimes: Vec::new(),
            tags: Vec::new(),
            meta: Vec::new(),
            depth: None,
            limit: Some(LIMIT),
        };
        let report = hands.ask(self.vault(hands), &find).await?;
        let found = report.results.into_iter().map(|found| Match {
            path: Some(found.path),
            r#type: Some(word(found.file_type)),
            size: Some(found.size),
            ..Match::default()
        });
        Ok((found.collect(), report.truncated))
    }

    async fn words(&self, hands: &Hands, words: &str) -> Found {
        let search = Search {
            query: words.to_owned(),
            limit: LIMIT / 10,
            rebuild: false,
        };
        let report = hands.ask(self.vault(hands), &search).await?;
        let found = report.results.into_iter().map(|hit| Match {
            path: Some(hit.path),
            text: Some(shown(&hit.snippet)),
            ..Match::default()
        });
        Ok((found.collect(), false))
    }

    /// Looks for a text in what a command wrote, part by part.
    async fn in_output(&self, hands: &Hands, exec: &str, pattern: &str) -> Found {
        let mut lines = Lines::new(pattern, self.ignore_case);
        let mut from = 0;
        loop {
            let output = Output {
                exec: exec.to_owned(),
                stream: self.stream.unwrap_or_default().into(),
                from,
                to: None,
            };
            let part = hands.ask("", &output).await?;
            lines.take(&from_text(&part.data, part.data_b64.as_ref()));
            if part.to >= part.kept || part.to <= from || lines.is_full() {
                let full = lines.is_full();
                return Ok((lines.finish(), full));
            }
            from = part.to;
        }
    }
}

fn shown(line: &str) -> String {
    beginning(line.trim_end(), LINE).to_owned()
}

/// Looks at a stream line by line. Of a line without an end only the beginning is kept.
struct Lines {
    pattern: String,
    ignore_case: bool,
    line: Vec<u8>,
    number: u64,
    /// Where the line begins, and where the stream is by now.
    begins: u64,
    at: u64,
    found: Vec<Match>,
}

/// The most of one line that is looked at.
const LOOKED_AT: usize = 64 << 10;

impl Lines {
    fn new(pattern: &str, ignore_case: bool) -> Lines {
        let pattern = match ignore_case {
            true => pattern.to_lowercase(),
            false => pattern.to_owned(),
        };
        Lines {
            pattern,
            ignore_case,
            line: Vec::new(),
            number: 1,
            begins: 0,
            at: 0,
            found: Vec::new(),
        }
    }

    fn is_full(&self) -> bool {
        self.found.len() >= LIMIT
    }

    fn take(&mut self, bytes: &[u8]) {
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            let room = LOOKED_AT.saturating_sub(self.line.len()).min(piece.len());
            self.line.extend_from_slice(&piece[..room]);
            self.at += piece.len() as u64;
            if piece.ends_with(b"\n") {
                self.end_line();
            }
        }
    }

    fn end_line(&mut self) {
        let text = String::from_utf8_lossy(&self.line);
        let fits = match self.ignore_case {
            true => text.to_lowercase().contains(&self.pattern),
            false => text.contains(&self.pattern),
        };
        if fits && !self.is_full() {
            self.found.push(Match {
                line: Some(self.number),
                offset: Some(self.begins),
                text: Some(shown(&text)),
                ..Match::default()
            });
        }
        self.line.clear();
        self.number += 1;
        self.begins = self.at;
    }

    fn finish(mut self) -> Vec<Match> {
        if !self.line.is_empty() {
            self.end_line();
        }
        self.found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str, pattern: &str, piece: usize) -> Vec<(u64, u64, String)> {
        let mut lines = Lines::new(pattern, true);
        text.as_bytes().chunks(piece).for_each(|it| lines.take(it));
        let found = lines.finish().into_iter();
        let shown = |it: Match| Some((it.line?, it.offset?, it.text?));
        found.filter_map(shown).collect()
    }

    #[test]
    fn lines_are_found_however_the_stream_is_cut() {
        let text = "one\nERROR two\n\nthree error";
        for piece in 1..12 {
            let expected = vec![
                (2, 4, "ERROR two".to_owned()),
                (4, 15, "three error".to_owned()),
            ];
            assert_eq!(found(text, "error", piece), expected, "{piece}");
        }
    }
}
