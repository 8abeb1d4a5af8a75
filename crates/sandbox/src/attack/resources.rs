//! Attacks on limited resources of the host or its user, and on the scheduling of our own processes.

use std::fs;
use std::io;
use std::os::fd::{FromRawFd, OwnedFd};

use rustix::process::{Resource, getppid, getrlimit};

use super::{Outcome, Targets};

fn number(path: &str) -> Option<u64> {
    fs::read_to_string(path).ok()?.trim().parse().ok()
}

fn answered(result: libc::c_int) -> io::Result<()> {
    match result {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Stopped if every attempt was stopped.
fn refused(attempts: impl Iterator<Item = (String, io::Result<()>)>) -> Outcome {
    let mut answer = "nothing to try".to_owned();
    for (what, done) in attempts {
        match done {
            Ok(()) => return Outcome::Succeeded(what),
            Err(error) => answer = error.to_string(),
        }
    }
    Outcome::Stopped(answer)
}

pub(super) fn reschedule(_: &Targets) -> Outcome {
    let supervisor = getppid().map_or(0, |pid| pid.as_raw_nonzero().get());
    let attempts = [1, supervisor].into_iter().flat_map(|pid| {
        let who = pid.cast_unsigned();
        // SAFETY: the pointers are to live locals of the right types.
        let tried = unsafe {
            let plain = libc::sched_param { sched_priority: 0 };
            let mut one: libc::cpu_set_t = std::mem::zeroed();
            libc::CPU_SET(0, &mut one);
            [
                (
                    "setpriority",
                    answered(libc::setpriority(libc::PRIO_PROCESS, who, 19)),
                ),
                (
                    "sched_setscheduler",
                    answered(libc::sched_setscheduler(
                        pid,
                        libc::SCHED_IDLE,
                        &raw const plain,
                    )),
                ),
                (
                    "sched_setaffinity",
                    answered(libc::sched_setaffinity(
                        pid,
                        size_of_val(&one),
                        &raw const one,
                    )),
                ),
            ]
        };
        tried.map(|(name, done)| (format!("{name} of process {pid}"), done))
    });
    refused(attempts)
}

pub(super) fn terminals(_: &Targets) -> Outcome {
    let entries = fs::read_dir("/dev/terminals").into_iter().flatten();
    let attempts = entries.flatten().map(|entry| {
        let path = entry.path();
        let opened = fs::File::options().read(true).write(true).open(&path);
        (path.display().to_string(), opened.map(drop))
    });
    refused(attempts)
}

pub(super) fn inotify(_: &Targets) -> Outcome {
    let all = number("/proc/sys/fs/inotify/max_user_instances").unwrap_or(128);
    let mut held = Vec::new();
    while (held.len() as u64) < all {
        // SAFETY: makes a descriptor, or does not.
        let fd = unsafe { libc::inotify_init1(libc::IN_CLOEXEC) };
        if fd < 0 {
            break;
        }
        // SAFETY: the descriptor is new.
        held.push(unsafe { OwnedFd::from_raw_fd(fd) });
    }
    let told = format!("{} of {all}", held.len());
    match held.len() as u64 * 2 <= all {
        true => Outcome::Stopped(told),
        false => Outcome::Succeeded(told),
    }
}

pub(super) fn process_ids(_: &Targets) -> Outcome {
    let all = number("/proc/sys/kernel/pid_max").unwrap_or(32_768);
    match getrlimit(Resource::Nproc).maximum {
        Some(most) if most <= all / 4 => Outcome::Stopped(format!("{most} of {all}")),
        most => Outcome::Succeeded(format!("{most:?} of {all}")),
    }
}

pub(super) fn open_files(_: &Targets) -> Outcome {
    match getrlimit(Resource::Nofile).maximum {
        Some(most) if most <= 65_536 => Outcome::Stopped(format!("{most} of each process")),
        most => Outcome::Succeeded(format!("{most:?} of each process")),
    }
}

pub(super) fn spared(_: &Targets) -> Outcome {
    let score = fs::read_to_string("/proc/self/oom_score_adj").unwrap_or_default();
    let score = score.trim();
    match score.parse::<i32>() {
        Ok(number) if number >= 500 => {
            Outcome::Stopped(format!("killed first: oom_score_adj {number}"))
        }
        _ => Outcome::Succeeded(format!("oom_score_adj is {score:?}")),
    }
}
