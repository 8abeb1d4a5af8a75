//! `avfs doctor`: what this host supports, found by trying.

use crate::args::DoctorArgs;
use crate::environment;
use crate::error::Result;
use crate::exit;
use crate::output::{Output, style};
use avfs_api::DaemonPaths;
use avfs_runtime::{LayersPlace, LayersWhy};
use avfs_sandbox::onhost::{self, InUse};
use avfs_sandbox::probe::{self, Outcome, Probe};
use serde::Serialize;

#[derive(Serialize)]
struct Report {
    /// Whether commands can be run.
    works: bool,
    probes: Vec<ProbeItem>,
    /// Mounts whose daemon is gone.
    mounts: Vec<DeadMount>,
}

#[derive(Serialize)]
struct DeadMount {
    dir: String,
    /// Whether it was unmounted.
    fixed: bool,
}

#[derive(Serialize)]
struct ProbeItem {
    name: String,
    works: bool,
    detail: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    fix: Option<String>,
}

pub fn run(args: DoctorArgs, output: Output) -> Result<u8> {
    let mut report = Report::new(probe_all(&environment::place()?)?);
    report.mounts = dead_mounts(args.fix);
    output.answer(&report, text)?;
    let mended = report.mounts.iter().all(|mount| mount.fixed);
    Ok(if report.works && mended { exit::OK } else { 1 })
}

/// Mounts of daemons that were killed. Any access to one fails.
fn dead_mounts(fix: bool) -> Vec<DeadMount> {
    // Without a mount table there is nothing to report.
    let dead = onhost::dead_mounts().unwrap_or_default();
    dead.into_iter()
        .map(|mount| DeadMount {
            dir: mount.dir.display().to_string(),
            fixed: fix && onhost::unmount(&mount.dir, InUse::Detach).is_ok(),
        })
        .collect()
}

/// Tries everything that a command needs.
pub fn probe_all(place: &DaemonPaths) -> Result<Vec<Probe>> {
    place.prepare()?;
    let (binary, chosen) = (environment::binary()?, environment::layers(None)?);
    let found = LayersPlace::find(place.home(), place.dir(), chosen.as_deref(), &binary);
    let directory = found.as_ref().map_or(place.dir(), |found| &found.directory);
    let mut probes = probe::run(place.dir(), directory, &binary);
    probes.push(layers(found));
    Ok(probes)
}

/// Where the layers are.
fn layers(found: avfs_runtime::Result<LayersPlace>) -> Probe {
    let name = "layers";
    let fix =
        "set AVFS_LAYERS to a directory on ext4, xfs, btrfs or tmpfs, and run `avfs daemon stop`";
    let missing = |reason: String| Probe {
        name,
        outcome: Outcome::Missing {
            reason,
            fix: fix.into(),
        },
        detail: String::new(),
    };
    let place = match found {
        Ok(place) => place,
        Err(error) => return missing(error.to_string()),
    };
    let directory = place.directory.display();
    let detail = match place.why {
        LayersWhy::Home | LayersWhy::Chosen => format!("in {directory}"),
        LayersWhy::Instead { reason } => format!(
            "in {directory}, so that a power cut loses what is not committed; the home cannot hold them \
             ({reason}): {fix}"
        ),
        LayersWhy::Nowhere { reason } => return missing(reason),
    };
    let outcome = Outcome::Works;
    Probe {
        name,
        outcome,
        detail,
    }
}

impl Report {
    fn new(probes: Vec<Probe>) -> Report {
        let probes: Vec<ProbeItem> = probes.into_iter().map(item).collect();
        Report {
            works: probes.iter().all(|probe| probe.works),
            probes,
            mounts: Vec::new(),
        }
    }
}

fn item(probe: Probe) -> ProbeItem {
    let (works, reason, fix) = match probe.outcome {
        Outcome::Works => (true, None, None),
        Outcome::Missing { reason, fix } => (false, Some(reason), Some(fix)),
    };
    ProbeItem {
        name: probe.name.to_string(),
        works,
        detail: probe.detail,
        reason,
        fix,
    }
}

fn text(report: &Report) -> String {
    let width = report
        .probes
        .iter()
        .map(|probe| probe.name.len())
        .max()
        .unwrap_or(0);
    let mut lines: Vec<String> = report
        .probes
        .iter()
        .map(|probe| {
            let mark = if probe.works {
                style::good("ok     ")
            } else {
                style::bad("missing")
            };
            let said = probe.reason.as_deref().unwrap_or(&probe.detail);
            format!("{mark}  {:width$}  {said}", probe.name)
                .trim_end()
                .to_owned()
        })
        .collect();
    lines.extend(report.mounts.iter().map(|mount| {
        let mark = if mount.fixed {
            style::good("fixed  ")
        } else {
            style::bad("stale  ")
        };
        format!("{mark}  {} was mounted by a daemon that is gone", mount.dir)
    }));
    if report.mounts.iter().any(|mount| !mount.fixed) {
        lines.push("         `avfs doctor --fix` unmounts it; no data is lost".into());
    }
    lines.push(String::new());
    let fixes: Vec<&str> = report
        .probes
        .iter()
        .filter_map(|probe| probe.fix.as_deref())
        .collect();
    if report.works {
        lines.push(style::good("this machine can run commands in vaults").to_string());
    } else {
        lines.push(style::bad("this machine cannot run commands in vaults yet").to_string());
        lines.push("to fix it:".into());
        let mut told: Vec<&str> = Vec::new();
        for fix in fixes {
            if !told.contains(&fix) {
                told.push(fix);
                lines.push(format!("  {fix}"));
            }
        }
    }
    lines.join("\n")
}
