//! Guards before the parser. Text that would make it panic, overflow the stack or backtrack without end is refused.

use brush_parser::{Token, TokenizerOptions, uncached_tokenize_str};

use super::nesting::Nesting;

/// Compound commands nested deeper than this are refused, because the parser recurses.
const DEEPEST: usize = 20;
/// Parentheses nested deeper than this are refused, because the parser backtracks exponentially at them.
const DEEPEST_PARENTHESES: usize = 8;
/// `case` nested deeper than this is refused, because the parser may read each arm three times.
const DEEPEST_CASES: usize = 5;
/// More `&&` and `||` than this beside a `[[` are refused: in a test, each one is a level of the syntax tree.
const MOST_JOINTS: usize = 500;

/// The tokens of masked text. `None` unless they add up to the text.
pub(crate) fn tokenize(masked: &str, extended_patterns: bool) -> Option<Vec<Token>> {
    let options = TokenizerOptions {
        enable_extended_globbing: extended_patterns,
        ..TokenizerOptions::default()
    };
    let tokens = uncached_tokenize_str(masked, &options).ok()?;
    is_complete(masked, &tokens).then_some(tokens)
}

/// Whether the tokens have all characters of the text but blanks. Masked text has no comments, so nothing else may be
/// missing.
fn is_complete(masked: &str, tokens: &[Token]) -> bool {
    let solid = |c: &char| !c.is_ascii_whitespace();
    let seen = tokens
        .iter()
        .flat_map(|token| token.to_str().chars())
        .filter(solid);
    masked.chars().filter(solid).eq(seen)
}

/// Whether the parser can read the tokens without a panic, deep recursion or endless backtracking.
pub(crate) fn is_safe_to_parse(tokens: &[Token]) -> bool {
    let (mut nesting, mut negations) = (Nesting::default(), 0usize);
    let (mut has_test, mut joints) = (false, 0usize);
    for (i, token) in tokens.iter().enumerate() {
        let text = token.to_str();
        let next = tokens.get(i + 1);
        nesting.read(token, next);
        match text {
            "!" => negations += 1,
            _ => negations = 0,
        }
        has_test |= text == "[[";
        joints += usize::from(matches!(text, "&&" | "||"));
        // The parser panics at a large number before a redirection.
        let number = text.len() > 9 && text.bytes().all(|b| b.is_ascii_digit());
        let redirected = next.is_some_and(|t| t.to_str().starts_with(['<', '>']));
        let too_deep = nesting.others() > DEEPEST
            || nesting.parentheses() > DEEPEST_PARENTHESES
            || nesting.cases() > DEEPEST_CASES
            || negations > DEEPEST;
        if too_deep || number && redirected {
            return false;
        }
    }
    !has_test || joints <= MOST_JOINTS
}
