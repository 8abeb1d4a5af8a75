//! Control groups: where one can be made for a command, and the groups of a command.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rustix::fs::{Access, access};

use crate::error::{During, Fault};
use crate::limits::{Limit, Limits, Mechanism};

/// The prefix of a group's name; the id of the process that made it and a number follow.
const PREFIX: &str = "avfs-";
/// The prefix of the name of a group around a keeper.
const PREFIX_OF_ALL: &str = "avfs-all-";
/// The period of the processor quota, in microseconds.
const PERIOD: u64 = 100_000;
/// How long killed processes may keep a group busy.
const BURIAL: Duration = Duration::from_secs(10);

/// What a control group can limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Controller {
    Memory,
    Pids,
    Cpu,
}

impl Controller {
    fn name(self) -> &'static str {
        match self {
            Controller::Memory => "memory",
            Controller::Pids => "pids",
            Controller::Cpu => "cpu",
        }
    }

    pub(crate) fn limit(self) -> Limit {
        match self {
            Controller::Memory => Limit::Memory,
            Controller::Pids => Limit::Pids,
            Controller::Cpu => Limit::Cpus,
        }
    }

    /// The files to write, and whether each must exist.
    fn settings(self, by: Mechanism, limits: &Limits) -> Vec<(&'static str, String, bool)> {
        let memory = limits.memory_bytes.unwrap_or(u64::MAX).to_string();
        let pids = limits.pids.unwrap_or(u32::MAX).to_string();
        let quota = ((limits.cpus.unwrap_or(0.0) * PERIOD as f64) as u64).max(1000);
        match (self, by) {
            (Controller::Memory, Mechanism::CgroupV2) => vec![
                ("memory.max", memory, true),
                ("memory.swap.max", "0".into(), false),
            ],
            (Controller::Memory, _) => vec![
                ("memory.limit_in_bytes", memory.clone(), true),
                ("memory.memsw.limit_in_bytes", memory, false),
            ],
            (Controller::Pids, _) => vec![("pids.max", pids, true)],
            (Controller::Cpu, Mechanism::CgroupV2) => {
                vec![("cpu.max", format!("{quota} {PERIOD}"), true)]
            }
            (Controller::Cpu, _) => vec![
                ("cpu.cfs_period_us", PERIOD.to_string(), true),
                ("cpu.cfs_quota_us", quota.to_string(), true),
            ],
        }
    }
}

/// A directory in which a group can be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CgroupDir {
    dir: PathBuf,
    by: Mechanism,
}

impl CgroupDir {
    pub(crate) fn new(dir: PathBuf, by: Mechanism) -> CgroupDir {
        CgroupDir { dir, by }
    }

    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }

    pub(crate) fn by(&self) -> Mechanism {
        self.by
    }

    /// Whether groups made here have a controller; enables it if possible.
    pub(crate) fn offers(&self, controller: Controller) -> bool {
        offers(&self.dir, controller)
    }
}

/// The control groups that this process is in.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Host {
    /// Controllers that have their own hierarchy (v1).
    apart: BTreeMap<Controller, PathBuf>,
    /// The unified hierarchy (v2): its mount point and this process's group.
    unified: Option<(PathBuf, PathBuf)>,
}

impl Host {
    /// Reads the groups of this process.
    pub(crate) fn look() -> Result<Host, Fault> {
        let read = |path: &str| fs::read_to_string(path).during(|| format!("read {path}"));
        Ok(Host::parse(
            &read("/proc/self/mountinfo")?,
            &read("/proc/self/cgroup")?,
        ))
    }

    fn parse(mounts: &str, memberships: &str) -> Host {
        let mut host = Host::default();
        for line in mounts.lines() {
            let Some((mount, system)) = line.split_once(" - ") else {
                continue;
            };
            let mount: Vec<&str> = mount.split(' ').collect();
            let system: Vec<&str> = system.split(' ').collect();
            let (&[_, _, _, root, point, ..], &[kind, _, options, ..]) = (&mount[..], &system[..])
            else {
                continue;
            };
            let options: Vec<&str> = options.split(',').collect();
            let own = |path: &str| {
                let below = Path::new(path).strip_prefix(root).unwrap_or(Path::new(""));
                Path::new(point).join(below)
            };
            for membership in memberships.lines() {
                let parts: Vec<&str> = membership.splitn(3, ':').collect();
                let &[_, controllers, path] = &parts[..] else {
                    continue;
                };
                if kind == "cgroup2" && controllers.is_empty() {
                    host.unified = Some((point.into(), own(path)));
                }
                for controller in [Controller::Memory, Controller::Pids, Controller::Cpu] {
                    let has = |mut names: std::slice::Iter<'_, &str>| {
                        names.any(|name| *name == controller.name())
                    };
                    let listed: Vec<&str> = controllers.split(',').collect();
                    if kind == "cgroup" && has(options.iter()) && has(listed.iter()) {
                        host.apart.insert(controller, own(path));
                    }
                }
            }
        }
        host
    }

    /// Where a new group can have each of these controllers, or why it cannot.
    pub(crate) fn places(
        &self,
        wanted: &[Controller],
    ) -> Vec<(Controller, Result<CgroupDir, String>)> {
        let unified = self.unified_place(wanted);
        let place = |controller: Controller| {
            if let Some(dir) = &unified
                && offers(dir, controller)
            {
                let (dir, by) = (dir.clone(), Mechanism::CgroupV2);
                return Ok(CgroupDir { dir, by });
            }
            let (dir, by) = (self.apart.get(&controller).cloned(), Mechanism::CgroupV1);
            dir.map(|dir| CgroupDir { dir, by }).ok_or_else(|| {
                let name = controller.name();
                format!("this user has no delegated control group with the {name} controller")
            })
        };
        wanted
            .iter()
            .map(|controller| (*controller, place(*controller)))
            .collect()
    }

    /// The smallest memory limit of the groups around this process.
    pub(crate) fn memory_limit(&self) -> u64 {
        let limit = |file: PathBuf| -> Option<u64> {
            let text = fs::read_to_string(file).ok()?;
            text.trim().parse().ok()
        };
        let unified = self.unified.iter().flat_map(|(top, own)| {
            let around = own.ancestors().take_while(move |dir| dir.starts_with(top));
            around.filter_map(move |dir| limit(dir.join("memory.max")))
        });
        let apart = self.apart.get(&Controller::Memory);
        let apart = apart.and_then(|dir| limit(dir.join("memory.limit_in_bytes")));
        unified.chain(apart).min().unwrap_or(u64::MAX)
    }

    /// The nearest group around this process that has the most of the wanted controllers.
    ///
    /// Moving a process between groups needs write access to their common ancestor.
    fn unified_place(&self, wanted: &[Controller]) -> Option<PathBuf> {
        let (top, own) = self.unified.as_ref()?;
        let mut best: Option<(usize, PathBuf)> = None;
        for dir in own.ancestors().take_while(|dir| dir.starts_with(top)) {
            if access(dir.join("cgroup.procs"), Access::WRITE_OK).is_err() {
                continue;
            }
            let offered = wanted
                .iter()
                .filter(|controller| offers(dir, **controller))
                .count();
            if offered > best.as_ref().map_or(0, |(most, _)| *most) {
                best = Some((offered, dir.to_owned()));
            }
        }
        best.map(|(_, dir)| dir)
    }
}

/// Whether the groups in `dir` have a controller; enables it if possible.
fn offers(dir: &Path, controller: Controller) -> bool {
    let file = dir.join("cgroup.subtree_control");
    let has = || {
        let given = fs::read_to_string(&file).unwrap_or_default();
        given
            .split_whitespace()
            .any(|name| name == controller.name())
    };
    // The kernel refuses it if the group itself has processes, or belongs to another user.
    has() || (fs::write(&file, format!("+{}", controller.name())).is_ok() && has())
}

/// The control groups of one command, one for each hierarchy; removed when dropped.
#[derive(Debug, Default)]
pub(crate) struct Group {
    dirs: Vec<(PathBuf, OwnedFd)>,
    /// The file that counts OOM kills.
    kills: Option<PathBuf>,
}

impl Group {
    /// Makes the group at `place` if it does not exist, and sets its limits.
    pub(crate) fn hold(
        &mut self,
        place: &CgroupDir,
        controller: Controller,
        limits: &Limits,
    ) -> Result<Mechanism, String> {
        let reason = |path: &Path, error: io::Error| format!("{}: {error}", path.display());
        let known = self
            .dirs
            .iter()
            .find(|(dir, _)| dir.parent() == Some(&place.dir));
        let dir = match known {
            Some((dir, _)) => dir.clone(),
            None => {
                let dir = place.dir.join(name());
                sweep(&place.dir);
                fs::create_dir(&dir).map_err(|error| reason(&dir, error))?;
                let file = dir.join("cgroup.procs");
                let door = File::options()
                    .write(true)
                    .create(true)
                    .truncate(false)
                    .open(&file);
                match door {
                    Ok(door) => self.dirs.push((dir.clone(), door.into())),
                    Err(error) => {
                        let _ = fs::remove_dir(&dir);
                        return Err(reason(&file, error));
                    }
                }
                dir
            }
        };
        for (file, value, required) in controller.settings(place.by, limits) {
            let file = dir.join(file);
            match fs::write(&file, value) {
                Err(error) if required => return Err(reason(&file, error)),
                _ => {}
            }
        }
        if controller == Controller::Memory {
            let file = match place.by {
                Mechanism::CgroupV2 => "memory.events",
                _ => "memory.oom_control",
            };
            self.kills = Some(dir.join(file));
        }
        Ok(place.by)
    }

    /// A process that writes "0" to each of these is in the group.
    pub(crate) fn doors(&self) -> Vec<BorrowedFd<'_>> {
        self.dirs.iter().map(|(_, door)| door.as_fd()).collect()
    }

    /// Whether a process in it was killed for exceeding its memory.
    pub(crate) fn ran_out_of_memory(&self) -> bool {
        self.kills.as_deref().is_some_and(|file| kills(file) > 0)
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        bury(self.dirs.drain(..).map(|(dir, _)| dir).collect());
    }
}

/// How many processes of a group were OOM-killed, according to this file.
pub(crate) fn kills(file: &Path) -> u64 {
    let counts = fs::read_to_string(file).unwrap_or_default();
    let count = counts
        .lines()
        .find_map(|line| line.strip_prefix("oom_kill "));
    count
        .and_then(|count| count.trim().parse().ok())
        .unwrap_or(0)
}

/// Removes groups, inner ones first, as soon as they have no processes.
pub(crate) fn bury(mut dirs: Vec<PathBuf>) {
    remove(&mut dirs);
    if !dirs.is_empty() {
        // Their processes are being killed; the caller does not wait for that.
        std::thread::spawn(move || {
            let deadline = Instant::now() + BURIAL;
            while !dirs.is_empty() && Instant::now() < deadline {
                std::thread::sleep(Duration::from_millis(5));
                remove(&mut dirs);
            }
        });
    }
}

/// Removes the groups without processes; the others stay in the list.
fn remove(dirs: &mut Vec<PathBuf>) {
    dirs.retain(|dir| {
        let error = fs::remove_dir(dir).err().map(|error| error.kind());
        error == Some(io::ErrorKind::ResourceBusy)
    });
}

/// A name that no other group of any process has.
fn name() -> String {
    unique(PREFIX)
}

/// A name for the control group of a keeper and all its sandboxes, which no other group has.
pub(crate) fn name_of_all() -> String {
    unique(PREFIX_OF_ALL)
}

fn unique(prefix: &str) -> String {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    format!("{prefix}{}-{number}", std::process::id())
}

/// Removes groups of processes that no longer exist.
pub(crate) fn sweep(dir: &Path) {
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let name = name.to_str().unwrap_or_default();
        let around_keeper = name.strip_prefix(PREFIX_OF_ALL);
        let owner = around_keeper.or_else(|| name.strip_prefix(PREFIX));
        let owner = owner.and_then(|rest| rest.split_once('-'));
        if let Some((pid, _)) = owner
            && pid.parse::<u32>().is_ok()
            && !Path::new("/proc").join(pid).exists()
        {
            let inner = fs::read_dir(entry.path()).into_iter().flatten().flatten();
            for inner in inner.filter(|_| around_keeper.is_some()) {
                let _ = fs::remove_dir(inner.path());
            }
            // A group with processes stays.
            let _ = fs::remove_dir(entry.path());
        }
    }
}

#[cfg(test)]
mod tests;
