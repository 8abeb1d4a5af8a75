//! One vault, several at work in it: who shares a view, who waits for whom, and what is left when something dies.

use super::*;
use crate::{IfBusy, QuotaLimit, RestorePoint, Retried};

#[test]
fn commands_share_the_view_and_each_report_names_the_others() {
    let place = PlainHome::new();
    let first = place.start(&format!("echo one > a; {UNTIL_GO}"));
    let second = place.sh("cat a; echo two > b");
    assert_eq!(stdout(&second), "one\n", "what the other wrote is there");
    assert_eq!(place.runtime.activity().live_views, 1);
    place.write("/go", "");
    let first = first.end();
    assert_eq!(second.shared_with, [first.exec]);
    assert_eq!(first.shared_with, [second.exec]);
}

#[test]
fn a_head_is_not_moved_under_a_command_unless_it_is_ended() {
    let place = PlainHome::new();
    let session = place.session();
    let point = "c".parse().unwrap();
    place.write("/f", "saved");
    session
        .checkpoint_save(Select::Current, Some(&point).into())
        .unwrap();
    let restore = |if_busy| {
        let point = RestorePoint::Checkpoint(point.clone());
        session.checkpoint_restore(Select::Current, &point, if_busy)
    };
    let running = place.start(&format!("echo later > f; {UNTIL_GO}"));
    let refused = restore(IfBusy::Refuse).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Conflict);
    assert_eq!(refused.to_string(), "1 command(s) are running in vault v");
    assert!(refused.hint().is_some_and(|hint| hint.contains("--force")));
    let refused = session.vault_rename(&name("v"), &name("w")).unwrap_err();
    assert_eq!(refused.to_string(), "1 command(s) are running in vault v");
    let refused = session
        .vault_delete(&name("v"), IfBusy::Refuse)
        .unwrap_err();
    assert_eq!(refused.to_string(), "1 command(s) are running in vault v");
    restore(IfBusy::End).unwrap();
    assert_eq!(running.end().status, ExecStatus::Cancelled);
    assert_eq!(place.cat("/f").unwrap(), "saved");
    let undone = session.checkpoint_restore(Select::Current, &RestorePoint::Undo, IfBusy::Refuse);
    undone.unwrap();
    assert_eq!(
        place.cat("/f").unwrap(),
        "later\n",
        "what it wrote is not lost"
    );
}

#[test]
fn a_file_verb_between_two_commands_costs_no_view() {
    let place = PlainHome::new();
    place.sh("mkdir d; echo one > d/f; echo gone > d/gone");
    let layers = place.layers();
    place.write("/d/f", "two\n");
    place.write("/d/new", "three\n");
    let session = place.session();
    let gone = session.rm(Select::Current, &path("/d/gone"), crate::Depth::Single);
    gone.unwrap();
    let report = place.sh("cat d/f d/new; ls d");
    assert_eq!(stdout(&report), "two\nthree\nf\nnew\n");
    assert_eq!(place.layers(), layers, "it is the same view");
    assert_eq!(layers.len(), 1);
}

#[test]
fn a_view_goes_when_its_vault_is_renamed_or_deleted() {
    let place = PlainHome::new();
    let session = place.session();
    place.sh("echo one > f");
    session.vault_rename(&name("v"), &name("w")).unwrap();
    assert_eq!(place.runtime.activity().live_views, 0);
    session.vault_rename(&name("w"), &name("v")).unwrap();
    assert_eq!(stdout(&place.sh("cat f")), "one\n");
    let layers = place.layers();
    session.vault_delete(&name("v"), IfBusy::Refuse).unwrap();
    assert!(
        wait_for(SOON, || !layers[0].exists()),
        "its layer is removed"
    );
}

#[test]
fn a_sandbox_that_dies_takes_its_command_along_and_no_work() {
    let place = PlainHome::new();
    let running = place.start("echo work > f; echo > up; sleep 600");
    let keeper = place.runtime.activity().keeper_pid.unwrap();
    avfs_testkit::signal(keeper, rustix::process::Signal::KILL);
    let report = running.end();
    assert_eq!(report.status, ExecStatus::Interrupted, "{report:?}");
    assert_eq!(place.cat("/f").unwrap(), "work\n");
    let next = place.sh("cat f");
    assert_eq!(stdout(&next), "work\n");
    assert_ne!(place.runtime.activity().keeper_pid, Some(keeper));
}

#[test]
fn a_keeper_that_died_unseen_is_replaced_and_the_report_says_so() {
    let place = PlainHome::new();
    place.sh("echo one > f");
    let keeper = place.runtime.activity().keeper_pid.unwrap();
    avfs_testkit::signal(keeper, rustix::process::Signal::KILL);
    assert!(avfs_testkit::process_ends(keeper, SOON));
    let report = place.sh("cat f");
    assert_eq!(stdout(&report), "one\n");
    assert!(
        report.retried.contains(&Retried::Keeper),
        "{:?}",
        report.retried
    );
}

#[test]
fn what_a_quota_refuses_is_told_and_kept_until_there_is_room() {
    let place = PlainHome::new();
    let session = place.session();
    let limit = |value| session.set_quota(Select::Current, QuotaLimit::Files, value);
    limit(Some(3)).unwrap();
    let report = place.sh("for n in 1 2 3 4 5; do echo $n > f$n; done");
    let why = report.uncommitted.as_ref().expect("it is over the quota");
    assert_eq!((why.kind, report.version), (ErrorKind::Quota, None));
    assert!(place.cat("/f1").is_err(), "none of it is in the head");
    limit(None).unwrap();
    session.commit(Select::Current).unwrap();
    assert_eq!(place.cat("/f5").unwrap(), "5\n");
}

#[test]
fn many_at_once_lose_nothing() {
    let place = PlainHome::new();
    std::thread::scope(|scope| {
        for number in 0..6 {
            let place = &place;
            scope.spawn(move || {
                for turn in 0..4 {
                    let report = place.sh(&format!("echo {turn} > c{number}-{turn}"));
                    assert_eq!(report.status, ExecStatus::Exited(0));
                    place.write(&format!("/w{number}-{turn}"), "by a verb");
                }
            });
        }
    });
    for number in 0..6 {
        for turn in 0..4 {
            assert_eq!(
                place.cat(&format!("/c{number}-{turn}")).unwrap(),
                format!("{turn}\n")
            );
            assert_eq!(
                place.cat(&format!("/w{number}-{turn}")).unwrap(),
                "by a verb"
            );
        }
    }
    place.check_journal();
}

#[test]
fn a_fork_holds_running_commands_still_and_has_what_they_wrote() {
    let place = PlainHome::new();
    let session = place.session();
    let running = place.start(&format!("echo during > f; {UNTIL_GO}"));
    let (point, then) = (crate::ForkPoint::Head, crate::AfterFork::Stay);
    session
        .vault_fork(&name("v"), &point, &name("w"), then)
        .unwrap();
    let of_fork = |at: &str| {
        let read = session.cat(Select::Named(name("w")), &path(at), &ReadOptions::default());
        read.map(|file| file.bytes)
    };
    assert_eq!(of_fork("/f").unwrap(), b"during\n");
    place.write("/go", "");
    assert_eq!(running.end().status, ExecStatus::Exited(0));
    assert!(of_fork("/go").is_err(), "it is a vault of its own");
}

#[test]
fn a_slot_that_holds_nothing_is_forgotten_once_nobody_has_it() {
    let place = PlainHome::new();
    place.sh("echo x > f");
    let vault = place.vault().id;
    place.runtime.forget_empty_slots();
    assert!(place.runtime.slot_of(vault).is_some(), "it has a view");
    let session = place.session();
    session.vault_delete(&name("v"), IfBusy::Refuse).unwrap();
    // Whoever had named the vault before gets a slot after.
    let late = place.runtime.slot(vault);
    place.runtime.forget_empty_slots();
    assert!(place.runtime.slot_of(vault).is_some(), "somebody has it");
    drop(late);
    place.runtime.forget_empty_slots();
    assert!(place.runtime.slot_of(vault).is_none());
}
