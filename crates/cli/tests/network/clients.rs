//! Programs that fetch something: each works on a listed host with and without variables about proxies, and is refused on another.

use crate::{AVFS, WITHOUT_VARIABLES, World, behind_proxy, has, succeeded, with_names};
use avfs_testkit::{Home, skip};
use serde_json::Value;
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// A program that fetches an address, which is its last word.
struct Client {
    name: &'static str,
    words: Vec<&'static str>,
    /// Whether it can be told to trust the site's certificate.
    tls: bool,
}

const PYTHON_URLLIB: &str = "import ssl, sys, urllib.request as u
context = ssl.create_default_context(cafile='/ca.pem')
print(u.urlopen(sys.argv[1], context=context).read().decode())";
/// The copy that pip brings, which has no settings of its own.
const PYTHON_REQUESTS: &str = "import sys
from pip._vendor import requests
answer = requests.get(sys.argv[1], verify='/ca.pem')
answer.raise_for_status()
print(answer.text)";
const NODE_FETCH: &str = "fetch(process.argv[1])
  .then(answer => answer.ok ? answer.text() : Promise.reject(answer.status)).then(text => console.log(text))";
const JAVA: &str = "import java.net.*;
public class Probe {
    public static void main(String[] words) throws Exception {
        System.out.println(new String(new URL(words[0]).openStream().readAllBytes()));
    }
}
";
const GO: &str = "package main

import (
	\"fmt\"
	\"io\"
	\"net/http\"
	\"os\"
)

func main() {
	answer, err := http.Get(os.Args[1])
	if err != nil || answer.StatusCode != 200 {
		fmt.Fprintln(os.Stderr, answer, err)
		os.Exit(1)
	}
	text, _ := io.ReadAll(answer.Body)
	fmt.Println(string(text))
}
";

fn clients() -> Vec<Client> {
    let client = |name, words: &[&'static str], tls| Client {
        name,
        words: words.to_vec(),
        tls,
    };
    vec![
        client("curl", &["curl", "-sSf", "--cacert", "/ca.pem"], true),
        client("urllib", &["python3", "-c", PYTHON_URLLIB], true),
        client("requests", &["python3", "-c", PYTHON_REQUESTS], true),
        client("node", &["node", "-e", NODE_FETCH, "--"], true),
        client("java", &["java", "-Xshare:auto", "/Probe.java"], false),
        client("go", &["/probe-go"], true),
    ]
}

/// Puts in place what the clients need; gives those that this sandbox has.
fn available(world: &World, go: Option<&Path>) -> Vec<Client> {
    world.home.ok(&["write", "/Probe.java", JAVA]);
    if let Some(go) = go {
        world.home.ok(&["import", go.to_str().unwrap(), "/"]);
    }
    let mut all = clients();
    all.retain(|client| {
        let test: &[&str] = match client.name {
            "go" => &["test", "-x", "/probe-go"],
            "java" => &["java", "-version"],
            "requests" => &["python3", "-c", "import pip._vendor.requests"],
            _ => &[client.words[0], "--version"],
        };
        let there = world.run("none", test)["exit_code"] == 0;
        if !there {
            skip(&format!(
                "no {} in the sandbox of this machine",
                client.name
            ));
        }
        there
    });
    all
}

/// Clients that have IPv6 alone reach listed names too, on ports below and from 1024, and no others.
#[test]
fn a_client_of_ipv6_reaches_listed_names() {
    behind_proxy(|world, _| {
        let curl = |name: &str| {
            let url = format!("https://{name}.example.test/");
            let curl = ["curl", "-6", "-sS", "--cacert", "/ca.pem", &url];
            world.run("a.example.test", &[&WITHOUT_VARIABLES[..], &curl].concat())
        };
        let v6 = ["test", "-e", "/proc/sys/net/ipv6"];
        if world.run("none", &v6)["exit_code"] != 0 {
            return skip("no IPv6 on this machine");
        }
        let reached = curl("a");
        assert_eq!(succeeded(&reached), "hello");
        assert_eq!(curl("b")["exit_code"], 6);
        let looked = world.run("a.example.test", &["getent", "ahosts", "a.example.test"]);
        let looked = succeeded(&looked);
        assert!(
            looked.contains("198.18.") && looked.contains("fd61:7666:7300::"),
            "{looked}"
        );
        // IPv4 goes first, since the address is a unique local one (RFC 6724).
        assert!(looked.starts_with("198.18."), "{looked}");
    });
    with_names(&["127.0.0.1 a.example.test"], |world| {
        let url = format!("http://a.example.test:{}/", world.site.port);
        let curl = ["curl", "-6", "-sS", &url];
        let words = [&WITHOUT_VARIABLES[..], &curl].concat();
        let ran = world.run(&world.list(&["a.example.test"]), &words);
        if world.run("none", &["test", "-e", "/proc/sys/net/ipv6"])["exit_code"] == 0 {
            assert_eq!(succeeded(&ran), "hello");
        }
    });
}

/// A directory with a client in Go, if there is a compiler.
fn go_client() -> Option<tempfile::TempDir> {
    let dir = tempfile::Builder::new().tempdir_in("/tmp").unwrap();
    let code = dir.path().join("probe.go");
    std::fs::write(&code, GO).unwrap();
    let out = dir.path().join("out");
    std::fs::create_dir(&out).unwrap();
    let built = Command::new("go")
        .args(["build", "-o"])
        .arg(out.join("probe-go"))
        .arg(code)
        .env("CGO_ENABLED", "0")
        .env("GOCACHE", dir.path().join("cache"))
        .env("GO111MODULE", "off")
        .output();
    match built {
        Ok(output) if output.status.success() => Some(dir),
        Ok(output) => panic!("{}", String::from_utf8_lossy(&output.stderr)),
        Err(_) => {
            skip("no compiler for Go on this machine");
            None
        }
    }
}

#[test]
fn programs_reach_listed_hosts_and_no_others() {
    let go = go_client();
    let go = go.as_ref().map(|dir| dir.path().join("out"));
    behind_proxy(|world, proxy| {
        let environment = [
            "exec",
            "--network",
            "a.example.test",
            "--env",
            "SSL_CERT_FILE=/ca.pem",
            "--env",
            "NODE_EXTRA_CA_CERTS=/ca.pem",
            "--",
        ];
        for client in available(world, go.as_deref()) {
            for scheme in ["http", "https"] {
                if scheme == "https" && !client.tls {
                    continue;
                }
                let url = |name: &str| format!("{scheme}://{name}.example.test/");
                for before in [&[][..], &crate::WITHOUT_VARIABLES] {
                    let run = |name: &str| {
                        let url = url(name);
                        let words = [&environment, before, &client.words, &[&url]].concat();
                        crate::result(world.home.json(&words))
                    };
                    let what = format!("{} {scheme} {}", client.name, world.home.user());
                    let port = if scheme == "http" { 80 } else { 443 };
                    let good = run("a");
                    assert_eq!(succeeded(&good).trim(), "hello", "{what}");
                    let allowed = &good["network"]["allowed"];
                    assert!(
                        has(allowed, "a.example.test", Some(port), "a.example.test"),
                        "{what} {good:#}"
                    );
                    refused_on_other(&run("b"), &what, before.is_empty());
                }
            }
        }
        assert!(!world.site.seen.has("b.example.test"));
        assert!(!proxy.seen.has("b.example.test"), "{:?}", proxy.seen.all());
        let inside = world.run("a.example.test", &["env"]);
        assert!(!succeeded(&inside).contains(crate::HostProxy::PASSWORD));
    });
}

/// Either the name does not exist, or the proxy has refused it.
#[track_caller]
fn refused_on_other(result: &Value, what: &str, variables: bool) {
    assert_ne!(result["exit_code"], 0, "{what}: {result:#}");
    let denied = result["network"]["denied"].as_array().unwrap();
    assert!(!denied.is_empty(), "{what}: {result:#}");
    for attempt in denied {
        assert_eq!(attempt["host"], "b.example.test", "{what}: {result:#}");
        assert_eq!(attempt["rule"], "default:not-listed", "{what}");
        assert!(variables || attempt["port"].is_null(), "{what}: {result:#}");
    }
}

#[test]
fn a_refusal_names_the_command_that_would_allow_it() {
    with_names(&["127.0.0.1 a.example.test"], |world| {
        let list = world.list(&["a.example.test"]);
        let refused = world.run(&list, &["curl", "-sS", "http://b.example.test:8080/x"]);
        let problem: Value = serde_json::from_str(succeeded(&refused)).unwrap();
        assert_eq!(problem["status"], 403);
        assert_eq!(problem["rule"], "default:not-listed");
        let allow = problem["allow"].as_str().unwrap();
        assert_eq!(allow, "avfs network allow b.example.test:8080");
        // The command does what it says.
        world.home.ok(&allow.split(' ').skip(1).collect::<Vec<_>>());
        let shown = world.home.json(&["network", "show"]);
        assert_eq!(shown["hosts"][0], "b.example.test:8080");
    });
}

/// Ports from 1024 and addresses that the owner's file gives, without any proxy of the host.
#[test]
fn a_port_of_a_name_is_reached_with_and_without_variables() {
    with_names(&["127.0.0.1 a.example.test"], |world| {
        let list = world.list(&["a.example.test"]);
        let url = format!("http://a.example.test:{}/", world.site.port);
        for ran in world.run_both(&list, &["curl", "-sSf", &url]) {
            assert_eq!(succeeded(&ran), "hello");
            let attempt = &ran["network"]["allowed"][0];
            assert_eq!(attempt["host"], "a.example.test");
            assert!(attempt["received"].as_u64() > Some(5), "{attempt}");
        }
        // The file is not a way around the rule about special addresses.
        let name_alone = format!("a.example.test:{}", world.site.port);
        for ran in world.run_both(&name_alone, &["curl", "-sSf", &url]) {
            assert_ne!(ran["exit_code"], 0);
            let denied = &ran["network"]["denied"];
            let special = "default:special-address";
            assert!(
                has(denied, "a.example.test", Some(world.site.port), special),
                "{ran:#}"
            );
        }
        // A file that cannot be read is not passed over.
        std::fs::write(
            world.home.avfs_home().join("hosts"),
            "a.example.test 127.0.0.1",
        )
        .unwrap();
        let broken = world.run(&list, &["curl", "-sS", &url]);
        assert!(
            succeeded(&broken).contains("line 1: no address"),
            "{broken:#}"
        );
    });
}

/// A repository with one commit, for every user to read.
fn repository() -> tempfile::TempDir {
    let dir = tempfile::Builder::new().tempdir_in("/tmp").unwrap();
    let script = "set -e; chmod 755 .; git init -q -b main work; cd work; echo text > file; git add file
git -c user.name=a -c user.email=a@example.test commit -q -m one
cd ..; git clone -q --bare work bare.git; git -C bare.git update-server-info; touch bare.git/git-daemon-export-ok";
    let made = Command::new("bash")
        .args(["-c", script])
        .current_dir(dir.path())
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .output()
        .unwrap();
    assert!(made.status.success(), "{made:?}");
    dir
}

#[test]
fn git_fetches_over_https() {
    let repository = repository();
    behind_proxy(|world, _| {
        world
            .site
            .put_all("/r.git", &repository.path().join("bare.git"));
        let clone = |name: &str, before: &[&str]| {
            let url = format!("https://{name}.example.test/r.git");
            let options = [
                "exec",
                "--network",
                "a.example.test",
                "--env",
                "GIT_SSL_CAINFO=/ca.pem",
                "--",
            ];
            let into = format!("/tmp/{name}{}", before.len());
            let words = [&options, before, &["git", "clone", "-q", &url, &into]].concat();
            crate::result(world.home.json(&words))
        };
        for before in [&[][..], &crate::WITHOUT_VARIABLES] {
            let good = clone("a", before);
            succeeded(&good);
            assert_eq!(good["decision"]["action"], "allow_with_checkpoint");
            refused_on_other(&clone("b", before), "git", before.is_empty());
        }
    });
}

/// `git daemon` on a port of loopback. It ends with this.
struct GitDaemon {
    child: Child,
    port: u16,
}

impl GitDaemon {
    fn start(base: &Path) -> GitDaemon {
        // It cannot choose a port itself.
        let free = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = free.local_addr().unwrap().port();
        drop(free);
        let exec = Command::new("git").arg("--exec-path").output().unwrap();
        let exec = String::from_utf8(exec.stdout).unwrap();
        // Not by `git`, which would be ended in its place.
        let child = Command::new(Path::new(exec.trim()).join("git-daemon"))
            .args(["--reuseaddr", "--listen=127.0.0.1"])
            .arg(format!("--port={port}"))
            .arg(format!("--base-path={}", base.display()))
            .env("GIT_CONFIG_COUNT", "1")
            .env("GIT_CONFIG_KEY_0", "safe.directory")
            .env("GIT_CONFIG_VALUE_0", "*")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let daemon = GitDaemon { child, port };
        let is_up = || TcpStream::connect(("127.0.0.1", port)).is_ok();
        assert!(avfs_testkit::wait_for(avfs_testkit::SOON, is_up));
        daemon
    }
}

impl Drop for GitDaemon {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn git_fetches_by_its_own_protocol() {
    let repository = repository();
    let daemon = GitDaemon::start(repository.path());
    let port = daemon.port;
    with_names(&["127.0.0.1 a.example.test"], |world| {
        let list = format!("a.example.test:{port},127.0.0.1:{port}");
        let url = format!("git://a.example.test:{port}/bare.git");
        for (number, before) in [&[][..], &crate::WITHOUT_VARIABLES].iter().enumerate() {
            let into = format!("/tmp/{number}");
            let words = [before, &["git", "clone", "-q", &url, &into][..]].concat();
            succeeded(&world.run(&list, &words));
            let other = url.replace("a.example", "b.example");
            let words = [before, &["git", "ls-remote", &other][..]].concat();
            refused_on_other(&world.run(&list, &words), "git", false);
        }
    });
}

/// A home whose commands have this user's own toolchains.
pub fn with_toolchains() -> Home {
    Home::new(AVFS).with_real_user_home()
}
