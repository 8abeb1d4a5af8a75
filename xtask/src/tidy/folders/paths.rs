//! The paths in Rust text that begin at `crate`, `super` or `self`, read from its tokens.
//!
//! Tokens have no comments and no line breaks, and the inside of a macro call is tokens like any other, so neither can
//! hide a path.

use std::collections::BTreeMap;

use proc_macro2::{Delimiter, TokenStream, TokenTree};

/// A use of something in the same crate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reference {
    pub line: usize,
    /// From the root of the crate. Empty for the root itself; a glob ends in `*`.
    pub path: Vec<String>,
    /// What an import is called afterwards.
    alias: Option<String>,
}

/// All references in the product code of a file that is this module.
pub fn references(text: &str, module: &[String]) -> Vec<Reference> {
    let mut found = Vec::new();
    let tokens: TokenStream = text.parse().unwrap_or_default();
    walk(tokens, module, &mut found);
    found
}

/// The names that the root of a crate imports from its own modules, each with the top-level module that it is from.
pub fn imports(text: &str) -> BTreeMap<String, String> {
    let tokens: Vec<TokenTree> = text
        .parse::<TokenStream>()
        .unwrap_or_default()
        .into_iter()
        .collect();
    let mut found = Vec::new();
    for at in (1..tokens.len()).filter(|at| is_word(&tokens[at - 1], "use")) {
        let start = match ["crate", "self"]
            .iter()
            .any(|word| is_word(&tokens[at], word))
        {
            true => at + 3,
            false => at,
        };
        path(&tokens, start, Vec::new(), &mut found);
    }
    found
        .into_iter()
        .filter_map(|reference| {
            let name = reference.alias.or_else(|| reference.path.last().cloned())?;
            Some((name, reference.path.into_iter().next()?))
        })
        .collect()
}

fn walk(tokens: TokenStream, module: &[String], found: &mut Vec<Reference>) {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    let mut at = 0;
    while let Some(token) = tokens.get(at) {
        match token {
            TokenTree::Punct(mark) if mark.as_char() == '#' && is_cfg_test(tokens.get(at + 1)) => {
                at = item_end(&tokens, at + 2);
                continue;
            }
            TokenTree::Ident(word) if word == "mod" => {
                if let (Some(TokenTree::Ident(name)), Some(TokenTree::Group(body))) =
                    (tokens.get(at + 1), tokens.get(at + 2))
                {
                    let inner: Vec<String> =
                        module.iter().cloned().chain([name.to_string()]).collect();
                    walk(body.stream(), &inner, found);
                    at += 3;
                    continue;
                }
            }
            TokenTree::Ident(word) if is_start(&tokens, at) => {
                let base = match word.to_string().as_str() {
                    "crate" => Vec::new(),
                    "self" => module.to_vec(),
                    _ => parent(module),
                };
                at = after_start(&tokens, at, base, found);
                continue;
            }
            TokenTree::Group(group) => walk(group.stream(), module, found),
            _ => {}
        }
        at += 1;
    }
}

/// Whether a path, or an import under another name, begins at this token.
fn is_start(tokens: &[TokenTree], at: usize) -> bool {
    let word = ["crate", "super", "self"]
        .iter()
        .any(|word| is_word(&tokens[at], word));
    let next = tokens.get(at + 1).is_some_and(|next| is_word(next, "as"));
    word && (next || is_separator(tokens, at + 1))
}

/// Reads the path whose first word is at `at` and stands for `base`; returns where it ends.
fn after_start(
    tokens: &[TokenTree],
    at: usize,
    base: Vec<String>,
    found: &mut Vec<Reference>,
) -> usize {
    match is_separator(tokens, at + 1) {
        true => path(tokens, at + 3, base, found),
        false => {
            // `use super as x`.
            found.push(Reference {
                line: line(&tokens[at]),
                path: base,
                alias: None,
            });
            at + 1
        }
    }
}

/// Reads a path, or a tree of them, that goes on at `at` beneath `base`; returns where it ends.
fn path(
    tokens: &[TokenTree],
    at: usize,
    mut base: Vec<String>,
    found: &mut Vec<Reference>,
) -> usize {
    let mut at = at;
    let mut last = 0;
    loop {
        match tokens.get(at) {
            Some(TokenTree::Ident(word)) => {
                last = word.span().start().line;
                match word.to_string().as_str() {
                    "super" => drop(base.pop()),
                    "self" => {}
                    name => base.push(name.to_owned()),
                }
            }
            Some(TokenTree::Punct(mark)) if mark.as_char() == '*' => {
                last = mark.span().start().line;
                base.push("*".to_owned());
            }
            Some(TokenTree::Group(group)) if group.delimiter() == Delimiter::Brace => {
                let inner: Vec<TokenTree> = group.stream().into_iter().collect();
                for branch in inner.split(|token| is_mark(token, ',')) {
                    path(branch, 0, base.clone(), found);
                }
                return at + 1;
            }
            // A turbofish, or the end of a list.
            _ => break,
        }
        at += 1;
        if !is_separator(tokens, at) {
            break;
        }
        at += 2;
    }
    let alias = match tokens.get(at..at + 2) {
        Some([word, TokenTree::Ident(name)]) if is_word(word, "as") => Some(name.to_string()),
        _ => None,
    };
    if last > 0 {
        found.push(Reference {
            line: last,
            path: base,
            alias,
        });
    }
    at
}

fn parent(module: &[String]) -> Vec<String> {
    module[..module.len().saturating_sub(1)].to_vec()
}

fn is_word(token: &TokenTree, word: &str) -> bool {
    matches!(token, TokenTree::Ident(ident) if ident == word)
}

fn is_mark(token: &TokenTree, mark: char) -> bool {
    matches!(token, TokenTree::Punct(punct) if punct.as_char() == mark)
}

fn is_separator(tokens: &[TokenTree], at: usize) -> bool {
    let colon = |at: usize| tokens.get(at).is_some_and(|token| is_mark(token, ':'));
    colon(at) && colon(at + 1)
}

fn is_cfg_test(attribute: Option<&TokenTree>) -> bool {
    let text = match attribute {
        Some(TokenTree::Group(group)) => group.stream().to_string(),
        _ => return false,
    };
    text.replace(' ', "") == "cfg(test)"
}

/// Where the item ends that goes on at `at`: behind its body or its semicolon.
fn item_end(tokens: &[TokenTree], at: usize) -> usize {
    let ends = |token: &TokenTree| match token {
        TokenTree::Group(group) => group.delimiter() == Delimiter::Brace,
        token => is_mark(token, ';'),
    };
    let length = tokens[at..].iter().position(ends);
    length.map_or(tokens.len(), |length| at + length + 1)
}

fn line(token: &TokenTree) -> usize {
    token.span().start().line
}
