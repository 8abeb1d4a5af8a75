//! `avfs write`: write a file of the vault.

use super::paths;
use crate::args::WriteArgs;
use crate::error::{Error, Result};
use crate::output::Output;
use crate::output::table::size;
use crate::session::Session;
use avfs_api::wire::{Write, to_text};
use rustix::fs::{CWD, Mode, OFlags, openat};
use std::fs::File;
use std::io::Read;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

/// More than this does not travel inside a request.
const INLINE_MAX: u64 = 8 << 20;

/// What is to be written.
enum Content {
    Bytes(Vec<u8>),
    HostFile(PathBuf),
    /// A file without a name, which the daemon opens by this process's number for it.
    Spooled(File),
}

pub fn run(args: WriteArgs, session: &mut Session, output: Output) -> Result<()> {
    let (path, path_b64) = paths::in_vault(&args.path);
    let content = match (args.content, &args.from_file) {
        (Some(content), _) => Content::Bytes(content.into_vec()),
        (None, Some(file)) => from_file(file)?,
        (None, None) => from_stream(std::io::stdin().lock(), "standard input")?,
    };
    let mut request = Write {
        path,
        path_b64,
        content: String::new(),
        content_b64: None,
        host_file: None,
        host_file_b64: None,
        append: args.append,
        parents: args.parents,
        mode: args.mode,
    };
    match &content {
        Content::Bytes(bytes) => {
            let (text, exact) = to_text(bytes.clone());
            // The exact bytes are enough, and half as many.
            request.content = if exact.is_some() { String::new() } else { text };
            request.content_b64 = exact;
        }
        Content::HostFile(file) => {
            let (text, exact) = paths::on_host(file)?;
            (request.host_file, request.host_file_b64) = (Some(text), exact);
        }
        Content::Spooled(file) => {
            let (own, number) = (std::process::id(), file.as_raw_fd());
            request.host_file = Some(format!("/proc/{own}/fd/{number}"));
        }
    }
    let written = session.call(&request)?;
    output.answer(&written, |written| {
        let verb = if written.appended {
            "appended to"
        } else {
            "wrote"
        };
        format!("{verb} {} ({})", written.path, size(written.size))
    })
}

/// A regular file is the daemon's to read; a pipe is ours.
fn from_file(path: &Path) -> Result<Content> {
    let failed = || Error::io(format!("cannot read {}", path.display()));
    let file = File::open(path).map_err(failed())?;
    if file.metadata().map_err(failed())?.is_file() {
        return Ok(Content::HostFile(path.to_owned()));
    }
    from_stream(file, &path.display().to_string())
}

/// What is too much for one request goes through a file that vanishes with this process.
fn from_stream(mut stream: impl Read, name: &str) -> Result<Content> {
    let failed = || Error::io(format!("cannot read {name}"));
    let mut bytes = Vec::new();
    (&mut stream)
        .take(INLINE_MAX)
        .read_to_end(&mut bytes)
        .map_err(failed())?;
    if (bytes.len() as u64) < INLINE_MAX {
        return Ok(Content::Bytes(bytes));
    }
    let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
    let spool = openat(CWD, std::env::temp_dir(), flags, Mode::RUSR | Mode::WUSR)
        .map_err(|errno| Error::io("cannot make a temporary file")(errno.into()))?;
    let mut spool = File::from(spool);
    std::io::copy(&mut bytes.as_slice().chain(stream), &mut spool).map_err(failed())?;
    Ok(Content::Spooled(spool))
}
