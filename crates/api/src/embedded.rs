//! A home inside this process: every operation of the table, through the same gate and handlers, without a daemon or a
//! socket. What [`crate::Client`] asks a daemon for, this does itself.

mod told;

use crate::client::ExecIo;
use crate::daemon::{open_auth, open_runtime};
use crate::daemon_paths::DaemonPaths;
use crate::error::{Error, Result};
use crate::http::Hosts;
use crate::ops::app::App;
use crate::ops::caller::{Ask, Caller, Grant, Peer};
use crate::ops::erased::{self, Answer, Erased, Request, Serve};
use crate::ops::failure::Failure;
use crate::ops::handler::Opened;
use crate::ops::parse_vault;
use crate::table::{Class, Operation};
use crate::wire::{
    CallId, DaemonStop, Envelope, Exec, ExecEvent, JobEvent, JobItem, JobLogs, ProgressEvent,
    StreamWord,
};
use avfs_runtime::{Config, ErrorKind, HostFacts, IfLost, Principal, Select};
use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read, Write};
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};
use told::{Deaf, Told, queue};

/// How long a home may still be held by one that this process has just dropped.
const PATIENCE: Duration = Duration::from_secs(2);
const PAUSE: Duration = Duration::from_millis(5);
/// The bytes of a file that are read at once.
const PIECE: usize = 256 << 10;

/// What a home in this process needs to know.
pub struct EmbeddedConfig {
    /// The home, and in which class and under which name it is asked.
    pub place: DaemonPaths,
    /// The program that is run as keeper and scanner: `avfs`, or one that calls [`avfs_runtime::helper_main`].
    pub binary: PathBuf,
    pub host: HostFacts,
    /// Where the owner wants layers to be.
    pub layers: Option<PathBuf>,
}

/// A home in this process. Every method may be called from any thread. Dropping it ends running commands and commits
/// what they wrote.
pub struct Embedded {
    app: Arc<App>,
    operations: HashMap<&'static str, Erased>,
    caller: Caller,
    /// Brings commands the input that came whole with their requests.
    event_loop: Option<tokio::runtime::Runtime>,
    /// Held so that its inode is nobody else's for as long as it is compared with.
    _home: File,
}

impl Embedded {
    /// Opens a home. [`Error::HomeTaken`] means that a daemon or another program has it open.
    pub fn open(config: EmbeddedConfig) -> Result<Embedded> {
        let EmbeddedConfig {
            place,
            binary,
            host,
            layers,
        } = config;
        place.prepare()?;
        let home = File::open(place.home()).map_err(|source| Error::File {
            what: "open",
            path: place.home().into(),
            source,
        })?;
        let config = Config {
            home: place.home().into(),
            runtime_dir: place.dir().into(),
            binary,
            host,
            layers,
            if_lost: IfLost::Refuse,
        };
        let deadline = Instant::now() + PATIENCE;
        let runtime = loop {
            match open_runtime(config.clone()) {
                Err(Error::HomeTaken { .. }) if Instant::now() < deadline => thread::sleep(PAUSE),
                opened => break opened?,
            }
        };
        let event_loop = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .map_err(Error::Setup)?;
        let (caller, auth) = (caller_of(&place), open_auth(place.home(), None)?);
        let operations = erased::all().into_iter().map(|it| (it.row.name, it));
        Ok(Embedded {
            app: Arc::new(App::new(runtime, place, None, auth, Hosts::default())),
            operations: operations.collect(),
            caller,
            event_loop: Some(event_loop),
            _home: home,
        })
    }

    /// Asks for one operation; see [`crate::Client::call`].
    pub fn call<O: Operation + Clone>(&self, vault: &str, request: &O) -> Result<O::Response> {
        self.call_watched(vault, request, &mut |_| ())
    }

    /// Asks for one operation that may take long, and hears how far it is.
    pub fn call_watched<O: Operation + Clone>(
        &self,
        vault: &str,
        request: &O,
        on_progress: &mut dyn FnMut(ProgressEvent),
    ) -> Result<O::Response> {
        if O::NAME == DaemonStop::NAME {
            return Err(refused(Failure::invalid("there is no daemon to stop")));
        }
        let (steps, told) = queue();
        let each = |step| {
            on_progress(step);
            ControlFlow::Continue(())
        };
        self.work(vault, request, told, each, move |ask, vault, request| {
            let answer = match &self.row::<O>().serve {
                Serve::Answer(serve) | Serve::Watched(serve) => serve(ask, vault, request, &steps),
                Serve::Runs(serve) => serve(ask, vault, request, &Deaf),
                Serve::Follows { once, .. } => once(ask, request, None),
                Serve::Tells { page, .. } => page(ask, request, None),
                _ => Err(Failure::invalid(format!("{} carries a stream", O::NAME))),
            }?;
            parse(answer)
        })
    }

    /// Asks for one operation whose request carries bytes.
    pub fn upload<O: Operation + Clone>(
        &self,
        vault: &str,
        request: &O,
        bytes: &mut (dyn Read + Send),
    ) -> Result<O::Response> {
        self.quietly(vault, request, |ask, vault, request| {
            let answer = match &self.row::<O>().serve {
                Serve::Receives(serve) => {
                    serve(ask, vault, request, bytes, &avfs_runtime::Unwatched)?
                }
                Serve::Feeds(open) => {
                    let feeding = open(ask, request)?;
                    let mut pipe = File::from(feeding.pipe);
                    (feeding.done)(give(bytes, &mut pipe)?)?
                }
                _ => return Err(Failure::invalid(format!("{} takes no bytes", O::NAME))),
            };
            parse(answer)
        })
    }

    /// Asks for one operation whose answer is bytes; gives how many there were.
    pub fn download<O: Operation + Clone>(
        &self,
        vault: &str,
        request: &O,
        out: &mut (dyn Write + Send),
    ) -> Result<u64> {
        let mut out = Counted { out, written: 0 };
        self.quietly(vault, request, |ask, vault, request| {
            match &self.row::<O>().serve {
                Serve::Sends(_, serve) => serve(ask, vault, request, &mut out)?,
                Serve::Opens(open) => copy(&open(ask, vault, request)?, &mut out)?,
                _ => return Err(Failure::invalid(format!("{} gives no bytes", O::NAME))),
            }
            out.flush().map_err(unwritten)
        })?;
        Ok(out.written)
    }

    /// Runs a command and hands its output over as it comes. If `on_event` breaks off, the command is ended.
    pub fn exec(
        &self,
        vault: &str,
        request: &Exec,
        io: &mut ExecIo,
        on_event: &mut dyn FnMut(ExecEvent) -> ControlFlow<()>,
    ) -> Result<Envelope> {
        let (events, told) = queue();
        let mut left = false;
        let each = |event| {
            if let ExecEvent::Started(started) = &event {
                self.bring_input(started.call, io);
            }
            let next = on_event(event);
            left = next.is_break();
            next
        };
        let run = move |ask: &Ask, vault, request| match &self.row::<Exec>().serve {
            Serve::Runs(serve) => parse(serve(ask, vault, request, &events)?),
            _ => Err(Failure::invalid("exec runs nothing")),
        };
        let ran = self.work(vault, request, told, each, run);
        match left {
            true => Err(Error::Interrupted),
            false => ran,
        }
    }

    /// Tells what a job writes until it is over; none if `on_event` breaks off.
    pub fn job_follow(
        &self,
        request: &JobLogs,
        on_event: &mut dyn FnMut(StreamWord, &[u8]) -> ControlFlow<()>,
    ) -> Result<Option<JobItem>> {
        let (events, told) = queue();
        let mut over = None;
        let each = |event| match event {
            JobEvent::Output(stream, chunk) => on_event(stream, chunk.bytes()),
            JobEvent::End(job) => {
                over = Some(*job);
                ControlFlow::Continue(())
            }
        };
        let follow = move |ask: &Ask, _, request| match &self.row::<JobLogs>().serve {
            Serve::Follows { follow, .. } => follow(ask, request, None)?.tell(&events),
            _ => Err(Failure::invalid("the logs of a job cannot be followed")),
        };
        self.work("", request, told, each, follow)?;
        Ok(over)
    }

    fn row<O: Operation>(&self) -> &Erased {
        self.operations
            .get(O::NAME)
            .expect("every operation has a row")
    }

    /// Does work of which nobody is told anything but its end.
    fn quietly<O: Operation + Clone, T: Send>(
        &self,
        vault: &str,
        request: &O,
        work: impl FnOnce(&Ask, Select, Request) -> Result<T, Failure> + Send,
    ) -> Result<T> {
        let (_, nothing) = queue::<()>();
        let each = |()| ControlFlow::Continue(());
        self.work(vault, request, nothing, each, work)
    }

    /// Passes the gate and does the work, on a thread of its own. What is told meanwhile is told on the caller's thread,
    /// until it wants no more.
    fn work<O: Operation + Clone, E: Send, T: Send>(
        &self,
        vault: &str,
        request: &O,
        told: Told<E>,
        each: impl FnMut(E) -> ControlFlow<()>,
        work: impl FnOnce(&Ask, Select, Request) -> Result<T, Failure> + Send,
    ) -> Result<T> {
        let (operation, request) = (self.row::<O>(), Request::new(request.clone()));
        let work = || {
            let _inside = self.event_loop.as_ref().map(tokio::runtime::Runtime::enter);
            let _at_work = self.app.enter();
            self.check(operation)?;
            let vault = match O::ROUTE.contains("{vault}") {
                true => parse_vault(vault)?,
                false => Select::Current,
            };
            let (app, caller) = (Arc::clone(&self.app), self.caller.clone());
            let (ask, vault) = operation.admit(app, caller, vault, &request)?;
            let done = work(&ask, vault, request);
            done.map_err(|failure| failure.with_figures(&self.app.runtime))
        };
        // It takes `told` along: whoever wants no more is gone at once, not when the work is done.
        let meanwhile = move || {
            let _ = told.events.iter().try_for_each(each);
        };
        let done = on_a_thread(work, meanwhile).map_err(Error::Setup)?;
        done.map_err(refused)
    }

    /// Refuses what would be done to another home, or would change one that can only be read.
    fn check(&self, operation: &Erased) -> Result<(), Failure> {
        if self.app.place.is_lost() {
            return Err(Failure::home_lost(self.app.place.home()));
        }
        if operation.row.effect.changes_home() {
            self.app.runtime.check_writable()?;
        }
        Ok(())
    }

    /// Brings a command what it reads, for as long as it does, on a thread of its own.
    fn bring_input(&self, call: CallId, io: &mut ExecIo) {
        let Some(mut input) = io.input.take() else {
            return;
        };
        let by = self.caller.principal;
        let Some(pipe) = self.app.calls.take_input(call, by) else {
            return;
        };
        thread::spawn(move || {
            // A command that has ended reads no more.
            let _ = give(&mut input, &mut File::from(pipe));
        });
    }
}

impl Drop for Embedded {
    fn drop(&mut self) {
        self.app.runtime.shutdown();
        if let Some(event_loop) = self.event_loop.take() {
            event_loop.shutdown_background();
        }
    }
}

/// Works on a thread of its own, and does something else on this one meanwhile.
fn on_a_thread<T: Send>(
    work: impl FnOnce() -> T + Send,
    meanwhile: impl FnOnce(),
) -> io::Result<T> {
    thread::scope(|scope| {
        let worker = thread::Builder::new().spawn_scoped(scope, work)?;
        meanwhile();
        let done = worker.join();
        Ok(done.unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    })
}

fn caller_of(place: &DaemonPaths) -> Caller {
    let name = place.caller_name().and_then(|name| name.parse().ok());
    let pid = i32::try_from(std::process::id()).ok();
    let peer = Peer::Process {
        uid: Some(rustix::process::geteuid().as_raw()),
        pid,
    };
    Caller {
        class: place.class(),
        principal: match place.class() {
            Class::Agent => Principal::agent(name),
            Class::Owner => Principal::owner(name),
        },
        peer,
        share: peer.share(),
        grant: Grant::default(),
        trace: None,
    }
}

fn refused(failure: Failure) -> Error {
    Error::Refused(Box::new(failure.problem().clone()))
}

fn unwritten(error: io::Error) -> Failure {
    let what = format!("cannot write what was read: {error}");
    Failure::new(ErrorKind::Unavailable, what)
}

fn parse<T: serde::de::DeserializeOwned>(answer: Answer) -> Result<T, Failure> {
    serde_json::from_slice(&answer.json)
        .map_err(|error| Failure::new(ErrorKind::Bug, error.to_string()))
}

/// Gives a command what it reads; says how much it took before it ended or stopped reading.
fn give(bytes: &mut dyn Read, pipe: &mut File) -> Result<u64, Failure> {
    let mut piece = vec![0; PIECE];
    let mut given = 0;
    loop {
        let size = match bytes.read(&mut piece) {
            Ok(0) => return Ok(given),
            Ok(size) => size,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => {
                let what = format!("the input cannot be read: {error}");
                return Err(Failure::new(ErrorKind::Unavailable, what));
            }
        };
        if pipe.write_all(&piece[..size]).is_err() {
            return Ok(given);
        }
        given += size as u64;
    }
}

/// Writes the part of a file that is wanted.
fn copy(opened: &Opened, out: &mut dyn Write) -> Result<(), Failure> {
    out.write_all(&opened.first).map_err(unwritten)?;
    let mut offset = opened.part.start + opened.first.len() as u64;
    while offset < opened.part.end {
        let length = (opened.part.end - offset).min(PIECE as u64) as usize;
        let bytes = opened.file.read_at(offset, length)?;
        if bytes.is_empty() {
            let what = "the file ends before its size says so";
            return Err(Failure::new(ErrorKind::Corrupt, what));
        }
        out.write_all(&bytes).map_err(unwritten)?;
        offset += bytes.len() as u64;
    }
    Ok(())
}

struct Counted<'a> {
    out: &'a mut (dyn Write + Send),
    written: u64,
}

impl Write for Counted<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let size = self.out.write(bytes)?;
        self.written += size as u64;
        Ok(size)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}
