//! A home in this process, without a daemon: tries three ways to do something in three forks at once, and keeps the one
//! that works.
//!
//! `embedded DIRECTORY`: the directory of the home, which is made.

#![allow(clippy::print_stdout, clippy::print_stderr)]

use agentvfs::{Avfs, Result};
use std::process::ExitCode;

const ATTEMPTS: [(&str, &str); 3] = [
    ("first", "false"),
    ("second", "test -s /missing"),
    ("third", "sort /names > /sorted"),
];

fn main() -> Result<ExitCode> {
    agentvfs::init(); // this program is its own helper
    let Some(home) = std::env::args_os().nth(1) else {
        eprintln!("usage: embedded DIRECTORY");
        return Ok(ExitCode::from(2));
    };
    let avfs = Avfs::embedded(home)?;
    let vault = avfs.create_vault("project")?;
    vault.write("/names", "zoe\nada\n")?;

    let results = std::thread::scope(|scope| {
        let run = |(name, text): (&'static str, &'static str)| {
            let vault = &vault;
            scope.spawn(move || Ok((name, vault.fork(name)?.shell(text).run()?)))
        };
        let running = ATTEMPTS.map(run);
        let join = |thread: std::thread::ScopedJoinHandle<'_, _>| match thread.join() {
            Ok(done) => done,
            Err(panic) => std::panic::resume_unwind(panic),
        };
        running.map(join).into_iter().collect::<Result<Vec<_>>>()
    })?;

    for (name, result) in results {
        println!("{name}: {} {:?}", result.exit_code, result.changed_files);
        if result.success() {
            print!("{}", avfs.vault(name)?.read_text("/sorted")?);
        }
    }
    Ok(ExitCode::SUCCESS)
}
