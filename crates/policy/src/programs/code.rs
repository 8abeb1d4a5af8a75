//! Programs given as arguments: what sed, awk and the interpreters would do.

use super::carriers::{strict_tail, within};
use super::category::Category::*;
use super::commands::{Known, is_known, unversioned};
use super::options::is_option;
use super::paths::forbidden_in_code;
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
            // `-es/a/b/` and `--expression=…` are rare: not worth reading.
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

/// Whether a script has the shell run what it reads: `s/a/b/e`, or `e` alone.
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

/// Whether a script holds a substitution with the flag `e`.
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

/// Reads a script command by command; whatever is not plainly harmless counts as a change.
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
pub(crate) fn awk(args: &[Word]) -> Known {
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
            return Known::unseen();
        } else if text.starts_with('-') && !text.starts_with("-F") && !text.starts_with("-v") {
            return Known::is(&[Mutating]);
        } else if !text.starts_with('-') {
            program = Some(word);
            break;
        }
    }
    let Some(program) = program else {
        return Known::is(&[Mutating]);
    };
    if program.starts_unknown() {
        return Known::unseen();
    }
    let code = program.text.as_str();
    let pipes = code.replace("||", "").contains('|');
    if !program.dynamic
        && !pipes
        && !["system", ">", "getline", "@"]
            .iter()
            .any(|s| code.contains(s))
    {
        return Known {
            places: forbidden_in_code(&strings(code).join(" ")),
            ..Known::is(&[ReadOnly])
        };
    }
    let mut known = inspected(code, Known::is(&[Mutating]));
    for word in args {
        known.scripts.extend(within(&word.text));
    }
    known
}

/// An interpreter: a script, a module, or code on the command line.
pub(crate) fn interpreter(name: &str, args: &[Word]) -> Known {
    if args.is_empty() {
        return Known::is(&[Interactive]);
    }
    let mut known = Known::is(&[Mutating]);
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
            known = executed(&code, &args[i + 1..], known);
        } else if text == "-m" && name == "python" {
            // `-m timeit -s code`, `-m pdb -c code`: a module may well take code.
            let all = args[i + 1..].iter();
            return all.fold(known, |known, word| inspected(&word.text, known));
        } else if text.ends_with("setup.py") && args.iter().any(|w| w.text == "upload") {
            known.categories.extend([Publishing, Networked]);
        } else if !text.starts_with('-') && name != "deno" {
            break;
        }
    }
    known
}

/// Whether an option is followed by code: what of it is joined to the option.
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
    // `-i.bak`, `-Mmodule` and python's `-Wignore` take the rest of the word, whatever letters are in it.
    let takes_rest = |c: char| match name {
        "python" => matches!(c, 'W' | 'X' | 'm'),
        _ => !c.is_ascii_alphanumeric() || c.is_ascii_uppercase(),
    };
    let taken = |c: char| !letters.contains(c) && takes_rest(c);
    let at = cluster.find(|c| letters.contains(c) || taken(c))?;
    let rest = &cluster[at..];
    let joined = rest.strip_prefix(|c| letters.contains(c))?;
    // `-pe` is two letters of node, and code to no one.
    Some(match joined.chars().all(|c| letters.contains(c)) {
        true => "",
        false => joined,
    })
}

/// Code on the command line, and the arguments it may make a command of.
fn executed(code: &Word, args: &[Word], known: Known) -> Known {
    if code.starts_unknown() {
        return Known::unseen();
    }
    let mut known = inspected(&code.text, known);
    let arguments = ["ARGV", "argv", "$@", "Deno.args"];
    if arguments.iter().any(|name| code.text.contains(name)) {
        known.scripts.extend(strict_tail(args));
    }
    known
}

/// An interpreter that is given its program on its input.
pub(crate) fn on_input(name: &str, args: &[Word], text: &str, known: Known) -> Known {
    let reads = args.iter().all(|word| word.text.starts_with('-'));
    match unversioned(name) {
        "python" | "perl" | "ruby" | "node" | "nodejs" | "php" | "lua" if reads => {
            inspected(text, Known::is(&[Mutating]))
        }
        _ => known,
    }
}

/// Words in program text that open a connection.
const CONNECTS: &[&str] = &[
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

/// Words in program text that run other programs.
const RUNS: &[&str] = &[
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

/// Longer lists of words than this are not tried from each of their words.
const MOST_LISTS: usize = 16;

/// Looks into program text for places of the host, connections and commands.
fn inspected(code: &str, mut known: Known) -> Known {
    known.places.extend(forbidden_in_code(code));
    if CONNECTS.iter().any(|word| code.contains(word)) {
        known.categories.insert(Networked);
    }
    if RUNS.iter().any(|word| code.contains(word)) {
        let literals = strings(code);
        // A list of words, as `run(["curl", "x"])` has it, is also tried as one command.
        let lists = (0..literals.len().min(MOST_LISTS)).map(|i| literals[i..].join(" "));
        let lists: Vec<String> = lists.collect();
        let commands = literals.into_iter().chain(lists);
        // Only what reads as a command counts: a string may be any text.
        known.scripts.extend(within(code));
        known.scripts.extend(commands.filter(|text| {
            let name = text.split_whitespace().next().unwrap_or_default();
            is_known(name.rsplit('/').next().unwrap_or(name)) && parses(text)
        }));
    }
    known
}

/// The quoted strings of a program, roughly: quotes of all kinds, no nesting.
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
