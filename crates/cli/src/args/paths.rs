//! The arguments of verbs about single paths.

use clap::Args;
use std::ffi::OsString;
use std::path::PathBuf;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  avfs cat /src/main.py
  avfs cat /src/main.py --version 3              from an older version of the vault
  avfs cat /var/log/big.log --offset 1000000 --limit 4096")]
pub struct CatArgs {
    /// A path of the vault; relative paths start at /
    pub path: OsString,
    /// Read from this version of the vault (`avfs log` lists them)
    #[arg(short = 'v', long, value_name = "N", value_parser = super::version)]
    pub version: Option<u64>,
    /// The first byte to print
    #[arg(long, value_name = "BYTES", default_value_t = 0)]
    pub offset: u64,
    /// Print at most this many bytes
    #[arg(long, value_name = "BYTES")]
    pub limit: Option<u64>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  avfs write /notes.txt 'one line'
  make-report | avfs write /reports/today.html --parents
  avfs write /bin/tool --from-file ./tool --mode 755
  avfs write /log.txt 'more' --append")]
pub struct WriteArgs {
    /// A path of the vault; relative paths start at /
    pub path: OsString,
    /// The new content [default: read from standard input]
    #[arg(allow_hyphen_values = true)]
    pub content: Option<OsString>,
    /// Read the content from a host file
    #[arg(long, value_name = "HOST_FILE", conflicts_with = "content")]
    pub from_file: Option<PathBuf>,
    /// Append to the file
    #[arg(short, long)]
    pub append: bool,
    /// Create missing parent directories
    #[arg(short, long)]
    pub parents: bool,
    /// Mode of the file, octal or symbolic [default for a new file: 644]
    #[arg(short, long)]
    pub mode: Option<String>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  avfs cp /config.toml /config.bak
  avfs cp -r /workspace /before                  copies no content, whatever the size")]
pub struct CpArgs {
    /// What to copy
    pub source: OsString,
    /// The new path; an existing directory gets it as an entry
    pub destination: OsString,
    /// Copy a directory and everything in it
    #[arg(short, long)]
    pub recursive: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  avfs ln /data/model.bin /model.bin             a hard link
  avfs ln -s ../shared/lib.sh /bin/lib.sh        a symbolic link")]
pub struct LnArgs {
    /// The existing file, or the target of a symbolic link
    #[arg(allow_hyphen_values = true)]
    pub target: OsString,
    /// The path of the link
    pub path: OsString,
    /// Make a symbolic link
    #[arg(short, long)]
    pub symbolic: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  avfs chmod +x /workspace/run.sh
  avfs chmod -R u=rwX,go=rX /workspace")]
pub struct ChmodArgs {
    /// Octal, or symbolic such as u+x,go-w
    #[arg(allow_hyphen_values = true)]
    pub mode: String,
    /// A path of the vault; relative paths start at /
    pub path: OsString,
    /// Also change everything in the directory
    #[arg(short = 'R', long)]
    pub recursive: bool,
}

#[derive(Debug, Args)]
pub struct TouchArgs {
    /// A path of the vault; relative paths start at /
    pub path: OsString,
    /// Do not create the file if it does not exist
    #[arg(short = 'c', long)]
    pub no_create: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Without --all, the text must occur exactly once in the file.

Examples:
  avfs edit /src/main.py --old 'retries = 3' --new 'retries = 5'
  avfs edit /src/main.py --old old_name --new new_name --all")]
pub struct EditArgs {
    /// A path of the vault; relative paths start at /
    pub path: OsString,
    /// The exact text to replace
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    pub old: OsString,
    /// The replacement
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    pub new: OsString,
    /// Replace every occurrence
    #[arg(long)]
    pub all: bool,
}

#[derive(Debug, Args)]
pub struct TreeArgs {
    /// A path of the vault; relative paths start at /
    #[arg(default_value = "/")]
    pub path: OsString,
    /// Show at most this many levels
    #[arg(short = 'L', long, value_name = "N")]
    pub level: Option<usize>,
}
