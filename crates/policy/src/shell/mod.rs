//! Reads shell text: cuts it, parses it, and expands its words as far as they are known before a run. It knows no program.

mod arithmetic;
mod brace;
mod cursor;
mod escape;
mod fields;
mod fold;
mod glob;
mod heredoc;
mod literal;
mod mask;
mod nesting;
mod parameter;
mod parse;
mod render;
mod tokens;
mod values;
mod word;

pub(crate) use arithmetic::{
    Assumptions, NUMBER, NumericVars, expression, is_always_number, is_number, is_number_value,
    name,
};
pub(crate) use fields::to_text;
pub(crate) use fold::{Folded, Redirection, Step, fold};
pub(crate) use glob::glob_matches;
pub(crate) use literal::{name_prefix, read_plain};
pub(crate) use mask::{Masked, Piece, marked};
pub(crate) use parse::{LONGEST_TEXT, mark, masked, parse, parse_folded, parses};
pub(crate) use render::{command_text, quoted_line, word_text};
pub(crate) use values::Vars;
pub(crate) use word::{Mode, Reading, UNKNOWN, Unreadable, Word, evaluated, read};

#[cfg(test)]
pub(crate) use {fold::run_of, mask::mask};
