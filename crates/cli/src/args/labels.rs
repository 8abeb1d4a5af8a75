//! The arguments of verbs about labels.

use clap::Args;
use std::ffi::OsString;

#[derive(Debug, Args)]
#[command(after_help = "\
Tags belong to the vault's state: they are forked, checkpointed and restored with it.

Examples:
  avfs tag /src/main.py reviewed
  avfs tag /src/main.py --list
  avfs tag --list-all
  avfs find --tag reviewed")]
pub struct TagArgs {
    /// A path of the vault; relative paths start at /
    #[arg(required_unless_present_any = ["list_all", "create", "delete", "rename"])]
    pub path: Option<OsString>,
    /// The tag to add
    #[arg(required_unless_present_any = ["list", "list_all", "create", "delete", "rename"])]
    pub tag: Option<String>,
    /// List the tags of the path
    #[arg(short, long, conflicts_with_all = ["tag", "list_all", "delete", "rename"])]
    pub list: bool,
    /// List every tag in the vault, and how many paths have it
    #[arg(long, conflicts_with = "path")]
    pub list_all: bool,
    /// Refused: a tag exists as soon as a path has it
    #[arg(long, value_name = "TAG", hide = true, exclusive = true)]
    pub create: Option<String>,
    /// Remove a tag from every path
    #[arg(long, value_name = "TAG", conflicts_with_all = ["path", "list_all"])]
    pub delete: Option<String>,
    /// Rename a tag on every path
    #[arg(long, value_name = "OLD:NEW", conflicts_with_all = ["path", "list_all", "delete"])]
    pub rename: Option<String>,
}

#[derive(Debug, Args)]
pub struct UntagArgs {
    /// A path of the vault; relative paths start at /
    pub path: OsString,
    /// The tag to remove
    pub tag: String,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Metadata belongs to the vault's state: it is forked, checkpointed and restored with it.

Examples:
  avfs meta /data.csv                             all keys
  avfs meta /data.csv source                      one value
  avfs meta /data.csv source 'https://example.org/data'
  avfs meta /data.csv source --delete
  avfs meta /data.csv --export > meta.json
  avfs meta /data.csv --import '{\"source\": \"lab\", \"year\": \"2026\"}'")]
pub struct MetaArgs {
    /// A path of the vault; relative paths start at /
    pub path: OsString,
    /// The key to read or set
    pub key: Option<String>,
    /// The value to set
    #[arg(allow_hyphen_values = true, conflicts_with = "delete")]
    pub value: Option<String>,
    /// Remove the key
    #[arg(short, long, requires = "key")]
    pub delete: bool,
    /// Print all metadata as JSON
    #[arg(long, conflicts_with_all = ["key", "delete", "import"])]
    pub export: bool,
    /// Set the keys of a JSON object of strings
    #[arg(long, value_name = "JSON", conflicts_with_all = ["key", "delete"])]
    pub import: Option<String>,
}
