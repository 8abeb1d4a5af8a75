//! The walk of a command: decided, run, committed, reported.

use super::*;
use crate::{Access, Branch, CheckpointMode, Timeout};
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};

#[test]
fn what_a_command_does_becomes_the_head_and_is_reported() {
    let place = PlainHome::new();
    place.write("/d/old", "one\n");
    place.write("/d/gone", "x");
    let before = place.vault().version;
    let report = place.sh("cat d/old; echo two >> d/old; rm d/gone; mkdir new; echo 3 > new/f");
    assert_eq!(report.status, ExecStatus::Exited(0), "{report:?}");
    assert_eq!(stdout(&report), "one\n");
    assert_eq!(
        changes(&report),
        ["-/d/gone", "~/d/old", "+/new", "+/new/f"]
    );
    assert_eq!(report.version, Some(before + 1));
    assert_eq!(place.cat("/d/old").unwrap(), "one\ntwo\n");
    assert_eq!(place.cat("/new/f").unwrap(), "3\n");
    let gone = place.cat("/d/gone").unwrap_err();
    assert_eq!(gone.kind(), ErrorKind::NotFound);
}

#[test]
fn a_command_that_changes_nothing_makes_no_version() {
    let place = PlainHome::new();
    place.write("/f", "x");
    let before = place.vault();
    let report = place.sh("cat f > /dev/null; touch f");
    assert_eq!(changes(&report), Vec::<String>::new());
    assert_eq!(place.sh("cat f").version, None);
    assert_eq!(place.vault().head == before.head, report.version.is_none());
}

#[test]
fn every_end_is_a_report() {
    let place = PlainHome::new();
    assert_eq!(place.sh("exit 7").status, ExecStatus::Exited(7));
    assert_eq!(place.sh("kill -TERM $$").status, ExecStatus::Signaled(15));
    let missing = request(ExecCommand::Argv(vec![b"no-such-program".to_vec()]));
    let missing = place.run(missing).status;
    assert!(
        matches!(
            &missing,
            ExecStatus::CouldNotStart {
                not_found: true,
                ..
            }
        ),
        "{missing:?}"
    );
    let nowhere = place.run(ExecRequest {
        cwd: Some(path("/nowhere")),
        ..shell("true")
    });
    assert!(
        matches!(
            &nowhere.status,
            ExecStatus::CouldNotStart {
                not_found: false,
                ..
            }
        ),
        "{nowhere:?}"
    );
}

#[test]
fn time_runs_out_and_what_was_done_is_kept() {
    let place = PlainHome::new();
    let mut request = shell("echo kept > f; echo said; exec sleep 600");
    request.options.timeout = Timeout::After(Duration::from_secs(1));
    let report = place.run(request);
    assert!(
        matches!(report.status, ExecStatus::TimedOut { .. }),
        "{report:?}"
    );
    assert_eq!(
        (stdout(&report), &changes(&report)[..]),
        ("said\n", &["+/f".to_owned()][..])
    );
    assert_eq!(place.cat("/f").unwrap(), "kept\n");
}

#[test]
fn what_is_denied_never_runs_and_is_in_the_journal() {
    let place = PlainHome::new();
    let before = place.vault().head;
    let report = place.sh("echo x > f; cat /etc/shadow");
    assert_eq!(report.status, ExecStatus::Denied, "{report:?}");
    assert_eq!(place.vault().head, before);
    assert!(place.cat("/f").is_err(), "nothing of it was run");
    let activity = place.runtime.activity();
    assert_eq!((activity.live_views, activity.keeper_pid), (0, None));
}

#[test]
fn a_risky_command_leaves_a_way_back() {
    let place = PlainHome::new();
    place.write("/d/f", "x");
    let report = place.sh("rm -rf d");
    let checkpoint = report.checkpoint.expect("policy asks for one");
    assert!(place.cat("/d/f").is_err());
    let point = crate::RestorePoint::Checkpoint(checkpoint);
    let session = place.session();
    let restored = session.checkpoint_restore(Select::Current, &point, crate::IfBusy::Refuse);
    assert_eq!(restored.unwrap().files, 1);
    assert_eq!(place.cat("/d/f").unwrap(), "x");
    let mut named = shell("true");
    named.options.checkpoint = CheckpointMode::Named("mine".parse().unwrap());
    assert_eq!(place.run(named).checkpoint, Some("mine".parse().unwrap()));
    // One that turned out not to be needed is not kept.
    assert_eq!(place.sh("rm -rf nothing-here").checkpoint, None);
}

#[test]
fn a_fork_of_its_own_leaves_the_vault_alone() {
    let place = PlainHome::new();
    place.write("/f", "old");
    let mut request = shell("echo new > f; cat f");
    request.options.branch = Branch::Throwaway;
    let report = place.run(request);
    assert_eq!(
        (stdout(&report), &changes(&report)[..]),
        ("new\n", &["~/f".to_owned()][..])
    );
    assert!(!report.fork.expect("it had one").kept);
    assert_eq!(place.cat("/f").unwrap(), "old");
    let mut request = shell("echo new > f");
    request.options.branch = Branch::KeepOnSuccess;
    let fork = place.run(request).fork.expect("it had one");
    assert!(fork.kept);
    let seen = place.session().cat(
        Select::Named(fork.name),
        &path("/f"),
        &ReadOptions::default(),
    );
    assert_eq!(seen.unwrap().bytes, b"new\n");
    assert_eq!(place.cat("/f").unwrap(), "old");
}

#[test]
fn whoever_only_looks_is_shown_the_head_and_changes_nothing() {
    let place = PlainHome::new();
    place.write("/f", "seen");
    let running = place.start(UNTIL_GO);
    let mut request = shell("cat f");
    request.options.access = Access::ReadOnly;
    let report = place.run(request);
    assert_eq!((stdout(&report), report.version), ("seen", None));
    place.write("/go", "");
    assert_eq!(running.end().status, ExecStatus::Exited(0));
}

#[test]
fn input_and_environment_reach_the_command_and_output_is_bounded() {
    let place = PlainHome::new();
    let (read, write) = std::io::pipe().unwrap();
    let mut request = shell("cat; echo $GIVEN");
    request.stdin = Stdin::From(OwnedFd::from(read));
    request.env = vec![(b"GIVEN".to_vec(), b"yes".to_vec())];
    std::thread::spawn(move || {
        std::io::Write::write_all(&mut &write, b"typed\n").unwrap();
    });
    assert_eq!(stdout(&place.run(request)), "typed\nyes\n");
    let mut request = shell("seq 100000; echo e >&2");
    request.options.output_limit = Some(100);
    let report = place.run(request);
    assert_eq!(report.stdout.bytes.len(), 100);
    assert!(report.stdout.truncated && report.stdout.total == 588_895);
    assert_eq!(report.stdout.spilled, 588_895, "the rest can be read later");
    assert_eq!(report.stderr.bytes, b"e\n");
}

/// A caller that goes away once it has heard something.
struct Leaving(AtomicBool);

impl OutputSink for Leaving {
    fn output(&self, _: Stream, _: &[u8], _: Option<Instant>) {
        self.0.store(true, Ordering::Relaxed);
    }

    fn cancelled(&self) -> Option<Cancel> {
        self.0.load(Ordering::Relaxed).then_some(Cancel::Interrupt)
    }
}

#[test]
fn a_caller_that_leaves_ends_the_command() {
    let place = PlainHome::new();
    let request =
        shell("trap 'echo asked > how; exit 3' INT; echo up; while :; do sleep 0.01; done");
    let report = place
        .session()
        .exec(request, &Leaving(AtomicBool::new(false)));
    assert_eq!(report.unwrap().status, ExecStatus::Cancelled);
    assert_eq!(place.cat("/how").unwrap(), "asked\n");
}

#[test]
fn what_a_command_leaves_running_is_ended() {
    let place = PlainHome::new();
    let report = place.sh("sleep 600 & echo $! > pid");
    assert_eq!(
        (&report.status, report.leftovers),
        (&ExecStatus::Exited(0), 1)
    );
    let pid: u32 = place.cat("/pid").unwrap().trim().parse().unwrap();
    assert!(avfs_testkit::process_ends(pid, SOON));
}

#[test]
fn the_journal_has_every_command_and_is_whole() {
    let place = PlainHome::new();
    place.sh("echo x > f");
    place.sh("cat /etc/shadow");
    assert!(place.check_journal() >= 4);
}
