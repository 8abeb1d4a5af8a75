//! `avfs proxy exec`: run a command in the vault's sandbox and report what it changed.

mod notes;

use super::{env_file, paths};
use crate::args::{DriverName, ExecArgs, NetworkChoice, ProfileName, RunArgs, Time};
use crate::cast::{Cast, Recording};
use crate::environment;
use crate::error::{Error, Result};
use crate::output::{self, Output, note};
use crate::screen::Screen;
use crate::session::Session;
use avfs_api::client::{ExecIo, Input};
use avfs_api::wire::{
    Base64, CheckpointAsk, DriverWord, Envelope, Exec, ExecEvent, ForkWord, LimitsAsk, ProfileWord,
    StdinItem, TtyAsk, WaitingEvent, to_text,
};
use avfs_runtime::HostRule;
use serde::Serialize;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::File;
use std::io::Write;
use std::ops::ControlFlow;
use std::os::unix::ffi::{OsStrExt, OsStringExt};

pub fn run(args: ExecArgs, session: &mut Session, output: Output) -> Result<u8> {
    refuse(&args)?;
    if args.run.tty {
        return at_terminal(args, session, output);
    }
    let input = input(&args.run)?;
    let teller = match (args.stream, output.is_json()) {
        (true, _) => Teller::Lines,
        (false, true) => Teller::Envelope,
        (false, false) => Teller::Streams,
    };
    let has_input = input.is_some();
    let timeout = args.run.timeout;
    let request = request(args.run)?;
    let io = ExecIo {
        input,
        ..ExecIo::default()
    };
    if let Some(line) = timeout.and_then(notes::of_timeout) {
        note(&line)?;
    }
    let envelope = tell_all(session, &request, io, &mut |event| teller.tell(event))?;
    match teller {
        Teller::Lines => line("result", &envelope).map_err(Error::output)?,
        Teller::Envelope => output.value(&envelope)?,
        Teller::Streams => note(&output::exec::report(&envelope))?,
    }
    let input = (!has_input).then(notes::of_input).flatten();
    for line in input
        .into_iter()
        .chain(notes::of_one_word(&envelope, &request))
    {
        note(&line)?;
    }
    Ok(envelope.exit_code())
}

/// Runs the command and prints every event, until standard output is closed.
fn tell_all(
    session: &mut Session,
    request: &Exec,
    io: ExecIo,
    tell: &mut dyn FnMut(&ExecEvent) -> std::io::Result<()>,
) -> Result<Envelope> {
    let mut output_closed = false;
    let envelope = session.exec(request, io, &mut |event| {
        if tell(&event).is_ok() {
            return ControlFlow::Continue(());
        }
        output_closed = true;
        ControlFlow::Break(())
    });
    match output_closed {
        true => Err(Error::OutputClosed),
        false => envelope,
    }
}

/// Runs the command on a terminal, connected to this one.
fn at_terminal(args: ExecArgs, session: &mut Session, output: Output) -> Result<u8> {
    let mut screen = Screen::open()?;
    let size = args.run.size.unwrap_or_else(|| screen.size());
    let fixed = args.run.size.is_some();
    let record = args.record;
    let request = request(args.run)?;
    let request = Exec {
        tty: Some(tty(size)),
        stdin: Some(StdinItem::Live),
        ..request
    };
    let cast = record.map(|path| Cast::begin(&path, size, &spoken(&request)));
    let cast = Recording::new(cast.transpose()?);
    let raw = screen.begin()?;
    let noted = cast.clone();
    let io = ExecIo {
        input: Some(Box::new(screen.keys()?)),
        window: match fixed {
            true => None,
            false => Some(screen.window(move |size| noted.resize(size))?),
        },
        ..ExecIo::default()
    };
    let envelope = tell_all(session, &request, io, &mut |event| match event {
        ExecEvent::Started(_) => Ok(()),
        ExecEvent::Stdout(chunk) | ExecEvent::Stderr(chunk) => {
            cast.output(chunk.bytes());
            screen.show(chunk.bytes())
        }
        ExecEvent::Waiting(waiting) => screen.show(held(waiting, "\r\n").as_bytes()),
    });
    screen.leave();
    drop(raw);
    let envelope = envelope?;
    match output.is_json() {
        true => output.value(&envelope)?,
        false => note(&output::exec::report(&envelope))?,
    }
    cast.end()?;
    Ok(envelope.exit_code())
}

/// A terminal of this size, with this terminal's `TERM`.
pub fn tty((rows, columns): (u16, u16)) -> TtyAsk {
    TtyAsk {
        rows,
        columns,
        term: Some(environment::term()),
    }
}

/// The command on one line.
fn spoken(request: &Exec) -> String {
    match &request.shell {
        Some(text) => text.clone(),
        None => request.argv.join(" "),
    }
}

/// Refuses options of other tools that have no meaning here.
fn refuse(args: &ExecArgs) -> Result<()> {
    let refuse = |text: &str, hint: &str| {
        Err(Error::Invalid {
            text: text.into(),
            hint: Some(hint.into()),
        })
    };
    if args.keep_mount {
        return refuse(
            "--keep-mount: there is no mount to keep; the daemon closes a view when it is no longer used",
            "`avfs mount` mounts a vault at a directory of the host",
        );
    }
    if args.mountpoint.is_some() {
        return refuse(
            "--mountpoint: in the sandbox the vault is always at /",
            "`avfs mount` mounts a vault at a directory of the host; --cwd sets the working directory",
        );
    }
    Ok(())
}

/// The command's standard input, sent while it runs.
fn input(args: &RunArgs) -> Result<Option<Input>> {
    Ok(match &args.stdin_file {
        Some(path) => Some(Box::new(File::open(path).map_err(|error| {
            Error::Invalid {
                text: format!("{} cannot be read: {error}", path.display()),
                hint: None,
            }
        })?)),
        None if args.stdin => Some(Box::new(std::io::stdin())),
        None => None,
    })
}

/// How events are printed.
#[derive(Copy, Clone, Debug, Eq, PartialEq)]
enum Teller {
    /// The command's output, as it arrives.
    Streams,
    /// Only the envelope, at the end.
    Envelope,
    /// Every event as a line of JSON, as it arrives.
    Lines,
}

impl Teller {
    fn tell(self, event: &ExecEvent) -> std::io::Result<()> {
        match (self, event) {
            (Teller::Envelope, _) => Ok(()),
            (Teller::Streams, event) => pass_on(event),
            (Teller::Lines, ExecEvent::Started(started)) => line("started", started),
            (Teller::Lines, ExecEvent::Stdout(chunk)) => line("stdout", chunk),
            (Teller::Lines, ExecEvent::Stderr(chunk)) => line("stderr", chunk),
            (Teller::Lines, ExecEvent::Waiting(waiting)) => line("waiting", waiting),
        }
    }
}

/// Prints an event as one line of JSON.
pub fn line(event: &str, data: &impl Serialize) -> std::io::Result<()> {
    #[derive(Serialize)]
    struct Line<'a, T> {
        event: &'a str,
        #[serde(flatten)]
        data: &'a T,
    }
    let mut text = serde_json::to_vec(&Line { event, data })?;
    text.push(b'\n');
    let mut out = std::io::stdout().lock();
    out.write_all(&text).and_then(|()| out.flush())
}

/// Copies the command's output to our own, as it arrives.
fn pass_on(event: &ExecEvent) -> std::io::Result<()> {
    match event {
        ExecEvent::Started(_) => Ok(()),
        ExecEvent::Stdout(chunk) => {
            let mut out = std::io::stdout().lock();
            out.write_all(chunk.bytes()).and_then(|()| out.flush())
        }
        ExecEvent::Stderr(chunk) => std::io::stderr().lock().write_all(chunk.bytes()),
        ExecEvent::Waiting(waiting) => {
            let text = held(waiting, "\n");
            std::io::stderr().lock().write_all(text.as_bytes())
        }
    }
}

fn held(waiting: &WaitingEvent, line_end: &str) -> String {
    let id = &waiting.approval_id;
    format!("avfs: waiting until the owner runs `avfs approval approve {id}`{line_end}")
}

/// The request for the arguments, except for the terminal.
pub fn request(mut args: RunArgs) -> Result<Exec> {
    let env_files = std::mem::take(&mut args.env_file);
    let mut request = words(args)?;
    env_file::add(&mut request, &env_files)?;
    Ok(request)
}

fn words(args: RunArgs) -> Result<Exec> {
    let (cwd, cwd_b64) = match &args.cwd {
        Some(cwd) => {
            let (text, exact) = paths::in_vault(cwd);
            (Some(text), exact)
        }
        None => (None, None),
    };
    let (env, env_b64) = environment(&args.env)?;
    let all_text = args.command.iter().all(|word| word.to_str().is_some());
    let exact = || {
        args.command
            .iter()
            .map(|word| Base64(word.as_bytes().to_vec()))
            .collect::<Vec<_>>()
    };
    let fork = fork(&args);
    Ok(Exec {
        argv_b64: (!all_text).then(exact),
        argv: args
            .command
            .into_iter()
            .map(|word| to_text(word.into_vec()).0)
            .collect(),
        shell: args.shell,
        cwd,
        cwd_b64,
        env,
        env_b64,
        timeout_ms: args.timeout.map(Time::millis),
        output_limit: args
            .output_limit
            .map(|bytes| usize::try_from(bytes).unwrap_or(usize::MAX)),
        stdin: (args.stdin || args.stdin_file.is_some()).then_some(StdinItem::Live),
        tty: None,
        readonly: args.readonly,
        checkpoint: match (args.checkpoint, args.no_checkpoint) {
            (Some(name), _) => Some(CheckpointAsk::Named(name)),
            (None, true) => Some(CheckpointAsk::Never),
            (None, false) => None,
        },
        fork,
        limits: LimitsAsk {
            memory: args.memory,
            cpus: args.cpus,
            pids: args.pids,
            disk: args.disk,
        },
        profile: args.profile.map(|profile| match profile {
            ProfileName::Restrictive => ProfileWord::Restrictive,
            ProfileName::Moderate => ProfileWord::Moderate,
            ProfileName::Permissive => ProfileWord::Permissive,
        }),
        driver: args.driver.map(|driver| match driver {
            DriverName::Namespace => DriverWord::Namespace,
            DriverName::Process => DriverWord::Process,
        }),
        network: args.network.as_ref().map(|network| network.name),
        allow: allowed(args.network, args.allow, args.allow_registries),
        wait: args.wait,
        approval: args.approval,
        speculate: args.speculate,
        patch: args.patch,
        list_home_changes: args.home_changes,
        changes_limit: args.changes_limit,
    })
}

/// The hosts of a list, and those beside it.
fn allowed(
    network: Option<NetworkChoice>,
    mut allow: Vec<String>,
    registries: bool,
) -> Vec<String> {
    allow.extend(registries.then(|| HostRule::REGISTRIES.to_owned()));
    allow.extend(network.into_iter().flat_map(|network| network.hosts));
    allow
}

fn fork(args: &RunArgs) -> Option<ForkWord> {
    match (args.fork, args.keep_on_success) {
        (true, true) => Some(ForkWord::KeepOnSuccess),
        (true, false) => Some(ForkWord::Discard),
        (false, _) => None,
    }
}

type Variables = (BTreeMap<String, String>, BTreeMap<String, Base64>);

fn environment(pairs: &[OsString]) -> Result<Variables> {
    let (mut env, mut env_b64) = (BTreeMap::new(), BTreeMap::new());
    for pair in pairs {
        let bytes = pair.as_bytes();
        let cut = bytes.iter().position(|byte| *byte == b'=');
        let name = cut.and_then(|cut| std::str::from_utf8(&bytes[..cut]).ok());
        let (Some(cut), Some(name)) = (cut, name) else {
            return Err(Error::Invalid {
                text: format!("{pair:?} is not NAME=VALUE"),
                hint: Some("for example --env CI=1".into()),
            });
        };
        match to_text(bytes[cut + 1..].to_vec()) {
            (value, None) => drop(env.insert(name.to_owned(), value)),
            (_, Some(exact)) => drop(env_b64.insert(name.to_owned(), exact)),
        }
    }
    Ok((env, env_b64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_split_at_the_first_sign() {
        let (env, _) = environment(&["A=b=c".into(), "D=".into()]).unwrap();
        assert_eq!(env["A"], "b=c");
        assert_eq!(env["D"], "");
        assert!(environment(&["novalue".into()]).is_err());
        let (_, exact) = environment(&[OsString::from_vec(b"X=\xff".to_vec())]).unwrap();
        assert_eq!(exact["X"], Base64(vec![0xff]));
    }
}
