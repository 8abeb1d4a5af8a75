//! For developers only: `cargo run -p xtask -- tidy` checks the rules of this repository.
#![allow(clippy::print_stdout, clippy::print_stderr)]

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
        _ => {
            eprintln!("usage: cargo run -p xtask -- tidy");
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
