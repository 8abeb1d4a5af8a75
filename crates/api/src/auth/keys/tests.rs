//! Keys that are known, ended, rotated and written down, and texts that are none.

use super::*;
use crate::auth::key_name;
use crate::table::Class;
use std::os::unix::fs::PermissionsExt;

fn keys() -> (tempfile::TempDir, Keys) {
    let home = tempfile::tempdir().unwrap();
    let keys = Keys::open(home.path()).unwrap();
    (home, keys)
}

fn new(name: &str, scopes: &[Scope], expires: Option<i64>) -> NewKey {
    NewKey {
        name: key_name(name).unwrap(),
        scopes: scopes.to_vec(),
        vaults: vec![VaultPattern::parse("team-*").unwrap()],
        expires,
        rate: None,
        asks_user: false,
    }
}

fn failed(made: Result<Made, Failure>) -> String {
    made.map(|made| made.key.name)
        .unwrap_err()
        .problem()
        .kind
        .clone()
}

#[test]
fn a_key_is_known_until_it_ends() {
    let (_home, keys) = keys();
    let made = keys
        .create(new("ci", &[Scope::Read], Some(100)), 0)
        .unwrap();
    let known = keys.identify(&made.secret, 99).unwrap();
    assert_eq!(known.name.as_str(), "ci");
    assert_eq!(known.class(), Class::Agent);
    assert_eq!(
        keys.identify(&made.secret, 100).unwrap_err(),
        Refused::Expired
    );
    keys.revoke("ci", 50).unwrap();
    assert_eq!(
        keys.identify(&made.secret, 60).unwrap_err(),
        Refused::Revoked
    );
    assert!(!keys.any_usable(60));
    let again = keys.rotate("ci", Some(None), 60).unwrap();
    assert_eq!(
        keys.identify(&made.secret, 70).unwrap_err(),
        Refused::Unknown
    );
    keys.identify(&again.secret, 1_000_000).unwrap();
}

#[test]
fn nothing_but_the_whole_text_is_a_key() {
    let (_home, keys) = keys();
    let made = keys.create(new("ci", &[Scope::Read], None), 0).unwrap();
    let other = keys.create(new("cd", &[Scope::Read], None), 0).unwrap();
    let (text, other) = (made.secret, other.secret);
    let (id, secret) = (&text[5..17], &text[18..]);
    for wrong in [
        String::new(),
        "avfs_".into(),
        text[..text.len() - 1].to_owned(),
        format!("{text}0"),
        format!("{text}\0"),
        text.to_uppercase(),
        text.replacen("avfs", "AVFS", 1),
        format!("avfs_{id}_{}", &other[18..]),
        format!("avfs_{id}_{}", "0".repeat(64)),
        format!("avfs_{}_{secret}", &other[5..17]),
        format!("avfs_{id}_{}", keys.list()[0].hash),
    ] {
        assert_eq!(
            keys.identify(&wrong, 0).unwrap_err(),
            Refused::Unknown,
            "{wrong}"
        );
    }
}

#[test]
fn only_hashes_are_written_and_they_outlive_the_daemon() {
    let (home, keys) = keys();
    let made = keys
        .create(new("ci", &[Scope::Read, Scope::Run], None), 0)
        .unwrap();
    let file = home.path().join(FILE);
    let text = fs::read_to_string(&file).unwrap();
    assert!(!text.contains(&made.secret[18..]), "the secret is in it");
    assert_eq!(
        fs::metadata(&file).unwrap().permissions().mode() & 0o777,
        0o600
    );
    drop(keys);
    let keys = Keys::open(home.path()).unwrap();
    let known = keys.identify(&made.secret, 1).unwrap();
    assert_eq!(known.scopes, [Scope::Read, Scope::Run]);
    assert!(known.vaults[0].fits(&"team-a".parse().unwrap()));
}

#[test]
fn a_file_that_makes_no_sense_lets_nobody_in() {
    let (home, keys) = keys();
    keys.create(new("ci", &[Scope::Read], None), 0).unwrap();
    let file = home.path().join(FILE);
    let text = fs::read_to_string(&file).unwrap();
    for broken in [
        "{".to_owned(),
        text.replace("\"version\": 1", "\"version\": 2"),
        text.replace("\"read\"", "\"everything\""),
        text.replace("team-*", "../*"),
        text.replace("\"revoked\"", "\"was_revoked\""),
    ] {
        assert_ne!(broken, text);
        fs::write(&file, &broken).unwrap();
        assert!(Keys::open(home.path()).is_err(), "{broken}");
    }
}

#[test]
fn what_cannot_be_written_down_has_not_happened() {
    let (home, keys) = keys();
    let made = keys.create(new("ci", &[Scope::Read], None), 0).unwrap();
    fs::remove_dir_all(home.path()).unwrap();
    assert_eq!(
        failed(keys.create(new("cd", &[Scope::Read], None), 0)),
        "Unavailable"
    );
    assert!(keys.revoke("ci", 1).is_err());
    assert_eq!(keys.list().len(), 1);
    assert!(keys.identify(&made.secret, 2).is_ok());
}

#[test]
fn names_are_given_once_and_nobody_approves_itself() {
    let (_home, keys) = keys();
    keys.create(new("ci", &[Scope::Read], None), 0).unwrap();
    keys.revoke("ci", 0).unwrap();
    assert_eq!(
        failed(keys.create(new("ci", &[Scope::Read], None), 0)),
        "AlreadyExists"
    );
    assert_eq!(failed(keys.create(new("b", &[], None), 0)), "Invalid");
    let itself = [Scope::Run, Scope::Approve];
    assert_eq!(failed(keys.create(new("b", &itself, None), 0)), "Invalid");
    assert_eq!(failed(keys.rotate("nobody", None, 0)), "NotFound");
}
