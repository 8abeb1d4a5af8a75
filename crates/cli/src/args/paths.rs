//! The words of verbs about single paths.

use clap::Args;
use std::ffi::OsString;
use std::path::PathBuf;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  avfs cat /src/main.py
  avfs cat /src/main.py --version 3              as it was in that version of the vault
  avfs cat /var/log/big.log --offset 1000000 --limit 4096")]
pub struct CatArgs {
    /// A path of the vault; a relative one is taken from /
    pub path: OsString,
    /// Read from this version of the vault (`avfs log` lists them)
    #[arg(short = 'v', long, value_name = "N", value_parser = super::version)]
    pub version: Option<u64>,
    /// The first byte to print
    #[arg(long, value_name = "BYTES", default_value_t = 0)]
    pub offset: u64,
    /// Print at most so many bytes
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
    /// A path of the vault; a relative one is taken from /
    pub path: OsString,
    /// The new content; read from standard input when left out
    #[arg(allow_hyphen_values = true)]
    pub content: Option<OsString>,
    /// Take the content from a file of this machine
    #[arg(long, value_name = "HOST_FILE", conflicts_with = "content")]
    pub from_file: Option<PathBuf>,
    /// Add to the end of the file instead of replacing it
    #[arg(short, long)]
    pub append: bool,
    /// Make missing directories above it
    #[arg(short, long)]
    pub parents: bool,
    /// The mode afterwards, as chmod takes it [default for a new file: 644]
    #[arg(short, long)]
    pub mode: Option<String>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  avfs cp /config.toml /config.bak
  avfs cp -r /workspace /before                  costs the same whatever its size")]
pub struct CpArgs {
    /// What to copy
    pub source: OsString,
    /// Where to; into it when it is a directory
    pub destination: OsString,
    /// Copy a directory and all that is in it
    #[arg(short, long)]
    pub recursive: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  avfs ln /data/model.bin /model.bin             one more name for the same file
  avfs ln -s ../shared/lib.sh /bin/lib.sh        a link that names a path")]
pub struct LnArgs {
    /// The file that gets another name, or the path a symbolic link names
    #[arg(allow_hyphen_values = true)]
    pub target: OsString,
    /// The new name
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
    /// Octal, or symbolic as in u+x,go-w
    #[arg(allow_hyphen_values = true)]
    pub mode: String,
    /// A path of the vault; a relative one is taken from /
    pub path: OsString,
    /// Change everything in a directory too
    #[arg(short = 'R', long)]
    pub recursive: bool,
}

#[derive(Debug, Args)]
pub struct TouchArgs {
    /// A path of the vault; a relative one is taken from /
    pub path: OsString,
    /// Leave it alone if it is not there
    #[arg(short = 'c', long)]
    pub no_create: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
The text must be in the file exactly once, so that there is no doubt which one is meant.

Examples:
  avfs edit /src/main.py --old 'retries = 3' --new 'retries = 5'
  avfs edit /src/main.py --old old_name --new new_name --all")]
pub struct EditArgs {
    /// A path of the vault; a relative one is taken from /
    pub path: OsString,
    /// The exact text to replace
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    pub old: OsString,
    /// What to put in its place
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    pub new: OsString,
    /// Replace every occurrence
    #[arg(long)]
    pub all: bool,
}

#[derive(Debug, Args)]
pub struct TreeArgs {
    /// A path of the vault; a relative one is taken from /
    #[arg(default_value = "/")]
    pub path: OsString,
    /// Go down so many levels
    #[arg(short = 'L', long, value_name = "N")]
    pub level: Option<usize>,
}
