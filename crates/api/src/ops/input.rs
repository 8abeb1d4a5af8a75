//! The input of a command: none, content of its request, or the body of a second request. No thread waits for a command
//! that does not read.

use super::calls::Call;
use super::failure::Failure;
use crate::wire::StdinItem;
use avfs_runtime::{ErrorKind, Stdin};
use rustix::fs::OFlags;
use std::os::fd::OwnedFd;
use tokio::net::unix::pipe;

/// The command's end of its input.
pub(super) fn prepare(item: Option<&StdinItem>, call: &Call) -> Result<Stdin, Failure> {
    let Some(item) = item else {
        return Ok(Stdin::Empty);
    };
    let read = call.state().open_input();
    let read = read.map_err(|error| {
        let what = format!("a pipe for the command's input cannot be made: {error}");
        Failure::new(ErrorKind::Unavailable, what)
    })?;
    // Of live input, the other end is for a second request.
    if let Some(whole) = whole(item)
        && let Some(write) = call.take_input()
    {
        give_all(write, whole);
    }
    Ok(Stdin::From(read))
}

/// The input, if it came with the request.
pub(super) fn whole(item: &StdinItem) -> Option<Vec<u8>> {
    match item {
        StdinItem::Live => None,
        StdinItem::Text(text) => Some(text.clone().into_bytes()),
        StdinItem::Base64(bytes) => Some(bytes.0.clone()),
    }
}

/// Writes the input to the command. Ends when all is read, or when the command has ended.
pub(super) fn give_all(pipe: OwnedFd, bytes: Vec<u8>) {
    tokio::runtime::Handle::current().spawn(async move {
        if let Ok(pipe) = writer(pipe) {
            // A command that has ended reads no more.
            let _ = give(&pipe, &bytes).await;
        }
    });
}

/// Writes some bytes to the command; an error means that it reads no more.
pub(crate) async fn give(pipe: &pipe::Sender, mut bytes: &[u8]) -> std::io::Result<()> {
    while !bytes.is_empty() {
        pipe.writable().await?;
        match pipe.try_write(bytes) {
            Ok(size) => bytes = &bytes[size..],
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// A non-blocking pipe.
pub(crate) fn writer(pipe: OwnedFd) -> std::io::Result<pipe::Sender> {
    rustix::fs::fcntl_setfl(&pipe, OFlags::NONBLOCK)?;
    pipe::Sender::from_owned_fd(pipe)
}
