//! Files in a vault: reading and changing them.

use super::{Base64, TypeWord};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Lists the names in a directory.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Ls {
    /// The path in the vault.
    pub path: String,
    /// The exact bytes of `path`, where it is not UTF-8.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub path_b64: Option<Base64>,
    /// Only names after this one: the last of the previous answer.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub after: Option<String>,
    /// The exact bytes of `after`, where it is not UTF-8.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub after_b64: Option<Base64>,
    /// How many at most. Default and maximum: 10,000.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub limit: Option<usize>,
}

impl Ls {
    /// Lists a directory from its first name on.
    pub fn new((path, path_b64): (String, Option<Base64>)) -> Ls {
        Ls {
            path,
            path_b64,
            after: None,
            after_b64: None,
            limit: None,
        }
    }

    /// All names, as `ask` answers page by page.
    pub fn all<E>(
        mut self,
        mut ask: impl FnMut(&Ls) -> Result<Listing, E>,
    ) -> Result<Vec<ListedEntry>, E> {
        let mut entries: Vec<ListedEntry> = Vec::new();
        loop {
            let page = ask(&self)?;
            entries.extend(page.entries);
            let Some(last) = entries.last().filter(|_| page.more) else {
                return Ok(entries);
            };
            self.after = Some(last.name.clone());
            self.after_b64.clone_from(&last.name_b64);
        }
    }
}

/// Names in a directory, in order.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Listing {
    /// The names.
    pub entries: Vec<ListedEntry>,
    /// Whether there are more names.
    pub more: bool,
}

/// One name in a directory.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ListedEntry {
    /// The name.
    pub name: String,
    /// The exact bytes of `name`, where it is not UTF-8.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub name_b64: Option<Base64>,
    /// What it is.
    #[serde(flatten)]
    pub attributes: EntryAttributes,
}

/// What every entry of a tree has: type, size, mode, owner, time, target.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct EntryAttributes {
    /// Which type it has.
    #[serde(rename = "type")]
    pub kind: TypeWord,
    /// Bytes of a file, of a link's target, or of everything below a directory.
    pub size: u64,
    /// When its content last changed, as RFC 3339.
    pub modified: String,
    /// Permission bits in octal.
    pub mode: String,
    /// The user id of its owner.
    pub uid: u32,
    /// The group id of its owner.
    pub gid: u32,
    /// How many files are below a directory.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub files: Option<u64>,
    /// What a symbolic link holds.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub target: Option<String>,
    /// The exact bytes of `target`, where it is not UTF-8.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub target_b64: Option<Base64>,
}

/// Reads up to 1 MiB of a file.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Cat {
    /// The path in the vault.
    pub path: String,
    /// The exact bytes of `path`, where it is not UTF-8.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub path_b64: Option<Base64>,
    /// The vault's version to read. Default: the newest.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub version: Option<u64>,
    /// The first byte wanted.
    #[serde(default)]
    pub offset: u64,
    /// How many bytes at most. Default and maximum: 1 MiB. [`ReadContent`] has no limit.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub limit: Option<u64>,
}

/// A file's content.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct FileBody {
    /// The path in the vault.
    pub path: String,
    /// The exact bytes of `path`, where it is not UTF-8.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub path_b64: Option<Base64>,
    /// The content.
    pub content: String,
    /// The exact bytes of `content`, where it is not UTF-8.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub content_b64: Option<Base64>,
    /// Size of the whole file.
    pub size: u64,
    /// The offset of the content in the file.
    #[serde(default)]
    pub offset: u64,
    /// Whether the file has more after the content.
    #[serde(default)]
    pub more: bool,
    /// How to get the rest, if there is more.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub hint: Option<String>,
    /// The vault's version that was read.
    pub version: u64,
}

/// Writes a file, or appends to it.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Write {
    /// The path in the vault.
    pub path: String,
    /// The exact bytes of `path`, where it is not UTF-8.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub path_b64: Option<Base64>,
    /// The content.
    #[serde(default)]
    pub content: String,
    /// The exact bytes of `content`, where it is not UTF-8.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub content_b64: Option<Base64>,
    /// Adds to the file instead of replacing it.
    #[serde(default)]
    pub append: bool,
    /// Creates missing parent directories.
    #[serde(default)]
    pub parents: bool,
    /// The mode, octal or symbolic.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub mode: Option<String>,
}

/// Reads a file of any size; the answer is its content.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReadContent {
    /// The path in the vault.
    pub path: String,
    /// The exact bytes of `path`, where it is not UTF-8.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub path_b64: Option<Base64>,
    /// The vault's version to read. Default: the newest.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub version: Option<u64>,
    /// The first byte wanted.
    #[serde(default)]
    pub offset: u64,
    /// How many bytes at most. Default: all.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub limit: Option<u64>,
}

/// Writes a file of any size; the body is its content.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WriteContent {
    /// The path in the vault.
    pub path: String,
    /// The exact bytes of `path`, where it is not UTF-8.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub path_b64: Option<Base64>,
    /// Adds to the file instead of replacing it.
    #[serde(default)]
    pub append: bool,
    /// Creates missing parent directories.
    #[serde(default)]
    pub parents: bool,
    /// The mode, octal or symbolic.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub mode: Option<String>,
    /// Only if the file has one of these contents: ids separated by commas, or `*` for any. Also as the header `If-Match`.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub if_match: Option<String>,
    /// Only if the file has none of these contents; `*`: only if there is no file. Also as the header `If-None-Match`.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub if_none_match: Option<String>,
}

/// The answer to [`Write`].
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Written {
    /// The path in the vault.
    pub path: String,
    /// The exact bytes of `path`, where it is not UTF-8.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub path_b64: Option<Base64>,
    /// The new size of the file.
    pub size: u64,
    /// Whether it was added to.
    pub appended: bool,
    /// The vault's version.
    pub version: u64,
    /// The id of its content, which is its `ETag`; absent in `/tmp`.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub content_id: Option<String>,
}

/// Creates a directory.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Mkdir {
    /// The path in the vault.
    pub path: String,
    /// The exact bytes of `path`, where it is not UTF-8.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub path_b64: Option<Base64>,
    /// Creates missing parents, and accepts an existing directory.
    #[serde(default)]
    pub parents: bool,
}

/// The answer to [`Mkdir`].
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct MadeDirectory {
    /// The path in the vault.
    pub path: String,
    /// The exact bytes of `path`, where it is not UTF-8.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub path_b64: Option<Base64>,
    /// Whether it was made now.
    pub created: bool,
}

/// Removes a file or a directory.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Rm {
    /// The path in the vault.
    pub path: String,
    /// The exact bytes of `path`, where it is not UTF-8.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub path_b64: Option<Base64>,
    /// Also all below a directory.
    #[serde(default)]
    pub recursive: bool,
    /// A missing path is not an error.
    #[serde(default)]
    pub force: bool,
}

/// The answer to [`Rm`].
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Removed {
    /// The path in the vault.
    pub path: String,
    /// The exact bytes of `path`, where it is not UTF-8.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub path_b64: Option<Base64>,
    /// Whether there was something to remove.
    pub removed: bool,
}

/// Moves or renames a file or a directory.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Mv {
    /// What is moved or copied.
    pub source: String,
    /// The exact bytes of `source`, where it is not UTF-8.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub source_b64: Option<Base64>,
    /// Where it goes.
    pub destination: String,
    /// The exact bytes of `destination`, where it is not UTF-8.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub destination_b64: Option<Base64>,
}

/// The answer to [`Mv`].
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Moved {
    /// What is moved or copied.
    pub source: String,
    /// The exact bytes of `source`, where it is not UTF-8.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub source_b64: Option<Base64>,
    /// The new path.
    pub destination: String,
    /// The exact bytes of `destination`, where it is not UTF-8.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub destination_b64: Option<Base64>,
    /// Always true.
    pub moved: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pages of two names each; one of them is not UTF-8, and its exact bytes are where the next page begins.
    #[test]
    fn all_names_come_page_by_page() {
        let pages = [
            (["a", "b\u{fffd}"], Some(Base64(b"b\xff".to_vec())), true),
            (["c", "d"], None, false),
        ];
        let mut asked = Vec::new();
        let mut pages = pages.into_iter();
        let names = Ls::new(("/x".into(), None)).all(|request| {
            asked.push((request.after.clone(), request.after_b64.clone()));
            let (names, exact, more) = pages.next().ok_or("asked once too often")?;
            let mut entries: Vec<ListedEntry> = names.into_iter().map(entry).collect();
            entries[1].name_b64 = exact;
            Ok::<_, &str>(Listing { entries, more })
        });
        let names: Vec<String> = names.unwrap().into_iter().map(|it| it.name).collect();
        assert_eq!(names, ["a", "b\u{fffd}", "c", "d"]);
        let second = (Some("b\u{fffd}".into()), Some(Base64(b"b\xff".to_vec())));
        assert_eq!(asked, [(None, None), second]);
    }

    /// An answer that is empty and says that there is more would be asked for for ever.
    #[test]
    fn an_empty_page_is_the_last() {
        let mut asked = 0;
        let names = Ls::new(("/".into(), None)).all(|_| {
            asked += 1;
            let entries = Vec::new();
            Ok::<_, ()>(Listing {
                entries,
                more: true,
            })
        });
        assert_eq!((names.unwrap().len(), asked), (0, 1));
    }

    fn entry(name: &str) -> ListedEntry {
        let text = format!(
            r#"{{"name":"{name}","type":"file","size":0,"modified":"m","mode":"0644","uid":0,"gid":0}}"#
        );
        serde_json::from_str(&text).unwrap()
    }
}
