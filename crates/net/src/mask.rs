//! Masks known values in a stream of bytes, each by as many asterisks as it has bytes.
//!
//! A value may be cut by the end of a piece, so the last bytes of a stream wait for what follows: always as many as the longest
//! value has, less one. Were only bytes held that look like the beginning of a value, whoever reads the stream could
//! guess a value byte by byte, by looking at what is late.

use std::fmt;
use std::sync::Arc;

use aho_corasick::{AhoCorasick, AhoCorasickKind, MatchKind};
use base64ct::{Base64Unpadded, Base64UrlUnpadded, Encoding};

use crate::error::Error;

const MASK: u8 = b'*';
/// The bits of a byte, and those that a character of base64 stands for.
const BYTE: usize = 8;
const SEXTET: usize = 6;

/// The values to mask, each as it is and inside base64.
#[derive(Default)]
pub struct Needles {
    /// None where there is nothing to mask.
    search: Option<AhoCorasick>,
    longest: usize,
}

impl Needles {
    /// Short values would be found everywhere: keeping them out is the caller's part.
    pub fn new<'a>(values: impl IntoIterator<Item = &'a str>) -> Result<Needles, Error> {
        let mut texts: Vec<String> = values.into_iter().flat_map(forms).collect();
        texts.retain(|text| !text.is_empty());
        texts.sort();
        texts.dedup();
        let longest = texts.iter().map(String::len).max().unwrap_or_default();
        let search = (!texts.is_empty()).then(|| {
            // The other kinds need a hundred times the memory for long values.
            let mut builder = AhoCorasick::builder();
            builder.kind(Some(AhoCorasickKind::ContiguousNFA));
            builder.match_kind(MatchKind::Standard).build(&texts)
        });
        let search = search.transpose();
        let search = search.map_err(|_| Error::Secret("all of them together are too long"))?;
        Ok(Needles { search, longest })
    }

    pub fn is_empty(&self) -> bool {
        self.search.is_none()
    }

    /// A whole text, masked, with how many places were.
    pub fn mask(self: &Arc<Self>, text: &[u8]) -> (Vec<u8>, u64) {
        let mut masker = Masker::new(Arc::clone(self));
        let mut shown = masker.push(text);
        shown.extend(masker.flush());
        (shown, masker.masked())
    }
}

/// Without the values.
impl fmt::Debug for Needles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Needles(up to {} bytes)", self.longest)
    }
}

/// How a value may appear: as it is, and inside base64. There it has one of three forms, by how many bytes are before it;
/// characters that depend on its neighbours are left out.
fn forms(value: &str) -> Vec<String> {
    let mut forms = vec![value.to_owned()];
    for before in 0..3 {
        let mut bytes = vec![0; before];
        bytes.extend_from_slice(value.as_bytes());
        let (from, to) = (
            (before * BYTE).div_ceil(SEXTET),
            bytes.len() * BYTE / SEXTET,
        );
        let encoded = [
            Base64Unpadded::encode_string(&bytes),
            Base64UrlUnpadded::encode_string(&bytes),
        ];
        forms.extend(encoded.into_iter().map(|text| text[from..to].to_owned()));
    }
    forms
}

/// One stream on its way through.
pub struct Masker {
    needles: Arc<Needles>,
    /// The last bytes as they came, up to one less than the longest value.
    came: Vec<u8>,
    /// These bytes as they are shown.
    shown: Vec<u8>,
    /// How many of them have been given out.
    given: usize,
    masked: u64,
}

impl Masker {
    pub fn new(needles: Arc<Needles>) -> Masker {
        Masker {
            needles,
            came: Vec::new(),
            shown: Vec::new(),
            given: 0,
            masked: 0,
        }
    }

    /// From now on other values are masked.
    pub fn change(&mut self, needles: &Arc<Needles>) {
        if !Arc::ptr_eq(&self.needles, needles) {
            self.needles = Arc::clone(needles);
        }
    }

    /// Takes bytes, and gives those that can be shown.
    pub fn push(&mut self, bytes: &[u8]) -> Vec<u8> {
        let before = self.came.len();
        self.came.extend_from_slice(bytes);
        self.shown.extend_from_slice(bytes);
        self.hide(before);
        let held = self.needles.longest.saturating_sub(1);
        let ready = self.came.len().saturating_sub(held).max(self.given);
        let out = self.shown[self.given..ready].to_vec();
        let forgotten = self.came.len().saturating_sub(held);
        self.came.drain(..forgotten);
        self.shown.drain(..forgotten);
        self.given = ready - forgotten;
        out
    }

    /// Hides what ends behind the first `before` bytes; the rest was hidden when it came.
    fn hide(&mut self, before: usize) {
        let Some(search) = &self.needles.search else {
            return;
        };
        let mut last = 0..0;
        for found in search.find_overlapping_iter(&self.came) {
            if found.end() <= before {
                continue;
            }
            let overlaps = found.start() < last.end && !last.is_empty();
            // Places come in the order of their ends, so what the last one hid is not hidden again.
            let from = match overlaps && found.start() >= last.start {
                true => last.end.min(found.end()),
                false => found.start(),
            };
            self.shown[from..found.end()].fill(MASK);
            let start = if overlaps {
                last.start.min(found.start())
            } else {
                self.masked += 1;
                found.start()
            };
            last = start..found.end();
        }
    }

    /// Gives what waits. It is compared with what follows all the same.
    pub fn flush(&mut self) -> Vec<u8> {
        let out = self.shown[self.given..].to_vec();
        self.given = self.shown.len();
        out
    }

    /// Whether bytes wait for what follows.
    pub fn holds(&self) -> bool {
        self.given < self.shown.len()
    }

    /// In how many places something was masked.
    pub fn masked(&self) -> u64 {
        self.masked
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn needles(values: &[&str]) -> Arc<Needles> {
        Arc::new(Needles::new(values.iter().copied()).unwrap())
    }

    fn masked(values: &[&str], text: &str) -> String {
        let (shown, _) = needles(values).mask(text.as_bytes());
        String::from_utf8(shown).unwrap()
    }

    #[test]
    fn a_value_is_masked_at_its_length() {
        assert_eq!(masked(&["sesame12"], "a sesame12 b"), "a ******** b");
        assert_eq!(masked(&["sesame12"], "sesame1 esame12"), "sesame1 esame12");
        assert_eq!(masked(&[], "sesame12"), "sesame12");
        let count = |text: &str| needles(&["sesame12"]).mask(text.as_bytes()).1;
        assert_eq!((count("x"), count("sesame12sesame12")), (0, 2));
    }

    #[test]
    fn overlapping_values_are_masked_whole() {
        assert_eq!(masked(&["abababab"], "xababababababy"), "x************y");
        assert_eq!(
            masked(&["0123456789", "456789ab"], "0123456789ab."),
            "************."
        );
        assert_eq!(
            masked(&["456789ab", "23456789abcd"], "0123456789abcd"),
            "01************"
        );
    }

    #[test]
    fn base64_is_masked_wherever_the_value_is_in_it() {
        let value = "hunter2-hunter2>>??";
        for before in ["", "u:", "x", "user:", "ab"] {
            for encode in [
                Base64Unpadded::encode_string,
                Base64UrlUnpadded::encode_string,
            ] {
                let text = encode(format!("{before}{value}:after").as_bytes());
                let shown = masked(&[value], &text);
                assert_eq!(shown.len(), text.len());
                let hidden = shown.matches('*').count();
                assert!(hidden >= value.len() * BYTE / SEXTET - 1, "{text} {shown}");
            }
        }
    }

    #[test]
    fn pieces_make_no_difference_and_little_is_held() {
        let values = ["abcabcabcd", "cabcdefgh"];
        let needles = needles(&values);
        let text = "abcabcabcabcdefgh abcabcabc cabcdefg abcabcabcd YWJjYWJjYWJjZA".repeat(3);
        let (whole, count) = needles.mask(text.as_bytes());
        let longest = needles.longest;
        for size in 1..text.len() {
            let mut masker = Masker::new(Arc::clone(&needles));
            let (mut shown, mut given) = (Vec::new(), 0);
            for piece in text.as_bytes().chunks(size) {
                given += piece.len();
                shown.extend(masker.push(piece));
                assert!(given - shown.len() < longest);
            }
            assert!(masker.came.len() < longest);
            shown.extend(masker.flush());
            assert_eq!(shown, whole, "pieces of {size}");
            assert!(masker.masked() >= count);
        }
    }

    #[test]
    fn what_is_held_does_not_depend_on_the_value() {
        let held = |text: &str| {
            let mut masker = Masker::new(needles(&["sesame12"]));
            text.len() - masker.push(text.as_bytes()).len()
        };
        assert_eq!(held("echo sesame"), held("echo xxxxxx"));
    }

    #[test]
    fn what_was_given_early_still_counts() {
        let mut masker = Masker::new(needles(&["sesame12"]));
        let mut shown = masker.push(b"say sesa");
        shown.extend(masker.flush());
        assert!(!masker.holds());
        shown.extend(masker.push(b"me12 end"));
        shown.extend(masker.flush());
        assert_eq!(shown, b"say sesa**** end");
    }
}
