//! The kernel's FUSE protocol, spoken on a descriptor that somebody has mounted.
//!
//! A [`Filesystem`] answers; a [`Session`] reads requests, passes them on, and sends the answers back. The
//! crate knows neither vaults nor mounts. It stands here because no released library passes on what
//! `open(O_TMPFILE)` asks.
//!
//! One rule makes it fast: the kernel may keep every answer for ever. Whoever changes something other than
//! by a request says so through the [`Notifier`].

mod answer;
mod filesystem;
mod listing;
mod notifier;
mod request;
mod session;
mod wire;

pub use filesystem::{
    Caller, FileAttr, FileHandle, Filesystem, Io, Name, NewAttributes, Statistics, WriteFlags,
};
pub use listing::{Fill, Listing, ListingPlus};
pub use notifier::Notifier;
pub use session::{Features, Session, Settings};

#[cfg(test)]
mod tests;
