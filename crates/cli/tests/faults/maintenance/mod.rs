//! Care of a home, driven as a user would: what is deleted comes back, what is dead goes, what is
//! damaged is named.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod apart;
mod collect;
mod damage;
mod hostile;
mod journal;
mod keep_going;
mod lifetime;
mod limits;
mod read_only;
mod rebuild;
mod repair;
mod spoil;

/// The binary under test.
const AVFS: &str = env!("CARGO_BIN_EXE_avfs");

use avfs_testkit::Home;

/// Does `check` in a fresh home of every kind of user this test can be, with a vault `v` in it.
fn with_vault(check: impl Fn(&Home)) {
    for home in Home::of_every_user(AVFS) {
        home.ok(&["vault", "create", "v"]);
        check(&home);
    }
}
