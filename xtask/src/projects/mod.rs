//! `cargo xtask projects`: the tests of well-known projects, natively and in a vault, must end alike.
//!
//! Sources come from the package managers, by name. Each project is made whole once, so that its tests need no network.
//! Run by root, everything is done once more as an ordinary user.

mod catalogue;
mod fetch;
mod shell;
mod tally;
mod user;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use catalogue::{PROJECTS, Project};
use shell::Outcome;
use user::User;

const USAGE: &str = "usage: cargo xtask projects [--avfs PROGRAM] [--dir DIR] [--user NAME]... [NAME]...

Runs the tests of projects natively and in a vault, and compares their results.
  --avfs PROGRAM  the binary to use; target/release/avfs otherwise
  --dir DIR       where sources are kept and work is done; /tmp/avfs-projects otherwise
  --user NAME     as whom; this user otherwise, and for root also avfs-test, which scripts/test makes";

/// What was asked for.
struct Asked {
    avfs: PathBuf,
    dir: PathBuf,
    users: Vec<String>,
    projects: Vec<&'static Project>,
}

/// Runs what the arguments ask for. An error is a sentence, or the usage.
pub fn run(arguments: impl Iterator<Item = String>) -> Outcome<()> {
    let asked = parse(arguments)?;
    install(&asked.projects)?;
    let cache = asked.dir.join("sources");
    let mut different = Vec::new();
    for project in &asked.projects {
        println!("{}: fetching", project.name);
        let tree = fetch::fetch(project, &cache)?;
        for name in &asked.users {
            let user = User::new(name, &asked.dir, &asked.avfs)?;
            if !compare(project, &user, &tree)? {
                different.push(format!("{} as {name}", project.name));
            }
        }
    }
    if different.is_empty() {
        return Ok(());
    }
    Err(format!("different results: {}", different.join(", ")))
}

/// One run of the tests.
struct Run {
    code: i32,
    results: Vec<String>,
    seconds: f64,
    printed: String,
}

/// Whether both runs end alike. A run without a single result shows nothing, and is not alike.
fn compare(project: &Project, user: &User, tree: &Path) -> Outcome<bool> {
    let timed = |test: &dyn Fn() -> Outcome<(i32, String)>| {
        let began = Instant::now();
        let (code, printed) = test()?;
        let seconds = began.elapsed().as_secs_f64();
        let results = project.tally.of(&printed);
        Ok::<Run, String>(Run {
            code,
            results,
            seconds,
            printed,
        })
    };
    let native = timed(&|| user.test_natively(project, tree))?;
    let vault = timed(&|| user.test_in_vault(project, tree))?;
    let equal =
        !native.results.is_empty() && native.code == vault.code && native.results == vault.results;
    println!(
        "{} as {}: native exits with {} after {:.1} s, in a vault with {} after {:.1} s: {}",
        project.name,
        user.name,
        native.code,
        native.seconds,
        vault.code,
        vault.seconds,
        if equal { "equal" } else { "DIFFERENT" }
    );
    for line in native.results.iter().take(5) {
        println!("    {line}");
    }
    if !equal {
        show_difference(&native, &vault);
    }
    Ok(equal)
}

fn show_difference(native: &Run, vault: &Run) {
    let only = |these: &Run, others: &Run, word: &str| {
        let lines = these
            .results
            .iter()
            .filter(|line| !others.results.contains(line));
        for line in lines {
            println!("    only {word}: {line}");
        }
        let last: Vec<&str> = these.printed.lines().rev().take(20).collect();
        println!("    the end of what was printed {word}:");
        for line in last.iter().rev() {
            println!("        {line}");
        }
    };
    only(native, vault, "natively");
    only(vault, native, "in a vault");
}

fn parse(mut arguments: impl Iterator<Item = String>) -> Outcome<Asked> {
    let top = crate::tidy::top();
    let mut asked = Asked {
        avfs: top.join("target/release/avfs"),
        dir: "/tmp/avfs-projects".into(),
        users: Vec::new(),
        projects: Vec::new(),
    };
    while let Some(word) = arguments.next() {
        let mut value = || arguments.next().ok_or(format!("{word} needs a value"));
        match word.as_str() {
            "--avfs" => asked.avfs = value()?.into(),
            "--dir" => asked.dir = value()?.into(),
            "--user" => asked.users.push(value()?),
            "--help" | "-h" => return Err(USAGE.into()),
            name => {
                let known = PROJECTS.iter().find(|project| project.name == name);
                asked.projects.push(known.ok_or(unknown(name))?);
            }
        }
    }
    if asked.projects.is_empty() {
        asked.projects = PROJECTS.iter().collect();
    }
    if asked.users.is_empty() {
        asked.users = user::everyone()?;
    }
    asked.avfs = fs::canonicalize(&asked.avfs).map_err(|error| {
        let avfs = asked.avfs.display();
        format!("{avfs}: {error}; build it with scripts/setup")
    })?;
    Ok(asked)
}

fn unknown(name: &str) -> String {
    let known: Vec<&str> = PROJECTS.iter().map(|project| project.name).collect();
    format!(
        "no project is called {name:?}: {}\n{USAGE}",
        known.join(", ")
    )
}

/// Packages of the programs that are missing, by the rules of `scripts/lib.sh`.
fn install(projects: &[&Project]) -> Outcome<()> {
    let pairs = projects.iter().flat_map(|project| project.needs);
    let pairs: Vec<String> = pairs
        .map(|(program, package)| format!("{program}:{package}"))
        .collect();
    let script = format!("source scripts/lib.sh; need {}", pairs.join(" "));
    shell::bash(&crate::tidy::top(), &script)
}
