//! What commands reach, through the real binary and against real servers on loopback.
//!
//! What an attacker may try, each with its test: every way to write a host, a request or a name so that a list is read
//! otherwise than it is meant, addresses of the host and of its neighbours: `attacks.rs`; protocols that no list can check: `protocols.rs`;
//! another command's list: `sharing.rs`; a wider network than the owner gave: `modes.rs`; a connection that outlives its
//! permission: `changes.rs`; requests that an allowed host may not be sent: `requests.rs`; one request
//! that two programs would read differently, and names that cannot be read: `disguises.rs`, `greetings.rs`; what the word
//! `registries` stands for, and what is kept of their answers: `host_registries.rs`, `downloads.rs`. That ordinary programs work, with and without variables about proxies: `clients.rs`, `registries.rs`.
//!
//! Names are in `example.test`. Some tests give them addresses by the file `hosts` of the home; the others have a host that
//! reaches nobody but by a proxy, so that ports 80 and 443 are served without root.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod attacks;
mod changes;
mod clients;
mod disguises;
mod downloads;
mod git_host;
mod greetings;
mod host_registries;
mod judge;
mod limits;
mod modes;
mod other_ports;
mod protocols;
mod registries;
mod requests;
mod servers;
mod sharing;

use avfs_testkit::Home;
use registries::is_there;
use serde_json::Value;
use servers::{HostProxy, Site};
use std::fs;

const AVFS: &str = env!("CARGO_BIN_EXE_avfs");

/// Starts a command without the variables that name proxies.
const WITHOUT_VARIABLES: [&str; 17] = [
    "env",
    "-u",
    "HTTP_PROXY",
    "-u",
    "http_proxy",
    "-u",
    "HTTPS_PROXY",
    "-u",
    "https_proxy",
    "-u",
    "ALL_PROXY",
    "-u",
    "all_proxy",
    "-u",
    "NO_PROXY",
    "-u",
    "no_proxy",
];

/// A home with a vault, and the servers that its commands may or may not reach.
struct World {
    home: Home,
    site: Site,
}

/// Does `check` in a fresh home of every kind of user, with these lines in its file of hosts.
fn with_names(lines: &[&str], check: impl Fn(&World)) {
    for home in Home::of_every_user_with_vault(AVFS) {
        let file = home.avfs_home().join("hosts");
        fs::write(&file, lines.join("\n")).unwrap();
        home.give(&file);
        check(&World {
            home,
            site: Site::start(),
        });
    }
}

/// Does `check` in a fresh home of every kind of user, whose host reaches others by a proxy alone.
fn behind_proxy(check: impl Fn(&World, &HostProxy)) {
    for home in Home::of_every_user(AVFS) {
        behind_proxy_with(home, &check);
    }
}

fn behind_proxy_with(home: Home, check: impl Fn(&World, &HostProxy)) {
    let site = Site::start();
    let proxy = HostProxy::start(site.port);
    begin(&home, &proxy, &site.trusted);
    home.ok(&["write", "/ca.pem", &site.trusted]);
    check(&World { home, site }, &proxy);
}

/// Starts the daemon of a home behind a proxy, with a vault. It takes this certificate for one of an authority of the host's.
fn begin(home: &Home, proxy: &HostProxy, trusted: &str) {
    let file = home.path().join("authorities-of-the-host.pem");
    fs::write(&file, trusted).unwrap();
    // The daemon gets its environment from whoever starts it.
    let mut create = home.command(&["vault", "create", "v"]);
    let created = create
        .env("HTTP_PROXY", &proxy.url)
        .env("HTTPS_PROXY", &proxy.url)
        .env("SSL_CERT_FILE", &file);
    assert!(created.output().unwrap().status.success());
}

impl World {
    /// The list that reaches the site by these names.
    fn list(&self, names: &[&str]) -> String {
        let port = self.site.port;
        let names = names.iter().map(|name| format!("{name}:{port}"));
        let all: Vec<String> = names.chain([format!("127.0.0.1:{port}")]).collect();
        all.join(",")
    }

    /// Runs words with a network; gives the result.
    fn run(&self, network: &str, words: &[&str]) -> Value {
        let words = [&["exec", "--network", network, "--"], words].concat();
        result(self.home.json(&words))
    }

    /// Runs words with a network, with and without variables that name proxies; gives both results.
    fn run_both(&self, network: &str, words: &[&str]) -> [Value; 2] {
        let without = [&WITHOUT_VARIABLES[..], words].concat();
        [self.run(network, words), self.run(network, &without)]
    }
}

/// The result in an envelope.
#[track_caller]
fn result(mut envelope: Value) -> Value {
    assert!(envelope["result"].is_object(), "{envelope:#}");
    envelope["result"].take()
}

#[track_caller]
fn succeeded(result: &Value) -> &str {
    assert_eq!(result["exit_code"], 0, "{result:#}");
    result["stdout"].as_str().unwrap()
}

/// Whether a list of attempts has one of this host, port and rule.
fn has(attempts: &Value, host: &str, port: Option<u16>, rule: &str) -> bool {
    let all = attempts.as_array().unwrap();
    all.iter().any(|attempt| {
        attempt["host"] == host
            && attempt["port"] == serde_json::json!(port)
            && attempt["rule"] == rule
    })
}

/// The binary, run by an agent.
fn agent(home: &Home, words: &[&str]) -> Value {
    let mut command = home.command(&[&["--json"], words].concat());
    let output = command.env("AVFS_CLASS", "agent").output().unwrap();
    let answer = serde_json::from_slice(&output.stdout);
    answer.unwrap_or_else(|_| panic!("{words:?}: {output:?}"))
}
