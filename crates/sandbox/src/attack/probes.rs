//! The attacks, as a command in the sandbox performs them.

use std::ffi::c_long;
use std::fs;
use std::io::{self, Read};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::symlink;
use std::os::unix::net::{SocketAddr as UnixAddress, UnixStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::process::{Resource, getppid, getrlimit};

use super::{Arg, Outcome, Probe, Targets};

/// Files larger than this are not searched.
const SEARCHED_MAX: u64 = 1 << 20;
/// The most files to search.
const FILES_MAX: usize = 300_000;
pub(super) fn run(probe: &Probe, targets: &Targets) -> Outcome {
    match probe {
        Probe::Read(paths) => refused(paths.iter().map(|path| (*path, read_any(Path::new(path))))),
        Probe::Write(paths) => refused(paths.iter().map(|path| (*path, write_any(path)))),
        Probe::Call(number, arguments) => call(*number, arguments),
        Probe::Try(attempt) => attempt(targets),
    }
}

/// Stopped if every attempt was stopped.
fn refused<'a>(attempts: impl Iterator<Item = (&'a str, io::Result<()>)>) -> Outcome {
    let mut answer = "nothing to try".to_owned();
    for (what, done) in attempts {
        match done {
            Ok(()) => return Outcome::Succeeded(what.to_owned()),
            Err(error) => answer = error.to_string(),
        }
    }
    Outcome::Stopped(answer)
}

/// Reads the first byte of a file, or the first name in a directory.
fn read_any(path: &Path) -> io::Result<()> {
    if fs::metadata(path)?.is_dir() {
        return match fs::read_dir(path)?.next() {
            Some(entry) => entry.map(drop),
            None => Err(io::Error::other("it is empty")),
        };
    }
    match fs::File::open(path)?.read(&mut [0])? {
        0 => Err(io::Error::other("it is empty")),
        _ => Ok(()),
    }
}

fn write_any(path: &str) -> io::Result<()> {
    let mut options = fs::File::options();
    // If it can be opened, nothing is truncated or written.
    options.append(true).create(true);
    options.open(path).map(drop)
}

fn call(number: c_long, arguments: &[Arg]) -> Outcome {
    let supervisor = getppid().map_or(0, |pid| pid.as_raw_nonzero().get());
    let mut words = [0; 6];
    for (word, argument) in words.iter_mut().zip(arguments) {
        *word = match argument {
            Arg::Int(number) => c_long::from(*number),
            Arg::Text(text) => text.as_ptr() as c_long,
            Arg::Supervisor => c_long::from(supervisor),
        };
    }
    let [a, b, c, d, e, f] = words;
    // SAFETY: pointers among the arguments are to C strings, which none of these calls writes to
    // when it is refused; one that is not refused is reported, and the process ends soon.
    let result = unsafe { libc::syscall(number, a, b, c, d, e, f) };
    let error = io::Error::last_os_error();
    if result == 0 && number == libc::SYS_clone {
        // The child of a clone that should have failed; the parent reports it.
        std::process::exit(0);
    }
    if result >= 0 {
        return Outcome::Succeeded(format!("it answered {result}"));
    }
    Outcome::Stopped(error.to_string())
}

/// A temporary name in scratch space.
struct Spot(PathBuf);

impl Spot {
    fn new(name: &str) -> Spot {
        let spot = Spot(Path::new("/tmp").join(format!(".avfs-attack-{name}")));
        let _ = fs::remove_file(&spot.0);
        spot
    }
}

impl Drop for Spot {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

fn through_link(target: &str) -> io::Result<()> {
    let spot = Spot::new("link");
    symlink(target, &spot.0)?;
    read_any(&spot.0)
}

pub(super) fn link_to_shadow(_: &Targets) -> Outcome {
    refused([("/etc/shadow", through_link("/etc/shadow"))].into_iter())
}

pub(super) fn links_to_files(targets: &Targets) -> Outcome {
    let attempts = targets.files.iter();
    refused(attempts.map(|path| (path.as_str(), through_link(path))))
}

pub(super) fn through_proc(targets: &Targets) -> Outcome {
    let roots = [
        "/proc/self/root",
        "/proc/thread-self/root",
        "/proc/1/root",
        "/proc/1/cwd",
    ];
    let attempts = targets.files.iter().flat_map(|path| {
        let read = move |root: &str| read_any(Path::new(&format!("{root}{path}")));
        roots.iter().map(move |root| (path.as_str(), read(root)))
    });
    refused(attempts)
}

pub(super) fn upwards(targets: &Targets) -> Outcome {
    let up = format!("/proc/self/cwd{}", "/..".repeat(40));
    let read = |path: &String| read_any(Path::new(&format!("{up}{path}")));
    refused(targets.files.iter().map(|path| (path.as_str(), read(path))))
}

pub(super) fn hard_link(_: &Targets) -> Outcome {
    let link = |path: &str| {
        let spot = Spot::new("hard");
        fs::hard_link(path, &spot.0)
    };
    let paths = ["/usr/bin/env", "/etc/passwd", "/proc/self/exe"];
    refused(paths.iter().map(|path| (*path, link(path))))
}

pub(super) fn overlay_notes(_: &Targets) -> Outcome {
    let spot = Spot::new("notes");
    if let Err(error) = fs::write(&spot.0, "") {
        return Outcome::Stopped(error.to_string());
    }
    let flags = rustix::fs::XattrFlags::empty();
    let set = rustix::fs::setxattr(&spot.0, "trusted.overlay.opaque", b"y", flags);
    refused([("trusted.overlay.opaque", set.map_err(io::Error::from))].into_iter())
}

/// Searches for directories of the overlay that are covered by mounts.
pub(super) fn under_mounts(_: &Targets) -> Outcome {
    let flags = rustix::fs::OFlags::PATH | rustix::fs::OFlags::DIRECTORY;
    let mode = rustix::fs::Mode::empty();
    let attempts = ["/", "/proc/self/root", "/proc/self/cwd", "/tmp/.."].map(|top| {
        let found = rustix::fs::open(top, flags, mode).and_then(|top| {
            let same_mount = rustix::fs::ResolveFlags::NO_XDEV;
            rustix::fs::openat2(top, crate::STAGING_IN, flags, mode, same_mount)
        });
        (top, found.map(drop).map_err(io::Error::from))
    });
    refused(attempts.into_iter())
}

pub(super) fn no_gain(_: &Targets) -> Outcome {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let field = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        line.map(|value| value.trim().to_owned())
            .unwrap_or_default()
    };
    for set in ["CapInh:", "CapPrm:", "CapEff:", "CapBnd:", "CapAmb:"] {
        if !field(set).trim_start_matches('0').is_empty() {
            return Outcome::Succeeded(format!("{set} {}", field(set)));
        }
    }
    match field("NoNewPrivs:").as_str() {
        "1" => Outcome::Stopped("no capabilities, and none can be gained".into()),
        other => Outcome::Succeeded(format!("NoNewPrivs is {other:?}")),
    }
}

pub(super) fn files(targets: &Targets) -> Outcome {
    let read = |path: &String| read_any(Path::new(path));
    refused(targets.files.iter().map(|path| (path.as_str(), read(path))))
}

/// Read-only mounts of the host, which are the same for everyone.
fn lent() -> Vec<PathBuf> {
    let table = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let lent = table.lines().filter_map(|line| {
        let fields: Vec<&str> = line.split(' ').collect();
        let read_only = fields.get(5)?.split(',').any(|option| option == "ro");
        fields.get(4).filter(|_| read_only).map(PathBuf::from)
    });
    lent.filter(|path| !path.starts_with("/etc") && !path.starts_with("/dev"))
        .collect()
}

/// Searches for the token in every file that is not on such a mount.
pub(super) fn search_files(targets: &Targets) -> Outcome {
    let lent = lent();
    let mut directories = vec![PathBuf::from("/")];
    let mut searched = 0;
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(&directory).into_iter().flatten().flatten() {
            let path = entry.path();
            let Ok(kind) = entry.file_type() else {
                continue;
            };
            let hidden = path.starts_with("/proc") || lent.contains(&path);
            if kind.is_dir() && !hidden {
                directories.push(path);
            } else if kind.is_file() && searched < FILES_MAX {
                searched += 1;
                // A directory's entries do not tell what is mounted on them.
                let small = entry
                    .metadata()
                    .is_ok_and(|file| file.is_file() && file.len() <= SEARCHED_MAX);
                if small && holds(&path, &targets.token) {
                    return Outcome::Succeeded(path.display().to_string());
                }
            }
        }
    }
    Outcome::Stopped(format!("not in any of {searched} files"))
}

fn holds(path: &Path, token: &str) -> bool {
    let bytes = fs::read(path).unwrap_or_default();
    let token = token.as_bytes();
    !token.is_empty() && bytes.windows(token.len()).any(|window| window == token)
}

pub(super) fn search_environment(targets: &Targets) -> Outcome {
    match holds(Path::new("/proc/self/environ"), &targets.token) {
        true => Outcome::Succeeded("/proc/self/environ".into()),
        false => Outcome::Stopped("not in it".into()),
    }
}

/// Every visible process.
fn processes() -> Vec<i32> {
    crate::sys::process_ids()
}

pub(super) fn search_processes(targets: &Targets) -> Outcome {
    for pid in processes() {
        for file in ["environ", "cmdline", "comm"] {
            let path = PathBuf::from(format!("/proc/{pid}/{file}"));
            if holds(&path, &targets.token) {
                return Outcome::Succeeded(path.display().to_string());
            }
        }
    }
    Outcome::Stopped(format!("not in any of {} processes", processes().len()))
}

pub(super) fn foreign_processes(_: &Targets) -> Outcome {
    // The agent, its mover and that one's worker, the supervisor, this one, and a shell around it.
    const OWN: usize = 8;
    match processes().len() {
        seen if seen > OWN => Outcome::Succeeded(format!("{seen} processes are seen")),
        seen => Outcome::Stopped(format!("only {seen} of its own are seen")),
    }
}

/// The sources of mounts. The host directory behind `/tmp` is shown by the kernel and cannot be hidden.
pub(super) fn mount_table(targets: &Targets) -> Outcome {
    let table = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let options = table.lines().filter_map(|line| line.split_once(" - "));
    let mut options = options.map(|(_, options)| options);
    match options.find(|options| !targets.home.is_empty() && options.contains(&targets.home)) {
        Some(options) => Outcome::Succeeded(options.to_owned()),
        None => Outcome::Stopped("layers are mounted by descriptor".into()),
    }
}

pub(super) fn known_sockets(_: &Targets) -> Outcome {
    let sockets = [
        "/var/run/docker.sock",
        "/run/docker.sock",
        "/run/containerd/containerd.sock",
        "/run/podman/podman.sock",
        "/run/crio/crio.sock",
        "/run/dbus/system_bus_socket",
        "/run/systemd/private",
        "/run/systemd/journal/socket",
        "/tmp/.X11-unix/X0",
        "/var/run/nscd/socket",
        "/run/snapd.socket",
    ];
    refused(sockets.iter().map(|path| (*path, connect(path))))
}

fn connect(path: &str) -> io::Result<()> {
    UnixStream::connect(path).map(drop)
}

pub(super) fn path_socket(targets: &Targets) -> Outcome {
    refused([(targets.unix.as_str(), connect(&targets.unix))].into_iter())
}

pub(super) fn daemon_socket(targets: &Targets) -> Outcome {
    refused([(targets.daemon.as_str(), connect(&targets.daemon))].into_iter())
}

pub(super) fn abstract_socket(targets: &Targets) -> Outcome {
    let connected = UnixAddress::from_abstract_name(&targets.abstracted)
        .and_then(|address| UnixStream::connect_addr(&address));
    refused([(targets.abstracted.as_str(), connected.map(drop))].into_iter())
}

pub(super) fn tcp_port(targets: &Targets) -> Outcome {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, targets.tcp));
    let connected = TcpStream::connect_timeout(&address, Duration::from_secs(2));
    refused([("the port", connected.map(drop))].into_iter())
}

pub(super) fn descriptors(_: &Targets) -> Outcome {
    let own = |name: &str| name.parse::<i32>().is_ok_and(|number| number <= 2);
    for entry in fs::read_dir("/proc/self/fd")
        .into_iter()
        .flatten()
        .flatten()
    {
        let name = entry.file_name().to_string_lossy().into_owned();
        let target = fs::read_link(entry.path()).unwrap_or_default();
        // One of them is the directory that is being read.
        let reading = target.to_string_lossy().ends_with("/fd");
        if !own(&name) && !reading {
            return Outcome::Succeeded(format!("{name} is {}", target.display()));
        }
    }
    Outcome::Stopped("only its own three".into())
}

pub(super) fn core_dumps(_: &Targets) -> Outcome {
    match getrlimit(Resource::Core).maximum {
        Some(0) => Outcome::Stopped("none exist, and none can be requested".into()),
        most => Outcome::Succeeded(format!("up to {most:?} bytes")),
    }
}

pub(super) fn supervisor_files(_: &Targets) -> Outcome {
    let supervisor = getppid().map_or(0, |pid| pid.as_raw_nonzero().get());
    let paths: Vec<String> = ["mem", "environ", "maps", "fd", "root", "cwd"]
        .iter()
        .map(|file| format!("/proc/{supervisor}/{file}"))
        .collect();
    let attempts = paths.iter();
    refused(attempts.map(|path| (path.as_str(), read_any(Path::new(path)))))
}
