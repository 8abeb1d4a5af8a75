//! Whom files belong to: in layers, in vaults, and in mounts on the host.

use avfs_sandbox::SANDBOX_UID;
use avfs_view::Owner;

/// Whom layers must belong to, where that is not the caller: as root, the sandbox's own user.
pub(crate) fn layer_owner() -> Option<Owner> {
    rustix::process::geteuid().is_root().then_some(Owner {
        uid: SANDBOX_UID,
        gid: SANDBOX_UID,
    })
}

/// The owner that a vault records for what is created in it.
pub(crate) const STORED_OWNER: Owner = Owner {
    uid: avfs_sandbox::INNER_UID,
    gid: avfs_sandbox::INNER_UID,
};

/// Whoever this daemon runs as.
pub(crate) fn this_user() -> Owner {
    Owner {
        uid: rustix::process::geteuid().as_raw(),
        gid: rustix::process::getegid().as_raw(),
    }
}
