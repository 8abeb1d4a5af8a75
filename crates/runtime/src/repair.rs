//! Repairing: what is damaged is looked for in other records, in layers, and in the host directories of imports.

use std::collections::{BTreeSet, HashSet};
use std::ffi::OsStr;
use std::fs::File;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use avfs_store::{ObjectId, Store};
use avfs_vault::{
    FsckReport, ImportSource, Mending, Principal, Rebuilt, Sighting, VaultPath, Vaults,
};
use rustix::fs::{Mode, OFlags, ResolveFlags};

use crate::runtime::{Config, IfLost};
use crate::session::Session;
use crate::{Error, Result};

const LAYERS: &str = "layers";

/// An object that is whole again.
#[derive(Debug, Clone)]
pub struct Repaired {
    pub object: ObjectId,
    /// Where its bytes were found.
    pub from: String,
    /// The paths that it concerns.
    pub seen: Vec<Sighting>,
}

/// What a repair did, and what is still damaged.
#[derive(Debug)]
pub struct RepairReport {
    pub repaired: Vec<Repaired>,
    pub left: FsckReport,
    /// Where nobody could look, and why.
    pub unsearched: Vec<String>,
}

/// What was found where.
type Finds = Vec<(ObjectId, String)>;

impl Session {
    /// Checks everything, and takes what is found elsewhere in place of what is damaged. Behind a directory that can be
    /// read again more damage may come to light, so it is done until nothing more is found.
    pub fn repair(&self) -> Result<RepairReport> {
        self.govern("repairing")?;
        let vaults = &self.inner.vaults;
        let mut report = RepairReport {
            repaired: Vec::new(),
            left: vaults.fsck(),
            unsearched: Vec::new(),
        };
        let mut known = HashSet::new();
        while !report.left.damaged.is_empty() {
            report.unsearched.clear();
            let mut finds = self.look_elsewhere(&report.left, &mut report.unsearched)?;
            // A disk that damages what was just repaired is no reason to go on for ever.
            finds.retain(|(object, _)| known.insert(*object));
            if finds.is_empty() {
                break;
            }
            for (object, from) in finds {
                let mut damaged = report.left.damaged.iter();
                let damage = damaged.find(|damage| damage.object == object);
                let seen = damage.map_or_else(Vec::new, |damage| damage.seen.clone());
                report.repaired.push(Repaired { object, from, seen });
            }
            report.left = vaults.fsck();
        }
        let left = |object| report.left.damaged.iter().any(|it| it.object == object);
        report.repaired.retain(|it| !left(it.object));
        let counts = (report.repaired.len(), report.left.damaged.len());
        if counts != (0, 0) {
            vaults.record_repair(counts.0, counts.1, &self.principal())?;
        }
        Ok(report)
    }

    /// What a rebuild at the start of this daemon brought back; else takes in packs that the database does not know.
    pub fn rebuild(&self) -> Result<Rebuild> {
        self.govern("rebuilding")?;
        let made_anew = crate::runtime::lock(&self.inner.rebuilt).take();
        Ok(match made_anew {
            Some(rebuild) => rebuild,
            None => Rebuild {
                database_lost: false,
                put_aside: Vec::new(),
                rebuilt: self.inner.vaults.take_in_packs(&self.principal())?,
            },
        })
    }

    fn look_elsewhere(&self, report: &FsckReport, unsearched: &mut Vec<String>) -> Result<Finds> {
        let mending = self.inner.vaults.mending(report)?;
        let mut finds: Finds = Vec::new();
        let in_packs = mending.from_records()?;
        finds.extend(in_packs.into_iter().map(|id| (id, "another record".into())));
        let seen = report.damaged.iter().flat_map(|damage| &damage.seen);
        let paths: BTreeSet<&VaultPath> = seen.map(|sighting| &sighting.path).collect();
        if let Err(error) = self.look_in_layers(&mending, &paths, &mut finds) {
            unsearched.push(format!("layers: {error}"));
        }
        for source in self.all_sources()? {
            look_on_host(&mending, &source, &paths, &mut finds)?;
        }
        Ok(finds)
    }

    /// Files of layers are opened by the scanner, beneath the layer's own directory.
    fn look_in_layers(
        &self,
        mending: &Mending,
        paths: &BTreeSet<&VaultPath>,
        finds: &mut Finds,
    ) -> Result<()> {
        let uppers = self.inner.layers.uppers()?;
        let names: Vec<&[u8]> = paths
            .iter()
            .map(|path| &path.as_bytes()[1..])
            .filter(|name| !name.is_empty())
            .collect();
        if uppers.is_empty() || names.is_empty() {
            return Ok(());
        }
        let engine = self.engine()?;
        for upper in uppers {
            let mut looked = Ok(());
            engine.scanner.open(upper.as_fd(), &names, |_, opened| {
                if let Ok(file) = opened
                    && looked.is_ok()
                {
                    looked = look_into(mending, &file.into(), "a layer", finds);
                }
            })?;
            looked?;
        }
        Ok(())
    }

    /// Every host directory that was ever imported, whichever vault still knows of it.
    fn all_sources(&self) -> Result<Vec<ImportSource>> {
        let vaults = &self.inner.vaults;
        let mut sources: Vec<ImportSource> = Vec::new();
        for vault in vaults.list()? {
            for base in vaults.import_bases(vault.id)? {
                if !sources.contains(&base.source) {
                    sources.push(base.source);
                }
            }
        }
        Ok(sources)
    }
}

/// What was brought back without the help of a database.
#[derive(Debug, Clone)]
pub struct Rebuild {
    /// Whether there was none; else packs were taken in that it did not know.
    pub database_lost: bool,
    /// What is kept under another name.
    pub put_aside: Vec<PathBuf>,
    pub rebuilt: Rebuilt,
}

/// Opens the vaults of a home, where its database is lost only if that is wanted.
pub(crate) fn open_vaults(config: &Config) -> Result<(Vaults, Option<Rebuild>)> {
    let home = &config.home;
    let open = || -> Result<Vaults> { Ok(Vaults::open(Store::open(home)?)?) };
    match open() {
        Err(Error::Store(error) | Error::Vault(avfs_vault::Error::Store(error)))
            if error.is_without_database() && config.if_lost == IfLost::Rebuild => {}
        opened => return Ok((opened?, None)),
    }
    // Layers are of vaults that nobody knows any more, and would be removed.
    let put_aside = put_layers_aside(home)?;
    let rebuilt = match Vaults::rebuild(home, &Principal::OWNER) {
        Ok(rebuilt) => rebuilt,
        Err(error) => {
            if let Some(aside) = &put_aside {
                let _ = std::fs::rename(aside, home.join(LAYERS));
            }
            return Err(error.into());
        }
    };
    let rebuild = Rebuild {
        database_lost: true,
        put_aside: put_aside.into_iter().collect(),
        rebuilt,
    };
    Ok((open()?, Some(rebuild)))
}

fn put_layers_aside(home: &Path) -> Result<Option<PathBuf>> {
    let layers = home.join(LAYERS);
    let is_empty = std::fs::read_dir(&layers).map_or(true, |mut entries| entries.next().is_none());
    if is_empty {
        return Ok(None);
    }
    let names = (1..).map(|number| match number {
        1 => home.join("layers.lost"),
        number => home.join(format!("layers.lost-{number}")),
    });
    let mut unused = names.filter(|path| path.symlink_metadata().is_err());
    let aside = unused.next().unwrap_or_else(|| home.join("layers.lost"));
    let renamed = std::fs::rename(&layers, &aside);
    renamed.map_err(Error::io(format!("renaming {}", layers.display())))?;
    Ok(Some(aside))
}

/// The directory may be gone, or another one by now: only bytes that have the right hash are taken.
fn look_on_host(
    mending: &Mending,
    source: &ImportSource,
    paths: &BTreeSet<&VaultPath>,
    finds: &mut Finds,
) -> Result<()> {
    let host_dir = Path::new(OsStr::from_bytes(&source.host_dir));
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let Ok(top) = rustix::fs::open(host_dir, flags, Mode::empty()) else {
        return Ok(());
    };
    for path in paths {
        let Some(inside) = path.rebase(&source.at, &VaultPath::root()) else {
            continue;
        };
        let name = &inside.as_bytes()[1..];
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let resolve =
            ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        if let Ok(file) = rustix::fs::openat2(&top, name, flags, Mode::empty(), resolve) {
            let from = host_dir.join(OsStr::from_bytes(name));
            look_into(mending, &file.into(), &from.display().to_string(), finds)?;
        }
    }
    Ok(())
}

fn look_into(mending: &Mending, file: &File, from: &str, finds: &mut Finds) -> Result<()> {
    if file.metadata().is_ok_and(|meta| meta.is_file()) {
        let found = mending.from_file(file)?;
        finds.extend(found.into_iter().map(|id| (id, from.to_owned())));
    }
    Ok(())
}
