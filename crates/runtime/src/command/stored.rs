//! How a report is written down and read again: ids and names as text, bytes as text where they are, changes with what
//! a report tells of them.

use avfs_sandbox::Network;
use avfs_store::ObjectId;
use avfs_vault::{Change, ChangeKind, Content, Entry, Kind, Meta, Time, TreeId, VaultPath};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::command::network::ExecNetwork;
use crate::history::changes::ChangeSet;

/// Bytes: a string where they are UTF-8, else a list of numbers.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Bytes {
    Text(String),
    Exact(Vec<u8>),
}

impl From<Vec<u8>> for Bytes {
    fn from(bytes: Vec<u8>) -> Bytes {
        match String::from_utf8(bytes) {
            Ok(text) => Bytes::Text(text),
            Err(error) => Bytes::Exact(error.into_bytes()),
        }
    }
}

impl From<Bytes> for Vec<u8> {
    fn from(bytes: Bytes) -> Vec<u8> {
        match bytes {
            Bytes::Text(text) => text.into_bytes(),
            Bytes::Exact(bytes) => bytes,
        }
    }
}

/// One value of bytes.
pub(crate) mod bytes {
    use super::*;

    pub fn serialize<S: Serializer>(value: &[u8], to: S) -> Result<S::Ok, S::Error> {
        Bytes::from(value.to_vec()).serialize(to)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<u8>, D::Error> {
        Bytes::deserialize(from).map(Vec::from)
    }
}

/// A network. Older versions knew only the two kinds of namespaces.
pub(crate) fn network<'de, D: Deserializer<'de>>(from: D) -> Result<ExecNetwork, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Stored {
        Now(ExecNetwork),
        Before(Network),
    }
    Ok(match Stored::deserialize(from)? {
        Stored::Now(network) => network,
        Stored::Before(Network::None) => ExecNetwork::default(),
        Stored::Before(Network::Host) => ExecNetwork::Host,
    })
}

/// Words of a command.
pub(crate) mod words {
    use super::*;

    pub fn serialize<S: Serializer>(value: &[Vec<u8>], to: S) -> Result<S::Ok, S::Error> {
        to.collect_seq(value.iter().cloned().map(Bytes::from))
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<Vec<u8>>, D::Error> {
        let words = Vec::<Bytes>::deserialize(from)?;
        Ok(words.into_iter().map(Vec::from).collect())
    }
}

/// An id or a name.
pub(crate) mod text {
    use std::fmt::Display;
    use std::str::FromStr;

    use super::*;

    pub fn serialize<T: Display, S: Serializer>(value: &T, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(value)
    }

    pub fn deserialize<'de, T, D>(from: D) -> Result<T, D::Error>
    where
        T: FromStr,
        T::Err: Display,
        D: Deserializer<'de>,
    {
        let text = String::deserialize(from)?;
        text.parse().map_err(D::Error::custom)
    }
}

/// Ids or names: a list of them, or one that may be missing.
pub(crate) mod texts {
    use std::fmt::Display;
    use std::str::FromStr;

    use super::*;

    pub fn serialize<'a, T, L, S>(list: &'a L, to: S) -> Result<S::Ok, S::Error>
    where
        T: Display + 'a,
        &'a L: IntoIterator<Item = &'a T>,
        S: Serializer,
    {
        to.collect_seq(list.into_iter().map(ToString::to_string))
    }

    pub fn deserialize<'de, T, L, D>(from: D) -> Result<L, D::Error>
    where
        T: FromStr,
        T::Err: Display,
        L: FromList<T>,
        D: Deserializer<'de>,
    {
        let texts = Vec::<String>::deserialize(from)?.into_iter();
        let parsed: Result<Vec<T>, _> = texts.map(|text| text.parse()).collect();
        Ok(L::from_list(parsed.map_err(D::Error::custom)?))
    }

    pub trait FromList<T> {
        fn from_list(list: Vec<T>) -> Self;
    }

    impl<T> FromList<T> for Vec<T> {
        fn from_list(list: Vec<T>) -> Vec<T> {
            list
        }
    }

    impl<T> FromList<T> for Option<T> {
        fn from_list(list: Vec<T>) -> Option<T> {
            list.into_iter().next()
        }
    }
}

/// A path in a vault.
pub(crate) mod path {
    use super::*;

    pub fn serialize<S: Serializer>(path: &VaultPath, to: S) -> Result<S::Ok, S::Error> {
        bytes::serialize(path.as_bytes(), to)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<VaultPath, D::Error> {
        VaultPath::parse(&bytes::deserialize(from)?).map_err(D::Error::custom)
    }
}

/// All changes of a report.
pub(crate) mod change_set {
    use super::*;

    #[derive(Serialize, Deserialize)]
    struct Stored {
        listed: Vec<StoredChange>,
        total: u64,
        truncated: bool,
    }

    pub fn serialize<S: Serializer>(set: &ChangeSet, to: S) -> Result<S::Ok, S::Error> {
        let stored = Stored {
            listed: set.listed.iter().map(StoredChange::from).collect(),
            total: set.total,
            truncated: set.is_truncated(),
        };
        stored.serialize(to)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<ChangeSet, D::Error> {
        let stored = Stored::deserialize(from)?;
        let listed = stored.listed.into_iter().map(Change::from).collect();
        Ok(ChangeSet::read(listed, stored.total, stored.truncated))
    }
}

/// A list of changes that may be missing.
pub(crate) mod changes {
    use super::*;

    pub fn serialize<S: Serializer>(list: &Option<Vec<Change>>, to: S) -> Result<S::Ok, S::Error> {
        let stored = list.as_ref();
        let stored = stored.map(|list| list.iter().map(StoredChange::from).collect::<Vec<_>>());
        stored.serialize(to)
    }

    pub fn deserialize<'de, D>(from: D) -> Result<Option<Vec<Change>>, D::Error>
    where
        D: Deserializer<'de>,
    {
        let stored = Option::<Vec<StoredChange>>::deserialize(from)?;
        Ok(stored.map(|list| list.into_iter().map(Change::from).collect()))
    }
}

#[derive(Serialize, Deserialize)]
struct StoredChange {
    #[serde(with = "path")]
    path: VaultPath,
    kind: StoredKind,
    before: Option<StoredEntry>,
    after: Option<StoredEntry>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum StoredKind {
    Created,
    Deleted,
    Modified,
    Mode,
    Xattrs,
    Times,
    Renamed(#[serde(with = "path")] VaultPath),
}

/// What a report tells of an entry: not its attributes, nor what is in a directory.
#[derive(Serialize, Deserialize)]
struct StoredEntry {
    mode: u32,
    uid: u32,
    gid: u32,
    mtime: (i64, u32),
    ctime: (i64, u32),
    #[serde(flatten)]
    body: StoredBody,
}

#[derive(Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum StoredBody {
    File {
        #[serde(with = "text")]
        content: ObjectId,
        /// Whether that is a list of chunks.
        chunks: bool,
        size: u64,
    },
    Directory {
        files: u64,
        bytes: u64,
    },
    Symlink {
        #[serde(with = "bytes")]
        target: Vec<u8>,
    },
    Fifo,
}

impl From<&Change> for StoredChange {
    fn from(change: &Change) -> StoredChange {
        StoredChange {
            path: change.path.clone(),
            kind: match &change.kind {
                ChangeKind::Created => StoredKind::Created,
                ChangeKind::Deleted => StoredKind::Deleted,
                ChangeKind::Modified => StoredKind::Modified,
                ChangeKind::Mode => StoredKind::Mode,
                ChangeKind::Xattrs => StoredKind::Xattrs,
                ChangeKind::Times => StoredKind::Times,
                ChangeKind::Renamed { from } => StoredKind::Renamed(from.clone()),
            },
            before: change.before.as_ref().map(StoredEntry::from),
            after: change.after.as_ref().map(StoredEntry::from),
        }
    }
}

impl From<StoredChange> for Change {
    fn from(stored: StoredChange) -> Change {
        Change {
            path: stored.path,
            kind: match stored.kind {
                StoredKind::Created => ChangeKind::Created,
                StoredKind::Deleted => ChangeKind::Deleted,
                StoredKind::Modified => ChangeKind::Modified,
                StoredKind::Mode => ChangeKind::Mode,
                StoredKind::Xattrs => ChangeKind::Xattrs,
                StoredKind::Times => ChangeKind::Times,
                StoredKind::Renamed(from) => ChangeKind::Renamed { from },
            },
            before: stored.before.map(Entry::from),
            after: stored.after.map(Entry::from),
        }
    }
}

impl From<&Entry> for StoredEntry {
    fn from(entry: &Entry) -> StoredEntry {
        let time = |time: Time| (time.secs, time.nanos);
        let Meta {
            mode,
            uid,
            gid,
            mtime,
            ctime,
            ..
        } = entry.meta;
        StoredEntry {
            mode,
            uid,
            gid,
            mtime: time(mtime),
            ctime: time(ctime),
            body: match &entry.kind {
                Kind::File { content, size, .. } => {
                    let (content, chunks) = match *content {
                        Content::Object(id) => (id, false),
                        Content::Chunks(id) => (id, true),
                    };
                    let size = *size;
                    StoredBody::File {
                        content,
                        chunks,
                        size,
                    }
                }
                Kind::Directory { files, bytes, .. } => StoredBody::Directory {
                    files: *files,
                    bytes: *bytes,
                },
                Kind::Symlink { target } => StoredBody::Symlink {
                    target: target.clone(),
                },
                Kind::Fifo => StoredBody::Fifo,
            },
        }
    }
}

impl From<StoredEntry> for Entry {
    fn from(stored: StoredEntry) -> Entry {
        let time = |(secs, nanos)| Time { secs, nanos };
        let mut meta = Meta::new(stored.mode, time(stored.mtime));
        (meta.uid, meta.gid) = (stored.uid, stored.gid);
        meta.ctime = time(stored.ctime);
        let kind = match stored.body {
            StoredBody::File {
                content,
                chunks,
                size,
            } => Kind::File {
                content: match chunks {
                    true => Content::Chunks(content),
                    false => Content::Object(content),
                },
                size,
                link: None,
            },
            StoredBody::Directory { files, bytes } => Kind::Directory {
                tree: TreeId::EMPTY,
                files,
                bytes,
            },
            StoredBody::Symlink { target } => Kind::Symlink { target },
            StoredBody::Fifo => Kind::Fifo,
        };
        Entry { kind, meta }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Serialize, Deserialize)]
    struct Kept {
        #[serde(with = "change_set")]
        changes: ChangeSet,
        #[serde(with = "words")]
        words: Vec<Vec<u8>>,
    }

    fn entry(kind: Kind) -> Entry {
        let mut meta = Meta::new(0o4755, Time { secs: -5, nanos: 7 });
        (meta.uid, meta.gid) = (1000, 1001);
        Entry { kind, meta }
    }

    /// Every kind of change and entry, with names that are no text.
    #[test]
    fn what_is_written_down_is_read_again() {
        let at = |path: &[u8]| VaultPath::parse(path).unwrap();
        let id = ObjectId::of(b"content");
        let content = [Content::Object(id), Content::Chunks(id)];
        let files = content.map(|content| Kind::File {
            content,
            size: u64::MAX,
            link: None,
        });
        let [whole, chunks] = files.map(entry);
        let link = entry(Kind::Symlink {
            target: b"\xff/..".to_vec(),
        });
        let directory = entry(Kind::Directory {
            tree: TreeId::EMPTY,
            files: 3,
            bytes: 4,
        });
        let from = at(b"/b\xfe\"\n");
        let listed = vec![
            (ChangeKind::Created, None, Some(whole.clone())),
            (ChangeKind::Deleted, Some(chunks.clone()), None),
            (ChangeKind::Modified, Some(link), Some(entry(Kind::Fifo))),
            (ChangeKind::Mode, Some(directory.clone()), Some(directory)),
            (ChangeKind::Xattrs, Some(whole.clone()), Some(whole.clone())),
            (ChangeKind::Times, Some(chunks.clone()), Some(chunks)),
            (
                ChangeKind::Renamed { from },
                Some(whole.clone()),
                Some(whole),
            ),
        ];
        let listed = listed.into_iter().map(|(kind, before, after)| Change {
            path: at(b"/a\xff\xfe"),
            kind,
            before,
            after,
        });
        let kept = Kept {
            changes: ChangeSet::read(listed.collect(), 9, true),
            words: vec![b"plain".to_vec(), b"\xffnot".to_vec(), Vec::new()],
        };
        let json = serde_json::to_string(&kept).unwrap();
        let read: Kept = serde_json::from_str(&json).unwrap();
        assert_eq!(read.changes.listed, kept.changes.listed);
        assert_eq!((read.changes.total, read.changes.is_truncated()), (9, true));
        assert_eq!(read.words, kept.words);
    }

    #[test]
    fn what_no_path_can_be_is_refused() {
        let kept = r#"{"changes":{"listed":[{"path":"/a/../b","kind":"created"}],"total":1,"truncated":false},"words":[]}"#;
        assert!(serde_json::from_str::<Kept>(kept).is_err());
        let relative = kept.replace("/a/../b", "a");
        assert!(serde_json::from_str::<Kept>(&relative).is_err());
        let plain = kept.replace("/a/../b", "/a/b");
        assert!(serde_json::from_str::<Kept>(&plain).is_ok());
    }
}
