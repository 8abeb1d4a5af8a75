//! Mounts in the host's own mount namespace: making, listing and unmounting.
//!
//! Root mounts directly. For other users `fusermount3` mounts, and passes the FUSE descriptor over a socket.

use std::ffi::OsString;
use std::io::{IoSliceMut, Read};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rustix::fs::{Mode, OFlags, open};
use rustix::io::Errno;
use rustix::mount::{MountAttrFlags, UnmountFlags, unmount as system_unmount};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SocketFlags, SocketType,
    recvmsg, socketpair,
};

use crate::error::{During, Error, Result};
use crate::rootfs::{attach as attach_mount, new_mount, open_mount_point};

const FUSERMOUNT: &str = "fusermount3";
/// Where root says what `fusermount3` may do for others.
const FUSE_CONF: &str = "/etc/fuse.conf";
const ALLOWS_OTHERS: &str = "user_allow_other";
/// The type of our FUSE mounts in the mount table.
const KIND: &str = "fuse.avfs";

/// The source of our overlays in the mount table.
pub(crate) const OVERLAY_SOURCE: &str = "vault";

/// Whether a mount can be written to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MountAccess {
    /// Writable.
    ReadWrite,
    /// Read-only.
    ReadOnly,
}

/// What happens to a mount in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InUse {
    /// It stays, and the call fails.
    Refuse,
    /// It is detached (MNT_DETACH): open files stay usable.
    Detach,
}

/// One line of the mount table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mounted {
    /// The kernel's number of the mount.
    pub id: u64,
    /// Where it is.
    pub dir: PathBuf,
    /// The kind of file system.
    pub kind: String,
    /// The source of the mount.
    pub source: String,
}

impl Mounted {
    /// Whether it looks like one of our mounts.
    pub fn is_ours(&self) -> bool {
        self.kind == KIND || (self.kind == "overlay" && self.source == OVERLAY_SOURCE)
    }
}

/// Who can use a mount of an ordinary user. Whoever it is, file modes hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Audience {
    /// The user who mounts.
    User,
    /// Other users, too. Root's `/etc/fuse.conf` must permit it.
    Others,
}

/// An identifier of this process's mount namespace.
pub fn mount_namespace() -> Result<String> {
    let link = std::fs::read_link("/proc/self/ns/mnt").during(|| "read /proc/self/ns/mnt")?;
    Ok(link.to_string_lossy().into_owned())
}

/// Mounts a FUSE file system at `dir`: for this user alone, or as root for everybody whom the file modes allow. Returns
/// its only descriptor.
pub fn mount_fuse(dir: &Path, access: MountAccess, audience: Audience) -> Result<OwnedFd> {
    if rustix::process::geteuid().is_root() {
        return mount_fuse_as_root(dir, access);
    }
    if audience == Audience::Others {
        check_others_are_allowed(Path::new(FUSE_CONF))?;
    }
    let (ours, theirs) = socketpair(
        AddressFamily::UNIX,
        SocketType::STREAM,
        SocketFlags::CLOEXEC,
        None,
    )
    .during(|| "make a socket pair")?;
    let write = match access {
        MountAccess::ReadWrite => "rw",
        MountAccess::ReadOnly => "ro",
    };
    let others = match audience {
        Audience::Others => ",allow_other",
        Audience::User => "",
    };
    let options =
        format!("{write},nosuid,nodev,default_permissions,fsname=avfs,subtype=avfs{others}");
    let mut command = Command::new(FUSERMOUNT);
    command.args(["-o", &options, "--"]).arg(dir);
    // Its end of the socket is its standard input.
    command.env("_FUSE_COMMFD", "0").stdin(Stdio::from(theirs));
    run(&mut command)?;
    // Closes our copy of the command's end of the socket.
    drop(command);
    receive(&ours)
}

/// Without this line `fusermount3` refuses, in words that name no remedy.
fn check_others_are_allowed(conf: &Path) -> Result<()> {
    let text = std::fs::read_to_string(conf).unwrap_or_default();
    match text.lines().any(|line| line.trim() == ALLOWS_OTHERS) {
        true => Ok(()),
        false => Err(Error::Invalid {
            what: "option --allow-other",
            reason: format!("{} has no line {ALLOWS_OTHERS}", conf.display()),
        }),
    }
}

fn mount_fuse_as_root(dir: &Path, access: MountAccess) -> Result<OwnedFd> {
    let device = open("/dev/fuse", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())
        .during(|| "open /dev/fuse")?;
    let number = device.as_raw_fd().to_string();
    let options = [
        ("source", "avfs"),
        ("subtype", "avfs"),
        ("fd", &number),
        ("rootmode", "40000"),
        ("user_id", "0"),
        ("group_id", "0"),
    ];
    let mut attributes = MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NODEV;
    if access == MountAccess::ReadOnly {
        attributes |= MountAttrFlags::MOUNT_ATTR_RDONLY;
    }
    let mount = new_mount(
        "fuse",
        &options,
        &["default_permissions", "allow_other"],
        attributes,
    )?;
    attach(&mount, dir)?;
    Ok(device)
}

pub use crate::shared_mount::clone_mount;

/// Attaches a detached mount.
pub fn attach(mount: &OwnedFd, dir: &Path) -> Result<()> {
    Ok(attach_mount(mount.as_fd(), open_mount_point(dir)?.as_fd())?)
}

/// Unmounts `dir`.
pub fn unmount(dir: &Path, in_use: InUse) -> Result<()> {
    if rustix::process::geteuid().is_root() {
        let flags = match in_use {
            InUse::Refuse => UnmountFlags::NOFOLLOW,
            InUse::Detach => UnmountFlags::NOFOLLOW | UnmountFlags::DETACH,
        };
        return Ok(system_unmount(dir, flags).during(|| format!("unmount {dir:?}"))?);
    }
    let mut command = Command::new(FUSERMOUNT);
    command.arg("-u");
    if in_use == InUse::Detach {
        command.arg("-z");
    }
    command.arg("--").arg(dir).stdin(Stdio::null());
    match run(&mut command) {
        Err(Error::Refused { said, .. }) if said.contains("busy") => {
            let what = format!("unmount {dir:?}");
            let errno = Errno::BUSY.raw_os_error();
            Err(crate::Fault { what, errno }.into())
        }
        done => done,
    }
}

/// The topmost mount at `dir`, if it is a mount point.
pub fn mounted_at(dir: &Path) -> Result<Option<Mounted>> {
    let table = mount_table()?;
    Ok(table.into_iter().rfind(|mount| mount.dir == dir))
}

/// FUSE mounts of ours without a server: any access fails.
pub fn dead_mounts() -> Result<Vec<Mounted>> {
    let ours = mount_table()?.into_iter();
    let ours = ours.filter(|mount| mount.kind == KIND);
    Ok(ours.filter(|mount| is_dead(&mount.dir)).collect())
}

/// Whether the mount at `dir` has no server.
pub fn is_dead(dir: &Path) -> bool {
    matches!(
        rustix::fs::stat(dir),
        Err(Errno::NOTCONN | Errno::CONNABORTED)
    )
}

fn mount_table() -> Result<Vec<Mounted>> {
    let mut table = Vec::new();
    let path = "/proc/self/mountinfo";
    std::fs::File::open(path)
        .and_then(|mut file| file.read_to_end(&mut table))
        .during(|| format!("read {path}"))?;
    let lines = table.split(|&byte| byte == b'\n');
    Ok(lines.filter_map(parse).collect())
}

fn parse(line: &[u8]) -> Option<Mounted> {
    let text = |word: &[u8]| String::from_utf8_lossy(word).into_owned();
    let mut words = line.split(|&byte| byte == b' ');
    let id = text(words.next()?).parse().ok()?;
    let dir = unescape(words.nth(3)?);
    let mut words = words.skip_while(|word| *word != b"-").skip(1);
    Some(Mounted {
        id,
        dir: PathBuf::from(OsString::from_vec(dir)),
        kind: text(words.next()?),
        source: text(words.next()?),
    })
}

/// Blanks and backslashes are octal escapes in the table.
fn unescape(word: &[u8]) -> Vec<u8> {
    let mut plain = Vec::with_capacity(word.len());
    let mut rest = word;
    while let Some((&first, after)) = rest.split_first() {
        let digits = after.get(..3).filter(|_| first == b'\\');
        let code = digits
            .and_then(|digits| std::str::from_utf8(digits).ok())
            .and_then(|digits| u8::from_str_radix(digits, 8).ok());
        plain.push(code.unwrap_or(first));
        rest = if code.is_some() { &after[3..] } else { after };
    }
    plain
}

fn run(command: &mut Command) -> Result<()> {
    let output = match command
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .output()
    {
        Ok(output) => output,
        Err(error) if is_missing(&error) => {
            return Err(Error::NoProgram {
                program: FUSERMOUNT,
                package: "fuse3",
            });
        }
        Err(error) => Err(error).during(|| format!("run {FUSERMOUNT}"))?,
    };
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let said = said.trim();
    let said = said.strip_prefix("fusermount3: ").unwrap_or(said);
    Err(Error::Refused {
        program: FUSERMOUNT,
        said: said.to_owned(),
    })
}

/// Whether a program could not be run because it is not installed. If a directory of PATH cannot be searched, the error
/// of a program that is nowhere is "Permission denied".
fn is_missing(error: &std::io::Error) -> bool {
    use std::io::ErrorKind;
    match error.kind() {
        ErrorKind::NotFound => true,
        ErrorKind::PermissionDenied => {
            let path = std::env::var_os("PATH").unwrap_or_default();
            !std::env::split_paths(&path).any(|dir| dir.join(FUSERMOUNT).is_file())
        }
        _ => false,
    }
}

/// Receives the descriptor from `fusermount3`.
fn receive(socket: &OwnedFd) -> Result<OwnedFd> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0];
    recvmsg(
        socket,
        &mut [IoSliceMut::new(&mut byte)],
        &mut ancillary,
        RecvFlags::CMSG_CLOEXEC,
    )
    .during(|| format!("hear from {FUSERMOUNT}"))?;
    for message in ancillary.drain() {
        if let RecvAncillaryMessage::ScmRights(mut passed) = message
            && let Some(device) = passed.next()
        {
            return Ok(device);
        }
    }
    Err(Error::Malformed {
        peer: FUSERMOUNT,
        reason: "no descriptor came with it",
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::ffi::OsStrExt;

    #[test]
    fn lines_of_the_mount_table_are_understood() {
        let line =
            br"36 35 98:0 /mnt1 /a\040b\134c rw,noatime master:1 - fuse.avfs avfs rw,user_id=0";
        let mounted = parse(line).unwrap();
        assert_eq!(mounted.dir.as_os_str().as_bytes(), br"/a b\c");
        assert_eq!((mounted.id, mounted.kind.as_str()), (36, KIND));
        assert_eq!(mounted.source, "avfs");
        assert_eq!(parse(b""), None);
        assert_eq!(unescape(br"\04"), br"\04");
    }

    #[test]
    fn others_are_allowed_by_a_line_of_its_own() {
        let dir = tempfile::tempdir().unwrap();
        let conf = dir.path().join("fuse.conf");
        assert!(check_others_are_allowed(&conf).is_err());
        for (text, allows) in [
            ("# user_allow_other\n", false),
            ("mount_max = 1000\nuser_allow_others\n", false),
            ("mount_max = 1000\n user_allow_other \n", true),
        ] {
            std::fs::write(&conf, text).unwrap();
            assert_eq!(check_others_are_allowed(&conf).is_ok(), allows, "{text}");
        }
        std::fs::write(&conf, "").unwrap();
        let refused = check_others_are_allowed(&conf).unwrap_err().to_string();
        assert!(refused.contains("user_allow_other"), "{refused}");
    }
}
