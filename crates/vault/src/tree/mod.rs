//! Trees: what a state of a vault is made of, how it is read, changed, compared and searched. It knows nothing of vaults,
//! versions or rows.

mod build;
pub(crate) mod check;
pub(crate) mod codec;
mod content;
mod copy;
pub(crate) mod delta;
mod diff;
mod edit;
mod links;
mod model;
pub(crate) mod node;
mod parts;
pub(crate) mod reach;
mod readable;
mod reader;
mod renames;
mod similar;
mod trees;
mod walk;
mod words;
mod writer;
mod xattrs;

pub use diff::{Change, ChangeKind};
pub use edit::Edit;
pub use model::{Content, Entry, Kind, LinkId, Meta, Root, Time};
pub use readable::Readable;
pub use reader::{ContentReader, Piece, Pieces};
pub use renames::pair_renames;
pub use trees::Trees;
pub use walk::{Step, Visit};
pub use words::{WordIndex, WordMatch};
pub use writer::ContentWriter;
pub use xattrs::XattrMap;
