//! What each kind of network is, and who may choose it.

use crate::servers::Echo;
use crate::{AVFS, World, agent, behind_proxy, has, result, succeeded, with_names};
use avfs_testkit::{Home, with_vault};
use serde_json::{Value, json};

const A: &str = "127.0.0.1 a.example.test";
const B: &str = "127.0.0.1 b.example.test";

fn url(world: &World, name: &str) -> String {
    format!("http://{name}.example.test:{}/", world.site.port)
}

#[test]
fn without_a_network_names_do_not_exist_and_connections_are_refused() {
    with_names(&[A], |world| {
        let site = format!("http://127.0.0.1:{}/", world.site.port);
        let by_name = url(world, "a");
        for (words, code) in [
            (&["getent", "hosts", "a.example.test"][..], 2),
            (&["curl", "-sS", &by_name], 6),
            (&["curl", "-sS", &site], 7),
            (&["curl", "-sS", "http://192.0.2.1/"], 7),
            (&["curl", "-gsS", "http://[2001:db8::1]/"], 7),
        ] {
            let ran = world.run("none", words);
            assert_eq!(ran["exit_code"], code, "{words:?}: {ran:#}");
            assert_eq!(ran["network"]["allowed"], json!([]));
            let denied = &ran["network"]["denied"];
            let named = words.iter().any(|word| word.contains("a.example.test"));
            assert_eq!(
                has(denied, "a.example.test", None, "default:not-listed"),
                named,
                "{ran:#}"
            );
        }
        assert!(world.site.seen.all().is_empty());
        let log = world.home.json(&["network", "log", "--denied"]);
        assert_eq!(log["execs"].as_array().unwrap().len(), 2, "{log:#}");
    });
}

#[test]
fn a_command_has_its_vaults_list_and_what_is_added() {
    with_names(&[A, B], |world| {
        let home = &world.home;
        home.ok(&["network", "set", &world.list(&["a.example.test"])]);
        let fetch = |options: &[&str], name: &str| {
            let url = url(world, name);
            let words = [&["exec"], options, &["--", "curl", "-sSf", &url]].concat();
            result(home.json(&words))
        };
        let b = format!("b.example.test:{}", world.site.port);
        assert_eq!(succeeded(&fetch(&[], "a")), "hello");
        assert_ne!(fetch(&[], "b")["exit_code"], 0);
        for name in ["a", "b"] {
            let ran = fetch(&["--allow", &b], name);
            assert_eq!(succeeded(&ran), "hello");
            assert_eq!(
                ran["decision"]["action"], "allow_with_checkpoint",
                "{ran:#}"
            );
        }
        // What is asked for goes before what the vault says.
        assert_ne!(fetch(&["--network", "none"], "a")["exit_code"], 0);
        assert_ne!(fetch(&["--profile", "restrictive"], "a")["exit_code"], 0);
        // No profile gives more than the vault's list.
        for profile in ["moderate", "permissive"] {
            assert_eq!(succeeded(&fetch(&["--profile", profile], "a")), "hello");
            assert_ne!(fetch(&["--profile", profile], "b")["exit_code"], 0);
        }
        assert_eq!(
            home.json(&["network", "show"])["hosts"]
                .as_array()
                .unwrap()
                .len(),
            2
        );
        home.ok(&["network", "allow", &b]);
        assert_eq!(succeeded(&fetch(&[], "b")), "hello");
        home.ok(&["network", "deny", &b]);
        assert_ne!(fetch(&[], "b")["exit_code"], 0);
        let (kind, answer) = home.refused(&["network", "deny", &b]);
        assert_eq!(kind, "Invalid", "{answer}");
        home.ok(&["vault", "set", "network=none"]);
        assert_ne!(fetch(&[], "a")["exit_code"], 0);
    });
}

#[test]
fn the_hosts_network_is_the_owners_and_journaled() {
    with_names(&[A], |world| {
        let home = &world.home;
        let echo = Echo::start();
        let code = "import socket, sys\nprint(socket.create_connection(('127.0.0.1', int(sys.argv[1]))) is not None)";
        home.ok(&["write", "/reach.py", code]);
        let port = echo.port.to_string();
        let reach = ["exec", "--", "python3", "/reach.py", &port];
        assert_ne!(result(home.json(&reach))["exit_code"], 0);
        home.ok(&["network", "set", "host"]);
        assert_eq!(succeeded(&result(home.json(&reach))), "True\n");
        assert_eq!(agent(home, &["network", "set", "none"])["network"], "none");
        let wider = agent(home, &["network", "set", "host"]);
        assert_eq!(wider["error"], "Denied", "{wider}");
        let journal = home.json(&["audit", "--limit", "30"]).to_string();
        assert!(journal.contains(r#""network":"host""#), "{journal}");
    });
}

#[test]
fn an_agent_narrows_and_never_widens() {
    with_vault(AVFS, |home| {
        home.ok(&["network", "set", "a.example.test,*.w.example.test:8080"]);
        let ran = |words: &[&str]| {
            let words = [&["exec"], words, &["--", "true"]].concat();
            let answer = agent(home, &words);
            answer["error"].as_str().unwrap_or("ran").to_owned()
        };
        for wider in [
            &["--network", "host"][..],
            &["--network", "observe"],
            &["--network", "b.example.test"],
            &["--network", "a.example.test:22"],
            &["--network", "a.example.test:*"],
            &["--network", "*"],
            &["--network", "w.example.test:8080"],
            &["--network", "*.example.test"],
            &["--network", "127.0.0.1:80"],
            &["--allow", "b.example.test"],
            &["--network", "none", "--allow", "b.example.test"],
        ] {
            assert_eq!(ran(wider), "Denied", "{wider:?}");
        }
        for narrower in [
            &[][..],
            &["--network", "none"],
            &["--network", "a.example.test:443"],
            &["--network", "x.w.example.test:8080"],
            &["--allow", "a.example.test:80"],
            &["--profile", "restrictive"],
        ] {
            assert_eq!(ran(narrower), "ran", "{narrower:?}");
        }
        for words in [
            &["network", "set", "a.example.test,b.example.test"][..],
            &["network", "set", "host"],
            &["network", "allow", "b.example.test"],
            &["vault", "set", "network=b.example.test"],
            &["vault", "unset", "network"],
        ] {
            assert_eq!(agent(home, words)["error"], "Denied", "{words:?}");
        }
        let left = agent(home, &["network", "deny", "*.w.example.test:8080"]);
        assert_eq!(left["hosts"], json!(["a.example.test"]), "{left}");
        let left = agent(home, &["network", "set", "a.example.test:443"]);
        assert_eq!(left["hosts"], json!(["a.example.test:443"]), "{left}");
        // Narrowed is narrowed, for the agent too.
        assert_eq!(
            agent(home, &["network", "set", "a.example.test"])["error"],
            "Denied"
        );
    });
}

#[test]
fn observing_tells_the_smallest_list() {
    behind_proxy(|world, proxy| {
        let home = &world.home;
        let script = "set -e; curl -sSf http://a.example.test/; curl -sSf --cacert /ca.pem https://b.example.test/
curl -s http://169.254.169.254/ || true; curl -s http://127.0.0.1:9/ || true; getent hosts c.example.test > /dev/null";
        home.ok(&["write", "/fetch.sh", script]);
        let observe = ["exec", "--network", "observe", "--", "bash", "/fetch.sh"];
        let ran = result(home.json(&observe));
        succeeded(&ran);
        let needs = ran["network"]["needs"].clone();
        assert_eq!(
            needs,
            json!(["a.example.test", "b.example.test"]),
            "{ran:#}"
        );
        assert!(!proxy.seen.has("169.254"), "{:?}", proxy.seen.all());
        let text = home.avfs(&observe);
        let text = String::from_utf8_lossy(&text.stderr).into_owned();
        let line = "it needs: avfs network allow a.example.test b.example.test";
        assert!(text.contains(line), "{text}");
        // The list that it tells is enough.
        home.ok(&["network", "allow", "a.example.test", "b.example.test"]);
        let fetch = script.lines().next().unwrap();
        home.ok(&["write", "/fetch.sh", fetch]);
        succeeded(&result(home.json(&["exec", "--", "bash", "/fetch.sh"])));
        // Publishing is not a way to learn.
        let push = [
            "exec",
            "--network",
            "observe",
            "--",
            "git",
            "push",
            "https://a.example.test/r.git",
            "main",
        ];
        assert_eq!(result(home.json(&push))["status"], "needs_approval");
    });
}

/// Publishing asks whatever the list says, and what was asked includes the list.
#[test]
fn publishing_asks_and_the_request_names_the_list() {
    with_vault(AVFS, |home| {
        home.ok(&["network", "set", "a.example.test"]);
        for words in [
            &["git", "push", "https://a.example.test/r.git", "main"][..],
            &["npm", "publish"],
            &["cargo", "publish"],
        ] {
            let asked = home.json(&[&["exec", "--"], words].concat());
            assert_eq!(asked["result"]["status"], "needs_approval", "{words:?}");
        }
        let fetched = home.json(&[
            "policy",
            "check",
            "--network",
            "listed",
            "--",
            "curl",
            "https://a.example.test/",
        ]);
        assert_eq!(decision(&fetched), "allow_with_checkpoint", "{fetched:#}");
        binds_the_list(home);
    });
}

/// Of two requests that differ only in their lists, each has an id of its own.
fn binds_the_list(home: &Home) {
    let push = ["git", "push", "https://a.example.test/r.git", "main"];
    let ask = |list: &str| {
        let asked = home.json(&[&["exec", "--network", list, "--"], &push[..]].concat());
        asked["result"]["approval_id"].as_str().unwrap().to_owned()
    };
    let (narrow, wide) = (ask("a.example.test"), ask("a.example.test,b.example.test"));
    assert_ne!(narrow, wide);
    let shown = home.json(&["approval", "show", &wide]);
    assert!(shown.to_string().contains("b.example.test"), "{shown:#}");
    let shown = home.json(&["approval", "show", &narrow]);
    assert!(!shown.to_string().contains("b.example.test"), "{shown:#}");
}

fn decision(checked: &Value) -> &str {
    let action = &checked["decision"]["action"];
    action
        .as_str()
        .or(checked["action"].as_str())
        .unwrap_or_default()
}

/// The host's own proxy cannot be used: commands without a network run, the others say why not.
#[test]
fn a_proxy_that_cannot_be_used_is_named() {
    for home in Home::of_every_user(AVFS) {
        let mut create = home.command(&["vault", "create", "v"]);
        let created = create
            .env("HTTPS_PROXY", "socks5://me:canary@127.0.0.1:9")
            .output();
        assert!(created.unwrap().status.success());
        succeeded(&result(home.json(&["exec", "--", "true"])));
        let (kind, answer) = home.refused(&["exec", "--network", "a.example.test", "--", "true"]);
        assert_eq!(kind, "Invalid", "{answer}");
        let text = answer.to_string();
        assert!(
            text.contains("only http:// proxies") && !text.contains("canary"),
            "{text}"
        );
    }
}

#[test]
fn the_corpus_of_attacks_has_a_network_section() {
    with_vault(AVFS, |home| {
        let report = home.json(&["doctor", "--attack"]);
        let text = report.to_string();
        let attacks = report["attacks"]
            .as_array()
            .unwrap_or_else(|| panic!("{text}"));
        let network: Vec<&Value> = attacks
            .iter()
            .filter(|one| one["group"] == "network")
            .collect();
        assert!(network.len() >= 8, "{text}");
        for attack in network {
            assert_eq!(attack["stopped"], true, "{attack}");
        }
    });
}
