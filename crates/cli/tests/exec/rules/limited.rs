//! Callers that have given rights up: every operation, by its row, for scopes and for vaults.

use super::{home, text};
use avfs_api::table::{Method, OPERATIONS, Row, Scope, VaultIn, smallest_requests};
use avfs_testkit::{Home, status_and_body};
use serde_json::{Value, json};
use std::path::Path;

/// Sends a request with a header more; gives the status and the body.
fn ask(socket: &Path, header: &str, method: &str, address: &str, body: &str) -> (u16, String) {
    status_and_body(&avfs_testkit::ask(
        socket,
        &[header],
        (method, address),
        body.as_bytes(),
    ))
}

fn ask_row(socket: &Path, header: &str, row: &Row, vault: &str, fields: &Value) -> (u16, String) {
    let mut address = row.route.replace("{vault}", vault);
    let mut body = String::new();
    match row.method {
        Method::Post => body = fields.to_string(),
        Method::Get | Method::Put | Method::Delete => {
            let pairs = fields
                .as_object()
                .expect("an object")
                .iter()
                .map(|(name, value)| {
                    let value = value.as_str().map_or(value.to_string(), str::to_owned);
                    format!("{name}={value}")
                });
            address = format!("{address}?{}", pairs.collect::<Vec<_>>().join("&"));
        }
    }
    ask(socket, header, row.method.as_str(), &address, &body)
}

fn is_limited(answer: &(u16, String)) -> bool {
    answer.0 == 403 && answer.1.contains("this caller is limited to")
}

#[test]
fn a_scope_that_was_given_up_is_gone_for_every_operation() {
    let home = home();
    home.ok(&["vault", "create", "v"]);
    let socket = home.socket();
    for row in OPERATIONS {
        let others = Scope::ALL.into_iter().filter(|scope| *scope != row.scope);
        let others: Vec<&str> = others.map(Scope::as_str).collect();
        let header = format!("avfs-scopes: {}", others.join(","));
        let answer = ask_row(&socket, &header, row, "v", &json!({}));
        let says = answer.1.contains("needs the scope");
        assert!(answer.0 == 403 && says, "{}: {answer:?}", row.name);
        if row.name != "daemon_stop" {
            let header = format!("avfs-scopes: {}", row.scope.as_str());
            let answer = ask_row(&socket, &header, row, "v", &json!({}));
            assert!(!answer.1.contains("needs the scope"), "{}", row.name);
        }
    }
    let answer = ask(&socket, "avfs-scopes: all", "GET", "/v1/vaults", "");
    assert_eq!(answer.0, 400, "a scope is a word that is known");
}

/// What is in the vault `other`, by every name that it has.
struct Other {
    job: u64,
    exec: String,
    approval: String,
}

impl Other {
    fn new(home: &Home) -> Other {
        let other = |words: &[&str]| home.json(&[&["--vault", "other"], words].concat());
        let job = other(&["job", "start", "--stdin", "--", "cat"]);
        let ran = other(&["exec", "--output-limit", "1", "--", "echo", "words"]);
        let asked = other(&["exec", "--", "git", "push", "--force"]);
        Other {
            job: job["job_id"].as_u64().expect("a number"),
            exec: text(&ran["result"], "exec").to_owned(),
            approval: text(&asked["result"], "approval_id").to_owned(),
        }
    }

    /// The smallest request of a row, about `vault` or about what is in the other one.
    fn request(&self, row: &Row, smallest: &Value, vault: &str) -> Value {
        let mut request = smallest.clone();
        match row.vault {
            VaultIn::Field if names_it(row) => request["name"] = json!(vault),
            VaultIn::Field | VaultIn::Mount => request["vault"] = json!(vault),
            VaultIn::Job => request["job_id"] = json!(self.job),
            VaultIn::Exec => request["exec"] = json!(self.exec),
            VaultIn::Approval => request["id"] = json!(self.approval),
            _ => {}
        }
        if row.name == "vault_fork" {
            request["name"] = json!("a");
        }
        if row.name == "job_wait" {
            request["timeout_ms"] = json!(1);
        }
        request
    }
}

/// Whether the vault's name is what the request is about.
fn names_it(row: &Row) -> bool {
    ["vault_create", "vault_undelete"].contains(&row.name)
}

/// A caller that is limited to `mine` reaches nothing of `other`, whatever it is named by.
#[test]
fn a_limit_to_vaults_holds_for_every_operation() {
    let home = home();
    home.ok(&["vault", "create", "mine"]);
    home.ok(&["vault", "create", "other"]);
    let (socket, other) = (home.socket(), Other::new(&home));
    for (row, smallest) in &smallest_requests() {
        let fields = other.request(row, smallest, "other");
        let answer = ask_row(&socket, "avfs-vaults: mine", row, "other", &fields);
        let name = row.name;
        match row.vault {
            // Of a call that it may not reach it learns only that there is none.
            VaultIn::Call => assert_ne!(answer.0, 200, "{name}: {answer:?}"),
            VaultIn::Listed => {
                assert_eq!(answer.0, 200, "{name}");
                assert!(!answer.1.contains("other"), "{name}: {answer:?}");
            }
            VaultIn::Nothing => assert!(!is_limited(&answer), "{name}: {answer:?}"),
            _ => assert!(is_limited(&answer), "{name}: {answer:?}"),
        }
        // Left out, a field means all vaults.
        if matches!(row.vault, VaultIn::Field) && !names_it(row) {
            let answer = ask_row(&socket, "avfs-vaults: mine", row, "", &json!({}));
            assert!(is_limited(&answer), "{name}: {answer:?}");
        }
        let ends = ["daemon_stop", "job_kill", "vault_delete", "vault_rename"];
        if !ends.contains(&name) && row.vault != VaultIn::Home {
            let answer = ask_row(&socket, "avfs-vaults: a, other", row, "other", &fields);
            assert!(!is_limited(&answer), "{name}: {answer:?}");
        }
    }
}

#[test]
fn a_limit_is_not_got_around_by_what_is_current_or_by_a_second_vault() {
    let home = home();
    home.ok(&["vault", "create", "mine"]);
    home.ok(&["vault", "create", "other"]);
    home.ok(&["vault", "use", "other"]);
    let socket = home.socket();
    let mine = |method, address, body| ask(&socket, "avfs-vaults: mine", method, address, body);
    for (method, address, body) in [
        ("POST", "/v1/vaults/@current/files/ls", r#"{"path":"/"}"#),
        ("GET", "/v1/jobs?vault=@current", ""),
        ("GET", "/v1/approvals?vault=@current", ""),
        ("GET", "/v1/vaults/mine/diff?from=vault:other&to=HEAD", ""),
        ("GET", "/v1/vaults/mine/diff?from=HEAD&to=vault:other", ""),
        ("POST", "/v1/vaults/mine/prune", r#"{"all":true,"keep":1}"#),
        ("POST", "/v1/unmount", r#"{"vault":"other"}"#),
    ] {
        let answer = mine(method, address, body);
        let refused = is_limited(&answer) || matches!(answer.0, 400 | 422);
        assert!(refused, "{method} {address}: {answer:?}");
    }
    home.ok(&["vault", "use", "mine"]);
    let listed = mine("POST", "/v1/vaults/@current/files/ls", r#"{"path":"/"}"#);
    assert_eq!(listed.0, 200, "{listed:?}");
    // Given twice, it means what both mean.
    let twice = "avfs-vaults: mine,other\r\navfs-vaults: mine";
    let answer = ask(&socket, twice, "GET", "/v1/vaults/other", "");
    assert!(is_limited(&answer), "{answer:?}");
    // What belongs to a vault belongs to it under whatever name.
    let job = home.json(&["--vault", "mine", "job", "start", "--", "true"]);
    home.ok(&["job", "wait", &job["job_id"].to_string()]);
    let poll = format!("/v1/jobs/poll?job_id={}", job["job_id"]);
    assert_eq!(mine("GET", &poll, "").0, 200);
    home.ok(&["vault", "rename", "mine", "renamed"]);
    home.ok(&["vault", "create", "mine"]);
    assert!(is_limited(&mine("GET", &poll, "")));
}

#[test]
fn an_id_leads_no_further_than_a_name() {
    let home = home();
    home.ok(&["vault", "create", "mine"]);
    home.ok(&["vault", "create", "other"]);
    let id = |name: &str| text(&home.json(&["vault", "info", name]), "id").to_owned();
    let (mine, other) = (id("mine"), id("other"));
    let unknown = "01a1de36-3b62-77b2-8258-ad8380643645";
    let socket = home.socket();
    let get = |address: &str| ask(&socket, "avfs-vaults: mine", "GET", address, "");
    assert_eq!(get(&format!("/v1/vaults/{mine}")).0, 200);
    assert_eq!(get(&format!("/v1/jobs?vault={mine}")).0, 200);
    for id in [other.as_str(), unknown] {
        for address in [
            format!("/v1/vaults/{id}"),
            format!("/v1/jobs?vault={id}"),
            format!("/v1/journal?vault={id}"),
            format!("/v1/approvals?vault={id}"),
            format!("/v1/vaults/mine/diff?from=vault:{id}&to=HEAD"),
        ] {
            let answer = get(&address);
            assert!(is_limited(&answer), "{address}: {answer:?}");
        }
    }
}
