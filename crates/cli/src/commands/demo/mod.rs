//! `avfs demo`: a failing test, two forks, two fixes, a restore. It is an ordinary client of a daemon of its own.

mod project;
pub mod stage;

use crate::error::{Error, Result};
use crate::exit;
use crate::output::table::{count, size};
use crate::output::{Output, changes, exec, say, style};
use crate::session::Session;
use avfs_api::client::ExecIo;
use avfs_api::wire::{
    Cat, CheckpointRestore, Daemon, Diff, Envelope, Exec, Import, Operation, VaultCreate, VaultFork,
};
use avfs_sandbox::probe::Outcome;
use project::{Fix, Project};
use stage::Stage;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

/// The vault for the project.
const ORIGINAL: &str = "demo";

pub fn run(output: Output) -> Result<u8> {
    if output.is_json() {
        return Err(Error::Invalid {
            text: "the demo prints text only".into(),
            hint: Some("run `avfs demo` without --json".into()),
        });
    }
    let begun = Instant::now();
    say(&style::strong(
        "agentvfs: a failing test, two forks, two fixes, a restore",
    ))?;
    let stage = Stage::set("demo")?;
    if !check_host(&stage)? {
        return Ok(1);
    }
    tell(&stage)?;
    drop(stage);
    let seconds = begun.elapsed().as_secs_f64();
    say(&format!(
        "\nThat took {seconds:.1} s. The demo's daemon has ended and its files are deleted."
    ))?;
    say(&"Next: avfs vault create myproject && avfs import . && avfs proxy exec -- ls")?;
    Ok(exit::OK)
}

fn check_host(stage: &Stage) -> Result<bool> {
    heading(1, "Can this host run commands in a sandbox?")?;
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
            say(&format!("   to fix it: {fix}"))?;
        }
    }
    if works {
        let checks = count(probes.len() as u64, "check");
        say(&format!(
            "   {} ({checks}; see avfs doctor)",
            style::good("yes")
        ))?;
    }
    Ok(works)
}

fn tell(stage: &Stage) -> Result<()> {
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

/// Creates a vault, imports the project, and runs the failing test in it.
fn bring_in(stage: &Stage, project: &Project) -> Result<()> {
    heading(3, "Import into a vault, and run the test in its sandbox")?;
    let mut scene = Scene::new(stage, ORIGINAL)?;
    let (_, took) = scene.ask(&Daemon {})?;
    step("(the daemon starts on demand)", took, "")?;
    let created = VaultCreate::named(ORIGINAL);
    step("avfs vault create demo", scene.ask(&created)?.1, "")?;
    let request = Import {
        host_dir: stage.project_dir().to_string_lossy().into_owned().into(),
        host_dir_b64: None,
        path: "/workspace".into(),
        path_b64: None,
        ..Import::default()
    };
    let (imported, took) = scene.ask(&request)?;
    let what = format!(
        "{}, {}",
        count(imported.files_imported, "file"),
        size(imported.total_bytes)
    );
    step("avfs import .", took, &what)?;
    let tested = scene.shell(project, project.test)?;
    show_exec(project.test, &tested)?;
    expect(
        tested.result.ending.exit_code == Some(1),
        "the test fails before it is fixed",
        &tested,
    )
}

/// Forks twice, and runs both fixes at the same time.
fn fix_twice(stage: &Stage, project: &Project) -> Result<[Envelope; 2]> {
    heading(4, "Two forks, two fixes, at the same time")?;
    let mut scene = Scene::new(stage, ORIGINAL)?;
    for fix in &project.fixes {
        let request = VaultFork {
            name: fix.vault.into(),
            checkpoint: None,
            version: None,
            make_current: false,
        };
        let (_, took) = scene.ask(&request)?;
        step(&format!("avfs vault fork demo {}", fix.vault), took, "")?;
    }
    let begun = Instant::now();
    let [first, second] = std::thread::scope(|scope| {
        let running = project.fixes.each_ref().map(|fix| {
            scope.spawn(move || Scene::new(stage, fix.vault)?.shell(project, &fix.command))
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

/// Shows what each fix changed, and that the source vault has not changed.
fn compare(stage: &Stage, project: &Project) -> Result<()> {
    heading(5, "What each changed")?;
    for fix in &project.fixes {
        let mut scene = Scene::new(stage, fix.vault)?;
        let request = Diff {
            from: "BASE".into(),
            to: "HEAD".into(),
            patch: true,
            ..Diff::default()
        };
        let (report, took) = scene.ask(&request)?;
        step(
            &format!("avfs --vault {} diff --patch", fix.vault),
            took,
            "",
        )?;
        say(&indent(&changes::patch(
            report.patch.as_deref().unwrap_or_default(),
        )))?;
    }
    let mut scene = Scene::new(stage, ORIGINAL)?;
    let path = format!("/workspace/{}", project.faulty_file());
    let (file, took) = scene.ask(&Cat {
        path: path.clone(),
        path_b64: None,
        version: None,
        offset: 0,
        limit: None,
    })?;
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

/// Restores the state before the first fix, and undoes the restore.
fn go_back(stage: &Stage, project: &Project, fixed: &[Envelope; 2]) -> Result<()> {
    heading(6, "Restore, and undo the restore")?;
    let [first, _] = fixed;
    let Some(checkpoint) = first.result.checkpoint.clone() else {
        return Err(unexpected(
            "there is a checkpoint before a command that may change things",
        ));
    };
    let mut scene = Scene::new(stage, project.fixes[0].vault)?;
    let (restored, took) = scene.ask(&CheckpointRestore {
        name: Some(checkpoint.clone()),
        undo: false,
        force: false,
    })?;
    let changed = format!("{} changed", count(restored.changes as u64, "path"));
    step(
        &format!("avfs checkpoint restore {checkpoint}"),
        took,
        &changed,
    )?;
    let tested = scene.shell(project, project.test)?;
    say(&format!("   {}", exec::report(&tested)))?;
    expect(
        tested.result.ending.exit_code == Some(1),
        "the bug is back after the restore",
        &tested,
    )?;

    let (_, took) = scene.ask(&CheckpointRestore {
        name: None,
        undo: true,
        force: false,
    })?;
    step("avfs checkpoint restore --undo", took, "")?;
    let tested = scene.shell(project, project.test)?;
    say(&format!("   {}", exec::report(&tested)))?;
    expect(
        tested.success,
        "the fix is back after undoing the restore",
        &tested,
    )
}

/// A connection to the demo's daemon, for one vault.
struct Scene<'a> {
    stage: &'a Stage,
    session: Session,
}

impl Scene<'_> {
    fn new<'a>(stage: &'a Stage, vault: &str) -> Result<Scene<'a>> {
        Ok(Scene {
            stage,
            session: stage.session(vault)?,
        })
    }

    /// Calls an operation; returns also how long it took.
    fn ask<O: Operation>(&mut self, request: &O) -> Result<(O::Response, Duration)> {
        self.stage.go_on()?;
        let begun = Instant::now();
        let answer = self.session.call(request)?;
        Ok((answer, begun.elapsed()))
    }

    /// Runs shell text in the sandbox.
    fn shell(&mut self, project: &Project, text: &str) -> Result<Envelope> {
        self.stage.go_on()?;
        let env = project
            .env
            .iter()
            .map(|(name, value)| ((*name).into(), (*value).into()));
        let request = Exec {
            shell: Some(text.to_owned()),
            env: env.collect(),
            timeout_ms: Some(60_000),
            ..Exec::default()
        };
        let envelope = self.session.exec(&request, ExecIo::default(), &mut |_| {
            ControlFlow::Continue(())
        })?;
        self.stage.go_on()?;
        Ok(envelope)
    }
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

/// Fails the demo if what it claims is not true.
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
        text: format!("the demo failed: this is not true: {what}"),
        hint: Some("run `avfs doctor`, and report this".into()),
    }
}
