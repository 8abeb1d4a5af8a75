//! Scripts, run by bash.

use std::path::Path;
use std::process::{Command, Stdio};

/// What went wrong, as a sentence.
pub type Outcome<T> = Result<T, String>;

/// Runs a script in a directory. What it printed is the error where it fails.
pub fn bash(dir: &Path, script: &str) -> Outcome<()> {
    let run = Command::new("bash")
        .args(["-euo", "pipefail", "-c", script])
        .current_dir(dir)
        .stdin(Stdio::null())
        .output();
    let output = run.map_err(|error| format!("bash: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    Err(format!(
        "{} in {}:\n{script}\n{}{}",
        output.status,
        dir.display(),
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    ))
}
