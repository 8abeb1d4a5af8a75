//! The words of verbs that find things.

use clap::Args;
use std::ffi::OsString;

#[derive(Debug, Args)]
#[command(after_help = "\
Binary files are left out. A glob without / is of a file's name; ! in front leaves out what matches.

Examples:
  avfs grep TODO /workspace
  avfs grep -i 'error|warning' --glob '*.log' -C 2
  avfs grep -l 'fn main' --glob '*.rs' --glob '!target/'
  avfs grep -F 'a.b(c)' -c")]
pub struct GrepArgs {
    /// A regular expression
    #[arg(allow_hyphen_values = true)]
    pub pattern: String,
    /// A path of the vault; a relative one is taken from /
    #[arg(default_value = "/")]
    pub path: OsString,
    /// Let upper and lower case be the same
    #[arg(short, long)]
    pub ignore_case: bool,
    /// Show line numbers
    #[arg(short = 'n', long)]
    pub line_number: bool,
    /// Show only the paths of files with matches
    #[arg(short = 'l', long, conflicts_with = "count")]
    pub files_with_matches: bool,
    /// Show how many lines of each file match
    #[arg(short = 'c', long)]
    pub count: bool,
    /// Find lines that do not match
    #[arg(short = 'v', long)]
    pub invert_match: bool,
    /// Take the pattern as text, not as a regular expression
    #[arg(short = 'F', long)]
    pub fixed_strings: bool,
    /// Show so many lines after each match
    #[arg(short = 'A', long, value_name = "N")]
    pub after_context: Option<usize>,
    /// Show so many lines before each match
    #[arg(short = 'B', long, value_name = "N")]
    pub before_context: Option<usize>,
    /// Show so many lines before and after each match
    #[arg(short = 'C', long, value_name = "N")]
    pub context: Option<usize>,
    /// Only files that match; may be given several times
    #[arg(short = 'g', long = "glob", value_name = "GLOB")]
    pub globs: Vec<String>,
    /// Show at most so many matches
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
    /// A path of the vault; a relative one is taken from /
    #[arg(default_value = "/")]
    pub path: OsString,
    /// A glob of the last name
    #[arg(short = 'n', long, value_name = "GLOB")]
    pub name: Option<String>,
    /// Let upper and lower case be the same in names
    #[arg(short, long)]
    pub ignore_case: bool,
    /// File, directory, symbolic link or named pipe; several mean any of them
    #[arg(
        short = 't',
        long = "type",
        value_name = "f|d|l|p",
        value_delimiter = ','
    )]
    pub types: Vec<String>,
    /// Larger (+) or smaller (-) than, or of just so many bytes; with k, M or G
    #[arg(long = "size", value_name = "[+-]N", allow_hyphen_values = true)]
    pub sizes: Vec<String>,
    /// At least so many bytes
    #[arg(long, value_name = "BYTES")]
    pub min_size: Option<u64>,
    /// At most so many bytes
    #[arg(long, value_name = "BYTES")]
    pub max_size: Option<u64>,
    /// Changed longer (+) or less long (-) ago; in days, or with s, m, h, d or w
    #[arg(long = "mtime", value_name = "[+-]N", allow_hyphen_values = true)]
    pub mtimes: Vec<String>,
    /// Go down so many levels
    #[arg(short, long, value_name = "N")]
    pub depth: Option<usize>,
    /// Only what has this tag
    #[arg(long = "tag", value_name = "TAG")]
    pub tags: Vec<String>,
    /// Only what has this metadata
    #[arg(long = "meta", value_name = "KEY[=VALUE]")]
    pub meta: Vec<String>,
    /// Show at most so many paths
    #[arg(short, long, value_name = "N")]
    pub limit: Option<usize>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Words find files that hold all of them, in any form (run finds running). The index is made when
first needed and kept up by itself.

Examples:
  avfs search parser error
  avfs search '\"exact words\" OR prefix*' --limit 5")]
pub struct SearchArgs {
    /// The words to look for
    #[arg(required = true)]
    pub query: Vec<String>,
    /// Show at most so many files
    #[arg(short, long, value_name = "N", default_value_t = 20)]
    pub limit: usize,
    /// Make the index from the beginning
    #[arg(long)]
    pub rebuild: bool,
}
