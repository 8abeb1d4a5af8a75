//! Commands that go on by themselves: jobs.

use super::answer::{created, done, ran};
use super::asker::{Asker, Asks};
use super::run::ExecIn;
use super::sandboxes::running;
use crate::ops::failure::Failure;
use crate::wire::{JobAnswer, JobItem, JobKill, JobList, JobPoll, JobPolled, JobStart};
use avfs_runtime::ErrorKind;
use axum::extract::Path;
use axum::response::Response;
use serde_json::{Value, json};

pub(in crate::http) async fn start(
    Path(name): Path<String>,
    asker: Asker,
) -> Result<Response, Failure> {
    let (asks, command) = asker.read::<ExecIn>().await?;
    let marks = running(&asks, &name).await?;
    let start = JobStart {
        exec: command.request(&marks)?,
        ..JobStart::default()
    };
    match asks.ask(&name, start).await? {
        JobAnswer::Started(job) => {
            let job = polled(&asks, &name, &job.job_id.to_string()).await?.job;
            Ok(created(item(&job)))
        }
        JobAnswer::Refused(envelope) => ran(*envelope),
    }
}

/// The job of this id, if it is one of that sandbox.
async fn polled(asks: &Asks, name: &str, id: &str) -> Result<JobPolled, Failure> {
    let missing = || {
        let what = format!("sandbox '{name}' has no detached command {id:?}");
        Failure::new(ErrorKind::NotFound, what)
    };
    let poll = JobPoll {
        job_id: id.parse().map_err(|_| missing())?,
        ..JobPoll::default()
    };
    let polled = asks.ask("", poll).await?;
    match polled.job.vault == name {
        true => Ok(polled),
        false => Err(missing()),
    }
}

fn item(job: &JobItem) -> Value {
    let status = match (job.running, job.ending.exit_code) {
        (true, _) => "running",
        (false, Some(0)) => "completed",
        (false, _) => "failed",
    };
    json!({
        "id": job.job_id.to_string(),
        "sandbox": job.vault,
        "command": job.command,
        "pid": null,
        "status": status,
        "exit_code": job.ending.exit_code,
        "started_at": job.started_at,
    })
}

pub(in crate::http) async fn list(
    Path(name): Path<String>,
    asker: Asker,
) -> Result<Response, Failure> {
    let list = JobList {
        vault: Some(name),
        ..JobList::default()
    };
    let jobs = asker.asks().ask("", list).await?.jobs;
    Ok(done(jobs.iter().map(item).collect::<Vec<_>>()))
}

pub(in crate::http) async fn info(
    Path((name, id)): Path<(String, String)>,
    asker: Asker,
) -> Result<Response, Failure> {
    let polled = polled(&asker.asks(), &name, &id).await?;
    Ok(done(item(&polled.job)))
}

pub(in crate::http) async fn logs(
    Path((name, id)): Path<(String, String)>,
    asker: Asker,
) -> Result<Response, Failure> {
    let polled = polled(&asker.asks(), &name, &id).await?;
    let (stdout, stderr) = (polled.stdout, polled.stderr);
    Ok(done(json!({ "stdout": stdout, "stderr": stderr })))
}

pub(in crate::http) async fn kill(
    Path((name, id)): Path<(String, String)>,
    asker: Asker,
) -> Result<Response, Failure> {
    let asks = asker.asks();
    let job_id = polled(&asks, &name, &id).await?.job.job_id;
    let signal = None;
    asks.ask("", JobKill { job_id, signal }).await?;
    Ok(done(format!("Killed {id}")))
}
