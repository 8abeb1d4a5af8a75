//! For developers only: `cargo xtask tidy` checks the rules of this repository, `cargo xtask projects` runs well-known
//! projects natively and in a vault.
#![allow(clippy::print_stdout, clippy::print_stderr)]

mod projects;
mod tidy;

use std::process::ExitCode;

fn main() -> ExitCode {
    match std::env::args().nth(1).as_deref() {
        Some("tidy") => {
            let complaints = tidy::check(&tidy::top());
            for complaint in &complaints {
                eprintln!("{complaint}");
            }
            if complaints.is_empty() {
                ExitCode::SUCCESS
            } else {
                ExitCode::FAILURE
            }
        }
        Some("projects") => match projects::run(std::env::args().skip(2)) {
            Ok(()) => ExitCode::SUCCESS,
            Err(why) => {
                eprintln!("{why}");
                ExitCode::FAILURE
            }
        },
        _ => {
            eprintln!("usage: cargo xtask tidy | projects");
            ExitCode::from(2)
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::tidy;

    #[test]
    fn the_repository_is_tidy() {
        let complaints = tidy::check(&tidy::top());
        assert!(complaints.is_empty(), "\n{}", complaints.join("\n"));
    }
}
