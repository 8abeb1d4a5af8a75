//! What POSIX promises, checked on every view by programs made for that.
//!
//! Whatever a view does otherwise is listed in `docs/posix.md` with its reason. The lists hold in
//! both directions: a failure that is not listed fails the test, and so does a listed one that is gone.
//!
//! `AVFS_FSX_OPERATIONS=200000 cargo test -p agentvfs-cli --test views posix` is the long run.

mod exceptions;
mod fsx;
mod open_files;
mod pjdfstest;

use avfs_testkit::Shown;
use std::path::Path;

/// The directory with `pjdfstest` and `fsx`, where they are installed.
fn programs() -> Option<std::path::PathBuf> {
    avfs_testkit::tools(env!("CARGO_MANIFEST_DIR")).map(|dir| dir.join("bin"))
}

/// Brings one of those programs into the vault, as `/programs/NAME`.
fn bring(shown: &Shown, dir: &Path, name: &str) {
    let here = shown.home.path().join("programs");
    std::fs::create_dir_all(&here).expect("a directory");
    std::fs::copy(dir.join(name), here.join(name)).expect("scripts/test installs the program");
    let here = here.to_str().expect("a path of ours is text");
    shown.home.ok(&["import", here, "/programs"]);
}
