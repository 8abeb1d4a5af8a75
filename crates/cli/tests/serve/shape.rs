//! The shape of HTTP: reads are GET, content is bytes, lists have pages, and what is repeated is done once.

use super::{Answer, Server, bearer, home, key};
use avfs_api::table::{Effect, Method, smallest_requests};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// A daemon with a vault `v`, and a key for all of an agent's scopes.
fn served() -> (Server, String) {
    let home = home();
    home.ok(&["vault", "create", "v"]);
    let all = key(&home, "all", &["--scope", "read,write,exec"]);
    (Server::start(home, &[]), bearer(&all))
}

const CONTENT: &str = "/v1/vaults/v/files/content?path=/f";

impl Answer {
    fn header(&self, name: &str) -> Option<&str> {
        let mut lines = self.head.lines();
        lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
    }
}

/// Commands, and texts that may be as long as commands, are judged by POST.
const JUDGED_BY_POST: [&str; 3] = ["policy_explain", "policy_validate", "fsck"];

#[test]
fn reading_is_get() {
    for (row, _) in smallest_requests() {
        let reads = row.effect == Effect::Reads;
        let expected = reads && !JUDGED_BY_POST.contains(&row.name);
        assert_eq!(row.method == Method::Get, expected, "{}", row.name);
    }
}

/// A read whose fields are too long for a query is sent as JSON, with the same answer.
#[test]
fn a_read_may_also_have_a_body() {
    let (server, all) = served();
    assert_eq!(server.ask(&all, "PUT", CONTENT, "words").status, 200);
    let by_get = server.ask(&all, "GET", "/v1/vaults/v/files/stat?path=/f", "");
    let body = json!({ "path": "/f" }).to_string();
    let by_post = server.ask(&all, "POST", "/v1/vaults/v/files/stat", &body);
    assert_eq!((by_get.status, by_post.status), (200, 200), "{by_post:?}");
    assert_eq!(by_get.json(), by_post.json());
    let several = "/v1/vaults/v/search/grep?pattern=words&globs=*.txt&globs=f";
    let found = server.ask(&all, "GET", several, "").json();
    assert_eq!(found["count"], 1, "{found:#}");
    // Where the address has a POST of its own, that is what POST does.
    let made = server.ask(&all, "POST", "/v1/vaults", r#"{"name":"w"}"#);
    assert_eq!(made.json()["created"], "w", "{made:?}");
}

#[test]
fn every_status_is_used_as_it_is_meant() {
    let (server, all) = served();
    let long = format!(r#"{{"name":"{}"}}"#, "x".repeat(3 << 20));
    for (method, address, body, status) in [
        ("POST", "/v1/vaults", "{", 400),
        ("POST", "/v1/vaults", "[]", 422),
        ("POST", "/v1/vaults", r#" ["x"]"#, 422),
        ("POST", "/v1/journal", "[null]", 422),
        ("POST", "/v1/vaults", r#"{"name":1}"#, 422),
        ("POST", "/v1/vaults", r#"{"name":"x","more":1}"#, 422),
        ("POST", "/v1/vaults", r#"{"name":"a/b"}"#, 400),
        ("POST", "/v1/vaults", r#"{"name":"v"}"#, 409),
        ("POST", "/v1/vaults", &long, 413),
        ("GET", "/v1/vaults/none", "", 404),
        ("GET", "/v1/vaults?limit=0", "", 400),
        ("GET", "/v1/vaults?limit=x", "", 400),
        ("GET", "/v1/vaults?limit=", "", 400),
        ("GET", "/v1/vaults?other=1", "", 400),
        ("GET", "/v1/jobs?cursor=x", "", 409),
        ("PATCH", "/v1/vaults", "", 405),
        ("GET", "/v1/keys", "", 403),
        ("DELETE", "/v1/vaults/v", r#"{"force":true}"#, 400),
        ("DELETE", "/v1/vaults/v?force=maybe", "", 400),
    ] {
        let answer = server.ask(&all, method, address, body);
        assert_eq!(answer.status, status, "{method} {address}: {answer:?}");
        assert_eq!(
            answer.header("content-type"),
            Some("application/problem+json"),
            "{answer:?}"
        );
        let problem = answer.json();
        assert_eq!(problem["status"], status, "{problem}");
        assert!(problem["kind"].is_string() && problem["detail"].is_string());
    }
    let made = server.ask(&all, "POST", "/v1/vaults", r#"{"name":"mine"}"#);
    assert_eq!(made.status, 200, "{made:?}");
    let deleted = server.ask(&all, "DELETE", "/v1/vaults/mine?force=true", "");
    assert_eq!(deleted.json()["deleted"], "mine", "{deleted:?}");
}

#[test]
fn content_is_bytes_with_ranges() {
    let (server, all) = served();
    let written = server.ask(&all, "PUT", CONTENT, "0123456789");
    assert_eq!(written.status, 200, "{written:?}");
    let id = written.json()["content_id"].clone();
    let tag = format!("\"{}\"", id.as_str().expect("an id"));
    let get = |more: &str| server.ask(&format!("{all}{more}"), "GET", CONTENT, "");
    let whole = get("");
    assert_eq!((whole.status, &*whole.body), (200, "0123456789"));
    for (name, value) in [
        ("etag", &*tag),
        ("content-length", "10"),
        ("accept-ranges", "bytes"),
        ("cache-control", "private, no-cache"),
        ("content-type", "application/octet-stream"),
    ] {
        assert_eq!(whole.header(name), Some(value), "{name}: {whole:?}");
    }
    for (range, body, shown) in [
        ("bytes=2-4", "234", "bytes 2-4/10"),
        ("bytes=7-", "789", "bytes 7-9/10"),
        ("bytes=-1", "9", "bytes 9-9/10"),
    ] {
        let part = get(&format!("\r\nrange: {range}"));
        assert_eq!((part.status, &*part.body), (206, body), "{part:?}");
        assert_eq!(part.header("content-range"), Some(shown));
        assert_eq!(part.header("etag"), Some(&*tag));
    }
    let beyond = get("\r\nrange: bytes=10-");
    assert_eq!(beyond.status, 416, "{beyond:?}");
    assert_eq!(beyond.header("content-range"), Some("bytes */10"));
    assert_eq!(get("\r\nrange: bytes=0-1,4-5").body, "0123456789");
    let unchanged = get(&format!("\r\nif-none-match: {tag}"));
    assert_eq!((unchanged.status, &*unchanged.body), (304, ""));
    assert_eq!(unchanged.header("etag"), Some(&*tag));
    assert_eq!(get("\r\nif-match: \"other\"").status, 412);
    let head = server.ask(&all, "HEAD", CONTENT, "");
    assert_eq!((head.status, &*head.body), (200, ""), "{head:?}");
    assert_eq!(head.header("content-length"), Some("10"));
    // A part that the query asks for is no range of the file.
    let part = server.ask(
        &format!("{all}\r\nrange: bytes=0-0"),
        "GET",
        &format!("{CONTENT}&offset=3&limit=2"),
        "",
    );
    assert_eq!((part.status, &*part.body), (200, "34"), "{part:?}");
    assert_eq!(part.header("etag"), None);
    let other = server.ask(
        &all,
        "PUT",
        "/v1/vaults/v/files/content?path=/g",
        "0123456789",
    );
    assert_eq!(
        other.json()["content_id"],
        id,
        "equal content has equal tags"
    );
}

#[test]
fn a_write_on_a_condition_loses_nothing() {
    let (server, all) = served();
    let put = |more: &str, body: &str| server.ask(&format!("{all}{more}"), "PUT", CONTENT, body);
    assert_eq!(put("\r\nif-match: *", "x").status, 412, "there is none");
    assert_eq!(put("\r\nif-none-match: *", "first").status, 200);
    assert_eq!(put("\r\nif-none-match: *", "second").status, 412);
    let read = server.ask(&all, "GET", CONTENT, "");
    assert_eq!(read.body, "first");
    let tag = read.header("etag").expect("a tag").to_owned();
    let refused = put("\r\nif-match: \"0000\"", "lost");
    assert_eq!(
        (refused.status, refused.json()["kind"].clone()),
        (412, json!("Conflict"))
    );
    let in_the_query = format!("{CONTENT}&if_match=0000");
    assert_eq!(server.ask(&all, "PUT", &in_the_query, "lost").status, 412);
    let twice = format!("{all}\r\nif-match: {tag}");
    assert_eq!(server.ask(&twice, "PUT", &in_the_query, "lost").status, 400);
    assert_eq!(put(&format!("\r\nif-match: {tag}"), "third").status, 200);
    // Of many that read the same content, one writes.
    let tag = server.ask(&all, "GET", CONTENT, "");
    let tag = tag.header("etag").expect("a tag").to_owned();
    let written: Vec<u16> = std::thread::scope(|scope| {
        let all = (0..8).map(|number| {
            let (put, tag) = (&put, &tag);
            scope.spawn(move || put(&format!("\r\nif-match: {tag}"), &number.to_string()).status)
        });
        let all: Vec<_> = all.collect();
        all.into_iter()
            .map(|it| it.join().expect("no panic"))
            .collect()
    });
    assert_eq!(
        written.iter().filter(|it| **it == 200).count(),
        1,
        "{written:?}"
    );
    assert_eq!(
        written.iter().filter(|it| **it == 412).count(),
        7,
        "{written:?}"
    );
    // What is not versioned has no tags.
    let scratch = "/v1/vaults/v/files/content?path=/tmp/f";
    assert_eq!(server.ask(&all, "PUT", scratch, "x").status, 200);
    assert_eq!(server.ask(&all, "GET", scratch, "").header("etag"), None);
    let headers = format!("{all}\r\nif-none-match: *");
    let refused = server.ask(&headers, "PUT", scratch, "x");
    assert!((400..500).contains(&refused.status), "{refused:?}");
}

/// Follows the cursors of a list; gives the names of its items.
fn pages(server: &Server, all: &str, address: &str, list: &str, name: &str) -> Vec<Value> {
    let mut seen = Vec::new();
    let mut cursor = String::new();
    for _ in 0..100 {
        let page = server.ask(all, "GET", &format!("{address}limit=2{cursor}"), "");
        assert_eq!(page.status, 200, "{page:?}");
        let page = page.json();
        let items = page[list].as_array().expect("a list");
        assert!(items.len() <= 2, "{page:#}");
        seen.extend(items.iter().map(|item| item[name].clone()));
        cursor = match &page["next_cursor"] {
            Value::Null => return seen,
            Value::String(next) => format!("&cursor={next}"),
            next => format!("&cursor={next}"),
        };
    }
    panic!("it never ends: {seen:?}");
}

#[test]
fn pages_of_every_list_are_the_whole() {
    let home = home();
    for number in 0..5 {
        home.ok(&["vault", "create", &format!("v{number}")]);
        home.ok(&["vault", "create", &format!("gone{number}")]);
        home.ok(&["vault", "delete", &format!("gone{number}"), "-y"]);
        home.ok(&["--vault", "v0", "write", "/f", &number.to_string()]);
        home.ok(&["--vault", "v0", "checkpoint", "save", &format!("c{number}")]);
        home.json(&["--vault", "v0", "job", "start", "--", "true"]);
    }
    let all = bearer(&key(&home, "all", &["--scope", "read,write,exec,admin"]));
    let server = Server::start(home, &[]);
    for (address, list, name) in [
        ("/v1/vaults?", "vaults", "name"),
        ("/v1/deleted-vaults?", "vaults", "id"),
        ("/v1/vaults/v0/log?", "versions", "version"),
        ("/v1/vaults/v0/files/log?path=/f&", "versions", "version"),
        ("/v1/vaults/v0/checkpoints?", "snapshots", "name"),
        ("/v1/jobs?", "jobs", "job_id"),
    ] {
        let whole = server.ask(&all, "GET", address.trim_end_matches(['?', '&']), "");
        let whole = whole.json();
        let whole = whole[list].as_array().expect("a list").iter();
        let whole: Vec<Value> = whole.map(|item| item[name].clone()).collect();
        assert!(whole.len() >= 5, "{address}: {whole:?}");
        assert_eq!(
            pages(&server, &all, address, list, name),
            whole,
            "{address}"
        );
        let distinct: BTreeSet<String> = whole.iter().map(Value::to_string).collect();
        assert_eq!(distinct.len(), whole.len(), "{address}");
    }
}

#[test]
fn a_repeated_request_is_done_once() {
    let (server, all) = served();
    let make = |key: &str, body: &str| {
        let headers = format!("{all}\r\nidempotency-key: {key}");
        server.ask(&headers, "POST", "/v1/vaults", body)
    };
    let first = make("k1", r#"{"name":"once"}"#);
    let again = make("k1", r#"{"name":"once"}"#);
    assert_eq!((first.status, again.status), (200, 200), "{again:?}");
    assert_eq!(first.json(), again.json());
    assert!(again.has("idempotent-replayed: true") && !first.has("idempotent-replayed"));
    assert_eq!(make("k1", r#"{"name":"other"}"#).status, 422);
    assert_eq!(make("k2", r#"{"name":"once"}"#).status, 409, "another key");
    // What failed has done nothing, and is tried again.
    assert_eq!(
        server.ask(&all, "DELETE", "/v1/vaults/once", "").status,
        200
    );
    assert_eq!(make("k2", r#"{"name":"once"}"#).status, 200);
    for wrong in ["a b", "", &"k".repeat(256), "é"] {
        assert_eq!(make(wrong, r#"{"name":"x"}"#).status, 400, "{wrong:?}");
    }
    // A key is its caller's alone.
    let other = bearer(&key(&server.home, "other", &["--scope", "read,write"]));
    let headers = format!("{other}\r\nidempotency-key: k1");
    let theirs = server.ask(&headers, "POST", "/v1/vaults", r#"{"name":"theirs"}"#);
    assert_eq!(theirs.status, 200, "{theirs:?}");
    // Streams cannot be repeated, and say so.
    let headers = format!("{all}\r\nidempotency-key: k3\r\naccept: text/event-stream");
    let body = r#"{"argv":["true"]}"#;
    assert_eq!(
        server
            .ask(&headers, "POST", "/v1/vaults/v/exec", body)
            .status,
        400
    );
    let headers = format!("{all}\r\nidempotency-key: k3");
    assert_eq!(server.ask(&headers, "PUT", CONTENT, "x").status, 400);
}

/// Requests that arrive while the first is under way wait for it, also when its client is gone.
#[test]
fn requests_repeated_at_once_are_done_once() {
    let (server, all) = served();
    let body = json!({ "shell": "echo x >> /runs; sleep 1" }).to_string();
    let headers = format!("{all}\r\nidempotency-key: k");
    let ran: Vec<Value> = std::thread::scope(|scope| {
        let ask = || {
            server
                .ask(&headers, "POST", "/v1/vaults/v/exec", &body)
                .json()
        };
        let all: Vec<_> = (0..6).map(|_| scope.spawn(ask)).collect();
        all.into_iter()
            .map(|it| it.join().expect("no panic"))
            .collect()
    });
    for answer in &ran {
        assert_eq!(answer["result"]["exit_code"], 0, "{answer:#}");
        assert_eq!(answer["result"]["exec"], ran[0]["result"]["exec"]);
    }
    let runs = server.ask(&all, "GET", "/v1/vaults/v/files/content?path=/runs", "");
    assert_eq!(runs.body, "x\n", "it ran once");
}

/// What a command changed is for those who may reach the vault that it ran in.
#[test]
fn changes_of_a_command_come_in_pages_to_whom_they_concern() {
    let home = home();
    home.ok(&["vault", "create", "v"]);
    home.ok(&["vault", "create", "w"]);
    let envelope = home.json(&[
        "--vault",
        "v",
        "exec",
        "--shell",
        "for i in 1 2 3 4 5; do echo > /$i; done",
    ]);
    let exec = envelope["result"]["exec"].as_str().expect("an id");
    let own = bearer(&key(&home, "own", &["--scope", "read", "--vault", "v"]));
    let other = bearer(&key(&home, "other", &["--scope", "read", "--vault", "w"]));
    let server = Server::start(home, &[]);
    let address = format!("/v1/changes?exec={exec}&limit=2");
    assert_eq!(server.ask(&other, "GET", &address, "").status, 403);
    let (mut seen, mut cursor) = (Vec::new(), None);
    loop {
        let next = cursor.map_or(String::new(), |at: u64| format!("&cursor={at}"));
        let page = server.ask(&own, "GET", &format!("{address}{next}"), "");
        assert_eq!(page.status, 200, "{page:?}");
        let page = page.json();
        assert_eq!(
            (&page["changes_total"], &page["schema_version"]),
            (&json!(5), &json!(1))
        );
        let changes = page["changes"].as_array().expect("a list").clone();
        assert!((1..=2).contains(&changes.len()), "{changes:?}");
        seen.extend(
            changes
                .iter()
                .map(|it| it["path"].as_str().unwrap().to_owned()),
        );
        cursor = page["next_cursor"].as_u64();
        if cursor.is_none() {
            break;
        }
    }
    assert_eq!(seen, ["/1", "/2", "/3", "/4", "/5"]);
    let unknown = "/v1/changes?exec=01a1de36-3b62-77b2-8258-ad8380643645";
    assert_eq!(server.ask(&other, "GET", unknown, "").status, 403);
    assert_eq!(
        server.ask(&own, "GET", "/v1/changes?exec=x", "").status,
        400
    );
    assert_eq!(
        server
            .ask(&own, "GET", &format!("/v1/changes?exec={exec}&limit=0"), "")
            .status,
        400
    );
}
