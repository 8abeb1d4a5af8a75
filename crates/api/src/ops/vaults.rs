//! Vaults.

use super::failure::Failure;
use super::items::{self, BACKEND};
use super::modes;
use super::page::{self, Page};
use super::{Ask, Reply, parse};
use crate::wire::{
    AncestorItem, Defaults, DefaultsListing, DefaultsSet, DeletedVaultItem, DeletedVaultListing,
    LentItem, StrandedItem, VaultCreate, VaultCreated, VaultDelete, VaultDeleted, VaultDetails,
    VaultFork, VaultForked, VaultInfo, VaultLimitItem, VaultList, VaultListDeleted, VaultListing,
    VaultRename, VaultRenamed, VaultSet, VaultSettings, VaultUndelete, VaultUndeleted, VaultUnset,
    VaultUse, VaultUsed,
};
use avfs_runtime::{
    AfterFork, Ancestor, DefaultKey, DeletedVault, ForkPoint, Select, SettingKey, Settings,
    Stranded, VaultLent, VaultLimit, VaultName,
};
use std::collections::BTreeMap;

pub(crate) fn defaults(ask: &Ask, _: Defaults) -> Reply<Defaults> {
    let settings = ask.session.defaults()?;
    Ok(DefaultsListing { settings })
}

pub(crate) fn set_defaults(ask: &Ask, request: DefaultsSet) -> Reply<DefaultsSet> {
    let changes = request.settings.into_iter();
    let changes: Result<Vec<(DefaultKey, _)>, Failure> = changes
        .map(|(key, value)| Ok((parse(&key)?, value)))
        .collect();
    let settings = ask.session.set_defaults(&changes?)?;
    Ok(DefaultsListing { settings })
}

pub(crate) fn set(ask: &Ask, vault: Select, request: VaultSet) -> Reply<VaultSet> {
    let settings = request.settings.into_iter();
    change_settings(ask, vault, settings.map(|(key, value)| (key, Some(value))))
}

pub(crate) fn unset(ask: &Ask, vault: Select, request: VaultUnset) -> Reply<VaultUnset> {
    change_settings(ask, vault, request.keys.into_iter().map(|key| (key, None)))
}

fn change_settings(
    ask: &Ask,
    vault: Select,
    changes: impl Iterator<Item = (String, Option<String>)>,
) -> Result<VaultSettings, Failure> {
    let vault = Select::Named(name_of(ask, vault)?);
    let changes: Result<Vec<(SettingKey, _)>, Failure> = changes
        .map(|(key, value)| Ok((parse(&key)?, value)))
        .collect();
    let settings = ask.session.vault_set(vault.clone(), &changes?)?;
    Ok(VaultSettings {
        vault: name_of(ask, vault)?.to_string(),
        settings: settings_item(&settings),
    })
}

fn settings_item(settings: &Settings) -> BTreeMap<String, String> {
    let items = settings.items().into_iter();
    let items = items.map(|(key, value)| match (&key, &settings.lend) {
        // As it was written, without what it is recognised by.
        (SettingKey::Lend, Some(list)) => (key.to_string(), list.shown()),
        _ => (key.to_string(), value),
    });
    items.collect()
}

pub(crate) fn create(ask: &Ask, request: VaultCreate) -> Reply<VaultCreate> {
    let name = parse(&request.name)?;
    check_backend(request.backend.as_deref())?;
    let info = ask.session.vault_create(&name)?;
    Ok(VaultCreated {
        created: info.vault.name.to_string(),
        current: info.current,
        backend: BACKEND.into(),
        id: info.vault.id.to_string(),
    })
}

/// All vaults of a home are in one store, so there is nothing to choose.
fn check_backend(named: Option<&str>) -> Result<(), Failure> {
    match named {
        None | Some(BACKEND) => Ok(()),
        Some(other) => Err(Failure::invalid(format!(
            "there is no storage engine {other:?}: all vaults of a home are in one store, which is {BACKEND}"
        ))
        .hint("leave it out, or name sqlite")),
    }
}

pub(crate) fn list(ask: &Ask, request: VaultList) -> Reply<VaultList> {
    let mut vaults = ask.session.vault_list()?;
    vaults.retain(|info| ask.caller.grant.reaches(&info.vault.name));
    if let Some(cursor) = &request.cursor {
        vaults.retain(|info| info.vault.name.as_str() > cursor.as_str());
    }
    let page = Page::of(vaults, request.limit, |info| info.vault.name.to_string());
    Ok(VaultListing {
        vaults: page.items.iter().map(items::vault).collect(),
        next_cursor: page.next,
    })
}

pub(crate) fn info(ask: &Ask, vault: Select, _: VaultInfo) -> Reply<VaultInfo> {
    let info = ask.session.vault_info(vault)?;
    let family = ask.session.vault_family(&info.vault)?;
    let settings = ask.session.vault_settings(&info.vault)?;
    Ok(VaultDetails {
        item: items::vault(&info),
        path: home(ask),
        root: info.vault.head.to_string(),
        parent_root: info
            .vault
            .parent
            .as_ref()
            .map(|parent| parent.root.to_string()),
        lineage: family.ancestors.iter().map(ancestor).collect(),
        forks: family.forks.iter().map(ToString::to_string).collect(),
        settings: settings_item(&settings),
        mode: settings.mode.map(modes::item),
        limits: ask
            .session
            .vault_limits(&info.vault)?
            .iter()
            .map(limit_item)
            .collect(),
        lent: lent_items(&ask.session.vault_lent(&info.vault)?),
        uncommitted: uncommitted(&ask.session.vault_uncommitted(&info.vault)),
    })
}

/// Tools first, then what the owner lends.
fn lent_items(lent: &VaultLent) -> Vec<LentItem> {
    let tools = lent.tools.iter().map(|version| LentItem {
        kind: version.family.as_str().into(),
        name: Some(version.name.clone()),
        path: version.bin.display().to_string(),
    });
    let directories = lent.directories.iter().map(|path| LentItem {
        kind: "directory".into(),
        name: None,
        path: path.display().to_string(),
    });
    tools.chain(directories).collect()
}

fn uncommitted(stranded: &[Stranded]) -> Vec<StrandedItem> {
    let item = |why: &Stranded| StrandedItem {
        error: why.kind.as_str().into(),
        message: why.reason.clone(),
        hint: why.hint.clone(),
    };
    stranded.iter().map(item).collect()
}

fn limit_item(limit: &VaultLimit) -> VaultLimitItem {
    VaultLimitItem {
        limit: limit.limit.name().into(),
        value: limit.value,
        source: limit.said_by.as_str().into(),
    }
}

fn ancestor(ancestor: &Ancestor) -> AncestorItem {
    AncestorItem {
        name: ancestor.name.to_string(),
        id: ancestor.id.to_string(),
        exists: ancestor.exists,
        root: ancestor.root.to_string(),
        version: ancestor.version,
        checkpoints: ancestor
            .checkpoints
            .iter()
            .map(ToString::to_string)
            .collect(),
    }
}

pub(crate) fn rename(ask: &Ask, vault: Select, request: VaultRename) -> Reply<VaultRename> {
    let old = name_of(ask, vault)?;
    let info = ask.session.vault_rename(&old, &parse(&request.name)?)?;
    ask.app.metrics.forget(&old);
    Ok(VaultRenamed {
        old_name: old.to_string(),
        name: info.vault.name.to_string(),
        current: info.current,
        id: info.vault.id.to_string(),
    })
}

pub(crate) fn make_current(ask: &Ask, vault: Select, _: VaultUse) -> Reply<VaultUse> {
    let info = ask.session.vault_use(&name_of(ask, vault)?)?;
    Ok(VaultUsed {
        current: info.vault.name.to_string(),
    })
}

pub(crate) fn fork(ask: &Ask, vault: Select, request: VaultFork) -> Reply<VaultFork> {
    let source = name_of(ask, vault)?;
    let name = parse(&request.name)?;
    let then = if request.make_current {
        AfterFork::Use
    } else {
        AfterFork::Stay
    };
    let point = match (&request.checkpoint, request.version) {
        (None, None) => ForkPoint::Head,
        (Some(name), None) => ForkPoint::Checkpoint(parse(name)?),
        (None, Some(number)) => ForkPoint::Version(number),
        (Some(_), Some(_)) => {
            return Err(Failure::invalid("name a checkpoint or a version, not both"));
        }
    };
    let (info, stillness) = ask.session.vault_fork(&source, &point, &name, then)?;
    Ok(VaultForked {
        source: source.to_string(),
        name: info.vault.name.to_string(),
        current: info.current,
        backend: BACKEND.into(),
        path: home(ask),
        copy_on_write: true,
        freeze: stillness.map(items::freeze),
        id: info.vault.id.to_string(),
        root: info.vault.head.to_string(),
    })
}

pub(crate) fn delete(ask: &Ask, vault: Select, request: VaultDelete) -> Reply<VaultDelete> {
    let name = name_of(ask, vault)?;
    ask.session
        .vault_delete(&name, super::if_busy(request.force))?;
    ask.app.metrics.forget(&name);
    Ok(VaultDeleted {
        deleted: name.to_string(),
    })
}

pub(crate) fn list_deleted(ask: &Ask, request: VaultListDeleted) -> Reply<VaultListDeleted> {
    let mut deleted = ask.session.vault_deleted()?;
    deleted.retain(|it| ask.caller.grant.reaches(&it.vault.name));
    let key = |it: &DeletedVault| it.vault.id.to_string();
    let deleted = page::after(deleted, request.cursor.as_deref(), key)?;
    let page = Page::of(deleted, request.limit, key);
    let item = |it: &DeletedVault| DeletedVaultItem {
        name: it.vault.name.to_string(),
        id: it.vault.id.to_string(),
        version: it.vault.version,
        deleted_at: items::time(it.deleted),
    };
    Ok(DeletedVaultListing {
        vaults: page.items.iter().map(item).collect(),
        next_cursor: page.next,
    })
}

pub(crate) fn undelete(ask: &Ask, request: VaultUndelete) -> Reply<VaultUndelete> {
    let name = parse(&request.name)?;
    let to: Option<VaultName> = request.to.as_deref().map(parse).transpose()?;
    if let Some(to) = &to {
        ask.check_name(to)?;
    }
    let info = ask.session.vault_undelete(&name, to.as_ref())?;
    Ok(VaultUndeleted {
        undeleted: info.vault.name.to_string(),
        id: info.vault.id.to_string(),
        version: info.vault.version,
        root: info.vault.head.to_string(),
    })
}

/// The name of the vault: some operations must not follow a later change of the current vault.
fn name_of(ask: &Ask, vault: Select) -> Result<VaultName, Failure> {
    match vault {
        Select::Named(name) => Ok(name),
        other => Ok(ask.session.vault_info(other)?.vault.name),
    }
}

fn home(ask: &Ask) -> String {
    ask.app.place.home().to_string_lossy().into_owned()
}
