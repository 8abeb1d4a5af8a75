//! Log lines for whoever operates a daemon: one JSON object for every request and every command. They have operations,
//! statuses, principals, times and the ids of execs. No vault, path, command, body or credential is in them.

use crate::wire::{Ending, StatusWord};
use avfs_runtime::Principal;
use serde_json::{Value, json};
use std::io;
use std::net::IpAddr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::time::Duration;

/// Lines that wait for a slow reader; more are dropped, and the next line says how many.
const WAITING_MAX: usize = 1024;

/// Writes one line.
pub type WriteLine = Box<dyn FnMut(&str) + Send>;

/// The log of a daemon, if its owner wants one.
#[derive(Default)]
pub(crate) struct Logs {
    lines: OnceLock<SyncSender<Value>>,
    dropped: AtomicU64,
}

impl Logs {
    /// Writes lines from now on, on a thread of its own: no request waits for a slow reader.
    pub fn begin(&self, mut write: WriteLine) -> io::Result<()> {
        let (lines, waiting) = sync_channel::<Value>(WAITING_MAX);
        let thread = std::thread::Builder::new().name("log".into());
        thread.spawn(move || waiting.iter().for_each(|line| write(&line.to_string())))?;
        // It is begun once.
        let _ = self.lines.set(lines);
        Ok(())
    }

    /// A request that was answered.
    pub fn request(&self, operation: &str, status: u16, took: Duration, by: Option<Principal>) {
        self.write(|| {
            json!({
                "event": "request",
                "operation": operation,
                "status": status,
                "ms": millis(took),
                "by": by.map(|by| by.to_string()),
            })
        });
    }

    /// A command that has ended.
    pub fn command(&self, exec: &str, how: (StatusWord, &Ending), took: Duration, by: Principal) {
        let (status, ending) = how;
        self.write(|| {
            json!({
                "event": "command",
                "exec": exec,
                "status": status,
                "exit_code": ending.exit_code,
                "signal": ending.signal,
                "ms": millis(took),
                "by": by.to_string(),
            })
        });
    }

    /// A job that was started.
    pub fn job(&self, job: u64, exec: &str, by: Principal) {
        self.write(|| json!({ "event": "job", "job": job, "exec": exec, "by": by.to_string() }));
    }

    /// A request without a valid credential.
    pub fn unauthenticated(&self, address: IpAddr) {
        let address = address.to_string();
        self.write(|| json!({ "event": "unauthenticated", "address": address }));
    }

    fn write(&self, line: impl FnOnce() -> Value) {
        let Some(lines) = self.lines.get() else {
            return;
        };
        let mut line = line();
        line["time"] = jiff::Timestamp::now().to_string().into();
        let dropped = self.dropped.swap(0, Ordering::Relaxed);
        if dropped > 0 {
            line["dropped"] = dropped.into();
        }
        if lines.try_send(line).is_err() {
            self.dropped.fetch_add(dropped + 1, Ordering::Relaxed);
        }
    }
}

/// Milliseconds, with three digits behind the point.
fn millis(took: Duration) -> f64 {
    took.as_micros() as f64 / 1e3
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;

    #[test]
    fn what_a_slow_reader_misses_is_counted() {
        let logs = Logs::default();
        let one = || logs.request("ls", 200, Duration::ZERO, Some(Principal::OWNER));
        one();
        let (entered, entering) = channel();
        let (go, held) = channel::<()>();
        let (told, telling) = channel();
        let write = move |line: &str| {
            let _ = entered.send(());
            let _ = held.recv();
            let _ = told.send(line.to_owned());
        };
        logs.begin(Box::new(write)).unwrap();
        one();
        entering.recv().unwrap();
        // One is being written, and the queue takes so many more.
        for _ in 0..WAITING_MAX + 5 {
            one();
        }
        drop(go);
        let next = || serde_json::from_str::<Value>(&telling.recv().unwrap()).unwrap();
        for _ in 0..=WAITING_MAX {
            let line = next();
            assert_eq!(
                (&line["operation"], &line["by"]),
                (&json!("ls"), &json!("owner"))
            );
            assert_eq!(line["dropped"], Value::Null, "{line}");
        }
        one();
        assert_eq!(next()["dropped"], 5);
    }
}
