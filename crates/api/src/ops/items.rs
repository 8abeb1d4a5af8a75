//! Conversions from the runtime's types to the API's.

use crate::wire::{
    Base64, ChangeItem, ChangeWord, CheckpointItem, EntryAttributes, EntryItem, FreezeItem,
    IgnoredChanges, ListedEntry, PathVersionItem, SkippedItem, TreeEntry, TypeWord, VaultItem,
    VersionItem, human_size, to_text,
};
use avfs_runtime::{
    Change, ChangeKind, CheckpointInfo, CheckpointOrigin, Content, Entry, Freeze, Ignored, Kind,
    Listed, Patch, PathVersion, Skipped, Stillness, Time, TreeNode, VaultInfo, VaultPath,
    VaultVersion,
};

/// The storage engine, under the name that other tools use.
pub(crate) const BACKEND: &str = "sqlite";

/// RFC 3339 in UTC; a time outside of the calendar is written as seconds since 1970.
pub(crate) fn time(time: Time) -> String {
    let nanos = i32::try_from(time.nanos).unwrap_or(0);
    match jiff::Timestamp::new(time.secs, nanos) {
        Ok(stamp) => stamp.to_string(),
        Err(_) => time.secs.to_string(),
    }
}

pub(crate) fn path(path: &VaultPath) -> (String, Option<Base64>) {
    to_text(path.as_bytes().to_vec())
}

pub(crate) fn vault(info: &VaultInfo) -> VaultItem {
    let vault = &info.vault;
    VaultItem {
        name: vault.name.to_string(),
        current: info.current,
        size: info.bytes,
        backend: BACKEND.into(),
        id: vault.id.to_string(),
        files: info.files,
        checkpoints: info.checkpoints,
        version: vault.version,
        parent: vault.parent.as_ref().map(|parent| parent.name.to_string()),
        created_at: time(vault.created),
        made_by: vault.made_by.to_string(),
        damaged: info.damaged.is_some(),
        damage: info.damaged.clone(),
    }
}

pub(crate) fn version(described: &VaultVersion) -> VersionItem {
    let version = &described.version;
    let root = version.root.to_string();
    VersionItem {
        version: version.number,
        size: described.bytes,
        files: described.files,
        created_at: time(version.time),
        hash: root.chars().take(16).collect(),
        root,
        cause: version.cause.to_string(),
        by: version.by.to_string(),
        exec: version.exec.as_ref().map(ToString::to_string),
        damage: described.damaged.clone(),
    }
}

pub(crate) fn path_version(changed: &PathVersion) -> PathVersionItem {
    let version = &changed.version;
    let entry = changed.entry.as_ref();
    let id = match entry.map(|entry| &entry.kind) {
        Some(Kind::File { content, .. }) => {
            let (Content::Object(id) | Content::Chunks(id)) = content;
            id.to_string()
        }
        Some(Kind::Directory { tree, .. }) => tree.to_string(),
        Some(Kind::Symlink { .. } | Kind::Fifo) | None => String::new(),
    };
    PathVersionItem {
        version: version.number,
        size: entry.map_or(0, |it| self::entry(it).size),
        created_at: time(version.time),
        hash: id.chars().take(16).collect(),
        removed: entry.is_none(),
        cause: version.cause.to_string(),
        by: version.by.to_string(),
        exec: version.exec.as_ref().map(ToString::to_string),
    }
}

pub(crate) fn checkpoint(info: &CheckpointInfo) -> CheckpointItem {
    let checkpoint = &info.checkpoint;
    let origin = match checkpoint.origin {
        CheckpointOrigin::Asked => "asked",
        CheckpointOrigin::Automatic => "automatic",
        CheckpointOrigin::BeforeRestore => "before_restore",
    };
    CheckpointItem {
        name: checkpoint.name.to_string(),
        description: checkpoint
            .description
            .as_ref()
            .map(|said| said.as_str().to_owned()),
        created_at: time(checkpoint.time),
        root: checkpoint.root.to_string(),
        origin: origin.into(),
        by: checkpoint.by.to_string(),
        file_count: info.files,
        total_size: info.bytes,
        total_size_human: human_size(info.bytes),
        used_bytes: info.used,
        referenced_bytes: info.bytes,
        damage: info.damaged.clone(),
        freeze: None,
    }
}

pub(crate) fn freeze(stillness: Stillness) -> FreezeItem {
    let (method, consistency) = match stillness.method {
        Freeze::SigStop => ("sigstop", "moment"),
        Freeze::None => ("none", "per_file"),
    };
    FreezeItem {
        method: method.into(),
        commands: stillness.commands,
        consistency: consistency.into(),
    }
}

pub(crate) fn listed(listed: Listed) -> ListedEntry {
    let (name, name_b64) = to_text(listed.name);
    ListedEntry {
        name,
        name_b64,
        attributes: attributes(&listed.entry),
    }
}

pub(crate) fn attributes(of: &Entry) -> EntryAttributes {
    let item = entry(of);
    let files = match of.kind {
        Kind::Directory { files, .. } => Some(files),
        _ => None,
    };
    EntryAttributes {
        kind: item.kind,
        size: item.size,
        modified: time(of.meta.mtime),
        mode: item.mode,
        uid: of.meta.uid,
        gid: of.meta.gid,
        files,
        target: item.target,
        target_b64: item.target_b64,
    }
}

pub(crate) fn tree_entry(node: TreeNode) -> TreeEntry {
    let (name, name_b64) = to_text(node.name);
    let item = entry(&node.entry);
    TreeEntry {
        depth: node.depth,
        name,
        name_b64,
        kind: item.kind,
        size: item.size,
        target: item.target,
        target_b64: item.target_b64,
    }
}

pub(crate) fn entry(entry: &Entry) -> EntryItem {
    let mut item = EntryItem {
        kind: TypeWord::Fifo,
        size: 0,
        mode: format!("{:04o}", entry.meta.mode & 0o7777),
        hash: None,
        target: None,
        target_b64: None,
    };
    match &entry.kind {
        Kind::File { size, content, .. } => {
            item.kind = TypeWord::File;
            item.size = *size;
            let (Content::Object(id) | Content::Chunks(id)) = content;
            item.hash = Some(id.to_string());
        }
        Kind::Directory { bytes, .. } => {
            item.kind = TypeWord::Directory;
            item.size = *bytes;
        }
        Kind::Symlink { target } => {
            item.kind = TypeWord::Symlink;
            item.size = target.len() as u64;
            let (target, target_b64) = to_text(target.clone());
            item.target = Some(target);
            item.target_b64 = target_b64;
        }
        Kind::Fifo => {}
    }
    item
}

/// The text of a patch, and whether it ends before the last change.
pub(crate) fn patch(patch: Option<Patch>) -> (Option<String>, bool) {
    match patch {
        Some(patch) => (Some(patch.text), patch.truncated),
        None => (None, false),
    }
}

pub(crate) fn change(change: &Change) -> ChangeItem {
    let (kind, from) = match &change.kind {
        ChangeKind::Created => (ChangeWord::Created, None),
        ChangeKind::Deleted => (ChangeWord::Deleted, None),
        ChangeKind::Modified => (ChangeWord::Modified, None),
        ChangeKind::Mode => (ChangeWord::Mode, None),
        ChangeKind::Xattrs => (ChangeWord::Xattrs, None),
        ChangeKind::Times => (ChangeWord::Times, None),
        ChangeKind::Renamed { from } => (ChangeWord::Renamed, Some(path(from))),
    };
    let (path, path_b64) = path(&change.path);
    let (from, from_b64) = match from {
        Some((text, exact)) => (Some(text), exact),
        None => (None, None),
    };
    ChangeItem {
        path,
        path_b64,
        kind,
        from,
        from_b64,
        before: change.before.as_ref().map(entry),
        after: change.after.as_ref().map(entry),
        additions: None,
        deletions: None,
        binary: None,
    }
}

/// What was counted by directory. Names that are no text may become equal, and are then counted together.
pub(crate) fn ignored(ignored: &Ignored) -> IgnoredChanges {
    let named = ignored.directories.iter();
    let named = named.map(|(directory, counts)| (to_text(directory.clone()).0, counts));
    let other = Some(&ignored.other).filter(|other| other.paths() > 0);
    let other = other.map(|other| ("other".to_owned(), other));
    let mut items = IgnoredChanges::new();
    for (directory, counts) in named.chain(other) {
        let item = items.entry(directory).or_default();
        item.created += counts.created;
        item.modified += counts.modified;
        item.deleted += counts.deleted;
        item.bytes = item.bytes.saturating_add(counts.bytes);
    }
    items
}

pub(crate) fn skipped(skipped: Skipped) -> SkippedItem {
    let (path, path_b64) = to_text(skipped.path);
    SkippedItem {
        path,
        path_b64,
        reason: skipped.reason,
    }
}
