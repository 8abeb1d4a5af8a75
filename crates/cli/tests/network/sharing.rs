//! Commands with different lists side by side in one vault: each reaches its own hosts only.

use crate::{World, succeeded, with_names};
use avfs_testkit::{Home, SOON, wait_for};
use serde_json::{Value, json};

const NAMES: [&str; 2] = ["127.0.0.1 a.example.test", "127.0.0.1 b.example.test"];
const CODE: &str = include_str!("../scripts/network.py");
/// Until somebody writes `/tmp/go`.
const UNTIL_GO: &str = "while [ ! -e /tmp/go ]; do sleep 0.02; done; exec python3 /network.py $0";

fn list(world: &World, name: &str) -> String {
    world.list(&[&format!("{name}.example.test")])
}

/// Starts a job with a list that does these attempts when it is told to.
fn start(world: &World, list: &str, name: &str, attempts: &Value) -> String {
    let file = format!("/{name}.json");
    world.home.ok(&["write", &file, &attempts.to_string()]);
    let words = [
        "job",
        "start",
        "--network",
        list,
        "--",
        "bash",
        "-c",
        UNTIL_GO,
        &file,
    ];
    let answer = world.home.json(&words);
    assert_eq!(answer["status"], "started", "{answer:#}");
    answer["job_id"].to_string()
}

/// What the attempts of a job gave.
fn outcomes(home: &Home, job: &str) -> Vec<String> {
    let ended = home.json(&["job", "wait", job, "--timeout", "60s"]);
    assert_eq!(ended["running"], false, "{ended:#}");
    let said = home.ok(&["job", "logs", job]);
    serde_json::from_str(&said).unwrap_or_else(|_| panic!("{said}"))
}

/// Every way to one name, with paths that say who asked.
fn ways(world: &World, who: &str, name: &str) -> Value {
    let (host, port) = (format!("{name}.example.test"), world.site.port);
    let get =
        format!("GET /{who}-{name} HTTP/1.1\r\nHost: {host}:{port}\r\nConnection: close\r\n\r\n");
    let whole = get.replacen("GET /", &format!("GET http://{host}:{port}/"), 1);
    json!([
        ["named", host, port, get],
        ["proxy", whole],
        ["inside", format!("{host}:{port}"), get],
        ["socks", host, port],
        ["dns", [name, "example", "test"], 1],
    ])
}

#[test]
fn each_command_reaches_its_own_list_only() {
    with_names(&NAMES, |world| {
        let home = &world.home;
        home.ok(&["write", "/network.py", CODE]);
        let jobs = ["a", "b"].map(|own| {
            let other = if own == "a" { "b" } else { "a" };
            let both = [ways(world, own, own), ways(world, own, other)];
            let all: Vec<&Value> = both.iter().flat_map(|it| it.as_array().unwrap()).collect();
            (own, start(world, &list(world, own), own, &json!(all)))
        });
        home.ok(&["exec", "--", "touch", "/tmp/go"]);
        for (own, job) in jobs {
            let got = outcomes(home, &job);
            let (good, bad) = got.split_at(5);
            // The site has no such file, and says so.
            let passed = |text: &String| text.starts_with("HTTP/1.1 404");
            assert!(good[..3].iter().all(passed), "{own}: {good:?}");
            assert_eq!(good[3..], ["0", "0 with 1"], "{own}");
            assert_eq!(bad[0], "NXDOMAIN", "{own}");
            assert!(bad[1].starts_with("HTTP/1.1 403"), "{own}: {bad:?}");
            assert_eq!(bad[3..], ["2", "3 with 0"], "{own}");
        }
        for stray in ["/a-b", "/b-a"] {
            assert!(!world.site.seen.has(stray), "{:?}", world.site.seen.all());
        }
    });
}

/// Whoever hides whose a connection is gets no more than every command has.
#[test]
fn a_connection_that_hides_its_command_gets_nothing_more() {
    with_names(&NAMES, |world| {
        let home = &world.home;
        home.ok(&["write", "/network.py", CODE]);
        let port = world.site.port;
        // The one with the wider list is there all the time, and holds no connection.
        let wide = world.list(&["a.example.test", "b.example.test"]);
        let witness = start(world, &wide, "wide", &ways(world, "wide", "b"));
        let target = format!("b.example.test:{port}");
        let attempts = json!([
            ["in_flight", target, "hidden"],
            ["closed", target, "hidden"],
            ["undumpable", target, "hidden"],
            [
                "proxy",
                format!("GET http://{target}/hidden HTTP/1.1\r\nHost: {target}\r\n\r\n")
            ],
        ]);
        home.ok(&["write", "/hostile.json", &attempts.to_string()]);
        let narrow = list(world, "a");
        let ran = world.run(&narrow, &["python3", "/network.py", "/hostile.json"]);
        let got: Vec<String> = serde_json::from_str(crate::succeeded(&ran)).unwrap();
        assert!(got[0].starts_with("HTTP/1.1 403"), "{got:?}");
        assert_eq!(got[1..3], ["sent", "0"], "{got:?}");
        assert!(got[3].starts_with("HTTP/1.1 403"), "{got:?}");
        home.ok(&["exec", "--", "touch", "/tmp/go"]);
        let seen = outcomes(home, &witness);
        assert!(seen[0].starts_with("HTTP/1.1 404"), "{seen:?}");
        assert!(wait_for(SOON, || world.site.seen.has("/wide-b")));
        assert!(
            !world.site.seen.has("hidden"),
            "{:?}",
            world.site.seen.all()
        );
    });
}

/// A server that has a listed port on every address keeps no command from running: what is listed is reached by a proxy then.
#[test]
fn a_server_on_a_listed_port_keeps_no_command_from_running() {
    with_names(&["127.0.0.1 a.example.test"], |world| {
        let home = &world.home;
        let port = world.site.port;
        let serve = format!(
            "import socket, time; s = socket.create_server(('', {port})); print('up', flush=True); time.sleep(600)"
        );
        let job = home.json(&["job", "start", "--", "python3", "-c", &serve])["job_id"].to_string();
        let up = || home.json(&["job", "poll", &job])["stdout"] == "up\n";
        assert!(wait_for(SOON, up));
        let url = format!("http://a.example.test:{port}/");
        let ran = world.run(&world.list(&["a.example.test"]), &["curl", "-sS", &url]);
        assert_eq!(succeeded(&ran), "hello");
        let denied = ran["network"]["denied"].as_array().unwrap();
        assert!(denied.iter().any(|it| it["port"] == port), "{ran:#}");
        home.ok(&["job", "kill", &job]);
    });
}
