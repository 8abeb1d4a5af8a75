//! Shows what a command writes while it runs, and asks a person when the policy wants the command approved.
//!
//! `approval VAULT SHELL-TEXT`, at a terminal: only there does a passphrase count. It is that of `avfs approval setup`.

#![allow(clippy::print_stdout, clippy::print_stderr)]

use agentvfs::{Avfs, Event, Result};
use std::ops::ControlFlow;
use std::process::ExitCode;

fn main() -> Result<ExitCode> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [vault, text] = words.as_slice() else {
        eprintln!("usage: approval VAULT SHELL-TEXT");
        return Ok(ExitCode::from(2));
    };
    let avfs = Avfs::connect()?;
    let result = avfs
        .vault(vault)?
        .shell(text)
        .wait_for_approval()
        .on_stdout(|bytes| print!("{}", String::from_utf8_lossy(bytes)))
        .on_stderr(|bytes| eprint!("{}", String::from_utf8_lossy(bytes)))
        .on_event(|event| match event {
            Event::WaitingForApproval(id) => match ask(&avfs, id) {
                Ok(()) => ControlFlow::Continue(()),
                Err(error) => {
                    eprintln!("{error}");
                    ControlFlow::Break(()) // ends the command
                }
            },
            _ => ControlFlow::Continue(()),
        })
        .run()?;
    println!("-> {} {}", result.exit_code, result.decision.action);
    Ok(ExitCode::SUCCESS)
}

/// Shows what is to be approved, and approves exactly that.
fn ask(avfs: &Avfs, id: &str) -> Result<()> {
    let shown = avfs.approval(id)?;
    for line in &shown.approval.lines {
        println!("{line}");
    }
    println!("passphrase, to approve it ({}):", shown.approval.rule);
    let mut passphrase = String::new();
    // Without a line there is none, which is refused.
    let _ = std::io::stdin().read_line(&mut passphrase);
    avfs.approve(&shown, passphrase.trim_end_matches('\n'), None)?;
    Ok(())
}
