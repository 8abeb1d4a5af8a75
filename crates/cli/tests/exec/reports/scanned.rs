//! Reports of everyday commands that make many files: short, and all of it is equal to an independent scan.

use super::paths;
use crate::{AVFS, exec, texts};
use avfs_testkit::{Home, skip, with_vault};
use serde_json::Value;

/// Three packages with 700 files in all, packed and put into the cache; then a project that locks them.
const NODE_PROJECT: &str = r#"
set -e
mkdir -p packages project; cd packages
for name in one two three; do
  mkdir -p $name/lib/deep; cd $name
  echo "{\"name\": \"$name\", \"version\": \"1.0.0\"}" > package.json
  for i in $(seq 233); do echo "module.exports = $i;" > lib/deep/$name-$i.js; done
  npm pack --json > ../$name.json 2>/dev/null; npm cache add ./$name-1.0.0.tgz; cd ..
done
cd ../project; git init -q .; echo 'node_modules/' > .gitignore
cat > package.json <<'END'
{"name": "project", "version": "1.0.0", "dependencies": {"one": "1.0.0", "two": "1.0.0", "three": "1.0.0"}}
END
node -e '
const fs = require("fs");
const root = JSON.parse(fs.readFileSync("package.json"));
const packages = {"": root};
for (const name of ["one", "two", "three"]) {
  const packed = JSON.parse(fs.readFileSync("../packages/" + name + ".json"));
  const integrity = (Array.isArray(packed) ? packed[0] : Object.values(packed)[0]).integrity;
  packages["node_modules/" + name] = {version: "1.0.0", integrity, resolved: "https://packages.invalid/" + name + "-1.0.0.tgz"};
}
fs.writeFileSync("package-lock.json", JSON.stringify({name: "project", version: "1.0.0", lockfileVersion: 3, requires: true, packages}));'
"#;

/// Every path of the vault but the scratch directory's and what the host lends, and what is at it.
const SCAN: &str = r#"
import os, hashlib
found = {}
for top in sorted(os.listdir("/")):
    if top in ("tmp", "proc", "sys", "dev", "run", "usr", "bin", "sbin", "lib", "lib32", "lib64", "libx32", "etc", "opt", "var", "mnt", "media", "srv", "boot", "root"):
        continue
    # Toolchains in the home directory of a user of the host are lent, too.
    paths = ["/home/agent"] if top == "home" else ["/" + top]
    while paths:
        path = paths.pop()
        if not os.path.lexists(path):
            continue
        info = os.lstat(path)
        if os.path.islink(path):
            what = os.readlink(path)
        elif os.path.isdir(path):
            what = "directory"
            paths.extend(path + "/" + name for name in os.listdir(path))
        else:
            what = hashlib.sha256(open(path, "rb").read()).hexdigest()
        print(path, oct(info.st_mode), what, sep="\t")
"#;

/// A scan of the vault by a command in it, one line for each path.
fn scan(home: &Home) -> Vec<String> {
    let result = exec(
        home,
        &[
            "--readonly",
            "--output-limit",
            "4m",
            "--",
            "python3",
            "-c",
            SCAN,
        ],
    );
    assert_eq!(result["exit_code"], 0, "{}", result["stderr"]);
    assert_eq!(result["output"]["stdout"]["truncated"], false);
    let text = result["stdout"].as_str().expect("a text");
    text.lines().map(str::to_owned).collect()
}

/// The paths whose lines differ.
fn different(before: &[String], after: &[String]) -> Vec<String> {
    let only = |these: &[String], others: &[String]| {
        let others: std::collections::BTreeSet<&String> = others.iter().collect();
        let only = these.iter().filter(|line| !others.contains(line));
        let path = |line: &String| line.split('\t').next().unwrap().to_owned();
        only.map(path).collect::<Vec<String>>()
    };
    let mut paths = only(before, after);
    paths.extend(only(after, before));
    paths.sort();
    paths.dedup();
    paths
}

/// All that `avfs changes` lists of a command must be what two scans say.
fn equals_a_scan(home: &Home, result: &Value, before: &[String], after: &[String]) {
    let exec = result["exec"].as_str().expect("an id");
    let all = home.json(&["changes", exec, "--all"]);
    assert_eq!(paths(&all["changes"]), different(before, after));
    assert_eq!(
        all["ignored_changes"],
        result.get("ignored_changes").cloned().unwrap_or_default()
    );
    let ignored = all["ignored_changes"].as_object().expect("an object");
    let counted: u64 = ignored
        .values()
        .map(|it| {
            ["created", "modified", "deleted"]
                .iter()
                .map(|key| it[key].as_u64().unwrap())
                .sum::<u64>()
        })
        .sum();
    let told = result["changes_total"].as_u64().unwrap() + result["home_changes"].as_u64().unwrap();
    assert_eq!(
        all["changes_total"].as_u64().unwrap(),
        told + counted,
        "{all:#}"
    );
}

#[test]
fn npm_ci_of_many_files_is_told_in_few_words() {
    with_vault(AVFS, |home| {
        home.ok(&["mkdir", "/workspace"]);
        if exec(home, &["--", "npm", "--version"])["exit_code"] != 0 {
            return skip("no npm in the sandbox of this machine");
        }
        let made = exec(home, &["--shell", NODE_PROJECT]);
        assert_eq!(made["exit_code"], 0, "{}", made["stderr"]);
        let before = scan(home);
        let words = [
            "--cwd",
            "/workspace/project",
            "--",
            "npm",
            "ci",
            "--offline",
            "--no-audit",
            "--no-fund",
        ];
        let output = home.avfs(&[&["--json", "exec"], &words[..]].concat());
        assert!(
            output.stdout.len() < 8 << 10,
            "{} bytes",
            output.stdout.len()
        );
        let envelope: Value = serde_json::from_slice(&output.stdout).unwrap();
        let result = &envelope["result"];
        assert_eq!(result["exit_code"], 0, "{}", result["stderr"]);
        let modules = &result["ignored_changes"]["/workspace/project/node_modules/"];
        assert!(modules["created"].as_u64() > Some(700), "{result:#}");
        assert!(modules["bytes"].as_u64() > Some(10_000), "{result:#}");
        equals_a_scan(home, result, &before, &scan(home));
    });
}

/// Only this user's own toolchain can be lent.
#[test]
fn an_edit_and_a_build_list_the_edit() {
    let home = Home::new(AVFS).with_real_user_home();
    home.ok(&["vault", "create", "v"]);
    home.ok(&["mkdir", "/workspace"]);
    if exec(&home, &["--", "cargo", "--version"])["exit_code"] != 0 {
        return skip("no cargo in the sandbox of this machine");
    }
    let made = exec(
        &home,
        &[
            "--shell",
            "cargo init -q --name built --vcs git && git add -A && echo > ~/kept",
        ],
    );
    assert_eq!(made["exit_code"], 0, "{}", made["stderr"]);
    let before = scan(&home);
    let build = "sed -i s/Hello/Goodbye/ src/main.rs && cargo build -q --offline";
    let result = exec(&home, &["--shell", build]);
    assert_eq!(result["exit_code"], 0, "{}", result["stderr"]);
    assert!(
        result.to_string().len() < 8 << 10,
        "{}",
        result.to_string().len()
    );
    let changed = texts(&result["changed_files"]);
    assert!(changed.contains(&"/workspace/src/main.rs"), "{changed:?}");
    assert!(
        changed.iter().all(|path| !path.contains("/target")),
        "{changed:?}"
    );
    let target = &result["ignored_changes"]["/workspace/target/"];
    assert!(target["created"].as_u64() > Some(5), "{result:#}");
    equals_a_scan(&home, &result, &before, &scan(&home));
}
