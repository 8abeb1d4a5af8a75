//! Changing text inside a file: one exact string becomes another.

use avfs_vault::{Cause, VaultPath};

use crate::bounds::EDIT_MAX;
use crate::files::Parents;
use crate::files::locate::{existing, file_content};
use crate::files::write::{WriteOptions, put_content};
use crate::gate::Verb;
use crate::runtime::Select;
use crate::session::Session;
use crate::{Error, Result};

/// How many places an ambiguous text is shown at.
const LINES_SHOWN: usize = 10;

/// Which occurrences are replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Occurrences {
    /// There must be exactly one.
    TheOnly,
    All,
}

#[derive(Debug, Clone)]
pub struct Replaced {
    pub path: VaultPath,
    pub replacements: usize,
    pub size: u64,
    pub version: u64,
}

impl Session {
    /// Replaces `old` by `new` in a file.
    pub fn edit(
        &self,
        vault: Select,
        path: &VaultPath,
        old: &[u8],
        new: &[u8],
        which: Occurrences,
    ) -> Result<Replaced> {
        check_texts(old, new)?;
        let selected = self.vault(&vault, Verb::Work)?;
        if self.scratch(&selected, path)?.is_some() {
            let file = self.open_file(vault.clone(), path, None)?;
            check_size(path, file.size)?;
            let bytes = file.read_at(0, EDIT_MAX as usize)?;
            let (bytes, replacements) = replace(path, &bytes, old, new, which)?;
            let options = WriteOptions::default();
            let written = self.write(vault, path, &mut &bytes[..], &options)?;
            return Ok(Replaced {
                path: written.path,
                replacements,
                size: written.size,
                version: written.version,
            });
        }
        let trees = self.inner.vaults.trees();
        let edited = self.change(selected, Cause::Edit, &[path], |edit, head| {
            let path = self.real_path(head, path, Parents::Require)?;
            let entry = existing(edit, &path)?;
            let (content, size) = file_content(&path, &entry)?;
            check_size(&path, size)?;
            let bytes = trees.read(content, 0, size as usize)?;
            let (bytes, replacements) = replace(&path, &bytes, old, new, which)?;
            let stored = trees.write_bytes(&bytes)?;
            put_content(edit, &path, Some(entry), stored, None)?;
            Ok((path, replacements, stored.1))
        });
        edited.map(|((path, replacements, size), version)| Replaced {
            path,
            replacements,
            size,
            version,
        })
    }
}

fn check_size(path: &VaultPath, size: u64) -> Result<()> {
    match size > EDIT_MAX {
        true => Err(Error::TooLarge {
            path: path.clone(),
            size,
            limit: EDIT_MAX,
        }),
        false => Ok(()),
    }
}

fn check_texts(old: &[u8], new: &[u8]) -> Result<()> {
    let reason = if old.is_empty() {
        "the text to replace is empty"
    } else if old == new {
        "the old and the new text are the same"
    } else {
        return Ok(());
    };
    Err(Error::Invalid {
        what: "edit",
        reason: reason.into(),
    })
}

/// The new content, and how many times `old` was replaced in it.
fn replace(
    path: &VaultPath,
    bytes: &[u8],
    old: &[u8],
    new: &[u8],
    which: Occurrences,
) -> Result<(Vec<u8>, usize)> {
    let matches = occurrences(bytes, old).count();
    if matches == 0 {
        return Err(Error::TextNotFound { path: path.clone() });
    }
    if which == Occurrences::TheOnly && matches > 1 {
        let line = |at: usize| 1 + bytes[..at].iter().filter(|&&byte| byte == b'\n').count();
        return Err(Error::TextAmbiguous {
            path: path.clone(),
            matches,
            lines: occurrences(bytes, old)
                .take(LINES_SHOWN)
                .map(line)
                .collect(),
        });
    }
    let mut changed = Vec::with_capacity(bytes.len());
    let (mut from, mut replacements) = (0, 0);
    for at in occurrences(bytes, old) {
        // Overlapping ones count when there may be only one, and are no longer there now.
        if at >= from {
            // A short text many times, replaced by a long one, must not fill the memory.
            let size = changed.len() + (at - from) + new.len();
            check_size(path, size as u64)?;
            changed.extend_from_slice(&bytes[from..at]);
            changed.extend_from_slice(new);
            from = at + old.len();
            replacements += 1;
        }
    }
    changed.extend_from_slice(&bytes[from..]);
    Ok((changed, replacements))
}

/// Where `text` begins in `bytes`, overlapping places included.
fn occurrences(bytes: &[u8], text: &[u8]) -> impl Iterator<Item = usize> {
    let first = text[0];
    let last = (bytes.len() + 1).saturating_sub(text.len());
    let candidates = bytes[..last].iter().enumerate();
    candidates
        .filter(move |(at, byte)| **byte == first && bytes[*at..].starts_with(text))
        .map(|(at, _)| at)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edited(text: &str, old: &str, which: Occurrences) -> Result<(String, usize)> {
        let path = VaultPath::root();
        let done = replace(&path, text.as_bytes(), old.as_bytes(), b"<>", which)?;
        Ok((String::from_utf8(done.0).unwrap(), done.1))
    }

    #[test]
    fn one_or_all_are_replaced() {
        let one = edited("a b c", "b", Occurrences::TheOnly).unwrap();
        assert_eq!(one, ("a <> c".into(), 1));
        let all = edited("aaaa", "aa", Occurrences::All).unwrap();
        assert_eq!(all, ("<><>".into(), 2));
        let end = edited("ab", "b", Occurrences::TheOnly).unwrap();
        assert_eq!(end, ("a<>".into(), 1));
    }

    #[test]
    fn doubt_is_refused() {
        let error = edited("x\ny\nx\n", "x", Occurrences::TheOnly).unwrap_err();
        let Error::TextAmbiguous { matches, lines, .. } = error else {
            panic!("{error}")
        };
        assert_eq!((matches, lines), (2, vec![1, 3]));
        let overlapping = edited("aaa", "aa", Occurrences::TheOnly);
        assert!(matches!(overlapping, Err(Error::TextAmbiguous { .. })));
        let none = edited("abc", "abcd", Occurrences::All);
        assert!(matches!(none, Err(Error::TextNotFound { .. })));
    }
}
