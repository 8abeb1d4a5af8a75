//! `avfs grep`: lines of files in the vault.

use super::paths;
use crate::args::GrepArgs;
use crate::error::Result;
use crate::output::changes::{printable, printable_line};
use crate::output::{Output, note, style};
use crate::session::Session;
use avfs_api::wire::{Grep, GrepLineItem, GrepOutput, GrepReport};

pub fn run(args: GrepArgs, session: &mut Session, output: Output) -> Result<()> {
    let (path, path_b64) = paths::in_vault(&args.path);
    let around = args.context.unwrap_or(0);
    let report = session.call(&Grep {
        pattern: args.pattern.clone(),
        path,
        path_b64,
        ignore_case: args.ignore_case,
        fixed_strings: args.fixed_strings,
        invert: args.invert_match,
        before_context: args.before_context.unwrap_or(around),
        after_context: args.after_context.unwrap_or(around),
        globs: args.globs.clone(),
        output: if args.files_with_matches {
            GrepOutput::Files
        } else if args.count {
            GrepOutput::Counts
        } else {
            GrepOutput::Lines
        },
        limit: args.limit,
    })?;
    output.answer(&report, |report| text(report, &args))?;
    if report.truncated && !output.is_json() {
        let count = report.count;
        note(&format!(
            "note: only the first {count} matches are shown; see --limit"
        ))?;
    }
    Ok(())
}

fn text(report: &GrepReport, args: &GrepArgs) -> String {
    let mut lines = Vec::new();
    for file in &report.files {
        let path = style::place(printable(&file.path));
        lines.push(if args.files_with_matches {
            path.to_string()
        } else {
            format!("{path}:{}", file.count)
        });
    }
    // The last line that was printed, to see where lines were skipped.
    let mut last: Option<(&str, u64)> = None;
    let with_context = report
        .matches
        .iter()
        .any(|it| !it.before.is_empty() || !it.after.is_empty());
    for found in &report.matches {
        let first = found.before.first().unwrap_or(&found.line).line_number;
        let follows = last == Some((&found.path, first - 1));
        if with_context && last.is_some() && !follows {
            lines.push("--".into());
        }
        let path = printable(&found.path);
        let mut push = |line: &GrepLineItem, sign| lines.push(shown(&path, line, sign, args));
        found.before.iter().for_each(|line| push(line, '-'));
        push(&found.line, ':');
        found.after.iter().for_each(|line| push(line, '-'));
        let end = found.after.last().unwrap_or(&found.line).line_number;
        last = Some((&found.path, end));
    }
    lines.join("\n")
}

/// `path:12:text`, with `-` instead of `:` for context lines.
fn shown(path: &str, line: &GrepLineItem, sign: char, args: &GrepArgs) -> String {
    let path = style::place(path);
    let text = printable_line(&line.line);
    if args.line_number {
        let number = style::good(line.line_number);
        format!("{path}{sign}{number}{sign}{text}")
    } else {
        format!("{path}{sign}{text}")
    }
}
