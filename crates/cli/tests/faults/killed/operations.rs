//! Kills in the middle of each operation, at moments that a seed chooses.

use std::process::{Child, Output, Stdio};
use std::time::Duration;

use avfs_testkit::{Dice, Home, SOON, number, process_ends, skip};
use serde_json::{Value, json};

use super::{HELPERS, Helper, check_works};
use crate::AVFS;

/// What is under way when something is killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Work {
    Nothing,
    /// The first command of a view: the sandbox is being opened.
    ExecStart,
    Exec,
    /// A command that leaves much to be taken in.
    Commit,
    Checkpoint,
    Restore,
    Fork,
    Mount,
    Job,
    Diff,
    /// A file verb through a view that is in use.
    Write,
    Exchange,
    /// A vault is deleted, and its view closed.
    Close,
}

const WORKS: [Work; 13] = [
    Work::Nothing,
    Work::ExecStart,
    Work::Exec,
    Work::Commit,
    Work::Checkpoint,
    Work::Restore,
    Work::Fork,
    Work::Mount,
    Work::Job,
    Work::Diff,
    Work::Write,
    Work::Exchange,
    Work::Close,
];

/// A part for every run.
const ROUNDS: u64 = 26;

const LOOP: &str = "i=0; while [ $i -lt 60 ]; do i=$((i+1)); mkdir -p /d$i; echo $i > /d$i/f; done; \
                    mv /d1 /moved; rm -rf /d*  /moved; echo done";
const MANY: &str = "mkdir -p /many && cd /many && seq 400 | xargs -I@ touch @ && rm -rf /many/1*";
const EXCHANGE: &str = "import ctypes, os; c = ctypes.CDLL(None, use_errno=True); \
                        done = c.renameat2(-100, b'/a', -100, b'/b', 2); print(0 if done == 0 else ctypes.get_errno())";

impl Work {
    /// Whether the answer tells of a command.
    fn has_envelope(self) -> bool {
        use Work::*;
        matches!(self, ExecStart | Exec | Commit | Exchange)
    }

    /// What has to be there before; gives the vault that it is done in.
    fn prepare(self, home: &Home, round: u64) -> String {
        let own = format!("own-{round}");
        match self {
            Work::Nothing | Work::Exec | Work::Commit | Work::Job | Work::Write | Work::Mount => {
                return "v".into();
            }
            Work::ExecStart | Work::Exchange => {
                home.ok(&["vault", "fork", "stored", &own]);
            }
            Work::Checkpoint | Work::Restore | Work::Fork | Work::Diff | Work::Close => {
                home.ok(&["vault", "fork", "stored", &own]);
                home.ok(&["--vault", &own, "checkpoint", "save", "c"]);
                home.ok(&["--vault", &own, "exec", "--shell", "echo new > /new"]);
            }
        }
        own
    }

    fn start(self, home: &Home, vault: &str, round: u64) -> Option<Child> {
        let (copy, dir) = (format!("copy-{round}"), home.path().join("mounted"));
        let dir = dir.to_str().unwrap();
        let words: &[&str] = match self {
            Work::Nothing => return None,
            Work::ExecStart => &["exec", "--", "true"],
            Work::Exec => &["exec", "--shell", LOOP],
            Work::Commit => &["exec", "--shell", MANY],
            Work::Checkpoint => &["checkpoint", "save", "now"],
            Work::Restore => &["checkpoint", "restore", "c"],
            Work::Fork => &["vault", "fork", vault, &copy],
            Work::Mount => &["mount", dir],
            Work::Job => &["job", "start", "--shell", LOOP],
            Work::Diff => &["diff", "c"],
            Work::Write => {
                home.ok(&["job", "start", "--", "sleep", "0.3"]);
                &["write", "/beside", "a command"]
            }
            Work::Exchange => &["exec", "--", "python3", "-c", EXCHANGE],
            Work::Close => &["vault", "delete", vault, "--force"],
        };
        let words = [&["--json", "--vault", vault], words].concat();
        let mut command = home.command(&words);
        let command = command.stdout(Stdio::piped()).stderr(Stdio::piped());
        Some(command.spawn().unwrap())
    }

    /// Whether what was answered, after a kill of `helper`, is an answer.
    fn check(
        self,
        home: &Home,
        vault: &str,
        helper: Helper,
        output: &Output,
    ) -> Result<(), String> {
        let said: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
        let result = &said["result"];
        let is_right = match result["status"].as_str() {
            Some("exited") if self == Work::Exchange => return check_exchange(home, vault, &said),
            Some("exited") => result["exit_code"] == 0,
            // A command that may have begun is not run again.
            Some("interrupted") => !helper.is_replaced_unnoticed(),
            Some(_) => false,
            None => !self.has_envelope() && output.status.success(),
        };
        match is_right && result["uncommitted"].is_null() {
            true => Ok(()),
            false => Err(format!("{output:?}")),
        }
    }

    fn clean_up(self, home: &Home, vault: &str, round: u64) {
        match self {
            Work::Mount => {
                // Only where it still stands.
                let _ = home.avfs(&["unmount", "--vault", "v"]);
            }
            Work::Job | Work::Write => {
                for job in home.json(&["job", "list"])["jobs"].as_array().unwrap() {
                    let _ = home.avfs(&["job", "wait", &job["job_id"].to_string()]);
                }
            }
            Work::Fork => {
                home.ok(&["vault", "delete", &format!("copy-{round}"), "--force"]);
            }
            _ => {}
        }
        if vault != "v" && self != Work::Close {
            home.ok(&["vault", "delete", vault, "--force"]);
        }
    }
}

/// The answer of an exchange is what has become of the two names.
fn check_exchange(home: &Home, vault: &str, said: &Value) -> Result<(), String> {
    let seen = home.json(&[
        "--vault",
        vault,
        "exec",
        "--shell",
        "cat /a/* | sort -u; cat /b/* | sort -u",
    ]);
    let seen = seen["result"]["stdout"]
        .as_str()
        .unwrap_or_default()
        .to_owned();
    let expected = match said["result"]["stdout"].as_str() {
        Some("0\n") => "b\na\n",
        _ => "a\nb\n",
    };
    match seen == expected {
        true => Ok(()),
        false => Err(format!("{seen:?} in place of {expected:?}: {said:#}")),
    }
}

/// What a command changes is reported, and nothing else.
fn check_report(home: &Home, round: u64, why: &str) {
    let path = format!("/exact-{round}");
    let done = home.json(&["exec", "--shell", &format!("echo x > {path}")]);
    assert_eq!(
        done["result"]["changed_files"],
        json!([path]),
        "{why}: {done:#}"
    );
    home.ok(&["rm", &path]);
}

fn round(home: &Home, dice: &mut Dice, (round, helper, work): (u64, Helper, Work)) {
    let kept = format!("round {round}\n");
    home.ok(&["exec", "--shell", &format!("echo 'round {round}' > /kept")]);
    let vault = work.prepare(home, round);
    let child = work.start(home, &vault, round);
    std::thread::sleep(Duration::from_millis(dice.roll(200)));
    let killed = helper.kill(home);
    let why = format!(
        "round {round}: {helper:?} ({killed:?}) amid {work:?}, as {}",
        home.user()
    );
    if let Some(child) = child {
        let output = child.wait_with_output().unwrap();
        let checked = work.check(home, &vault, helper, &output);
        assert_eq!(checked, Ok(()), "{why}");
    }
    // A command that begins while it dies is a command in whose middle it died.
    assert!(killed.is_none_or(|pid| process_ends(pid, SOON)), "{why}");
    work.clean_up(home, &vault, round);
    check_works(home, dice, &kept, &why);
    check_report(home, round, &why);
    if round % 8 == 7 {
        let checked = home.json(&["fsck"]);
        assert_eq!(checked["clean"], true, "{why}: {checked:#}");
    }
}

fn can_mount(home: &Home) -> bool {
    let dir = home.path().join("mounted");
    let mounted = home.avfs(&["mount", dir.to_str().unwrap()]);
    let unmounted = home.avfs(&["unmount", dir.to_str().unwrap()]);
    mounted.status.success() && unmounted.status.success()
}

#[test]
fn the_next_command_works_whoever_was_killed() {
    let rounds = number("AVFS_KILL_ROUNDS", ROUNDS);
    let mut dice = Dice::new(number("AVFS_KILL_SEED", 20_261_116));
    for home in Home::of_every_user(AVFS) {
        home.ok(&["vault", "create", "stored"]);
        home.ok(&[
            "exec",
            "--shell",
            "for d in a b; do mkdir /$d; for f in $(seq 80); do echo $d > /$d/$f; done; done",
        ]);
        home.ok(&["vault", "create", "v"]);
        home.ok(&["vault", "use", "v"]);
        let mounts = can_mount(&home);
        if !mounts {
            skip("this user can mount nothing");
        }
        let daemon = home.daemon_pid();
        for number in 0..rounds {
            let helper = HELPERS[number as usize % HELPERS.len()];
            // Each helper meets each kind of work: their numbers have no factor in common.
            let work = match WORKS[number as usize % WORKS.len()] {
                Work::Mount if !mounts => Work::Diff,
                // There is one only while a command runs.
                Work::Nothing if helper == Helper::Supervisor => Work::Exec,
                work => work,
            };
            round(&home, &mut dice, (number, helper, work));
        }
        assert_eq!(home.daemon_pid(), daemon, "the daemon itself lives on");
        assert_eq!(home.json(&["audit", "verify"])["valid"], true);
        assert_eq!(home.json(&["fsck"])["clean"], true);
    }
}
