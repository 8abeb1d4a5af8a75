//! The arguments of `job` and `attach`.

use super::exec::{RunArgs, StreamName};
use super::time::{Time, in_millis};
use clap::{Args, Subcommand, ValueEnum};
use std::ffi::OsString;
use std::path::PathBuf;

#[derive(Debug, Subcommand)]
pub enum JobVerb {
    /// Start a command in the background
    Start(Box<JobStartArgs>),
    /// Show the state of a job and a part of its output
    Poll(JobPollArgs),
    /// List running and finished jobs
    List(JobListArgs),
    /// Print the output of a job
    Logs(JobLogsArgs),
    /// Wait until a job has ended, and exit with its exit code
    Wait(JobWaitArgs),
    /// End a job, or send it a signal
    Kill(JobKillArgs),
    /// Write to a job's standard input
    Stdin(JobStdinArgs),
}

#[derive(Debug, Args)]
pub struct JobStartArgs {
    /// What the job's life is tied to
    #[arg(long, default_value = "vault", value_name = "NAME")]
    pub lifetime: LifetimeName,
    /// With the lifetime `client`: end the job after this time without a request about it: 60s, 5m, or milliseconds [default: 60s]
    #[arg(long, value_name = "TIME", value_parser = in_millis)]
    pub lease: Option<Time>,
    #[command(flatten)]
    pub run: RunArgs,
}

#[derive(Copy, Clone, Debug, ValueEnum)]
pub enum LifetimeName {
    /// To its client: ended when no request about it came within the lease
    Client,
    /// To its vault: ended with the vault's sandbox or the daemon
    Vault,
    /// To nothing: `daemon stop` refuses while it runs, except with --force
    Detached,
}

#[derive(Debug, Args)]
pub struct JobPollArgs {
    /// The job's number
    pub job: u64,
    /// Read its standard output from this byte on
    #[arg(long, value_name = "BYTE", default_value_t = 0)]
    pub offset: u64,
    /// Read its standard error from this byte on
    #[arg(long, value_name = "BYTE", default_value_t = 0)]
    pub stderr_offset: u64,
    /// At most this many bytes of each stream
    #[arg(long, value_name = "BYTES")]
    pub limit: Option<u64>,
    /// Add the envelope if the job has ended
    #[arg(long)]
    pub envelope: bool,
}

#[derive(Debug, Args)]
pub struct JobListArgs {
    /// Only running jobs
    #[arg(long)]
    pub running: bool,
}

#[derive(Debug, Args)]
pub struct JobLogsArgs {
    /// The job's number
    pub job: u64,
    /// Keep printing new output until the job has ended
    #[arg(short, long)]
    pub follow: bool,
    /// Start at this byte of the chosen stream, or of standard output
    #[arg(long, value_name = "BYTE", default_value_t = 0)]
    pub offset: u64,
    /// Start at this byte of standard error
    #[arg(
        long,
        value_name = "BYTE",
        default_value_t = 0,
        conflicts_with = "stream"
    )]
    pub stderr_offset: u64,
    /// Only this stream
    #[arg(long, value_name = "NAME")]
    pub stream: Option<StreamName>,
}

#[derive(Debug, Args)]
pub struct JobWaitArgs {
    /// The job's number
    pub job: u64,
    /// Wait at most this long, then exit with 124: 30s, 5m, or milliseconds
    #[arg(long, value_name = "TIME", value_parser = in_millis)]
    pub timeout: Option<Time>,
}

#[derive(Debug, Args)]
pub struct JobKillArgs {
    /// The job's number
    pub job: u64,
    /// Only send this signal, as INT or 2, to every process of the job
    #[arg(long, short, value_name = "NAME", value_parser = signal)]
    pub signal: Option<i32>,
}

#[derive(Debug, Args)]
pub struct JobStdinArgs {
    /// The job's number
    pub job: u64,
    /// The text to write, a newline is added; `-` or nothing reads standard input
    pub text: Option<OsString>,
    /// Do not add a newline
    #[arg(short, long)]
    pub no_newline: bool,
    /// Close the job's standard input afterwards
    #[arg(long)]
    pub eof: bool,
}

#[derive(Debug, Args)]
pub struct AttachArgs {
    /// The job's number
    pub job: u64,
    /// The key that disconnects
    #[arg(long, value_name = "KEY", default_value = "ctrl-\\", value_parser = key)]
    pub detach_key: u8,
    /// Record the terminal to this file, as an asciicast
    #[arg(long, value_name = "FILE")]
    pub record: Option<PathBuf>,
}

const SIGNALS: [(&str, i32); 12] = [
    ("HUP", 1),
    ("INT", 2),
    ("QUIT", 3),
    ("KILL", 9),
    ("USR1", 10),
    ("USR2", 12),
    ("TERM", 15),
    ("CHLD", 17),
    ("CONT", 18),
    ("STOP", 19),
    ("TSTP", 20),
    ("WINCH", 28),
];

fn signal(text: &str) -> Result<i32, String> {
    let name = text.to_ascii_uppercase();
    let name = name.strip_prefix("SIG").unwrap_or(&name);
    let named = SIGNALS.iter().find(|(known, _)| *known == name);
    match (named, text.parse::<i32>()) {
        (Some((_, number)), _) => Ok(*number),
        (None, Ok(number @ 1..=31)) => Ok(number),
        _ => Err("a signal is a name such as INT, or a number from 1 to 31".into()),
    }
}

/// A key that is typed with Ctrl.
fn key(text: &str) -> Result<u8, String> {
    let key = text
        .strip_prefix("ctrl-")
        .or_else(|| text.strip_prefix('^'));
    match key.map(str::as_bytes) {
        Some([letter]) if (b'@'..=b'_').contains(&letter.to_ascii_uppercase()) => {
            Ok(letter.to_ascii_uppercase() & 0x1f)
        }
        _ => Err("a key is written as ctrl-a or ctrl-\\".into()),
    }
}

/// A size as `80x24`: rows and columns.
pub fn size(text: &str) -> Result<(u16, u16), String> {
    let wrong = || "a size is written as COLUMNSxROWS, such as 80x24".to_owned();
    let (columns, rows) = text.split_once('x').ok_or_else(wrong)?;
    let number = |text: &str| text.parse::<u16>().map_err(|_| wrong());
    Ok((number(rows)?, number(columns)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signals_keys_and_sizes_are_read_as_people_write_them() {
        for (text, number) in [("INT", 2), ("sigterm", 15), ("9", 9), ("28", 28)] {
            assert_eq!(signal(text), Ok(number));
        }
        for wrong in ["", "0", "32", "NONE", "-9"] {
            assert!(signal(wrong).is_err(), "{wrong}");
        }
        assert_eq!(key("ctrl-\\"), Ok(0x1c));
        assert_eq!(key("^a"), Ok(1));
        for wrong in ["", "a", "ctrl-", "ctrl-ab", "ctrl-1"] {
            assert!(key(wrong).is_err(), "{wrong}");
        }
        assert_eq!(size("80x24"), Ok((24, 80)));
        for wrong in ["", "80", "80x", "x24", "80x24x3", "99999x1"] {
            assert!(size(wrong).is_err(), "{wrong}");
        }
    }
}
