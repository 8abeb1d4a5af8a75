//! What to do about errors over jobs, and over what is kept of a command.

use super::Error;
use crate::common::JobId;

impl Error {
    pub(crate) fn job_hint(&self) -> Option<String> {
        Some(match self {
            Error::JobNotFound { .. } => {
                "`avfs job list` shows them; those that are over are kept for a while only".into()
            }
            Error::Busy { .. } => {
                "`avfs job list` shows jobs and `avfs job kill` ends one; `checkpoint restore` and `vault \
                 delete` end all with --force"
                    .into()
            }
            Error::TooManyJobs { .. } => {
                "`avfs job list --running` shows them; `avfs job kill` ends one".into()
            }
            Error::JobOver { id } => format!("`avfs job poll {id}` says how it ended"),
            Error::NoInput { .. } => {
                "start it with --stdin or --tty; its input may also have ended, with it or by --eof"
                    .into()
            }
            Error::NoTerminal { id } => {
                format!("start it with --tty; `avfs job logs -f {id}` follows what it writes")
            }
            Error::NoOutput { .. } => {
                "only output beyond --output-limit is kept, for a week; the rest is in the envelope"
                    .into()
            }
            Error::ChangesUnknown { .. } => {
                "`avfs log` lists the versions that are kept, and `avfs diff` compares them".into()
            }
            Error::JobFailed { .. } => "see `avfs daemon logs`, and report it".into(),
            _ => return None,
        })
    }
}

/// Jobs by their numbers, for people.
pub(crate) fn named(jobs: &[JobId]) -> String {
    let numbers: Vec<String> = jobs.iter().map(ToString::to_string).collect();
    match numbers.as_slice() {
        [] => String::new(),
        [one] => format!(" (job {one})"),
        several => format!(" (jobs {})", several.join(", ")),
    }
}
