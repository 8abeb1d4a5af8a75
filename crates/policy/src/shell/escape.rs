//! The escapes of `$'…'`.

/// The character of an escape, and its length in bytes after the backslash. `None` for a NUL, which would end the
/// string in a shell.
pub(crate) fn ansi_c(after: &str) -> Option<(char, usize)> {
    let c = after.chars().next()?;
    let plain = match c {
        'n' => '\n',
        't' => '\t',
        'r' => '\r',
        'a' => '\x07',
        'b' => '\x08',
        'v' => '\x0b',
        'f' => '\x0c',
        'e' | 'E' => '\x1b',
        'x' => return code(&after[1..], 16, 2).map(|(c, length)| (c, length + 1)),
        'u' => return code(&after[1..], 16, 4).map(|(c, length)| (c, length + 1)),
        'U' => return code(&after[1..], 16, 8).map(|(c, length)| (c, length + 1)),
        '0'..='7' => return code(after, 8, 3),
        'c' => {
            let control = after[1..].chars().next()?;
            return Some((
                char::from_u32(u32::from(control) & 0x1f)?,
                1 + control.len_utf8(),
            ));
        }
        other => other,
    };
    Some((plain, c.len_utf8()))
}

fn code(digits: &str, radix: u32, most: usize) -> Option<(char, usize)> {
    let length = digits
        .chars()
        .take(most)
        .take_while(|c| c.is_digit(radix))
        .count();
    let code = u32::from_str_radix(&digits[..length], radix).ok()?;
    char::from_u32(code)
        .filter(|&c| c != '\0')
        .map(|c| (c, length))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_stand_for_characters() {
        assert_eq!(ansi_c("x41b"), Some(('A', 3)));
        assert_eq!(ansi_c("155"), Some(('m', 3)));
        assert_eq!(ansi_c("u00e9!"), Some(('é', 5)));
        assert_eq!(ansi_c("n"), Some(('\n', 1)));
        assert_eq!(ansi_c("é"), Some(('é', 2)));
        for nothing in ["", "x", "xzz", "0", "x00", "UFFFFFFFF", "c"] {
            assert_eq!(ansi_c(nothing), None, "{nothing}");
        }
    }
}
