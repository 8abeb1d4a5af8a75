//! Search in a vault.

use super::{Base64, TypeWord};
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Grep {
    /// A regular expression.
    pub pattern: String,
    #[serde(default = "top")]
    pub path: String,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub path_b64: Option<Base64>,
    #[serde(default)]
    pub ignore_case: bool,
    /// Takes the pattern as text.
    #[serde(default)]
    pub fixed_strings: bool,
    /// Lines that do not match.
    #[serde(default)]
    pub invert: bool,
    /// Lines to show before and after each match.
    #[serde(default)]
    pub before_context: usize,
    #[serde(default)]
    pub after_context: usize,
    /// Only files that match one of these; with `!` in front, only those that do not.
    #[serde(default)]
    pub globs: Vec<String>,
    #[serde(default)]
    pub output: GrepOutput,
    /// How many lines at most, up to 10,000.
    #[serde(default = "Grep::default_limit")]
    pub limit: usize,
}

impl Grep {
    /// Looks for a regular expression in all files.
    pub fn new(pattern: impl Into<String>) -> Grep {
        Grep {
            pattern: pattern.into(),
            path: top(),
            path_b64: None,
            ignore_case: false,
            fixed_strings: false,
            invert: false,
            before_context: 0,
            after_context: 0,
            globs: Vec::new(),
            output: GrepOutput::default(),
            limit: Grep::default_limit(),
        }
    }

    fn default_limit() -> usize {
        10_000
    }
}

/// What is listed for each file with matches.
#[derive(Copy, Clone, Debug, Default, Eq, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GrepOutput {
    #[default]
    Lines,
    Counts,
    Files,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct GrepReport {
    pub pattern: String,
    /// How many lines match; with `files`, how many files have one.
    pub count: usize,
    pub matches: Vec<GrepMatchItem>,
    /// Each file with matches and their number, unless lines were requested.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub files: Vec<GrepFileItem>,
    /// Whether there are more.
    pub truncated: bool,
    pub files_searched: usize,
    pub version: u64,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct GrepMatchItem {
    pub path: String,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub path_b64: Option<Base64>,
    #[serde(flatten)]
    pub line: GrepLineItem,
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub before: Vec<GrepLineItem>,
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub after: Vec<GrepLineItem>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct GrepLineItem {
    pub line_number: u64,
    pub line: String,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub line_b64: Option<Base64>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct GrepFileItem {
    pub path: String,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub path_b64: Option<Base64>,
    pub count: usize,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Find {
    #[serde(default = "top")]
    pub path: String,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub path_b64: Option<Base64>,
    /// A glob for the file name.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub name: Option<String>,
    #[serde(default)]
    pub ignore_case: bool,
    /// Any of `f`, `d`, `l`, `p`.
    #[serde(default)]
    pub types: Vec<String>,
    /// Such as `+10k`, `-2M`, `100`.
    #[serde(default)]
    pub sizes: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub min_size: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub max_size: Option<u64>,
    /// Such as `-1` (day), `+2w`, `-30m`.
    #[serde(default)]
    pub mtimes: Vec<String>,
    #[serde(default)]
    pub tags: Vec<String>,
    /// `key=value`, or `key` alone.
    #[serde(default)]
    pub meta: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub depth: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub limit: Option<usize>,
}

impl Default for Find {
    fn default() -> Find {
        Find {
            path: top(),
            path_b64: None,
            name: None,
            ignore_case: false,
            types: Vec::new(),
            sizes: Vec::new(),
            min_size: None,
            max_size: None,
            mtimes: Vec::new(),
            tags: Vec::new(),
            meta: Vec::new(),
            depth: None,
            limit: None,
        }
    }
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct FindReport {
    pub count: usize,
    pub results: Vec<FoundItem>,
    /// Whether there are more.
    pub truncated: bool,
    pub version: u64,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct FoundItem {
    pub path: String,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub path_b64: Option<Base64>,
    pub file_type: TypeWord,
    pub size: u64,
    pub mode: String,
    pub modified: String,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Search {
    /// Words, or an FTS5 query.
    pub query: String,
    #[serde(default = "Search::default_limit")]
    pub limit: usize,
    /// Builds the index anew.
    #[serde(default)]
    pub rebuild: bool,
}

impl Search {
    /// Looks for these words.
    pub fn new(query: impl Into<String>) -> Search {
        Search {
            query: query.into(),
            limit: Search::default_limit(),
            rebuild: false,
        }
    }

    fn default_limit() -> usize {
        20
    }
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SearchReport {
    pub query: String,
    pub count: usize,
    /// The best first.
    pub results: Vec<SearchHit>,
    pub files_indexed: u64,
    pub version: u64,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SearchHit {
    pub path: String,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub path_b64: Option<Base64>,
    /// The text around the words, each between `>>>>` and `<<<<`.
    pub snippet: String,
    /// The rank; smaller is better.
    pub rank: f64,
}

fn top() -> String {
    "/".into()
}
