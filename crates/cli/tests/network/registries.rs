//! Package managers against registries that are served from files.

use crate::clients::with_toolchains;
use crate::servers::Site;
use crate::{WITHOUT_VARIABLES, World, behind_proxy, behind_proxy_with, result, succeeded};
use avfs_testkit::skip;
use ring::digest::{SHA256, digest};
use serde_json::{Value, json};
use std::process::Command;

/// Runs a script of the host that writes files; gives what it wrote to a file.
fn made(program: &str, option: &str, script: &str, file: &str) -> Vec<u8> {
    let dir = tempfile::Builder::new().tempdir_in("/tmp").unwrap();
    let mut command = Command::new(program);
    let output = command
        .args([option, script])
        .current_dir(dir.path())
        .output();
    let output = output.unwrap();
    assert!(output.status.success(), "{output:?}");
    std::fs::read(dir.path().join(file)).unwrap()
}

/// Runs a package manager with a list of one host, with or without variables; gives the result.
fn run(world: &World, host: &str, without: bool, words: &[&str]) -> Value {
    let options = [
        "exec",
        "--network",
        host,
        "--env",
        "PIP_CERT=/ca.pem",
        "--env",
        "NODE_EXTRA_CA_CERTS=/ca.pem",
    ];
    let more = [
        "--env",
        "CARGO_HTTP_CAINFO=/ca.pem",
        "--env",
        "CARGO_HOME=/tmp/cargo",
        "--",
    ];
    let before = if without { &WITHOUT_VARIABLES[..] } else { &[] };
    result(
        world
            .home
            .json(&[&options, &more[..], before, words].concat()),
    )
}

pub fn is_there(world: &World, program: &str) -> bool {
    let there = world.run("none", &[program, "--version"])["exit_code"] == 0;
    if !there {
        let user = world.home.user();
        skip(&format!(
            "no {program} in the sandbox of {user} on this machine"
        ));
    }
    there
}

const WHEEL: &str = "
import zipfile
with zipfile.ZipFile('w.whl', 'w') as wheel:
    wheel.writestr('probe_package.py', 'TEXT = \"from the index\"\\n')
    info = 'probe_package-1.0.dist-info/'
    wheel.writestr(info + 'METADATA', 'Metadata-Version: 2.1\\nName: probe-package\\nVersion: 1.0\\n')
    wheel.writestr(info + 'WHEEL', 'Wheel-Version: 1.0\\nGenerator: x\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n')
    wheel.writestr(info + 'RECORD', '')
";

/// The name of the wheel that [`serve_wheel`] serves below `/files/`.
pub const WHEEL_NAME: &str = "probe_package-1.0-py3-none-any.whl";

pub fn serve_wheel(site: &Site) {
    let wheel = made("python3", "-c", WHEEL, "w.whl");
    site.put(
        "/simple/probe-package/",
        format!("<a href=\"/files/{WHEEL_NAME}\">{WHEEL_NAME}</a>"),
    );
    site.put(&format!("/files/{WHEEL_NAME}"), wheel);
}

#[test]
fn pip_installs_from_an_index() {
    behind_proxy(|world, _| {
        if !is_there(world, "pip") {
            return;
        }
        serve_wheel(&world.site);
        for without in [false, true] {
            let into = format!("/tmp/pip{without}");
            let install = |host: &str| {
                let index = format!("https://{host}/simple/");
                let words = [
                    "pip",
                    "install",
                    "-q",
                    "--no-cache-dir",
                    "--disable-pip-version-check",
                ];
                let more = [
                    "--retries",
                    "0",
                    "--target",
                    &into,
                    "--index-url",
                    &index,
                    "probe-package",
                ];
                run(
                    world,
                    "pypi.example.test",
                    without,
                    &[&words[..], &more].concat(),
                )
            };
            let good = install("pypi.example.test");
            succeeded(&good);
            assert_eq!(good["decision"]["action"], "allow_with_checkpoint");
            let read = ["cat", &format!("{into}/probe_package.py")];
            assert!(succeeded(&world.run("none", &read)).contains("from the index"));
            not_listed(&install("other.example.test"), "other.example.test");
        }
    });
}

const TARBALL: &str =
    "set -e; mkdir package; echo 'module.exports = \"from the registry\"' > package/index.js
echo '{\"name\":\"probe\",\"version\":\"1.0.0\"}' > package/package.json; tar czf p.tgz package";

pub fn serve_npm(site: &Site, host: &str) {
    let tarball = made("bash", "-c", TARBALL, "p.tgz");
    let url = format!("https://{host}/probe/-/probe-1.0.0.tgz");
    let version = json!({"name": "probe", "version": "1.0.0", "dist": {"tarball": url}});
    let document = json!({
        "name": "probe", "dist-tags": {"latest": "1.0.0"}, "versions": {"1.0.0": version}
    });
    site.put("/probe", document.to_string());
    site.put("/probe/-/probe-1.0.0.tgz", tarball);
}

#[test]
fn npm_installs_from_a_registry() {
    behind_proxy(|world, _| {
        if !is_there(world, "npm") {
            return;
        }
        serve_npm(&world.site, "npm.example.test");
        for without in [false, true] {
            let into = format!("/tmp/npm{without}");
            let install = |host: &str| {
                let registry = format!("--registry=https://{host}/");
                let cache = format!("--cache=/tmp/cache-{host}-{without}");
                let words = [
                    "npm",
                    "install",
                    "--no-audit",
                    "--no-fund",
                    "--fetch-retries=0",
                ];
                let more = ["--prefix", &into, &cache, &registry, "probe"];
                run(
                    world,
                    "npm.example.test",
                    without,
                    &[&words[..], &more].concat(),
                )
            };
            succeeded(&install("npm.example.test"));
            let read = ["cat", &format!("{into}/node_modules/probe/index.js")];
            assert!(succeeded(&world.run("none", &read)).contains("from the registry"));
            not_listed(&install("other.example.test"), "other.example.test");
        }
    });
}

const CRATE: &str = "set -e; mkdir -p probe-1.0.0/src; echo 'pub fn text() -> u8 { 7 }' > probe-1.0.0/src/lib.rs
printf '[package]\\nname = \"probe\"\\nversion = \"1.0.0\"\\nedition = \"2021\"\\n' > probe-1.0.0/Cargo.toml
tar czf p.crate probe-1.0.0";

pub fn serve_crates(site: &Site, host: &str) {
    let package = made("bash", "-c", CRATE, "p.crate");
    let sum = digest(&SHA256, &package);
    let sum: String = sum
        .as_ref()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    let line = json!({
        "name": "probe", "vers": "1.0.0", "deps": [], "cksum": sum, "features": {}, "yanked": false
    });
    let place = format!("https://{host}/dl/{{crate}}-{{version}}.crate");
    site.put("/index/config.json", json!({"dl": place}).to_string());
    site.put("/index/pr/ob/probe", format!("{line}\n"));
    site.put("/dl/probe-1.0.0.crate", package);
}

const MANIFEST: &str = "[package]
name = \"own\"
version = \"0.1.0\"
edition = \"2021\"
[dependencies]
probe = { version = \"1\", registry = \"r\" }
";

/// A project that needs a package of the registry.
pub fn write_project(world: &World) {
    world.home.ok(&["mkdir", "-p", "/workspace/src"]);
    world.home.ok(&["write", "/workspace/Cargo.toml", MANIFEST]);
    world.home.ok(&[
        "write",
        "/workspace/src/main.rs",
        "fn main() { assert_eq!(probe::text(), 7); }",
    ]);
}

#[test]
fn cargo_builds_with_a_registry() {
    // Only this user's own toolchain can be lent.
    behind_proxy_with(with_toolchains(), |world, _| {
        if !is_there(world, "cargo") {
            return;
        }
        serve_crates(&world.site, "crates.example.test");
        write_project(world);
        let build = |host: &str, without: bool, more: &[&str]| {
            let index = format!("registries.r.index='sparse+https://{host}/index/'");
            let words = ["cargo", "--config", &index, "--config", "net.retry=0"];
            run(
                world,
                "crates.example.test",
                without,
                &[&words[..], more].concat(),
            )
        };
        let other = "other.example.test";
        for without in [false, true] {
            not_listed(&build(other, without, &["fetch"]), other);
            world.run(
                "none",
                &["rm", "-rf", "/tmp/cargo", "/workspace/Cargo.lock"],
            );
            succeeded(&build("crates.example.test", without, &["fetch"]));
        }
        succeeded(&build("crates.example.test", true, &["run", "-q"]));
    });
}

/// It failed, and this host is all that it tried and was refused.
#[track_caller]
fn not_listed(result: &Value, host: &str) {
    assert_ne!(result["exit_code"], 0, "{result:#}");
    let denied = result["network"]["denied"].as_array().unwrap();
    assert!(!denied.is_empty(), "{result:#}");
    for attempt in denied {
        assert_eq!(
            (&attempt["host"], &attempt["rule"]),
            (&json!(host), &json!("default:not-listed"))
        );
    }
}

/// Without a network there is no answer to wait for: nothing is tried a second time after a while.
#[test]
fn package_managers_without_network_give_up_at_once() {
    behind_proxy_with(with_toolchains(), |world, proxy| {
        let registry = "https://r.example.test/";
        let lock = json!({"name": "own", "lockfileVersion": 3, "requires": true, "packages": {
            "": {"dependencies": {"probe": "1.0.0"}},
            "node_modules/probe": {"version": "1.0.0", "resolved": format!("{registry}probe-1.0.0.tgz")}
        }});
        world.home.ok(&["mkdir", "-p", "/workspace/src"]);
        world.home.ok(&[
            "write",
            "/workspace/package.json",
            r#"{"name": "own", "dependencies": {"probe": "1.0.0"}}"#,
        ]);
        world
            .home
            .ok(&["write", "/workspace/package-lock.json", &lock.to_string()]);
        world.home.ok(&["write", "/workspace/Cargo.toml", MANIFEST]);
        world
            .home
            .ok(&["write", "/workspace/src/main.rs", "fn main() {}"]);
        let index = format!("registries.r.index='sparse+{registry}'");
        let commands: [&[&str]; 3] = [
            &["npm", "ci", "--no-audit", "--cache=/tmp/npm"],
            &["cargo", "--config", &index, "build"],
            &["pip", "download", "--index-url", registry, "probe"],
        ];
        for words in commands {
            if !is_there(world, words[0]) {
                continue;
            }
            let ran = run(world, "none", false, words);
            assert_ne!(ran["exit_code"], 0, "{ran:#}");
            let denied = ran["network"]["denied"].as_array().unwrap();
            let asked = denied.iter().find(|one| one["host"] == "r.example.test");
            // One look-up of an IPv4 and an IPv6 address by each of a few requests.
            let count = asked.and_then(|one| one["count"].as_u64()).unwrap_or(0);
            assert!((1..=4).contains(&count), "{words:?}: {ran:#}");
            let said = ran["stderr"].as_str().unwrap();
            assert!(
                !said.contains("Retrying") && !said.contains("spurious"),
                "{said}"
            );
        }
        assert!(proxy.seen.all().is_empty(), "{:?}", proxy.seen.all());
    });
}
