//! What a sandbox borrows from its host: system directories, toolchains, `/etc`, an environment.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::lchown;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use avfs_net::Upstream;
use avfs_sandbox::toolchain::{SHIM_PROGRAM, SHIMS, survey};
use avfs_sandbox::{EtcContent, EtcFile, Lent, Network, build_skeleton, host_etc, host_lent};
use avfs_store::Room;
use avfs_vault::{VaultName, VaultPath};
use avfs_view::MountPoints;

use crate::live::authorities::SHOWN;
use crate::live::git_user::{GIT_USER, GitIdentity};
use crate::live::lendable::Forbidden;
use crate::live::lending::Lendings;
use crate::live::shims::Shims;
use crate::owners::layer_owner;
use crate::runtime::Config;
use crate::{Error, Result};

/// Inside, `~` of whoever runs there.
pub(crate) const HOME: &str = "/home/agent";
const SYSTEM_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
/// Mount points of every sandbox besides the lent directories.
const OWN_MOUNTS: [&str; 6] = ["/dev", "/proc", "/run", "/tmp", "/etc", "/var/tmp"];

/// What the caller's environment says, read once at the edge.
#[derive(Debug, Clone, Default)]
pub struct HostFacts {
    pub user_home: Option<PathBuf>,
    /// Where this user writes rules.
    pub user_policy: Option<PathBuf>,
    /// Where this user has the key of secrets.
    pub secret_key: Option<PathBuf>,
    pub path: OsString,
    pub git_name: Option<String>,
    pub git_email: Option<String>,
    pub proxies: HostProxies,
    pub registries: RegistryVariables,
}

/// The variables of the host that package managers read. Some hold credentials, so they are not shown.
#[derive(Clone, Default)]
pub struct RegistryVariables(pub BTreeMap<String, String>);

impl fmt::Debug for RegistryVariables {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RegistryVariables({})", self.0.len())
    }
}

/// The proxies that the host itself needs, as its variables say.
#[derive(Debug, Clone, Default)]
pub struct HostProxies {
    pub http: Option<String>,
    pub https: Option<String>,
    /// Hosts that are reached without one.
    pub except: Option<String>,
}

impl HostProxies {
    /// The proxies, if they can be used.
    pub(crate) fn upstream(&self) -> Result<Upstream> {
        let (http, https) = (self.http.as_deref(), self.https.as_deref());
        Ok(Upstream::from_variables(
            http,
            https,
            self.except.as_deref(),
        )?)
    }
}

/// The host as sandboxes see it.
pub(crate) struct Host {
    pub lent: Vec<Lent>,
    pub shims: Shims,
    pub lendings: Lendings,
    skeleton: PathBuf,
    /// Whether all of the skeleton and the shims is there: on a full disk it may have to wait.
    skeleton_made: AtomicBool,
    /// Paths that are the sandbox's or the host's, never the vault's.
    pub mount_points: BTreeSet<VaultPath>,
    /// Directories that every sandbox has: mount points, and the home.
    skeleton_paths: BTreeSet<VaultPath>,
    path: Vec<u8>,
    /// Who commits are by.
    pub git: GitIdentity,
}

impl Host {
    pub fn survey(config: &Config) -> Result<Host> {
        let mut lent = host_lent();
        let tools = survey(config.host.user_home.as_deref(), &config.host.path);
        let mut path = format!("/etc/{SHIMS}:").into_bytes();
        for bin in &tools.bins {
            path.extend_from_slice(bin.as_os_str().as_bytes());
            path.push(b':');
        }
        for tool in &tools.lent {
            if !lent.contains(tool) {
                lent.push(tool.clone());
            }
        }
        path.extend_from_slice(SYSTEM_PATH.as_bytes());
        let skeleton = config.home.join("skeleton");
        let git = GitIdentity::new(&config.host, &config.home.join("shims"));
        let shims = Shims::new(config.home.join("shims"), config.binary.clone(), tools);
        let made = match prepare_skeleton(&skeleton, &lent).and_then(|()| shims.prepare()) {
            Err(_) if Room::of(&config.home).is_none() => false,
            made => made.map(|()| true)?,
        };
        let mut mount_points = BTreeSet::new();
        let inside = lent.iter().map(|lent| lent.inside.as_os_str().as_bytes());
        for point in inside.chain(OWN_MOUNTS.iter().map(|point| point.as_bytes())) {
            mount_points.insert(VaultPath::parse(point)?);
        }
        let mut skeleton_paths = mount_points.clone();
        skeleton_paths.insert(VaultPath::parse(HOME.as_bytes())?);
        Ok(Host {
            lent,
            shims,
            lendings: lendings(config),
            skeleton,
            skeleton_made: AtomicBool::new(made),
            mount_points,
            skeleton_paths,
            path,
            git,
        })
    }

    /// Empty directories for everything that is mounted, and the home: the lowest layer of every view.
    pub fn skeleton(&self) -> Result<PathBuf> {
        if !self.skeleton_made.load(Ordering::Acquire) {
            prepare_skeleton(&self.skeleton, &self.lent)?;
            self.shims.prepare()?;
            self.skeleton_made.store(true, Ordering::Release);
        }
        Ok(self.skeleton.clone())
    }

    /// Directories that a view has whether or not the vault does.
    pub fn skeleton_paths(&self) -> Cow<'_, BTreeSet<VaultPath>> {
        let besides = self.lendings.mount_points();
        if besides.is_empty() {
            return Cow::Borrowed(&self.skeleton_paths);
        }
        let besides = besides.iter().map(|path| path.as_os_str().as_bytes());
        let besides = besides.filter_map(|path| VaultPath::parse(path).ok());
        Cow::Owned(self.skeleton_paths.iter().cloned().chain(besides).collect())
    }

    /// What a mount has for the commands beside it.
    pub fn mount_points_of_views(&self) -> MountPoints {
        MountPoints {
            mounted: self.mount_points.clone(),
            others: &self.skeleton_paths - &self.mount_points,
        }
    }

    /// The whole of `/etc` in the vault's sandbox. `shown` is a directory of the daemon's.
    pub fn etc(&self, vault: &VaultName, network: Network, shown: &Path) -> Vec<EtcFile> {
        let mut files = host_etc(vault.as_str());
        if network == Network::Host {
            lend_resolver(&mut files);
        }
        files.push(EtcFile {
            path: SHIMS.into(),
            content: EtcContent::Host(self.shims.dir().to_owned()),
        });
        files.push(EtcFile {
            path: SHIM_PROGRAM.into(),
            content: EtcContent::Host(self.shims.program()),
        });
        files.push(EtcFile {
            path: "gitconfig".into(),
            content: EtcContent::Bytes(git_config()),
        });
        files.push(EtcFile {
            path: SHOWN.into(),
            content: EtcContent::Host(shown.to_owned()),
        });
        files
    }

    /// The environment of a command, built and never inherited; `extra` wins.
    pub fn environment(
        &self,
        vault: &VaultName,
        extra: &[(Vec<u8>, Vec<u8>)],
    ) -> Vec<(Vec<u8>, Vec<u8>)> {
        let name = vault.to_string();
        let built: [(&str, &[u8]); 13] = [
            ("PATH", &self.path),
            ("HOME", HOME.as_bytes()),
            ("USER", b"agent"),
            ("LOGNAME", b"agent"),
            ("SHELL", shell().as_bytes()),
            ("LANG", b"C.UTF-8"),
            ("TERM", b"dumb"),
            ("TMPDIR", b"/tmp"),
            ("AVFS_VAULT", name.as_bytes()),
            ("AVFS_MOUNTPOINT", b"/"),
            // One git whatever its prefix: the synthesised file is the system's configuration.
            ("GIT_CONFIG_SYSTEM", b"/etc/gitconfig"),
            ("GIT_TERMINAL_PROMPT", b"0"),
            ("PAGER", b"cat"),
        ];
        let mut environment: Vec<(Vec<u8>, Vec<u8>)> = built
            .into_iter()
            .filter(|(key, _)| !extra.iter().any(|(given, _)| given == key.as_bytes()))
            .map(|(key, value)| (key.as_bytes().to_vec(), value.to_vec()))
            .collect();
        environment.extend_from_slice(extra);
        environment
    }

    /// Refuses paths that are not the vault's; `/tmp` is the caller's business.
    pub fn check_own(&self, path: &VaultPath) -> Result<()> {
        let Some(point) = self
            .mount_points
            .iter()
            .find(|point| path.starts_with(point))
        else {
            return Ok(());
        };
        if OWN_MOUNTS
            .iter()
            .any(|own| own.as_bytes() == point.as_bytes())
        {
            return Err(Error::SandboxPath { path: path.clone() });
        }
        Err(Error::LentPath { path: path.clone() })
    }
}

/// Nothing of ours, of the owner's credentials or of others is lent.
fn lendings(config: &Config) -> Lendings {
    let key = config.host.secret_key.as_deref().and_then(Path::parent);
    let own = [
        Some(config.home.as_path()),
        Some(&config.runtime_dir),
        config.layers.as_deref(),
        key,
    ];
    let own: Vec<&Path> = own.into_iter().flatten().collect();
    let forbidden = Forbidden::new(config.host.user_home.as_deref(), &own);
    Lendings::new(config.home.join("lent"), forbidden)
}

/// The shell of `--shell`: never the caller's own, never a login shell.
pub(crate) fn shell() -> &'static str {
    if Path::new("/bin/bash").exists() {
        "/bin/bash"
    } else {
        "/bin/sh"
    }
}

/// Makes what is missing of the skeleton, and removes what the host no longer lends. Nothing that can stay is made
/// anew: on a full disk it could not be.
fn prepare_skeleton(skeleton: &Path, lent: &[Lent]) -> Result<()> {
    let failed = || Error::io(format!("making {}", skeleton.display()));
    let inside = lent.iter().map(|lent| lent.inside.as_path());
    let own = OWN_MOUNTS.iter().chain([&HOME]).map(Path::new);
    let wanted: Vec<PathBuf> = inside
        .chain(own)
        .map(|path| under(skeleton, path))
        .collect();
    if skeleton.exists() {
        remove_unwanted(skeleton, &wanted).map_err(failed())?;
    }
    build_skeleton(skeleton, lent)?;
    std::fs::create_dir_all(under(skeleton, Path::new(HOME))).map_err(failed())?;
    match layer_owner() {
        Some(owner) => give_away(skeleton, owner.uid).map_err(failed()),
        None => Ok(()),
    }
}

fn under(skeleton: &Path, path: &Path) -> PathBuf {
    skeleton.join(path.strip_prefix("/").unwrap_or(path))
}

fn remove_unwanted(skeleton: &Path, wanted: &[PathBuf]) -> std::io::Result<()> {
    // Not recursion: the path of what is lent may have more levels than fit on a stack.
    let mut waiting = vec![skeleton.to_owned()];
    while let Some(dir) = waiting.pop() {
        for item in std::fs::read_dir(dir)? {
            let item = item?;
            let path = item.path();
            let is_dir = item.file_type()?.is_dir();
            match wanted.iter().any(|wanted| wanted.starts_with(&path)) {
                true if is_dir => waiting.push(path),
                _ if is_dir => std::fs::remove_dir_all(path)?,
                _ => std::fs::remove_file(path)?,
            }
        }
    }
    Ok(())
}

fn give_away(skeleton: &Path, owner: u32) -> std::io::Result<()> {
    let mut waiting = vec![skeleton.to_owned()];
    while let Some(path) = waiting.pop() {
        lchown(&path, Some(owner), Some(owner))?;
        for item in std::fs::read_dir(path)? {
            let item = item?;
            if item.file_type()?.is_dir() {
                waiting.push(item.path());
            }
        }
    }
    Ok(())
}

/// Names are looked up where the host looks them up.
fn lend_resolver(files: &mut [EtcFile]) {
    let resolver = std::fs::read("/etc/resolv.conf");
    let place = files.iter_mut().find(|file| file.path == "resolv.conf");
    if let (Ok(bytes), Some(file)) = (resolver, place) {
        file.content = EtcContent::Bytes(bytes);
    }
}

/// Inode numbers and change times move with every view; sizes and times of content do not. In this file
/// and not in the environment, where a script's own settings would take their place.
const GIT_STAT: &str = "[core]\n\tcheckStat = minimal\n\ttrustctime = false\n";

/// What git must know of views, and who commits are by; nothing else of the caller's configuration is for a
/// sandbox to see.
fn git_config() -> Vec<u8> {
    format!("{GIT_STAT}[include]\n\tpath = /etc/{SHIMS}/{GIT_USER}\n").into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Names of one letter: the kernel takes paths of 4,095 bytes.
    const DEPTH: usize = 1_500;
    /// Not 200 bytes for each level.
    const STACK: usize = 256 << 10;

    #[test]
    fn a_deep_skeleton_is_tidied_and_given_away() {
        let thread = std::thread::Builder::new().stack_size(STACK);
        thread.spawn(tidy_and_give_away).unwrap().join().unwrap();
    }

    fn tidy_and_give_away() {
        let directory = tempfile::tempdir().unwrap();
        let (skeleton, mut at) = (directory.path(), directory.path().to_owned());
        for _ in 0..DEPTH {
            at.push("d");
            std::fs::create_dir(&at).unwrap();
        }
        let unwanted = [skeleton.join("was-lent"), at.with_file_name("was-lent")];
        for path in &unwanted {
            std::fs::create_dir(path).unwrap();
            std::fs::write(path.join("f"), "").unwrap();
        }
        let file = at.with_file_name("file");
        std::fs::write(&file, "").unwrap();
        remove_unwanted(skeleton, std::slice::from_ref(&at)).unwrap();
        assert!(at.is_dir());
        assert!(!unwanted.iter().any(|path| path.exists()) && !file.exists());
        let own = rustix::process::getuid().as_raw();
        let other = if own == 0 { 4_321 } else { own };
        give_away(skeleton, other).unwrap();
        let owner = std::os::unix::fs::MetadataExt::uid(&at.metadata().unwrap());
        assert_eq!(owner, other);
        let opened = std::fs::File::open(skeleton).unwrap();
        avfs_view::remove_contents(&opened).unwrap();
    }
}
