//! The bytes of nodes, roots, link indexes and part lists: an envelope of two bytes, what it is
//! and which version, then postcard. Decoding trusts nothing: `None` means damaged or unknown.

use std::collections::{BTreeMap, BTreeSet};

use avfs_store::ObjectId;
use serde::{Deserialize, Serialize};

use super::node::{Child, Flags, Item, Node, Summary};
use super::parts::Part;
use crate::terms::path::is_valid_name;
use crate::{Content, Entry, Kind, LinkId, Meta, Time, TreeId, VaultPath};

const VERSION: u8 = 1;
const NODE: u8 = b't';
const ROOT: u8 = b'r';
const LINKS: u8 = b'l';
const PARTS: u8 = b'c';
/// Of a part list that has holes or other lists in it. One of chunks alone is of version 1.
const PARTS_VERSION: u8 = 2;

/// A root as it is stored; its link index is an object of its own, so that it is written only
/// when it changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RootRecord {
    pub top: Entry,
    pub has_xattrs: bool,
    pub links: Option<ObjectId>,
}

pub type LinkMap = BTreeMap<LinkId, BTreeSet<VaultPath>>;

#[derive(Serialize, Deserialize)]
enum WireNode<'a> {
    #[serde(borrow)]
    Leaf(Vec<WireItem<'a>>),
    Branch(u8, #[serde(borrow)] Vec<WireChild<'a>>),
}

#[derive(Serialize, Deserialize)]
struct WireChild<'a> {
    last: &'a [u8],
    id: &'a [u8],
    entries: u64,
    files: u64,
    bytes: u64,
    flags: u8,
}

#[derive(Serialize, Deserialize)]
struct WireItem<'a> {
    name: &'a [u8],
    #[serde(borrow)]
    kind: WireKind<'a>,
    mode: u32,
    uid: u32,
    gid: u32,
    mtime: (i64, u32),
    ctime: (i64, u32),
    xattrs: Vec<(&'a [u8], &'a [u8])>,
}

#[derive(Serialize, Deserialize)]
enum WireKind<'a> {
    Object {
        id: &'a [u8],
        size: u64,
        link: Option<&'a [u8]>,
    },
    Chunks {
        id: &'a [u8],
        size: u64,
        link: Option<&'a [u8]>,
    },
    Directory {
        tree: &'a [u8],
        files: u64,
        bytes: u64,
        beneath: u8,
    },
    Symlink {
        target: &'a [u8],
    },
    Fifo,
}

#[derive(Serialize, Deserialize)]
struct WireRoot<'a> {
    #[serde(borrow)]
    top: WireItem<'a>,
    has_xattrs: bool,
    links: Option<&'a [u8]>,
}

#[derive(Serialize, Deserialize)]
enum WirePart<'a> {
    Chunk(&'a [u8], u64),
    Hole(u64),
    List(&'a [u8], u64, u64),
}

fn seal(kind: u8, value: &impl Serialize) -> Vec<u8> {
    seal_as(kind, VERSION, value)
}

fn seal_as(kind: u8, version: u8, value: &impl Serialize) -> Vec<u8> {
    let bytes = vec![kind, version];
    postcard::to_extend(value, bytes).expect("these types serialise into memory without fail")
}

fn unseal<'a, T: Deserialize<'a>>(kind: u8, bytes: &'a [u8]) -> Option<T> {
    unseal_as(kind, VERSION, bytes)
}

fn unseal_as<'a, T: Deserialize<'a>>(kind: u8, version: u8, bytes: &'a [u8]) -> Option<T> {
    let body = bytes.strip_prefix(&[kind, version])?;
    match postcard::take_from_bytes(body) {
        Ok((value, [])) => Some(value),
        Ok(_) | Err(_) => None,
    }
}

pub fn encode_node(node: &Node) -> Vec<u8> {
    let wire = match node {
        Node::Leaf(items) => WireNode::Leaf(items.iter().map(wire_item).collect()),
        Node::Branch { level, children } => {
            WireNode::Branch(*level, children.iter().map(wire_child).collect())
        }
    };
    seal(NODE, &wire)
}

pub fn decode_node(bytes: &[u8]) -> Option<Node> {
    match unseal(NODE, bytes)? {
        WireNode::Leaf(wire) => {
            let mut items: Vec<Item> = wire.iter().map(item).collect::<Option<_>>()?;
            share_xattrs(&mut items);
            let valid = items.iter().all(|item| is_valid_name(&item.name));
            (valid && items.is_sorted_by(|a, b| a.name < b.name)).then_some(Node::Leaf(items))
        }
        WireNode::Branch(level, wire) => {
            let children: Vec<Child> = wire.iter().map(child).collect::<Option<_>>()?;
            let valid = level > 0 && !children.is_empty();
            (valid && children.is_sorted_by(|a, b| a.last < b.last))
                .then_some(Node::Branch { level, children })
        }
    }
}

/// The names of one file have the same attributes, and often stand beside each other.
fn share_xattrs(items: &mut [Item]) {
    for at in 1..items.len() {
        let (before, rest) = items.split_at_mut(at);
        let known = &before[at - 1].entry.meta.xattrs;
        rest[0].entry.meta.xattrs.share(known);
    }
}

pub fn encode_root(root: &RootRecord, beneath: Flags) -> Vec<u8> {
    let top = Item {
        name: Vec::new(),
        entry: root.top.clone(),
        beneath,
    };
    let links = root.links.as_ref().map(|id| &id.as_bytes()[..]);
    seal(
        ROOT,
        &WireRoot {
            top: wire_item(&top),
            has_xattrs: root.has_xattrs,
            links,
        },
    )
}

pub fn decode_root(bytes: &[u8]) -> Option<RootRecord> {
    let wire: WireRoot<'_> = unseal(ROOT, bytes)?;
    let top = item(&wire.top)?.entry;
    let links = wire
        .links
        .map(object_id)
        .map_or(Some(None), |id| id.map(Some))?;
    top.is_dir().then_some(RootRecord {
        top,
        has_xattrs: wire.has_xattrs,
        links,
    })
}

pub fn encode_links(links: &LinkMap) -> Vec<u8> {
    let wire: Vec<(&[u8], Vec<&[u8]>)> = links
        .iter()
        .map(|(id, paths)| {
            (
                &id.as_bytes()[..],
                paths.iter().map(VaultPath::as_bytes).collect(),
            )
        })
        .collect();
    seal(LINKS, &wire)
}

pub fn decode_links(bytes: &[u8]) -> Option<LinkMap> {
    let wire: Vec<(&[u8], Vec<&[u8]>)> = unseal(LINKS, bytes)?;
    let group = |(id, paths): (&[u8], Vec<&[u8]>)| {
        let paths = paths
            .into_iter()
            .map(VaultPath::from_stored)
            .collect::<Option<_>>()?;
        Some((link_id(id)?, paths))
    };
    wire.into_iter().map(group).collect()
}

pub fn encode_parts(parts: &[Part]) -> Vec<u8> {
    let chunk = |part: &Part| match part {
        Part::Chunk { id, length } => Some((*id, *length)),
        Part::Hole { .. } | Part::List { .. } => None,
    };
    if let Some(chunks) = parts.iter().map(chunk).collect::<Option<Vec<_>>>() {
        let wire = chunks
            .iter()
            .map(|(id, length)| (&id.as_bytes()[..], *length));
        return seal(PARTS, &wire.collect::<Vec<(&[u8], u64)>>());
    }
    let wire: Vec<WirePart<'_>> = parts
        .iter()
        .map(|part| match part {
            Part::Chunk { id, length } => WirePart::Chunk(id.as_bytes(), *length),
            Part::Hole { length } => WirePart::Hole(*length),
            Part::List { id, length, data } => WirePart::List(id.as_bytes(), *length, *data),
        })
        .collect();
    seal_as(PARTS, PARTS_VERSION, &wire)
}

pub fn decode_parts(bytes: &[u8]) -> Option<Vec<Part>> {
    let wire = match bytes.get(1) {
        Some(&PARTS_VERSION) => unseal_as(PARTS, PARTS_VERSION, bytes)?,
        _ => unseal::<Vec<(&[u8], u64)>>(PARTS, bytes)?
            .into_iter()
            .map(|(id, length)| WirePart::Chunk(id, length))
            .collect::<Vec<_>>(),
    };
    let parts = wire.into_iter().map(|part| {
        Some(match part {
            WirePart::Chunk(id, length) => Part::Chunk {
                id: object_id(id)?,
                length,
            },
            WirePart::Hole(length) => Part::Hole { length },
            WirePart::List(id, length, data) => Part::List {
                id: object_id(id)?,
                length,
                data: (data <= length).then_some(data)?,
            },
        })
    });
    let parts: Vec<Part> = parts.collect::<Option<_>>()?;
    let mut total = 0_u64;
    for part in &parts {
        total = total.checked_add(part.length())?;
    }
    let valid = parts.iter().all(|part| part.length() > 0);
    valid.then_some(parts)
}

fn wire_item(item: &Item) -> WireItem<'_> {
    let meta = &item.entry.meta;
    WireItem {
        name: &item.name,
        kind: wire_kind(&item.entry.kind, item.beneath),
        mode: meta.mode,
        uid: meta.uid,
        gid: meta.gid,
        mtime: (meta.mtime.secs, meta.mtime.nanos),
        ctime: (meta.ctime.secs, meta.ctime.nanos),
        xattrs: meta.xattrs.iter().collect(),
    }
}

fn wire_kind(kind: &Kind, beneath: Flags) -> WireKind<'_> {
    match kind {
        Kind::File {
            content,
            size,
            link,
        } => {
            let (size, link) = (*size, link.as_ref().map(|link| &link.as_bytes()[..]));
            match content {
                Content::Object(id) => WireKind::Object {
                    id: id.as_bytes(),
                    size,
                    link,
                },
                Content::Chunks(id) => WireKind::Chunks {
                    id: id.as_bytes(),
                    size,
                    link,
                },
            }
        }
        Kind::Directory { tree, files, bytes } => WireKind::Directory {
            tree: tree.object_bytes(),
            files: *files,
            bytes: *bytes,
            beneath: beneath.bits(),
        },
        Kind::Symlink { target } => WireKind::Symlink { target },
        Kind::Fifo => WireKind::Fifo,
    }
}

fn item(wire: &WireItem<'_>) -> Option<Item> {
    let mut beneath = Flags::default();
    let optional_link = |link: Option<&[u8]>| match link {
        Some(bytes) => link_id(bytes).map(Some),
        None => Some(None),
    };
    let kind = match wire.kind {
        WireKind::Object { id, size, link } => {
            let content = Content::Object(object_id(id)?);
            Kind::File {
                content,
                size,
                link: optional_link(link)?,
            }
        }
        WireKind::Chunks { id, size, link } => {
            let content = Content::Chunks(object_id(id)?);
            Kind::File {
                content,
                size,
                link: optional_link(link)?,
            }
        }
        WireKind::Directory {
            tree,
            files,
            bytes,
            beneath: bits,
        } => {
            beneath = Flags::from_bits(bits)?;
            Kind::Directory {
                tree: TreeId::new(object_id(tree)?),
                files,
                bytes,
            }
        }
        WireKind::Symlink { target } => Kind::Symlink {
            target: target.to_vec(),
        },
        WireKind::Fifo => Kind::Fifo,
    };
    let time = |(secs, nanos)| Time { secs, nanos };
    let meta = Meta {
        mode: wire.mode,
        uid: wire.uid,
        gid: wire.gid,
        mtime: time(wire.mtime),
        ctime: time(wire.ctime),
        xattrs: wire.xattrs.iter().copied().collect(),
    };
    Some(Item {
        name: wire.name.to_vec(),
        entry: Entry { kind, meta },
        beneath,
    })
}

fn wire_child(child: &Child) -> WireChild<'_> {
    WireChild {
        last: &child.last,
        id: child.id.as_bytes(),
        entries: child.summary.entries,
        files: child.summary.files,
        bytes: child.summary.bytes,
        flags: child.summary.flags.bits(),
    }
}

fn child(wire: &WireChild<'_>) -> Option<Child> {
    let flags = Flags::from_bits(wire.flags)?;
    let (entries, files, bytes) = (wire.entries, wire.files, wire.bytes);
    let summary = Summary {
        entries,
        files,
        bytes,
        flags,
    };
    Some(Child {
        last: wire.last.to_vec(),
        id: object_id(wire.id)?,
        summary,
    })
}

fn object_id(bytes: &[u8]) -> Option<ObjectId> {
    bytes.try_into().ok().map(ObjectId::from_bytes)
}

fn link_id(bytes: &[u8]) -> Option<LinkId> {
    bytes.try_into().ok().map(LinkId::from_bytes)
}

#[cfg(test)]
mod tests;
