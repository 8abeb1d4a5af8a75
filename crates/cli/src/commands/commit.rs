//! `avfs commit`: make a version of what running commands and mounts have written.

use crate::error::Result;
use crate::output::changes::unlisted;
use crate::output::{Output, summary};
use crate::session::Session;
use avfs_api::wire::{Commit, CommitItem};

pub fn run(session: &mut Session, output: Output) -> Result<()> {
    let committed = session.call(&Commit {})?;
    output.answer(&committed, text)
}

fn text(committed: &CommitItem) -> String {
    let Some(version) = committed.version else {
        return "nothing has changed".into();
    };
    let mut lines = vec![format!("committed as version v{version}")];
    let more = unlisted(committed.changes_total, &committed.changed_files);
    lines.extend(summary::lines(&committed.changed_files, more, None));
    lines.extend(
        committed
            .skipped
            .iter()
            .map(|it| format!("not kept: {} ({})", it.path, it.reason)),
    );
    lines.join("\n")
}
