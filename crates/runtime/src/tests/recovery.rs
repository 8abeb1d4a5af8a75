//! What a daemon that was lost left behind is taken in by the next one, before anybody sees the vault.

use super::*;
use avfs_vault::Cause;

/// The directory that shows the vault, of a view that a lost daemon left.
fn left_view(dir: &TempDir) -> PathBuf {
    let vaults = std::fs::read_dir(dir.path().join("home/layers")).unwrap();
    let mut found = vaults.flatten().flat_map(|vault| layers(&vault.path()));
    found.next().expect("a layer is left").join("upper")
}

fn causes(place: &PlainHome) -> Vec<Cause> {
    let log = place
        .session()
        .vault_log(Select::Current, 100, None)
        .unwrap();
    log.into_iter().map(|it| it.version.cause).collect()
}

#[test]
fn what_a_lost_daemon_left_becomes_an_interrupted_version() {
    let place = PlainHome::new();
    place.write("/kept", "kept");
    place.sh("echo one > f; mkdir d");
    let before = place.vault().version;
    let place = place.after_a_loss(|dir| {
        let top = left_view(dir);
        std::fs::write(top.join("f"), "two\n").unwrap();
        std::fs::write(top.join("d/new"), "new\n").unwrap();
        std::fs::remove_file(top.join("kept")).unwrap();
    });
    assert_eq!(place.cat("/f").unwrap(), "two\n");
    assert_eq!(place.cat("/d/new").unwrap(), "new\n");
    assert!(place.cat("/kept").is_err());
    assert_eq!(place.vault().version, before + 1);
    assert_eq!(causes(&place)[0], Cause::Interrupted);
    assert_eq!(stdout(&place.sh("cat f d/new")), "two\nnew\n");
    place.check_journal();
}

#[test]
fn a_layer_that_holds_nothing_new_makes_no_version() {
    let place = PlainHome::new();
    place.sh("echo one > f");
    let before = place.vault();
    let place = place.after_a_loss(|dir| assert!(left_view(dir).join("f").exists()));
    assert_eq!(place.cat("/f").unwrap(), "one\n");
    assert_eq!(place.vault().version, before.version);
    assert!(!causes(&place).contains(&Cause::Interrupted));
}

#[test]
fn a_layer_of_an_earlier_boot_does_not_become_the_head() {
    let place = PlainHome::new();
    place.sh("echo one > f");
    let before = place.vault().head;
    let checkpoints = |place: &PlainHome| {
        let listed = place.session().checkpoint_list(Select::Current);
        listed.unwrap().len()
    };
    let known = checkpoints(&place);
    let place = place.after_a_loss(|dir| {
        let top = left_view(dir);
        std::fs::write(top.join("f"), "torn").unwrap();
        let record = top.parent().unwrap().join("record");
        let mut bytes = std::fs::read(&record).unwrap();
        let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
        let boot = boot.trim().as_bytes();
        let at = bytes.windows(boot.len()).position(|it| it == boot).unwrap();
        bytes[at] = if bytes[at] == b'0' { b'1' } else { b'0' };
        std::fs::write(&record, bytes).unwrap();
    });
    assert_eq!(place.cat("/f").unwrap(), "one\n");
    assert_eq!(place.vault().head, before);
    let kept = checkpoints(&place);
    assert_eq!(kept, known + 1, "what it held can be looked at");
}

#[test]
fn rubbish_of_a_lost_daemon_is_removed() {
    let place = PlainHome::new();
    place.sh("echo one > f");
    let id = place.vault().id;
    let mut rubbish = PathBuf::new();
    let place = place.after_a_loss(|dir| {
        let layers = dir.path().join("home/layers").join(id.to_string());
        rubbish = layers.join("00000000000000ff");
        std::fs::create_dir_all(rubbish.join("upper/d")).unwrap();
        std::fs::write(rubbish.join("record.draft"), "not ready").unwrap();
    });
    assert!(wait_for(SOON, || !rubbish.exists()));
    assert_eq!(place.cat("/f").unwrap(), "one\n");
}

#[test]
fn a_home_has_one_runtime_at_a_time_and_ends_clean() {
    let place = PlainHome::new();
    place.sh("echo one > f");
    let second = Runtime::open(config(&place.dir))
        .err()
        .expect("it is taken");
    assert!(matches!(second, crate::Error::HomeInUse { .. }), "{second}");
    place.runtime.shutdown();
    assert_eq!(
        place.layers(),
        Vec::<PathBuf>::new(),
        "nothing is left to recover"
    );
    let place = place.after_a_loss(|_| ());
    assert_eq!(place.cat("/f").unwrap(), "one\n");
}
