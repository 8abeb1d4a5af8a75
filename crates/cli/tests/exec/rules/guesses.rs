//! The passphrase cannot be guessed: neither one after the other, nor many at a time, nor with another daemon.

use super::{DEPLOY, asks, guarded, home, homes, set_up, unfit};
use avfs_testkit::{Home, Person};

#[test]
fn a_wrong_passphrase_approves_nothing_and_cannot_be_guessed_for_long() {
    let home = home();
    guarded(&home);
    let id = asks(&home, &DEPLOY);
    let attempt = |passphrase: &str| {
        let mut person = Person::start(home.command(&["approval", "approve", &id]));
        person.answer("Passphrase to let it run once: ", passphrase);
        person.end()
    };
    for guess in ["password", "correct horse", "x", "y", "z"] {
        let (status, said) = attempt(guess);
        assert!(
            !status.success() && said.contains("wrong"),
            "{status}: {said}"
        );
    }
    let (status, said) = attempt(super::PASSPHRASE);
    assert!(
        !status.success() && said.contains("too many"),
        "{status}: {said}"
    );
    unfit(&home, &id, &DEPLOY, "needs_approval", "nobody");
}

#[test]
fn a_passphrase_is_changed_only_by_who_knows_it() {
    let home = home();
    set_up(&home);
    let mut person = Person::start(home.command(&["approval", "setup"]));
    person.answer("Present passphrase: ", "i do not know");
    person.answer("New passphrase: ", "something else");
    person.answer("Once more: ", "something else");
    let (status, said) = person.end();
    assert!(
        !status.success() && said.contains("wrong"),
        "{status}: {said}"
    );
}

/// Somebody who is about to type the passphrase.
fn begins(home: &Home, id: &str) -> Person {
    let mut person = Person::start(home.command(&["approval", "approve", id]));
    person.wait_for("Passphrase to let it run once: ");
    person
}

#[test]
fn a_hundred_guesses_at_a_time_are_five() {
    for home in homes() {
        guarded(&home);
        let id = asks(&home, &DEPLOY);
        let mut people: Vec<Person> = (0..100).map(|_| begins(&home, &id)).collect();
        for (number, person) in people.iter_mut().enumerate() {
            person.type_keys(&format!("guess number {number}\n"));
        }
        let (mut wrong, mut too_many) = (0, 0);
        for person in people {
            let (status, said) = person.end();
            assert!(!status.success(), "{said}");
            wrong += usize::from(said.contains("the passphrase is wrong"));
            too_many += usize::from(said.contains("too many"));
        }
        assert_eq!((wrong, too_many), (5, 95), "{}", home.user());
        let journal = home.json(&["audit", "--operation", "approval.wrong_passphrase"]);
        assert_eq!(journal["total_count"], 5, "{journal:#}");

        // Another daemon has not forgotten.
        home.ok(&["daemon", "stop"]);
        let mut person = begins(&home, &id);
        person.type_keys(&format!("{}\n", super::PASSPHRASE));
        let (status, said) = person.end();
        assert!(!status.success() && said.contains("too many"), "{said}");
    }
}
