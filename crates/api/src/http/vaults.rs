//! Vaults over HTTP.

use super::App;
use super::errors::Failure;
use super::items::{self, BACKEND};
use super::routes::{Reply, Routes, parse};
use crate::wire::{
    AncestorItem, DeletedVaultItem, VaultCreate, VaultCreated, VaultDelete, VaultDeleted,
    VaultDetails, VaultFork, VaultForked, VaultInfo, VaultList, VaultListDeleted, VaultRename,
    VaultRenamed, VaultSet, VaultSettings, VaultUndelete, VaultUndeleted, VaultUnset, VaultUse,
    VaultUsed,
};
use avfs_runtime::{
    AfterFork, Ancestor, DeletedVault, ForkPoint, Select, SettingKey, Settings, VaultName,
};
use std::collections::BTreeMap;

pub(crate) fn routes(routes: Routes) -> Routes {
    routes
        .plain::<VaultCreate>(create)
        .plain::<VaultList>(list)
        .on_vault::<VaultInfo>(info)
        .on_vault::<VaultUse>(make_current)
        .on_vault::<VaultRename>(rename)
        .on_vault::<VaultFork>(fork)
        .on_vault::<VaultDelete>(delete)
        .plain::<VaultListDeleted>(list_deleted)
        .plain::<VaultUndelete>(undelete)
        .on_vault::<VaultSet>(set)
        .on_vault::<VaultUnset>(unset)
}

fn set(app: &App, vault: Select, request: VaultSet) -> Reply<VaultSet> {
    let settings = request.settings.into_iter();
    change_settings(app, vault, settings.map(|(key, value)| (key, Some(value))))
}

fn unset(app: &App, vault: Select, request: VaultUnset) -> Reply<VaultUnset> {
    change_settings(app, vault, request.keys.into_iter().map(|key| (key, None)))
}

fn change_settings(
    app: &App,
    vault: Select,
    changes: impl Iterator<Item = (String, Option<String>)>,
) -> Result<VaultSettings, Failure> {
    let vault = Select::Named(name_of(app, vault)?);
    let changes: Result<Vec<(SettingKey, _)>, Failure> = changes
        .map(|(key, value)| Ok((parse(&key)?, value)))
        .collect();
    let settings = app.runtime.vault_set(vault.clone(), &changes?)?;
    Ok(VaultSettings {
        vault: name_of(app, vault)?.to_string(),
        settings: settings_item(&settings),
    })
}

fn settings_item(settings: &Settings) -> BTreeMap<String, String> {
    let items = settings.items().into_iter();
    items.map(|(key, value)| (key.to_string(), value)).collect()
}

fn create(app: &App, request: VaultCreate) -> Reply<VaultCreate> {
    let name = parse(&request.name)?;
    let info = app.runtime.vault_create(&name)?;
    Ok(VaultCreated {
        created: info.vault.name.to_string(),
        current: info.current,
        backend: BACKEND.into(),
        id: info.vault.id.to_string(),
    })
}

fn list(app: &App, _: VaultList) -> Reply<VaultList> {
    Ok(app.runtime.vault_list()?.iter().map(items::vault).collect())
}

fn info(app: &App, vault: Select, _: VaultInfo) -> Reply<VaultInfo> {
    let info = app.runtime.vault_info(vault)?;
    let family = app.runtime.vault_family(&info.vault)?;
    Ok(VaultDetails {
        item: items::vault(&info),
        path: home(app),
        root: info.vault.head.to_string(),
        parent_root: info
            .vault
            .parent
            .as_ref()
            .map(|parent| parent.root.to_string()),
        lineage: family.ancestors.iter().map(ancestor).collect(),
        forks: family.forks.iter().map(ToString::to_string).collect(),
        settings: settings_item(&app.runtime.vault_settings(&info.vault)?),
    })
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

fn rename(app: &App, vault: Select, request: VaultRename) -> Reply<VaultRename> {
    let old = name_of(app, vault)?;
    let info = app.runtime.vault_rename(&old, &parse(&request.name)?)?;
    Ok(VaultRenamed {
        old_name: old.to_string(),
        name: info.vault.name.to_string(),
        current: info.current,
        id: info.vault.id.to_string(),
    })
}

fn make_current(app: &App, vault: Select, _: VaultUse) -> Reply<VaultUse> {
    let info = app.runtime.vault_use(&name_of(app, vault)?)?;
    Ok(VaultUsed {
        current: info.vault.name.to_string(),
    })
}

fn fork(app: &App, vault: Select, request: VaultFork) -> Reply<VaultFork> {
    let source = name_of(app, vault)?;
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
    let (info, stillness) = app.runtime.vault_fork(&source, &point, &name, then)?;
    Ok(VaultForked {
        source: source.to_string(),
        name: info.vault.name.to_string(),
        current: info.current,
        backend: BACKEND.into(),
        path: home(app),
        copy_on_write: true,
        freeze: stillness.map(items::freeze),
        id: info.vault.id.to_string(),
        root: info.vault.head.to_string(),
    })
}

fn delete(app: &App, vault: Select, request: VaultDelete) -> Reply<VaultDelete> {
    let name = name_of(app, vault)?;
    app.runtime
        .vault_delete(&name, super::routes::running(request.force))?;
    Ok(VaultDeleted {
        deleted: name.to_string(),
    })
}

fn list_deleted(app: &App, _: VaultListDeleted) -> Reply<VaultListDeleted> {
    let deleted = app.runtime.vault_deleted()?;
    let item = |it: &DeletedVault| DeletedVaultItem {
        name: it.vault.name.to_string(),
        id: it.vault.id.to_string(),
        version: it.vault.version,
        deleted_at: items::time(it.deleted),
    };
    Ok(deleted.iter().map(item).collect())
}

fn undelete(app: &App, request: VaultUndelete) -> Reply<VaultUndelete> {
    let name = parse(&request.name)?;
    let to: Option<VaultName> = request.to.as_deref().map(parse).transpose()?;
    let info = app.runtime.vault_undelete(&name, to.as_ref())?;
    Ok(VaultUndeleted {
        undeleted: info.vault.name.to_string(),
        id: info.vault.id.to_string(),
        version: info.vault.version,
        root: info.vault.head.to_string(),
    })
}

/// The name of the vault meant: some operations are not for "whichever is current later".
fn name_of(app: &App, vault: Select) -> Result<VaultName, Failure> {
    match vault {
        Select::Named(name) => Ok(name),
        Select::Current => Ok(app.runtime.vault_info(Select::Current)?.vault.name),
    }
}

fn home(app: &App) -> String {
    app.place.home().to_string_lossy().into_owned()
}
