//! Whether a directory can hold layers: not every file system can be the upper of an overlay.

use std::fs::File;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Mode, OFlags};

use super::{Trial, ask};
use crate::error::{During, Fault, Result};
use crate::plan::{OverlayPlan, Privilege};
use crate::rootfs::new_overlay;

/// ext2 to ext4, XFS, Btrfs, F2FS and tmpfs: known to work as upper.
const KNOWN: [i64; 5] = [0xef53, 0x5846_5342, 0x9123_683e, 0xf2f5_2010, 0x0102_1994];

/// Whether the file system is known to work.
pub fn needs_no_trial(dir: &Path) -> bool {
    rustix::fs::statfs(dir).is_ok_and(|found| KNOWN.contains(&found.f_type))
}

/// Tries it in a separate process: writes through an overlay whose upper is in `dir`.
pub fn can_hold_layers(dir: &Path, binary: &Path) -> Result<()> {
    let trial = dir.join(format!("trial-{}", std::process::id()));
    let outcome = ask(Trial::Layers(trial.clone()), binary);
    // Overlayfs leaves a directory with mode 000 there.
    let _ = rustix::fs::chmod(trial.join("work/work"), Mode::RWXU);
    let _ = std::fs::remove_dir_all(&trial);
    Ok(outcome?.map(drop)?)
}

/// Creates a new file, and removes one of the lower layer.
pub(super) fn attempt(dir: &Path, privilege: Privilege) -> std::result::Result<String, Fault> {
    let make = |name: &str| -> std::result::Result<PathBuf, Fault> {
        let path = dir.join(name);
        std::fs::create_dir_all(&path).during(|| format!("make {path:?}"))?;
        Ok(path)
    };
    let lower = make("lower")?;
    File::create(lower.join("beneath")).during(|| format!("write in {lower:?}"))?;
    let plan = OverlayPlan {
        lowers: vec![lower],
        upper: make("upper")?,
        work: make("work")?,
    };
    let overlay = new_overlay(&plan, false, privilege)?;
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::CLOEXEC;
    rustix::fs::openat(&overlay, "new", flags, Mode::RUSR | Mode::WUSR)
        .during(|| format!("write through an overlay in {dir:?}"))?;
    rustix::fs::unlinkat(&overlay, "beneath", AtFlags::empty())
        .during(|| format!("remove through an overlay in {dir:?}"))?;
    Ok("written".into())
}
