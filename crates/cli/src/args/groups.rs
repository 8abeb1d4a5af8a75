//! The commands of `avfs help`, in groups.

use clap::Command;
use std::fmt::Write;

/// Every command is in one group, in the order in which it is shown.
const GROUPS: [(&str, &[&str]); 6] = [
    (
        "Vaults",
        &[
            "vault", "import", "export", "transfer", "mount", "unmount", "mounts", "quota",
        ],
    ),
    (
        "Files",
        &[
            "ls", "cat", "write", "edit", "mkdir", "rm", "mv", "cp", "ln", "chmod", "touch",
            "stat", "tree", "find", "grep", "search", "tag", "untag", "meta", "pwd",
        ],
    ),
    (
        "History",
        &[
            "checkpoint",
            "diff",
            "log",
            "checkout",
            "revert",
            "commit",
            "audit",
        ],
    ),
    (
        "Running",
        &[
            "exec", "shell", "proxy", "job", "attach", "output", "changes", "git", "network",
            "port", "secret", "policy", "approval",
        ],
    ),
    ("Sharing", &["mcp", "serve", "service", "key"]),
    (
        "Care",
        &[
            "doctor",
            "daemon",
            "stats",
            "gc",
            "prune",
            "maintain",
            "compact",
            "fsck",
            "demo",
            "completions",
            "man",
            "aliases",
            "help",
        ],
    ),
];

/// The command line, with its commands in groups.
pub fn with_groups(command: Command) -> Command {
    let header = *command.get_styles().get_header();
    let literal = *command.get_styles().get_literal();
    let mut groups = String::new();
    for (heading, names) in GROUPS {
        let _ = writeln!(groups, "{header}{heading}:{header:#}");
        for name in names {
            let about = match command.find_subcommand(name).and_then(Command::get_about) {
                Some(about) => about.to_string(),
                None => "Show this, or the help of a command".into(),
            };
            let _ = writeln!(groups, "  {literal}{name:<12}{literal:#}{about}");
        }
        groups.push('\n');
    }
    command.help_template(format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{groups}\
         {header}Options:{header:#}\n{{options}}{{after-help}}"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn every_command_is_in_one_group() {
        let command = crate::args::Cli::command();
        let shown = command.get_subcommands().filter(|verb| !verb.is_hide_set());
        let mut shown: Vec<&str> = shown.map(Command::get_name).collect();
        shown.push("help");
        let mut grouped: Vec<&str> = GROUPS
            .iter()
            .flat_map(|(_, names)| *names)
            .copied()
            .collect();
        shown.sort_unstable();
        grouped.sort_unstable();
        assert_eq!(grouped, shown);
    }

    #[test]
    fn no_text_is_taken_for_a_place_in_the_template() {
        let command = crate::args::Cli::command();
        for verb in command.get_subcommands() {
            let about = verb
                .get_about()
                .map(ToString::to_string)
                .unwrap_or_default();
            assert!(!about.contains(['{', '}']), "{about}");
        }
    }
}
