//! `avfs doctor`: what this machine offers, found by trying.

use crate::environment;
use crate::error::Result;
use crate::exit;
use crate::output::{Output, style};
use avfs_api::Place;
use avfs_sandbox::probe::{self, Outcome, Probe};
use serde::Serialize;

#[derive(Serialize)]
struct Report {
    /// Whether commands can be run.
    works: bool,
    probes: Vec<ProbeItem>,
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

pub fn run(output: Output) -> Result<u8> {
    let report = Report::new(probe_all(&environment::place()?)?);
    output.answer(&report, text)?;
    Ok(if report.works { exit::OK } else { 1 })
}

/// Tries everything a command needs.
pub fn probe_all(place: &Place) -> Result<Vec<Probe>> {
    place.prepare()?;
    Ok(probe::run(place.dir(), &environment::binary()?))
}

impl Report {
    fn new(probes: Vec<Probe>) -> Report {
        let probes: Vec<ProbeItem> = probes.into_iter().map(item).collect();
        Report {
            works: probes.iter().all(|probe| probe.works),
            probes,
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
    lines.push(String::new());
    let fixes: Vec<&str> = report
        .probes
        .iter()
        .filter_map(|probe| probe.fix.as_deref())
        .collect();
    if report.works {
        lines.push(style::good("this machine can run commands in vaults").to_string());
    } else {
        lines.push(style::bad("commands cannot be run in vaults yet").to_string());
        lines.push("to mend it:".into());
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
