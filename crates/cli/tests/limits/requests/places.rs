//! Where a daemon listens when somebody else was there first.

use crate::AVFS;
use avfs_testkit::Home;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::PathBuf;

#[test]
fn a_directory_of_another_does_not_keep_the_daemon_from_starting() {
    // Only root can make what belongs to another user; otherwise the unit tests of the place have to do.
    let Some(home) = Home::of_ordinary_user(AVFS) else {
        return;
    };
    let own = fs::metadata(home.user_home()).unwrap().uid();
    let taken = PathBuf::from(format!("/tmp/agentvfs-{own}"));
    let made = fs::create_dir(&taken).is_ok();
    if made {
        fs::set_permissions(&taken, fs::Permissions::from_mode(0o777)).unwrap();
    }
    let run = |words: &[&str]| {
        let mut command = home.command(words);
        command.env_remove("XDG_RUNTIME_DIR");
        command.output().unwrap()
    };
    let created = run(&["vault", "create", "v"]);
    let status = run(&["--json", "daemon", "status"]);
    let inside = fs::read_dir(&taken).map_or(0, Iterator::count);
    if made {
        fs::remove_dir_all(&taken).unwrap();
    }
    assert!(created.status.success(), "{created:?}");
    let status: serde_json::Value = serde_json::from_slice(&status.stdout).unwrap();
    let socket = PathBuf::from(status["socket"].as_str().unwrap());
    assert!(!socket.starts_with(&taken), "{}", socket.display());
    let dir = fs::metadata(socket.parent().unwrap()).unwrap();
    assert_eq!((dir.uid(), dir.mode() & 0o7777), (own, 0o700));
    assert!(!made || inside == 0, "nothing was put there");
}
