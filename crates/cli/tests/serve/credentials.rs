//! Every row of the table, for every credential that must not do.

use super::{Server, bearer, home, key};
use avfs_api::table::{Class, Method, Row, Scope, VaultIn, smallest_requests};
use avfs_testkit::{Home, Person, wait_for};
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::time::Duration;

/// A request of a row, as method, address and body.
fn request(row: &Row, fields: &Value, vault: &str) -> (&'static str, String, String) {
    let address = row.route.replace("{vault}", vault);
    let method = row.method.as_str();
    match row.method {
        Method::Post => (method, address, fields.to_string()),
        Method::Get | Method::Put | Method::Delete => {
            let pairs = fields.as_object().expect("an object").iter();
            let pairs = pairs.map(|(name, value)| {
                let value = value.as_str().map_or(value.to_string(), str::to_owned);
                format!("{name}={value}")
            });
            let query = pairs.collect::<Vec<_>>().join("&");
            (method, format!("{address}?{query}"), String::new())
        }
    }
}

#[test]
fn every_row_refuses_whoever_shows_no_good_key() {
    let home = home();
    home.ok(&["vault", "create", "v"]);
    let all = ["--scope", "read,write,exec,admin"];
    let good = key(&home, "good", &all);
    let revoked = key(&home, "revoked", &all);
    home.ok(&["key", "revoke", "revoked"]);
    let rotated = key(&home, "rotated", &all);
    home.ok(&["key", "rotate", "rotated"]);
    let mut short = all.to_vec();
    short.extend(["--expires", "1s"]);
    let expired = key(&home, "expired", &short);
    let server = Server::start(home, &[]);
    assert_eq!(server.get(&good, "/v1/vaults").status, 200);
    assert!(wait_for(Duration::from_secs(60), || {
        server.get(&expired, "/v1/vaults").status == 401
    }));
    let (front, last) = good.split_at(good.len() - 1);
    let altered = format!("{front}{}", if last == "0" { "1" } else { "0" });
    let two = format!("{}\r\nx-api-key: {good}", bearer(&good));
    let shown = [
        ("none", String::new(), 401),
        ("wrong", bearer("avfs_000000000000_00"), 401),
        ("altered", bearer(&altered), 401),
        ("in the other header", format!("x-api-key: {altered}"), 401),
        ("revoked", bearer(&revoked), 401),
        ("rotated", bearer(&rotated), 401),
        ("expired", bearer(&expired), 401),
        (
            "of another scheme",
            format!("authorization: Basic {good}"),
            401,
        ),
        ("without a scheme", format!("authorization: {good}"), 401),
        ("two", two, 400),
    ];
    for (row, smallest) in smallest_requests() {
        let (method, address, body) = request(&row, &smallest, "v");
        for (what, headers, status) in &shown {
            let answer = server.ask(headers, method, &address, &body);
            let is_fast = answer.status == 429 && answer.has("retry-after: ");
            assert!(
                answer.status == *status || is_fast,
                "{} {what}: {answer:?}",
                row.name
            );
            let challenged = answer.has("www-authenticate: bearer");
            assert_eq!(challenged, answer.status == 401, "{}: {answer:?}", row.name);
        }
    }
    // What is not there is not told either.
    assert!(matches!(
        server.ask("", "GET", "/v1/nothing", "").status,
        401 | 429
    ));
    assert_eq!(server.get(&good, "/v1/nothing").status, 404);
}

/// A key that approves, which only somebody who may approve can make.
fn approver(home: &Home) -> String {
    let refused = home.avfs(&["key", "create", "approver", "--scope", "approve"]);
    assert!(!refused.status.success(), "without a terminal");
    approvers_key(home, &["approver", "--scope", "approve,read"])
}

/// A key that an owner at a terminal makes, who sets a passphrase first.
pub(super) fn approvers_key(home: &Home, words: &[&str]) -> String {
    let mut owner = Person::start(home.command(&["approval", "setup"]));
    owner.answer("New passphrase: ", PASSPHRASE);
    owner.answer("Once more: ", PASSPHRASE);
    assert!(owner.end().0.success());
    let words = [&["key", "create"], words].concat();
    let mut owner = Person::start(home.command(&words));
    owner.answer("Passphrase for approvals: ", PASSPHRASE);
    let (status, said) = owner.end();
    assert!(status.success(), "{said}");
    let key = said
        .split_ascii_whitespace()
        .find(|it| it.starts_with("avfs_"));
    key.expect("a key").to_owned()
}

const PASSPHRASE: &str = "correct horse battery";

/// A key with `approve` approves over the network, and nobody else's does.
#[test]
fn an_approvers_key_approves_and_does_nothing_else() {
    let home = home();
    home.ok(&["vault", "create", "v"]);
    let approver = approver(&home);
    let runner = key(&home, "runner", &["--scope", "read,write,exec"]);
    let admin = key(&home, "admin", &["--scope", "read,admin"]);
    let server = Server::start(home, &[]);
    let command = json!({ "argv": ["git", "push", "--force"] }).to_string();
    let exec = |key: &str, body: &str| server.ask(&bearer(key), "POST", "/v1/vaults/v/exec", body);
    let asked = exec(&runner, &command).json();
    let id = asked["result"]["approval_id"].clone();
    assert!(id.is_string(), "{asked:#}");
    let show = json!({ "id": id }).to_string();
    let show = |key: &str| server.ask(&bearer(key), "POST", "/v1/approvals/show", &show);
    let shown = show(&approver).json();
    let approve = json!({ "id": id, "shown": shown["shown"] }).to_string();
    let approve = |key: &str| server.ask(&bearer(key), "POST", "/v1/approvals/approve", &approve);
    for other in [&runner, &admin] {
        assert_eq!(approve(other).status, 403, "{other}");
    }
    assert_eq!(exec(&approver, &command).status, 403, "it runs nothing");
    let approved = approve(&approver);
    assert_eq!(approved.status, 200, "{approved:?}");
    let entries = server
        .home
        .json(&["audit", "--operation", "approval.approved"]);
    assert_eq!(entries["entries"][0]["by"], "owner:approver", "{entries:#}");
}

#[test]
fn every_row_refuses_a_key_without_its_scope() {
    let home = home();
    home.ok(&["vault", "create", "v"]);
    let keys = Scope::ALL.map(|scope| match scope {
        Scope::Approve => (scope, approver(&home)),
        _ => {
            let key = key(&home, scope.as_str(), &["--scope", scope.as_str()]);
            (scope, key)
        }
    });
    let server = Server::start(home, &[]);
    for (row, _) in smallest_requests() {
        for (scope, key) in &keys {
            let also_reads = *scope == Scope::Approve && row.scope == Scope::Read;
            if *scope == row.scope || also_reads {
                continue;
            }
            let (method, address, body) = request(&row, &json!({}), "v");
            let answer = server.ask(&bearer(key), method, &address, &body);
            assert_eq!(
                answer.status,
                403,
                "{} with {}: {answer:?}",
                row.name,
                scope.as_str()
            );
            assert_eq!(answer.json()["kind"], "Denied", "{}: {answer:?}", row.name);
        }
    }
}

/// A key for all scopes of agents is no owner's, whatever its request says.
#[test]
fn no_key_of_an_agent_becomes_the_owner() {
    let home = home();
    home.ok(&["vault", "create", "v"]);
    let agent = key(&home, "agent", &["--scope", "read,write,exec"]);
    let server = Server::start(home, &[]);
    let rows = smallest_requests();
    for (row, smallest) in rows.iter().filter(|it| it.0.who.class() == Class::Owner) {
        let (method, address, body) = request(row, smallest, "v");
        for more in [
            "",
            "\r\navfs-class: owner",
            "\r\navfs-scopes: read,write,run,approve,admin",
            "\r\navfs-vaults: *",
        ] {
            let headers = format!("{}{more}", bearer(&agent));
            let answer = server.ask(&headers, method, &address, &body);
            assert_eq!(answer.status, 403, "{}{more}: {answer:?}", row.name);
        }
    }
    // Nor does it become another agent.
    let other = format!("{}\r\navfs-name: other", bearer(&agent));
    assert_eq!(server.ask(&other, "GET", "/v1/vaults", "").status, 403);
    let made = json!({ "name": "made" }).to_string();
    let made = server.ask(&bearer(&agent), "POST", "/v1/vaults", &made);
    assert_eq!(made.status, 200, "{made:?}");
    let entry = &server.home.json(&["audit", "-n", "1"])["entries"][0];
    assert_eq!(entry["by"], "agent:agent", "{entry:#}");
}

#[test]
fn every_row_refuses_a_key_for_other_vaults() {
    let home = home();
    for vault in ["mine-1", "other"] {
        home.ok(&["vault", "create", vault]);
    }
    let other = |words: &[&str]| home.json(&[&["--vault", "other"], words].concat());
    let job = other(&["job", "start", "--stdin", "--", "cat"]);
    let ran = other(&["exec", "--output-limit", "1", "--", "echo", "words"]);
    let asked = other(&["exec", "--", "git", "push", "--force"]);
    let all = ["--scope", "read,write,exec,admin", "--vault", "mine-*"];
    let limited = key(&home, "limited", &all);
    home.ok(&["job", "kill", &job["job_id"].to_string()]);
    home.ok(&["daemon", "stop", "--force"]);
    let server = Server::start(home, &[]);
    for (row, smallest) in smallest_requests() {
        let mut fields = smallest.clone();
        match row.vault {
            VaultIn::Field if ["vault_create", "vault_undelete"].contains(&row.name) => {
                fields["name"] = json!("other");
            }
            VaultIn::Field | VaultIn::Mount => fields["vault"] = json!("other"),
            VaultIn::Job => fields["job_id"] = job["job_id"].clone(),
            VaultIn::Exec => fields["exec"] = ran["result"]["exec"].clone(),
            VaultIn::Approval => fields["id"] = asked["result"]["approval_id"].clone(),
            _ => {}
        }
        let (method, address, body) = request(&row, &fields, "other");
        let answer = server.ask(&bearer(&limited), method, &address, &body);
        match row.vault {
            VaultIn::Listed => {
                assert_eq!(answer.status, 200, "{}: {answer:?}", row.name);
                assert!(!answer.body.contains("other"), "{}: {answer:?}", row.name);
            }
            VaultIn::Call => assert_ne!(answer.status, 200, "{}: {answer:?}", row.name),
            VaultIn::Nothing => {}
            _ if row.scope == Scope::Approve => assert_eq!(answer.status, 403, "{}", row.name),
            _ => {
                let says = answer.body.contains("limited to: mine-*");
                assert!(answer.status == 403 && says, "{}: {answer:?}", row.name);
            }
        }
    }
    // Names that a vault is to get count as well.
    for (address, fields) in [
        ("/v1/vaults", json!({ "name": "theirs" })),
        ("/v1/vaults/mine-1/fork", json!({ "name": "theirs" })),
        ("/v1/vaults/mine-1/rename", json!({ "name": "theirs" })),
    ] {
        let answer = server.ask(&bearer(&limited), "POST", address, &fields.to_string());
        assert_eq!(answer.status, 403, "{address}: {answer:?}");
    }
    let fork = json!({ "name": "mine-2" }).to_string();
    let answer = server.ask(&bearer(&limited), "POST", "/v1/vaults/mine-1/fork", &fork);
    assert_eq!(answer.status, 200, "{answer:?}");
}

#[test]
fn nobody_gives_away_what_it_does_not_have() {
    let home = home();
    let admin = key(&home, "admin", &["--scope", "read,admin"]);
    let limited = key(&home, "limited", &["--scope", "admin", "--vault", "a"]);
    key(&home, "strong", &["--scope", "write,admin"]);
    let server = Server::start(home, &[]);
    let create = |key: &str, scopes: &[&str]| {
        let fields = json!({ "name": "new", "scopes": scopes }).to_string();
        server.ask(&bearer(key), "POST", "/v1/keys", &fields).status
    };
    assert_eq!(create(&admin, &["read", "write"]), 403);
    assert_eq!(create(&limited, &["admin"]), 403);
    let rotate = server.ask(
        &bearer(&admin),
        "POST",
        "/v1/keys/rotate",
        r#"{"name":"strong"}"#,
    );
    assert_eq!(rotate.status, 403, "{rotate:?}");
    assert_eq!(create(&admin, &["read"]), 200);
    let listed = server.get(&admin, "/v1/keys");
    assert_eq!(listed.status, 200);
    assert!(
        !listed.body.contains("hash") && !listed.body.contains("avfs_"),
        "{listed:?}"
    );
}

/// What goes on in the name of a key ends with it.
#[test]
fn revoking_a_key_ends_what_is_connected_with_it() {
    let home = home();
    home.ok(&["vault", "create", "v"]);
    let runner = key(&home, "runner", &["--scope", "exec"]);
    let server = Server::start(home, &[]);
    let mut stream = server.connect();
    let body = json!({ "argv": ["sleep", "86.4321"] }).to_string();
    let head = format!(
        "POST /v1/vaults/v/exec HTTP/1.1\r\nhost: {}\r\n{}\r\naccept: text/event-stream\r\ncontent-length: {}\r\n\r\n{body}",
        server.address,
        bearer(&runner),
        body.len()
    );
    stream.write_all(head.as_bytes()).expect("it listens");
    let mut seen = Vec::new();
    while !String::from_utf8_lossy(&seen).contains("event: started") {
        let mut piece = [0; 4096];
        let read = stream.read(&mut piece).expect("it answers");
        assert_ne!(read, 0, "{}", String::from_utf8_lossy(&seen));
        seen.extend_from_slice(&piece[..read]);
    }
    server.home.ok(&["key", "revoke", "runner"]);
    let mut rest = Vec::new();
    // A connection that is cut and one that is closed are both over.
    let _ = stream.read_to_end(&mut rest);
    assert!(!String::from_utf8_lossy(&rest).contains("event: result"));
    assert!(wait_for(Duration::from_secs(60), || {
        server.home.json(&["daemon", "status"])["running_execs"] == 0
    }));
}

/// At the socket a credential only takes rights away.
#[test]
fn a_key_shown_at_the_socket_counts_there_too() {
    use std::os::unix::net::UnixStream;
    let home = home();
    home.ok(&["vault", "create", "v"]);
    let reader = key(&home, "reader", &["--scope", "read"]);
    let ask = |headers: &str, method: &str, address: &str| {
        let mut stream = UnixStream::connect(home.socket()).expect("it listens");
        let request = format!(
            "{method} {address} HTTP/1.1\r\nhost: x\r\n{headers}\r\nconnection: close\r\ncontent-length: 2\r\n\r\n{{}}"
        );
        stream.write_all(request.as_bytes()).expect("it listens");
        let mut answer = String::new();
        let _ = stream.read_to_string(&mut answer);
        answer.split(' ').nth(1).unwrap_or_default().to_owned()
    };
    assert_eq!(ask("a: b", "GET", "/v1/keys"), "200", "the owner");
    assert_eq!(ask(&bearer(&reader), "GET", "/v1/vaults"), "200");
    assert_eq!(ask(&bearer(&reader), "GET", "/v1/keys"), "403");
    assert_eq!(ask(&bearer("avfs_nothing"), "GET", "/v1/vaults"), "401");
}
