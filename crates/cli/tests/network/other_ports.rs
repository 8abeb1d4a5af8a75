//! Registries that the host's configuration has on other ports than 80 and 443.
//!
//! Who may lie: a command, about what it speaks on such a port, and about what it sends there.

use crate::host_registries::{CANARY, PIP};
use crate::registries::{WHEEL_NAME, serve_wheel};
use crate::servers::{HostProxy, Site};
use crate::{AVFS, WITHOUT_VARIABLES, World, has, is_there, result, succeeded};
use avfs_testkit::Home;
use serde_json::Value;
use std::fs;

/// A home whose pip has an index by https, and whose npm one by http, both on the port of the site.
fn on_other_ports(check: impl Fn(&World)) {
    for home in Home::of_every_user(AVFS) {
        let site = Site::start();
        let proxy = HostProxy::start(site.port);
        let (ca, npmrc) = (home.path().join("ca.pem"), home.path().join("npmrc"));
        fs::write(&ca, &site.trusted).unwrap();
        let registry = format!("registry=http://npm.example.test:{}/\n", site.port);
        fs::write(&npmrc, registry).unwrap();
        for file in [&ca, &npmrc] {
            home.give(file);
        }
        let index = format!(
            "https://me:{CANARY}@pypi.example.test:{}/simple/",
            site.port
        );
        let mut create = home.command(&["vault", "create", "v"]);
        let created = create
            .env("HTTP_PROXY", &proxy.url)
            .env("HTTPS_PROXY", &proxy.url)
            .env("SSL_CERT_FILE", &ca)
            .env("PIP_CONFIG_FILE", "/dev/null")
            .env("PIP_INDEX_URL", index)
            .env("npm_config_userconfig", &npmrc)
            .env("CARGO_HOME", home.path().join("no-cargo"));
        assert!(created.output().unwrap().status.success());
        home.ok(&["network", "set", "registries"]);
        check(&World { home, site });
    }
}

fn run(world: &World, words: &[&str]) -> Value {
    result(world.home.json(&[&["exec", "--"], words].concat()))
}

#[test]
fn requests_are_seen_on_the_port_of_a_registry() {
    on_other_ports(|world| {
        let port = world.site.port;
        let shown = world.home.ok(&["network", "show"]);
        let pip = format!(
            "pypi.example.test:{port} (in the configuration of pip, with the credentials of pip)"
        );
        let npm = format!("npm.example.test:{port} (in the configuration of npm)");
        assert!(shown.contains(&pip) && shown.contains(&npm), "{shown}");
        let secure = format!("https://pypi.example.test:{port}");
        let plain = format!("http://npm.example.test:{port}");
        for before in [&[][..], &WITHOUT_VARIABLES] {
            let curl = |words: &[&str]| {
                let words = [before, &["curl", "-sS", "-m", "20"], words].concat();
                run(world, &words)
            };
            // TLS is opened, so that the credentials get in.
            let echo = curl(&[&format!("{secure}/echo")]);
            let said = succeeded(&echo).to_lowercase();
            assert!(
                said.contains(&format!("host: pypi.example.test:{port}")),
                "{said}"
            );
            assert!(said.contains("authorization: basic ****"), "{said}");
            let echo = curl(&[&format!("{plain}/echo")]);
            let said = succeeded(&echo).to_lowercase();
            assert!(
                said.contains(&format!("host: npm.example.test:{port}")),
                "{said}"
            );
            assert!(!said.contains("\nauthorization"), "{said}");
            for url in [&secure, &plain] {
                let refused = curl(&["-d", "x", url]);
                let said = succeeded(&refused);
                assert!(said.contains("default:request-not-allowed"), "{refused:#}");
            }
            // Another port of the host is not listed.
            let usual = curl(&["https://pypi.example.test/"]);
            assert_ne!(usual["exit_code"], 0, "{usual:#}");
        }
        // Where TLS is spoken, nothing else is; and no other name is asked for in it.
        let bytes = format!(
            "exec 3<>/dev/tcp/pypi.example.test/{port}; echo 'PUT / HTTP/1.1' >&3; cat <&3"
        );
        let raw = run(world, &["bash", "-c", &bytes]);
        let denied = &raw["network"]["denied"];
        assert!(
            has(denied, "pypi.example.test", Some(port), "default:not-tls"),
            "{raw:#}"
        );
        let name = format!("npm.example.test:{port}:pypi.example.test:{port}");
        let hidden = [
            "curl",
            "-sSk",
            "-m",
            "20",
            "--noproxy",
            "*",
            "--connect-to",
            &name,
        ];
        let url = format!("https://npm.example.test:{port}/");
        let hidden = run(world, &[&hidden[..], &[&url]].concat());
        let denied = &hidden["network"]["denied"];
        assert!(
            has(denied, "npm.example.test", Some(port), "default:other-host"),
            "{hidden:#}"
        );
        let seen = world.site.seen.all();
        assert!(seen.iter().all(|line| line.starts_with("GET ")), "{seen:?}");
    });
}

#[test]
fn pip_installs_from_another_port_and_the_file_is_kept() {
    on_other_ports(|world| {
        if !is_there(world, "pip") {
            return;
        }
        serve_wheel(&world.site);
        for into in ["/p", "/q"] {
            let words = [&PIP[..], &["--target", into, "probe-package"]].concat();
            succeeded(&run(world, &words));
        }
        assert_eq!(world.site.count(&format!("/files/{WHEEL_NAME}")), 1);
    });
}
