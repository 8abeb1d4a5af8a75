//! `avfs search`: files of the vault by the words in them.

use crate::args::SearchArgs;
use crate::error::Result;
use crate::output::changes::printable;
use crate::output::{Output, style};
use crate::session::Session;
use avfs_api::wire::{Search, SearchReport};

pub fn run(args: SearchArgs, session: &mut Session, output: Output) -> Result<()> {
    let report = session.call(&Search {
        query: args.query.join(" "),
        limit: args.limit,
        rebuild: args.rebuild,
    })?;
    output.answer(&report, text)
}

fn text(report: &SearchReport) -> String {
    let mut lines = Vec::new();
    for hit in &report.results {
        lines.push(style::place(printable(&hit.path)).to_string());
        for line in hit.snippet.lines().filter(|line| !line.trim().is_empty()) {
            lines.push(format!("    {}", marked(&printable(line))));
        }
    }
    lines.join("\n")
}

/// Highlights the found words where there are colours.
fn marked(line: &str) -> String {
    let mut text = String::new();
    let mut rest = line;
    while let Some((before, after)) = rest.split_once(">>>>") {
        let Some((word, after)) = after.split_once("<<<<") else {
            break;
        };
        text.push_str(before);
        text.push_str(&style::strong(format!(">>>>{word}<<<<")).to_string());
        rest = after;
    }
    text + rest
}
