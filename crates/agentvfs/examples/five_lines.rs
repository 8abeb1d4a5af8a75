//! Forks a vault, names its state, runs a command in the fork and says what it changed.
//!
//! It needs a vault `myproject`: `avfs vault create myproject && avfs import . /workspace`.

#![allow(clippy::print_stdout)]

fn main() -> agentvfs::Result<()> {
    let avfs = agentvfs::Avfs::connect()?; // the daemon of this user, started if need be
    let task = avfs.vault("myproject")?.fork("task-001")?;
    task.checkpoint("before-refactor")?;
    let result = task.command("cargo").arg("test").run()?;
    println!("{} {:?}", result.exit_code, result.changed_files);
    Ok(())
}
