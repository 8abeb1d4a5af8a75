//! `avfs import`: copy a directory of this machine into the vault.

use super::paths;
use crate::args::ImportArgs;
use crate::error::Result;
use crate::output::Output;
use crate::output::changes::printable;
use crate::output::table::{count, size};
use crate::session::Session;
use avfs_api::wire::{Import, Imported};

/// How many names of what was left out are printed.
const SHOWN: usize = 10;

pub fn run(args: ImportArgs, session: &mut Session, output: Output) -> Result<()> {
    let (host_dir, host_dir_b64) = paths::on_host(&args.host_dir)?;
    let (path, path_b64) = paths::in_vault(&args.path);
    let imported = session.call(&Import {
        host_dir,
        host_dir_b64,
        path,
        path_b64,
    })?;
    output.answer(&imported, text)
}

fn text(imported: &Imported) -> String {
    let mut lines = vec![format!(
        "imported {} ({}) into {}",
        count(imported.files_imported, "file"),
        size(imported.total_bytes),
        imported.vfs_path,
    )];
    for skipped in imported.skipped.iter().take(SHOWN) {
        lines.push(format!(
            "  left out {}: {}",
            printable(&skipped.path),
            skipped.reason
        ));
    }
    if imported.skipped.len() > SHOWN {
        lines.push(format!(
            "  … and {} more left out",
            imported.skipped.len() - SHOWN
        ));
    }
    lines.join("\n")
}
