//! `avfs diff`: the differences between two states.

use super::paths;
use crate::args::DiffArgs;
use crate::error::{Error, Result};
use crate::output::{Output, changes, note};
use crate::session::Session;
use avfs_api::wire::{Diff, DiffReport};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

pub fn run(args: DiffArgs, session: &mut Session, output: Output) -> Result<()> {
    let request = request(&args)?;
    let report = session.call(&request)?;
    output.answer(&report, |report| text(report, &args))?;
    if report.truncated {
        let shown = report.changes.len();
        note(&format!(
            "note: only the first {shown} changes are shown; name a directory to see those in it"
        ))?;
    }
    if report.patch_truncated {
        note(&"note: the patch is cut off; name a path to see the patch of it alone")?;
    }
    Ok(())
}

fn request(args: &DiffArgs) -> Result<Diff> {
    let is_path = |word: &&OsString| word.as_bytes().starts_with(b"/");
    let states: Vec<&OsString> = args.what.iter().take_while(|word| !is_path(word)).collect();
    let given: Vec<&OsString> = args.what[states.len()..].iter().collect();
    if states.len() > 2 || given.len() > 2 || !given.iter().all(is_path) {
        return Err(Error::Invalid {
            text: "give up to two states, then up to two paths that begin with /".into(),
            hint: Some("see `avfs diff --help`".into()),
        });
    }
    if states.len() > 1 && args.v2.is_some() || !states.is_empty() && args.v1.is_some() {
        return Err(Error::Invalid {
            text: "a state is named twice: as a word, and by --v1 or --v2".into(),
            hint: Some("`avfs diff v3 v5` compares two versions".into()),
        });
    }
    let mut states = states.iter().map(|word| state(word));
    let version = |number: u64| format!("v{number}");
    // Two paths are compared in their current state, unless states are named.
    let default = if given.len() == 2 { "HEAD" } else { "BASE" };
    let from = states.next().or(args.v1.map(version));
    let to = states.next().or(args.v2.map(version));
    let mut given = given.into_iter().map(|word| paths::in_vault(word));
    let (path, path_b64) = given.next().unzip();
    let (path2, path2_b64) = given.next().unzip();
    let names_only = args.name_status || args.stat;
    Ok(Diff {
        from: from.unwrap_or_else(|| default.into()),
        to: to.unwrap_or_else(|| "HEAD".into()),
        patch: args.patch || path.is_some() && !names_only,
        stat: args.stat,
        path,
        path_b64: path_b64.flatten(),
        path2,
        path2_b64: path2_b64.flatten(),
    })
}

fn state(word: &OsStr) -> String {
    word.to_string_lossy().into_owned()
}

fn text(report: &DiffReport, args: &DiffArgs) -> String {
    if args.name_status {
        return changes::name_status(&report.changes).join("\n");
    }
    let mut text = String::new();
    if args.stat {
        text = changes::stat(&report.changes);
    }
    match &report.patch {
        Some(patch) => text + &changes::patch(patch),
        None if args.stat => text,
        None => changes::lines(&report.changes).join("\n"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_is_named_once() {
        let asked = |what: &[&str], v1, v2| {
            let args = DiffArgs {
                what: what.iter().map(OsString::from).collect(),
                patch: false,
                stat: false,
                name_status: false,
                v1,
                v2,
            };
            request(&args).map(|diff| (diff.from, diff.to))
        };
        let both = asked(&[], Some(3), Some(5)).unwrap();
        assert_eq!(both, ("v3".into(), "v5".into()));
        assert_eq!(asked(&["v3"], None, Some(5)).unwrap(), both);
        assert_eq!(asked(&["v3", "v5"], None, None).unwrap(), both);
        assert!(asked(&["v3"], Some(4), None).is_err());
        assert!(asked(&["v3", "v5"], None, Some(6)).is_err());
    }
}
