//! Code in arguments: scripts of sed, awk, Python and other interpreters.

use super::category::Category::*;
use super::commands::{Effects, is_known, unversioned};
use super::embedded::{commands_in, tail_command};
use super::options::is_option;
use super::paths::host_paths_in_code;
use crate::shell::{Word, parses};

/// Whether a `sed` command line writes nothing but its output.
pub(crate) fn sed_reads(args: &[Word]) -> bool {
    let mut scripts = Vec::new();
    let mut next_is_script = false;
    let mut named = false;
    let mut first = None;
    for word in args {
        let text = word.text.as_str();
        if std::mem::take(&mut next_is_script) {
            scripts.push(word);
        } else if matches!(text, "-e" | "--expression") {
            (next_is_script, named) = (true, true);
        } else if word.starts_unknown() || is_option(word, &["-i", "--in-place", "-f", "--file"]) {
            return false;
        } else if text.starts_with('-') && text.len() > 1 {
            // `-es/a/b/` and `--expression=…` are rare, and count as a change.
            if is_option(word, &["-e", "--expression"]) {
                return false;
            }
        } else if first.is_none() {
            first = Some(word);
        }
    }
    if !named {
        scripts.extend(first);
    }
    scripts
        .iter()
        .all(|word| !word.dynamic && sed_script_reads(&word.text))
}

/// Whether a script executes its input as shell text: `s/a/b/e`, or `e` alone.
pub(crate) fn sed_executes(args: &[Word]) -> bool {
    args.iter().any(|word| {
        let alone = |command: &str| {
            let address = |c: char| c.is_ascii_digit() || " $,~+!".contains(c);
            command.trim().trim_start_matches(address) == "e"
        };
        let mut commands = word.text.split([';', '\n', '{', '}']);
        commands.any(alone) || executing_substitution(&word.text)
    })
}

/// Whether a script has a substitution with the flag `e`.
fn executing_substitution(script: &str) -> bool {
    let starts = script.match_indices('s').map(|(at, _)| &script[at + 1..]);
    starts.into_iter().any(|text| {
        let Some(delimiter) = text.chars().next().filter(|c| !c.is_ascii_alphanumeric()) else {
            return false;
        };
        let body = &text[delimiter.len_utf8()..];
        let after =
            skip_delimited(body, delimiter).and_then(|rest| skip_delimited(rest, delimiter));
        let flags = after.and_then(|rest| rest.split([';', '\n', '}', ' ']).next());
        flags.is_some_and(|flags| flags.contains('e') && flags.chars().all(char::is_alphanumeric))
    })
}

/// Whether every command of a script is known to write nothing but the output.
fn sed_script_reads(script: &str) -> bool {
    let mut rest = script;
    loop {
        rest = rest.trim_start_matches([' ', '\t', '\n', ';', '{', '}']);
        let Some(after) = sed_address(rest) else {
            return false;
        };
        rest = after.trim_start_matches([' ', '!']);
        let Some(command) = rest.chars().next() else {
            return true;
        };
        let tail = &rest[command.len_utf8()..];
        rest = match command {
            'p' | 'd' | 'q' | 'Q' | '=' | 'n' | 'N' | 'D' | 'g' | 'G' | 'h' | 'H' | 'x' | 'P'
            | 'l' | '{' | '}' => tail.trim_start_matches(|c: char| c.is_ascii_digit()),
            'a' | 'i' | 'c' => tail.split_once('\n').map_or("", |(_, after)| after),
            'b' | 't' | 'T' | ':' => tail.find([';', '\n', '}']).map_or("", |end| &tail[end..]),
            's' | 'y' => match sed_substitution(tail) {
                Some(after) => after,
                None => return false,
            },
            _ => return false,
        };
        if !rest.trim_start_matches(' ').is_empty()
            && !rest.trim_start_matches(' ').starts_with([';', '\n', '}'])
            && !matches!(command, '{' | '}' | 'a' | 'i' | 'c')
        {
            return false;
        }
    }
}

/// Skips `1`, `$`, `/re/`, `1,5`, `0~3`; `None` when the address does not end.
fn sed_address(text: &str) -> Option<&str> {
    let mut rest = text;
    loop {
        rest = match rest.chars().next() {
            Some(c) if c.is_ascii_digit() || "$,~+".contains(c) => &rest[1..],
            Some('/') => {
                let after = skip_delimited(&rest[1..], '/')?;
                after.trim_start_matches(['I', 'M'])
            }
            _ => return Some(rest),
        };
    }
}

/// Skips `/a/b/flags`; `None` when a flag runs a command or writes a file.
fn sed_substitution(text: &str) -> Option<&str> {
    let delimiter = text.chars().next()?;
    let after = skip_delimited(&text[delimiter.len_utf8()..], delimiter)?;
    let after = skip_delimited(after, delimiter)?;
    let flags = after.len()
        - after
            .trim_start_matches(|c: char| c.is_ascii_alphanumeric())
            .len();
    let harmless = after[..flags]
        .chars()
        .all(|c| c.is_ascii_digit() || "gpiIm".contains(c));
    harmless.then(|| &after[flags..])
}

fn skip_delimited(text: &str, delimiter: char) -> Option<&str> {
    let mut escaped = false;
    for (i, c) in text.char_indices() {
        if escaped {
            escaped = false;
        } else if c == '\\' {
            escaped = true;
        } else if c == delimiter {
            return Some(&text[i + c.len_utf8()..]);
        }
    }
    None
}

/// `awk`: its program may write files and run commands.
pub(crate) fn awk(args: &[Word]) -> Effects {
    let mut skip = false;
    let mut program = None;
    for word in args {
        if std::mem::take(&mut skip) {
            continue;
        }
        let text = word.text.as_str();
        if matches!(text, "-v" | "-F") {
            skip = true;
        } else if word.starts_unknown() {
            return Effects::unknown_commands();
        } else if text.starts_with('-') && !text.starts_with("-F") && !text.starts_with("-v") {
            return Effects::of(&[Mutating]);
        } else if !text.starts_with('-') {
            program = Some(word);
            break;
        }
    }
    let Some(program) = program else {
        return Effects::of(&[Mutating]);
    };
    if program.starts_unknown() {
        return Effects::unknown_commands();
    }
    let code = program.text.as_str();
    let pipes = code.replace("||", "").contains('|');
    if !program.dynamic
        && !pipes
        && !["system", ">", "getline", "@"]
            .iter()
            .any(|s| code.contains(s))
    {
        return Effects {
            host_paths: host_paths_in_code(&strings(code).join(" ")),
            ..Effects::of(&[ReadOnly])
        };
    }
    let mut effects = inspect(code, Effects::of(&[Mutating]));
    for word in args {
        effects.scripts.extend(commands_in(&word.text));
    }
    effects
}

/// An interpreter: a script, a module, or code on the command line.
pub(crate) fn interpreter(name: &str, args: &[Word]) -> Effects {
    if args.is_empty() {
        return Effects::of(&[Interactive]);
    }
    let mut effects = Effects::of(&[Mutating]);
    for (i, word) in args.iter().enumerate() {
        let text = word.text.as_str();
        if let Some(joined) = code_option(name, text) {
            let code = match joined {
                "" => args.get(i + 1).cloned().unwrap_or_default(),
                joined => Word {
                    text: joined.to_owned(),
                    ..word.clone()
                },
            };
            effects = inspect_option(&code, &args[i + 1..], effects);
        } else if text == "-m" && name == "python" {
            // A module may take code: `-m timeit -s code`, `-m pdb -c code`.
            let all = args[i + 1..].iter();
            return all.fold(effects, |effects, word| inspect(&word.text, effects));
        } else if text.ends_with("setup.py") && args.iter().any(|w| w.text == "upload") {
            effects.categories.extend([Publishing, Networked]);
        } else if !text.starts_with('-') && name != "deno" {
            break;
        }
    }
    effects
}

/// If an option takes code: the part of the code in the same word.
fn code_option<'t>(name: &str, text: &'t str) -> Option<&'t str> {
    let long = ["--eval", "--print"]
        .into_iter()
        .find_map(|long| text.strip_prefix(long));
    if let Some(value) = long {
        return Some(value.strip_prefix('=').unwrap_or(value));
    }
    if name == "deno" {
        return text.strip_prefix("eval");
    }
    let letters = match name {
        "python" => "c",
        "php" => "rBRE",
        "node" | "nodejs" => "ep",
        _ => "eE",
    };
    let cluster = text
        .strip_prefix('-')
        .filter(|rest| !rest.starts_with('-'))?;
    // `-i.bak`, `-Mmodule` and python's `-Wignore` take the rest of the word as their value.
    let takes_rest = |c: char| match name {
        "python" => matches!(c, 'W' | 'X' | 'm'),
        _ => !c.is_ascii_alphanumeric() || c.is_ascii_uppercase(),
    };
    let taken = |c: char| !letters.contains(c) && takes_rest(c);
    let at = cluster.find(|c| letters.contains(c) || taken(c))?;
    let rest = &cluster[at..];
    let joined = rest.strip_prefix(|c| letters.contains(c))?;
    // In node's `-pe`, the `e` is another option and not code.
    Some(match joined.chars().all(|c| letters.contains(c)) {
        true => "",
        false => joined,
    })
}

/// Inspects code on the command line, and the arguments that it may run as a command.
fn inspect_option(code: &Word, args: &[Word], effects: Effects) -> Effects {
    if code.starts_unknown() {
        return Effects::unknown_commands();
    }
    let mut effects = inspect(&code.text, effects);
    let arguments = ["ARGV", "argv", "$@", "Deno.args"];
    if arguments.iter().any(|name| code.text.contains(name)) {
        effects.scripts.extend(tail_command(args));
    }
    effects
}

/// Inspects the code that an interpreter reads from its standard input.
pub(crate) fn code_on_stdin(name: &str, args: &[Word], text: &str, effects: Effects) -> Effects {
    let reads = args.iter().all(|word| word.text.starts_with('-'));
    match unversioned(name) {
        "python" | "perl" | "ruby" | "node" | "nodejs" | "php" | "lua" if reads => {
            inspect(text, Effects::of(&[Mutating]))
        }
        _ => effects,
    }
}

/// Words in code that open a network connection.
const NETWORK_WORDS: &[&str] = &[
    "urllib",
    "requests.",
    "http.client",
    "httpx",
    "aiohttp",
    "socket.",
    "fetch(",
    "axios",
    "require('http",
    "require(\"http",
    "require('net",
    "require(\"net",
    "Net::HTTP",
    "LWP::",
    "IO::Socket",
    "file_get_contents('http",
    "file_get_contents(\"http",
    "curl_init",
    "smtplib",
    "ftplib",
    "/inet/",
];

/// Words in code that run other programs.
const EXEC_WORDS: &[&str] = &[
    "system",
    "exec",
    "popen",
    "Popen",
    "subprocess",
    "spawn",
    "child_process",
    "`",
    "Command",
    "%x",
    "qx",
    "|",
];

/// How many strings are tried as the first word of a command.
const MOST_LISTS: usize = 16;

/// Looks for paths of the host, network connections and commands in code.
fn inspect(code: &str, mut effects: Effects) -> Effects {
    effects.host_paths.extend(host_paths_in_code(code));
    if NETWORK_WORDS.iter().any(|word| code.contains(word)) {
        effects.categories.insert(Networked);
    }
    if EXEC_WORDS.iter().any(|word| code.contains(word)) {
        let literals = strings(code);
        // A list such as `run(["curl", "x"])` is also tried as one command.
        let lists = (0..literals.len().min(MOST_LISTS)).map(|i| literals[i..].join(" "));
        let lists: Vec<String> = lists.collect();
        let commands = literals.into_iter().chain(lists);
        // A string may be any text. It counts only if it can be parsed as a command of a known program.
        effects.scripts.extend(commands_in(code));
        effects.scripts.extend(commands.filter(|text| {
            let name = text.split_whitespace().next().unwrap_or_default();
            is_known(name.rsplit('/').next().unwrap_or(name)) && parses(text)
        }));
    }
    effects
}

/// The quoted strings of code: all kinds of quotes, without nesting.
pub(crate) fn strings(code: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut rest = code;
    while let Some(start) = rest.find(['\'', '"', '`']) {
        let quote = rest[start..].chars().next().unwrap_or('"');
        let body = &rest[start + 1..];
        let Some(after) = skip_delimited(body, quote) else {
            break;
        };
        let end = body.len() - after.len() - 1;
        if end > 0 {
            found.push(body[..end].to_owned());
        }
        rest = after;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sed_scripts_that_only_read() {
        for script in [
            "p",
            "1,5p",
            "$d",
            "/root/p",
            "s/a/b/",
            "s|/root/|/x/|g",
            "s/a/b/;s/c/d/gp",
            "1q",
            "/a/,/b/p",
            "/^$/d",
            "s/a\\/b/c/",
            "1!G;h;$!d",
            "/x/{p;d}",
            "2i hello",
        ] {
            assert!(sed_script_reads(script), "{script}");
        }
        for script in [
            "w out",
            "s/a/b/w out",
            "s/a/b/e",
            "e id",
            "1e",
            "r x",
            "s/a",
            "W x",
            "/a",
        ] {
            assert!(!sed_script_reads(script), "{script}");
        }
    }

    #[test]
    fn strings_are_found_in_code() {
        assert_eq!(
            strings("os.system('curl x'); f(\"a\\\"b\")"),
            ["curl x", "a\\\"b"]
        );
        assert!(strings("don't").is_empty());
    }
}
