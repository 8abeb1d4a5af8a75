//! Shell text made into a syntax tree, with the parser's help.

use brush_parser::ast::{self, Command, CompoundCommand, CompoundList};
use brush_parser::{ParserOptions, Token, parse_tokens};

use super::arithmetic::NUMBER;
use super::fold::{Folded, run_of};
use super::mask::{Masked, mask};
use super::tokens::{can_be_parsed, tokenize};
use super::word::{HOLE, Mode};

/// Longer text than this is not judged, and no more than this in all nested texts together.
pub(crate) const LONGEST_TEXT: usize = 512 * 1024;
/// The same without the here-documents.
const LONGEST_PROGRAM: usize = 32 * 1024;

/// Text without what is cut out of it; `None` when it cannot be text of a shell, or is too long.
pub(crate) fn masked(text: &str) -> Option<Masked> {
    let hole = |text: &str| !text.is_ascii() && text.contains([HOLE, NUMBER]);
    if text.len() > LONGEST_TEXT || text.as_bytes().contains(&0) || hole(text) {
        return None;
    }
    mask(text)
        .ok()
        .filter(|masked| masked.text.len() <= LONGEST_PROGRAM)
}

/// Parses as a non-interactive bash would; failing that, with extended patterns.
pub(crate) fn parse(masked: &str) -> Option<(ast::Program, Mode)> {
    [Mode::Plain, Mode::Pattern]
        .into_iter()
        .find_map(|mode| parse_as(masked, mode).map(|program| (program, mode)))
}

/// Parses what folding left over; `None` when a mark turns out to be anything but a command of its own.
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
    if !can_be_parsed(tokens) {
        return None;
    }
    let options = ParserOptions {
        enable_extended_globbing: mode == Mode::Pattern,
        ..ParserOptions::default()
    };
    parse_tokens(tokens, &options).ok()
}

/// Whether the text reads as shell text at all.
pub(crate) fn parses(text: &str) -> bool {
    masked(text).is_some_and(|masked| parse(&masked.text).is_some())
}

/// The mark of a run, where a command is nothing else.
pub(crate) fn mark(command: &Command) -> Option<usize> {
    let Command::Simple(simple) = command else {
        return None;
    };
    let bare = simple.prefix.is_none() && simple.suffix.is_none();
    run_of(&simple.word_or_name.as_ref().filter(|_| bare)?.value)
}

/// How many marks stand where a command stands alone, in all places where the judge looks for one.
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
