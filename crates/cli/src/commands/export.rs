//! `avfs export`: copy a directory or a file of the vault to the host, or only what changed.

use super::one_file::{self, Standing};
use super::paths;
use crate::args::ExportArgs;
use crate::error::{Error, Result};
use crate::exit;
use crate::output::changes::printable;
use crate::output::table::{count, size};
use crate::output::{Output, style};
use crate::session::Session;
use avfs_api::wire::{
    ApplyWord, ArchiveRead, Export, ExportArchive, ExportChanges, Exported, ExportedChanges,
    RunsByItselfItem, SkippedItem,
};
use std::ffi::OsString;
use std::io::IsTerminal;
use std::path::Path;

/// How many skipped names are printed.
const SHOWN: usize = 10;

pub fn run(args: ExportArgs, session: &mut Session, output: Output) -> Result<u8> {
    if let Some(host_dir) = &args.changed_only {
        return changes(host_dir, &args, session, output).map(|()| exit::OK);
    }
    let typed = args.path.unwrap_or_else(|| OsString::from("/"));
    if let (None, Some(host)) = (&args.tar, &args.host_dir)
        && let Some(file) = one_file::find(&typed, session)?
    {
        let standing = Standing {
            overwrite: args.overwrite,
            allow_hooks: args.allow_hooks,
        };
        let exported = one_file::export(&file, host, standing, session)?;
        return answer(&exported, output);
    }
    let (path, path_b64) = paths::in_vault(&typed);
    match (args.tar, args.host_dir) {
        (Some(file), _) if file.as_os_str() == "-" => {
            check_stream(output, args.keep_going)?;
            session.download(&ArchiveRead { path, path_b64 })?;
            Ok(exit::OK)
        }
        (Some(file), _) => {
            let (host_file, host_file_b64) = paths::on_host(&file)?;
            let request = ExportArchive {
                path,
                path_b64,
                host_file: host_file.into(),
                host_file_b64,
                keep_going: args.keep_going,
            };
            let exported = session.call_watched(&request, output, "exporting")?;
            answer(&exported, output)
        }
        (None, host_dir) => {
            let (host_dir, host_dir_b64) = paths::on_host(&host_dir.unwrap_or_default())?;
            let request = Export {
                path,
                path_b64,
                host_dir: host_dir.into(),
                host_dir_b64,
                overwrite: args.overwrite,
                allow_hooks: args.allow_hooks,
                keep_going: args.keep_going,
            };
            let exported = session.call_watched(&request, output, "exporting")?;
            answer(&exported, output)
        }
    }
}

/// Missing files make it an error, although the rest was exported.
fn answer(exported: &Exported, output: Output) -> Result<u8> {
    output.answer(exported, text)?;
    Ok(if exported.missing.is_empty() {
        exit::OK
    } else {
        1
    })
}

fn check_stream(output: Output, keep_going: bool) -> Result<()> {
    let text = if keep_going {
        "standard output is used by the archive, so missing files cannot be listed"
    } else if output.is_json() {
        "standard output is used by the archive, so there can be no JSON"
    } else if std::io::stdout().is_terminal() {
        "standard output is a terminal"
    } else {
        return Ok(());
    };
    Err(Error::Invalid {
        text: text.into(),
        hint: Some("name a file: `avfs export PATH --tar FILE`".into()),
    })
}

pub(super) fn text(exported: &Exported) -> String {
    let mut lines = vec![format!(
        "exported {} ({}) to {}",
        count(exported.files_exported, "file"),
        size(exported.total_bytes),
        printable(&exported.real_path),
    )];
    lines.extend(skipped_lines(&exported.skipped));
    lines.extend(runs_lines(&exported.runs_by_itself, false));
    // All of them are listed: the user has to know what is missing.
    lines.extend(exported.missing.iter().map(|item| {
        let (missing, path) = (style::bad("missing:"), printable(&item.path));
        format!("{missing} {path} ({})", printable(&item.reason))
    }));
    lines.join("\n")
}

/// All of them are listed: the user has to look at each.
fn runs_lines(found: &[RunsByItselfItem], dry_run: bool) -> Vec<String> {
    let line = |item: &RunsByItselfItem| {
        let warning = style::bad("executed by tools:");
        let allowed = match item.guarded && dry_run {
            true => "; written only with --allow-hooks",
            false => "",
        };
        format!(
            "{warning} {} ({}{allowed})",
            printable(&item.path),
            item.why
        )
    };
    found.iter().map(line).collect()
}

fn changes(
    host_dir: &Path,
    args: &ExportArgs,
    session: &mut Session,
    output: Output,
) -> Result<()> {
    let (host_dir, host_dir_b64) = paths::on_host(host_dir)?;
    let (path, path_b64) = match &args.path {
        Some(path) => {
            let (path, path_b64) = paths::in_vault(path);
            (Some(path), path_b64)
        }
        None => (None, None),
    };
    let request = ExportChanges {
        host_dir: host_dir.into(),
        host_dir_b64,
        path,
        path_b64,
        dry_run: args.dry_run,
        allow_hooks: args.allow_hooks,
    };
    let exported = session.call_watched(&request, output, "exporting")?;
    output.answer(&exported, changes_text)
}

fn changes_text(exported: &ExportedChanges) -> String {
    let word = |action| match action {
        ApplyWord::Created => 'A',
        ApplyWord::Replaced => 'M',
        ApplyWord::Deleted => 'D',
        ApplyWord::Mode => 'T',
    };
    let mut lines: Vec<String> = exported
        .changes
        .iter()
        .map(|change| format!("{} {}", word(change.action), printable(&change.path)))
        .collect();
    lines.extend(skipped_lines(&exported.skipped));
    lines.extend(runs_lines(&exported.runs_by_itself, exported.dry_run));
    let host = printable(&exported.real_path);
    lines.push(match (exported.changes.len(), exported.dry_run) {
        (0, _) => format!("{host} is as {} is", exported.vfs_path),
        (_, true) => format!("this would change {host}; to do it, leave out --dry-run"),
        (paths, false) => format!("{} of {host} changed", count(paths as u64, "path")),
    });
    lines.join("\n")
}

fn skipped_lines(skipped: &[SkippedItem]) -> Vec<String> {
    let shown = skipped.iter().take(SHOWN);
    let mut lines: Vec<String> = shown
        .map(|item| format!("  {}: {}", printable(&item.path), item.reason))
        .collect();
    if skipped.len() > SHOWN {
        lines.push(format!("  … and {} more", skipped.len() - SHOWN));
    }
    lines
}
