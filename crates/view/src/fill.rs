//! Fills an empty layer with the difference between its base and the root that its commit shall give.
//!
//! The overlay is not mounted yet: the files are made as overlayfs would have left them.

use std::collections::BTreeMap;
use std::fs::File;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use avfs_vault::{Change, Entry, Kind, RootId, Trees, VaultPath};
use rustix::fs::{Mode, OFlags, mkdirat};
use rustix::io::Errno;

use crate::layer::Layer;
use crate::readwrite::host::{self, Io};
use crate::{Error, Owner, Result};

impl Layer {
    /// Writes the difference between base and last commit into a layer that was just drafted. Files are chowned to `owner`, if
    /// that is not the caller. Hard links are not supported.
    pub fn fill(&self, trees: &Trees, changes: &[Change], owner: Option<Owner>) -> Result<()> {
        let filled = Filling::begin(self, trees, owner).and_then(|mut filling| {
            filling.put_all(changes)?;
            filling.finish()
        });
        filled.map_err(|errno| Error::Layer {
            path: self.upper_path(),
            source: errno.into(),
        })
    }
}

struct Filling<'a> {
    trees: &'a Trees,
    root: RootId,
    owner: Option<Owner>,
    /// Directories that the layer has so far; parents come before their entries.
    directories: BTreeMap<VaultPath, Arc<OwnedFd>>,
}

impl<'a> Filling<'a> {
    fn begin(layer: &Layer, trees: &'a Trees, owner: Option<Owner>) -> Io<Filling<'a>> {
        let top = open_directory(layer.upper(), b".")?;
        Ok(Filling {
            trees,
            root: layer.record().last_commit,
            owner,
            directories: BTreeMap::from([(VaultPath::root(), top)]),
        })
    }

    fn put_all(&mut self, changes: &[Change]) -> Io<()> {
        let mut covered: Option<&VaultPath> = None;
        for Change { path, after, .. } in changes {
            // Removing a directory removes everything in it.
            if covered.is_some_and(|above| path.starts_with(above)) {
                continue;
            }
            if !after.as_ref().is_some_and(Entry::is_dir) {
                covered = Some(path);
            }
            self.put(path, after.as_ref())?;
        }
        Ok(())
    }

    fn put(&mut self, path: &VaultPath, entry: Option<&Entry>) -> Io<()> {
        let (Some(above), Some(name)) = (path.parent(), path.file_name()) else {
            return Ok(());
        };
        let parent = self.directory(&above)?;
        let Some(entry) = entry else {
            return host::make_whiteout(&*parent, name);
        };
        match &entry.kind {
            Kind::Directory { .. } => self.directory(path).map(drop),
            Kind::File { link: Some(_), .. } => Err(Errno::MLINK),
            Kind::File { content, size, .. } => {
                let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL;
                let mode = Mode::from_raw_mode(0o600);
                let file = File::from(host::open(&*parent, name, flags, mode)?);
                host::copy_content(self.trees, &file, *content, *size)?;
                host::copy_metadata(&file, &entry.meta, self.owner)
            }
            Kind::Symlink { .. } | Kind::Fifo => {
                host::copy_special(&parent, name, entry, self.owner)
            }
        }
    }

    /// The directory at `path` in the layer; it and its parents are made as needed.
    fn directory(&mut self, path: &VaultPath) -> Io<Arc<OwnedFd>> {
        // The deepest first. Not recursion: trees may be deeper than a stack.
        let mut missing = Vec::new();
        let mut at = path.clone();
        let mut directory = loop {
            if let Some(made) = self.directories.get(&at) {
                break made.clone();
            }
            let above = at.parent().ok_or(Errno::INVAL)?;
            missing.push(std::mem::replace(&mut at, above));
        };
        while let Some(path) = missing.pop() {
            let name = path.file_name().ok_or(Errno::INVAL)?;
            mkdirat(&*directory, name, Mode::from_raw_mode(0o700))?;
            directory = open_directory(&*directory, name)?;
            self.directories.insert(path, directory.clone());
        }
        Ok(directory)
    }

    /// Writing in a directory changes its mtime, and its mode may forbid it. So directories are finished last, deepest first.
    fn finish(self) -> Io<()> {
        for (path, directory) in self.directories.iter().rev() {
            let entry = self.trees.entry(self.root, path).map_err(|_| Errno::IO)?;
            let entry = entry.ok_or(Errno::NOENT)?;
            host::copy_metadata(directory, &entry.meta, self.owner)?;
        }
        Ok(())
    }
}

fn open_directory(parent: impl std::os::fd::AsFd, name: &[u8]) -> Io<Arc<OwnedFd>> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY;
    Ok(Arc::new(host::open(parent, name, flags, Mode::empty())?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scan::MarkNames;
    use crate::scanner::in_a_thread;
    use crate::{Allowance, CommitInput, HashCache, LayerUse, Layers, OwnWork, Writers, commit};
    use avfs_store::Store;
    use avfs_vault::{Edit, Meta, Time, VaultId};
    use std::collections::BTreeSet;

    struct Scene {
        _directory: tempfile::TempDir,
        trees: Trees,
        layers: Layers,
    }

    fn meta(mode: u32, secs: i64) -> Meta {
        Meta::new(mode, Time { secs, nanos: 77 })
    }

    fn at(path: &str) -> VaultPath {
        path.parse().unwrap()
    }

    impl Scene {
        fn new() -> Scene {
            let directory = tempfile::tempdir().unwrap();
            let store = Store::open(&directory.path().join("home")).unwrap();
            let layers = Layers::open(&directory.path().join("home"), None).unwrap();
            Scene {
                _directory: directory,
                trees: Trees::new(store),
                layers,
            }
        }

        fn file(&self, edit: &mut Edit, path: &str, text: &str, meta: Meta) {
            let (content, size) = self.trees.write_content(&mut text.as_bytes()).unwrap();
            let entry = Entry::file(content, size, meta);
            edit.put(&at(path), entry).unwrap();
        }

        /// Directories and files that are not changed, beside those that are.
        fn base(&self) -> RootId {
            let mut edit = self.trees.edit(self.trees.empty_root().unwrap()).unwrap();
            for path in ["/d", "/d/sub", "/gone", "/gone/deep", "/was-dir", "/closed"] {
                let entry = Entry::directory(0o755, Time { secs: 9, nanos: 1 });
                edit.put(&at(path), entry).unwrap();
            }
            for path in [
                "/d/f",
                "/d/sub/f",
                "/d/sub/stays",
                "/gone/deep/f",
                "/was-dir/f",
                "/closed/f",
                "/was-file",
            ] {
                self.file(&mut edit, path, path, meta(0o644, 5));
            }
            edit.finish().unwrap()
        }

        /// The commit of a filled layer.
        fn filled(&self, base: RootId, head: RootId) -> Result<RootId> {
            let top = self.trees.root(base).unwrap().top.meta.clone();
            let (vault, roots) = (VaultId::new(), (base, head));
            let layer = self.layers.draft(vault, roots, &top, LayerUse::Sandbox)?;
            let changes = self.trees.diff(base, head).unwrap();
            layer.fill(&self.trees, &changes, None)?;
            let input = CommitInput {
                trees: &self.trees,
                base,
                last_commit: head,
                skeleton: &BTreeSet::new(),
                own_work: OwnWork::None,
                owner: Owner { uid: 0, gid: 0 },
                writers: Writers::None,
                allowance: Allowance::default(),
                spool: self._directory.path(),
                stopped: &|| false,
            };
            let scanner = in_a_thread(MarkNames::User).unwrap();
            let cache = &mut HashCache::default();
            Ok(commit(&input, &scanner, layer.upper(), cache)?.root)
        }
    }

    #[test]
    fn a_filled_layer_amounts_to_its_root_to_the_last_detail() {
        let scene = Scene::new();
        let base = scene.base();
        let mut edit = scene.trees.edit(base).unwrap();
        scene.file(&mut edit, "/d/f", "changed", meta(0o4755, 6));
        // Files with mode 000 are read by the keeper's helper, and here only by root.
        let is_root = rustix::process::geteuid().is_root();
        let (file, directory) = if is_root { (0, 0) } else { (0o400, 0o500) };
        scene.file(&mut edit, "/d/sub/new", "new", meta(file, 7));
        edit.remove(&at("/d/sub/f")).unwrap();
        edit.remove(&at("/gone")).unwrap();
        edit.remove(&at("/was-dir")).unwrap();
        scene.file(&mut edit, "/was-dir", "a file", meta(0o600, 8));
        edit.remove(&at("/was-file")).unwrap();
        let now_directory = Entry::directory(0o750, Time { secs: 8, nanos: 3 });
        edit.put(&at("/was-file"), now_directory).unwrap();
        scene.file(&mut edit, "/was-file/in", "in", meta(0o644, 8));
        scene.file(&mut edit, "/closed/g", "g", meta(0o644, 9));
        edit.set_meta(&at("/closed"), meta(directory, 10)).unwrap();
        let mut marked = meta(0o644, 11);
        marked.xattrs.insert(b"user.k", b"v");
        scene.file(&mut edit, "/marked", "", marked);
        for (path, kind) in [
            (
                "/link",
                Kind::Symlink {
                    target: b"../nowhere".to_vec(),
                },
            ),
            ("/pipe", Kind::Fifo),
        ] {
            let mode = if path == "/link" { 0o777 } else { 0o640 };
            let meta = meta(mode, 12);
            edit.put(&at(path), Entry { kind, meta }).unwrap();
        }
        edit.set_meta(&VaultPath::root(), meta(0o711, 13)).unwrap();
        let head = edit.finish().unwrap();
        let filled = scene.filled(base, head).unwrap();
        assert_eq!(scene.trees.diff(head, filled).unwrap(), []);
        assert_eq!(filled, head);
        assert_eq!(scene.filled(head, base).unwrap(), base, "and back");
    }

    #[test]
    fn hard_links_are_refused() {
        let scene = Scene::new();
        let base = scene.base();
        let mut edit = scene.trees.edit(base).unwrap();
        let mut entry = scene.trees.entry(base, &at("/d/f")).unwrap().unwrap();
        let Kind::File { link, .. } = &mut entry.kind else {
            panic!("it is a file");
        };
        *link = Some(edit.fresh_link(&at("/d/f")));
        edit.put(&at("/d/f"), entry.clone()).unwrap();
        edit.put(&at("/d/g"), entry).unwrap();
        let head = edit.finish().unwrap();
        assert!(scene.filled(base, head).is_err());
    }

    /// Every directory is held open, and some users may open only 1,024 files.
    const DEPTH: usize = 600;
    /// Not 330 bytes for each level.
    const STACK: usize = 192 << 10;

    #[test]
    fn a_change_far_below_unchanged_directories_needs_no_deep_stack() {
        let thread = std::thread::Builder::new().stack_size(STACK);
        thread.spawn(change_far_below).unwrap().join().unwrap();
    }

    fn change_far_below() {
        let scene = Scene::new();
        let mut edit = scene.trees.edit(scene.base()).unwrap();
        let mut path = String::new();
        for _ in 0..DEPTH {
            path += "/d";
            let entry = Entry::directory(0o755, Time { secs: 9, nanos: 1 });
            edit.put(&at(&path), entry).unwrap();
        }
        path += "/f";
        scene.file(&mut edit, &path, "one", meta(0o644, 5));
        let base = edit.finish().unwrap();
        let mut edit = scene.trees.edit(base).unwrap();
        scene.file(&mut edit, &path, "two", meta(0o644, 6));
        let head = edit.finish().unwrap();
        assert_eq!(scene.filled(base, head).unwrap(), head);
    }
}
