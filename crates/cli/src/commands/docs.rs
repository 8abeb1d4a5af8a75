//! The reference of all verbs, generated from the arguments (`docs/cli.md`).

use crate::args;
use crate::error::{Error, Result};
use crate::output::{ErrorItem, Output, raw};
use clap::{Arg, ArgAction, Command};
use serde::Serialize;
use serde_json::Value;
use std::ffi::OsString;
use std::fmt::Write;
use std::path::{Path, PathBuf};

const HEAD: &str = "\
# The command line

Made from the program by `avfs __docs`; a test fails when it is out of date.

With `--json` the answer of every verb is one object with `schema_version`, which is 1; an error is `{\"error\": KIND, \"message\": …, \"hint\": …}`. The lists of `ls`, `log`, `vault list` and
`vault log` are arrays, as they always were, `tree` nests what is in a directory as `children`, and `meta --export` has the keys of the path alone. `docs/schemas/` has a JSON Schema of the answer of each operation, by its name in
[http.md](http.md); an array is the list in that object. A field may be added without a new `schema_version`.

";

#[derive(Serialize)]
struct Verbs {
    /// Every verb, without `avfs`.
    verbs: Vec<String>,
}

pub fn run(output: Output) -> Result<()> {
    let mut command = args::command();
    command.build();
    if output.is_json() {
        let mut verbs = Vec::new();
        list(&command, "", &mut verbs);
        return output.value(&Verbs { verbs });
    }
    let mut text = HEAD.to_owned();
    describe(&command, "avfs", &mut text);
    raw(format!("{}\n", text.trim_end()).as_bytes())
}

/// The schemas of all answers: a file for each in this directory, or all of them printed as one object.
pub fn schemas(dir: Option<OsString>) -> Result<()> {
    let mut schemas = avfs_api::table::schemas();
    schemas.insert("error".into(), ErrorItem::schema());
    let Some(dir) = dir.map(PathBuf::from) else {
        return raw(format!("{:#}\n", Value::from(schemas)).as_bytes());
    };
    for (name, schema) in schemas {
        let file = dir.join(format!("{name}.json"));
        std::fs::write(&file, format!("{schema:#}\n")).map_err(|source| Error::Io {
            what: format!("cannot write {}", file.display()),
            source,
        })?;
    }
    Ok(())
}

/// The answer of `avfs man`.
#[derive(Serialize)]
struct Pages {
    directory: String,
    pages: Vec<String>,
}

/// Writes a manual page for every verb.
pub fn man(dir: &Path, output: Output) -> Result<()> {
    let failed = || Error::io(format!("cannot write to {}", dir.display()));
    std::fs::create_dir_all(dir).map_err(failed())?;
    let mut command = args::command().disable_help_subcommand(true);
    command.build();
    let mut pages = Vec::new();
    write_pages(&command, dir, &mut pages).map_err(failed())?;
    let written = Pages {
        directory: dir.display().to_string(),
        pages,
    };
    output.answer(&written, |written| {
        format!(
            "wrote {} pages to {}",
            written.pages.len(),
            written.directory
        )
    })
}

fn write_pages(command: &Command, dir: &Path, pages: &mut Vec<String>) -> std::io::Result<()> {
    let man = clap_mangen::Man::new(command.clone());
    let name = man.get_filename();
    let mut page = Vec::new();
    man.render(&mut page)?;
    std::fs::write(dir.join(&name), page)?;
    pages.push(name);
    below(command).try_for_each(|verb| write_pages(verb, dir, pages))
}

fn below(command: &Command) -> impl Iterator<Item = &Command> {
    let shown = command.get_subcommands().filter(|verb| !verb.is_hide_set());
    shown.filter(|verb| verb.get_name() != "help")
}

fn list(command: &Command, words: &str, verbs: &mut Vec<String>) {
    for verb in below(command) {
        let words = format!("{words} {}", verb.get_name()).trim().to_owned();
        list(verb, &words, verbs);
        verbs.push(words);
    }
}

fn describe(command: &Command, words: &str, text: &mut String) {
    let _ = writeln!(text, "## {words}\n");
    let about = command.get_long_about().or(command.get_about());
    if let Some(about) = about {
        let _ = writeln!(text, "{about}\n");
    }
    let usage = command.clone().render_usage().to_string();
    let usage = usage.strip_prefix("Usage: ").unwrap_or(&usage);
    let _ = writeln!(text, "```text\n{usage}\n```\n");
    let aliases: Vec<&str> = command.get_all_aliases().collect();
    if !aliases.is_empty() {
        let _ = writeln!(text, "Also: `{}`\n", aliases.join("`, `"));
    }
    // Global options are listed once, at the top.
    let is_top = words == "avfs";
    let shown = |arg: &&Arg| {
        let is_help = matches!(
            arg.get_action(),
            ArgAction::Help | ArgAction::HelpShort | ArgAction::HelpLong | ArgAction::Version
        );
        !arg.is_hide_set() && (is_top || !is_help && !arg.is_global_set())
    };
    let arguments: Vec<&Arg> = command.get_arguments().filter(shown).collect();
    if !arguments.is_empty() {
        text.push_str("| argument | meaning |\n|---|---|\n");
        for arg in arguments {
            let _ = writeln!(text, "| `{}` | {} |", shape(arg), meaning(arg));
        }
        text.push('\n');
    }
    if let Some(examples) = command.get_after_help() {
        let _ = writeln!(text, "```text\n{}\n```\n", examples.to_string().trim_end());
    }
    for verb in below(command) {
        describe(verb, &format!("{words} {}", verb.get_name()), text);
    }
}

/// `-l, --limit <LIMIT>`, or `PATH`.
fn shape(arg: &Arg) -> String {
    if arg.is_positional() {
        return arg.to_string();
    }
    let short = arg.get_short().map(|short| format!("-{short}, "));
    let long = arg.get_long().map(|long| format!("--{long}"));
    let takes = arg.get_action().takes_values();
    let names = arg.get_value_names().filter(|_| takes);
    let value = names.map(|names| format!(" <{}>", names.join("> <")));
    [short, long, value].into_iter().flatten().collect()
}

fn meaning(arg: &Arg) -> String {
    let help = arg.get_help().map(ToString::to_string).unwrap_or_default();
    let mut meaning = help.replace('|', "\\|").replace('\n', " ");
    let defaults: Vec<_> = arg
        .get_default_values()
        .iter()
        .map(|value| value.to_string_lossy())
        .collect();
    if !defaults.is_empty() && arg.get_action().takes_values() {
        let _ = write!(meaning, " (default `{}`)", defaults.join(" "));
    }
    let possible = arg.get_possible_values();
    let names: Vec<_> = possible.iter().map(|value| value.get_name()).collect();
    if !names.is_empty() && arg.get_action().takes_values() {
        let _ = write!(meaning, " (one of `{}`)", names.join("`, `"));
    }
    meaning
}
