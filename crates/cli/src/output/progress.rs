//! A progress bar for operations of more than a second, on a terminal.

use super::Output;
use avfs_api::wire::ProgressEvent;
use indicatif::{HumanBytes, ProgressBar, ProgressStyle};
use std::io::IsTerminal;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Shorter operations show no bar.
const PATIENCE: Duration = Duration::from_secs(1);

/// A progress bar. It is cleared when it is dropped.
pub struct Bar {
    label: &'static str,
    begun: Instant,
    bar: Option<ProgressBar>,
}

impl Bar {
    /// A bar, if standard error is a terminal.
    pub fn wanted(output: Output, label: &'static str) -> Option<Bar> {
        let visible = !output.is_json() && std::io::stderr().is_terminal();
        visible.then(|| Bar {
            label,
            begun: Instant::now(),
            bar: None,
        })
    }

    pub fn show(&mut self, progress: ProgressEvent) {
        if self.begun.elapsed() < PATIENCE {
            return;
        }
        let bar = self
            .bar
            .get_or_insert_with(|| new_bar(self.label, progress.total_bytes));
        bar.set_position(progress.bytes);
        let files = match progress.total_files {
            _ if progress.files == 0 => HumanBytes(progress.bytes).to_string(),
            Some(total) => format!("{} of {total} files", progress.files),
            None => format!("{} files, {}", progress.files, HumanBytes(progress.bytes)),
        };
        bar.set_message(files);
    }

    /// For operations of which only the bytes are known.
    pub fn show_bytes(&mut self, bytes: u64) {
        self.show(ProgressEvent {
            bytes,
            ..ProgressEvent::default()
        });
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

/// A spinner while an answer takes longer than a second, on a terminal.
pub struct Waiting {
    answered: Option<Sender<()>>,
    sign: Option<JoinHandle<()>>,
}

impl Waiting {
    /// Starts the spinner; dropping it stops and clears it.
    pub fn begin() -> Option<Waiting> {
        let visible = std::io::stdout().is_terminal() && std::io::stderr().is_terminal();
        visible.then(|| {
            let (answered, answer) = channel();
            Waiting {
                answered: Some(answered),
                sign: Some(std::thread::spawn(move || show_sign(&answer))),
            }
        })
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        drop(self.answered.take());
        if let Some(sign) = self.sign.take() {
            // A failing spinner does not fail the operation.
            let _ = sign.join();
        }
    }
}

fn show_sign(answer: &Receiver<()>) {
    if answer.recv_timeout(PATIENCE) != Err(RecvTimeoutError::Timeout) {
        return;
    }
    let spinner = ProgressBar::new_spinner();
    let style = ProgressStyle::with_template("{spinner} working, {elapsed}");
    spinner.set_style(style.expect("the template is a constant"));
    spinner.enable_steady_tick(Duration::from_millis(100));
    // Nothing is ever sent: the thread ends when the channel is closed.
    let _ = answer.recv();
    spinner.finish_and_clear();
}

fn new_bar(label: &'static str, total: Option<u64>) -> ProgressBar {
    let (bar, template) = match total {
        Some(total) => (
            ProgressBar::new(total),
            "{prefix} [{bar:30}] {bytes}/{total_bytes}, {msg}, {eta} left",
        ),
        None => (ProgressBar::new_spinner(), "{prefix} {spinner} {msg}"),
    };
    let style = ProgressStyle::with_template(template).expect("the template is a constant");
    bar.set_style(style.progress_chars("=> "));
    bar.set_prefix(label);
    bar
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn templates_are_well_formed_and_json_gets_no_bar() {
        for total in [None, Some(10)] {
            drop(new_bar("importing", total));
        }
        assert!(Bar::wanted(Output::json(), "importing").is_none());
    }
}
