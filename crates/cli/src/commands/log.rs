//! `avfs log`: the versions of the vault, or of one path.

use super::{paths, vault};
use crate::args::LogArgs;
use crate::error::Result;
use crate::output::Output;
use crate::output::table::{align_right, size, table, time};
use crate::session::Session;
use avfs_api::wire::{PathLog, PathVersionItem, VaultLog};

pub fn run(args: LogArgs, session: &mut Session, output: Output) -> Result<()> {
    let limit = args.limit;
    let Some(path) = &args.path else {
        let versions = session.call(&VaultLog::newest(limit))?.versions;
        return output.answer(&versions, |versions| vault::log_text(versions));
    };
    let (path, path_b64) = paths::in_vault(path);
    let log = PathLog {
        path,
        path_b64,
        limit,
        cursor: None,
    };
    let versions = session.call(&log)?.versions;
    output.answer(&versions, |versions| text(versions))
}

fn text(versions: &[PathVersionItem]) -> String {
    let rows = versions
        .iter()
        .map(|it| {
            vec![
                format!("v{}", it.version),
                time(&it.created_at),
                it.cause.clone(),
                it.by.clone(),
                if it.removed {
                    "removed".into()
                } else {
                    size(it.size)
                },
                it.hash.clone(),
                it.exec.clone().unwrap_or_default(),
            ]
        })
        .collect();
    let headings = ["VERSION", "TIME", "CAUSE", "BY", "SIZE", "CONTENT", "EXEC"];
    let mut table = table(&headings, rows);
    align_right(&mut table, 4);
    table.trim_fmt()
}
