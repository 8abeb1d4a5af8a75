//! Mounts.

use super::failure::Failure;
use super::items;
use super::transfer::host_path_if_any;
use super::{Ask, Reply, parse, parse_vault};
use crate::wire::{
    Commit, CommitItem, Mount, MountDriverWord, MountItem, MountListing, Mounts, Unmount,
    UnmountListing, UnmountedItem, to_text,
};
use avfs_runtime::{
    Audience, InUse, MountAccess, MountDriver, MountInfo, MountRequest, Select, UnmountTarget,
    Unmounted,
};
use std::os::unix::ffi::OsStringExt;
use std::time::Duration;

pub(crate) fn commit(ask: &Ask, vault: Select, _: Commit) -> Reply<Commit> {
    let report = ask.session.commit(vault)?;
    Ok(CommitItem {
        vault: report.vault.to_string(),
        version: report.version,
        changes_total: report.changes.total,
        changes_truncated: report.changes.is_truncated(),
        changed_files: report.changes.listed.iter().map(items::change).collect(),
        skipped: report.skipped.into_iter().map(items::skipped).collect(),
    })
}

pub(crate) fn mount(ask: &Ask, vault: Select, request: Mount) -> Reply<Mount> {
    let dir = host_path_if_any(request.dir.as_ref(), request.dir_b64.as_ref())?;
    if request.autocommit_s == Some(0) {
        return Err(Failure::invalid("autocommit needs at least one second"));
    }
    let info = ask.session.mount(MountRequest {
        vault,
        dir,
        access: if request.readonly {
            MountAccess::ReadOnly
        } else {
            MountAccess::ReadWrite
        },
        at: request.at.as_deref().map(parse).transpose()?,
        driver: request.driver.map(|word| match word {
            MountDriverWord::Overlay => MountDriver::Overlay,
            MountDriverWord::Fuse => MountDriver::Fuse,
        }),
        autocommit: request.autocommit_s.map(Duration::from_secs),
        audience: match request.allow_other {
            true => Audience::Others,
            false => Audience::User,
        },
        namespace: request.mount_namespace,
    })?;
    Ok(item(info))
}

pub(crate) fn mounts(ask: &Ask, _: Mounts) -> Reply<Mounts> {
    let mut mounts = ask.session.mounts()?;
    mounts.retain(|info| ask.caller.grant.reaches(&info.vault));
    Ok(MountListing {
        mounts: mounts.into_iter().map(item).collect(),
    })
}

pub(crate) fn unmount(ask: &Ask, request: Unmount) -> Reply<Unmount> {
    let dir = host_path_if_any(request.dir.as_ref(), request.dir_b64.as_ref())?;
    let target = match (dir, &request.vault, request.all) {
        (Some(dir), None, false) => UnmountTarget::Dir(dir),
        (None, Some(vault), false) => UnmountTarget::Vault(parse_vault(vault)?),
        (None, None, true) => UnmountTarget::All,
        _ => return Err(Failure::invalid("name a directory, a vault, or all")),
    };
    let in_use = if request.force {
        InUse::Detach
    } else {
        InUse::Refuse
    };
    let unmounted = ask.session.unmount(target, in_use)?;
    Ok(UnmountListing {
        unmounted: unmounted.into_iter().map(unmounted_item).collect(),
    })
}

/// The vaults whose mounts a request would unmount.
pub(crate) fn vaults_of(ask: &Ask, request: &Unmount) -> Result<Vec<String>, Failure> {
    if let Some(vault) = &request.vault {
        return Ok(vec![vault.clone()]);
    }
    let dir = host_path_if_any(request.dir.as_ref(), request.dir_b64.as_ref())?;
    let mut mounts = ask.session.mounts()?;
    mounts.retain(|info| dir.as_ref().is_none_or(|dir| info.dir == *dir));
    Ok(mounts.iter().map(|info| info.vault.to_string()).collect())
}

fn item(info: MountInfo) -> MountItem {
    let (dir, dir_b64) = to_text(info.dir.into_os_string().into_vec());
    MountItem {
        vault: info.vault.to_string(),
        dir,
        dir_b64,
        driver: match info.driver {
            MountDriver::Overlay => MountDriverWord::Overlay,
            MountDriver::Fuse => MountDriverWord::Fuse,
        },
        readonly: info.access == MountAccess::ReadOnly,
        version: info.version,
        autocommit_s: info.autocommit.map(|every| every.as_secs()),
    }
}

fn unmounted_item(gone: Unmounted) -> UnmountedItem {
    let (dir, dir_b64) = to_text(gone.dir.into_os_string().into_vec());
    UnmountedItem {
        vault: gone.vault.to_string(),
        dir,
        dir_b64,
        version: gone.version,
        uncommitted: gone.aside.map(|name| name.to_string()),
    }
}
