//! The certificate authorities that a sandbox trusts: its own, by which TLS is opened, and those of the host.
//!
//! Most sandboxes open no TLS. So the directory that a sandbox sees as `/etc/agentvfs` leads to the host's authorities alone, until
//! the terms of a command need an authority of its own. The daemon makes one and writes it there then.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::SystemTime;

use avfs_net::Authority;

use crate::runtime::lock;

/// Below `/etc` of a sandbox: what the daemon shows there.
pub(crate) const SHOWN: &str = "agentvfs";
/// In it: the sandbox's own authority, and all that it trusts.
const OWN: &str = "authority.pem";
const ALL: &str = "authorities.pem";

/// Where hosts have the certificates of all authorities that they trust.
const BUNDLES: [&str; 4] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
];

/// What a sandbox sees under the path that it has on the host.
const SEEN: [&str; 3] = ["/etc/ssl", "/etc/ca-certificates", "/usr"];
const NOTHING: &str = "/dev/null";

/// The path of a sandbox's own authority inside.
pub(crate) fn own() -> String {
    format!("/etc/{SHOWN}/{OWN}")
}

/// The path of all that it trusts inside.
pub(crate) fn all() -> String {
    format!("/etc/{SHOWN}/{ALL}")
}

/// The authorities of the host, read when they are first needed and again when their file has changed.
#[derive(Default)]
pub(super) struct Bundle(Mutex<Option<Read>>);

/// What was read, and of which file.
struct Read {
    stamp: Stamp,
    text: Arc<[u8]>,
}

/// A file at a time.
type Stamp = (&'static str, u64, SystemTime);

impl Bundle {
    /// Shows the host's authorities in the empty directory of a new sandbox. Blocks.
    pub fn show_in(&self, directory: &Path) -> io::Result<()> {
        symlink(NOTHING, directory.join(OWN))?;
        let found = BUNDLES.iter().find_map(|path| fs::canonicalize(path).ok());
        let seen = |path: &PathBuf| SEEN.iter().any(|seen| path.starts_with(seen));
        match found {
            None => symlink(NOTHING, directory.join(ALL)),
            Some(path) if seen(&path) => symlink(path, directory.join(ALL)),
            Some(_) => publish(directory, ALL, &[&self.text()?]),
        }
    }

    /// A new authority, which whoever sees the directory trusts from now on. Blocks.
    pub fn authority_in(&self, directory: &Path) -> Result<Authority, avfs_net::Error> {
        let authority = Authority::new()?;
        let pem = authority.pem();
        let written = self.text().and_then(|host| {
            publish(directory, OWN, &[pem.as_bytes()])?;
            publish(directory, ALL, &[&host, b"\n", pem.as_bytes()])
        });
        written.map_err(|error| avfs_net::Error::Authority(error.to_string()))?;
        Ok(authority)
    }

    /// Nothing where the host has no such file.
    fn text(&self) -> io::Result<Arc<[u8]>> {
        let Some(stamp) = BUNDLES.iter().find_map(|path| stamp_of(path)) else {
            return Ok(Arc::default());
        };
        let mut read = lock(&self.0);
        if let Some(read) = read.as_ref().filter(|read| read.stamp == stamp) {
            return Ok(Arc::clone(&read.text));
        }
        let text: Arc<[u8]> = fs::read(stamp.0)?.into();
        *read = Some(Read {
            stamp,
            text: Arc::clone(&text),
        });
        Ok(text)
    }
}

fn stamp_of(path: &'static str) -> Option<Stamp> {
    let found = fs::metadata(path).ok()?;
    Some((path, found.len(), found.modified().ok()?))
}

/// Writes a file that is whole as soon as its name is there.
fn publish(directory: &Path, name: &str, parts: &[&[u8]]) -> io::Result<()> {
    let draft = directory.join(format!(".{name}"));
    let mut file = File::create(&draft)?;
    for part in parts {
        file.write_all(part)?;
    }
    fs::rename(draft, directory.join(name))
}
