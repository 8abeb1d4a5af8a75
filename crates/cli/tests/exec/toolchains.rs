//! Versions that a project pins: taken from what the host has, or refused with the reason.

use crate::AVFS;
use avfs_testkit::Home;
use serde_json::Value;
use std::fs;
use std::os::unix::fs::PermissionsExt;

/// Versions that say who they are, in the places where version managers have them.
const VERSIONS: [(&str, &[&str]); 8] = [
    (
        ".rustup/toolchains/stable-x86_64-unknown-linux-gnu/bin",
        &["cargo", "rustc"],
    ),
    (
        ".rustup/toolchains/nightly-x86_64-unknown-linux-gnu/bin",
        &["cargo", "rustc"],
    ),
    (".nvm/versions/node/v18.1.0/bin", &["node"]),
    (
        ".local/share/fnm/node-versions/v20.2.0/installation/bin",
        &["node"],
    ),
    (
        ".pyenv/versions/3.7.1/bin",
        &["python3", "python3.7", "own-tool"],
    ),
    (".asdf/installs/python/3.8.2/bin", &["python", "own-tool"]),
    (".local/share/mise/installs/node/16.3.0/bin", &["node"]),
    ("sdk/go9.9.9/bin", &["go"]),
];

fn add_version(home: &Home, dir: &str, programs: &[&str]) {
    let bin = home.user_home().join(dir);
    fs::create_dir_all(&bin).unwrap();
    for program in programs {
        let path = bin.join(program);
        let script = "#!/bin/sh\necho \"$0 $*\"\n[ -z \"$THEN\" ] || exec $THEN\n";
        fs::write(&path, script).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }
}

/// Homes with these versions, and a vault.
fn homes() -> Vec<Home> {
    let homes = Home::of_every_user(AVFS);
    for home in &homes {
        for (dir, programs) in VERSIONS {
            add_version(home, dir, programs);
        }
        let settings = home.user_home().join(".rustup/settings.toml");
        fs::write(settings, "default_toolchain = \"stable\"\n").unwrap();
        fs::write(home.user_home().join("sdk/go9.9.9/VERSION"), "go9.9.9\n").unwrap();
        home.ok(&["vault", "create", "v"]);
        home.ok(&["mkdir", "/workspace"]);
    }
    homes
}

/// What a shell says in a new directory `/workspace/in` with these files above it.
fn with_files(home: &Home, files: &[(&str, &str)], command: &str) -> Value {
    home.shell("rm -rf /workspace/* /workspace/.[a-z]*; mkdir -p /workspace/in");
    for (name, text) in files {
        home.ok(&["write", &format!("/workspace/{name}"), text]);
    }
    home.shell(&format!("cd in && {command}"))["result"].take()
}

/// Files with their text, a command, and how what it says ends.
type Case = (
    &'static [(&'static str, &'static str)],
    &'static str,
    &'static str,
);

#[test]
fn a_pin_takes_that_version() {
    let cases: [Case; 14] = [
        (
            &[],
            "cargo build",
            "toolchains/stable-x86_64-unknown-linux-gnu/bin/cargo build",
        ),
        (
            &[],
            "cargo +nightly x",
            "toolchains/nightly-x86_64-unknown-linux-gnu/bin/cargo x",
        ),
        (
            &[("rust-toolchain", "nightly\n")],
            "cargo x",
            "nightly-x86_64-unknown-linux-gnu/bin/cargo x",
        ),
        (
            &[(
                "rust-toolchain.toml",
                "[toolchain]\nchannel = \"nightly\"\n",
            )],
            "rustc x",
            "nightly-x86_64-unknown-linux-gnu/bin/rustc x",
        ),
        (
            &[("rust-toolchain", "nightly\n")],
            "RUSTUP_TOOLCHAIN=stable cargo x",
            "stable-x86_64-unknown-linux-gnu/bin/cargo x",
        ),
        (&[(".nvmrc", "v18\n")], "node x", "v18.1.0/bin/node x"),
        (
            &[(".nvmrc", "lts/iron\n")],
            "node x",
            "v20.2.0/installation/bin/node x",
        ),
        (
            &[(".node-version", "16.3.0")],
            "node x",
            "node/16.3.0/bin/node x",
        ),
        (
            &[(".python-version", "3.7\n")],
            "python x",
            "versions/3.7.1/bin/python3 x",
        ),
        (
            &[(".python-version", "3.6\n3.8.2\n")],
            "python3 x",
            "python/3.8.2/bin/python x",
        ),
        (
            &[(".python-version", "3.8.2\n")],
            "own-tool x",
            "python/3.8.2/bin/own-tool x",
        ),
        (
            &[(".python-version", "3.8.2\n")],
            "python3.7 x",
            "versions/3.7.1/bin/python3.7 x",
        ),
        (
            &[(".tool-versions", "ruby 1.0\nnodejs 18.1.0\npython 3.7.1\n")],
            "node x",
            "v18.1.0/bin/node x",
        ),
        (
            &[("go.mod", "module a\n\ngo 1.20\ntoolchain go9.9.1\n")],
            "go x",
            "sdk/go9.9.9/bin/go x",
        ),
    ];
    for home in homes() {
        for (files, command, expected) in cases {
            let result = with_files(&home, files, command);
            let said = result["stdout"].as_str().unwrap().trim_end();
            assert!(said.ends_with(expected), "{files:?} {command}: {result:#}");
        }
    }
}

#[test]
fn a_pin_holds_wherever_the_tool_is_called() {
    for home in homes() {
        let pin = ("rust-toolchain", "nightly");
        let make = ("Makefile", "all:\n\t@cargo x\n");
        let made = with_files(&home, &[pin, make], "make -s -C ..");
        let text = made["stdout"].as_str().unwrap();
        assert!(
            text.contains("nightly-x86_64-unknown-linux-gnu/bin/cargo x"),
            "{made:#}"
        );
        // The outermost call decides: what it builds may have files of its own.
        let nested = "mkdir dep && echo stable > dep/rust-toolchain && echo 'cd dep && rustc y' > then && \
                      THEN='env THEN= sh then' cargo x";
        let text = with_files(&home, &[pin], nested);
        let text = text["stdout"].as_str().unwrap();
        assert!(
            text.contains("nightly-x86_64-unknown-linux-gnu/bin/rustc y"),
            "{text}"
        );
        // Without a shell, too.
        let argv = home.json(&["exec", "--cwd", "/workspace/in", "--", "cargo", "z"]);
        let text = argv["result"]["stdout"].as_str().unwrap();
        assert!(
            text.ends_with("nightly-x86_64-unknown-linux-gnu/bin/cargo z\n"),
            "{argv:#}"
        );
    }
}

#[test]
fn a_version_that_is_not_there_is_refused_with_the_fix_and_taken_once_it_is() {
    let cases = [
        (
            "rust-toolchain",
            "nightly-2020-01-01",
            "cargo",
            "rustup toolchain install nightly-2020-01-01",
        ),
        (".nvmrc", "4.5.6", "node", "nvm install 4.5.6"),
        (".python-version", "3.1.7", "python3", "pyenv install 3.1.7"),
        ("go.mod", "toolchain go99.1", "go", "go99.1 download"),
    ];
    for home in homes() {
        for (file, text, program, fix) in cases {
            let result = with_files(&home, &[(file, text)], &format!("{program} x"));
            assert_eq!(result["exit_code"], 126, "{result:#}");
            assert_eq!(result["stdout"], "", "{result:#}");
            let why = result["stderr"].as_str().unwrap();
            let place = format!("/workspace/{file}");
            for part in [&place, fix, "which this host does not have"] {
                assert!(why.contains(part), "{part}: {why}");
            }
        }
        // The daemon knows nothing of it, and need not be started again.
        add_version(&home, ".nvm/versions/node/v4.5.6/bin", &["node"]);
        let result = with_files(&home, &[(".nvmrc", "4.5.6")], "node x");
        let said = result["stdout"].as_str().unwrap();
        assert!(said.ends_with("node/v4.5.6/bin/node x\n"), "{result:#}");
    }
}

/// What a vault says is never a path of the host, whatever it looks like.
#[test]
fn hostile_pins_run_nothing() {
    let long = "1".repeat(70 << 10);
    let cases = [
        ("rust-toolchain", "../../../bin", "cargo"),
        ("rust-toolchain", "/usr", "cargo"),
        (
            "rust-toolchain.toml",
            "[toolchain]\npath = \"/workspace/evil\"\n",
            "cargo",
        ),
        (
            "rust-toolchain.toml",
            "[toolchain]\nchannel = \"stable/../nightly\"\n",
            "cargo",
        ),
        (".nvmrc", "\u{1b}[2Jv18", "node"),
        (".nvmrc", &long, "node"),
        (".python-version", "..", "python3"),
        (".tool-versions", "python path:/workspace/evil\n", "python3"),
        ("go.mod", "toolchain ../../go\n", "go"),
    ];
    for home in homes() {
        for (file, text, program) in cases {
            let evil = "mkdir -p ../evil/bin && ln -s /bin/echo ../evil/bin/cargo; ";
            let result = with_files(&home, &[(file, text)], &format!("{evil} {program} x"));
            assert_eq!(result["exit_code"], 126, "{file} {result:#}");
            assert_eq!(result["stdout"], "", "{file} {result:#}");
            let why = result["stderr"].as_str().unwrap();
            assert!(why.contains(file) && !why.contains('\u{1b}'), "{why:?}");
        }
        // Neither waited for nor read.
        for make in [
            "mkfifo ../.nvmrc",
            "mkdir ../.nvmrc",
            "ln -s /dev/zero ../.nvmrc",
        ] {
            let result = with_files(&home, &[], &format!("{make} && node x"));
            assert_ne!(result["exit_code"], 126, "{make}: {result:#}");
        }
    }
}

#[test]
fn versions_are_lent_read_only_and_python_has_both_names() {
    for home in homes() {
        let place = home.user_home().join(".nvm/versions/node/v18.1.0/bin");
        let place = place.to_str().unwrap();
        let result = home.shell(&format!(
            "touch {place}/x; echo >> {place}/node; rm -r {place}; echo $?"
        ));
        assert_eq!(result["result"]["stdout"], "1\n", "{result:#}");
        assert!(
            !home
                .user_home()
                .join(".nvm/versions/node/v18.1.0/bin/x")
                .exists()
        );
        let system =
            "PYENV_VERSION=system python -c 'print(1)'; PYENV_VERSION=system python3 -c 'print(2)'";
        let result = home.shell(system);
        assert_eq!(result["result"]["stdout"], "1\n2\n", "{result:#}");
    }
}
