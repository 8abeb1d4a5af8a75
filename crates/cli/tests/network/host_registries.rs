//! The word `registries`: what it stands for is the host's own configuration, for reading, and nothing that a vault holds.
//!
//! Who may lie: a vault's configuration, a command that names other hosts or sends other requests, an index that names other hosts.

use crate::registries::{serve_crates, serve_wheel};
use crate::servers::{HostProxy, Site};
use crate::{AVFS, World, agent, has, is_there, result, succeeded};
use avfs_testkit::Home;
use serde_json::{Value, json};
use std::fs;

/// The password of the host's package managers.
pub const CANARY: &str = "canary-9d41-registry";

/// A home whose user has registries in the configuration of all package managers, each with credentials, and the site that serves them.
pub fn with_registries(home: Home, check: impl Fn(&World, &HostProxy)) {
    let site = Site::start();
    let proxy = HostProxy::start(site.port);
    let (ca, npmrc, cargo) = (
        home.path().join("ca.pem"),
        home.path().join("npmrc"),
        home.path().join("cargo"),
    );
    fs::write(&ca, &site.trusted).unwrap();
    let text = format!(
        "registry=https://npm.example.test/\n//npm.example.test/:_authToken={CANARY}\n@own:registry=https://scoped.example.test/\n"
    );
    fs::write(&npmrc, text).unwrap();
    fs::create_dir(&cargo).unwrap();
    let config = "[registries.r]\nindex = 'sparse+https://crates.example.test/index/'\n";
    fs::write(cargo.join("config.toml"), config).unwrap();
    let tokens = format!("[registries.r]\ntoken = '{CANARY}'\n");
    fs::write(cargo.join("credentials.toml"), tokens).unwrap();
    let files = [
        ca.clone(),
        npmrc.clone(),
        cargo.clone(),
        cargo.join("config.toml"),
        cargo.join("credentials.toml"),
    ];
    files.iter().for_each(|file| home.give(file));
    let mut create = home.command(&["vault", "create", "v"]);
    let created = create
        .env("HTTP_PROXY", &proxy.url)
        .env("HTTPS_PROXY", &proxy.url)
        .env("SSL_CERT_FILE", &ca)
        .env("PIP_CONFIG_FILE", "/dev/null")
        .env(
            "PIP_INDEX_URL",
            format!("https://me:{CANARY}@pypi.example.test/simple/"),
        )
        .env("npm_config_userconfig", &npmrc)
        .env("CARGO_HOME", &cargo);
    let created = created.output().unwrap();
    assert!(created.status.success(), "{created:?}");
    check(&World { home, site }, &proxy);
}

pub fn for_every_user(check: impl Fn(&World, &HostProxy)) {
    for home in Home::of_every_user(AVFS) {
        with_registries(home, &check);
    }
}

pub const PIP: [&str; 7] = [
    "pip",
    "install",
    "-q",
    "--no-cache-dir",
    "--disable-pip-version-check",
    "--retries",
    "0",
];

/// Runs words that may read from registries.
pub fn run(world: &World, words: &[&str]) -> Value {
    let words = [
        &["exec", "--network", "none", "--allow-registries", "--"],
        words,
    ]
    .concat();
    result(world.home.json(&words))
}

#[test]
fn pip_installs_from_the_index_that_the_host_uses() {
    for_every_user(|world, _| {
        if !is_there(world, "pip") {
            return;
        }
        serve_wheel(&world.site);
        let installed = run(
            world,
            &[&PIP[..], &["--target", "/p", "probe-package"]].concat(),
        );
        succeeded(&installed);
        assert_eq!(installed["decision"]["action"], "allow_with_checkpoint");
        let allowed = &installed["network"]["allowed"];
        assert!(
            has(
                allowed,
                "pypi.example.test",
                Some(443),
                "pypi.example.test:443"
            ),
            "{allowed:#}"
        );
        let read = succeeded(&world.run("none", &["cat", "/p/probe_package.py"])).to_owned();
        assert!(read.contains("from the index"));
        // The index got the password, and the command did not.
        assert!(
            world.site.heads.has("authorization: basic"),
            "{:?}",
            world.site.heads.all()
        );
        let env = run(world, &["env"]);
        let shown = succeeded(&env);
        assert!(
            shown.contains("PIP_INDEX_URL=https://pypi.example.test/simple/"),
            "{shown}"
        );
        assert!(!shown.contains(CANARY), "{shown}");
    });
}

#[test]
fn the_list_shows_what_registries_are() {
    for_every_user(|world, _| {
        let home = &world.home;
        serve_crates(&world.site, "files.example.test");
        let set = home.json(&["network", "set", "registries,example.test"]);
        assert_eq!(set["hosts"], json!(["registries", "example.test"]));
        let shown = home.json(&["network", "show"]);
        let hosts = shown["registries"]["hosts"].as_array().unwrap();
        let expected = [
            ("pypi.example.test:443", "pip", "configuration", true),
            ("npm.example.test:443", "npm", "configuration", true),
            ("scoped.example.test:443", "npm", "configuration", false),
            ("crates.example.test:443", "cargo", "configuration", false),
            ("files.example.test:443", "cargo", "index", false),
        ];
        for (host, tool, from, credentials) in expected {
            let item =
                json!({"host": host, "tool": tool, "from": from, "credentials": credentials});
            assert!(hosts.contains(&item), "{item}: {shown:#}");
        }
        let text = home.ok(&["network", "show"]);
        let line =
            "pypi.example.test:443 (in the configuration of pip, with the credentials of pip)";
        assert!(text.contains(line), "{text}");
        assert!(!text.contains(CANARY) && !shown.to_string().contains(CANARY));
        // Widening is the owner's, narrowing anybody's.
        let denied = agent(home, &["network", "deny", "registries"]);
        assert_eq!(denied["hosts"], json!(["example.test"]), "{denied:#}");
        for words in [
            &["network", "set", "registries,example.test"][..],
            &["exec", "--allow-registries", "--", "true"],
            &["exec", "--network", "registries", "--", "true"],
        ] {
            let refused = agent(home, words);
            assert!(
                refused.to_string().contains("owner"),
                "{words:?}: {refused:#}"
            );
        }
        home.ok(&["vault", "set", "network=registries"]);
        assert!(agent(home, &["exec", "--", "true"])["result"].is_object());
    });
}

#[test]
fn registries_are_for_reading_and_for_no_other_host() {
    for_every_user(|world, _| {
        let curl = |words: &[&str]| run(world, &[&["curl", "-sS", "-m", "20"], words].concat());
        let url = "https://pypi.example.test/";
        assert_eq!(succeeded(&curl(&[url])), "hello");
        for method in ["POST", "PUT", "DELETE", "PATCH", "TRACE"] {
            let refused = curl(&["-X", method, url]);
            assert!(
                succeeded(&refused).contains("default:request-not-allowed"),
                "{refused:#}"
            );
        }
        let seen = world.site.seen.all();
        assert!(seen.iter().all(|line| line.starts_with("GET ")), "{seen:?}");
        // Plain HTTP to it is another port, which nobody listed.
        let plain = curl(&["http://pypi.example.test/"]);
        assert!(!succeeded(&plain).contains("hello"), "{plain:#}");
        // What a vault says adds nothing.
        let evil = "https://evil.example.test/";
        world.home.ok(&["mkdir", "-p", "/home/agent/.config/pip"]);
        world.home.ok(&[
            "write",
            "/home/agent/.config/pip/pip.conf",
            &format!("[global]\nindex-url = {evil}simple\n"),
        ]);
        world
            .home
            .ok(&["write", "/.npmrc", &format!("registry={evil}\n")]);
        assert_ne!(curl(&[evil])["exit_code"], 0);
        let shown = world.home.ok(&["network", "set", "registries"]);
        assert!(!shown.contains("evil"));
        assert!(!world.home.ok(&["network", "show"]).contains("evil"));
        // Listed by name as well, it is for every request. The credentials still are for reading.
        let both = "registries,pypi.example.test";
        let put = world.run(both, &["curl", "-sS", "-X", "PUT", "-d", "x", url]);
        succeeded(&put);
        let put = world
            .site
            .heads
            .all()
            .into_iter()
            .find(|head| head.starts_with("put"));
        assert!(!put.unwrap().contains("authorization"));
    });
}

/// A registry that sends a client elsewhere, or repeats what it was sent, gives nothing away.
#[test]
fn credentials_stay_with_their_host_and_are_masked() {
    for_every_user(|world, _| {
        let curl = |words: &[&str]| run(world, &[&["curl", "-sS", "-m", "20"], words].concat());
        let other = "https://scoped.example.test/echo";
        world.site.redirect("/away", other);
        let away = curl(&["-L", "https://pypi.example.test/away"]);
        let echoed = succeeded(&away).to_lowercase();
        assert!(echoed.contains("host: scoped.example.test"), "{echoed}");
        assert!(!echoed.contains("authorization"), "{echoed}");
        for (host, word) in [("pypi", "basic "), ("npm", "bearer ")] {
            let url = format!("https://{host}.example.test/echo");
            let echo = curl(&["-H", "Authorization: mine", &url]);
            let shown = succeeded(&echo).to_lowercase();
            assert!(shown.contains(&format!("authorization: {word}")), "{shown}");
            assert!(
                shown.contains("****") && !shown.contains("canary"),
                "{shown}"
            );
            assert!(echo["masked"].as_u64().unwrap() > 0, "{echo:#}");
        }
        world.home.ok(&["daemon", "stop"]);
        let needle = CANARY.as_bytes();
        let mut waiting = vec![world.home.avfs_home()];
        while let Some(dir) = waiting.pop() {
            for item in fs::read_dir(dir).unwrap().map(Result::unwrap) {
                match item.file_type().unwrap() {
                    kind if kind.is_dir() => waiting.push(item.path()),
                    kind if kind.is_file() => {
                        let bytes = fs::read(item.path()).unwrap();
                        let found = bytes.windows(needle.len()).any(|part| part == needle);
                        assert!(!found, "{}", item.path().display());
                    }
                    _ => {}
                }
            }
        }
    });
}
