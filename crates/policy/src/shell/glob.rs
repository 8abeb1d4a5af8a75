//! Matching of shell patterns.

/// Whether a shell pattern can match the text. `unknown` stands for any text, like `*`.
pub(crate) fn glob_matches(pattern: &str, text: &str, unknown: char) -> bool {
    let pattern: Vec<char> = pattern.chars().collect();
    let text: Vec<char> = text.chars().collect();
    let (mut p, mut t) = (0, 0);
    let mut retry: Option<(usize, usize)> = None;
    while t < text.len() {
        let step = pattern.get(p).and_then(|&c| match c {
            '*' => None,
            _ if c == unknown => None,
            '?' => Some(1),
            '[' => bracket_len(&pattern[p..]).map_or((text[t] == '[').then_some(1), Some),
            _ => (c == text[t]).then_some(1),
        });
        if let Some(len) = step {
            p += len;
            t += 1;
        } else if pattern.get(p).is_some_and(|&c| c == '*' || c == unknown) {
            retry = Some((p, t));
            p += 1;
        } else if let Some((star, at)) = retry {
            retry = Some((star, at + 1));
            p = star + 1;
            t = at + 1;
        } else {
            return false;
        }
    }
    pattern[p..].iter().all(|&c| c == '*' || c == unknown)
}

/// The length of a bracket expression, which is taken to match any character.
fn bracket_len(pattern: &[char]) -> Option<usize> {
    pattern
        .iter()
        .skip(2)
        .position(|&c| c == ']')
        .map(|i| i + 3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn globs_match_what_the_shell_would() {
        assert!(glob_matches("/etc/shad*", "/etc/shadow", '%'));
        assert!(glob_matches("/???/s[h]adow", "/etc/shadow", '%'));
        assert!(glob_matches("c%l", "curl", '%'));
        assert!(!glob_matches("/etc/p*", "/etc/shadow", '%'));
        assert!(!glob_matches("", "x", '%'));
    }
}
