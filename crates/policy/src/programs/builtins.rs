//! Builtins of the shell: what they evaluate of their arguments, and what they change for later words.

use super::options::is_option;
use super::vocabulary::{changes_meaning, listed};
use crate::shell::{HOLE, Reliance, Word, expression, is_number, name};

/// The same for words that have been expanded.
fn name_word(word: &Word) -> Reliance {
    match word.dynamic {
        true => Reliance::unknown(),
        false => name(&word.text),
    }
}

fn expression_word(word: &Word, text: &str) -> Reliance {
    match word.dynamic && !is_number(text, word.vague) {
        true => Reliance::unknown(),
        false => expression(&text.replace(HOLE, "0")),
    }
}

/// What a builtin of the shell evaluates again of its arguments.
pub(crate) fn evaluates(program: &str, args: &[Word]) -> Reliance {
    let mut reliance = Reliance::default();
    match program {
        "let" => args
            .iter()
            .for_each(|word| reliance.add(expression_word(word, &word.text))),
        "declare" | "local" | "typeset" => declared(args, &mut reliance),
        "read" => {
            let valued = &["-d", "-i", "-n", "-N", "-p", "-t", "-u"];
            named(args, valued, &mut reliance);
        }
        "unset" => named(args, &[], &mut reliance),
        "wait" => waited(args, &mut reliance),
        "mapfile" | "readarray" | "compgen" | "complete" => {
            reliance.unknown = args.iter().any(Word::starts_unknown);
        }
        "printf" => printed(args, &mut reliance),
        "test" | "[" => tested(args, &mut reliance),
        _ => {}
    }
    reliance
}

/// `declare` and its kin: `-i` evaluates the value, `-n` the name that a later use means.
fn declared(args: &[Word], reliance: &mut Reliance) {
    let is = |option: &str| {
        args.iter()
            .any(|word| !word.text.starts_with("--") && is_option(word, &[option]))
    };
    reliance.unknown |= is("-n") || args.iter().any(Word::starts_unknown);
    let integer = is("-i");
    for word in args
        .iter()
        .filter(|word| !word.text.starts_with(['-', '+']))
    {
        let (left, value) = match word.text.split_once('=') {
            Some((left, value)) => (left.trim_end_matches('+'), Some(value)),
            None => (word.text.as_str(), None),
        };
        reliance.add(name(left));
        if integer {
            let array = value.is_some_and(|value| value.starts_with('('));
            reliance.unknown |= array && word.dynamic;
            reliance.evaluating.push(left.to_owned());
            let value = value.filter(|_| !array).unwrap_or_default();
            reliance.add(expression_word(word, value));
        }
    }
}

/// Arguments that are names, but for options and the values of some.
fn named(args: &[Word], valued: &[&str], reliance: &mut Reliance) {
    let mut skip = false;
    for word in args {
        if std::mem::take(&mut skip) {
            continue;
        }
        skip = valued.contains(&word.text.as_str());
        if !word.text.starts_with('-') {
            reliance.add(name_word(word));
        }
    }
}

/// `wait -p NAME`, also as one word.
fn waited(args: &[Word], reliance: &mut Reliance) {
    for (i, word) in args.iter().enumerate() {
        reliance.unknown |= word.starts_unknown() && !is_number(&word.text, word.vague);
        let joined = word
            .text
            .strip_prefix("-p")
            .or(word.text.strip_prefix("-np"));
        match joined {
            Some("") => {
                let next = args.get(i + 1).map(name_word);
                reliance.add(next.unwrap_or_default());
            }
            Some(attached) => reliance.add(match word.dynamic {
                true => Reliance::unknown(),
                false => name(attached),
            }),
            None => {}
        }
    }
}

/// `printf -v NAME`.
fn printed(args: &[Word], reliance: &mut Reliance) {
    let Some((first, rest)) = args.split_first() else {
        return;
    };
    // The format may be an option after all.
    let open = first.starts_unknown() && !is_number(&first.text, first.vague);
    reliance.unknown |= open && (first.spreads || !rest.is_empty());
    match first.text.strip_prefix("-v") {
        Some("") => reliance.add(rest.first().map(name_word).unwrap_or_default()),
        Some(attached) if !first.dynamic => reliance.add(name(attached)),
        Some(_) => reliance.unknown = true,
        None => {}
    }
}

/// `test -v NAME`, and words that may turn out to be that.
fn tested(args: &[Word], reliance: &mut Reliance) {
    let args = match args.split_last() {
        Some((last, before)) if last.text == "]" => before,
        _ => args,
    };
    let binary = |word: &Word| {
        let text = word.text.as_str();
        listed(
            "= == != < > =~ -eq -ne -lt -le -gt -ge -nt -ot -ef -a -o )",
            text,
        )
    };
    for (i, word) in args.iter().enumerate() {
        let next = args.get(i + 1);
        match word.text.as_str() {
            "-v" | "-R" => reliance.add(next.map(name_word).unwrap_or_default()),
            _ if is_number(&word.text, word.vague) => {}
            _ => {
                let operator = word.starts_unknown() && next.is_some_and(|next| !binary(next));
                reliance.unknown |= word.spreads || operator;
            }
        }
    }
}

/// Builtins after which a later word may mean something else than it says.
pub(crate) fn changes_later_words(name: &str, arguments: &[Word]) -> bool {
    let sets = |word: &Word| word.dynamic || changes_meaning(&word.text);
    match name {
        "." | "alias" | "enable" | "source" => !arguments.is_empty(),
        "eval" => arguments
            .iter()
            .any(|word| word.dynamic || !word.others.is_empty()),
        "hash" => arguments.iter().any(|word| word.text.starts_with('-')),
        "declare" | "export" | "local" | "readonly" | "typeset" => arguments.iter().any(|word| {
            let nameref = word.text.starts_with('-') && word.text.contains('n');
            nameref || word.text.starts_with(HOLE)
        }),
        "printf" if arguments.first().is_none_or(|word| word.text != "-v") => false,
        "getopts" | "mapfile" | "printf" | "read" | "readarray" | "unset" => {
            arguments.iter().any(sets)
        }
        _ => false,
    }
}
