//! Package managers without a network: they fail at once, and the report says why.

use crate::{AVFS, exec};
use avfs_testkit::{Home, skip, with_vault};
use serde_json::{Value, json};

const REGISTRY: &str = "registry.example.test";
const PACKAGES: u64 = 3;
/// Each name is asked for twice, by the two kinds of addresses.
const QUESTIONS: u64 = 2;

/// A project whose lock file names packages of a registry that is not there.
fn project(home: &Home) {
    let names = (0..PACKAGES).map(|number| format!("p{number}"));
    let names: Vec<String> = names.collect();
    let wanted: Value = names
        .iter()
        .map(|name| (name.clone(), json!("1.0.0")))
        .collect();
    let root = json!({"name": "a", "version": "1.0.0", "dependencies": wanted});
    let mut packages = json!({"": root});
    for name in &names {
        packages[format!("node_modules/{name}")] = json!({
            "version": "1.0.0",
            "resolved": format!("https://{REGISTRY}/{name}/-/{name}-1.0.0.tgz"),
            "integrity": "sha512-AAAA",
        });
    }
    let lock = json!({"name": "a", "version": "1.0.0", "lockfileVersion": 3, "requires": true, "packages": packages});
    home.ok(&["mkdir", "/workspace"]);
    home.ok(&["write", "/workspace/package.json", &root.to_string()]);
    home.ok(&["write", "/workspace/package-lock.json", &lock.to_string()]);
    home.ok(&[
        "write",
        "/workspace/build.sh",
        "npm ci --no-audit --no-fund\n",
    ]);
}

fn attempts(result: &Value) -> u64 {
    let denied = result["network"]["denied"].as_array().unwrap().iter();
    let of_registry = denied.filter(|attempt| attempt["host"] == REGISTRY);
    of_registry
        .map(|attempt| attempt["count"].as_u64().unwrap())
        .sum()
}

#[test]
fn npm_tries_once_and_the_report_names_the_ways() {
    with_vault(AVFS, |home| {
        if exec(home, &["--", "npm", "--version"])["exit_code"] != 0 {
            return skip("no npm in the sandbox of this machine");
        }
        project(home);
        // By its name, and in a script that could be anything.
        for words in [
            &["--", "npm", "ci", "--no-audit"][..],
            &["--", "sh", "build.sh"],
        ] {
            let result = exec(home, words);
            assert_ne!(result["exit_code"], 0, "{result:#}");
            let tried = attempts(&result);
            assert!((1..=PACKAGES * QUESTIONS).contains(&tried), "{result:#}");
            let reason = result["decision"]["reason"].as_str().unwrap();
            for way in [
                "network is off",
                "avfs network allow",
                "registries",
                "docs/dependencies.md",
            ] {
                assert!(reason.contains(way), "{way}: {reason}");
            }
        }
        // Nothing was refused, so nothing is said.
        let result = exec(home, &["--", "npm", "ci", "--offline", "--no-audit"]);
        assert_eq!(attempts(&result), 0, "{result:#}");
        assert_eq!(result["decision"]["reason"], Value::Null, "{result:#}");
    });
}

#[test]
fn only_commands_without_any_network_are_told_not_to_repeat() {
    with_vault(AVFS, |home| {
        let show = "echo $npm_config_fetch_retries $PIP_RETRIES $CARGO_NET_RETRY";
        let said = |options: &[&str]| {
            let words = [options, &["--", "sh", "-c", show]].concat();
            exec(home, &words)["stdout"]
                .as_str()
                .unwrap()
                .trim()
                .to_owned()
        };
        assert_eq!(said(&[]), "0 0 0");
        assert_eq!(said(&["--env", "PIP_RETRIES=7"]), "0 7 0");
        assert_eq!(said(&["--network", "other.test"]), "");
        home.ok(&["vault", "set", "env.CARGO_NET_RETRY=5"]);
        assert_eq!(said(&[]), "0 0 5");
    });
}
