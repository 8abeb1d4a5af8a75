//! `avfs completions`: completion scripts for shells. A script asks this program what fits, at every key.

use crate::args::ShellName;
use crate::complete::VARIABLE;
use crate::error::{Error, Result};
use crate::output::{Output, raw};
use clap_complete::env::{Bash, EnvCompleter, Fish, Zsh};
use serde::Serialize;

#[derive(Serialize)]
struct Script {
    shell: String,
    script: String,
}

pub fn run(shell: ShellName, output: Output) -> Result<()> {
    let shell: &dyn EnvCompleter = match shell {
        ShellName::Bash => &Bash,
        ShellName::Zsh => &Zsh,
        ShellName::Fish => &Fish,
    };
    let mut script = Vec::new();
    shell
        .write_registration(VARIABLE, "avfs", "avfs", "avfs", &mut script)
        .map_err(Error::io("cannot write the script"))?;
    if output.is_json() {
        let script = String::from_utf8_lossy(&script).into_owned();
        return output.value(&Script {
            shell: shell.name().to_owned(),
            script,
        });
    }
    raw(&script)
}
