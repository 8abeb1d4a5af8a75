//! The parser's tokenizer and parser behind guards: what would make them panic, recurse or backtrack without
//! end is refused before it gets there.

use brush_parser::{Token, TokenizerOptions, uncached_tokenize_str};

/// Deeper nesting of compound commands than this is not judged: the parser recurses.
const DEEPEST: usize = 20;
/// The same for parentheses, at which the parser backtracks exponentially.
const DEEPEST_PARENTHESES: usize = 8;
/// The same for `case`, each arm of which it may read three times over.
const DEEPEST_CASES: usize = 5;

/// The tokens of masked text; `None` when there is any doubt about them.
pub(crate) fn tokenize(masked: &str, extended_patterns: bool) -> Option<Vec<Token>> {
    let options = TokenizerOptions {
        enable_extended_globbing: extended_patterns,
        ..TokenizerOptions::default()
    };
    let tokens = uncached_tokenize_str(masked, &options).ok()?;
    is_complete(masked, &tokens).then_some(tokens)
}

/// Masked text holds nothing that a tokenizer may leave out, so the tokens must add up to it.
fn is_complete(masked: &str, tokens: &[Token]) -> bool {
    let solid = |c: &char| !c.is_ascii_whitespace();
    let seen = tokens
        .iter()
        .flat_map(|token| token.to_str().chars())
        .filter(solid);
    masked.chars().filter(solid).eq(seen)
}

/// Guards the parser against what would make it panic, recurse or run without end.
pub(crate) fn can_be_parsed(tokens: &[Token]) -> bool {
    let (mut depth, mut parentheses, mut cases, mut negations) = (0usize, 0usize, 0usize, 0usize);
    for (i, token) in tokens.iter().enumerate() {
        let text = token.to_str();
        if text == "!" || text == "coproc" {
            negations += 1;
        } else {
            negations = 0;
        }
        match text {
            "(" => parentheses += 1,
            ")" => parentheses = parentheses.saturating_sub(1),
            "case" => cases += 1,
            "esac" => cases = cases.saturating_sub(1),
            "{" | "if" | "while" | "until" | "for" | "select" | "function" | "[[" => depth += 1,
            "}" | "fi" | "done" | "]]" => depth = depth.saturating_sub(1),
            _ => {}
        }
        // The parser takes a number before a redirection to be a small one.
        let number = text.len() > 9 && text.bytes().all(|b| b.is_ascii_digit());
        let redirected = tokens
            .get(i + 1)
            .is_some_and(|t| t.to_str().starts_with(['<', '>']));
        let too_deep = depth > DEEPEST
            || parentheses > DEEPEST_PARENTHESES
            || cases > DEEPEST_CASES
            || negations > DEEPEST;
        if too_deep || number && redirected {
            return false;
        }
    }
    true
}
