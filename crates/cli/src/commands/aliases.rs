//! `avfs aliases`: shell aliases for the file verbs.

use crate::args::{AliasesArgs, ShellName};
use crate::error::Result;
use crate::output::Output;
use serde::Serialize;

/// File verbs, and `exec`.
const VERBS: [&str; 17] = [
    "ls", "cat", "write", "mkdir", "rm", "cp", "mv", "ln", "chmod", "touch", "edit", "stat",
    "tree", "grep", "find", "diff", "exec",
];

#[derive(Serialize)]
struct Aliases {
    shell: ShellName,
    prefix: String,
    aliases: Vec<Alias>,
}

#[derive(Serialize)]
struct Alias {
    name: String,
    command: String,
}

pub fn run(args: AliasesArgs, output: Output) -> Result<()> {
    let aliases = VERBS.iter().map(|verb| Alias {
        name: format!("{}{verb}", args.prefix),
        command: format!("avfs {verb}"),
    });
    let answer = Aliases {
        aliases: aliases.collect(),
        shell: args.shell,
        prefix: args.prefix,
    };
    output.answer(&answer, |answer| {
        let lines = answer.aliases.iter().map(|alias| match args.shell {
            ShellName::Bash | ShellName::Zsh => {
                format!("alias {}='{}'", alias.name, alias.command)
            }
            ShellName::Fish => format!("alias {} '{}'", alias.name, alias.command),
        });
        lines.collect::<Vec<_>>().join("\n")
    })
}
