//! Reads the examples out of a markdown page.

use std::iter::{Enumerate, Peekable};
use std::str::Lines;

/// Languages of blocks that hold no commands.
const NOT_COMMANDS: [&str; 5] = ["json", "rust", "sql", "text", "toml"];
/// Begins the mark, directly before a block, that keeps the block from being run.
const NOT_RUN: &str = "<!-- not run:";
/// Begins a comment that holds commands to run at its place, up to a line `-->`.
const PREPARE: &str = "<!-- prepare";
/// Ends a command that is expected to fail, followed by its exit code.
const EXITS_WITH: &str = "# exits with ";

/// One thing that the shell of a page does.
#[derive(Debug, Eq, PartialEq)]
pub struct Step {
    /// The line of the page at which it begins.
    pub line: usize,
    /// Shell text, one or more lines.
    pub command: String,
    pub exit_code: i32,
    /// The lines that it prints; `None` if they are not compared.
    pub output: Option<Vec<String>>,
}

type Numbered<'t> = Peekable<Enumerate<Lines<'t>>>;

/// The steps of a page, in order; or what is wrong with its blocks.
pub fn steps(text: &str) -> Result<Vec<Step>, String> {
    let mut lines = text.lines().enumerate().peekable();
    let mut steps = Vec::new();
    let mut reason = None;
    while let Some((index, line)) = lines.next() {
        let number = index + 1;
        if let Some(info) = line.strip_prefix("```") {
            // Of `rust,no_run`, the rest is for rustdoc, which runs these.
            let language = info.split(',').next().unwrap_or(info);
            let body = body(&mut lines, number, "```")?;
            // rustdoc takes words of its own behind a comma.
            let language = language.split(',').next().unwrap_or(language);
            match (language, reason.take()) {
                (_, Some(_)) => {}
                ("console", None) => steps.extend(session(&body)?),
                ("sh", None) => steps.push(script(number + 1, &body)),
                (other, None) if NOT_COMMANDS.contains(&other) => {}
                (other, None) => {
                    return Err(format!(
                        "{number}: a block of {other:?}: make it one of console, sh, {NOT_COMMANDS:?}, \
                         or write {NOT_RUN:?} and the reason above it"
                    ));
                }
            }
        } else if line.starts_with(PREPARE) {
            let body = body(&mut lines, number, "-->")?;
            steps.push(script(number + 1, &body));
        } else if let Some(rest) = line.strip_prefix(NOT_RUN) {
            let given = rest.trim_end_matches("-->").trim();
            let is_before_a_block = lines
                .peek()
                .is_some_and(|(_, next)| next.starts_with("```"));
            if given.is_empty() || !is_before_a_block {
                return Err(format!(
                    "{number}: {NOT_RUN:?} needs a reason, and a block on the next line"
                ));
            }
            reason = Some(given);
        }
    }
    Ok(steps)
}

/// The lines up to one that is `end`, each with its number.
fn body<'t>(
    lines: &mut Numbered<'t>,
    begin: usize,
    end: &str,
) -> Result<Vec<(usize, &'t str)>, String> {
    let mut body = Vec::new();
    for (index, line) in lines {
        if line == end {
            return Ok(body);
        }
        body.push((index + 1, line));
    }
    Err(format!("{begin}: it has no end ({end})"))
}

fn script(line: usize, body: &[(usize, &str)]) -> Step {
    let lines: Vec<&str> = body.iter().map(|(_, line)| *line).collect();
    Step {
        line,
        command: lines.join("\n"),
        exit_code: 0,
        output: None,
    }
}

/// `$ command` lines, each followed by what it prints. `> ` continues a command.
fn session(body: &[(usize, &str)]) -> Result<Vec<Step>, String> {
    let mut steps: Vec<Step> = Vec::new();
    for (number, line) in body {
        if let Some(command) = line.strip_prefix("$ ") {
            steps.push(Step {
                line: *number,
                command: command.to_owned(),
                exit_code: exit_code(command).map_err(|why| format!("{number}: {why}"))?,
                output: Some(Vec::new()),
            });
            continue;
        }
        let Some(step) = steps.last_mut() else {
            return Err(format!("{number}: a console block begins with `$ `"));
        };
        let output = step.output.get_or_insert_default();
        match line.strip_prefix("> ") {
            Some(more) if output.is_empty() => {
                step.command.push('\n');
                step.command.push_str(more);
            }
            _ => output.push(line.trim_end().to_owned()),
        }
    }
    Ok(steps)
}

fn exit_code(command: &str) -> Result<i32, String> {
    match command.rsplit_once(EXITS_WITH) {
        None => Ok(0),
        Some((_, code)) => code.trim().parse().map_err(|_| {
            format!("{EXITS_WITH:?} is followed by a number and nothing else, not {code:?}")
        }),
    }
}

#[test]
fn blocks_become_steps() {
    let page = "# Title\n```sh\na\nb # why\n```\ntext\n<!-- prepare\nc\n-->\n\n```console\n$ d\none\n…\n\
        $ e \\\n> f # exits with 3\n$ g # exits with 3\n```\n<!-- not run: needs a terminal -->\n```sh\nh\n```\n```json\n{}\n```\n";
    let step = |line, command: &str, exit_code, output: Option<&[&str]>| Step {
        line,
        command: command.into(),
        exit_code,
        output: output.map(|lines| lines.iter().map(|line| (*line).to_owned()).collect()),
    };
    assert_eq!(
        steps(page).unwrap(),
        [
            step(3, "a\nb # why", 0, None),
            step(8, "c", 0, None),
            step(12, "$ d".trim_start_matches("$ "), 0, Some(&["one", "…"])),
            step(15, "e \\\nf # exits with 3", 0, Some(&[])),
            step(17, "g # exits with 3", 3, Some(&[])),
        ]
    );
}

#[test]
fn a_block_that_would_not_be_run_is_refused() {
    for (page, why) in [
        ("```\navfs ls\n```\n", "1: a block of \"\""),
        ("```bash\navfs ls\n```\n", "1: a block of \"bash\""),
        ("```console\navfs ls\n```\n", "2: a console block begins"),
        ("<!-- not run: -->\n```sh\navfs ls\n```\n", "1: "),
        ("<!-- not run: why -->\n\n```sh\navfs ls\n```\n", "1: "),
        ("```sh\navfs ls\n", "1: it has no end"),
        ("<!-- prepare\navfs ls\n", "1: it has no end"),
        ("```console\n$ a # exits with an error\n```\n", "2: "),
    ] {
        let said = steps(page).unwrap_err();
        assert!(said.starts_with(why), "{page:?}: {said}");
    }
}
