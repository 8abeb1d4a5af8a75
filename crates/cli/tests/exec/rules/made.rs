//! What agents may do to the whole of a vault: every operation of the table, asked for by the one who made the vault and by
//! somebody else.

use super::class::{agent_json, agent_ok, ask};
use super::{home, text};
use avfs_api::table::{Method, OPERATIONS, Row, Who};
use avfs_testkit::Home;
use serde_json::json;
/// What `agent:maker` made, for others to lay hands on.
struct Made {
    vault: String,
    exec: String,
    job: String,
    approval: String,
}

impl Made {
    fn new(home: &Home, number: usize, operation: &str) -> Made {
        let vault = format!("t{number}");
        let maker =
            |words: &[&str]| agent_json(home, "maker", &[&["--vault", &vault], words].concat());
        agent_ok(home, "maker", &["vault", "create", &vault]);
        maker(&["checkpoint", "save", "c"]);
        let mut made = Made {
            exec: String::new(),
            job: String::new(),
            approval: String::new(),
            vault: vault.clone(),
        };
        if operation == "output" {
            let ran = maker(&["exec", "--output-limit", "1", "--", "echo", "secret"]);
            made.exec = text(&ran["result"], "exec").to_owned();
        } else if operation.starts_with("job_") {
            let job = maker(&[
                "job", "start", "--tty", "--size", "80x24", "--", "sleep", "1000",
            ]);
            made.job = job["job_id"].to_string();
        } else if operation.starts_with("approval") {
            let asked = maker(&["exec", "--", "git", "push", "--force"]);
            made.approval = text(&asked["result"], "approval_id").to_owned();
        } else if operation == "vault_undelete" {
            agent_ok(home, "maker", &["vault", "delete", &vault]);
        }
        made
    }

    /// A request of that operation for what was made: address and body.
    fn request(&self, line: &Row) -> (String, String) {
        let Made {
            vault,
            exec,
            job,
            approval,
        } = self;
        let job: u64 = job.parse().unwrap_or(0);
        let body = match line.name {
            "vault_rename" => json!({ "name": format!("{vault}-renamed") }),
            "vault_undelete" => json!({ "name": vault }),
            "checkpoint_delete" => json!({ "name": "c" }),
            "job_kill" => json!({ "job_id": job, "signal": 10 }),
            "job_resize" => json!({ "job_id": job, "rows": 5, "columns": 5 }),
            _ => json!({}),
        };
        let query = match line.name {
            "output" => format!("?exec={exec}&stream=stdout"),
            "approval_show" => format!("?id={approval}"),
            "job_wait" => format!("?job_id={job}&timeout_ms=1"),
            "job_poll" | "job_logs" => format!("?job_id={job}"),
            "job_stdin" => format!("?job_id={job}&eof=false"),
            _ => String::new(),
        };
        let body = match line.method {
            Method::Get | Method::Put | Method::Delete => String::new(),
            Method::Post => body.to_string(),
        };
        (line.route.replace("{vault}", vault) + &query, body)
    }
}

/// Every operation, for the owner, for who made what it is about, and for another agent.
#[test]
fn every_operation_stops_at_what_somebody_else_made() {
    let home = home();
    home.ok(&["vault", "create", "owners"]);
    let socket = home.socket();
    // They need a command that is under way, and have a test of their own.
    let of_calls = ["exec_input", "exec_cancel", "exec_resize"];
    let lines = OPERATIONS
        .iter()
        .filter(|line| !of_calls.contains(&line.name));
    for (number, line) in lines.enumerate() {
        let who_may = line.who;
        let callers = [("agent", "other"), ("agent", "maker"), ("owner", "me")];
        for (who, (class, name)) in callers.into_iter().enumerate() {
            if line.name == "daemon_stop" && class == "owner" {
                continue;
            }
            let allowed = match who_may {
                Who::Agent => true,
                Who::Maker => name != "other",
                Who::Owner => class == "owner",
            };
            let made = match who_may {
                Who::Maker => Made::new(&home, number * 10 + who, line.name),
                _ => Made {
                    vault: "owners".into(),
                    exec: String::new(),
                    job: String::new(),
                    approval: String::new(),
                },
            };
            let (route, body) = made.request(line);
            let method = format!("{:?}", line.method).to_uppercase();
            let (status, answer) = ask(&socket, class, name, &method, &route, &body);
            let place = format!("{} by {class}:{name}: {status} {answer}", line.name);
            assert_eq!(status == 403, !allowed, "{place}");
            if allowed && who_may == Who::Maker {
                assert_eq!(status, 200, "{place}");
            }
        }
    }
}
