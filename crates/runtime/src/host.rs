//! What a sandbox borrows from its host: system directories, toolchains, `/etc`, an environment.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::lchown;
use std::path::{Path, PathBuf};

use avfs_sandbox::{
    EtcContent, EtcFile, Lent, Network, build_skeleton, host_etc, host_lent, toolchains,
};
use avfs_vault::{VaultName, VaultPath};

use crate::engine::layer_owner;
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
    pub path: OsString,
    pub git_name: Option<String>,
    pub git_email: Option<String>,
}

/// The host as sandboxes see it.
pub(crate) struct Host {
    pub lent: Vec<Lent>,
    pub skeleton: PathBuf,
    /// Paths that are the sandbox's or the host's, never the vault's.
    pub mount_points: BTreeSet<VaultPath>,
    /// Directories that every sandbox has: mount points, and the home.
    pub skeleton_paths: BTreeSet<VaultPath>,
    path: Vec<u8>,
    git: Vec<u8>,
}

impl Host {
    pub fn survey(config: &Config) -> Result<Host> {
        let mut lent = host_lent();
        let mut path = Vec::new();
        if let Some(home) = &config.host.user_home {
            for toolchain in toolchains(home, &config.host.path) {
                path.extend_from_slice(toolchain.bin.as_os_str().as_bytes());
                path.push(b':');
                if !lent.contains(&toolchain.lent) {
                    lent.push(toolchain.lent);
                }
            }
        }
        path.extend_from_slice(SYSTEM_PATH.as_bytes());
        let skeleton = prepare_skeleton(config, &lent)?;
        let mut mount_points = BTreeSet::new();
        let inside = lent.iter().map(|lent| lent.inside.as_os_str().as_bytes());
        for point in inside.chain(OWN_MOUNTS.iter().map(|point| point.as_bytes())) {
            mount_points.insert(VaultPath::parse(point)?);
        }
        let mut skeleton_paths = mount_points.clone();
        skeleton_paths.insert(VaultPath::parse(HOME.as_bytes())?);
        Ok(Host {
            lent,
            skeleton,
            mount_points,
            skeleton_paths,
            path,
            git: git_config(&config.host),
        })
    }

    /// The whole of `/etc` in the vault's sandbox.
    pub fn etc(&self, vault: &VaultName, network: Network) -> Vec<EtcFile> {
        let mut files = host_etc(vault.as_str());
        if network == Network::Host {
            lend_resolver(&mut files);
        }
        files.push(EtcFile {
            path: "gitconfig".into(),
            content: EtcContent::Bytes(self.git.clone()),
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

/// The shell of `--shell`: never the caller's own, never a login shell.
pub(crate) fn shell() -> &'static str {
    if Path::new("/bin/bash").exists() {
        "/bin/bash"
    } else {
        "/bin/sh"
    }
}

/// Empty directories for everything that is mounted, and the home: the lowest layer of every view.
fn prepare_skeleton(config: &Config, lent: &[Lent]) -> Result<PathBuf> {
    let skeleton = config.home.join("skeleton");
    let failed = || Error::io(format!("making {}", skeleton.display()));
    // Made anew, because what the host has to lend changes.
    if skeleton.exists() {
        std::fs::remove_dir_all(&skeleton).map_err(failed())?;
    }
    build_skeleton(&skeleton, lent)?;
    let home = skeleton.join(&HOME[1..]);
    std::fs::create_dir_all(&home).map_err(failed())?;
    if let Some(owner) = layer_owner() {
        give_away(&skeleton, owner.uid).map_err(failed())?;
    }
    Ok(skeleton)
}

fn give_away(path: &Path, owner: u32) -> std::io::Result<()> {
    lchown(path, Some(owner), Some(owner))?;
    for item in std::fs::read_dir(path)? {
        let item = item?;
        if item.file_type()?.is_dir() {
            give_away(&item.path(), owner)?;
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
fn git_config(facts: &HostFacts) -> Vec<u8> {
    let mut text = String::from(GIT_STAT);
    if let (Some(name), Some(email)) = (&facts.git_name, &facts.git_email) {
        text += &format!(
            "[user]\n\tname = {}\n\temail = {}\n",
            git_value(name),
            git_value(email)
        );
    }
    text.into_bytes()
}

fn git_value(text: &str) -> String {
    let clean: String = text.chars().filter(|symbol| !symbol.is_control()).collect();
    format!("\"{}\"", clean.replace('\\', "\\\\").replace('"', "\\\""))
}
