//! For tests only: temporary homes, the avfs binary driven as a user would, independent scans.
//!
//! Nothing here shares code with the product, so that comparing the two proves something.

mod database;
mod dice;
mod faults;
mod home;
mod http;
mod person;
mod processes;
mod scan;
mod shown;
mod terminal;

pub use database::{ask_database, change_database};
pub use dice::{Dice, noise, number};
pub use faults::{Calls, Fault, FaultyDisk};
pub use home::{Home, is_run_by_each_user, with_vault};
pub use http::{ask, connect, converse, status_and_body};
pub use person::Person;
pub use processes::{
    SOON, leftover_processes, process_ends, processes_below, signal, status_kib, wait_for,
};
pub use scan::{Node, NodeKind, Scan, scan};
pub use shown::{Ran, Shown, Way, skip, tools};
pub use terminal::Terminal;
