//! A root and a layer shown as a directory: the lens, the layers, the commit.
//!
//! The *lens* shows immutable roots through FUSE. The kernel's overlayfs, mounted by the sandbox, which this crate does
//! not know, puts a *layer* on top. The *scanner* reads the layer, and *commit* makes the next root from base and layer.

mod commit;
mod error;
mod fill;
mod layer;
mod lens;
mod readwrite;
mod remove;
mod scan;
mod scanner;
mod shown;
mod view_ops;
mod walk;

pub use commit::{
    Allowance, CommitInput, Committed, HashCache, OwnWork, Skipped, Staging, StagingUse, TooMuch,
    Writers, commit,
};
pub use error::{Error, Result};
pub use layer::{Found, Layer, LayerRecord, LayerUse, Layers, Retired};
pub use lens::{Lens, LensRoot, Owner, Xattrs};
pub use readwrite::{Access, MountPoints, Owners, Quiet, ReadWrite, ReadWritePlan, Room};
pub use remove::remove_contents;
pub use scan::{MarkNames, UpperEntry, UpperKind};
#[cfg(feature = "testing")]
pub use scanner::in_a_thread;
pub use scanner::{Scanner, StartScanner, raise_descriptor_limit, scanner_main};
pub use view_ops::{NewMeta, Opening, Over, ViewOp};
pub use walk::Totals;
