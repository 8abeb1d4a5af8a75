//! More live views than a daemon was given descriptors for.

use avfs_testkit::Home;

use crate::{AVFS, one_at_a_time};
/// Each takes six descriptors or more.
const VAULTS: usize = 24;

/// Starts the daemon of a home under these limits, soft and hard, and lets a command run in many vaults.
fn with_limits(soft: u64, hard: u64) -> Home {
    let home = Home::new(AVFS);
    // What the first client is limited to, the daemon that it starts is, too.
    let limited = format!("ulimit -Sn {soft} && ulimit -Hn {hard} && exec \"$0\" vault create v0");
    let mut first = home.command(&["vault", "create", "v0"]);
    let binary = first.get_program().to_owned();
    let environment: Vec<_> = first
        .get_envs()
        .filter_map(|(name, value)| Some((name.to_owned(), value?.to_owned())))
        .collect();
    first = home.host_command("sh");
    first.arg("-c").arg(limited).arg(binary).envs(environment);
    assert!(first.status().unwrap().success());
    for number in 1..VAULTS {
        home.ok(&["vault", "fork", "v0", &format!("v{number}")]);
    }
    for number in 0..VAULTS {
        let vault = format!("v{number}");
        let words = [
            "--vault",
            &vault,
            "exec",
            "--shell",
            "echo x > /x; ulimit -Sn",
        ];
        let told = home.ok(&words);
        assert_eq!(
            told.trim(),
            soft.to_string(),
            "the command has its own limit"
        );
    }
    home
}

fn live_views(home: &Home) -> u64 {
    home.json(&["daemon", "status"])["live_views"]
        .as_u64()
        .unwrap()
}

#[test]
fn the_soft_limit_does_not_bound_live_views() {
    let _turn = one_at_a_time();
    let home = with_limits(96, 4096);
    assert_eq!(live_views(&home), VAULTS as u64);
}

#[test]
fn idle_views_are_closed_before_the_hard_limit_is_reached() {
    let _turn = one_at_a_time();
    let home = with_limits(160, 160);
    assert!(live_views(&home) < VAULTS as u64);
    for number in 0..VAULTS {
        let vault = format!("v{number}");
        assert_eq!(
            home.ok(&["--vault", &vault, "exec", "--", "cat", "/x"]),
            "x\n"
        );
    }
}
