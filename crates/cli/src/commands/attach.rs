//! `avfs attach`: connect this terminal to the terminal of a job.

use crate::args::AttachArgs;
use crate::cast::{Cast, Recording};
use crate::error::{Error, Result};
use crate::exit;
use crate::output::{Output, note};
use crate::screen::{Keys, Screen};
use crate::session::Session;
use avfs_api::client::{Attached, Attachment, Detach};
use avfs_api::wire::{JobLogs, JobPoll, JobPolled};
use std::ops::ControlFlow;

/// How much earlier output is shown first.
const TAIL: u64 = 4096;

pub fn run(args: AttachArgs, session: &mut Session, output: Output) -> Result<u8> {
    let job = look(session, args.job)?;
    if job.job.terminal.is_none() {
        return Err(Error::Invalid {
            text: format!("job {} has no terminal", args.job),
            hint: Some(format!(
                "`avfs job logs -f {}` follows its output; a job started with --tty has a terminal",
                args.job
            )),
        });
    }
    let mut screen = Screen::open()?;
    let cast = args
        .record
        .map(|path| Cast::begin(&path, screen.size(), &job.job.command));
    let cast = Recording::new(cast.transpose()?);
    let (detach, noted) = (Detach::default(), cast.clone());
    let attachment = Attachment {
        logs: JobLogs {
            job_id: args.job,
            stdout_offset: beginning(&job),
            ..JobLogs::default()
        },
        input: Box::new(Keys {
            keys: screen.keys()?,
            detach_key: args.detach_key,
            detach: detach.clone(),
        }),
        window: screen.window(move |size| noted.resize(size))?,
        detach,
    };
    let raw = screen.begin()?;
    let attached = session.job_attach(attachment, &mut |bytes| {
        cast.output(bytes);
        match screen.show(bytes) {
            Ok(()) => ControlFlow::Continue(()),
            Err(_) => ControlFlow::Break(()),
        }
    });
    screen.leave();
    if !matches!(attached, Ok(Attached::Over(_))) {
        // The program was in the middle of a line, perhaps; if the terminal is gone, it does not matter.
        let _ = screen.show(b"\r\n");
    }
    drop(raw);
    let attached = attached?;
    cast.end()?;
    match attached {
        Attached::Detached => {
            note(&format!(
                "disconnected from job {}, which continues",
                args.job
            ))?;
            Ok(exit::OK)
        }
        Attached::Over(_) => super::job::over(session, args.job, output),
    }
}

/// The state of the job and the end of its output.
fn look(session: &mut Session, job_id: u64) -> Result<JobPolled> {
    let nothing = JobPoll {
        job_id,
        limit: Some(0),
        ..JobPoll::default()
    };
    let kept = session.call(&nothing)?.offsets.stdout.kept;
    session.call(&JobPoll {
        job_id,
        stdout_offset: kept.saturating_sub(TAIL),
        ..JobPoll::default()
    })
}

/// Where to start: at the beginning of a line, not within an escape sequence.
fn beginning(job: &JobPolled) -> u64 {
    let range = job.offsets.stdout;
    let bytes = match &job.stdout_b64 {
        Some(exact) => &exact.0,
        None => job.stdout.as_bytes(),
    };
    let line = bytes.iter().position(|byte| *byte == b'\n');
    match (range.from, line) {
        (0, _) => 0,
        (from, Some(line)) => from + line as u64 + 1,
        (_, None) => range.to,
    }
}
