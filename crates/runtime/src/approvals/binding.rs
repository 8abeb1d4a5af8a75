//! What an approval is for, as one hash: the command, where and with what it runs, and all that it could read that
//! the vault's root does not pin down.

use std::os::fd::OwnedFd;

use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, openat, readlinkat, statat};
use rustix::io::Errno;

use crate::call::{Call, ExecCommand};
use crate::options::Stdin;
use crate::{Error, Result};

/// More than this in `/tmp` is not read for an approval.
const MOST_BYTES: u64 = 64 << 20;
const MOST_NAMES: usize = 20_000;

/// The hash of the request as it would run now.
pub(crate) fn binding(call: &Call) -> Result<[u8; 32]> {
    if !matches!(call.request.stdin, Stdin::Empty) {
        return Err(unbound(
            "it reads standard input, which nobody can look at beforehand",
        ));
    }
    let mut hash = Fields(blake3::Hasher::new());
    hash.add(b"agentvfs approval 1");
    hash.add(call.vault.id.as_bytes());
    match &call.request.command {
        ExecCommand::Argv(argv) => {
            hash.add(b"argv");
            hash.count(argv.len());
            argv.iter().for_each(|word| hash.add(word));
        }
        ExecCommand::Shell(text) => {
            hash.add(b"shell");
            hash.add(text.as_bytes());
        }
    }
    hash.add(call.cwd.as_bytes());
    let mut env = call.env.clone();
    env.sort();
    hash.count(env.len());
    for (name, value) in &env {
        hash.add(name);
        hash.add(value);
    }
    let options = &call.request.options;
    let chosen = (
        options.network,
        options.driver,
        options.access,
        options.branch,
    );
    hash.add(format!("{chosen:?}").as_bytes());
    scratch(call, &mut hash)?;
    Ok(*hash.0.finalize().as_bytes())
}

/// Fields of a hash, each with its length, so that none can pass for two.
struct Fields(blake3::Hasher);

impl Fields {
    fn add(&mut self, bytes: &[u8]) {
        self.count(bytes.len());
        self.0.update(bytes);
    }

    fn count(&mut self, count: usize) {
        self.0.update(&(count as u64).to_le_bytes());
    }
}

fn unbound(why: &str) -> Error {
    Error::CannotBind {
        why: why.to_owned(),
    }
}

/// `/tmp` is in no version, so what is in it is part of what is approved.
fn scratch(call: &Call, hash: &mut Fields) -> Result<()> {
    let place = call.runtime.inner.layers.scratch(call.vault.id)?;
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let directory = openat(CWD, place, flags, Mode::empty()).map_err(unreadable)?;
    let mut budget = Budget {
        bytes: MOST_BYTES,
        names: MOST_NAMES,
    };
    beneath(&directory, hash, &mut budget, 0)
}

struct Budget {
    bytes: u64,
    names: usize,
}

fn unreadable(errno: Errno) -> Error {
    unbound(&format!("what is in its /tmp cannot be read: {errno}"))
}

/// Adds every name below a directory, sorted, with what it stands for.
fn beneath(directory: &OwnedFd, hash: &mut Fields, left: &mut Budget, depth: usize) -> Result<()> {
    if depth > 64 {
        return Err(unbound("the directories in its /tmp are nested too deeply"));
    }
    let mut names = Vec::new();
    for item in Dir::read_from(directory).map_err(unreadable)? {
        let name = item.map_err(unreadable)?.file_name().to_owned();
        if name.as_c_str() != c"." && name.as_c_str() != c".." {
            names.push(name);
        }
    }
    names.sort();
    hash.count(names.len());
    for name in names {
        left.names = left
            .names
            .checked_sub(1)
            .ok_or_else(|| unbound("its /tmp holds too many files"))?;
        hash.add(name.as_bytes());
        let stat = statat(directory, &name, AtFlags::SYMLINK_NOFOLLOW).map_err(unreadable)?;
        hash.add(&stat.st_mode.to_le_bytes());
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::Directory => {
                let flags = flags | OFlags::DIRECTORY;
                let inner = openat(directory, &name, flags, Mode::empty()).map_err(unreadable)?;
                beneath(&inner, hash, left, depth + 1)?;
            }
            FileType::RegularFile => {
                let file = openat(directory, &name, flags, Mode::empty()).map_err(unreadable)?;
                hash.add(&content(file, left)?);
            }
            FileType::Symlink => {
                let target = readlinkat(directory, &name, Vec::new()).map_err(unreadable)?;
                hash.add(target.as_bytes());
            }
            _ => {}
        }
    }
    Ok(())
}

fn content(file: OwnedFd, left: &mut Budget) -> Result<[u8; 32]> {
    let mut hash = blake3::Hasher::new();
    let mut piece = vec![0; 64 * 1024];
    loop {
        let size = rustix::io::read(&file, &mut piece).map_err(unreadable)?;
        if size == 0 {
            return Ok(*hash.finalize().as_bytes());
        }
        left.bytes = left
            .bytes
            .checked_sub(size as u64)
            .ok_or_else(|| unbound("its /tmp holds more than 64 MiB"))?;
        hash.update(&piece[..size]);
    }
}
