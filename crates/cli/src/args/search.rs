//! The arguments of verbs that search.

use clap::Args;
use std::ffi::OsString;

#[derive(Debug, Args)]
#[command(after_help = "\
Binary files are skipped. A glob without / matches file names; ! in front excludes what matches.

Examples:
  avfs grep TODO /workspace
  avfs grep -i 'error|warning' --glob '*.log' -C 2
  avfs grep -l 'fn main' --glob '*.rs' --glob '!target/'
  avfs grep -F 'a.b(c)' -c")]
pub struct GrepArgs {
    /// A regular expression
    #[arg(allow_hyphen_values = true)]
    pub pattern: String,
    /// A path of the vault; relative paths start at /
    #[arg(default_value = "/")]
    pub path: OsString,
    /// Ignore case
    #[arg(short, long)]
    pub ignore_case: bool,
    /// Show line numbers
    #[arg(short = 'n', long)]
    pub line_number: bool,
    /// Show only the paths of files with matches
    #[arg(short = 'l', long, conflicts_with = "count")]
    pub files_with_matches: bool,
    /// Show the number of matching lines of each file
    #[arg(short = 'c', long)]
    pub count: bool,
    /// Show lines that do not match
    #[arg(short = 'v', long)]
    pub invert_match: bool,
    /// Take the pattern as text, not as a regular expression
    #[arg(short = 'F', long)]
    pub fixed_strings: bool,
    /// Show this many lines after each match
    #[arg(short = 'A', long, value_name = "N")]
    pub after_context: Option<usize>,
    /// Show this many lines before each match
    #[arg(short = 'B', long, value_name = "N")]
    pub before_context: Option<usize>,
    /// Show this many lines before and after each match
    #[arg(short = 'C', long, value_name = "N")]
    pub context: Option<usize>,
    /// Search only files that match; can be repeated
    #[arg(short = 'g', long = "glob", value_name = "GLOB")]
    pub globs: Vec<String>,
    /// Show at most this many matches
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    pub limit: usize,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  avfs find /workspace --name '*.py' --type f
  avfs find --size +1M --mtime -1        larger than 1 MiB, changed within a day
  avfs find --mtime -30m --depth 2       changed within half an hour
  avfs find --tag reviewed --meta owner=ann")]
pub struct FindArgs {
    /// A path of the vault; relative paths start at /
    #[arg(default_value = "/")]
    pub path: OsString,
    /// A glob for the file name
    #[arg(short = 'n', long, value_name = "GLOB")]
    pub name: Option<String>,
    /// Ignore case in names
    #[arg(short, long)]
    pub ignore_case: bool,
    /// File, directory, symbolic link or named pipe; several types can be given
    #[arg(
        short = 't',
        long = "type",
        value_name = "f|d|l|p",
        value_delimiter = ','
    )]
    pub types: Vec<String>,
    /// Larger (+) or smaller (-) than N bytes, or exactly N; with k, M or G
    #[arg(long = "size", value_name = "[+-]N", allow_hyphen_values = true)]
    pub sizes: Vec<String>,
    /// At least this many bytes
    #[arg(long, value_name = "BYTES")]
    pub min_size: Option<u64>,
    /// At most this many bytes
    #[arg(long, value_name = "BYTES")]
    pub max_size: Option<u64>,
    /// Changed more (+) or less (-) than N days ago; other units: s, m, h, d, w
    #[arg(long = "mtime", value_name = "[+-]N", allow_hyphen_values = true)]
    pub mtimes: Vec<String>,
    /// Search at most this many levels deep
    #[arg(short, long, value_name = "N")]
    pub depth: Option<usize>,
    /// Only paths with this tag
    #[arg(long = "tag", value_name = "TAG")]
    pub tags: Vec<String>,
    /// Only paths with this metadata
    #[arg(long = "meta", value_name = "KEY[=VALUE]")]
    pub meta: Vec<String>,
    /// Show at most this many paths
    #[arg(short, long, value_name = "N")]
    pub limit: Option<usize>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Finds files that contain all words, in any form (run finds running). The index is built when it is
first needed and updated automatically.

Examples:
  avfs search parser error
  avfs search '\"exact words\" OR prefix*' --limit 5")]
pub struct SearchArgs {
    /// The words to look for
    #[arg(required = true)]
    pub query: Vec<String>,
    /// Show at most this many files
    #[arg(short, long, value_name = "N", default_value_t = 20)]
    pub limit: usize,
    /// Build the index anew
    #[arg(long)]
    pub rebuild: bool,
}
