//! Examples for `--help`, by verb. Verbs that are not listed have theirs beside their arguments.

use clap::Command;

const EXAMPLES: &[(&str, &str)] = &[
    (
        "mcp",
        "  claude mcp add agentvfs -- avfs mcp\n  avfs mcp --vault myproject --agent claude\n  \
         avfs mcp --toolset guide --only myproject --scopes read,run",
    ),
    (
        "git",
        "  avfs git status\n  avfs git commit -m 'Fix the parser' --all\n  avfs git diff --stat",
    ),
    (
        "transfer",
        "  avfs transfer set ~/exchange\n  avfs transfer in data.tar.gz /data\n  avfs transfer out /report report-1",
    ),
    (
        "transfer in",
        "  avfs transfer in dataset /data\n  avfs transfer in inputs/data.tar.gz /data",
    ),
    (
        "transfer out",
        "  avfs transfer out /workspace/report report-1",
    ),
    ("transfer show", "  avfs transfer show"),
    ("transfer set", "  avfs transfer set ~/exchange"),
    ("transfer off", "  avfs transfer off"),
    (
        "vault",
        "  avfs vault create myproject\n  avfs vault fork myproject try-1 --use",
    ),
    (
        "vault create",
        "  avfs vault create myproject\n  avfs vault create myproject --backend sqlite",
    ),
    (
        "vault list",
        "  avfs vault list\n  avfs vault list --json | jq -r '.[].name'",
    ),
    (
        "vault info",
        "  avfs vault info                 the current vault\n  avfs vault info try-1",
    ),
    (
        "vault use",
        "  avfs vault use myproject\n  \
         avfs vault use try-1 --here     in this directory and below; others keep the current vault\n  \
         avfs vault use --here           no longer",
    ),
    (
        "shell",
        "  avfs shell\n  avfs --vault try-1 shell\n  printf 'cd /src\\nls\\n' | avfs shell    as a script",
    ),
    ("man", "  avfs man ~/.local/share/man/man1 && man avfs-exec"),
    (
        "vault fork",
        "  avfs vault fork myproject try-1 --use\n  \
         avfs vault fork myproject old --checkpoint before-refactor\n  \
         avfs vault fork myproject older --version 3",
    ),
    ("vault rename", "  avfs vault rename try-1 winner"),
    ("vault delete", "  avfs vault delete try-2"),
    (
        "vault undelete",
        "  avfs vault undelete try-2       until the next gc",
    ),
    (
        "vault set",
        "  avfs vault set env.CI=1 timeout=10m\n  \
         avfs vault set profile=restrictive memory=1g    a limit overrides the profile\n  \
         avfs vault set --default profile=moderate max_size_mb=2000    for new vaults",
    ),
    ("vault unset", "  avfs vault unset env.CI memory"),
    ("vault defaults", "  avfs vault defaults"),
    ("vault log", "  avfs vault log myproject -n 5"),
    ("ls", "  avfs ls /workspace\n  avfs ls -la /workspace/src"),
    ("mkdir", "  avfs mkdir -p /workspace/a/b"),
    (
        "rm",
        "  avfs rm /workspace/old.txt\n  avfs rm -rf /workspace/build",
    ),
    ("mv", "  avfs mv /workspace/a.txt /workspace/b.txt"),
    ("stat", "  avfs stat /workspace/run.sh"),
    (
        "touch",
        "  avfs touch /workspace/marker\n  avfs touch -c /workspace/Makefile    only if it exists",
    ),
    ("tree", "  avfs tree /workspace -L 2"),
    ("untag", "  avfs untag /src/main.py reviewed"),
    ("revert", "  avfs revert /src/main.py"),
    (
        "checkpoint",
        "  avfs checkpoint save before-refactor\n  avfs checkpoint restore before-refactor",
    ),
    (
        "checkpoint save",
        "  avfs checkpoint save before-refactor\n  avfs checkpoint save                 with a generated name",
    ),
    ("checkpoint list", "  avfs checkpoint list"),
    ("checkpoint info", "  avfs checkpoint info before-refactor"),
    (
        "checkpoint restore",
        "  avfs checkpoint restore before-refactor\n  avfs checkpoint restore --undo\n  \
         avfs checkpoint restore before-refactor --force",
    ),
    (
        "checkpoint delete",
        "  avfs checkpoint delete before-refactor\n  avfs checkpoint delete before-refactor --force    also if vaults were forked from it",
    ),
    (
        "commit",
        "  avfs commit                     what running commands and open mounts have written",
    ),
    (
        "mounts",
        "  avfs mounts\n  avfs mounts --json | jq -r '.mounts[].dir'",
    ),
    ("proxy", "  avfs proxy exec -- make test"),
    ("proxy exec", EXEC),
    ("exec", EXEC),
    (
        "job",
        "  avfs job start -- npm run dev\n  avfs job logs -f 1\n  avfs job kill 1",
    ),
    (
        "job start",
        "  avfs job start -- cargo test                    prints the job's number\n  \
         avfs job start --lifetime detached --timeout 8h -- ./train.sh\n  \
         avfs job start --lifetime client --lease 2m -- npm run dev\n  \
         avfs job start --stdin -- python3 -i           `avfs job stdin` writes to it\n  \
         avfs job start --tty --size 120x40 -- bash     `avfs attach` connects to it",
    ),
    (
        "job poll",
        "  avfs job poll 1\n  avfs --json job poll 1 --offset 4096    only what was written since",
    ),
    ("job list", "  avfs job list\n  avfs job list --running"),
    (
        "job logs",
        "  avfs job logs 1\n  avfs job logs -f 1 --stream stderr",
    ),
    (
        "job wait",
        "  avfs job wait 1 && echo it worked\n  avfs job wait 1 --timeout 30s",
    ),
    (
        "job kill",
        "  avfs job kill 1                 SIGTERM to all its processes, SIGKILL after two seconds\n  \
         avfs job kill 1 --signal INT",
    ),
    (
        "job stdin",
        "  avfs job stdin 1 'print(6 * 7)'\n  avfs job stdin 1 - --eof < data\n  avfs job stdin 1 --eof",
    ),
    (
        "attach",
        "  avfs attach 1                   Ctrl-\\ disconnects; the job continues\n  \
         avfs attach 1 --record session.cast",
    ),
    (
        "policy",
        "  avfs policy explain -- git push origin main\n  avfs policy edit --level user",
    ),
    ("approval", "  avfs approval setup\n  avfs approval watch"),
    ("audit verify", "  avfs audit verify"),
    (
        "stats",
        "  avfs stats\n  avfs stats --json | jq .dedup_ratio",
    ),
    (
        "quota set",
        "  avfs quota set max_size_mb 500\n  avfs quota set max_files 20000",
    ),
    ("quota clear", "  avfs quota clear max_size_mb"),
    (
        "compact",
        "  avfs gc && avfs compact\n  avfs compact --json | jq .bytes_freed",
    ),
    ("pwd", "  avfs pwd"),
    (
        "fsck",
        "  avfs fsck\n  avfs fsck --json | jq '.damaged[].seen'",
    ),
    ("daemon", "  avfs daemon status\n  avfs daemon logs -n 50"),
    ("daemon start", "  avfs daemon start"),
    (
        "daemon status",
        "  avfs daemon status\n  avfs daemon status --json | jq .running_execs",
    ),
    ("daemon stop", "  avfs daemon stop"),
    (
        "daemon logs",
        "  avfs daemon logs -n 50\n  avfs daemon logs --follow",
    ),
    ("service", "  avfs service install\n  avfs service status"),
    (
        "service install",
        "  avfs service install                            the Unix socket alone\n  \
         avfs service install --listen 127.0.0.1:7070    also the network",
    ),
    ("service remove", "  avfs service remove"),
    ("service status", "  avfs service status --json"),
    (
        "serve",
        "  avfs serve --idle-timeout 0          for a service manager\n  \
         avfs key create ci --scope read,write,exec\n  \
         avfs serve --listen 127.0.0.1:7070   also to the network, for whoever shows a key",
    ),
    (
        "key",
        "  avfs key create ci --scope read,write,exec --vault 'ci-*' --expires 30d\n  \
         avfs serve --listen 127.0.0.1:7070\n  \
         curl -H \"authorization: Bearer $KEY\" http://127.0.0.1:7070/v1/vaults",
    ),
    (
        "network cache",
        "  avfs network cache show\n  avfs network cache clear",
    ),
    (
        "network",
        "  avfs network show\n  \
         avfs network allow example.com '*.example.org:8443'\n  \
         avfs network log --denied",
    ),
    (
        "port",
        "  avfs port forward try-1 3000\n  avfs port list\n  avfs port remove try-1 3000",
    ),
    (
        "secret",
        "  avfs secret set API_TOKEN --host api.example.com < token.txt\n  \
         avfs network allow api.example.com\n  \
         avfs exec -- curl https://api.example.com/v1/me",
    ),
    ("demo", "  avfs demo"),
    (
        "aliases",
        "  eval \"$(avfs aliases)\"; vls /workspace\n  avfs aliases --shell fish --prefix av | source",
    ),
    (
        "completions",
        "  avfs completions bash > ~/.local/share/bash-completion/completions/avfs\n  \
         avfs completions zsh > ~/.zfunc/_avfs\n  \
         avfs completions fish > ~/.config/fish/completions/avfs.fish",
    ),
];

const EXEC: &str = "\
  avfs proxy exec -- python3 /src/main.py
  avfs proxy exec --cwd /workspace --timeout 60s -- cargo test
  avfs proxy exec --env CI=1 --shell 'make && make check'
  avfs proxy exec --memory 512m --pids 100 -- ./untrusted
  avfs proxy exec --fork --keep-on-success -- npm test    in a fork, kept if the command succeeds
  cat data | avfs proxy exec --stdin -- sort              with standard input
  avfs proxy exec --tty -- vim /workspace/notes.md        on a terminal
  avfs proxy exec --stream -- make                        one JSON object per event
  avfs --json proxy exec -- true                          the envelope, for programs";

/// The command line, each verb with its examples.
pub fn with_examples(command: Command) -> Command {
    decorate(command, "")
}

fn decorate(command: Command, words: &str) -> Command {
    let found = EXAMPLES.iter().find(|(verb, _)| *verb == words);
    let own = command.get_after_help().map(ToString::to_string);
    let own = own.map_or_else(String::new, |own| format!("{own}\n\n"));
    let command = match found {
        Some((verb, examples)) => {
            // The short form is explained in its own words.
            let examples = match *verb {
                "exec" => examples
                    .replace("avfs proxy exec", "avfs exec")
                    .replace("json proxy", "json"),
                _ => (*examples).to_owned(),
            };
            command.after_help(format!("{own}Examples:\n{examples}"))
        }
        None => command,
    };
    let below: Vec<String> = command
        .get_subcommands()
        .map(|verb| verb.get_name().to_owned())
        .collect();
    below.into_iter().fold(command, |command, name| {
        let words = format!("{words} {name}");
        command.mut_subcommand(name, |verb| decorate(verb, words.trim_start()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::{Cli, command};
    use clap::Parser;

    /// The simple commands of a line of examples, up to the explanation behind two spaces.
    fn simple_commands(line: &str) -> Vec<Vec<String>> {
        let mut commands = vec![vec![String::new()]];
        let mut quote = None;
        let mut characters = line.trim_start().chars().peekable();
        while let Some(character) = characters.next() {
            let words = commands.last_mut().expect("one is always there");
            let word = words.last_mut().expect("one is always there");
            match (quote, character) {
                (Some(open), _) if open == character => quote = None,
                (None, '\'' | '"') => quote = Some(character),
                (None, '|' | '&' | ';' | '<' | '>') => commands.push(vec![String::new()]),
                (None, ' ') if characters.peek() == Some(&' ') => break,
                (None, ' ') => words.push(String::new()),
                _ => word.push(character),
            }
        }
        for words in &mut commands {
            words.retain(|word| !word.is_empty());
        }
        commands
    }

    fn check(verb: &Command, checked: &mut usize) {
        let help = verb.get_after_help().map(ToString::to_string);
        let lines = help.iter().flat_map(|help| help.lines());
        for line in lines.filter(|line| line.starts_with("  ")) {
            let commands = simple_commands(line).into_iter();
            for words in commands.filter(|words| words.first().is_some_and(|it| it == "avfs")) {
                *checked += 1;
                let parsed = Cli::try_parse_from(&words);
                assert!(parsed.is_ok(), "{line}: {}", parsed.unwrap_err());
            }
        }
        verb.get_subcommands().for_each(|verb| check(verb, checked));
    }

    #[test]
    fn every_example_of_the_help_is_accepted() {
        let mut checked = 0;
        check(&command(), &mut checked);
        assert!(checked > 150, "{checked} examples");
    }
}
