//! `avfs doctor`: what this host supports, found by trying.

use crate::args::DoctorArgs;
use crate::environment;
use crate::error::Result;
use crate::exit;
use crate::output::table::{count, size};
use crate::output::{Output, style};
use avfs_api::DaemonPaths;
use avfs_runtime::{CacheHealth, LayersPlace, LayersWhy, downloads_place};
use avfs_sandbox::onhost::{self, InUse};
use avfs_sandbox::probe::{self, Outcome, Probe};
use serde::Serialize;
use std::path::Path;

#[derive(Serialize)]
struct Report {
    /// Whether commands can be run.
    works: bool,
    probes: Vec<ProbeItem>,
    /// Mounts whose daemon is gone.
    mounts: Vec<DeadMount>,
    /// What is kept of package registries, if anything ever was.
    #[serde(skip_serializing_if = "Option::is_none")]
    downloads: Option<Downloads>,
}

#[derive(Serialize)]
struct Downloads {
    answers: u64,
    bytes: u64,
    max_bytes: u64,
    /// Answers that are not whole. `avfs fsck` reads all of them.
    damaged: u64,
    /// Files that other users may open.
    exposed: u64,
    /// Whether these were closed.
    fixed: bool,
    /// Why it cannot be looked at.
    #[serde(skip_serializing_if = "Option::is_none")]
    fault: Option<String>,
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
    let place = environment::place()?;
    let mut report = Report::new(probe_all(&place)?);
    report.mounts = dead_mounts(args.fix);
    report.downloads = Downloads::of(place.home(), args.fix);
    output.answer(&report, text)?;
    let mended = report.mounts.iter().all(|mount| mount.fixed);
    let sound = report.downloads.as_ref().is_none_or(Downloads::is_sound);
    Ok(match report.works && mended && sound {
        true => exit::OK,
        false => 1,
    })
}

impl Downloads {
    fn of(home: &Path, fix: bool) -> Option<Downloads> {
        let place = downloads_place(home);
        let health = match place.look() {
            Ok(health) => health?,
            Err(error) => {
                return Some(Downloads {
                    fault: Some(format!("{}: {error}", place.directory.display())),
                    ..Downloads::from(CacheHealth::default(), false)
                });
            }
        };
        let fixed = fix && place.close(&health.exposed) == 0;
        Some(Downloads::from(health, fixed))
    }

    fn from(health: CacheHealth, fixed: bool) -> Downloads {
        Downloads {
            answers: health.usage.answers,
            bytes: health.usage.bytes,
            max_bytes: health.usage.max_bytes,
            damaged: health.damaged,
            exposed: health.exposed.len() as u64,
            fixed: fixed && !health.exposed.is_empty(),
            fault: None,
        }
    }

    fn is_sound(&self) -> bool {
        self.fault.is_none() && self.damaged == 0 && (self.exposed == 0 || self.fixed)
    }

    fn lines(&self) -> Vec<String> {
        let kept = format!(
            "{} of package registries, {} of at most {}",
            count(self.answers, "answer"),
            size(self.bytes),
            size(self.max_bytes)
        );
        let mut lines = Vec::new();
        if let Some(fault) = &self.fault {
            lines.push(format!("{}  downloads  {fault}", style::bad("broken ")));
            lines.push("         nothing is kept until it is a directory of yours, or gone".into());
        } else if self.is_sound() && !self.fixed {
            lines.push(format!("{}  downloads  {kept}", style::good("ok     ")));
        }
        if self.damaged > 0 {
            let damaged = count(self.damaged, "answer");
            lines.push(format!(
                "{}  downloads  {damaged} not whole",
                style::bad("damaged")
            ));
            lines
                .push("         `avfs fsck` removes it; it is downloaded again when needed".into());
        }
        if self.fixed {
            let closed = style::good("fixed  ");
            lines.push(format!(
                "{closed}  downloads  other users could open {}",
                count(self.exposed, "file")
            ));
        } else if self.exposed > 0 {
            let open = style::bad("open   ");
            lines.push(format!(
                "{open}  downloads  other users may open {}",
                count(self.exposed, "file")
            ));
            lines.push("         `avfs doctor --fix` closes it".into());
        }
        lines
    }
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
            downloads: None,
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
    lines.extend(report.downloads.iter().flat_map(Downloads::lines));
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
