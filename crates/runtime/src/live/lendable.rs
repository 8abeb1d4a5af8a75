//! Which directories of the host may be lent to commands: none through which a command would reach what is not for it.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use avfs_sandbox::Identity;

/// Directories of the host that are not files, and those that a sandbox has of its own.
const SYSTEM: [&str; 9] = [
    "/proc",
    "/sys",
    "/dev",
    "/run",
    "/etc",
    "/boot",
    "/home/agent",
    "/workspace",
    "/var/run",
];
/// Directories that every sandbox has from the host already.
const LENT_ALREADY: [&str; 7] = ["/usr", "/bin", "/sbin", "/lib", "/lib64", "/lib32", "/opt"];

/// Where programs keep credentials: below the home.
const CREDENTIALS: [&str; 24] = [
    ".ssh",
    ".aws",
    ".azure",
    ".gnupg",
    ".docker",
    ".kube",
    ".netrc",
    ".npmrc",
    ".pypirc",
    ".git-credentials",
    ".password-store",
    ".mozilla",
    ".thunderbird",
    ".cargo/credentials.toml",
    ".config/gcloud",
    ".config/gh",
    ".config/git",
    ".config/op",
    ".config/agentvfs",
    ".config/google-chrome",
    ".config/chromium",
    ".local/share/keyrings",
    ".local/share/agentvfs",
    ".vault-token",
];

/// What may not be lent, by the owner's home and ours.
#[derive(Debug, Clone, Default)]
pub(crate) struct Forbidden {
    home: Option<PathBuf>,
    /// Directories with what is ours: the store, layers, sockets, keys.
    own: Vec<PathBuf>,
}

impl Forbidden {
    pub fn new(home: Option<&Path>, own: &[&Path]) -> Forbidden {
        let real = |path: &Path| fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        Forbidden {
            home: home.map(real),
            own: own.iter().map(|path| real(path)).collect(),
        }
    }

    /// Which directory this is, or why it may not be lent. The path is free of links.
    pub fn check(&self, path: &Path) -> Result<Identity, String> {
        let shown = path.display();
        let meta = fs::symlink_metadata(path).map_err(|error| format!("{shown}: {error}"))?;
        if !meta.is_dir() {
            return Err(format!("{shown} is not a directory"));
        }
        if let Some(reason) = self.reason(path) {
            return Err(format!("{shown} {reason}"));
        }
        let own = rustix::process::geteuid().as_raw();
        if ![own, 0].contains(&meta.uid()) {
            return Err(format!("{shown} belongs to another user"));
        }
        if meta.mode() & 0o002 != 0 {
            return Err(format!("{shown} can be written by every user of this host"));
        }
        Ok(Identity {
            device: meta.dev(),
            inode: meta.ino(),
        })
    }

    fn reason(&self, path: &Path) -> Option<&'static str> {
        let touches = |other: &Path| path.starts_with(other) || other.starts_with(path);
        if path == Path::new("/") {
            return Some("is the whole host");
        }
        if let Some(home) = &self.home
            && home.starts_with(path)
        {
            return Some("is the home directory, or above it");
        }
        let stores = self.home.iter();
        let mut stores = stores.flat_map(|home| CREDENTIALS.map(|store| home.join(store)));
        if stores.any(|store| touches(&store)) {
            return Some("holds credentials, or is in a directory that does");
        }
        if self.own.iter().any(|own| touches(own)) {
            return Some("holds what is agentvfs's own, or vaults: commands could write it");
        }
        if self.homes_of_others().iter().any(|home| touches(home)) {
            return Some("is in the home of another user, or above it");
        }
        if LENT_ALREADY.iter().any(|dir| path.starts_with(dir)) {
            return Some("is in every sandbox already");
        }
        if SYSTEM.iter().any(|dir| touches(Path::new(dir))) {
            return Some("is the system's, or the sandbox's own");
        }
        None
    }

    /// The homes of people, and of root.
    fn homes_of_others(&self) -> Vec<PathBuf> {
        let users = fs::read_to_string("/etc/passwd").unwrap_or_default();
        let homes = users.lines().filter_map(|line| {
            let mut parts = line.split(':').skip(2);
            let uid: u32 = parts.next()?.parse().ok()?;
            let home = PathBuf::from(parts.nth(2)?);
            let is_person = uid == 0 || (1_000..65_534).contains(&uid);
            let is_other = Some(&home) != self.home.as_ref();
            (is_person && is_other && home.components().count() > 1).then_some(home)
        });
        homes.collect()
    }
}
