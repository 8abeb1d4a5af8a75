//! The kernel's FUSE protocol, on a descriptor that is already mounted.
//!
//! A [`Filesystem`] answers; a [`Session`] reads requests, calls it, and sends the answers. The crate knows neither vaults
//! nor mounts. It exists because no released library passes `open(O_TMPFILE)` on.
//!
//! For speed, the kernel may cache every answer forever. Changes other than by a request are announced with the [`Notifier`].

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
