//! Brace expansion of a word whose quoting is known.

/// One character of a word, or a part that is known only at run time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Atom {
    Char {
        value: char,
        quoted: bool,
    },
    /// Text that is known only at run time.
    Unknown,
    /// A number that is known only at run time.
    Number,
    /// A boundary between two words, made by an unquoted expansion.
    Split,
}

impl Atom {
    /// Whether it can be part of `{1..9}`.
    fn counts(self) -> bool {
        match self {
            Atom::Char { value, .. } => value.is_ascii_digit() || matches!(value, '.' | '-'),
            Atom::Number => true,
            Atom::Unknown | Atom::Split => false,
        }
    }

    fn is_open(self, wanted: char) -> bool {
        self == Atom::Char {
            value: wanted,
            quoted: false,
        }
    }
}

/// Beyond this number of words, groups are left unexpanded.
const MOST_WORDS: usize = 64;

/// Expands `a{b,c}d` into its words. A sequence such as `{1..9}` becomes one unknown part.
pub(crate) fn expand(word: &[Atom]) -> Vec<Vec<Atom>> {
    let mut done = Vec::new();
    let mut waiting = vec![word.to_vec()];
    while let Some(next) = waiting.pop() {
        let group = if done.len() + waiting.len() < MOST_WORDS {
            find_group(&next)
        } else {
            None
        };
        let Some(group) = group else {
            done.push(next);
            continue;
        };
        for (start, end) in group.members.iter().rev() {
            let mut expanded = next[..group.open].to_vec();
            if group.sequence {
                let ends = &next[*start..*end];
                expanded.push(match ends.iter().all(|atom| atom.counts()) {
                    true => Atom::Number,
                    false => Atom::Unknown,
                });
            } else {
                expanded.extend_from_slice(&next[*start..*end]);
            }
            expanded.extend_from_slice(&next[group.close + 1..]);
            waiting.push(expanded);
        }
    }
    done
}

struct Group {
    open: usize,
    close: usize,
    members: Vec<(usize, usize)>,
    sequence: bool,
}

/// The first brace group of the word that has a comma or a `..` at its own level.
fn find_group(word: &[Atom]) -> Option<Group> {
    (0..word.len())
        .filter(|&i| word[i].is_open('{'))
        .find_map(|open| group_at(word, open))
}

fn group_at(word: &[Atom], open: usize) -> Option<Group> {
    let mut depth = 0usize;
    let mut members = Vec::new();
    let mut start = open + 1;
    for i in open..word.len() {
        if word[i].is_open('{') {
            depth += 1;
        } else if word[i].is_open('}') {
            depth -= 1;
            if depth == 0 {
                members.push((start, i));
                let sequence = members.len() == 1;
                let has_dots = word[open..i]
                    .windows(2)
                    .any(|w| w[0].is_open('.') && w[1].is_open('.'));
                return (!sequence || has_dots).then_some(Group {
                    open,
                    close: i,
                    members,
                    sequence,
                });
            }
        } else if depth == 1 && word[i].is_open(',') {
            members.push((start, i));
            start = i + 1;
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expand_str(text: &str) -> Vec<String> {
        let atoms: Vec<Atom> = text
            .chars()
            .map(|value| Atom::Char {
                value,
                quoted: false,
            })
            .collect();
        let show = |a: &Atom| match a {
            Atom::Char { value, .. } => *value,
            Atom::Unknown | Atom::Number => '%',
            Atom::Split => ' ',
        };
        expand(&atoms)
            .iter()
            .map(|w| w.iter().map(show).collect())
            .collect()
    }

    #[test]
    fn groups_expand_in_order_and_nest() {
        assert_eq!(
            expand_str("/etc/{passwd,shadow}"),
            ["/etc/passwd", "/etc/shadow"]
        );
        assert_eq!(expand_str("a{b,{c,d}}e"), ["abe", "ace", "ade"]);
        assert_eq!(expand_str("x{1..99999999999999999999}"), ["x%"]);
        assert_eq!(expand_str("{}"), ["{}"]);
        assert_eq!(expand_str("{a"), ["{a"]);
        assert!(expand_str(&"{a,b}".repeat(40)).len() <= 2 * MOST_WORDS);
    }
}
