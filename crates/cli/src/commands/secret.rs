//! `avfs secret`: values that requests of commands get on their way out.

use crate::args::{SecretSetArgs, SecretVerb};
use crate::error::{Error, Result};
use crate::output::Output;
use crate::output::table::{table, time};
use crate::session::Session;
use crate::terminal::Terminal;
use avfs_api::wire::{SecretItem, SecretList, SecretListing, SecretRemove, SecretSet};
use rustix::process::{Resource, Rlimit, setrlimit};
use std::fs::File;
use std::io::{IsTerminal, Read};
use std::process::{Command, Stdio};
use zeroize::Zeroizing;

/// More than a value can have: what is longer is refused by the daemon.
const READ_MAX: u64 = 64 << 10;

pub fn run(verb: SecretVerb, session: &mut Session, output: Output) -> Result<()> {
    match verb {
        SecretVerb::Set(args) => set(args, session, output),
        SecretVerb::List => output.answer(&session.call(&SecretList {})?, listing),
        SecretVerb::Rm { name } => output.answer(&session.call(&SecretRemove { name })?, |it| {
            format!("removed {}", it.name)
        }),
    }
}

fn set(args: SecretSetArgs, session: &mut Session, output: Output) -> Result<()> {
    // If this process crashes, the value is in no core file.
    let none = Rlimit {
        current: Some(0),
        maximum: Some(0),
    };
    let limited = setrlimit(Resource::Core, none);
    limited.map_err(|errno| Error::io("cannot forbid core files")(errno.into()))?;
    let value = value(&args)?;
    let request = SecretSet {
        name: args.name,
        value: value.into(),
        hosts: args.hosts,
        header: args.header,
        basic: args.basic,
        allow_plain_http: args.allow_plain_http,
        vaults: args.reach.vaults,
    };
    output.answer(&session.call(&request)?, is_set)
}

/// The value, without the line end behind it. It is never an argument, which everybody on the machine could read.
fn value(args: &SecretSetArgs) -> Result<Zeroizing<String>> {
    let text = match (&args.file, &args.command) {
        (Some(file), _) => {
            let failed = || Error::io(format!("cannot read {}", file.display()));
            let opened = File::open(file).map_err(failed())?;
            read(opened).map_err(failed())?
        }
        (None, Some(command)) => of_command(command)?,
        (None, None) if std::io::stdin().is_terminal() => {
            let mut terminal = Terminal::open("the value of a secret")?;
            Zeroizing::new(terminal.ask_secret(&format!("Value of {}: ", args.name))?)
        }
        (None, None) => {
            let failed = Error::io("cannot read standard input");
            read(std::io::stdin()).map_err(failed)?
        }
    };
    let line = text.strip_suffix('\n').unwrap_or(&text);
    let line = line.strip_suffix('\r').unwrap_or(line);
    Ok(Zeroizing::new(line.to_owned()))
}

fn read(from: impl Read) -> std::io::Result<Zeroizing<String>> {
    // Of its full size at once: a buffer that grows leaves copies behind.
    let mut text = Zeroizing::new(String::with_capacity(READ_MAX as usize));
    from.take(READ_MAX).read_to_string(&mut text)?;
    Ok(text)
}

/// What a command of the owner prints. It is run here, once, and is not stored.
fn of_command(command: &str) -> Result<Zeroizing<String>> {
    let failed = || Error::io("cannot run the command for the value");
    let mut shell = Command::new("/bin/sh");
    let shell = shell.args(["-c", command]).stdout(Stdio::piped());
    let mut running = shell.spawn().map_err(failed())?;
    let text = match running.stdout.take() {
        Some(printed) => read(printed),
        None => Ok(Zeroizing::default()),
    };
    let status = running.wait().map_err(failed())?;
    match status.success() {
        true => text.map_err(failed()),
        false => Err(Error::Invalid {
            text: format!("the command for the value failed: {status}"),
            hint: None,
        }),
    }
}

fn is_set(item: &SecretItem) -> String {
    let SecretItem { name, header, .. } = item;
    let mut lines = vec![format!(
        "requests to {} get the header `{header}` with the value of {name}",
        item.hosts.join(", ")
    )];
    if !item.opened.is_empty() {
        lines.push(format!(
            "TLS to {} is opened for it, on port 443",
            item.opened.join(", ")
        ));
    }
    if item.allow_plain_http {
        lines
            .push("it is also sent over plain HTTP, where everybody on the way can read it".into());
    }
    let vaults = match item.vaults.is_empty() {
        true => "every vault".into(),
        false => format!("vaults {}", item.vaults.join(", ")),
    };
    lines.push(format!(
        "in commands of {vaults} that may reach such a host, {name} is {}",
        item.placeholder
    ));
    lines.join("\n")
}

fn listing(listing: &SecretListing) -> String {
    if listing.secrets.is_empty() {
        return "there are no secrets; `avfs secret set NAME --host HOST` sets one".into();
    }
    let row = |item: &SecretItem| {
        let vaults = match item.vaults.is_empty() {
            true => "*".into(),
            false => item.vaults.join(","),
        };
        let state = match (item.usable, item.allow_plain_http) {
            (false, _) => "without its key",
            (true, true) => "also over plain HTTP",
            (true, false) => "",
        };
        vec![
            item.name.clone(),
            item.hosts.join(","),
            item.header.clone(),
            vaults,
            time(&item.set_at),
            state.into(),
        ]
    };
    let headings = ["NAME", "HOSTS", "HEADER", "VAULTS", "SET", ""];
    table(&headings, listing.secrets.iter().map(row).collect()).trim_fmt()
}
