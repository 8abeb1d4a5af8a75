//! Programs that use the library: those in `examples/`, and one outside the workspace.

use crate::common::{Home, avfs, built};
use avfs_testkit::Person;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A program of `examples/`, which cargo builds with the tests.
fn example(name: &str) -> PathBuf {
    let dir = std::env::var_os("AVFS_TEST_EXAMPLES").map(PathBuf::from);
    dir.unwrap_or_else(|| built().join("examples")).join(name)
}

fn said(output: &Output) -> String {
    let out = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success(),
        "{}: {out}{}",
        output.status,
        String::from_utf8_lossy(&output.stderr)
    );
    out.into_owned()
}

fn ok(home: &Home, words: &[&str]) -> String {
    said(&home.program(avfs()).args(words).output().unwrap())
}

#[test]
fn the_five_lines_run() {
    let home = Home::new();
    let project = home.path().join("project");
    std::fs::create_dir_all(project.join("src")).unwrap();
    let manifest = "[package]\nname = \"tiny\"\nedition = \"2024\"\n\n[lib]\ndoctest = false\n";
    std::fs::write(project.join("Cargo.toml"), manifest).unwrap();
    let source = "#[test]\nfn it_holds() {\n    assert_eq!(1 + 1, 2);\n}\n";
    std::fs::write(project.join("src/lib.rs"), source).unwrap();
    ok(&home, &["vault", "create", "myproject"]);
    let project = project.to_str().unwrap();
    ok(
        &home,
        &["--vault", "myproject", "import", project, "/workspace"],
    );
    let has_cargo = [
        "proxy",
        "exec",
        "--vault",
        "myproject",
        "--",
        "cargo",
        "--version",
    ];
    if !home
        .program(avfs())
        .args(has_cargo)
        .output()
        .unwrap()
        .status
        .success()
    {
        eprintln!("SKIPPED: no cargo that a sandbox can be lent");
        return;
    }
    let out = said(&home.program(example("five_lines")).output().unwrap());
    assert!(out.starts_with("0 [\"/workspace/Cargo.lock\""), "{out}");
    let checkpoints = ok(&home, &["--vault", "task-001", "checkpoint", "list"]);
    assert!(checkpoints.contains("before-refactor"), "{checkpoints}");
}

/// What is shown is what is run.
#[test]
fn the_documents_show_the_five_lines() {
    let example = include_str!("../../examples/five_lines.rs");
    let (_, body) = example.split_once("fn main()").unwrap();
    let lines: Vec<&str> = body.lines().skip(1).take(5).map(str::trim).collect();
    assert!(lines[0].starts_with("let avfs") && lines[4].starts_with("println!"));
    let documents = [
        include_str!("../../src/lib.rs"),
        include_str!("../../../../docs/library.md"),
    ];
    for text in documents {
        let shown = |line: &str| {
            text.lines()
                .any(|it| it.trim_start_matches("//!").trim() == line)
        };
        for line in &lines {
            assert!(shown(line), "{line}");
        }
    }
}

#[test]
fn a_command_is_approved_while_it_streams() {
    let home = Home::new();
    let passphrase = "for this test alone";
    let avfs = home.builder().connect().unwrap();
    avfs.setup_approvals(passphrase, None).unwrap();
    let vault = avfs.create_vault("v").unwrap();
    let rule = "[[rule]]\ncommand = [\"touch\"]\naction = \"require_approval\"\n";
    vault.set_policy(None, Some(rule)).unwrap();
    let run = |typed: &str| {
        let mut program = home.program(example("approval"));
        program.args(["v", "echo begun; touch /made; echo done"]);
        let mut person = Person::start(program);
        person.answer("passphrase", typed);
        let (status, out) = person.end();
        assert!(status.success(), "{out}");
        out.replace("\r\n", "\n")
    };
    let out = run(passphrase);
    assert!(out.contains("begun\ndone\n"), "{out}");
    assert!(out.ends_with("-> 0 require_approval\n"), "{out}");
    assert!(vault.exists("/made").unwrap());
    vault.rm("/made").unwrap();
    let out = run("a guess");
    assert!(
        out.contains("the passphrase is wrong") && !out.contains("begun\n"),
        "{out}"
    );
    assert!(!vault.exists("/made").unwrap());
}

#[test]
fn an_embedded_home_needs_no_avfs() {
    let home = Home::new();
    let mut program = home.program(example("embedded"));
    program
        .env_remove("AGENTVFS_BIN")
        .env("PATH", "/usr/bin:/bin");
    let out = said(&program.arg(home.path().join("own")).output().unwrap());
    let expected = "first: 1 []\nsecond: 1 []\nthird: 0 [\"/sorted\"]\nada\nzoe\n";
    assert_eq!(out, expected);
}

/// Built as somebody else would: a workspace of its own that names the library by its path.
#[test]
fn a_program_outside_the_workspace_builds_and_runs() {
    if std::env::var_os("AVFS_TEST_BIN").is_some() {
        eprintln!("SKIPPED: the checkout cannot be built from here");
        return;
    }
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
    let top = manifest.ancestors().nth(2).unwrap();
    let home = Home::new();
    let fixture = home.path().join("outside");
    std::fs::create_dir_all(fixture.join("src")).unwrap();
    let read = |path: PathBuf| std::fs::read_to_string(path).unwrap();
    let library = format!("path = {:?}", manifest.display().to_string());
    let cargo = read(manifest.join("tests/outside/Cargo.toml"));
    let cargo = cargo.replace("path = \"../..\"", &library);
    // Compiled as in the workspace and with its versions: what was built for that is used again.
    let workspace = read(top.join("Cargo.toml"));
    let (_, profile) = workspace.split_once("[profile.dev]").unwrap();
    let (profile, _) = profile.split_once("[profile.release]").unwrap();
    let cargo = format!("{cargo}\n[profile.dev]{profile}{}", unoptimised(top));
    std::fs::write(fixture.join("Cargo.toml"), cargo).unwrap();
    std::fs::copy(top.join("Cargo.lock"), fixture.join("Cargo.lock")).unwrap();
    let source = read(manifest.join("tests/outside/src/main.rs"));
    std::fs::write(fixture.join("src/main.rs"), source).unwrap();
    let target = built().parent().unwrap().to_owned();
    let status = Command::new(env!("CARGO"))
        .args(["build", "--quiet", "--offline"])
        .current_dir(&fixture)
        .env("CARGO_TARGET_DIR", &target)
        // It is built once.
        .env("CARGO_INCREMENTAL", "0")
        .status();
    assert!(status.unwrap().success(), "it builds");
    let mut program = home.program(target.join("debug/outside"));
    program
        .env_remove("AGENTVFS_BIN")
        .env("PATH", "/usr/bin:/bin");
    let out = said(&program.arg(home.path().join("own")).output().unwrap());
    assert_eq!(out, "0 [\"/made\"]\n");
}

/// To a workspace of its own, ours are dependencies like others, which are optimised unless each is named.
fn unoptimised(top: &Path) -> String {
    let rooms = std::fs::read_dir(top.join("crates")).unwrap();
    let manifests = rooms.map(|room| room.unwrap().path().join("Cargo.toml"));
    let names = manifests.map(|manifest| {
        let text = std::fs::read_to_string(manifest).unwrap();
        let name = text.lines().find_map(|line| line.strip_prefix("name = "));
        name.unwrap().to_owned()
    });
    let room = |name| format!("[profile.dev.package.{name}]\nopt-level = 0\ndebug = false\n");
    names.map(room).collect()
}
