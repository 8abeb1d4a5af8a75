//! Answers of registries are downloaded once for all vaults: real package managers, each in a vault of its own.

use crate::clients::with_toolchains;
use crate::host_registries::{CANARY, PIP, for_every_user, run, with_registries};
use crate::registries::{WHEEL_NAME, serve_crates, serve_npm, serve_wheel, write_project};
use crate::{World, is_there, result, succeeded};
use serde_json::{Value, json};

/// What files that never change are served with.
const LONG: &str = "Cache-Control: public, max-age=31536000, immutable\r\n";

/// Runs words in a vault that may read from registries.
fn run_in(world: &World, vault: &str, words: &[&str]) -> Value {
    let options = ["exec", "--vault", vault, "--allow-registries", "--env"];
    let more = ["CARGO_HOME=/tmp/cargo", "--"];
    result(world.home.json(&[&options[..], &more, words].concat()))
}

/// How many bytes a command got that had been downloaded before.
fn cached(result: &Value) -> u64 {
    let allowed = result["network"]["allowed"].as_array().unwrap();
    allowed
        .iter()
        .filter_map(|attempt| attempt["cached"].as_u64())
        .sum()
}

#[test]
fn ten_forks_download_once() {
    for_every_user(|world, _| {
        if !is_there(world, "pip") {
            return;
        }
        // As many registries do, this one says nothing about how long its files are good.
        serve_wheel(&world.site);
        let file = format!("/files/{WHEEL_NAME}");
        let forks: Vec<String> = (0..10).map(|number| format!("fork{number}")).collect();
        for fork in &forks {
            world.home.ok(&["vault", "fork", "v", fork]);
        }
        std::thread::scope(|scope| {
            for fork in &forks {
                scope.spawn(move || {
                    let words = [&PIP[..], &["--target", "/p", "probe-package"]].concat();
                    succeeded(&run_in(world, fork, &words));
                });
            }
        });
        assert_eq!(world.site.count(&file), 1, "{:?}", world.site.seen.all());
        // Without the server, a file whose name has its version is still there.
        world.site.stop();
        let url = format!("https://pypi.example.test{file}");
        let words = [&PIP[..], &["--target", "/q", &url]].concat();
        let warm = run_in(world, "v", &words);
        succeeded(&warm);
        assert!(cached(&warm) > 0, "{warm:#}");
        let shown = world.home.json(&["network", "cache", "show"]);
        assert!(shown["answers"].as_u64().unwrap() >= 1, "{shown}");
        // No command sees the directory.
        let dir = world.home.avfs_home().join("downloads");
        let look = run(world, &["ls", dir.to_str().unwrap()]);
        assert_ne!(look["exit_code"], 0);
        let cleared = world.home.json(&["network", "cache", "clear"]);
        assert_eq!(cleared["answers"], shown["answers"]);
        assert_ne!(
            run_in(world, "v", &[&PIP[..], &["--target", "/r", &url]].concat())["exit_code"],
            0
        );
    });
}

#[test]
fn npm_installs_cold_and_warm_without_being_let_to_audit() {
    for_every_user(|world, _| {
        if !is_there(world, "npm") {
            return;
        }
        serve_npm(&world.site, "npm.example.test");
        world.site.put_on_all(LONG);
        let words = [
            "npm",
            "install",
            "--no-fund",
            "--audit",
            "--fetch-retries=0",
        ];
        let more = ["--cache=/tmp/npm", "--prefix", "/n", "probe"];
        let install = [&words[..], &more].concat();
        let cold = run_in(world, "v", &install);
        succeeded(&cold);
        let denied = cold["network"]["denied"].as_array().unwrap();
        let rule = "default:request-not-allowed";
        assert!(denied.iter().any(|it| it["rule"] == rule), "{cold:#}");
        assert!(
            !world
                .site
                .seen
                .all()
                .iter()
                .any(|line| line.starts_with("POST"))
        );
        let bearer = format!("authorization: bearer {CANARY}");
        assert!(
            world.site.heads.has(&bearer),
            "{:?}",
            world.site.heads.all()
        );
        world.home.ok(&["vault", "create", "w"]);
        world.site.stop();
        let warm = run_in(world, "w", &install);
        succeeded(&warm);
        assert!(cached(&warm) > 0, "{warm:#}");
        let read = world
            .home
            .ok(&["cat", "--vault", "w", "/n/node_modules/probe/index.js"]);
        assert!(read.contains("from the registry"));
    });
}

#[test]
fn cargo_builds_cold_and_warm() {
    // Only this user's own toolchain can be lent.
    with_registries(with_toolchains(), |world, _| {
        if !is_there(world, "cargo") {
            return;
        }
        serve_crates(&world.site, "files.example.test");
        let config = json!({
            "dl": "https://crates.example.test/dl/{crate}-{version}.crate", "auth-required": true
        });
        world.site.put("/index/config.json", config.to_string());
        world.site.put_on_all(LONG);
        write_project(world);
        world.home.ok(&["vault", "fork", "v", "w"]);
        let cold = run_in(world, "v", &["cargo", "run", "-q"]);
        succeeded(&cold);
        let token = format!("authorization: {CANARY}");
        assert!(world.site.heads.has(&token), "{:?}", world.site.heads.all());
        world.site.stop();
        let warm = run_in(world, "w", &["cargo", "run", "-q"]);
        succeeded(&warm);
        assert!(cached(&warm) > 0, "{warm:#}");
    });
}

/// What `doctor` says about what is kept.
fn doctor(world: &World, words: &[&str]) -> (bool, Value) {
    let mut command = world.home.command(&[&["--json", "doctor"], words].concat());
    let output = command.output().unwrap();
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    (output.status.success(), report["downloads"].clone())
}

#[test]
fn doctor_knows_what_is_kept() {
    use std::os::unix::fs::PermissionsExt;
    for_every_user(|world, _| {
        assert_eq!(doctor(world, &[]), (true, Value::Null));
        world.site.put("/files/probe-1.0.tar.gz", "kept");
        let url = "https://pypi.example.test/files/probe-1.0.tar.gz";
        let get = || succeeded(&run_in(world, "v", &["curl", "-sSf", url])).to_owned();
        assert_eq!(get(), "kept");
        assert_eq!(get(), "kept");
        let (fine, kept) = doctor(world, &[]);
        assert!(fine, "{kept}");
        assert_eq!(
            (&kept["answers"], &kept["damaged"], &kept["exposed"]),
            (&json!(1), &json!(0), &json!(0))
        );
        // Others could read it.
        let dir = world.home.avfs_home().join("downloads");
        let mode =
            |mode| std::fs::set_permissions(&dir, std::fs::Permissions::from_mode(mode)).unwrap();
        mode(0o755);
        let (fine, open) = doctor(world, &[]);
        assert!(!fine && open["exposed"] == 1, "{open}");
        let (fine, closed) = doctor(world, &["--fix"]);
        assert!(fine && closed["fixed"] == true, "{closed}");
        assert_eq!(doctor(world, &[]).1["exposed"], 0);
        // A body that is not whole.
        let files = std::fs::read_dir(&dir)
            .unwrap()
            .map(|item| item.unwrap().path());
        let body = files
            .into_iter()
            .find(|path| path.extension().is_some_and(|it| it == "body"));
        std::fs::File::options()
            .write(true)
            .open(body.unwrap())
            .unwrap()
            .set_len(1)
            .unwrap();
        let (fine, damaged) = doctor(world, &[]);
        assert!(!fine && damaged["damaged"] == 1, "{damaged}");
        let said = world.home.command(&["doctor"]).output().unwrap();
        assert!(
            String::from_utf8_lossy(&said.stdout).contains("avfs fsck"),
            "{said:?}"
        );
        world.home.ok(&["fsck"]);
        let (fine, none) = doctor(world, &[]);
        assert!(fine && none["answers"] == 0, "{none}");
    });
}
