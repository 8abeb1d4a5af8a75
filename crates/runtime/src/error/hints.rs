//! What to do next about an error of another room.

use super::approvals::approval_hint;

pub(crate) const MOVED_ON: &str = "somebody else changed the vault; look at it and try again";

pub(crate) fn sandbox_hint(error: &avfs_sandbox::Error) -> Option<String> {
    use avfs_sandbox::Error as Sandbox;
    Some(match error {
        Sandbox::Unenforceable { .. } => {
            "run the daemon where it has a control group of its own, as `systemd-run --user \
             --scope -p Delegate=yes avfs serve` does, or leave that limit out"
                .into()
        }
        Sandbox::Refused { .. } => {
            "it serves users whom /etc/passwd knows, on directories of their own".into()
        }
        Sandbox::NoProgram {
            program, package, ..
        } => format!("mounts of ordinary users are made by {program}, which is in {package}"),
        Sandbox::Invalid { what, .. } if what.ends_with("--allow-other") => {
            "as root: echo user_allow_other >> /etc/fuse.conf".into()
        }
        Sandbox::Invalid { .. } => return None,
        _ => "run `avfs doctor` to see what this host lacks".into(),
    })
}

pub(crate) fn vault_hint(error: &avfs_vault::Error) -> Option<String> {
    use avfs_vault::Error as Vault;
    Some(match error {
        Vault::VaultNotFound { .. } => "run `avfs vault list` to see the vaults".into(),
        Vault::DeletedVaultNotFound { .. } => {
            "run `avfs vault list --deleted` to see what can be brought back".into()
        }
        Vault::VaultExists { .. } => {
            "choose another name, or `avfs vault use` the existing one".into()
        }
        Vault::CheckpointNotFound { .. } => {
            "run `avfs checkpoint list` to see the checkpoints".into()
        }
        Vault::CheckpointExists { .. } => "choose another name".into(),
        Vault::CheckpointHasForks { .. } => {
            "they stay as they are when it goes: `--force` deletes it".into()
        }
        Vault::IsADirectory { path } if path.is_root() => "`avfs ls` lists it".into(),
        Vault::IsADirectory { path } => {
            format!("`avfs ls {path}` lists it; `avfs rm -r {path}` removes it")
        }
        Vault::QuotaExceeded { .. } => {
            "remove something, or see `avfs quota` and raise the limit with `avfs quota set`".into()
        }
        Vault::Swept { .. } => "try again".into(),
        Vault::InvalidQuery { .. } => "put words with signs in them between double quotes".into(),
        Vault::VersionNotFound { .. } => "run `avfs log` to see the versions".into(),
        Vault::Conflict { .. } => MOVED_ON.into(),
        Vault::PolicyChanged { .. } => "look at them with `avfs policy list`, and try again".into(),
        Vault::ApprovalNotFound { .. } => "run `avfs approval list` to see what waits".into(),
        Vault::TooMuchAtOnce { .. } => "read it in parts, with an offset and a limit".into(),
        Vault::Store(error) => return store_hint(error),
        _ => return approval_hint(error),
    })
}

/// What to do about a home that is not as it should be.
pub(crate) fn store_hint(error: &avfs_store::Error) -> Option<String> {
    use avfs_store::Error as Store;
    Some(match error {
        error if error.is_without_database() => {
            "put store.db back from a backup, or run `avfs fsck --rebuild`, which brings back what the packs tell".into()
        }
        Store::ReadOnly { .. } => {
            "it can be read; to change it, make it writable, or set AVFS_HOME to a copy of it".into()
        }
        Store::Missing { .. } | Store::Corrupt { .. } => {
            "`avfs fsck --repair` looks for it elsewhere; storing the same bytes again repairs it, too".into()
        }
        _ => return None,
    })
}

pub(crate) fn transfer_hint(error: &avfs_transfer::Error) -> Option<String> {
    use avfs_transfer::Error as Transfer;
    Some(match error {
        Transfer::NotEmpty { .. } => {
            "name a directory that is new or empty, or bring back only what changed with \
             `avfs export --changed-only DIR`"
                .into()
        }
        Transfer::NeverImported { path } => {
            format!(
                "run `avfs export PATH {}` with a new directory",
                path.display()
            )
        }
        Transfer::HostChanged { .. } => {
            "look at them; `avfs export PATH DIR` writes the vault's state to a new directory"
                .into()
        }
        Transfer::RunsByItself { .. } => {
            "look at them in the vault; --allow-hooks writes them, too".into()
        }
        Transfer::NotASource { .. } => {
            "`avfs write PATH --from-file FILE` takes in a single file".into()
        }
        Transfer::NoDirectory => "the owner can set one: `avfs transfer set DIR`".into(),
        Transfer::NotBeneath { .. } => {
            "name something in it: no link, no `..`, no file with other names; to export, a single new name".into()
        }
        Transfer::NoGit { .. } => "install git, or import the work tree itself".into(),
        Transfer::Untold { .. } => {
            "see what `git status` says there, or import everything, without --gitignore".into()
        }
        Transfer::Pattern { .. } => "patterns are those of .gitignore files".into(),
        _ => return None,
    })
}
