//! Terms: changed while connections live, different side by side, and limits.

use std::io::Read;
use std::num::NonZeroU64;
use std::time::Instant;

use avfs_net::{ExecKey, Outcome, Terms};

use crate::client::{Answer, echoes, ends, is_reset, problem};
use crate::servers::{echo, http, zeros};
use crate::space::alone;
use crate::world::{World, terms};

#[test]
fn a_change_cuts_what_is_no_longer_allowed_and_opens_what_is() {
    alone(
        "terms::a_change_cuts_what_is_no_longer_allowed_and_opens_what_is",
        || {
            echo("127.0.5.1:22");
            http("127.0.5.1:80");
            let world = World::new();
            for name in ["a.test", "b.test"] {
                world.names.set(name, &["127.0.5.1"]);
            }
            let (sandbox, _guard) = world.with_list("a.test:22,b.test:22,127.0.5.1:22");
            let mut direct = sandbox.dial("a.test", 22).unwrap();
            let mut tunnel = sandbox.tunnel("a.test:22").unwrap();
            let mut kept = sandbox.dial("b.test", 22).unwrap();
            for stream in [&mut direct, &mut tunnel, &mut kept] {
                assert!(echoes(stream));
            }
            sandbox.update(1, "b.test:22,127.0.5.1:22");
            assert!(is_reset(&mut direct));
            assert!(ends(&mut tunnel));
            assert!(echoes(&mut kept));
            assert_eq!(sandbox.look_up("a.test"), Answer::NoSuchName);
            // The special address is no longer listed, so the name does not help.
            sandbox.update(1, "a.test:22,b.test:22");
            assert!(is_reset(&mut kept));
            let refused = problem(&sandbox.tunnel("b.test:22").unwrap_err());
            assert_eq!(refused["rule"], "default:special-address");
            assert_eq!(refused["allow"], "avfs network allow 127.0.5.1:22");
            sandbox.update(1, "a.test,127.0.5.1");
            assert!(
                sandbox
                    .proxied(
                        b"GET http://a.test/ HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n"
                    )
                    .starts_with("HTTP/1.1 200")
            );
        },
    );
}

#[test]
fn commands_with_different_lists_run_side_by_side() {
    alone(
        "terms::commands_with_different_lists_run_side_by_side",
        || {
            echo("127.0.5.1:22");
            let world = World::new();
            for name in ["a.test", "b.test", "both.test"] {
                world.names.set(name, &["127.0.5.1"]);
            }
            let sandbox = world.sandbox();
            let _one = sandbox.enter(1, "a.test:22,both.test:22,127.0.5.1:22");
            let two = sandbox.enter(2, "b.test:22,both.test:22,127.0.5.1:22");
            let reaches = |name: &str| sandbox.tunnel(&format!("{name}:22")).is_ok();
            for (keys, a, b) in [
                (&[1][..], true, false),
                (&[2], false, true),
                (&[1, 2], false, false),
                (&[], false, false),
                (&[9], false, false),
            ] {
                sandbox.candidates.say(keys);
                assert_eq!((reaches("a.test"), reaches("b.test")), (a, b), "{keys:?}");
                assert!(reaches("both.test"), "{keys:?}");
                let known = |name: &str| matches!(sandbox.look_up(name), Answer::Address(_));
                assert_eq!((known("a.test"), known("b.test")), (a, b), "{keys:?}");
                assert!(known("both.test"));
            }
            // Each command is told of its own, and of what could be its own.
            let attempts = sandbox.attempts(1);
            let denied = |name: &str| {
                attempts.iter().any(|attempt| {
                    attempt.host == name && attempt.port == 22 && attempt.outcome == Outcome::Denied
                })
            };
            assert!(denied("b.test") && denied("a.test"));
            let shared = attempts
                .iter()
                .find(|attempt| attempt.host == "both.test" && attempt.port == 22)
                .unwrap();
            assert_eq!(shared.candidates, [ExecKey(1), ExecKey(2)]);
            // A connection ends with the only command that it can belong to.
            sandbox.candidates.say(&[2]);
            let mut owned = sandbox.tunnel("b.test:22").unwrap();
            assert!(echoes(&mut owned));
            drop(two);
            assert!(ends(&mut owned));
        },
    );
}

#[test]
fn bytes_have_a_limit_and_a_rate() {
    alone("terms::bytes_have_a_limit_and_a_rate", || {
        zeros("127.0.5.1:22", 4_000_000);
        let world = World::new();
        world.names.set("a.test", &["127.0.5.1"]);
        let sandbox = world.sandbox();
        let limited = Terms {
            max_bytes: Some(1_000_000),
            ..terms("a.test:22,127.0.5.1:22")
        };
        let guard = sandbox.served.enter(ExecKey(1), limited).unwrap();
        let mut received = Vec::new();
        let _ = sandbox
            .dial("a.test", 22)
            .unwrap()
            .read_to_end(&mut received);
        assert!(received.len() <= 1_000_000, "{}", received.len());
        let attempts = guard.leave().list;
        let raw = attempts.iter().find(|attempt| attempt.port == 22).unwrap();
        assert!(raw.bytes_in >= received.len() as u64, "{raw:?}");

        let slow = Terms {
            bytes_per_second: NonZeroU64::new(8_000_000),
            ..terms("a.test:22,127.0.5.1:22")
        };
        let _guard = sandbox.served.enter(ExecKey(2), slow).unwrap();
        let begun = Instant::now();
        let mut received = Vec::new();
        sandbox
            .dial("a.test", 22)
            .unwrap()
            .read_to_end(&mut received)
            .unwrap();
        assert_eq!(received.len(), 4_000_000);
        // A lower bound holds on any machine: half a second at this rate, less what a burst gives.
        assert!(begun.elapsed().as_millis() >= 350, "{:?}", begun.elapsed());
    });
}

#[test]
fn observing_lets_through_and_says_what_would_suffice() {
    alone(
        "terms::observing_lets_through_and_says_what_would_suffice",
        || {
            echo("127.0.5.1:22");
            let world = World::new();
            world.names.set("a.test", &["127.0.5.1"]);
            world.names.set("inner.test", &["10.0.0.1"]);
            let sandbox = world.sandbox();
            let observing = Terms {
                observe: true,
                ..terms("127.0.5.1:22")
            };
            let guard = sandbox.served.enter(ExecKey(1), observing).unwrap();
            assert!(echoes(&mut sandbox.dial("a.test", 22).unwrap()));
            assert!(sandbox.tunnel("inner.test:22").is_err());
            assert!(sandbox.tunnel("169.254.169.254:80").is_err());
            let attempts = guard.leave();
            let rules: Vec<String> = attempts
                .smallest_list()
                .iter()
                .map(ToString::to_string)
                .collect();
            assert_eq!(rules, ["a.test:22"]);
        },
    );
}

#[test]
fn attempts_are_bounded() {
    alone("terms::attempts_are_bounded", || {
        let world = World::new();
        let (sandbox, guard) = world.with_list("a.test");
        for n in 0..600 {
            assert_eq!(sandbox.look_up(&format!("h{n}.test")), Answer::NoSuchName);
        }
        assert_eq!(sandbox.told.count(), 512);
        let attempts = guard.leave();
        assert_eq!((attempts.list.len(), attempts.more), (512, 88));
    });
}
