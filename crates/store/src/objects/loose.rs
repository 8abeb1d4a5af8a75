//! Large objects: one unwritable file each, complete or not there at all.

use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;

use crate::{Error, ObjectId, Result};

pub struct Loose {
    dir: PathBuf,
}

impl Loose {
    /// Removes what an interrupted write has left: nothing refers to it.
    pub fn open(dir: PathBuf) -> Result<Loose> {
        for entry in std::fs::read_dir(&dir).map_err(Error::io("list", &dir))? {
            let entry = entry.map_err(Error::io("list", &dir))?;
            if entry.file_name().as_encoded_bytes().starts_with(b"tmp-") {
                // What cannot be removed is in nobody's way.
                let _ = std::fs::remove_file(entry.path());
            }
        }
        Ok(Loose { dir })
    }

    pub fn dir(&self) -> &PathBuf {
        &self.dir
    }

    /// Written to a temporary name, synced, renamed. The directory is synced by the transaction.
    pub fn write(&self, id: ObjectId, record: &[u8]) -> Result<()> {
        let temporary = self.dir.join(format!("tmp-{}", crate::fresh_uuid()));
        let path = self.path(id);
        let write = || {
            let mut options = OpenOptions::new();
            let mut file = options
                .write(true)
                .create_new(true)
                .mode(0o400)
                .open(&temporary)?;
            file.write_all(record)?;
            file.sync_all()?;
            std::fs::rename(&temporary, &path)
        };
        write().map_err(|error| {
            // The first failure is the one to report; a leftover is removed at the next open.
            let _ = std::fs::remove_file(&temporary);
            Error::io("write", &path)(error)
        })
    }

    pub fn read(&self, id: ObjectId) -> Result<Option<Vec<u8>>> {
        match std::fs::read(self.path(id)) {
            Ok(record) => Ok(Some(record)),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(Error::io("read", self.path(id))(error)),
        }
    }

    pub fn length(&self, id: ObjectId) -> Result<u64> {
        let path = self.path(id);
        let length = || Ok(std::fs::metadata(&path)?.len());
        length().map_err(Error::io("measure", &path))
    }

    pub fn remove(&self, id: ObjectId) -> Result<()> {
        match std::fs::remove_file(self.path(id)) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(Error::io("remove", self.path(id))(error))
            }
            _ => Ok(()),
        }
    }

    /// The ids of all loose objects.
    pub fn ids(&self) -> Result<Vec<ObjectId>> {
        let mut ids = Vec::new();
        for entry in std::fs::read_dir(&self.dir).map_err(Error::io("list", &self.dir))? {
            let name = entry.map_err(Error::io("list", &self.dir))?.file_name();
            ids.extend(name.to_str().and_then(|name| name.parse::<ObjectId>().ok()));
        }
        Ok(ids)
    }

    fn path(&self, id: ObjectId) -> PathBuf {
        self.dir.join(id.to_string())
    }
}
