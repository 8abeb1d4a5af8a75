//! `avfs completions`: completions for a shell.

use crate::args::{Cli, ShellName};
use crate::error::Result;
use crate::output::raw;
use clap::CommandFactory;
use clap_complete::{Shell, generate};

pub fn run(shell: ShellName) -> Result<()> {
    let shell = match shell {
        ShellName::Bash => Shell::Bash,
        ShellName::Zsh => Shell::Zsh,
        ShellName::Fish => Shell::Fish,
    };
    let mut script = Vec::new();
    generate(shell, &mut Cli::command(), "avfs", &mut script);
    raw(&script)
}
