//! Hard-linked stored files: which names are left, and how they stay one file in the upper.

use std::fs::File;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use avfs_vault::{LinkId, VaultPath};
use rustix::fs::FileType;

use super::copyup::link_open_file;
use super::host::{self, Io};
use super::nodes::{Body, Found, Origin, TOP};
use super::view::{MergedDirectory, View};

/// Directories from the top of the view down, each with its name.
type Trail = Vec<(Vec<u8>, MergedDirectory)>;

impl View {
    /// How many names of the stored file still show it.
    pub fn names_left(&self, link: LinkId) -> Io<u32> {
        let mut left = 0;
        for path in self.root.links.get(&link).into_iter().flatten() {
            left += u32::from(self.still_shows(path)?.is_some());
        }
        Ok(left.max(1))
    }

    /// The place of the stored name `path`, if it was not replaced or removed.
    fn still_shows(&self, path: &VaultPath) -> Io<Option<MergedDirectory>> {
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
            return Ok(None);
        };
        let Some(trail) = self.trail_of(&parent)? else {
            return Ok(None);
        };
        let place = trail.last().map(|(_, place)| place.clone());
        let Some(place) = place else {
            return Ok(None);
        };
        let covered = match &place.upper {
            Some(upper) => host::stat(upper, name).is_ok(),
            None => false,
        };
        Ok((!covered).then_some(place))
    }

    /// The directories from the top of the view to where the base's directory `origin` is now.
    fn trail_of(&self, origin: &VaultPath) -> Io<Option<Trail>> {
        let mut trail = vec![(Vec::new(), self.place(TOP)?)];
        let mut expected = VaultPath::root();
        for name in origin.components() {
            let Ok(next) = expected.join(name) else {
                return Ok(None);
            };
            expected = next;
            let place = &trail.last().expect("the top is never popped").1;
            match self.directory_below(place, name)? {
                Some(child) if is_from(&child, &expected) => trail.push((name.to_vec(), child)),
                _ => match self.moved(&expected)? {
                    Some(moved) => trail = moved,
                    None => return Ok(None),
                },
            }
        }
        Ok(Some(trail))
    }

    fn directory_below(&self, place: &MergedDirectory, name: &[u8]) -> Io<Option<MergedDirectory>> {
        let Some(Found {
            body: Body::Directory { in_upper, origin },
            ..
        }) = self.find_in(place, name)?
        else {
            return Ok(None);
        };
        let upper = match &place.upper {
            Some(upper) if in_upper => Some(Arc::new(host::open_directory(&**upper, name)?)),
            _ => None,
        };
        Ok(Some(MergedDirectory { upper, origin }))
    }

    /// Searches the whole upper for the directory that was renamed from `origin`.
    fn moved(&self, origin: &VaultPath) -> Io<Option<Trail>> {
        let mut pending = vec![vec![(Vec::new(), self.place(TOP)?)]];
        while let Some(trail) = pending.pop() {
            let place = &trail.last().expect("a trail begins at the top").1;
            let Some(upper) = &place.upper else { continue };
            for (name, kind, _) in host::names(upper)? {
                if kind != FileType::Directory || self.is_hidden(&name) {
                    continue;
                }
                let Some(child) = self.directory_below(place, &name)? else {
                    continue;
                };
                let found = is_from(&child, origin);
                let mut longer = trail.clone();
                longer.push((name, child));
                if found {
                    return Ok(Some(longer));
                }
                pending.push(longer);
            }
        }
        Ok(None)
    }

    /// Links the copy of a stored file to all names that the file still has.
    pub fn link_other_names(&self, link: LinkId, copy: &File) -> Io<()> {
        for path in self.root.links.get(&link).into_iter().flatten() {
            let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
                continue;
            };
            // The first name is in the upper already.
            if self.still_shows(path)?.is_none() {
                continue;
            }
            let Some(trail) = self.trail_of(&parent)? else {
                continue;
            };
            let directory = self.trail_in_upper(trail)?;
            host::keeping_times(&directory, || {
                host::overriding(&directory, || link_open_file(copy, &directory, name))
            })?;
        }
        Ok(())
    }

    /// Copies up all directories of a trail.
    fn trail_in_upper(&self, trail: Trail) -> Io<Arc<OwnedFd>> {
        let mut above = self.directory(TOP)?;
        for (name, place) in trail.into_iter().skip(1) {
            above = match (place.upper, place.origin) {
                (Some(upper), _) => upper,
                (None, Some(origin)) => {
                    self.copy_directory(&above, &name, &origin)?;
                    Arc::new(host::open_directory(&*above, &name)?)
                }
                (None, None) => continue,
            };
        }
        Ok(above)
    }
}

fn is_from(place: &MergedDirectory, path: &VaultPath) -> bool {
    let origin: Option<&Arc<Origin>> = place.origin.as_ref();
    origin.is_some_and(|origin| origin.path == *path)
}
