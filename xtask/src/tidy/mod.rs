//! The rules for this repository, each a function from the working tree to complaints.

mod arrows;
mod comments;
mod documents;
mod folders;
mod sources;
mod sql;
mod texts;

use std::path::{Path, PathBuf};
use std::process::Command;

/// The top of the working tree.
pub fn top() -> PathBuf {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
    manifest
        .parent()
        .expect("xtask is one level down")
        .to_owned()
}

/// Everything that is wrong, one line each.
pub fn check(top: &Path) -> Vec<String> {
    let files = tracked(top);
    let mut complaints = arrows::check(top);
    complaints.extend(folders::check(top, &files));
    complaints.extend(comments::check(top, &files));
    complaints.extend(documents::check(top, &files));
    complaints.extend(sources::check(top, &files));
    complaints.extend(sql::check(top, &files));
    complaints.extend(texts::check(top, &files));
    complaints
}

/// Files that git tracks or would, as paths from the top.
fn tracked(top: &Path) -> Vec<String> {
    let output = Command::new("git")
        .args(["ls-files", "--cached", "--others", "--exclude-standard"])
        .current_dir(top)
        .output()
        .expect("git runs");
    let text = String::from_utf8_lossy(&output.stdout);
    let files = text.lines().map(str::to_owned);
    files.filter(|file| top.join(file).is_file()).collect()
}
