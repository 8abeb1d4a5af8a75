//! From shell text to a syntax tree.

use brush_parser::ast::{self, Command, CompoundCommand, CompoundList};
use brush_parser::{ParserOptions, Token, parse_tokens};

use super::arithmetic::NUMBER;
use super::fold::{Folded, run_of};
use super::mask::{Masked, mask};
use super::tokens::{is_safe_to_parse, tokenize};
use super::word::{Mode, UNKNOWN};

/// Text beyond this length is not judged, in bytes. It also limits all nested texts together.
pub(crate) const LONGEST_TEXT: usize = 512 * 1024;
/// Masked text, which has no here-documents, beyond this length is not judged.
const LONGEST_PROGRAM: usize = 32 * 1024;

/// Masks text. `None` when it is too long, or cannot be shell text.
pub(crate) fn masked(text: &str) -> Option<Masked> {
    let hole = |text: &str| !text.is_ascii() && text.contains([UNKNOWN, NUMBER]);
    if text.len() > LONGEST_TEXT || text.as_bytes().contains(&0) || hole(text) {
        return None;
    }
    mask(text)
        .ok()
        .filter(|masked| masked.text.len() <= LONGEST_PROGRAM)
}

/// Parses as a non-interactive bash does. If that fails, parses with extended patterns.
pub(crate) fn parse(masked: &str) -> Option<(ast::Program, Mode)> {
    [Mode::Plain, Mode::Pattern]
        .into_iter()
        .find_map(|mode| parse_as(masked, mode).map(|program| (program, mode)))
}

/// Parses folded tokens. `None` when a mark is not a whole command.
pub(crate) fn parse_folded(folded: &Folded<'_>) -> Option<ast::Program> {
    if folded.is_all() {
        return Some(ast::Program {
            complete_commands: Vec::new(),
        });
    }
    let program = parse_tokens_as(&folded.tokens, Mode::Plain)?;
    let marks: usize = program.complete_commands.iter().map(marks_in).sum();
    (marks == folded.runs.len()).then_some(program)
}

fn parse_as(masked: &str, mode: Mode) -> Option<ast::Program> {
    let tokens = tokenize(masked, mode == Mode::Pattern)?;
    parse_tokens_as(&tokens, mode)
}

fn parse_tokens_as(tokens: &[Token], mode: Mode) -> Option<ast::Program> {
    if !is_safe_to_parse(tokens) {
        return None;
    }
    let options = ParserOptions {
        enable_extended_globbing: mode == Mode::Pattern,
        ..ParserOptions::default()
    };
    parse_tokens(tokens, &options).ok()
}

/// Whether the text can be parsed as shell text.
pub(crate) fn parses(text: &str) -> bool {
    masked(text).is_some_and(|masked| parse(&masked.text).is_some())
}

/// The run that a command stands for, if it is nothing but a mark.
pub(crate) fn mark(command: &Command) -> Option<usize> {
    let Command::Simple(simple) = command else {
        return None;
    };
    let bare = simple.prefix.is_none() && simple.suffix.is_none();
    run_of(&simple.word_or_name.as_ref().filter(|_| bare)?.value)
}

/// How many marks are whole pipelines, counted wherever the judge looks for pipelines.
fn marks_in(list: &CompoundList) -> usize {
    let pipelines = list.0.iter().flat_map(|item| &item.0);
    let of = |(_, pipeline): (_, &ast::Pipeline)| match pipeline.seq.as_slice() {
        [alone] if mark(alone).is_some() => 1,
        commands => commands.iter().map(marks_in_command).sum(),
    };
    pipelines.map(of).sum()
}

fn marks_in_command(command: &Command) -> usize {
    let compound = match command {
        Command::Compound(compound, _) => compound,
        Command::Function(function) => &function.body.0,
        Command::Simple(_) | Command::ExtendedTest(..) => return 0,
    };
    match compound {
        CompoundCommand::BraceGroup(c) => marks_in(&c.list),
        CompoundCommand::Subshell(c) => marks_in(&c.list),
        CompoundCommand::ForClause(c) => marks_in(&c.body.list),
        CompoundCommand::CaseClause(c) => {
            let lists = c.cases.iter().flat_map(|case| &case.cmd);
            lists.map(marks_in).sum()
        }
        CompoundCommand::IfClause(c) => {
            let elses = c.elses.iter().flatten();
            let elses = elses.flat_map(|clause| clause.condition.iter().chain([&clause.body]));
            [&c.condition, &c.then]
                .into_iter()
                .chain(elses)
                .map(marks_in)
                .sum()
        }
        CompoundCommand::WhileClause(c) | CompoundCommand::UntilClause(c) => {
            marks_in(&c.0) + marks_in(&c.1.list)
        }
        CompoundCommand::Arithmetic(_)
        | CompoundCommand::ArithmeticForClause(_)
        | CompoundCommand::Coprocess(_) => 0,
    }
}
