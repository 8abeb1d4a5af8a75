//! `avfs import`: copy a host directory, a file, an archive or a git revision into the vault.

use super::{one_file, paths};
use crate::args::ImportArgs;
use crate::error::{Error, Result};
use crate::output::Output;
use crate::output::changes::printable;
use crate::output::table::{count, size};
use crate::session::Session;
use avfs_api::wire::{ArchiveWrite, Import, Imported, VaultInfo};
use std::io::IsTerminal;

/// How many skipped names are printed.
const SHOWN: usize = 10;

pub fn run(args: ImportArgs, session: &mut Session, output: Output) -> Result<()> {
    let (path, path_b64) = paths::in_vault(&args.path);
    if args.source.as_os_str() == "-" {
        check_stream(&args)?;
        // Reports problems with the vault before anything is read.
        session.call(&VaultInfo {})?;
        let request = ArchiveWrite {
            path,
            path_b64,
            exclude: args.exclude.join("\n"),
            max_depth: args.max_depth,
        };
        let imported = session.upload(&request, std::io::stdin(), output, "importing")?;
        return output.answer(&imported, text);
    }
    if one_file::is_plain(&args.source)? {
        check_file(&args)?;
        let imported = one_file::import(&args.source, &args.path, session, output)?;
        return output.answer(&imported, text);
    }
    let (host_dir, host_dir_b64) = paths::on_host(&args.source)?;
    let request = Import {
        host_dir: host_dir.into(),
        host_dir_b64,
        path,
        path_b64,
        exclude: args.exclude,
        gitignore: args.gitignore,
        git_rev: args.git_rev,
        max_depth: args.max_depth,
    };
    let imported = session.call_watched(&request, output, "importing")?;
    output.answer(&imported, text)
}

fn check_file(args: &ImportArgs) -> Result<()> {
    let filters = args.gitignore || !args.exclude.is_empty() || args.max_depth.is_some();
    if filters || args.git_rev.is_some() {
        return Err(Error::Invalid {
            text: format!("{} is one file, not a directory", args.source.display()),
            hint: Some("leave out --exclude, --gitignore, --git-rev and --max-depth".into()),
        });
    }
    Ok(())
}

fn check_stream(args: &ImportArgs) -> Result<()> {
    let refuse = |text: &str, hint: &str| Error::Invalid {
        text: text.into(),
        hint: Some(hint.into()),
    };
    if args.gitignore || args.git_rev.is_some() {
        return Err(refuse(
            "standard input is an archive, not a directory or a repository",
            "leave out --gitignore and --git-rev, or name a directory",
        ));
    }
    if std::io::stdin().is_terminal() {
        return Err(refuse(
            "standard input is a terminal",
            "pipe an archive in: `tar c . | avfs import -`",
        ));
    }
    Ok(())
}

pub(super) fn text(imported: &Imported) -> String {
    let reused = match imported.files_reused {
        0 => String::new(),
        reused => format!(", {reused} of them unchanged"),
    };
    let mut lines = vec![format!(
        "imported {} ({}{reused}) into {}",
        count(imported.files_imported, "file"),
        size(imported.total_bytes),
        printable(&imported.vfs_path),
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
            "  … and {} more skipped; --json lists all",
            imported.skipped.len() - SHOWN
        ));
    }
    lines.join("\n")
}
