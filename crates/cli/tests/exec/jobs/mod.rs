//! Jobs: commands that outlive their callers, and what can be said of them at any time.

mod basics;
mod events;
mod lives;
mod many;
mod vaults;

use avfs_testkit::{Home, SOON, wait_for};
use serde_json::Value;

/// Starts a job, which must be one; gives its number.
fn start(home: &Home, words: &[&str]) -> String {
    let answer = home.json(&[&["job", "start"], words].concat());
    assert_eq!(answer["status"], "started", "{words:?}: {answer:#}");
    answer["job_id"].as_u64().expect("a number").to_string()
}

fn poll(home: &Home, job: &str) -> Value {
    home.json(&["job", "poll", job])
}

/// The job as the list has it, which does not count as asking after it.
fn listed(home: &Home, job: &str) -> Value {
    let jobs = home.json(&["job", "list"])["jobs"].clone();
    let found = jobs.as_array().unwrap().iter();
    let mut found = found.filter(|item| item["job_id"].as_u64() == job.parse().ok());
    found.next().cloned().unwrap_or_default()
}

/// Waits until the job has written this; gives what it has.
fn written(home: &Home, job: &str, text: &str) -> Value {
    let mut polled = Value::Null;
    let has = wait_for(SOON, || {
        polled = poll(home, job);
        polled["stdout"]
            .as_str()
            .is_some_and(|all| all.contains(text))
    });
    assert!(has, "job {job} never wrote {text:?}: {polled:#}");
    polled
}

/// Waits for the job's end; gives what became of it.
fn wait(home: &Home, job: &str) -> Value {
    let waited = home.json(&["job", "wait", job, "--timeout", "60s"]);
    assert_eq!(waited["running"], false, "{waited:#}");
    waited
}

/// Until somebody writes `/tmp/go`.
const UNTIL_GO: &str = "while [ ! -e /tmp/go ]; do sleep 0.02; done";
