//! Hosts, origins, methods, and the conditions under which it listens at all.

use super::{Server, bearer, home, key};
use avfs_api::table::smallest_requests;

#[test]
fn other_hosts_and_pages_from_elsewhere_are_refused_on_every_route() {
    let home = home();
    home.ok(&["vault", "create", "v"]);
    let good = key(&home, "good", &["--scope", "read,write,exec,admin"]);
    let server = Server::start(home, &["--host", "avfs.example"]);
    let bearer = bearer(&good);
    for (row, _) in smallest_requests() {
        let address = row.route.replace("{vault}", "v");
        for foreign in [
            "host: evil.example",
            "origin: http://evil.example",
            "origin: null",
        ] {
            let headers = format!("{bearer}\r\n{foreign}");
            let answer = server.ask(&headers, row.method.as_str(), &address, "");
            assert_eq!(answer.status, 403, "{} {foreign}: {answer:?}", row.name);
        }
    }
    // Also where no credential is needed.
    assert_eq!(
        server
            .ask("host: evil.example", "GET", "/healthz", "")
            .status,
        403
    );
    for own in [
        "host: localhost",
        "host: avfs.example:443",
        "host: 127.0.0.1",
    ] {
        let headers = format!("{bearer}\r\n{own}");
        assert_eq!(
            server.ask(&headers, "GET", "/v1/vaults", "").status,
            200,
            "{own}"
        );
    }
}

#[test]
fn nothing_is_shared_with_other_origins() {
    let home = home();
    let good = key(&home, "good", &["--scope", "read"]);
    let server = Server::start(home, &[]);
    let preflight = "origin: http://evil.example\r\naccess-control-request-method: GET";
    for headers in [
        preflight.to_owned(),
        format!("{}\r\n{preflight}", bearer(&good)),
    ] {
        let answer = server.ask(&headers, "OPTIONS", "/v1/vaults", "");
        assert_eq!(answer.status, 403, "{answer:?}");
        assert!(!answer.has("access-control"), "{answer:?}");
    }
    let answer = server.get(&good, "/v1/vaults");
    assert!(!answer.has("access-control"), "{answer:?}");
}

#[test]
fn a_wrong_method_is_told_the_right_ones() {
    let home = home();
    let good = key(&home, "good", &["--scope", "read"]);
    let server = Server::start(home, &[]);
    for method in ["PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"] {
        let answer = server.ask(&bearer(&good), method, "/v1/vaults", "");
        assert_eq!(answer.status, 405, "{method}: {answer:?}");
        assert!(answer.has("allow: post,get,head"), "{method}: {answer:?}");
        assert_eq!(answer.json()["kind"], "Invalid", "{method}");
    }
}

#[test]
fn it_listens_only_where_keys_are_safe_and_known() {
    let home = home();
    let serve = |words: &[&str]| {
        let output = home.avfs(&[&["--json", "serve", "--listen"], words].concat());
        assert!(!output.status.success(), "{words:?}");
        let said: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
        said
    };
    let without = serve(&["127.0.0.1:0"]);
    assert!(
        without["hint"]
            .as_str()
            .is_some_and(|hint| hint.contains("avfs key create")),
        "{without}"
    );
    key(&home, "ci", &["--scope", "read"]);
    for open in ["0.0.0.0:0", "[::]:0", "192.0.2.1:0"] {
        let refused = serve(&[open]);
        assert_eq!(refused["error"], "Denied", "{open}: {refused}");
    }
    home.ok(&["key", "revoke", "ci"]);
    assert_eq!(
        serve(&["127.0.0.1:0"])["error"],
        "Invalid",
        "no key is left"
    );
    // A file of keys that makes no sense lets nobody in, not everybody.
    home.ok(&["daemon", "stop"]);
    std::fs::write(home.avfs_home().join("keys.json"), "{}").expect("own file");
    assert_eq!(serve(&["127.0.0.1:0"])["error"], "Corrupt");
}

/// Who asks over the network cannot start the daemon again, so it stays.
#[test]
fn it_takes_the_place_of_an_idle_daemon_and_stays() {
    let home = home();
    let good = key(&home, "good", &["--scope", "read"]);
    let before = home.daemon_pid().expect("a daemon was started for it");
    let server = Server::start(home, &["--idle-timeout", "1"]);
    assert_ne!(server.home.daemon_pid(), Some(before));
    let status = server.home.json(&["daemon", "status"]);
    assert_eq!(
        status["listening"][0],
        server.address.to_string(),
        "{status:#}"
    );
    assert_eq!(status["idle_timeout_s"], serde_json::Value::Null);
    assert_eq!(server.get(&good, "/v1/vaults").status, 200);
    assert_eq!(server.ask("", "GET", "/healthz", "").status, 200);
    assert_eq!(server.ask("", "GET", "/readyz", "").status, 200);
}

#[test]
fn counters_name_no_vault_and_need_a_key() {
    let home = home();
    home.ok(&["vault", "create", "secret-name"]);
    let good = key(&home, "good", &["--scope", "read,exec"]);
    let server = Server::start(home, &[]);
    assert_eq!(server.ask("", "GET", "/metrics", "").status, 401);
    let body = r#"{"argv":["false"]}"#;
    let ran = server.ask(&bearer(&good), "POST", "/v1/vaults/secret-name/exec", body);
    assert_eq!(ran.status, 200, "{ran:?}");
    for address in ["/metrics", "/v1/metrics"] {
        let answer = server.get(&good, address);
        assert_eq!(answer.status, 200, "{answer:?}");
        assert!(
            answer.has("content-type: text/plain; version=0.0.4"),
            "{answer:?}"
        );
        for line in [
            "avfs_execs_total{status=\"exited\"} 1",
            "avfs_requests_total{operation=\"exec\",status=\"200\"} 1",
            "avfs_unauthenticated_requests_total 1",
            "avfs_running_execs 0",
        ] {
            assert!(answer.body.contains(line), "{line}\n{}", answer.body);
        }
        assert!(!answer.body.contains("secret-name"), "{}", answer.body);
        assert!(!answer.body.contains("good"), "{}", answer.body);
    }
}

/// A job counts when it is over, and vaults are named to whoever asks and may see them.
#[test]
fn jobs_are_counted_and_vaults_named_on_request() {
    let home = home();
    home.ok(&["vault", "create", "seen"]);
    home.ok(&["vault", "create", "unseen"]);
    home.ok(&["vault", "fork", "seen", "copy"]);
    let all = key(&home, "all", &["--scope", "read,exec"]);
    let one = key(&home, "one", &["--scope", "read", "--vault", "seen"]);
    let server = Server::start(home, &[]);
    let exec = r#"{"argv":["true"]}"#;
    let ran = server.ask(&bearer(&all), "POST", "/v1/vaults/unseen/exec", exec);
    assert_eq!(ran.status, 200, "{ran:?}");
    let job = r#"{"exec":{"argv":["true"]}}"#;
    let job = server.ask(&bearer(&all), "POST", "/v1/vaults/seen/jobs", job);
    let id = job.json()["job_id"].to_string();
    server.home.ok(&["job", "wait", &id]);

    let plain = server.get(&all, "/metrics").body;
    for line in [
        "avfs_execs_total{status=\"exited\"} 2",
        "avfs_exec_seconds_count 2",
        "avfs_vaults 3",
        "avfs_forks 1",
    ] {
        assert!(plain.lines().any(|it| it == line), "{line}\n{plain}");
    }
    for gauge in ["avfs_resident_bytes ", "avfs_allocated_bytes "] {
        let value = plain.lines().find_map(|it| it.strip_prefix(gauge));
        let value = value.and_then(|it| it.parse::<u64>().ok());
        assert!(value > Some(1 << 16), "{gauge}\n{plain}");
    }
    assert!(!plain.contains("seen"), "{plain}");

    let of =
        |vault: &str| format!("avfs_vault_execs_total{{vault=\"{vault}\",status=\"exited\"}} 1");
    let named = server.get(&all, "/metrics?vaults=true").body;
    for vault in ["seen", "unseen"] {
        assert!(named.lines().any(|it| it == of(vault)), "{named}");
    }
    let few = server.get(&one, "/metrics?vaults=true").body;
    assert!(few.lines().any(|it| it == of("seen")), "{few}");
    assert!(!few.contains("unseen"), "{few}");

    // Counts end with their vault, and are not those of another one that has its name.
    server.home.ok(&["vault", "delete", "unseen", "--force"]);
    server.home.ok(&["vault", "create", "unseen"]);
    let ran = server.ask(&bearer(&all), "POST", "/v1/vaults/unseen/exec", exec);
    assert_eq!(ran.status, 200, "{ran:?}");
    let named = server.get(&all, "/metrics?vaults=true").body;
    assert!(named.lines().any(|it| it == of("unseen")), "{named}");
}
