//! Host directories and archives to trees and back: import, export, and changes applied to the host.
//!
//! [`Importer`] reads a directory, an archive or a git revision into a tree. [`Exporter`] writes a tree to a directory or
//! an archive. [`Apply`] writes what changed since an import to the directory that was imported. The crate stands on trees
//! alone: it moves no head, takes no lock and writes no journal. Its caller says who owns what comes in, which sizes are
//! admitted, where notes about unfinished work are kept, and who watches.
//!
//! Both sides are hostile: an archive or a directory may name anything, a tree may hold anything, and the host's files
//! change at any time. So paths of the host are opened beneath a descriptor, over no symlink.

mod apply;
mod aside;
mod autorun;
mod bounds;
mod damage;
mod directory;
mod error;
mod export;
mod host_tree;
mod import;
mod progress;
mod report;

pub use apply::{Apply, ApplyAction, ApplyReport, finish_interrupted};
pub use autorun::{Hooks, RunsByItself};
pub use damage::OnDamage;
pub use directory::TransferDirectory;
pub use error::{Error, Result};
pub use export::{ExportReport, Exporter, Standing};
pub use import::{
    Admits, GitEnvironment, Gitignores, ImportCache, ImportFilter, ImportReport, ImportTerms,
    Importer, Incoming, check_place,
};
pub use progress::{Progress, Unwatched, Watcher};
pub use report::Skipped;
