//! Vaults over HTTP.

use super::App;
use super::errors::Failure;
use super::items::{self, BACKEND};
use super::routes::{Reply, Routes, parse};
use crate::wire::{
    VaultCreate, VaultCreated, VaultDelete, VaultDeleted, VaultDetails, VaultFork, VaultForked,
    VaultInfo, VaultList, VaultUse, VaultUsed,
};
use avfs_runtime::{AfterFork, Select, VaultName};

pub(crate) fn routes(routes: Routes) -> Routes {
    routes
        .plain::<VaultCreate>(create)
        .plain::<VaultList>(list)
        .on_vault::<VaultInfo>(info)
        .on_vault::<VaultUse>(make_current)
        .on_vault::<VaultFork>(fork)
        .on_vault::<VaultDelete>(delete)
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
    Ok(VaultDetails {
        item: items::vault(&info),
        path: home(app),
        root: info.vault.head.to_string(),
        parent_root: info
            .vault
            .parent
            .as_ref()
            .map(|parent| parent.root.to_string()),
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
    let info = app.runtime.vault_fork(&source, &name, then)?;
    Ok(VaultForked {
        source: source.to_string(),
        name: info.vault.name.to_string(),
        current: info.current,
        backend: BACKEND.into(),
        path: home(app),
        copy_on_write: true,
        id: info.vault.id.to_string(),
        root: info.vault.head.to_string(),
    })
}

fn delete(app: &App, vault: Select, _: VaultDelete) -> Reply<VaultDelete> {
    let name = name_of(app, vault)?;
    app.runtime.vault_delete(&name)?;
    Ok(VaultDeleted {
        deleted: name.to_string(),
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
