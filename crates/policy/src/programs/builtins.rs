//! Builtins of the shell that evaluate their arguments, or change what later words mean.

use super::options::is_option;
use super::vocabulary::{is_special_variable, listed};
use crate::shell::{Assumptions, UNKNOWN, Word, expression, is_number, name};

/// The assumptions of an expanded word that is a variable's name.
fn name_word(word: &Word) -> Assumptions {
    match word.dynamic {
        true => Assumptions::unknown(),
        false => name(&word.text),
    }
}

fn expression_word(word: &Word, text: &str) -> Assumptions {
    match word.dynamic && !is_number(text, word.any_text) {
        true => Assumptions::unknown(),
        false => expression(&text.replace(UNKNOWN, "0")),
    }
}

/// The assumptions of the arguments that a builtin evaluates a second time.
pub(crate) fn evaluates(program: &str, args: &[Word]) -> Assumptions {
    let mut assumptions = Assumptions::default();
    match program {
        "let" => args
            .iter()
            .for_each(|word| assumptions.add(expression_word(word, &word.text))),
        "declare" | "local" | "typeset" => declared(args, &mut assumptions),
        "read" => {
            let valued = &["-d", "-i", "-n", "-N", "-p", "-t", "-u"];
            named(args, valued, &mut assumptions);
        }
        "unset" => named(args, &[], &mut assumptions),
        "wait" => waited(args, &mut assumptions),
        "mapfile" | "readarray" | "compgen" | "complete" => {
            assumptions.unknown = args.iter().any(Word::starts_unknown);
        }
        "printf" => printed(args, &mut assumptions),
        "test" | "[" => tested(args, &mut assumptions),
        _ => {}
    }
    assumptions
}

/// `declare` and the like: `-i` evaluates the value, `-n` makes a later use evaluate a name.
fn declared(args: &[Word], assumptions: &mut Assumptions) {
    let is = |option: &str| {
        args.iter()
            .any(|word| !word.text.starts_with("--") && is_option(word, &[option]))
    };
    assumptions.unknown |= is("-n") || args.iter().any(Word::starts_unknown);
    let integer = is("-i");
    for word in args
        .iter()
        .filter(|word| !word.text.starts_with(['-', '+']))
    {
        let (left, value) = match word.text.split_once('=') {
            Some((left, value)) => (left.trim_end_matches('+'), Some(value)),
            None => (word.text.as_str(), None),
        };
        assumptions.add(name(left));
        if integer {
            let array = value.is_some_and(|value| value.starts_with('('));
            assumptions.unknown |= array && word.dynamic;
            assumptions.evaluating.push(left.to_owned());
            let value = value.filter(|_| !array).unwrap_or_default();
            assumptions.add(expression_word(word, value));
        }
    }
}

/// Arguments that are names, except options and the values of some options.
fn named(args: &[Word], valued: &[&str], assumptions: &mut Assumptions) {
    let mut skip = false;
    for word in args {
        if std::mem::take(&mut skip) {
            continue;
        }
        skip = valued.contains(&word.text.as_str());
        if !word.text.starts_with('-') {
            assumptions.add(name_word(word));
        }
    }
}

/// `wait -p NAME` and `wait -pNAME`.
fn waited(args: &[Word], assumptions: &mut Assumptions) {
    for (i, word) in args.iter().enumerate() {
        assumptions.unknown |= word.starts_unknown() && !is_number(&word.text, word.any_text);
        let joined = word
            .text
            .strip_prefix("-p")
            .or(word.text.strip_prefix("-np"));
        match joined {
            Some("") => {
                let next = args.get(i + 1).map(name_word);
                assumptions.add(next.unwrap_or_default());
            }
            Some(attached) => assumptions.add(match word.dynamic {
                true => Assumptions::unknown(),
                false => name(attached),
            }),
            None => {}
        }
    }
}

/// `printf -v NAME`.
fn printed(args: &[Word], assumptions: &mut Assumptions) {
    let Some((first, rest)) = args.split_first() else {
        return;
    };
    // The format is not known, so it may be an option.
    let open = first.starts_unknown() && !is_number(&first.text, first.any_text);
    assumptions.unknown |= open && (first.may_split || !rest.is_empty());
    match first.text.strip_prefix("-v") {
        Some("") => assumptions.add(rest.first().map(name_word).unwrap_or_default()),
        Some(attached) if !first.dynamic => assumptions.add(name(attached)),
        Some(_) => assumptions.unknown = true,
        None => {}
    }
}

/// `test -v NAME`, and words that may be an operator.
fn tested(args: &[Word], assumptions: &mut Assumptions) {
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
            "-v" | "-R" => assumptions.add(next.map(name_word).unwrap_or_default()),
            _ if is_number(&word.text, word.any_text) => {}
            _ => {
                let operator = word.starts_unknown() && next.is_some_and(|next| !binary(next));
                assumptions.unknown |= word.may_split || operator;
            }
        }
    }
}

/// Whether a builtin may change what later words mean: an alias, a sourced script, a special variable.
pub(crate) fn changes_later_words(name: &str, arguments: &[Word]) -> bool {
    let sets = |word: &Word| word.dynamic || is_special_variable(&word.text);
    match name {
        "." | "alias" | "enable" | "source" => !arguments.is_empty(),
        "eval" => arguments
            .iter()
            .any(|word| word.dynamic || !word.alternatives.is_empty()),
        "hash" => arguments.iter().any(|word| word.text.starts_with('-')),
        "declare" | "export" | "local" | "readonly" | "typeset" => arguments.iter().any(|word| {
            let nameref = word.text.starts_with('-') && word.text.contains('n');
            nameref || word.text.starts_with(UNKNOWN)
        }),
        "printf" if arguments.first().is_none_or(|word| word.text != "-v") => false,
        "getopts" | "mapfile" | "printf" | "read" | "readarray" | "unset" => {
            arguments.iter().any(sets)
        }
        _ => false,
    }
}
