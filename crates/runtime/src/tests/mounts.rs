//! A vault shown at a directory of the host: here a link to the view, with the same slot, commits and notes on the disk.

use super::*;
use crate::live::mounts::Showing;
use crate::{IfBusy, InUse, MountDriver, UnmountTarget};

impl PlainHome {
    /// Mounts the vault, as root would.
    fn mount(&self, autocommit: Option<Duration>) -> Result<PathBuf> {
        let dir = self.dir.path().join("mounted");
        std::fs::create_dir_all(&dir).unwrap();
        let showing = Showing {
            dir: &dir,
            driver: MountDriver::Overlay,
            autocommit,
            audience: avfs_sandbox::onhost::Audience::User,
        };
        let slot = self.runtime.slot(self.vault().id);
        slot.mount(&self.runtime, &showing).map(|()| dir)
    }

    fn unmount(&self) -> Result<Vec<crate::Unmounted>> {
        self.session().unmount(UnmountTarget::All, InUse::Refuse)
    }
}

#[test]
fn what_is_written_in_a_mount_is_the_vaults() {
    let place = PlainHome::new();
    place.write("/d/f", "stored\n");
    let dir = place.mount(None).unwrap();
    assert_eq!(
        std::fs::read_to_string(dir.join("d/f")).unwrap(),
        "stored\n"
    );
    std::fs::write(dir.join("new"), "by the host").unwrap();
    assert_eq!(
        place.cat("/new").unwrap(),
        "by the host",
        "whoever looks sees it"
    );
    place.write("/d/f", "by a verb");
    assert_eq!(
        std::fs::read_to_string(dir.join("d/f")).unwrap(),
        "by a verb"
    );
    std::fs::write(dir.join("last"), "last").unwrap();
    let mounts = place.session().mounts().unwrap();
    assert_eq!((mounts.len(), &mounts[0].dir), (1, &dir));
    let gone = place.unmount().unwrap();
    assert!(gone[0].version.is_some(), "{gone:?}");
    assert_eq!(place.cat("/last").unwrap(), "last");
    assert_eq!(
        std::fs::read_dir(&dir).unwrap().count(),
        0,
        "nothing is shown any more"
    );
    assert_eq!(stdout(&place.sh("cat d/f new")), "by a verbby the host");
}

#[test]
fn a_vault_has_one_writable_view() {
    let place = PlainHome::new();
    let running = place.start(UNTIL_GO);
    let refused = place.mount(None).unwrap_err();
    assert_eq!(refused.to_string(), "1 command(s) are running in vault v");
    place.write("/go", "");
    running.end();
    place.mount(None).unwrap();
    let refused = place.session().exec(shell("true"), &Quiet).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Conflict);
    // Here a mount is what overlayfs would serve.
    assert!(
        matches!(refused, crate::Error::MountedBesideCommands { .. }),
        "{refused}"
    );
    let refused = place.mount(None).unwrap_err();
    assert!(
        matches!(refused, crate::Error::AlreadyMounted { .. }),
        "{refused}"
    );
    let renamed = place.session().vault_rename(&name("v"), &name("w"));
    assert!(matches!(renamed.unwrap_err(), crate::Error::Mounted { .. }));
    place.unmount().unwrap();
    assert_eq!(place.sh("true").status, ExecStatus::Exited(0));
}

#[test]
fn what_was_written_is_committed_by_itself_where_that_was_asked_for() {
    let place = PlainHome::new();
    let dir = place.mount(Some(Duration::from_millis(20))).unwrap();
    std::fs::write(dir.join("f"), "x").unwrap();
    let before = place.vault().version;
    let slot = place.runtime.slot(place.vault().id);
    // The thread that tends mounts is started by who asks for one through the session.
    assert!(wait_for(SOON, || slot.tend(&place.runtime)
        && place.vault().version > before));
    place.unmount().unwrap();
    assert!(
        !slot.tend(&place.runtime),
        "there is nothing to tend any more"
    );
}

#[test]
fn whoever_tends_a_mount_leaves_nothing_of_a_vault_that_is_gone() {
    let place = PlainHome::new();
    place.mount(None).unwrap();
    let vault = place.vault().id;
    assert!(place.runtime.tend(vault));
    place.unmount().unwrap();
    let session = place.session();
    session.vault_delete(&name("v"), IfBusy::Refuse).unwrap();
    assert!(!place.runtime.tend(vault));
    assert!(
        place.runtime.slot_of(vault).is_none(),
        "a slot was made anew"
    );
}

#[test]
fn a_mount_that_somebody_took_away_is_taken_in() {
    let place = PlainHome::new();
    let dir = place.mount(None).unwrap();
    std::fs::write(dir.join("f"), "written").unwrap();
    std::fs::remove_file(&dir).unwrap();
    assert_eq!(place.cat("/f").unwrap(), "written");
    assert!(place.session().mounts().unwrap().is_empty());
    assert_eq!(stdout(&place.sh("cat f")), "written");
}

#[test]
fn a_mount_of_a_lost_daemon_is_taken_away_and_its_work_is_kept() {
    let place = PlainHome::new();
    place.write("/f", "stored");
    let dir = place.mount(None).unwrap();
    std::fs::write(dir.join("g"), "written").unwrap();
    let place = place.after_a_loss(|_| assert!(dir.is_symlink(), "nobody could unmount it"));
    assert!(!dir.is_symlink() && dir.is_dir());
    assert_eq!(place.cat("/g").unwrap(), "written");
    assert_eq!(place.cat("/f").unwrap(), "stored");
}
