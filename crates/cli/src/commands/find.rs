//! `avfs find`: paths of the vault by their properties.

use super::paths;
use crate::args::FindArgs;
use crate::error::Result;
use crate::output::changes::printable;
use crate::output::{Output, note};
use crate::session::Session;
use avfs_api::wire::Find;

pub fn run(args: FindArgs, session: &mut Session, output: Output) -> Result<()> {
    let (path, path_b64) = paths::in_vault(&args.path);
    let report = session.call(&Find {
        path,
        path_b64,
        name: args.name,
        ignore_case: args.ignore_case,
        types: args.types,
        sizes: args.sizes,
        min_size: args.min_size,
        max_size: args.max_size,
        mtimes: args.mtimes,
        tags: args.tags,
        meta: args.meta,
        depth: args.depth,
        limit: args.limit,
    })?;
    output.answer(&report, |report| {
        let paths = report.results.iter().map(|found| printable(&found.path));
        paths.collect::<Vec<_>>().join("\n")
    })?;
    if report.truncated {
        let count = report.count;
        note(&format!(
            "note: only the first {count} paths are shown; see --limit"
        ))?;
    }
    Ok(())
}
