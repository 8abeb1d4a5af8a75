//! What is asked and answered: the types of the wire, which are the same on every surface.
//!
//! Most methods build a request themselves. Where a request has more options than its method has arguments, build it and
//! give it to [`Vault::ask`](crate::Vault::ask) or [`Avfs::ask`](crate::Avfs::ask).
//!
//! Names and paths are text here. Where bytes are not UTF-8, the text is a lossy rendering, and a field that ends in
//! `_b64` holds the exact bytes.

#[doc(inline)]
pub use avfs_api::wire::*;
