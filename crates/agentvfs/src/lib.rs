//! Workspaces for AI agents: forks, checkpoints, and commands in a sandbox that report what they changed.
//!
//! A *vault* is a durable, copy-on-write workspace. Forks and checkpoints of it cost the same for ten files or a
//! million. A command runs in a sandbox that sees the vault as its `/`, after a policy has decided on it; its result
//! says how it ended and which files differ.
//!
//! ```no_run
//! # fn main() -> agentvfs::Result<()> {
//! let avfs = agentvfs::Avfs::connect()?; // the daemon of this user, started if need be
//! let task = avfs.vault("myproject")?.fork("task-001")?;
//! task.checkpoint("before-refactor")?;
//! let result = task.command("cargo").arg("test").run()?;
//! println!("{} {:?}", result.exit_code, result.changed_files);
//! # Ok(())
//! # }
//! ```
//!
//! # Two faces
//!
//! [`Avfs::connect`] talks to the daemon that the `avfs` command line uses: the same vaults, shared by all programs of
//! this user. [`Avfs::embedded`] opens a home in this process, without a daemon: for tests and tools. The types are the
//! same, so a program can take either.
//!
//! ```standalone_crate
//! fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     agentvfs::init(); // this program is its own helper
//!     let dir = std::env::temp_dir().join(format!("agentvfs-doc-{}", std::process::id()));
//!     let avfs = agentvfs::Avfs::embedded(&dir)?;
//!
//!     let vault = avfs.create_vault("demo")?;
//!     vault.write("/greeting", "hello\n")?;
//!     let result = vault.shell("tr a-z A-Z < /greeting > /loud; cat /loud").run()?;
//!
//!     assert_eq!(result.exit_code, 0);
//!     assert_eq!(result.stdout, "HELLO\n");
//!     assert_eq!(result.changed_files, ["/loud"]);
//!     drop((avfs, vault)); // ends the home's processes
//!     std::fs::remove_dir_all(&dir)?;
//!     Ok(())
//! }
//! ```
//!
//! # Blocking and async
//!
//! All of this blocks the calling thread, and panics when it is called from async code of tokio, as tokio does when an
//! event loop is started within another. With the feature `async`, `AsyncAvfs` and `AsyncVault` are the same for async
//! code.
//!
//! # Who asks
//!
//! By default a program asks as the owner. [`Builder::agent`] gives the owner's rights up: changing rules, settings and
//! quotas, approving commands, naming paths of the host. `AVFS_CLASS=agent` and `AVFS_AGENT=NAME` do the same for every
//! program that has them in its environment. Journal and history say who did what.

#![deny(missing_docs)]

// What the unit tests share with the others is written against the library's name.
#[cfg(test)]
extern crate self as agentvfs;

mod approvals;
mod avfs;
mod binary;
mod builder;
mod command;
mod daemon;
mod downloads;
mod error;
mod face;
mod home;
mod job;
mod keys;
mod paths;
mod result;
mod running;
mod secrets;
mod streamed;
#[cfg(test)]
mod tests;
mod told;
pub mod types;
mod vault;

#[cfg(feature = "async")]
mod asynchronous;

#[cfg(feature = "async")]
pub use asynchronous::{AsyncAvfs, AsyncCommand, AsyncRunning, AsyncVault};
pub use avfs::Avfs;
pub use binary::init;
pub use builder::Builder;
pub use command::Command;
pub use error::{Error, ErrorKind, Result};
pub use job::{Job, JobOptions, Started};
pub use result::CommandResult;
pub use running::{Event, Handle, Running};
pub use streamed::Streamed;
pub use vault::Vault;
pub use vault::files::WriteOptions;

/// The version of this library, which is that of the daemon it talks to.
pub const VERSION: &str = avfs_api::wire::VERSION;

/// The programs in the documentation are compiled and run with the doctests.
#[cfg(all(doctest, feature = "async"))]
#[doc = include_str!("../../../docs/library.md")]
mod documentation {}
