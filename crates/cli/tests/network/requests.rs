//! Rules about requests: which a host may be sent, who may change them, and git with a code host that is read, or pushed to with a
//! token.

use crate::git_host::GitHost;
use crate::servers::HostProxy;
use crate::{AVFS, WITHOUT_VARIABLES, World, agent, begin, behind_proxy, has, result, succeeded};
use avfs_testkit::{Home, Person, SOON, wait_for};
use serde_json::{Value, json};
use std::io::Write;
use std::process::Stdio;

const CODE: &str = "code.example.test";
const REFUSED: &str = "default:request-not-allowed";

/// The status and the body that curl gets.
fn fetch(world: &World, words: &[&str], without: bool) -> (String, String) {
    let before = if without { &WITHOUT_VARIABLES[..] } else { &[] };
    let curl = ["curl", "-sS", "--path-as-is", "-w", "\n%{http_code}"];
    let ran = result(
        world
            .home
            .json(&[&["exec", "--"], before, &curl, words].concat()),
    );
    let said = succeeded(&ran).trim_end();
    let (body, status) = said.rsplit_once('\n').unwrap_or(("", said));
    (status.to_owned(), body.to_owned())
}

#[track_caller]
fn gives(world: &World, status: &str, words: &[&str]) {
    for without in [false, true] {
        let (got, body) = fetch(world, words, without);
        assert_eq!(got, status, "{words:?} as {}: {body}", world.home.user());
    }
}

#[test]
fn each_request_is_held_to_the_rules() {
    behind_proxy(|world, _| {
        let home = &world.home;
        world.site.put("/org/repo/file", "content");
        world.site.put("/other", "other");
        home.ok(&["network", "set", &format!("{CODE},free.example.test")]);
        let shown = home.ok(&["network", "inspect", CODE, "GET,HEAD /org/repo"]);
        assert!(shown.contains("GET,HEAD /org/repo"), "{shown}");
        for scheme in ["https", "http"] {
            let url = |path: &str| format!("{scheme}://{CODE}{path}");
            gives(world, "200", &[&url("/org/repo/file")]);
            gives(world, "200", &["-I", &url("/org/repo/file")]);
            for path in [
                "/other",
                "/",
                "/org/repository",
                "/org/repo/../../other",
                "/org/repo/%2e%2e/%2e%2e/other",
                "/org/repo//../../other",
                "/org/repo%2f..%2f..%2fother",
                "/org/repo/..;/..;/other",
            ] {
                gives(world, "403", &[&url(path)]);
            }
            for method in ["POST", "PUT", "DELETE", "get", "TRACE", "G'T"] {
                gives(world, "403", &["-X", method, &url("/org/repo/file")]);
            }
            // Another name in the header, and another method in one that some servers believe, change nothing.
            let (status, _) = fetch(
                world,
                &["-H", "Host: free.example.test", &url("/other")],
                false,
            );
            assert_eq!(status, "403");
        }
        let asked = world.site.seen.all();
        let passed = |what: &&String| !what.ends_with(&format!("{CODE} /org/repo/file"));
        assert_eq!(asked.iter().find(passed), None, "{asked:?}");
        let log = home.json(&["network", "log", "--denied"]);
        assert!(
            has(
                &log["execs"][0]["denied"],
                "free.example.test",
                Some(443),
                "default:other-host"
            ) || has(
                &log["execs"][0]["denied"],
                "free.example.test",
                Some(80),
                "default:other-host"
            ),
            "{log:#}"
        );
        let all = log["execs"].as_array().unwrap();
        let noted = |port| {
            all.iter()
                .any(|it| has(&it["denied"], CODE, Some(port), REFUSED))
        };
        assert!(noted(443) && noted(80), "{log:#}");
    });
}

/// The command that a refusal names is run, and then the request passes.
#[test]
fn a_refusal_names_the_command_that_allows_it() {
    behind_proxy(|world, _| {
        let home = &world.home;
        world.site.put("/org/issues", "made");
        home.ok(&["network", "set", CODE]);
        home.ok(&["network", "inspect", "*.example.test", "GET /org"]);
        home.ok(&["network", "inspect", CODE, "GET,HEAD /"]);
        let url = format!("https://{CODE}/org/issues");
        let post = ["-d", "x", &url];
        let (status, body) = fetch(world, &post, false);
        let problem: Value = serde_json::from_str(&body).unwrap();
        assert_eq!(
            (&*status, &problem["rule"]),
            ("403", &json!(REFUSED)),
            "{problem}"
        );
        assert_eq!(problem["port"], 443);
        let allow = problem["allow"].as_str().unwrap();
        let expected = format!(
            "avfs network inspect '{CODE}' --add 'POST /org/issues' && \
             avfs network inspect '*.example.test' --add 'POST /org/issues'"
        );
        assert_eq!(allow, expected);
        for command in allow.split(" && ") {
            let words: Vec<&str> = command.split('\'').collect();
            home.ok(&["network", "inspect", words[1], "--add", words[3]]);
        }
        gives(world, "200", &post);
        // What a hostile command writes into its request is not put before the owner's shell.
        let (_, body) = fetch(world, &["-X", "G'T", &url], false);
        let problem: Value = serde_json::from_str(&body).unwrap();
        assert_eq!(problem["allow"], Value::Null, "{problem}");
        let (_, body) = fetch(world, &["-X", "PUT", &format!("{url}/'$(id)'")], false);
        let problem: Value = serde_json::from_str(&body).unwrap();
        let allow = problem["allow"].as_str().unwrap();
        assert!(allow.ends_with("--add 'PUT /'"), "{allow}");
    });
}

/// Where requests cannot be seen, a host with rules is not reached at all.
#[test]
fn other_ports_of_a_host_with_rules_are_refused() {
    behind_proxy(|world, proxy| {
        let home = &world.home;
        let port = world.site.port;
        home.ok(&["network", "set", &format!("{CODE}:*")]);
        let url = format!("http://{CODE}:{port}/");
        let tunnel = ["-x", "http://127.0.0.1:808", "--proxytunnel", &url];
        assert_eq!(fetch(world, &tunnel, false).0, "200");
        home.ok(&["network", "inspect", CODE, "GET /only"]);
        let before = proxy.seen.all().len();
        let ran = world
            .home
            .json(&[&["exec", "--", "curl", "-sS"], &tunnel[..]].concat());
        let ran = result(ran);
        assert_ne!(ran["exit_code"], 0, "{ran:#}");
        let denied = &ran["network"]["denied"];
        assert!(
            has(denied, CODE, Some(port), "default:requests-not-seen"),
            "{ran:#}"
        );
        // Requests to the proxy itself are seen on every port.
        assert_eq!(fetch(world, &[&url], false).0, "403");
        assert_eq!(proxy.seen.all().len(), before);
        let (status, _) = fetch(world, &[&format!("{url}only")], false);
        assert_eq!(status, "404", "the site answers");
        home.ok(&["network", "inspect", CODE, "--off"]);
        assert_eq!(fetch(world, &tunnel, false).0, "200");
    });
}

#[test]
fn the_owner_opens_and_loosens_and_everybody_tightens() {
    behind_proxy(|world, _| {
        let home = &world.home;
        home.ok(&["network", "set", CODE]);
        let inspect =
            |words: &[&str]| agent(home, &[&["network", "inspect", CODE], words].concat());
        for wider in [&["GET /"][..], &["--off"], &["--add", "GET /"]] {
            let refused = inspect(wider);
            let kind = refused["error"].as_str().unwrap();
            assert!(
                ["Denied", "Invalid"].contains(&kind),
                "{wider:?}: {refused}"
            );
        }
        home.ok(&["network", "inspect", CODE, "GET,HEAD /org", "POST /org/x"]);
        for wider in [
            &["--off"][..],
            &["GET /"],
            &["--add", "PUT /org"],
            &["GET,HEAD,POST /org"],
            &["* /org"],
        ] {
            assert_eq!(inspect(wider)["error"], "Denied", "{wider:?}");
        }
        let set = ["vault", "set", "inspect.code.example.test=GET /org/repo"];
        assert_eq!(agent(home, &set)["error"], "Denied");
        let shown = inspect(&["GET /org/repo"]);
        assert_eq!(
            shown["requests"],
            json!([{"host": CODE, "allow": ["GET /org/repo"]}])
        );
        assert_eq!(
            inspect(&["GET,HEAD /org"])["error"],
            "Denied",
            "and not back"
        );
        let journal = home.json(&["audit", "--limit", "5"]).to_string();
        assert!(journal.contains("inspect.code.example.test"), "{journal}");
        // A fork has what its vault has, and a setting says it as well.
        home.ok(&["vault", "fork", "v", "w"]);
        let forked = home.json(&["--vault", "w", "network", "show"]);
        assert_eq!(forked["requests"], shown["requests"]);
        home.ok(&["vault", "set", "inspect.code.example.test=GET /a; POST /b"]);
        let both = home.json(&["network", "show"]);
        assert_eq!(both["requests"][0]["allow"], json!(["GET /a", "POST /b"]));
        let info = home.json(&["vault", "info", "v"]).to_string();
        assert!(info.contains("GET /a; POST /b"), "{info}");
        home.ok(&["vault", "unset", "inspect.code.example.test"]);
        assert_eq!(home.json(&["network", "show"])["requests"], Value::Null);
        for wrong in ["GET", "GET a", "GET /a/..", "get /", "GET /a'b", "GET /a;b"] {
            let (kind, answer) = home.refused(&["network", "inspect", CODE, wrong]);
            assert_eq!(kind, "Invalid", "{wrong}: {answer}");
        }
        for wrong in ["code.example.test:443", "", "*.*.test", "a b"] {
            let (kind, answer) = home.refused(&["network", "inspect", wrong, "GET /"]);
            assert_eq!(kind, "Invalid", "{wrong}: {answer}");
        }
    });
}

/// Posts again and again on connections that are kept, and says what has become of it whenever that changes.
const LOOP: &str = "
import http.client, os, ssl, time
context = ssl.create_default_context(cafile=os.environ['SSL_CERT_FILE'])
was = kept = None
while True:
    try:
        kept = kept or http.client.HTTPSConnection('code.example.test', timeout=20, context=context)
        kept.request('POST', '/x', body='x')
        answer = kept.getresponse()
        answer.read()
        now = str(answer.status)
        if answer.will_close:
            kept = None
    except (OSError, http.client.HTTPException):
        kept = None
        continue
    if now != was:
        print(now, flush=True)
        was = now
    time.sleep(0.02)
";

#[test]
fn a_change_reaches_a_job_that_runs() {
    behind_proxy(|world, _| {
        let home = &world.home;
        world.site.put("/x", "posted");
        home.ok(&["network", "set", CODE]);
        home.ok(&["network", "inspect", CODE, "* /"]);
        home.ok(&["write", "/loop.py", LOOP]);
        let words = [
            &["job", "start", "--"],
            &WITHOUT_VARIABLES[..],
            &["python3", "/loop.py"],
        ];
        let job = home.json(&words.concat())["job_id"].to_string();
        let says = |text: &str| {
            let mut polled = Value::Null;
            let has = wait_for(SOON, || {
                polled = home.json(&["job", "poll", &job]);
                polled["stdout"]
                    .as_str()
                    .is_some_and(|all| all.ends_with(text))
            });
            assert!(has, "it never wrote {text:?}: {polled:#}");
        };
        says("200\n");
        let fewer = agent(home, &["network", "inspect", CODE, "GET /"]);
        assert_eq!(fewer["requests"][0]["allow"], json!(["GET /"]));
        says("200\n403\n");
        home.ok(&["network", "inspect", CODE, "--add", "POST /x"]);
        says("403\n200\n");
        home.ok(&["job", "kill", &job]);
    });
}

/// A home whose host reaches a code host by a proxy, with its repository cloned.
fn with_code_host(check: impl Fn(&Home, &GitHost)) {
    for home in Home::of_every_user(AVFS) {
        let host = GitHost::start(TOKEN);
        let proxy = HostProxy::start(host.port);
        begin(&home, &proxy, &host.trusted);
        home.ok(&["network", "set", CODE]);
        check(&home, &host);
    }
}

const TOKEN: &str = "token-93b1-Sings+Nowhere";
const CLONE: &str =
    "git clone -q https://code.example.test/org/repo.git /workspace && cat /workspace/f";
const COMMIT: &str = "cd /workspace && echo more >> f && git -c user.name=a -c user.email=a@example.test commit -qam two";

fn shell(home: &Home, text: &str) -> Value {
    result(home.json(&["exec", "--shell", text]))
}

#[test]
fn git_reads_a_code_host_and_does_not_push() {
    with_code_host(|home, host| {
        home.ok(&[
            "network",
            "inspect",
            CODE,
            "GET /org/repo.git",
            "POST /org/repo.git/git-upload-pack",
        ]);
        assert_eq!(succeeded(&shell(home, CLONE)), "hello\n");
        succeeded(&shell(home, COMMIT));
        succeeded(&shell(home, "cd /workspace && git fetch -q"));
        // In a script, so that the boundary and not the policy has to hold. The password is in the address, so nothing else is missing.
        let push = format!(
            "cd /workspace && git push https://git:{TOKEN}@code.example.test/org/repo.git main"
        );
        home.ok(&["write", "/push.sh", &push]);
        let pushed = result(home.json(&["exec", "--", "sh", "/push.sh"]));
        assert_ne!(pushed["exit_code"], 0, "{pushed:#}");
        assert!(
            pushed["stderr"].as_str().unwrap().contains("403"),
            "{pushed:#}"
        );
        assert!(
            has(&pushed["network"]["denied"], CODE, Some(443), REFUSED),
            "{pushed:#}"
        );
        assert!(
            !host.seen.has("POST /org/repo.git/git-receive-pack"),
            "{:?}",
            host.seen.all()
        );
        assert_eq!(host.log(), "one\n");
        // It is the rule that kept it, and nothing else.
        let push = "POST /org/repo.git/git-receive-pack";
        home.ok(&["network", "inspect", CODE, "--add", push]);
        succeeded(&result(home.json(&["exec", "--", "sh", "/push.sh"])));
        assert_eq!(host.log(), "two\none\n");
    });
}

const PASSPHRASE: &str = "correct horse battery";

/// Answers questions at a terminal.
fn person(home: &Home, words: &[&str], questions: &[&str]) {
    let mut owner = Person::start(home.command(words));
    for question in questions {
        owner.answer(question, PASSPHRASE);
    }
    let (status, said) = owner.end();
    assert!(status.success(), "{said}");
}

#[test]
fn git_pushes_with_a_token_that_it_does_not_have_once_that_is_approved() {
    with_code_host(|home, host| {
        let mut set = home.command(&[
            "secret",
            "set",
            "CODE_TOKEN",
            "--host",
            CODE,
            "--basic",
            "git",
        ]);
        let mut setting = set
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        writeln!(setting.stdin.take().unwrap(), "{TOKEN}").unwrap();
        assert!(setting.wait().unwrap().success());
        person(
            home,
            &["approval", "setup"],
            &["New passphrase: ", "Once more: "],
        );
        assert_eq!(succeeded(&shell(home, CLONE)), "hello\n");
        succeeded(&shell(home, COMMIT));
        let push = ["-C", "/workspace", "push", "-q", "origin", "main"];
        let words = [&["exec", "--", "git"], &push[..]].concat();
        let asked = result(home.json(&words));
        assert_eq!(asked["status"], "needs_approval", "{asked:#}");
        assert_eq!(host.log(), "one\n");
        let id = asked["approval_id"].as_str().unwrap();
        let question = "Passphrase to let it run once: ";
        person(home, &["approval", "approve", id], &[question]);
        let words = [&["exec", "--approval", id, "--", "git"], &push[..]].concat();
        let pushed = result(home.json(&words));
        assert_eq!(pushed["exit_code"], 0, "{pushed:#}");
        assert_eq!(host.log(), "two\none\n");
        assert!(host.seen.has("POST /org/repo.git/git-receive-pack Basic "));
        // An approval is for one run.
        let again = result(home.json(&[&["exec", "--", "git"], &push[..]].concat()));
        assert_eq!(again["status"], "needs_approval", "{again:#}");
        // Nothing inside has the token: neither its files, nor what git wrote down, nor its environment.
        let look = shell(
            home,
            "env; cat /workspace/.git/config; cat ~/.git-credentials ~/.netrc; true",
        );
        let seen = look["stdout"].as_str().unwrap();
        assert!(seen.contains("CODE_TOKEN=avfs-secret-CODE_TOKEN"), "{seen}");
        assert_eq!(look["masked"], 0, "{look:#}");
        let out = home.path().join("exported");
        home.ok(&["export", "/", out.to_str().unwrap()]);
        let found = home
            .host_command("grep")
            .args(["-rlF", TOKEN])
            .arg(&out)
            .output()
            .unwrap();
        assert_eq!(found.status.code(), Some(1), "{found:?}");
        assert!(
            !home
                .json(&["audit", "--limit", "200"])
                .to_string()
                .contains(TOKEN)
        );
    });
}
