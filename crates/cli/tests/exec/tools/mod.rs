//! Ordinary tools in a view: every step judged by a walk, then all of it stored and used again.
//!
//! `AVFS_TOOLS_EVERYWHERE=1 cargo test -p agentvfs-cli --test exec tools` leaves no pair of tool and view out.

mod cargo;
mod git;
mod judge;
mod node;
mod python;
mod scripts;
mod sqlite;
