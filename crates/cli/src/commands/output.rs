//! `avfs output`: output of a command that did not fit into its report.

use crate::args::{OutputArgs, StreamName};
use crate::error::{Error, Result};
use crate::output::Output as Teller;
use crate::session::Session;
use avfs_api::wire::{Output, StreamWord};
use std::io::Write;

pub fn run(args: OutputArgs, session: &mut Session, output: Teller) -> Result<()> {
    let (from, to) = args.range;
    let mut request = Output {
        exec: args.exec,
        stream: match args.stream {
            StreamName::Stdout => StreamWord::Stdout,
            StreamName::Stderr => StreamWord::Stderr,
        },
        from,
        to,
    };
    if output.is_json() {
        return output.value(&session.call(&request)?);
    }
    let mut out = std::io::stdout().lock();
    loop {
        let part = session.call(&request)?;
        let bytes = match &part.data_b64 {
            Some(exact) => &exact.0,
            None => part.data.as_bytes(),
        };
        out.write_all(bytes).map_err(Error::output)?;
        request.from = part.to;
        let done = to.is_some_and(|to| part.to >= to) || part.to >= part.kept;
        if done || bytes.is_empty() {
            return out.flush().map_err(Error::output);
        }
    }
}
