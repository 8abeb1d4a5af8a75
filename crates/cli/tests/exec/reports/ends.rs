//! What a command leaves running: asked to end, given two seconds, then killed.

use super::AVFS;
use crate::exec;
use avfs_testkit::{skip, with_vault};

#[test]
fn what_is_left_running_may_end_in_order() {
    with_vault(AVFS, |home| {
        // It is ready before the command ends.
        let daemon = "setsid sh -c 'trap \"echo asked > /asked; exit\" TERM; echo > /ready; while :; do sleep 0.05; done' \
                      < /dev/null > /dev/null 2>&1 & while [ ! -e /ready ]; do sleep 0.01; done";
        let result = exec(home, &["--shell", daemon]);
        assert_eq!(result["exit_code"], 0, "{result:#}");
        assert!(result["leftovers"].as_u64() >= Some(1), "{result:#}");
        assert_eq!(home.ok(&["cat", "/asked"]), "asked\n");
        // What is stopped is woken first.
        let stopped = "sh -c 'trap \"echo woken > /woken; exit\" TERM; echo > /up; kill -STOP $$; while :; do sleep 0.05; done' & \
                       while ! grep -qs 'State:.T' /proc/$!/status; do sleep 0.01; done";
        let result = exec(home, &["--shell", stopped]);
        assert_eq!(
            (&result["exit_code"], &result["leftovers"]),
            (&0.into(), &1.into())
        );
        assert_eq!(home.ok(&["cat", "/woken"]), "woken\n");
        let told = home.avfs(&["exec", "--shell", "sleep 1000 & exit 0"]);
        let told = String::from_utf8(told.stderr).expect("a text");
        assert!(
            told.contains("1 process was still running") && told.contains("`avfs job start`"),
            "{told}"
        );
        assert_eq!(exec(home, &["--", "true"])["leftovers"], 0);
    });
}

#[test]
fn what_does_not_end_is_killed() {
    with_vault(AVFS, |home| {
        let deaf = "sh -c 'trap \"\" TERM; echo > /deaf; while :; do sleep 98.41762 & wait; done' & \
                    while [ ! -e /deaf ]; do sleep 0.01; done; exit 3";
        let result = exec(home, &["--shell", deaf]);
        assert_eq!(result["exit_code"], 3, "{result:#}");
        assert!(result["leftovers"].as_u64() >= Some(1), "{result:#}");
        assert!(avfs_testkit::leftover_processes("98.41762").is_empty());
    });
}

#[test]
fn a_database_that_is_left_shuts_down() {
    with_vault(AVFS, |home| {
        let programs = "PATH=$(ls -d /usr/lib/postgresql/*/bin | tail -n 1):$PATH";
        if exec(home, &["--shell", &format!("{programs}; initdb --version")])["exit_code"] != 0 {
            return skip("no PostgreSQL on this machine");
        }
        let script = format!(
            "{programs}; initdb -D /db -A trust -U agent --no-sync > /dev/null && \
             pg_ctl -D /db -w -l /db/log -o \"-c unix_socket_directories=/run -c shared_buffers=8MB\" start"
        );
        let result = exec(home, &["--shell", &script]);
        assert_eq!(result["exit_code"], 0, "{result:#}");
        assert!(result["leftovers"].as_u64() >= Some(2), "{result:#}");
        let log = home.ok(&["cat", "/db/log"]);
        assert!(log.contains("database system is shut down"), "{log}");
        let state = exec(
            home,
            &["--shell", &format!("{programs}; pg_controldata /db")],
        );
        let state = state["stdout"].as_str().expect("a text");
        assert!(state.contains("shut down\n"), "{state}");
    });
}
