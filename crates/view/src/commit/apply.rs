//! Applies one entry of a layer to a tree.

use std::collections::HashMap;
use std::sync::Arc;

use avfs_vault::{Edit, Entry, Kind, LinkId, Meta, RootId, VaultPath, XattrMap};

use super::contents::Hashed;
use super::listing::too_much;
use super::work::TooMuch;
use super::{CommitInput, Committed, Skipped, time, vault_path};
use crate::scan::{UNKEPT, UpperEntry, UpperKind};
use crate::{Error, Result};

/// The most skipped names that are listed: a command can make any number of them.
const SKIPPED_MAX: usize = 1_000;

/// What the names of a hard-linked file share.
#[derive(Clone)]
pub(super) struct Shared {
    link: LinkId,
    /// The owner, from the names that the base has; names with different owners could not be one file.
    owner: Option<(u32, u32)>,
    /// The metadata of the file in the base and in the previous commit, as far as one of its names was there. Names whose
    /// metadata differ are not one file, so the time of a copy-up must be kept for all of them or for none.
    known: Arc<[Meta]>,
}

impl Shared {
    /// The metadata of all its names, of which `own` is that of one.
    fn meta(&self, mut own: Meta, input: &CommitInput<'_>) -> Meta {
        let default = (input.owner.uid, input.owner.gid);
        (own.uid, own.gid) = self.owner.unwrap_or(default);
        if let Some(known) = self.known.iter().find(|known| same_meta(known, &own)) {
            own.ctime = known.ctime;
        }
        own
    }
}

/// The most hard-linked names in one commit; the root object lists all of them.
const LINKED_MAX: usize = 500_000;

/// For each entry that `counts` and is a hard link: what its names share.
pub(super) fn link_groups(
    entries: &[UpperEntry],
    input: &CommitInput<'_>,
    base: &Edit,
    counts: impl Fn(usize) -> bool,
) -> Result<HashMap<usize, Shared>> {
    let mut linked = Linked::default();
    for (index, entry) in entries.iter().enumerate() {
        if counts(index) {
            linked.add(index, entry)?;
        }
    }
    linked.groups(input, base)
}

/// Names by the file that they share.
#[derive(Default)]
pub(super) struct Linked {
    by_inode: HashMap<u64, Vec<(VaultPath, usize)>>,
    names: usize,
}

impl Linked {
    /// Adds the entry at `index` of a listing.
    pub fn add(&mut self, index: usize, entry: &UpperEntry) -> Result<()> {
        if !matches!(entry.kind, UpperKind::File { links, .. } if links > 1) {
            return Ok(());
        }
        self.names += 1;
        if self.names > LINKED_MAX {
            let found = self.names as u64;
            return Err(too_much(TooMuch::Links, LINKED_MAX as u64, found));
        }
        if let Some(path) = vault_path(&entry.path) {
            let names = self.by_inode.entry(entry.ino).or_default();
            names.push((path, index));
        }
        Ok(())
    }

    /// For each hard link: what its names share.
    pub fn groups(self, input: &CommitInput<'_>, base: &Edit) -> Result<HashMap<usize, Shared>> {
        let mut links = HashMap::new();
        let names = self.by_inode.into_values();
        for names in names.filter(|names| names.len() > 1) {
            join(names, input, base, &mut links)?;
        }
        Ok(links)
    }
}

/// Records what the names of one file share.
fn join(
    mut names: Vec<(VaultPath, usize)>,
    input: &CommitInput<'_>,
    base: &Edit,
    links: &mut HashMap<usize, Shared>,
) -> Result<()> {
    names.sort();
    let first = &names[0].0;
    let link = match base.get(first)?.and_then(|entry| entry.link()) {
        // If the names are those of the base, the link id of the base is kept.
        Some(link)
            if base
                .linked_names(first)?
                .iter()
                .eq(names.iter().map(|(path, _)| path)) =>
        {
            link
        }
        _ => base.fresh_link(first),
    };
    let mut owner = None;
    for (name, _) in &names {
        let known = base
            .get(name)?
            .map(|entry| (entry.meta.uid, entry.meta.gid));
        owner = owner.or(known);
    }
    let roots = match input.last_commit == input.base {
        true => vec![input.base],
        false => vec![input.base, input.last_commit],
    };
    let mut known = Vec::new();
    for root in roots {
        known.extend(first_file(input, root, &names)?.map(|entry| entry.meta));
    }
    let shared = Shared {
        link,
        owner,
        known: known.into(),
    };
    links.extend(names.into_iter().map(|(_, index)| (index, shared.clone())));
    Ok(())
}

/// What is at the first of these names that is a file there.
fn first_file(
    input: &CommitInput<'_>,
    root: RootId,
    names: &[(VaultPath, usize)],
) -> Result<Option<Entry>> {
    for (name, _) in names {
        let entry = input.trees.entry(root, name)?;
        if let Some(entry) = entry.filter(|entry| matches!(entry.kind, Kind::File { .. })) {
            return Ok(Some(entry));
        }
    }
    Ok(None)
}

pub(super) struct Applied<'a> {
    input: &'a CommitInput<'a>,
    edit: Edit,
    /// For directories at or below a redirected one: their path in the base.
    origins: HashMap<VaultPath, VaultPath>,
    pub skipped: Vec<Skipped>,
}

impl<'a> Applied<'a> {
    pub fn new(input: &'a CommitInput<'a>, edit: Edit) -> Applied<'a> {
        Applied {
            input,
            edit,
            origins: HashMap::new(),
            skipped: Vec::new(),
        }
    }

    pub fn finish(self, entries: usize) -> Result<Committed> {
        Ok(Committed {
            root: self.edit.finish()?,
            entries,
            skipped: self.skipped,
        })
    }

    /// Stores the edits so far, to free their memory.
    pub fn store(&mut self) -> Result<()> {
        let empty = self.input.trees.edit(self.input.base)?;
        let root = std::mem::replace(&mut self.edit, empty).finish()?;
        self.edit = self.input.trees.edit(root)?;
        Ok(())
    }

    /// Applies an entry; a `doubtful` one may have no parent directory.
    pub fn apply_or_skip(
        &mut self,
        upper: &UpperEntry,
        content: Hashed,
        shared: Option<Shared>,
        doubtful: bool,
    ) -> Result<()> {
        match self.apply(upper, content, shared) {
            Err(error) if doubtful && error.is_without_place() => {
                self.skip(upper, "its directory is gone");
                Ok(())
            }
            done => done,
        }
    }

    /// The base's entry at `path`, unless an opaque directory above hides it.
    fn below(&self, path: &VaultPath, is_hidden: bool) -> Result<Option<Entry>> {
        if is_hidden {
            return Ok(None);
        }
        Ok(self.input.trees.entry(self.input.base, path)?)
    }

    /// The entry of the previous commit at `path`, if that may differ from the base's.
    fn before(&self, path: &VaultPath) -> Result<Option<Entry>> {
        match self.input.last_commit == self.input.base {
            true => Ok(None),
            false => Ok(self.input.trees.entry(self.input.last_commit, path)?),
        }
    }

    /// Applies the metadata of a directory, unless the previous commit had the same.
    fn new_meta(&self, path: &VaultPath, meta: Meta) -> Result<Meta> {
        let before = self.before(path)?.filter(Entry::is_dir);
        Ok(match before {
            Some(before) if same_meta(&before.meta, &meta) => before.meta,
            _ => meta,
        })
    }

    /// Restores the base's entry at `upper`, in place of what an earlier commit put there.
    pub fn reset(&mut self, upper: &[u8], is_hidden: bool) -> Result<()> {
        let Some(path) = vault_path(upper) else {
            return Ok(());
        };
        match self.below(&path, is_hidden)? {
            Some(entry) => self.edit.put(&path, entry)?,
            None if self.edit.get(&path)?.is_some() => self.edit.remove(&path)?,
            None => {}
        }
        Ok(())
    }

    /// Copies the metadata of a directory that is otherwise unchanged.
    pub fn touch(&mut self, upper: &UpperEntry, is_hidden: bool) -> Result<()> {
        let Some(path) = vault_path(&upper.path) else {
            return Ok(());
        };
        let below = self.below(&path, is_hidden)?;
        let meta = self.meta(upper, &path, below.as_ref())?;
        let merges = !matches!(upper.kind, UpperKind::Directory { opaque: true, .. });
        let meta = match below {
            Some(below) if merges && below.is_dir() && same_meta(&below.meta, &meta) => below.meta,
            _ => self.new_meta(&path, meta)?,
        };
        Ok(self.edit.set_meta(&path, meta)?)
    }

    /// Applies an entry.
    pub fn apply(
        &mut self,
        upper: &UpperEntry,
        content: Hashed,
        shared: Option<Shared>,
    ) -> Result<()> {
        let Some(path) = vault_path(&upper.path) else {
            self.skip(upper, "its path is too long");
            return Ok(());
        };
        self.report_unkept(upper);
        if upper.xattrs_lost {
            let reason = "its extended attributes are too large and were left out";
            self.skip(upper, reason);
        }
        let existing = self.edit.get(&path)?;
        let kind = match &upper.kind {
            UpperKind::Whiteout => {
                if existing.is_some() {
                    self.edit.remove(&path)?;
                }
                return Ok(());
            }
            UpperKind::Directory { opaque, redirect } => {
                return self.directory(upper, path, existing, *opaque, redirect.as_deref());
            }
            UpperKind::File { .. } => match content {
                Some((content, size)) => Kind::File {
                    content,
                    size,
                    link: shared.as_ref().map(|shared| shared.link),
                },
                None => return Ok(()),
            },
            UpperKind::Symlink { target } => Kind::Symlink {
                target: target.clone(),
            },
            UpperKind::Fifo => Kind::Fifo,
            UpperKind::Socket => {
                self.skip(upper, "sockets are not stored");
                return Ok(());
            }
            UpperKind::Device => {
                self.skip(upper, "devices are not stored");
                return Ok(());
            }
        };
        let meta = self.meta(upper, &path, existing.as_ref())?;
        let entry = match shared {
            Some(shared) => Entry {
                kind,
                meta: shared.meta(meta, self.input),
            },
            None => {
                let entry = same_or(existing.as_ref(), Entry { kind, meta });
                match existing.as_ref() == Some(&entry) {
                    true => entry,
                    false => same_or(self.before(&path)?.as_ref(), entry),
                }
            }
        };
        if existing.as_ref() == Some(&entry) {
            return Ok(());
        }
        Ok(self.edit.put(&path, entry)?)
    }

    fn directory(
        &mut self,
        upper: &UpperEntry,
        path: VaultPath,
        existing: Option<Entry>,
        opaque: bool,
        redirect: Option<&[u8]>,
    ) -> Result<()> {
        let parent_origin = path.parent().map(|parent| self.origin(&parent));
        if let Some(redirect) = redirect {
            let origin = redirect_origin(parent_origin.as_ref(), redirect)?;
            self.origins.insert(path.clone(), origin.clone());
            let moved = self.input.trees.entry(self.input.base, &origin)?;
            let Some(moved) = moved.filter(Entry::is_dir) else {
                let mut skeleton = self.input.skeleton.iter();
                // The renamed directory was a mount point of the skeleton: empty, and not in the vault.
                return match skeleton.any(|path| path.starts_with(&origin)) {
                    true => self.empty_directory(upper, &path, existing.as_ref()),
                    false => Err(Error::LostRedirect {
                        origin: origin.to_string(),
                    }),
                };
            };
            let meta = self.meta(upper, &path, Some(&moved))?;
            let meta = match same_meta(&moved.meta, &meta) {
                true => moved.meta,
                false => self.new_meta(&path, meta)?,
            };
            let kind = moved.kind;
            return Ok(self.edit.put(&path, Entry { kind, meta })?);
        }
        if let (Some(name), Some(origin)) = (path.file_name(), parent_origin) {
            let own = origin.join(name)?;
            if own != path {
                self.origins.insert(path.clone(), own);
            }
        }
        match existing {
            Some(existing) if existing.is_dir() && !opaque => {
                let meta = self.meta(upper, &path, Some(&existing))?;
                if !same_meta(&existing.meta, &meta) {
                    let meta = self.new_meta(&path, meta)?;
                    self.edit.set_meta(&path, meta)?;
                }
            }
            existing => self.empty_directory(upper, &path, existing.as_ref())?,
        }
        Ok(())
    }

    fn empty_directory(
        &mut self,
        upper: &UpperEntry,
        path: &VaultPath,
        existing: Option<&Entry>,
    ) -> Result<()> {
        let meta = self.meta(upper, path, existing)?;
        let meta = self.new_meta(path, meta)?;
        let kind = Entry::directory(meta.mode, meta.mtime).kind;
        Ok(self.edit.put(path, Entry { kind, meta })?)
    }

    fn origin(&self, path: &VaultPath) -> VaultPath {
        self.origins.get(path).unwrap_or(path).clone()
    }

    /// Views show every owner as the sandbox's user, so a commit cannot know a changed owner.
    fn meta(&self, upper: &UpperEntry, path: &VaultPath, existing: Option<&Entry>) -> Result<Meta> {
        let before = match existing {
            Some(_) => None,
            None => self.before(path)?,
        };
        let (uid, gid) = match existing.or(before.as_ref()) {
            Some(entry) => (entry.meta.uid, entry.meta.gid),
            None => (self.input.owner.uid, self.input.owner.gid),
        };
        Ok(Meta {
            mode: upper.mode,
            uid,
            gid,
            mtime: time(upper.mtime),
            ctime: time(upper.ctime),
            xattrs: kept(&upper.xattrs),
        })
    }

    /// Reports a file with attributes that its entry cannot have.
    fn report_unkept(&mut self, upper: &UpperEntry) {
        if has_unkept(upper) {
            self.skip(upper, "its attributes named user.overlay.* are not stored");
        }
    }

    pub fn skip(&mut self, upper: &UpperEntry, reason: &'static str) {
        let (path, reason) = match self.skipped.len() {
            ..SKIPPED_MAX => (upper.path.as_slice(), reason),
            SKIPPED_MAX => (&b""[..], "more was skipped than is listed here"),
            _ => return,
        };
        let path = [b"/", path].concat();
        self.skipped.push(Skipped { path, reason });
    }
}

/// Whether a file has attributes that no tree stores.
pub(super) fn has_unkept(entry: &UpperEntry) -> bool {
    entry.xattrs.keys().any(is_unkept)
}

/// The attributes that a tree stores.
fn kept(xattrs: &XattrMap) -> XattrMap {
    match xattrs.keys().any(is_unkept) {
        true => xattrs.iter().filter(|(name, _)| !is_unkept(name)).collect(),
        false => xattrs.clone(),
    }
}

fn is_unkept(attribute: &[u8]) -> bool {
    attribute.starts_with(UNKEPT)
}

/// The base's path of a renamed directory: a redirect is either a path from the top, or a name in the directory that
/// the parent was redirected from.
fn redirect_origin(parent: Option<&VaultPath>, redirect: &[u8]) -> Result<VaultPath> {
    if redirect.starts_with(b"/") {
        return Ok(VaultPath::parse(redirect)?);
    }
    Ok(parent.unwrap_or(&VaultPath::root()).join(redirect)?)
}

/// The existing entry, if the new one differs from it only by the time of the copy-up.
fn same_or(existing: Option<&Entry>, new: Entry) -> Entry {
    match existing {
        Some(old) if old.kind == new.kind && same_meta(&old.meta, &new.meta) => old.clone(),
        _ => new,
    }
}

fn same_meta(old: &Meta, new: &Meta) -> bool {
    old.mode == new.mode && old.mtime == new.mtime && old.xattrs == new.xattrs
}
