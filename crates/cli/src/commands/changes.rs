//! `avfs changes`: all that a command changed.

use crate::args::ChangesArgs;
use crate::error::Result;
use crate::output::{Output, changes, note, say, summary};
use crate::session::Session;
use avfs_api::wire::{Changes, ExecChangesReport};

pub fn run(args: ChangesArgs, session: &mut Session, output: Output) -> Result<()> {
    let mut request = Changes {
        exec: args.exec,
        all: args.all,
        patch: args.patch,
        ..Changes::default()
    };
    if output.is_json() {
        return output.value(&whole(request, session)?);
    }
    let mut is_cut = false;
    // A page at a time, so that a list of any length can be printed.
    let last = loop {
        let page = session.call(&request)?;
        match &page.patch {
            Some(patch) => say(&changes::patch(patch))?,
            None => say(&changes::lines(&page.changes).join("\n"))?,
        }
        is_cut |= page.patch_truncated;
        if page.next_cursor.is_none() {
            break page;
        }
        request.cursor = page.next_cursor;
    };
    if is_cut {
        note(&"note: the patch of a file is too long, and left out")?;
    }
    if !args.all {
        for line in summary::ignored_lines(&last.ignored_changes) {
            note(&line)?;
        }
    }
    Ok(())
}

/// All pages in one answer.
fn whole(mut request: Changes, session: &mut Session) -> Result<ExecChangesReport> {
    let mut whole = session.call(&request)?;
    while let Some(cursor) = whole.next_cursor {
        request.cursor = Some(cursor);
        let page = session.call(&request)?;
        whole.changes.extend(page.changes);
        whole.patch = match (whole.patch, page.patch) {
            (Some(text), Some(more)) => Some(text + &more),
            (text, more) => text.or(more),
        };
        whole.patch_truncated |= page.patch_truncated;
        whole.next_cursor = page.next_cursor;
    }
    Ok(whole)
}
