//! `avfs doctor --attack`: runs attacks in a sandbox, and prints what stopped each.

mod bait;
mod bombs;

use super::demo::stage::Stage;
use crate::environment;
use crate::error::{Error, Result};
use crate::exit;
use crate::output::table::{count, table};
use crate::output::{Output, style};
use crate::session::Session;
use avfs_api::client::ExecIo;
use avfs_api::wire::{
    CheckpointSave, Diff, Exec, Export, Import, StdinItem, VaultCreate, VaultFork,
};
use avfs_sandbox::attack::{CORPUS, Outcome, Targets, hide, try_all};
use bait::Bait;
use serde::Serialize;
use std::fs;
use std::io::{Read, Write};
use std::ops::ControlFlow;
use std::os::unix::fs::PermissionsExt;
use std::process::ExitCode;

const VAULT: &str = "attack";

#[derive(Serialize)]
struct Report {
    /// Whether all attacks were stopped.
    held: bool,
    attacks: Vec<AttackItem>,
}

/// One attack and its result.
#[derive(Serialize)]
struct AttackItem {
    name: String,
    group: String,
    stopped: bool,
    /// What stopped it, or should have stopped it.
    layer: String,
    /// The error that the attacker got, or what it obtained.
    answer: String,
}

pub fn run(output: Output) -> Result<u8> {
    let stage = Stage::set("attack")?;
    let bait = Bait::lay(&stage)?;
    let mut session = stage.session(VAULT)?;
    session.call(&VaultCreate::named(VAULT))?;
    bring_tools(&stage, &mut session)?;
    let mut attacks = try_corpus(&mut session, &bait)?;
    stage.go_on()?;
    attacks.extend(bombs::try_all(&mut session)?);
    stage.go_on()?;
    attacks.push(plant(&stage, &mut session)?);
    let report = Report {
        held: attacks.iter().all(|attack| attack.stopped),
        attacks,
    };
    output.answer(&report, text)?;
    Ok(if report.held { exit::OK } else { 1 })
}

/// Copies this program and the scripts of the bombs into the vault.
fn bring_tools(stage: &Stage, session: &mut Session) -> Result<()> {
    let dir = stage.project_dir();
    let failed = |what: &str| Error::io(format!("cannot {what} {}", dir.display()));
    fs::create_dir(&dir).map_err(failed("make"))?;
    let program = dir.join("avfs");
    fs::copy(environment::binary()?, &program).map_err(failed("copy this program to"))?;
    let all = fs::Permissions::from_mode(0o755);
    fs::set_permissions(&program, all).map_err(failed("open"))?;
    for (name, script) in bombs::SCRIPTS {
        fs::write(dir.join(name), script).map_err(failed("write to"))?;
    }
    session.call(&Import {
        host_dir: dir.to_string_lossy().into_owned().into(),
        path: "/workspace".into(),
        ..Import::default()
    })?;
    Ok(())
}

/// Runs a command in the vault; returns the envelope's result.
fn exec(session: &mut Session, request: &Exec) -> Result<avfs_api::wire::EnvelopeResult> {
    let silent = &mut |_| ControlFlow::Continue(());
    Ok(session.exec(request, ExecIo::default(), silent)?.result)
}

fn try_corpus(session: &mut Session, bait: &Bait) -> Result<Vec<AttackItem>> {
    let request = Exec {
        argv: vec!["/workspace/avfs".into(), "__attack".into()],
        // Passed on standard input: on the command line, the rules would refuse them before the sandbox could.
        stdin: Some(StdinItem::Text(bait.targets.words().join("\n"))),
        ..Exec::default()
    };
    let result = exec(session, &request)?;
    let mut items = Vec::new();
    for attack in CORPUS {
        let answer = result.stdout.lines().find_map(|line| {
            let (name, rest) = line.split_once('\t')?;
            rest.split_once('\t').filter(|_| name == attack.name)
        });
        let (stopped, answer) = match answer {
            Some((outcome, answer)) => (outcome == STOPPED, answer.to_owned()),
            None => (false, format!("it was not tried: {}", result.stderr.trim())),
        };
        items.push(AttackItem {
            name: attack.name.into(),
            group: attack.group.name().into(),
            stopped,
            layer: attack.layer.name().into(),
            answer,
        });
    }
    Ok(items)
}

const STOPPED: &str = "stopped";

/// The attacker's side: this program in the sandbox, with its targets on standard input.
pub fn from_inside() -> ExitCode {
    if let Some(way) = std::env::args().nth(2) {
        // More than twice what it may have.
        return match hide(&way, 400) {
            true => ExitCode::SUCCESS,
            false => ExitCode::FAILURE,
        };
    }
    let mut text = String::new();
    let read = std::io::stdin().read_to_string(&mut text);
    let words: Vec<String> = text.lines().map(str::to_owned).collect();
    let (Ok(_), Some(targets)) = (read, Targets::parse(&words)) else {
        return ExitCode::FAILURE;
    };
    let mut out = std::io::stdout().lock();
    for (attack, outcome) in try_all(&targets) {
        let (word, answer) = match outcome {
            Outcome::Stopped(answer) => (STOPPED, answer),
            Outcome::Succeeded(what) => ("succeeded", what),
        };
        if writeln!(out, "{}\t{word}\t{answer}", attack.name).is_err() {
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}

/// Writes files that host programs might execute, then does with the vault what a host does.
fn plant(stage: &Stage, session: &mut Session) -> Result<AttackItem> {
    let marker = stage.project_dir().join("executed");
    let payload = format!("#!/bin/sh\ntouch {}\n", marker.display());
    let request = Exec {
        argv: ["/bin/sh", "/workspace/plant.sh"]
            .map(String::from)
            .to_vec(),
        stdin: Some(StdinItem::Text(payload)),
        ..Exec::default()
    };
    let planted = exec(session, &request)?;
    session.call(&CheckpointSave::default())?;
    let patch = session.call(&Diff {
        patch: true,
        ..Diff::default()
    })?;
    session.call(&VaultFork {
        name: "copy".into(),
        checkpoint: None,
        version: None,
        make_current: false,
    })?;
    let exported = stage.project_dir().with_file_name("exported");
    session.call(&Export {
        path: "/workspace/planted".into(),
        path_b64: None,
        host_dir: exported.to_string_lossy().into_owned().into(),
        host_dir_b64: None,
        overwrite: false,
        allow_hooks: true,
        keep_going: false,
    })?;
    let ran = marker.exists();
    let found = patch.changes.len();
    Ok(AttackItem {
        name: "hooks, filters, rc files and settings that host programs might execute".into(),
        group: "host-executed content".into(),
        stopped: !ran && planted.ending.exit_code == Some(0) && found > 0,
        layer: "no host program is run on a vault".into(),
        answer: match (ran, planted.ending.exit_code) {
            (true, _) => "it was run on the host".into(),
            (false, Some(0)) => {
                format!("{found} paths planted; diffed, forked, exported, none run")
            }
            (false, _) => format!("it was not tried: {}", planted.stderr.trim()),
        },
    })
}

fn text(report: &Report) -> String {
    let mut lines = Vec::new();
    let mut groups: Vec<&str> = report.attacks.iter().map(|it| it.group.as_str()).collect();
    groups.dedup();
    for group in groups {
        let items = report.attacks.iter().filter(|attack| attack.group == group);
        let rows = items.map(|attack| {
            let mark = if attack.stopped {
                "stopped"
            } else {
                "SUCCEEDED"
            };
            let name = attack.name.clone();
            vec![
                mark.into(),
                name,
                attack.layer.clone(),
                attack.answer.clone(),
            ]
        });
        let headings = ["", group, "STOPPED BY", "ANSWER"];
        lines.push(table(&headings, rows.collect()).trim_fmt());
        lines.push(String::new());
    }
    let through = report
        .attacks
        .iter()
        .filter(|attack| !attack.stopped)
        .count();
    lines.push(if report.held {
        style::good(format!("all {} attacks were stopped", report.attacks.len())).to_string()
    } else {
        let through = count(through as u64, "attack");
        style::bad(format!("{through} not stopped: please report this")).to_string()
    });
    lines.join("\n")
}
