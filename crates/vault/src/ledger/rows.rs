//! How rows become values. What this program cannot read in one is damage.

use std::str::FromStr;

use avfs_store::ledger::{ParentRow, QuotaRow, Stamp, VaultRow, VersionRow};

use crate::{
    DeletedVault, Error, ExecId, Lineage, Quota, Result, RootId, Time, Vault, VaultId, Version,
};

/// Text of a row, as the type that it was made from.
pub fn parsed<T: FromStr<Err = Error>>(text: &str) -> Result<T> {
    text.parse().map_err(|error: Error| Error::Corrupt {
        what: format!("a row of the database: {error}"),
    })
}

impl From<Stamp> for Time {
    fn from(Stamp { secs, nanos }: Stamp) -> Time {
        Time { secs, nanos }
    }
}

impl From<Time> for Stamp {
    fn from(Time { secs, nanos }: Time) -> Stamp {
        Stamp { secs, nanos }
    }
}

impl From<QuotaRow> for Quota {
    fn from(row: QuotaRow) -> Quota {
        Quota {
            bytes: row.bytes,
            files: row.files,
            file_bytes: row.file_bytes,
        }
    }
}

impl From<Quota> for QuotaRow {
    fn from(quota: Quota) -> QuotaRow {
        QuotaRow {
            bytes: quota.bytes,
            files: quota.files,
            file_bytes: quota.file_bytes,
        }
    }
}

impl TryFrom<VaultRow> for Vault {
    type Error = Error;

    fn try_from(row: VaultRow) -> Result<Vault> {
        let parent = row.parent.map(|parent| {
            Ok::<_, Error>(Lineage {
                vault: VaultId::from_bytes(parent.vault),
                name: parsed(&parent.name)?,
                root: RootId::new(parent.root),
            })
        });
        Ok(Vault {
            id: VaultId::from_bytes(row.id),
            name: parsed(&row.name)?,
            head: RootId::new(row.head),
            version: row.version,
            parent: parent.transpose()?,
            created: row.created.into(),
            quota: row.quota.into(),
            made_by: parsed(&row.made_by)?,
        })
    }
}

impl From<&Vault> for VaultRow {
    fn from(vault: &Vault) -> VaultRow {
        let parent = vault.parent.as_ref().map(|lineage| ParentRow {
            vault: *lineage.vault.as_bytes(),
            name: lineage.name.to_string(),
            root: lineage.root.object(),
        });
        VaultRow {
            id: *vault.id.as_bytes(),
            name: vault.name.to_string(),
            head: vault.head.object(),
            version: vault.version,
            parent,
            created: vault.created.into(),
            quota: vault.quota.into(),
            made_by: vault.made_by.to_string(),
            deleted: None,
        }
    }
}

impl TryFrom<VaultRow> for DeletedVault {
    type Error = Error;

    fn try_from(row: VaultRow) -> Result<DeletedVault> {
        let deleted = row.deleted.map_or(Time::EPOCH, Time::from);
        let vault = Vault::try_from(row)?;
        Ok(DeletedVault { vault, deleted })
    }
}

impl TryFrom<VersionRow> for Version {
    type Error = Error;

    fn try_from(row: VersionRow) -> Result<Version> {
        Ok(Version {
            number: row.number,
            root: RootId::new(row.root),
            by: parsed(&row.principal)?,
            exec: row.exec.map(ExecId::from_bytes),
            cause: parsed(&row.cause)?,
            time: row.time.into(),
        })
    }
}

impl From<&Version> for VersionRow {
    fn from(version: &Version) -> VersionRow {
        VersionRow {
            number: version.number,
            root: version.root.object(),
            principal: version.by.to_string(),
            exec: version.exec.map(|id| *id.as_bytes()),
            cause: version.cause.to_string(),
            time: version.time.into(),
        }
    }
}

/// Every row of a list as the value it stands for.
pub fn values<R, T: TryFrom<R, Error = Error>>(rows: Vec<R>) -> Result<Vec<T>> {
    rows.into_iter().map(T::try_from).collect()
}
