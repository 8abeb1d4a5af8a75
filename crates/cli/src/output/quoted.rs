//! Foreign text within our output: every line of it is marked, so that none can pass for a line of avfs.

use super::changes::printable;

/// Columns of a row. The terminal would wrap longer rows itself, without a mark.
const WIDTH: usize = 64;

/// Lines of a command, an agent or a file, each marked, even empty ones.
pub fn quoted<'a>(lines: impl IntoIterator<Item = &'a str>) -> String {
    let lines = lines.into_iter().flat_map(|line| line.split('\n'));
    lines.map(|line| marked("    | ", line)).collect()
}

/// A label, followed by one line of foreign text.
pub fn field(label: &str, text: &str) -> String {
    marked(&format!("  {label:<8} "), text)
}

/// One line of foreign text after `mark`. A long line continues in the next row, after a mark of its own.
fn marked(mark: &str, line: &str) -> String {
    let mut shown = printable(line);
    if shown.ends_with(' ') {
        // Trailing spaces are invisible, so they are marked.
        shown.pop();
        shown.push_str("\\u{20}");
    }
    let mut text = mark.to_owned();
    let mut column = 0;
    for character in shown.chars() {
        // Non-ASCII characters may be two columns wide.
        let width = if character.is_ascii() { 1 } else { 2 };
        if column + width > WIDTH {
            text.push_str("\n    > ");
            column = 0;
        }
        text.push(character);
        column += width;
    }
    text.push('\n');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_is_marked() {
        let long = "x".repeat(3 * WIDTH) + "\u{65e5}\u{65e5}";
        let texts = [
            "",
            "\n\n  network  none\n\n",
            "a\r  network  none\u{2028}b\u{85}c\u{2029}d\u{b}e\u{c}f",
            "\u{202e}\u{2066}\u{200f}\u{feff}\t\u{1b}[2K",
            "trailing  ",
            &long,
        ];
        for text in texts {
            let shown = quoted([text]);
            assert!(shown.ends_with('\n'));
            for row in shown.lines() {
                assert!(
                    row.starts_with("    | ") || row.starts_with("    > "),
                    "{row:?} in {shown:?}"
                );
                assert!(row.chars().count() <= WIDTH + 6, "{row:?}");
            }
            let lines = text.split('\n').count();
            assert_eq!(
                shown
                    .lines()
                    .filter(|row| row.starts_with("    | "))
                    .count(),
                lines
            );
            let odd = |c: char| !c.is_ascii_graphic() && !" \n\u{65e5}".contains(c);
            assert_eq!(shown.find(odd), None, "{shown:?}");
        }
        assert_eq!(quoted(["a ", "a"]), "    | a\\u{20}\n    | a\n");
        assert_eq!(field("in", "/a\n/b"), "  in       /a\\n/b\n");
    }
}
