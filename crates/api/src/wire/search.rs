//! Search in a vault.

use super::{Base64, TypeWord};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Finds lines that match a pattern.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Grep {
    /// A regular expression.
    pub pattern: String,
    /// Only at this path or beneath it.
    #[serde(default = "top")]
    pub path: String,
    /// The exact bytes of `path`, where it is not UTF-8.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub path_b64: Option<Base64>,
    /// Takes small and capital letters as equal.
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
    /// Lines to show after each match.
    #[serde(default)]
    pub after_context: usize,
    /// Only files that match one of these; with `!` in front, only those that do not.
    #[serde(default)]
    pub globs: Vec<String>,
    /// What is told about each file.
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
#[derive(Copy, Clone, Debug, Default, Eq, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum GrepOutput {
    /// Its lines that match.
    #[default]
    Lines,
    /// How many do.
    Counts,
    /// Only that some do.
    Files,
}

/// The answer to [`Grep`].
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct GrepReport {
    /// What was looked for.
    pub pattern: String,
    /// How many lines match; with `files`, how many files have one.
    pub count: usize,
    /// The lines.
    pub matches: Vec<GrepMatchItem>,
    /// Each file with matches and their number, unless lines were requested.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub files: Vec<GrepFileItem>,
    /// Whether there are more.
    pub truncated: bool,
    /// How many files were read.
    pub files_searched: usize,
    /// The vault's version.
    pub version: u64,
}

/// A line that matches.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct GrepMatchItem {
    /// The path in the vault.
    pub path: String,
    /// The exact bytes of `path`, where it is not UTF-8.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub path_b64: Option<Base64>,
    /// The line.
    #[serde(flatten)]
    pub line: GrepLineItem,
    /// Lines before it.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub before: Vec<GrepLineItem>,
    /// Lines after it.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub after: Vec<GrepLineItem>,
}

/// A line of a file.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct GrepLineItem {
    /// Its number, from 1.
    pub line_number: u64,
    /// Its text.
    pub line: String,
    /// The exact bytes of `line`, where it is not UTF-8.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub line_b64: Option<Base64>,
}

/// A file with matches.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct GrepFileItem {
    /// The path in the vault.
    pub path: String,
    /// The exact bytes of `path`, where it is not UTF-8.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub path_b64: Option<Base64>,
    /// How many of its lines match.
    pub count: usize,
}

/// Finds paths by name, type, size, age and labels.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Find {
    /// Only at this path or beneath it.
    #[serde(default = "top")]
    pub path: String,
    /// The exact bytes of `path`, where it is not UTF-8.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub path_b64: Option<Base64>,
    /// A glob for the file name.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub name: Option<String>,
    /// Takes small and capital letters as equal.
    #[serde(default)]
    pub ignore_case: bool,
    /// Any of `f`, `d`, `l`, `p`.
    #[serde(default)]
    pub types: Vec<String>,
    /// Such as `+10k`, `-2M`, `100`.
    #[serde(default)]
    pub sizes: Vec<String>,
    /// At least so many bytes.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub min_size: Option<u64>,
    /// At most so many bytes.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub max_size: Option<u64>,
    /// Such as `-1` (day), `+2w`, `-30m`.
    #[serde(default)]
    pub mtimes: Vec<String>,
    /// Only what has all these tags.
    #[serde(default)]
    pub tags: Vec<String>,
    /// `key=value`, or `key` alone.
    #[serde(default)]
    pub meta: Vec<String>,
    /// At most so many levels down.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub depth: Option<usize>,
    /// At most so many.
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

/// The answer to [`Find`].
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct FindReport {
    /// How many there are.
    pub count: usize,
    /// The paths.
    pub results: Vec<FoundItem>,
    /// Whether there are more.
    pub truncated: bool,
    /// The vault's version.
    pub version: u64,
}

/// A path that was found.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct FoundItem {
    /// The path in the vault.
    pub path: String,
    /// The exact bytes of `path`, where it is not UTF-8.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub path_b64: Option<Base64>,
    /// Which type it has.
    pub file_type: TypeWord,
    /// Bytes of a file, of a link's target, or of everything below a directory.
    pub size: u64,
    /// Permission bits in octal.
    pub mode: String,
    /// When its content last changed, as RFC 3339.
    pub modified: String,
}

/// Finds files by words, the best match first.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Search {
    /// Words, or an FTS5 query.
    pub query: String,
    /// At most so many.
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

/// The answer to [`Search`].
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct SearchReport {
    /// What was asked for.
    pub query: String,
    /// How many there are.
    pub count: usize,
    /// The best first.
    pub results: Vec<SearchHit>,
    /// How many files the index has.
    pub files_indexed: u64,
    /// The vault's version.
    pub version: u64,
}

/// A file that was found.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct SearchHit {
    /// The path in the vault.
    pub path: String,
    /// The exact bytes of `path`, where it is not UTF-8.
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
