//! What the host supports, found by trying it in separate processes.

mod fuse;
mod layers;

pub use layers::{can_hold_layers, needs_no_trial};
use std::fs::File;
use std::io::Read;
use std::os::fd::AsFd;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::cgroup::{Controller, Host};
use crate::confine::{self, Fence};
use crate::error::{During, Error, Fault, Result};
use crate::keeper::{self, Keeper, KeeperConfig, mount_fuse_detached};
use crate::lend::{build_skeleton, host_etc, host_lent};
use crate::plan::{
    Command, Confinement, Event, ExitStatus, Network, OverlayPlan, Privilege, SandboxPlan, Stdio,
};
use crate::protocol::{Duty, Link, readable_within};
use crate::sandbox::Sandbox;
use crate::seccomp::Filter;
use crate::sys::{self, Forked};

/// How long one trial may take.
const LIMIT: Duration = Duration::from_secs(10);

/// One tried feature.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Probe {
    /// Its name.
    pub name: &'static str,
    /// Whether it works.
    pub outcome: Outcome,
    /// Details.
    pub detail: String,
}

/// Whether something works.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It does.
    Works,
    /// It does not.
    Missing {
        /// Why.
        reason: String,
        /// The command that fixes it, or what to do.
        fix: String,
    },
}

/// A feature that is tried in a separate process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Trial {
    UserNamespace,
    PidNamespace,
    NetNamespace,
    Fuse,
    Landlock,
    Seccomp,
    /// Whether this directory can hold layers.
    Layers(PathBuf),
}

impl Trial {
    const ALL: [Trial; 6] = [
        Trial::UserNamespace,
        Trial::PidNamespace,
        Trial::NetNamespace,
        Trial::Fuse,
        Trial::Landlock,
        Trial::Seccomp,
    ];

    fn name(&self) -> &'static str {
        match self {
            Trial::UserNamespace => "user namespace",
            Trial::PidNamespace => "pid namespace",
            Trial::NetNamespace => "network namespace",
            Trial::Fuse => "FUSE mount",
            Trial::Landlock => "Landlock",
            Trial::Seccomp => "seccomp",
            Trial::Layers(_) => "layer",
        }
    }

    /// The namespaces in which it is tried; without root also a user namespace.
    fn namespaces(&self) -> i32 {
        match self {
            Trial::UserNamespace => libc::CLONE_NEWUSER,
            Trial::PidNamespace => libc::CLONE_NEWPID,
            Trial::NetNamespace => libc::CLONE_NEWNET,
            Trial::Fuse | Trial::Layers(_) => libc::CLONE_NEWNS,
            Trial::Landlock | Trial::Seccomp => 0,
        }
    }

    /// Tries it; returns details.
    fn attempt(&self, privilege: Privilege) -> std::result::Result<String, Fault> {
        match self {
            Trial::UserNamespace => Ok("made, ids mapped".into()),
            Trial::PidNamespace => Ok(format!("made, first process {}", std::process::id())),
            Trial::NetNamespace => {
                sys::loopback_up().during(|| "switch the loopback interface on")?;
                Ok("made, loopback up".into())
            }
            Trial::Fuse => mount_fuse_detached().map(|_| "mounted".into()),
            Trial::Landlock => landlock(),
            Trial::Seccomp => {
                rustix::thread::set_no_new_privs(true).during(|| "set no_new_privs")?;
                Filter::compile()?.apply()?;
                Ok("filter installed".into())
            }
            Trial::Layers(dir) => layers::attempt(dir, privilege),
        }
    }
}

fn landlock() -> std::result::Result<String, Fault> {
    let fence = Fence::new()?;
    rustix::thread::set_no_new_privs(true).during(|| "set no_new_privs")?;
    fence.enter().during(|| "enter a Landlock domain")?;
    match (fence.abi(), fence.bounds_signals()) {
        (0, _) => Err(Fault {
            what: "use Landlock".into(),
            errno: libc::ENOSYS,
        }),
        (abi, true) => Ok(format!("version {abi}")),
        (abi, false) => Ok(format!(
            "version {abi}: signals between commands are not blocked"
        )),
    }
}

/// Runs one trial; in a process executed for it.
pub(crate) fn answer(trial: Trial, control: &Link) {
    let (uid, gid) = (rustix::process::geteuid(), rustix::process::getegid());
    let mut flags = trial.namespaces();
    let privilege = confine::privilege().unwrap_or(Privilege::Root);
    if flags != 0 && privilege == Privilege::User {
        flags |= libc::CLONE_NEWUSER;
    }
    let attempt = || {
        if flags & libc::CLONE_NEWUSER != 0 {
            confine::map_ids((0, uid.as_raw()), (0, gid.as_raw()))?;
        }
        trial.attempt(privilege)
    };
    // SAFETY: this process was executed for the trial and has one thread.
    let outcome = match unsafe { sys::fork(flags) }.during(|| format!("make a {}", trial.name())) {
        Ok(Forked::Child) => {
            let _ = control.send(&attempt(), &[]);
            sys::leave(0);
        }
        Ok(Forked::Parent { .. }) => {
            while !matches!(sys::wait_any(true), sys::Waited::NoChildren) {}
            return;
        }
        Err(fault) => Err::<String, Fault>(fault),
    };
    // The parent may have given up.
    let _ = control.send(&outcome, &[]);
}

/// Tries everything that a sandbox needs, and finally a sandbox. `runtime_dir` is a private directory, `layers_dir` the
/// directory for layers.
pub fn run(runtime_dir: &Path, layers_dir: &Path, binary: &Path) -> Vec<Probe> {
    let mut probes: Vec<Probe> = Trial::ALL
        .into_iter()
        .map(|trial| match ask(trial.clone(), binary) {
            Ok(Ok(detail)) => Probe {
                name: trial.name(),
                outcome: Outcome::Works,
                detail,
            },
            Ok(Err(fault)) => missing(trial.name(), fault.to_string(), fix(&trial, fault.errno)),
            Err(error) => missing(trial.name(), error.to_string(), REPORT.into()),
        })
        .collect();
    let name = format!("doctor-{}", std::process::id());
    let dir = Workshop(runtime_dir.join(&name));
    let layer = Workshop(layers_dir.join(format!("{name}-layer")));
    let name = "overlay over FUSE";
    probes.push(match whole(&dir.0, &layer.0, binary) {
        Ok(detail) => Probe {
            name,
            outcome: Outcome::Works,
            detail,
        },
        Err(error) => {
            let broken = probes.iter().any(|probe| probe.outcome != Outcome::Works);
            let fix = if broken {
                "fix what is missing above first"
            } else {
                REPORT
            };
            missing(name, error.to_string(), fix.into())
        }
    });
    probes.push(Probe {
        name: "limits",
        outcome: Outcome::Works,
        detail: limits(),
    });
    probes
}

/// What enforces limits on this host, and how to get something better.
fn limits() -> String {
    let wanted = [Controller::Memory, Controller::Cpu];
    let places = Host::look().map(|host| host.places(&wanted));
    let by = |controller: Controller| -> Option<&'static str> {
        let (_, place) = places
            .as_ref()
            .ok()?
            .iter()
            .find(|(of, _)| *of == controller)?;
        Some(place.as_ref().ok()?.by().name())
    };
    let exact = by(Controller::Memory);
    let memory = exact.unwrap_or("poll (every 20 to 100 ms)");
    let cpus = by(Controller::Cpu).unwrap_or("cannot be limited");
    let better = match exact {
        Some(_) => "",
        None => {
            "; for exact limits, stop the daemon and run \
             `systemd-run --user --scope -p Delegate=yes avfs serve`"
        }
    };
    format!("memory: {memory}; processes and open files: rlimit; processors: {cpus}{better}")
}

const REPORT: &str = "report this with the text above: nothing on the host explains it";

fn missing(name: &'static str, reason: String, fix: String) -> Probe {
    Probe {
        name,
        outcome: Outcome::Missing { reason, fix },
        detail: String::new(),
    }
}

/// Runs one trial in a process of its own.
fn ask(trial: Trial, binary: &Path) -> Result<std::result::Result<String, Fault>> {
    let (mut child, control) = keeper::spawn(binary, Duty::Probe(trial), |_| ())?;
    let answer = control.answer::<std::result::Result<String, Fault>>(LIMIT);
    let _ = child.kill();
    let _ = child.wait();
    match answer {
        Ok(outcome) => Ok(outcome),
        Err(error) => Err(error.named("trial", Error::KeeperGone, LIMIT)),
    }
}

/// The command that fixes it.
fn fix(trial: &Trial, errno: i32) -> String {
    let setting = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let is = |path: &str, value: &str| setting(path).trim() == value;
    let namespaces = || {
        if is(
            "/proc/sys/kernel/apparmor_restrict_unprivileged_userns",
            "1",
        ) {
            "sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0"
        } else if is("/proc/sys/kernel/unprivileged_userns_clone", "0") {
            "sudo sysctl -w kernel.unprivileged_userns_clone=1"
        } else if is("/proc/sys/user/max_user_namespaces", "0") {
            "sudo sysctl -w user.max_user_namespaces=15000"
        } else {
            "run where user namespaces are allowed; in a container, start it with \
             --security-opt seccomp=unconfined --security-opt apparmor=unconfined"
        }
    };
    match (trial, errno) {
        (Trial::Fuse, libc::ENOENT | libc::ENODEV | libc::ENXIO) => "sudo modprobe fuse",
        (Trial::Fuse, libc::EACCES) => "sudo chmod 666 /dev/fuse",
        (Trial::Landlock, _) => "boot with lsm=landlock in the kernel's command line",
        (Trial::Seccomp, _) => "use a kernel with CONFIG_SECCOMP_FILTER",
        _ => namespaces(),
    }
    .to_owned()
}

/// A directory for the trial of a sandbox, removed with its content.
struct Workshop(PathBuf);

impl Drop for Workshop {
    fn drop(&mut self) {
        // Overlayfs leaves a directory with mode 000 there.
        let open = std::fs::Permissions::from_mode(0o700);
        let _ = std::fs::set_permissions(self.0.join("work/work"), open);
        // What cannot be removed is deleted at the next boot.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Opens a sandbox over a served file system, reads from it and writes to it.
fn whole(dir: &Path, layer: &Path, binary: &Path) -> Result<String> {
    let here = ["", "run", "scratch"].map(|name| dir.join(name));
    for path in here
        .into_iter()
        .chain([layer.join("upper"), layer.join("work")])
    {
        std::fs::DirBuilder::new()
            .mode(0o700)
            .recursive(true)
            .create(&path)
            .during(|| format!("make {path:?}"))?;
    }
    let lent = host_lent();
    build_skeleton(&dir.join("skeleton"), &lent)?;
    let config = KeeperConfig {
        binary: binary.to_owned(),
        runtime_dir: dir.join("run"),
    };
    let keeper = Keeper::start(config)?;
    let lens = keeper.mount_fuse("witness")?;
    let (device, owner) = (lens.fd, lens.owner);
    let server = std::thread::spawn(move || fuse::serve(device, owner));
    let plan = SandboxPlan {
        name: "doctor".into(),
        overlay: Some(OverlayPlan {
            lowers: vec![lens.path, dir.join("skeleton")],
            upper: layer.join("upper"),
            work: layer.join("work"),
        }),
        scratch: dir.join("scratch"),
        lent,
        etc: host_etc("doctor"),
        readonly: false,
        network: Network::None,
        confinement: Confinement::Full,
        staging: "staging".into(),
    };
    let outcome = keeper
        .open_sandbox(&plan, Vec::new())
        .and_then(|sandbox| witness(&sandbox));
    // The file system ends with the keeper, and so does its server.
    keeper.kill();
    let _ = server.join();
    outcome.map(|()| format!("read and written as {:?}", keeper.privilege()).to_lowercase())
}

/// Has a command read the served file and change it.
fn witness(sandbox: &Sandbox) -> Result<()> {
    let text = format!("cat /{0} && echo changed > /{0} && cat /{0}", name());
    let command = Command {
        argv: vec![b"/bin/sh".to_vec(), b"-c".to_vec(), text.into_bytes()],
        env: vec![(b"PATH".to_vec(), b"/usr/bin:/bin".to_vec())],
        cwd: b"/".to_vec(),
        ..Command::default()
    };
    let open = |path| File::options().read(true).write(true).open(path);
    let null = || open("/dev/null").during(|| "open /dev/null");
    let (output, stdout) =
        rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC).during(|| "make a pipe")?;
    let stdio = Stdio {
        stdin: null()?.into(),
        stdout,
        stderr: null()?.into(),
    };
    let running = sandbox.exec(&command, stdio)?;
    let status = loop {
        if !readable_within(running.fd().as_fd(), LIMIT)? {
            return Err(Error::NoAnswer {
                peer: "witness",
                seconds: LIMIT.as_secs(),
            });
        }
        match running.next_event()? {
            None | Some(Event::Begins | Event::Started { .. }) => {}
            Some(Event::Exited { status, .. }) => break status,
            Some(Event::Lost) => return Err(Error::SandboxGone),
            Some(Event::CouldNotStart(failure)) => {
                let what = format!("start a command ({:?})", failure.step).to_lowercase();
                return Err(Fault {
                    what,
                    errno: failure.errno,
                }
                .into());
            }
        }
    };
    let mut text = Vec::new();
    File::from(output)
        .read_to_end(&mut text)
        .during(|| "read a command's output")?;
    if status != ExitStatus::Code(0) || text != [fuse::CONTENT, b"changed\n"].concat() {
        let reason = format!("{status:?}, {:?}", String::from_utf8_lossy(&text));
        return Err(Error::Invalid {
            what: "result of a command over FUSE",
            reason,
        });
    }
    Ok(())
}

fn name() -> String {
    String::from_utf8_lossy(fuse::NAME).into_owned()
}
