//! A command with callbacks for what it writes.

use crate::command::Command;
use crate::error::Result;
use crate::result::CommandResult;
use crate::running::Event;
use std::fmt;
use std::ops::ControlFlow;

/// A command with callbacks: made by [`Command::on_stdout`], [`Command::on_stderr`] or [`Command::on_event`].
///
/// Callbacks are called on the thread that runs the command. They may ask for anything themselves. A command waits for a
/// slow callback as it would at a pipe, but not beyond its own time limit.
///
/// ```standalone_crate
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # agentvfs::init();
/// # let dir = std::env::temp_dir().join(format!("agentvfs-stream-{}", std::process::id()));
/// # let avfs = agentvfs::Avfs::embedded(&dir)?;
/// # let vault = avfs.create_vault("demo")?;
/// let mut seen = Vec::new();
/// let result = vault
///     .shell("echo one; echo two")
///     .on_stdout(|bytes| seen.extend_from_slice(bytes))
///     .run()?;
/// assert_eq!(seen, b"one\ntwo\n");
/// assert_eq!(result.exit_code, 0);
/// # drop((avfs, vault));
/// # std::fs::remove_dir_all(&dir)?;
/// # Ok(())
/// # }
/// ```
#[must_use = "nothing runs before it is run"]
pub struct Streamed<'a> {
    command: Command,
    on_stdout: Option<OnBytes<'a>>,
    on_stderr: Option<OnBytes<'a>>,
    on_event: Option<OnEvent<'a>>,
}

type OnBytes<'a> = Box<dyn FnMut(&[u8]) + 'a>;
type OnEvent<'a> = Box<dyn FnMut(&Event) -> ControlFlow<()> + 'a>;

impl fmt::Debug for Streamed<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Streamed").field(&self.command).finish()
    }
}

impl<'a> Streamed<'a> {
    pub(crate) fn new(command: Command) -> Streamed<'a> {
        Streamed {
            command,
            on_stdout: None,
            on_stderr: None,
            on_event: None,
        }
    }

    /// Has `callback` called with what it writes to standard output, as it comes.
    pub fn on_stdout(mut self, callback: impl FnMut(&[u8]) + 'a) -> Streamed<'a> {
        self.on_stdout = Some(Box::new(callback));
        self
    }

    /// Has `callback` called with what it writes to standard error, as it comes.
    pub fn on_stderr(mut self, callback: impl FnMut(&[u8]) + 'a) -> Streamed<'a> {
        self.on_stderr = Some(Box::new(callback));
        self
    }

    /// Has `callback` called with everything that happens. When it breaks off, the command is ended.
    pub fn on_event(
        mut self,
        callback: impl FnMut(&Event) -> ControlFlow<()> + 'a,
    ) -> Streamed<'a> {
        self.on_event = Some(Box::new(callback));
        self
    }

    /// Runs it to its end.
    pub fn run(mut self) -> Result<CommandResult> {
        let mut running = self.command.spawn()?;
        // What is piped is for whoever spawns it.
        drop(running.take_stdin());
        while let Some(event) = running.next() {
            match (&event, &mut self.on_stdout, &mut self.on_stderr) {
                (Event::Stdout(bytes), Some(callback), _) => callback(bytes),
                (Event::Stderr(bytes), _, Some(callback)) => callback(bytes),
                _ => {}
            }
            if let Some(callback) = &mut self.on_event
                && callback(&event).is_break()
            {
                running.handle().cancel()?;
                break;
            }
        }
        running.wait()
    }
}
