//! Labels of paths: tags and metadata, kept as extended attributes so that they are versioned,
//! forked, checkpointed and restored with what they describe.

use std::collections::BTreeMap;
use std::str::FromStr;

use avfs_vault::{Cause, Edit, Entry, Meta, Step, VaultPath};

use crate::files::Parents;
use crate::files::locate::existing;
use crate::gate::Verb;
use crate::runtime::Select;
use crate::session::Session;
use crate::{Error, Result};

const TAG: &[u8] = b"user.avfs.tag.";
const META: &[u8] = b"user.avfs.meta.";
const NAME_MAX: usize = 64;
const VALUE_MAX: usize = 1024;
/// All labels of one path: what still fits beside a file's other attributes on any filesystem.
const TOTAL_MAX: usize = 2048;

/// The name of a tag or the key of a piece of metadata.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct LabelName(String);

/// What a path is labelled with.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Labels {
    pub tags: Vec<String>,
    pub metadata: BTreeMap<String, String>,
}

/// One thing that may happen to the labels of a path.
#[derive(Debug, Clone)]
pub enum LabelChange {
    Tag(LabelName),
    Untag(LabelName),
    Set(LabelName, String),
    Unset(LabelName),
}

#[derive(Debug, Clone)]
pub struct Labelled {
    pub path: VaultPath,
    /// The labels afterwards.
    pub labels: Labels,
    pub version: u64,
}

/// A tag and how many paths have it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TagCount {
    pub name: String,
    pub paths: usize,
}

impl Labels {
    /// The labels among an entry's attributes.
    pub fn of(entry: &Entry) -> Labels {
        let mut labels = Labels::default();
        for (key, value) in &entry.meta.xattrs {
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            if let Some(name) = key.strip_prefix(TAG) {
                labels.tags.push(text(name));
            } else if let Some(name) = key.strip_prefix(META) {
                labels.metadata.insert(text(name), text(value));
            }
        }
        labels
    }
}

impl LabelName {
    pub fn as_str(&self) -> &str {
        &self.0
    }

    fn key(&self, prefix: &[u8]) -> Vec<u8> {
        [prefix, self.0.as_bytes()].concat()
    }
}

impl FromStr for LabelName {
    type Err = Error;

    fn from_str(text: &str) -> Result<LabelName> {
        let reason = if text.is_empty() {
            "it is empty"
        } else if text.len() > NAME_MAX {
            "it is longer than 64 bytes"
        } else if text.starts_with('-') {
            "it may not begin with '-'"
        } else if text.contains(|c: char| c.is_whitespace() || c.is_control() || c == '=') {
            "it may not hold spaces, control characters or '='"
        } else {
            return Ok(LabelName(text.to_owned()));
        };
        Err(Error::Invalid {
            what: "label",
            reason: format!("{text:?}: {reason}"),
        })
    }
}

impl Session {
    /// The labels of a path; a link at its end is followed.
    pub fn labels(&self, vault: Select, path: &VaultPath) -> Result<Labelled> {
        let vault = self.vault(&vault, Verb::Read)?;
        self.check_kept(path)?;
        let vault = self.up_to_date(&vault)?;
        let (path, entry) = self.inner.vaults.trees().resolve(vault.head, path)?;
        Ok(Labelled {
            path,
            labels: Labels::of(&entry),
            version: vault.version,
        })
    }

    /// Changes the labels of a path, all of it or nothing, as one version.
    pub fn label(
        &self,
        vault: Select,
        path: &VaultPath,
        changes: &[LabelChange],
    ) -> Result<Labelled> {
        let vault = self.vault(&vault, Verb::Work)?;
        self.check_kept(path)?;
        let labelled = self.change(vault, Cause::Label, &[path], |edit, head| {
            let path = self.real_path(head, path, Parents::Require)?;
            let entry = existing(edit, &path)?;
            if !entry.is_dir() && !entry.is_file() {
                return Err(avfs_vault::Error::NotAFile { path }.into());
            }
            let mut meta = entry.meta.clone();
            for change in changes {
                apply(&path, &mut meta, change)?;
            }
            set_labels(edit, &path, entry, meta)
        });
        labelled.map(|((path, labels), version)| Labelled {
            path,
            labels,
            version,
        })
    }

    /// Takes a tag from every path that has it, or gives them another one instead, as one version.
    /// Says how many paths that were.
    pub fn retag(&self, vault: Select, tag: &LabelName, new: Option<&LabelName>) -> Result<usize> {
        let vault = self.vault(&vault, Verb::Work)?;
        let trees = self.inner.vaults.trees();
        let (old, new) = (tag.key(TAG), new.map(|name| name.key(TAG)));
        let retagged = self.change(vault, Cause::Label, &[], |edit, head| {
            let mut tagged = Vec::new();
            trees.walk::<Error>(head, &VaultPath::root(), &mut |visit| {
                if visit.entry.meta.xattrs.contains_key(&old) {
                    tagged.push((visit.path.clone(), visit.entry.meta.clone()));
                }
                Ok(if visit.has_xattrs {
                    Step::Into
                } else {
                    Step::Past
                })
            })?;
            if tagged.is_empty() {
                return Err(Error::TagNotFound {
                    name: tag.0.clone(),
                });
            }
            let count = tagged.len();
            for (path, mut meta) in tagged {
                meta.xattrs.remove(&old);
                if let Some(key) = &new {
                    meta.xattrs.insert(key, b"");
                }
                meta.ctime = avfs_vault::Time::now();
                edit.set_meta(&path, meta)?;
            }
            Ok(count)
        });
        retagged.map(|(count, _)| count)
    }

    /// Every tag in the vault, by name, and how many paths have it.
    pub fn tags(&self, vault: Select) -> Result<Vec<TagCount>> {
        let vault = self.up_to_date(&self.vault(&vault, Verb::Read)?)?;
        let mut counts: BTreeMap<String, usize> = BTreeMap::new();
        let trees = self.inner.vaults.trees();
        trees.walk::<Error>(vault.head, &VaultPath::root(), &mut |visit| {
            if !visit.has_xattrs {
                return Ok(Step::Past);
            }
            for tag in Labels::of(visit.entry).tags {
                *counts.entry(tag).or_default() += 1;
            }
            Ok(Step::Into)
        })?;
        let counts = counts.into_iter();
        Ok(counts
            .map(|(name, paths)| TagCount { name, paths })
            .collect())
    }
}

fn apply(path: &VaultPath, meta: &mut Meta, change: &LabelChange) -> Result<()> {
    let lost = |what, name: &LabelName| Error::LabelNotFound {
        path: path.clone(),
        what,
        name: name.0.clone(),
    };
    match change {
        LabelChange::Tag(name) => {
            meta.xattrs.insert(name.key(TAG), b"");
        }
        LabelChange::Untag(name) => {
            let was_there = meta.xattrs.remove(&name.key(TAG));
            was_there.then_some(()).ok_or_else(|| lost("tag", name))?;
        }
        LabelChange::Set(name, value) => {
            check_value(name, value)?;
            meta.xattrs.insert(name.key(META), value);
        }
        LabelChange::Unset(name) => {
            let was_there = meta.xattrs.remove(&name.key(META));
            was_there
                .then_some(())
                .ok_or_else(|| lost("metadata", name))?;
        }
    }
    Ok(())
}

fn check_value(name: &LabelName, value: &str) -> Result<()> {
    let reason = if value.len() > VALUE_MAX {
        format!("it has {} bytes, and {VALUE_MAX} are allowed", value.len())
    } else if value.contains('\0') {
        "it contains a NUL byte".into()
    } else {
        return Ok(());
    };
    Err(Error::Invalid {
        what: "metadata",
        reason: format!("the value of {:?}: {reason}", name.0),
    })
}

fn set_labels(
    edit: &mut Edit,
    path: &VaultPath,
    entry: Entry,
    mut meta: Meta,
) -> Result<(VaultPath, Labels)> {
    let is_label = |key: &[u8]| key.starts_with(TAG) || key.starts_with(META);
    let labels = meta.xattrs.iter().filter(|(key, _)| is_label(key));
    let total: usize = labels.map(|(key, value)| key.len() + value.len()).sum();
    if total > TOTAL_MAX {
        return Err(Error::Invalid {
            what: "labels",
            reason: format!("{path} would carry {total} bytes of them, and {TOTAL_MAX} fit"),
        });
    }
    if meta.xattrs != entry.meta.xattrs {
        meta.ctime = avfs_vault::Time::now();
        edit.set_meta(path, meta.clone())?;
    }
    let labels = Labels::of(&Entry { meta, ..entry });
    Ok((path.clone(), labels))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_labels_are_short_words() {
        for good in ["a", "todo", "owner/team", "v1.2", "größe", &"x".repeat(64)] {
            assert_eq!(good.parse::<LabelName>().unwrap().as_str(), good);
        }
        for bad in ["", "-x", "a b", "a=b", "a\n", "a\u{0}", &"x".repeat(65)] {
            assert!(bad.parse::<LabelName>().is_err(), "{bad:?}");
        }
    }
}
