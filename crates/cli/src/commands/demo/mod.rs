//! `avfs demo`: a failing test, two forks, two fixes, one way back. Nothing in it is faked: it is
//! a client like any other, of a daemon of its own.

mod project;
mod stage;

use crate::error::{Error, Result};
use crate::exit;
use crate::output::table::{count, size};
use crate::output::{changes, exec, say, style};
use crate::session::Session;
use avfs_api::wire::{
    Cat, CheckpointRestore, Daemon, Diff, Envelope, Exec, Import, Operation, VaultCreate, VaultFork,
};
use avfs_sandbox::probe::Outcome;
use project::{Fix, Project};
use stage::Stage;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The vault the project goes into.
const ORIGINAL: &str = "demo";

pub fn run() -> Result<u8> {
    let begun = Instant::now();
    say(&style::strong(
        "agentvfs: a failing test, two forks, two fixes, one way back",
    ))?;
    let stage = Stage::set()?;
    let told = check_host(&stage).and_then(|works| match works {
        true => tell(&stage).map(|()| true),
        false => Ok(false),
    });
    stage.strike();
    if stage.was_interrupted() {
        return Ok(exit::INTERRUPTED);
    }
    if !told? {
        return Ok(1);
    }
    let seconds = begun.elapsed().as_secs_f64();
    say(&format!(
        "\nThat took {seconds:.1} s. The demo's daemon has ended and its files are gone."
    ))?;
    say(&"Next: avfs vault create myproject && avfs import . && avfs proxy exec -- ls")?;
    Ok(exit::OK)
}

fn check_host(stage: &Stage) -> Result<bool> {
    heading(1, "Can this machine hold a command?")?;
    let probes = super::doctor::probe_all(stage.place())?;
    let mut works = true;
    for probe in &probes {
        if let Outcome::Missing { reason, fix } = &probe.outcome {
            works = false;
            say(&format!(
                "   {} {}: {reason}",
                style::bad("missing"),
                probe.name
            ))?;
            say(&format!("   to mend it: {fix}"))?;
        }
    }
    if works {
        let checks = count(probes.len() as u64, "check");
        say(&format!(
            "   {} ({checks}, each by trying; see avfs doctor)",
            style::good("yes")
        ))?;
    }
    Ok(works)
}

fn tell(stage: &Arc<Stage>) -> Result<()> {
    heading(2, "A small project with a bug")?;
    let project = Project::choose();
    let commit = project.write(&stage.project_dir())?;
    say(&indent(project.faulty_source()))?;
    say(&format!("   {commit}"))?;

    bring_in(stage, &project)?;
    let fixed = fix_twice(stage, &project)?;
    compare(stage, &project)?;
    go_back(stage, &project, &fixed)
}

/// Makes a vault, imports the project, and sees the test fail in it.
fn bring_in(stage: &Stage, project: &Project) -> Result<()> {
    heading(3, "Into a vault, and the test run behind the boundary")?;
    let mut session = stage.session(ORIGINAL)?;
    let (_, took) = timed(&mut session, &Daemon {})?;
    step("(the daemon starts by itself)", took, "")?;
    let created = VaultCreate {
        name: ORIGINAL.into(),
    };
    step(
        "avfs vault create demo",
        timed(&mut session, &created)?.1,
        "",
    )?;
    let request = Import {
        host_dir: stage.project_dir().to_string_lossy().into_owned(),
        host_dir_b64: None,
        path: "/workspace".into(),
        path_b64: None,
    };
    let (imported, took) = timed(&mut session, &request)?;
    let what = format!(
        "{}, {}",
        count(imported.files_imported, "file"),
        size(imported.total_bytes)
    );
    step("avfs import .", took, &what)?;
    let tested = exec_in(&mut session, project, project.test)?;
    show_exec(project.test, &tested)?;
    expect(
        tested.result.exit_code == Some(1),
        "the test fails before it is fixed",
        &tested,
    )
}

/// Forks twice, and lets two fixes run at the same time.
fn fix_twice(stage: &Arc<Stage>, project: &Project) -> Result<[Envelope; 2]> {
    heading(4, "Two forks, two fixes, at the same time")?;
    let mut session = stage.session(ORIGINAL)?;
    for fix in &project.fixes {
        let request = VaultFork {
            name: fix.vault.into(),
            make_current: false,
        };
        let (_, took) = timed(&mut session, &request)?;
        step(&format!("avfs vault fork demo {}", fix.vault), took, "")?;
    }
    let begun = Instant::now();
    let [first, second] = std::thread::scope(|scope| {
        let running = project.fixes.each_ref().map(|fix| {
            scope.spawn(move || exec_in(&mut stage.session(fix.vault)?, project, &fix.command))
        });
        running.map(|thread| match thread.join() {
            Ok(envelope) => envelope,
            Err(panic) => std::panic::resume_unwind(panic),
        })
    });
    let fixed = [first?, second?];
    let took = begun.elapsed();
    for (Fix { vault, command, .. }, envelope) in project.fixes.iter().zip(&fixed) {
        say(&format!("   in {}:", style::strong(vault)))?;
        show_exec(command, envelope)?;
        expect(envelope.success, "the fix makes the test pass", envelope)?;
    }
    say(&format!("   both together: {}", milliseconds(took)))?;
    Ok(fixed)
}

/// Shows what each fix did, and that the vault they were forked from has not moved.
fn compare(stage: &Stage, project: &Project) -> Result<()> {
    heading(5, "What each did")?;
    for fix in &project.fixes {
        let mut session = stage.session(fix.vault)?;
        let request = Diff {
            from: "BASE".into(),
            to: "HEAD".into(),
            patch: true,
        };
        let (report, took) = timed(&mut session, &request)?;
        step(
            &format!("avfs --vault {} diff --patch", fix.vault),
            took,
            "",
        )?;
        say(&indent(&changes::patch(
            report.patch.as_deref().unwrap_or_default(),
        )))?;
    }
    let mut session = stage.session(ORIGINAL)?;
    let path = format!("/workspace/{}", project.faulty_file());
    let (file, took) = timed(
        &mut session,
        &Cat {
            path: path.clone(),
            path_b64: None,
        },
    )?;
    step(
        &format!("avfs --vault {ORIGINAL} cat {path}"),
        took,
        "as it was",
    )?;
    if file.content == project.faulty_source() {
        Ok(())
    } else {
        Err(unexpected("a fork leaves the vault it came from alone"))
    }
}

/// Restores the state before the first fix, and undoes that again.
fn go_back(stage: &Stage, project: &Project, fixed: &[Envelope; 2]) -> Result<()> {
    heading(6, "One way back, and forth")?;
    let [first, _] = fixed;
    let Some(checkpoint) = first.result.checkpoint.clone() else {
        return Err(unexpected(
            "there is a checkpoint before a command that may change things",
        ));
    };
    let mut session = stage.session(project.fixes[0].vault)?;
    let (restored, took) = timed(
        &mut session,
        &CheckpointRestore {
            name: checkpoint.clone(),
        },
    )?;
    let changed = format!("{} changed", count(restored.changes as u64, "path"));
    step(
        &format!("avfs checkpoint restore {checkpoint}"),
        took,
        &changed,
    )?;
    let tested = exec_in(&mut session, project, project.test)?;
    say(&format!("   {}", exec::report(&tested)))?;
    expect(
        tested.result.exit_code == Some(1),
        "the bug is back after the restore",
        &tested,
    )?;

    let (_, took) = timed(
        &mut session,
        &CheckpointRestore {
            name: restored.undo.clone(),
        },
    )?;
    step(
        &format!("avfs checkpoint restore {}", restored.undo),
        took,
        "undoes the restore",
    )?;
    let tested = exec_in(&mut session, project, project.test)?;
    say(&format!("   {}", exec::report(&tested)))?;
    expect(
        tested.success,
        "the fix is back after undoing the restore",
        &tested,
    )
}

fn exec_in(session: &mut Session, project: &Project, shell: &str) -> Result<Envelope> {
    let request = Exec {
        shell: Some(shell.to_owned()),
        env: project
            .env
            .iter()
            .map(|(name, value)| ((*name).into(), (*value).into()))
            .collect(),
        timeout_ms: Some(60_000),
        ..Exec::default()
    };
    session.exec(&request, &mut |_| ControlFlow::Continue(()))
}

fn timed<O: Operation>(session: &mut Session, request: &O) -> Result<(O::Response, Duration)> {
    let begun = Instant::now();
    let answer = session.call(request)?;
    Ok((answer, begun.elapsed()))
}

fn heading(number: u32, text: &str) -> Result<()> {
    say(&format!(
        "\n{} {}",
        style::strong(format!("{number}.")),
        style::strong(text)
    ))
}

fn step(command: &str, took: Duration, result: &str) -> Result<()> {
    let command = style::place(format!("{command:<48}"));
    let took = milliseconds(took);
    say(&format!("   {command} {took:>9}  {result}").trim_end())
}

fn milliseconds(took: Duration) -> String {
    format!("{:.1} ms", took.as_secs_f64() * 1000.0)
}

/// The command, the end of its output, and the report.
fn show_exec(command: &str, envelope: &Envelope) -> Result<()> {
    say(&format!(
        "   {}",
        style::place(format!("avfs proxy exec --shell {command:?}"))
    ))?;
    let result = &envelope.result;
    let output = format!("{}{}", result.stdout, result.stderr);
    let lines: Vec<&str> = output
        .lines()
        .filter(|line| !line.trim().is_empty())
        .collect();
    for line in lines.iter().skip(lines.len().saturating_sub(3)) {
        say(&format!(
            "     {} {}",
            style::faint("|"),
            changes::printable(line)
        ))?;
    }
    say(&indent(&exec::report(envelope)))
}

fn indent(text: &str) -> String {
    let lines: Vec<String> = text.lines().map(|line| format!("   {line}")).collect();
    lines.join("\n")
}

/// The demo proves what it says.
fn expect(held: bool, what: &str, envelope: &Envelope) -> Result<()> {
    if held {
        return Ok(());
    }
    let result = &envelope.result;
    let output = format!("{}{}", result.stdout, result.stderr);
    say(&indent(&output))?;
    Err(unexpected(what))
}

fn unexpected(what: &str) -> Error {
    Error::Unavailable {
        text: format!("the demo did not go as it should: it is not so that {what}"),
        hint: Some("run `avfs doctor`, and report this".into()),
    }
}
