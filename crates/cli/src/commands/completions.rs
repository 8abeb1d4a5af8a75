//! `avfs completions`: completion scripts for shells.

use crate::args::{ShellName, command};
use crate::error::Result;
use crate::output::{Output, raw};
use clap_complete::{Shell, generate};
use serde::Serialize;

#[derive(Serialize)]
struct Script {
    shell: String,
    script: String,
}

pub fn run(shell: ShellName, output: Output) -> Result<()> {
    let shell = match shell {
        ShellName::Bash => Shell::Bash,
        ShellName::Zsh => Shell::Zsh,
        ShellName::Fish => Shell::Fish,
    };
    let mut script = Vec::new();
    generate(shell, &mut command(), "avfs", &mut script);
    if output.is_json() {
        let script = String::from_utf8_lossy(&script).into_owned();
        return output.value(&Script {
            shell: shell.to_string(),
            script,
        });
    }
    raw(&script)
}
