//! Dropping privileges: ids, capabilities, user namespaces, and the Landlock domain of each exec.

use std::fs;
use std::io::Write;
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};

use landlock::{
    ABI, Access, AccessFs, PathBeneath, PathFd, Ruleset, RulesetAttr, RulesetCreated,
    RulesetCreatedAttr, Scope,
};
use rustix::io::Errno;
use rustix::process::{DumpableBehavior, Gid, Uid, geteuid, set_dumpable_behavior};
use rustix::thread::{
    CapabilitySet, CapabilitySets, UnshareFlags, capabilities, clear_ambient_capability_set,
    set_capabilities, set_keep_capabilities, set_no_new_privs, set_thread_groups,
    set_thread_res_gid, set_thread_res_uid, unshare_unsafe,
};

use crate::error::{During, Fault};
use crate::plan::{Privilege, SANDBOX_UID};
use crate::sys;

const NESTED: &str = "/proc/sys/user/max_user_namespaces";

/// With which privilege this process can make sandboxes.
pub(crate) fn privilege() -> Result<Privilege, Fault> {
    if !geteuid().is_root() {
        return Ok(Privilege::User);
    }
    let map = fs::read_to_string("/proc/self/uid_map").during(|| "read /proc/self/uid_map")?;
    let mut numbers = map.split_whitespace();
    let outer_root = (numbers.next(), numbers.next()) == (Some("0"), Some("0"));
    let initial = outer_root && numbers.next() == Some("4294967295");
    let held = capabilities(None)
        .during(|| "read its capabilities")?
        .effective;
    match (
        outer_root,
        initial && held.contains(CapabilitySet::SYS_ADMIN),
    ) {
        (_, true) => Ok(Privilege::Root),
        // Root in a container only: an ordinary user outside.
        (false, false) => Ok(Privilege::User),
        (true, false) => Err(Fault {
            what: "separate commands from root: it is uid 0 without CAP_SYS_ADMIN".into(),
            errno: libc::EPERM,
        }),
    }
}

/// Maps one uid and one gid, each (inside, outside), in this process's new user namespace.
pub(crate) fn map_ids(uid: (u32, u32), gid: (u32, u32)) -> Result<(), Fault> {
    put("/proc/self/setgroups", "deny")?;
    put("/proc/self/uid_map", &format!("{} {} 1", uid.0, uid.1))?;
    put("/proc/self/gid_map", &format!("{} {} 1", gid.0, gid.1))
}

/// Changes from host root to the sandbox user, who is `inside` in a new user namespace.
pub(crate) fn leave_root(inside: u32) -> Result<(), Fault> {
    let (uid, gid) = (Uid::from_raw(SANDBOX_UID), Gid::from_raw(SANDBOX_UID));
    set_thread_groups(&[]).during(|| "leave root's groups")?;
    set_thread_res_gid(gid, gid, gid).during(|| "change its gid")?;
    // Where only privileged processes may make user namespaces, this needs root's capabilities.
    set_keep_capabilities(true).during(|| "keep capabilities while it changes its uid")?;
    set_thread_res_uid(uid, uid, uid).during(|| "change its uid")?;
    let permitted = capabilities(None)
        .during(|| "read its capabilities")?
        .permitted;
    let kept = CapabilitySets {
        effective: permitted,
        permitted,
        inheritable: CapabilitySet::empty(),
    };
    set_capabilities(None, kept).during(|| "keep capabilities while it changes its uid")?;
    // SAFETY: a new user namespace leaves memory and descriptors as they are.
    unsafe { unshare_unsafe(UnshareFlags::NEWUSER) }.during(|| "make a user namespace")?;
    // After a change of uid a process is not dumpable and could not write its own maps.
    set_dumpable_behavior(DumpableBehavior::Dumpable).during(|| "own its /proc files")?;
    map_ids((inside, SANDBOX_UID), (inside, SANDBOX_UID))
}

/// Drops every capability but `kept`, and makes this process non-dumpable.
pub(crate) fn renounce_but(kept: CapabilitySet) -> Result<(), Fault> {
    clear_ambient_capability_set().during(|| "drop ambient capabilities")?;
    sys::empty_bounding_set().during(|| "empty the capability bounding set")?;
    use_of(kept, kept).during(|| "drop its capabilities")?;
    set_no_new_privs(true).during(|| "set no_new_privs")?;
    set_dumpable_behavior(DumpableBehavior::NotDumpable).during(|| "become undumpable")
}

/// Makes the capabilities `used` effective, and keeps `held` permitted.
pub(crate) fn use_of(used: CapabilitySet, held: CapabilitySet) -> Result<(), Errno> {
    let sets = CapabilitySets {
        effective: used,
        permitted: held,
        inheritable: CapabilitySet::empty(),
    };
    set_capabilities(None, sets)
}

/// Whether this process could make a user namespace.
pub(crate) fn nested_user_namespaces() -> Result<bool, Fault> {
    let limit = fs::read_to_string(NESTED).during(|| format!("read {NESTED}"))?;
    Ok(limit.trim() != "0")
}

/// The first Landlock version that can allow moving files between directories.
const MOVES: u32 = 2;
/// The first Landlock version that scopes signals.
const SCOPES: u32 = 6;
/// The first Landlock version that writes refusals to the audit log, and can be told not to.
const LOGS: u32 = 7;

/// A new Landlock domain.
///
/// A process inside can neither signal nor trace nor reach the abstract sockets of a process
/// outside; a process in an enclosing domain can signal all that are inside.
pub(crate) struct Fence {
    ruleset: Option<OwnedFd>,
    abi: u32,
}

impl Fence {
    /// Prepares it. Without Landlock in the kernel it restricts nothing, and its version is 0.
    pub(crate) fn new() -> Result<Fence, Fault> {
        let abi = sys::landlock_abi();
        if abi < MOVES {
            return Ok(Fence {
                ruleset: None,
                abi: 0,
            });
        }
        let fault = |reason: String| Fault {
            what: format!("prepare Landlock ({reason})"),
            errno: libc::EINVAL,
        };
        let top = PathFd::new("/").map_err(|error| fault(error.to_string()))?;
        let build = || -> Result<RulesetCreated, landlock::RulesetError> {
            // A ruleset must handle some right: making devices is refused anyway. Moving files between directories is denied
            // unless it is allowed explicitly.
            let bounded = AccessFs::MakeChar | AccessFs::MakeBlock | AccessFs::Refer;
            Ruleset::default()
                .handle_access(bounded)?
                .scope(Scope::from_all(ABI::V6))?
                .create()?
                .add_rule(PathBeneath::new(top, AccessFs::Refer))
        };
        let ruleset = build().map_err(|error| fault(error.to_string()))?;
        Ok(Fence {
            ruleset: ruleset.into(),
            abi,
        })
    }

    /// Puts this process and all its later children into the domain, irrevocably.
    pub(crate) fn enter(&self) -> Result<(), Errno> {
        match &self.ruleset {
            // A supervisor's `kill(-1)` tries every process, so most refusals are expected.
            Some(ruleset) => sys::enter_landlock_domain(ruleset.as_fd(), self.abi >= LOGS),
            None => Ok(()),
        }
    }

    /// The Landlock version in force; 0 for none.
    pub(crate) fn abi(&self) -> u32 {
        self.abi
    }

    /// Whether signals are scoped.
    pub(crate) fn bounds_signals(&self) -> bool {
        self.abi >= SCOPES
    }

    /// The descriptor that must stay open until it is entered.
    pub(crate) fn descriptor(&self) -> Option<RawFd> {
        self.ruleset.as_ref().map(AsRawFd::as_raw_fd)
    }
}

pub(crate) fn put(path: &str, text: &str) -> Result<(), Fault> {
    // These files must be written in one write call.
    fs::OpenOptions::new()
        .write(true)
        .open(path)
        .and_then(|mut file| file.write_all(text.as_bytes()))
        .during(|| format!("write {text:?} to {path}"))
}
