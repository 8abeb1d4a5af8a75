//! Every address of WebSocket, for every credential that must not do, and for pages from elsewhere.

use super::*;
use crate::PATIENCE;
use avfs_api::table::TERMINALS;
use avfs_testkit::wait_for;

/// The addresses: a command in the vault `v`, and a job in it.
fn addresses(job: &Value) -> Vec<String> {
    let address = |route: &str| match route == ATTACH.route {
        true => format!("{route}?job_id={job}"),
        false => route.replace("{vault}", "v"),
    };
    TERMINALS.map(|it| address(it.route)).to_vec()
}

/// The status of an attempt; 101 if it is let in.
fn attempt(server: &Server, address: &str, headers: &[(&str, &str)]) -> u16 {
    server.terminal(address, headers).err().unwrap_or(101)
}

#[test]
fn no_terminal_without_a_good_credential() {
    let home = home();
    home.ok(&["vault", "create", "v"]);
    let all = ["--scope", "read,write,exec,admin"];
    let good = key(&home, "good", &all);
    let revoked = key(&home, "revoked", &all);
    home.ok(&["key", "revoke", "revoked"]);
    let expired = key(&home, "expired", &[&all[..], &["--expires", "1s"]].concat());
    let server = Server::start(home, &[]);
    assert!(wait_for(PATIENCE, || {
        server.get(&expired, "/v1/vaults").status == 401
    }));
    let job = server.start_job(&good, "read x");
    let page = |key: &str| format!("avfs.terminal, avfs.key.{key}");
    for address in addresses(&job) {
        let open = |headers: &[(&str, &str)]| attempt(&server, &address, headers);
        assert_eq!(open(&[("x-api-key", &good)]), 101, "{address}");
        assert_eq!(open(&[("sec-websocket-protocol", &page(&good))]), 101);
        assert_eq!(open(&[]), 401, "{address}");
        for wrong in ["avfs_000000000000_00", &revoked, &expired] {
            assert_eq!(open(&[("x-api-key", wrong)]), 401, "{address}");
            let shown = ("sec-websocket-protocol", &*page(wrong));
            assert_eq!(open(&[shown]), 401, "{address}");
        }
        let two = [
            ("x-api-key", &*good),
            ("sec-websocket-protocol", &page(&good)),
        ];
        assert_eq!(open(&two), 400, "{address}");
    }
}

#[test]
fn no_terminal_without_its_scopes_or_in_another_vault() {
    let home = home();
    for vault in ["v", "mine-1"] {
        home.ok(&["vault", "create", vault]);
    }
    let all = ["--scope", "read,write,exec,admin"];
    let good = key(&home, "good", &all);
    let other = key(&home, "other", &[&all[..], &["--vault", "mine-*"]].concat());
    let low = ["read", "write", "exec", "admin"].map(|scope| {
        let made = key(&home, scope, &["--scope", scope]);
        (scope, made)
    });
    let agent = key(&home, "agent", &["--scope", "read,exec"]);
    let server = Server::start(home, &[]);
    let job = server.start_job(&good, "read x");
    for (terminal, address) in TERMINALS.iter().zip(addresses(&job)) {
        let open = |key: &str| attempt(&server, &address, &[("x-api-key", key)]);
        assert_eq!(open(&good), 101, "{address}");
        assert_eq!(open(&other), 403, "{address}");
        for (scope, key) in &low {
            let may = terminal.scopes() == ["run"] && *scope == "exec";
            let expected = if may { 101 } else { 403 };
            assert_eq!(open(key), expected, "{address} {scope}");
        }
    }
    // Another's job is not an agent's own.
    let address = format!("{}?job_id={job}", ATTACH.route);
    assert_eq!(attempt(&server, &address, &[("x-api-key", &agent)]), 403);
}

#[test]
fn no_terminal_for_other_hosts_pages_and_requests() {
    let (server, good) = served("read,exec");
    let job = server.start_job(&good, "read x");
    let own = format!("http://{}", server.address);
    for address in addresses(&job) {
        let open = |more| attempt(&server, &address, &[("x-api-key", &good), more]);
        for foreign in [
            ("origin", "http://evil.example"),
            ("origin", "null"),
            ("host", "evil.example"),
        ] {
            assert_eq!(open(foreign), 403, "{address} {foreign:?}");
        }
        assert_eq!(open(("origin", &own)), 101, "{address}");
        // Without an upgrade there is nothing to talk to.
        let plain = server.get(&good, &address);
        assert_eq!(plain.status, 426, "{plain:?}");
        assert_eq!(plain.json()["kind"], "Invalid", "{plain:?}");
        let posted = server.ask(&bearer(&good), "POST", &address, "{}");
        assert_eq!(posted.status, 405, "{posted:?}");
    }
    for (address, status) in [
        ("/v1/vaults/none/exec/terminal", 404),
        ("/v1/vaults/a%2fb/exec/terminal", 400),
        ("/v1/vaults/v/exec/terminal?argv=sh", 400),
        ("/v1/jobs/terminal", 400),
        ("/v1/jobs/terminal?job_id=x", 400),
        ("/v1/jobs/terminal?job_id=1&stream=stdout", 400),
        ("/v1/jobs/terminal?job_id=999999", 404),
    ] {
        let refused = attempt(&server, address, &[("x-api-key", &good)]);
        assert_eq!(refused, status, "{address}");
    }
    let plain = json!({ "exec": { "argv": ["sleep", "1000"] } }).to_string();
    let plain = server.ask(&bearer(&good), "POST", "/v1/vaults/v/jobs", &plain);
    let address = format!("{}?job_id={}", ATTACH.route, plain.json()["job_id"]);
    let refused = attempt(&server, &address, &[("x-api-key", &good)]);
    assert_eq!(refused, 400, "it has no terminal");
}

#[test]
fn a_revoked_key_leaves_its_terminals() {
    let (server, good) = served("read,exec");
    let job = server.start_job(&good, "echo begin; read x; echo end");
    let mut attached = server.attach(&good, &job, 0);
    attached.wait_for("begin");
    let mut running = server.run(&good, &json!({ "shell": "echo begin; read x" }));
    running.wait_for("begin");
    server.home.ok(&["key", "revoke", "good"]);
    for mut client in [attached, running] {
        assert_eq!(client.very_last(), Value::Null, "nothing more is told");
    }
    let status = || server.home.json(&["daemon", "status"]);
    assert!(
        wait_for(PATIENCE, || status()["running_execs"] == 1),
        "the job goes on: {}",
        status()
    );
}
