//! The examples of README and docs do what they say.
//!
//! All blocks of a page are run by one shell, in order, in an empty `HOME` with a daemon of its own: `sh` blocks must
//! succeed, and each `$ command` of a `console` block must print what stands below it. CONTRIBUTING.md tells authors
//! how to write them.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod compare;
mod page;

use avfs_testkit::Home;
use page::Step;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

const AVFS: &str = env!("CARGO_BIN_EXE_avfs");
/// Seconds after which a page is stuck.
const PATIENCE: &str = "600";

macro_rules! pages {
    ($($test:ident $name:literal)*) => {
        const PAGES: &[&str] = &[$($name),*];
        $(
            #[test]
            fn $test() {
                hold($name, include_str!(concat!("../../../../", $name)));
            }
        )*
    };
}

pages! {
    benchmarks "BENCHMARKS.md"
    contributing "CONTRIBUTING.md"
    readme "README.md"
    security "SECURITY.md"
    agents "docs/agents.md"
    approvals "docs/approvals.md"
    cli "docs/cli.md"
    concepts "docs/concepts.md"
    damage "docs/damage.md"
    dependencies "docs/dependencies.md"
    exec "docs/exec.md"
    format "docs/format.md"
    full_disk "docs/full-disk.md"
    getting_started "docs/getting-started.md"
    glossary "docs/glossary.md"
    http "docs/http.md"
    jobs "docs/jobs.md"
    library "docs/library.md"
    limits "docs/limits.md"
    mounts "docs/mounts.md"
    network "docs/network.md"
    policy "docs/policy.md"
    posix "docs/posix.md"
    principals "docs/principals.md"
    serve "docs/serve.md"
    threat_model "docs/threat-model.md"
}

/// Pages without examples: the changelog, and pictures of the code.
const NO_EXAMPLES: [&str; 2] = ["ARCHITECTURE.md", "CHANGELOG.md"];

/// Runs a page as every user, and fails with all that is wrong with it.
fn hold(name: &str, text: &str) {
    let text = with_free_ports(text);
    let steps = page::steps(&text).unwrap_or_else(|why| panic!("{name}:{why}"));
    if steps.is_empty() {
        return;
    }
    // A mount of an ordinary user needs a user with a name.
    for home in Home::of_every_named_user(AVFS) {
        if let Err(why) = run(&home, &steps) {
            panic!("as {}: {name}:{why}", home.user());
        }
    }
}

/// A page whose servers listen on ports that nobody has: other users run the same page at the same time. The ports of examples
/// that are run begin with 170.
fn with_free_ports(text: &str) -> String {
    const BEGIN: &str = "127.0.0.1:170";
    let mut text = text.to_owned();
    while let Some(at) = text.find(BEGIN) {
        let shown = text[at..at + BEGIN.len() + 2].to_owned();
        let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        text = text.replace(&shown, &free.local_addr().unwrap().to_string());
    }
    text
}

/// The first step that does not do what it says is an error.
fn run(home: &Home, steps: &[Step]) -> Result<(), String> {
    let place = home.path().join("page");
    fs::create_dir(&place).unwrap();
    fs::set_permissions(&place, fs::Permissions::from_mode(0o777)).unwrap();
    let bin = place.join("bin");
    fs::create_dir(&bin).unwrap();
    std::os::unix::fs::symlink(binary(home), bin.join("avfs")).unwrap();
    let script = place.join("script");
    fs::write(&script, shell_text(&place, steps)).unwrap();
    let path = std::env::var("PATH").unwrap_or_default();
    let mut shell = home.host_command("timeout");
    shell
        .args([PATIENCE, "bash"])
        .arg(&script)
        .env("PATH", format!("{}:{path}", bin.display()))
        .env("USER", "you")
        .current_dir(home.user_home());
    let ended = shell.output().unwrap();
    for (number, step) in steps.iter().enumerate() {
        judge(&place, number, step)
            .map_err(|why| format!("{}: {}\n{why}\n{ended:?}", step.line, step.command))?;
    }
    Ok(())
}

/// The program that a home drives.
fn binary(home: &Home) -> PathBuf {
    let words = home.command(&[""; 0]);
    // `setpriv` starts that of another user.
    let program = words.get_args().last().unwrap_or(words.get_program());
    program.into()
}

/// A script that does each step in one shell, and notes its output and exit code in files.
fn shell_text(place: &Path, steps: &[Step]) -> String {
    let place = place.display();
    let text = |(number, step): (usize, &Step)| {
        // A block without output is a script: its first failing command ends it, and the shell.
        let mode = match step.output {
            None => "set -e",
            Some(_) => "set +e",
        };
        let Step { command, .. } = step;
        format!(
            "{mode}\n{{\n{command}\n}} > {place}/{number}.out 2>&1\necho $? > {place}/{number}.code\n"
        )
    };
    steps.iter().enumerate().map(text).collect()
}

fn judge(place: &Path, number: usize, step: &Step) -> Result<(), String> {
    let read = |what: &str| fs::read(place.join(format!("{number}.{what}")));
    let printed = read("out").map_err(|_| "it was never reached".to_owned())?;
    let printed = String::from_utf8_lossy(&printed);
    let code = read("code").map_err(|_| format!("it ended the shell:\n{printed}"))?;
    let code = String::from_utf8_lossy(&code).trim().to_owned();
    if code != step.exit_code.to_string() {
        return Err(format!("it exited with {code}:\n{printed}"));
    }
    let Some(wanted) = &step.output else {
        return Ok(());
    };
    let lines: Vec<&str> = printed.trim_end().lines().map(str::trim_end).collect();
    let end = wanted.iter().rposition(|line| !line.is_empty());
    let wanted = &wanted[..end.map_or(0, |last| last + 1)];
    match compare::fits(wanted, &lines) {
        true => Ok(()),
        false => Err(format!(
            "the page says:\n{}\nit printed:\n{printed}",
            wanted.join("\n")
        )),
    }
}

#[test]
fn every_page_is_listed() {
    let top = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let Ok(docs) = fs::read_dir(top.join("docs")) else {
        avfs_testkit::skip("the checkout cannot be read");
        return;
    };
    let names = |dir: fs::ReadDir, before: &str| -> Vec<String> {
        dir.map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .filter(|name| name.ends_with(".md") && !NO_EXAMPLES.contains(&name.as_str()))
            .map(|name| format!("{before}{name}"))
            .collect()
    };
    let mut found = names(docs, "docs/");
    found.extend(names(fs::read_dir(&top).unwrap(), ""));
    found.sort();
    assert_eq!(found, PAGES);
}

#[test]
fn a_page_that_is_wrong_fails() {
    for (page, why) in [
        (
            "```console\n$ avfs pwd\n/tmp\n```\n",
            "2: avfs pwd\nthe page says",
        ),
        (
            "```console\n$ avfs pwd\n```\n",
            "2: avfs pwd\nthe page says",
        ),
        (
            "```console\n$ avfs cat /x\n…\n```\n",
            "2: avfs cat /x\nit exited with 1",
        ),
        (
            "```sh\navfs pwd\nfalse\ntrue\n```\n",
            "2: avfs pwd\nfalse\ntrue\nit ended the shell",
        ),
        (
            "```console\n$ exit 0\n```\n```sh\ntrue\n```\n",
            "2: exit 0\nit ended the shell",
        ),
    ] {
        let home = Home::new(AVFS);
        let steps = page::steps(page).unwrap();
        let said = run(&home, &steps).unwrap_err();
        assert!(said.starts_with(why), "{page}: {said}");
    }
    let home = Home::new(AVFS);
    let steps = page::steps("```console\n$ avfs pwd\n/\n$ avfs cat /x # exits with 1\n…\n```\n");
    run(&home, &steps.unwrap()).unwrap();
}
