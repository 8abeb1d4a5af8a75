//! Where the layers of a home are: in the home, unless its file system cannot hold them or the owner wants them elsewhere.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use avfs_sandbox::probe::{can_hold_layers, needs_no_trial};
use rustix::process::geteuid;

use crate::home::HomeIdentity;
use crate::{Error, Result};

/// Where the home says in which directories besides its own it has had layers.
const NOTE: &str = "layers-directories";
/// A file system in memory that nearly every machine and container has.
const MEMORY: &str = "/dev/shm";

/// Where layers are made.
#[derive(Debug, Clone)]
pub struct LayersPlace {
    pub directory: PathBuf,
    pub why: LayersWhy,
}

/// Why they are there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LayersWhy {
    /// It is the home.
    Home,
    /// The owner wants them there.
    Chosen,
    /// The home cannot hold them. This directory goes away with the machine's boot.
    Instead { reason: String },
    /// No directory that was tried can, so that no command will run.
    Nowhere { reason: String },
}

impl LayersPlace {
    /// Finds it by trying, where the kind of the file system does not tell. `binary` is run to try.
    pub fn find(
        home: &Path,
        runtime_dir: &Path,
        chosen: Option<&Path>,
        binary: &Path,
    ) -> Result<LayersPlace> {
        let own = home.join("layers");
        let failed = |path: &Path| Error::io(format!("making {}", path.display()));
        fs::create_dir_all(&own).map_err(failed(&own))?;
        let key = key(home)?;
        if let Some(chosen) = chosen {
            let directory = chosen.join(&key);
            make_private(&directory).map_err(failed(&directory))?;
            try_out(&directory, binary).map_err(|reason| Error::Invalid {
                what: "directory for layers",
                reason: format!("{}: {reason}", chosen.display()),
            })?;
            let why = LayersWhy::Chosen;
            return Ok(LayersPlace { directory, why });
        }
        let reason = match try_out(&own, binary) {
            Ok(()) => {
                let (directory, why) = (own, LayersWhy::Home);
                return Ok(LayersPlace { directory, why });
            }
            Err(reason) => reason,
        };
        let in_memory = Path::new(MEMORY).join(format!("agentvfs-{}", geteuid().as_raw()));
        for base in [runtime_dir, &in_memory] {
            let directory = base.join(&key);
            let made = make_private(base).and_then(|()| make_private(&directory));
            if made.is_ok() && try_out(&directory, binary).is_ok() {
                let why = LayersWhy::Instead { reason };
                return Ok(LayersPlace { directory, why });
            }
        }
        let (directory, why) = (own, LayersWhy::Nowhere { reason });
        Ok(LayersPlace { directory, why })
    }

    /// The other directories in which daemons of this home may have left layers. Notes this one for those that come after.
    pub(crate) fn earlier(&self, home: &Path) -> Result<Vec<PathBuf>> {
        let (own, note, key) = (home.join("layers"), home.join(NOTE), key(home)?);
        let noted = fs::read(&note).unwrap_or_default();
        let lines = noted.split(|byte| *byte == b'\n');
        let paths = lines.map(|line| PathBuf::from(std::ffi::OsString::from_vec(line.to_vec())));
        // A note that came with a copy names directories of another home.
        let mut elsewhere: Vec<PathBuf> = paths
            .filter(|path| path.is_absolute() && path.ends_with(&key) && is_private(path).is_ok())
            .collect();
        if self.directory != own && !elsewhere.contains(&self.directory) {
            elsewhere.push(self.directory.clone());
        }
        let lines: Vec<&[u8]> = elsewhere
            .iter()
            .map(|path| path.as_os_str().as_bytes())
            .collect();
        let lines = lines.join(&b'\n');
        if lines != noted {
            let fresh = home.join(format!("{NOTE}.new"));
            fs::write(&fresh, lines)
                .and_then(|()| fs::rename(&fresh, &note))
                .map_err(Error::io(format!("writing {}", note.display())))?;
        }
        let all = elsewhere.into_iter().chain([own]);
        Ok(all.filter(|path| *path != self.directory).collect())
    }
}

/// What the directory of a home's layers is called. The device has another number after each boot on some machines.
fn key(home: &Path) -> Result<String> {
    let identity = HomeIdentity::of(home);
    let identity = identity.map_err(Error::io(format!("looking at {}", home.display())))?;
    Ok(format!("layers-{:x}", identity.inode()))
}

fn try_out(directory: &Path, binary: &Path) -> Result<(), String> {
    if needs_no_trial(directory) {
        return Ok(());
    }
    can_hold_layers(directory, binary).map_err(|error| error.to_string())
}

fn make_private(directory: &Path) -> io::Result<()> {
    match DirBuilder::new().mode(0o700).create(directory) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        _ => is_private(directory),
    }
}

/// Whether nobody else can have put anything into it.
fn is_private(directory: &Path) -> io::Result<()> {
    let meta = fs::symlink_metadata(directory)?;
    let own = meta.is_dir() && meta.uid() == geteuid().as_raw() && meta.mode() & 0o077 == 0;
    match own {
        true => Ok(()),
        false => Err(io::Error::other("it is not a directory of this user alone")),
    }
}
