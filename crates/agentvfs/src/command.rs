//! A command to run in a vault, and on what terms.

use crate::error::{Error, ErrorKind, Result};
use crate::job::{JobOptions, Started, start};
use crate::result::CommandResult;
use crate::running::{Event, Running};
use crate::streamed::Streamed;
use crate::vault::Vault;
use avfs_api::client::{ExecIo, Input};
use avfs_api::wire::{
    Base64, CheckpointAsk, DecisionItem, DriverWord, Exec, ForkWord, NetworkName, PolicyExplain,
    ProfileWord, StdinItem, TtyAsk, to_text,
};
use std::ffi::OsString;
use std::fmt;
use std::io::{PipeWriter, Read};
use std::ops::ControlFlow;
use std::os::unix::ffi::OsStringExt;
use std::path::Path;
use std::time::Duration;

/// A command that is to run in a vault: made by [`Vault::command`] or [`Vault::shell`].
///
/// Nothing happens before [`run`](Command::run), [`spawn`](Command::spawn) or [`start`](Command::start). What is not said
/// is as the vault's settings say, else as the policy decides.
#[must_use = "nothing runs before it is run, spawned or started"]
pub struct Command {
    vault: Vault,
    argv: Vec<OsString>,
    request: Exec,
    input: Reads,
}

/// What it reads.
enum Reads {
    /// Nothing, or what the request itself holds.
    InRequest,
    Reader(Input),
    Piped,
}

impl fmt::Debug for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Command")
            .field("vault", &self.vault)
            .field("argv", &self.argv)
            .field("shell", &self.request.shell)
            .finish_non_exhaustive()
    }
}

/// What it is to be run with.
pub(crate) struct Ready {
    pub vault: Vault,
    pub request: Exec,
    pub io: ExecIo,
    pub stdin: Option<PipeWriter>,
}

impl Command {
    pub(crate) fn program(vault: Vault, program: OsString) -> Command {
        Command {
            vault,
            argv: vec![program],
            request: Exec::default(),
            input: Reads::InRequest,
        }
    }

    pub(crate) fn shell(vault: Vault, text: String) -> Command {
        Command {
            vault,
            argv: Vec::new(),
            request: Exec {
                shell: Some(text),
                ..Exec::default()
            },
            input: Reads::InRequest,
        }
    }

    /// Adds an argument. Text for the shell takes none: it is an error when the command is run.
    pub fn arg(mut self, word: impl Into<OsString>) -> Command {
        self.argv.push(word.into());
        self
    }

    /// Adds arguments.
    pub fn args<W: Into<OsString>>(mut self, words: impl IntoIterator<Item = W>) -> Command {
        self.argv.extend(words.into_iter().map(Into::into));
        self
    }

    /// The directory in the vault that it runs in. Left out: `/workspace` if that exists, else `/`.
    pub fn cwd(mut self, path: impl AsRef<Path>) -> Command {
        let (cwd, exact) = crate::paths::in_vault(path);
        self.request.cwd = Some(cwd);
        self.request.cwd_b64 = exact;
        self
    }

    /// Sets a variable of its environment, which is built and never inherited from this program.
    pub fn env(mut self, name: impl Into<String>, value: impl Into<OsString>) -> Command {
        let name = name.into();
        self.request.env.remove(&name);
        self.request.env_b64.remove(&name);
        match to_text(value.into().into_vec()) {
            (_, Some(exact)) => drop(self.request.env_b64.insert(name, exact)),
            (text, None) => drop(self.request.env.insert(name, text)),
        }
        self
    }

    /// How long it may run. Left out: as the vault's settings say, else five minutes.
    pub fn timeout(mut self, time: Duration) -> Command {
        // 0 would mean that there is no limit.
        let millis = u64::try_from(time.as_millis()).unwrap_or(u64::MAX).max(1);
        self.request.timeout_ms = Some(millis);
        self
    }

    /// Lets it run for as long as it takes.
    pub fn no_timeout(mut self) -> Command {
        self.request.timeout_ms = Some(0);
        self
    }

    /// How many bytes of each stream the result keeps. Left out: 1 MiB; at most 4 MiB. All of it is streamed, and a part
    /// of what is left out can be had from [`crate::Avfs::output`].
    pub fn output_limit(mut self, bytes: usize) -> Command {
        self.request.output_limit = Some(bytes);
        self
    }

    /// How many changed paths the result lists, up to 10,000. Left out: 1,000, in 64 KiB. All can be had from
    /// [`crate::Avfs::exec_changes`].
    pub fn changes_limit(mut self, paths: usize) -> Command {
        self.request.changes_limit = Some(paths);
        self
    }

    /// What it reads. Left out: nothing.
    pub fn stdin(mut self, content: impl Into<Vec<u8>>) -> Command {
        self.input = Reads::InRequest;
        self.request.stdin = Some(match String::from_utf8(content.into()) {
            Ok(text) => StdinItem::Text(text),
            Err(error) => StdinItem::Base64(Base64(error.into_bytes())),
        });
        self
    }

    /// What it reads, read from `reader` as the command takes it. A job is brought its input by
    /// [`crate::Job::write_stdin`] instead.
    pub fn stdin_reader(mut self, reader: impl Read + Send + 'static) -> Command {
        self.input = Reads::Reader(Box::new(reader));
        self.request.stdin = Some(StdinItem::Live);
        self
    }

    /// Has it read what is written to [`Running::take_stdin`], or to the job by [`crate::Job::write_stdin`].
    pub fn stdin_piped(mut self) -> Command {
        self.input = Reads::Piped;
        self.request.stdin = Some(StdinItem::Live);
        self
    }

    /// Runs it at a terminal of this size: what it reads is typed, and all it writes is standard output.
    pub fn tty(mut self, rows: u16, columns: u16) -> Command {
        let term = self.request.tty.take().and_then(|tty| tty.term);
        self.request.tty = Some(TtyAsk {
            rows,
            columns,
            term,
        });
        self
    }

    /// Runs it at a terminal of this kind, such as `xterm`; of 24 lines and 80 columns, unless [`Command::tty`] says more.
    pub fn term(mut self, kind: impl Into<String>) -> Command {
        let tty = self.request.tty.get_or_insert(TtyAsk {
            rows: 24,
            columns: 80,
            term: None,
        });
        tty.term = Some(kind.into());
        self
    }

    /// Lets it read the vault and change nothing.
    pub fn readonly(mut self) -> Command {
        self.request.readonly = true;
        self
    }

    /// Saves the state before it under a name. Left out: the policy decides whether there is a checkpoint.
    pub fn checkpoint(mut self, name: impl Into<String>) -> Command {
        self.request.checkpoint = Some(CheckpointAsk::Named(name.into()));
        self
    }

    /// Saves no state before it: for the owner alone.
    pub fn no_checkpoint(mut self) -> Command {
        self.request.checkpoint = Some(CheckpointAsk::Never);
        self
    }

    /// Runs it in a fork that is made for it.
    pub fn in_fork(mut self, then: ForkWord) -> Command {
        self.request.fork = Some(then);
        self
    }

    /// How much memory it may use, in bytes.
    pub fn memory(mut self, bytes: u64) -> Command {
        self.request.limits.memory = Some(bytes);
        self
    }

    /// How many processors it may use; 0.5 is half of one.
    pub fn cpus(mut self, number: f64) -> Command {
        self.request.limits.cpus = Some(number);
        self
    }

    /// How many processes and threads it may have.
    pub fn pids(mut self, number: u32) -> Command {
        self.request.limits.pids = Some(number);
        self
    }

    /// By how many bytes the vault and its `/tmp` may grow.
    pub fn disk(mut self, bytes: u64) -> Command {
        self.request.limits.disk = Some(bytes);
        self
    }

    /// A named set of limits.
    pub fn profile(mut self, profile: ProfileWord) -> Command {
        self.request.profile = Some(profile);
        self
    }

    /// What holds it. Left out: namespaces. Anything weaker is for the owner alone.
    pub fn driver(mut self, driver: DriverWord) -> Command {
        self.request.driver = Some(driver);
        self
    }

    /// What it can reach. Left out: what the vault's setting says. Anything wider is for the owner alone.
    pub fn network(mut self, network: NetworkName) -> Command {
        self.request.network = Some(network);
        self
    }

    /// A host that it can reach besides, as `example.com` or `*.example.com:8080`.
    pub fn allow(mut self, host: impl Into<String>) -> Command {
        self.request.allow.push(host.into());
        self
    }

    /// Lets it read from the package registries of this host.
    pub fn allow_registries(self) -> Command {
        self.allow(avfs_runtime::HostRule::REGISTRIES)
    }

    /// If the policy wants it approved, waits until somebody has answered.
    pub fn wait_for_approval(mut self) -> Command {
        self.request.wait = true;
        self
    }

    /// Uses an approval that was given to this very command.
    pub fn approval(mut self, id: impl Into<String>) -> Command {
        self.request.approval = Some(id.into());
        self
    }

    /// If the policy wants it approved, tries it in a throwaway fork and asks with what it did.
    pub fn speculate(mut self) -> Command {
        self.request.speculate = true;
        self
    }

    /// Adds the changes as a patch to the result.
    pub fn patch(mut self) -> Command {
        self.request.patch = true;
        self
    }

    /// Adds what changed in its home directory, name by name, to the result.
    pub fn list_home_changes(mut self) -> Command {
        self.request.list_home_changes = true;
        self
    }

    /// What the policy would decide on it, without running it.
    pub fn explain(&self) -> Result<DecisionItem> {
        let request = self.request()?;
        let network = match (&request.network, request.allow.as_slice()) {
            (None, []) => None,
            (Some(NetworkName::Host | NetworkName::Observe), _) => Some("host"),
            (Some(NetworkName::None), []) => Some("none"),
            _ => Some("listed"),
        };
        let explained = self.vault.ask(&PolicyExplain {
            argv: request.argv,
            shell: request.shell,
            cwd: request.cwd,
            env: request.env,
            network: network.map(str::to_owned),
        })?;
        Ok(explained.decision)
    }

    /// Runs it to its end. That it failed, or was not let run, is no error here: the result says so.
    ///
    /// ```standalone_crate
    /// # use std::time::Duration;
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # agentvfs::init();
    /// # let dir = std::env::temp_dir().join(format!("agentvfs-run-{}", std::process::id()));
    /// # let avfs = agentvfs::Avfs::embedded(&dir)?;
    /// # let vault = avfs.create_vault("demo")?;
    /// let result = vault
    ///     .shell("cat; echo $GREETING >&2; exit 3")
    ///     .stdin("in")
    ///     .env("GREETING", "hello")
    ///     .timeout(Duration::from_secs(60))
    ///     .run()?;
    /// assert_eq!(result.exit_code, 3);
    /// assert_eq!((result.stdout.as_str(), result.stderr.as_str()), ("in", "hello\n"));
    /// assert!(!result.timed_out && result.changed_files.is_empty());
    /// # drop((avfs, vault));
    /// # std::fs::remove_dir_all(&dir)?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn run(self) -> Result<CommandResult> {
        let Ready {
            vault,
            request,
            mut io,
            stdin,
        } = self.ready()?;
        // Nobody will write to it, so its end is reached at once.
        drop(stdin);
        let silent = &mut |_| ControlFlow::Continue(());
        let envelope = vault.face.exec(vault.name(), &request, &mut io, silent)?;
        Ok(CommandResult::new(envelope))
    }

    /// Begins to run it and gives a handle: an iterator of what happens, by which it is also written to, resized, ended
    /// and waited for.
    pub fn spawn(self) -> Result<Running> {
        Running::start(self.ready()?)
    }

    /// Starts it as a job, which goes on without this program. A job has no time limit unless one is set.
    pub fn start(self) -> Result<Started> {
        self.start_with(&JobOptions::default())
    }

    /// Starts it as a job with options.
    pub fn start_with(self, options: &JobOptions) -> Result<Started> {
        if matches!(self.input, Reads::Reader(_)) {
            let what = "a job outlives this program and cannot read from it";
            let error = Error::new(ErrorKind::Invalid, what);
            return Err(error.with_hint("use `stdin_piped` and `Job::write_stdin`"));
        }
        let request = self.request()?;
        start(&self.vault, request, options)
    }

    /// Has `callback` called with what it writes to standard output, as it comes.
    pub fn on_stdout<'a>(self, callback: impl FnMut(&[u8]) + 'a) -> Streamed<'a> {
        Streamed::new(self).on_stdout(callback)
    }

    /// Has `callback` called with what it writes to standard error, as it comes.
    pub fn on_stderr<'a>(self, callback: impl FnMut(&[u8]) + 'a) -> Streamed<'a> {
        Streamed::new(self).on_stderr(callback)
    }

    /// Has `callback` called with everything that happens. When it breaks off, the command is ended.
    pub fn on_event<'a>(
        self,
        callback: impl FnMut(&Event) -> ControlFlow<()> + 'a,
    ) -> Streamed<'a> {
        Streamed::new(self).on_event(callback)
    }

    pub(crate) fn ready(self) -> Result<Ready> {
        let request = self.request()?;
        let mut stdin = None;
        let input: Option<Input> = match self.input {
            Reads::InRequest => None,
            Reads::Reader(reader) => Some(reader),
            Reads::Piped => {
                let (read, write) = std::io::pipe().map_err(|error| {
                    Error::new(ErrorKind::Unavailable, "a pipe cannot be made").because(error)
                })?;
                stdin = Some(write);
                Some(Box::new(read))
            }
        };
        Ok(Ready {
            vault: self.vault,
            request,
            io: ExecIo {
                input,
                ..ExecIo::default()
            },
            stdin,
        })
    }

    fn request(&self) -> Result<Exec> {
        let mut request = self.request.clone();
        if request.shell.is_some() {
            if !self.argv.is_empty() {
                let what = "text for the shell takes no arguments";
                return Err(Error::new(ErrorKind::Invalid, what));
            }
            return Ok(request);
        }
        let words: Vec<Vec<u8>> = self.argv.iter().map(|it| it.clone().into_vec()).collect();
        let is_text = words.iter().all(|word| std::str::from_utf8(word).is_ok());
        request.argv = words.iter().map(|it| to_text(it.clone()).0).collect();
        request.argv_b64 = (!is_text).then(|| words.into_iter().map(Base64).collect());
        Ok(request)
    }
}
