//! `avfs diff`: what changed between two states.

use crate::args::DiffArgs;
use crate::error::Result;
use crate::output::{Output, changes};
use crate::session::Session;
use avfs_api::wire::{Diff, DiffReport};

pub fn run(args: DiffArgs, session: &mut Session, output: Output) -> Result<()> {
    let request = Diff {
        from: args.from,
        to: args.to,
        patch: args.patch,
    };
    let report = session.call(&request)?;
    output.answer(&report, text)
}

fn text(report: &DiffReport) -> String {
    match &report.patch {
        Some(patch) => changes::patch(patch),
        None => changes::lines(&report.changes).join("\n"),
    }
}
