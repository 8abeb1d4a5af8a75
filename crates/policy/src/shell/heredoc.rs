//! Here-documents, cut out of shell text by the rules of bash.

use super::mask::{Before, Masker, Piece, SEPARATORS};
use super::word::Unreadable;

/// A here-document whose body has not been read yet.
pub(crate) struct Pending {
    tag: String,
    strips_tabs: bool,
    piece: usize,
}

impl Masker<'_> {
    /// Reads the operator and the tag of a here-document, and writes a here-string with a mark.
    pub fn document(&mut self) -> Result<(), Unreadable> {
        self.cursor.at += 2;
        let strips_tabs = self.cursor.rest().starts_with('-');
        self.cursor.at += usize::from(strips_tabs);
        self.cursor.at +=
            self.cursor.rest().len() - self.cursor.rest().trim_start_matches([' ', '\t']).len();
        let rest = self.cursor.rest();
        let (tag, length, quoted) = match rest.chars().next().ok_or(Unreadable)? {
            quote @ ('\'' | '"') => {
                let tag = rest[1..].split(quote).next().ok_or(Unreadable)?;
                (tag, tag.len() + 2, true)
            }
            '\\' => (
                plain_prefix(&rest[1..]),
                plain_prefix(&rest[1..]).len() + 1,
                true,
            ),
            _ => (plain_prefix(rest), plain_prefix(rest).len(), false),
        };
        let after = rest.get(length..).ok_or(Unreadable)?;
        let ends = after.is_empty() || after.starts_with(|c| SEPARATORS.contains(c));
        if tag.is_empty() || tag.contains(['\n', '$', '`', '\\']) || !ends {
            return Err(Unreadable);
        }
        self.cursor.at += length;
        self.masked.text.push_str("<<< ");
        self.before = Before::Word;
        let piece = self.masked.pieces.len();
        self.pending.push(Pending {
            tag: tag.to_owned(),
            strips_tabs,
            piece,
        });
        self.leave_mark(Piece::Document {
            body: String::new(),
            expands: !quoted,
        })
    }

    /// Reads the bodies of all pending here-documents.
    pub fn documents(&mut self) -> Result<(), Unreadable> {
        for Pending {
            tag,
            strips_tabs,
            piece,
        } in std::mem::take(&mut self.pending)
        {
            let Some(Piece::Document { expands, .. }) = self.masked.pieces.get(piece) else {
                return Err(Unreadable);
            };
            let expands = *expands;
            let mut text = String::new();
            loop {
                let line = self.body_line(strips_tabs, expands)?;
                if line == tag {
                    break;
                }
                text.push_str(&line);
                text.push('\n');
            }
            self.masked.pieces[piece] = Piece::Document {
                body: text,
                expands,
            };
        }
        Ok(())
    }

    /// Reads one line of a body. In a body that is expanded, an escaped line break does not end it.
    fn body_line(&mut self, strips_tabs: bool, expands: bool) -> Result<String, Unreadable> {
        let mut line = String::new();
        loop {
            if self.cursor.rest().is_empty() {
                return Err(Unreadable);
            }
            let end = self
                .cursor
                .rest()
                .find('\n')
                .unwrap_or(self.cursor.rest().len());
            let part = &self.cursor.rest()[..end];
            self.cursor.at = (self.cursor.at + end + 1).min(self.cursor.text.len());
            line.push_str(if strips_tabs {
                part.trim_start_matches('\t')
            } else {
                part
            });
            let slashes = part.len() - part.trim_end_matches('\\').len();
            if !expands || slashes.is_multiple_of(2) {
                return Ok(line);
            }
            line.pop();
        }
    }
}

/// The leading characters without any meaning in shell text.
fn plain_prefix(text: &str) -> &str {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-.!@%+:,~^=".contains(c);
    &text[..text.find(|c| !plain(c)).unwrap_or(text.len())]
}
