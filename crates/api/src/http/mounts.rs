//! Views on the host over HTTP.

use super::App;
use super::items;
use super::routes::{Reply, Routes};
use crate::wire::{Commit, CommitItem};
use avfs_runtime::Select;

pub(crate) fn routes(routes: Routes) -> Routes {
    routes.on_vault::<Commit>(commit)
}

fn commit(app: &App, vault: Select, _: Commit) -> Reply<Commit> {
    let report = app.runtime.commit(vault)?;
    Ok(CommitItem {
        vault: report.vault.to_string(),
        version: report.version,
        changed_files: report.changes.iter().map(items::change).collect(),
        skipped: report.skipped.into_iter().map(items::skipped).collect(),
    })
}
