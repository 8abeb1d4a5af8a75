//! Who may ask for what: every operation is of the agent's class or of the owner's. Of the agent's, some are only for
//! who made what they are about; `runtime/src/gate.rs` sees to that.
//!
//! The owner's are those that move the boundary itself, or reach beyond the vaults: rules, approvals, limits, paths of
//! the host, history that goes for good, the daemon. A surface that serves agents gets the agent's class alone.

/// What a caller may ask for.
#[derive(Copy, Clone, Debug, Default, Eq, PartialEq, Hash)]
pub enum Class {
    Agent,
    #[default]
    Owner,
}

impl Class {
    pub fn as_str(self) -> &'static str {
        match self {
            Class::Agent => "agent",
            Class::Owner => "owner",
        }
    }

    /// The class with this name.
    pub fn parse(text: &str) -> Option<Class> {
        [Class::Agent, Class::Owner]
            .into_iter()
            .find(|class| class.as_str() == text)
    }

    /// Which class a caller needs for an operation; what is not listed needs the owner's.
    pub fn needed(operation: &str) -> Class {
        match Reach::of(operation) {
            Reach::Everywhere | Reach::Made => Class::Agent,
            Reach::Nowhere => Class::Owner,
        }
    }
}

/// How far an operation goes for an agent.
#[derive(Copy, Clone, Debug, Eq, PartialEq)]
pub enum Reach {
    /// It works inside any vault.
    Everywhere,
    /// It is for what the agent made itself: vaults, checkpoints, jobs, commands.
    Made,
    /// It is the owner's alone.
    Nowhere,
}

impl Reach {
    pub fn of(operation: &str) -> Reach {
        match (EVERYWHERE.contains(&operation), MADE.contains(&operation)) {
            (true, _) => Reach::Everywhere,
            (_, true) => Reach::Made,
            _ => Reach::Nowhere,
        }
    }
}

/// The request header with which a caller gives up the owner's class; it can only be given up.
pub const CLASS_HEADER: &str = "avfs-class";

/// The header of an answer about a vault that has work which is not in its head: why, in one line.
pub const UNCOMMITTED_HEADER: &str = "avfs-uncommitted";

/// The request header with which a caller says what it is called; the journal keeps it.
pub const NAME_HEADER: &str = "avfs-name";

const MADE: &[&str] = &[
    "vault_rename",
    "vault_delete",
    "vault_undelete",
    "checkpoint_delete",
    "exec_input",
    "output",
    "exec_cancel",
    "exec_resize",
    "job_poll",
    "job_logs",
    "job_wait",
    "job_kill",
    "job_stdin",
    "job_resize",
    "approval_show",
];

const EVERYWHERE: &[&str] = &[
    "vault_create",
    "vault_list",
    "vault_info",
    "vault_use",
    "vault_fork",
    "vault_list_deleted",
    "vault_log",
    "log",
    "checkout",
    "revert",
    "ls",
    "cat",
    "write",
    "read_content",
    "write_content",
    "mkdir",
    "rm",
    "mv",
    "stat",
    "tree",
    "cp",
    "ln",
    "chmod",
    "touch",
    "edit",
    "grep",
    "find",
    "search",
    "tag",
    "untag",
    "tag_list",
    "tag_list_all",
    "tag_delete",
    "tag_rename",
    "meta_list",
    "meta_get",
    "meta_set",
    "meta_delete",
    "meta_import",
    "archive_write",
    "archive_read",
    "checkpoint_save",
    "checkpoint_list",
    "checkpoint_info",
    "checkpoint_restore",
    "commit",
    "mounts",
    "diff",
    "exec",
    "job_start",
    "job_list",
    "policy_list",
    "policy_explain",
    "policy_test",
    "policy_validate",
    "approval_list",
    "journal",
    "journal_verify",
    "fsck",
    "stats",
    "quota",
    "daemon",
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::OPERATIONS;

    /// Written out, so that a new operation is placed by a person and not by chance.
    const OWNER: &[&str] = &[
        "vault_set",
        "vault_unset",
        "defaults",
        "defaults_set",
        "import",
        "export",
        "export_archive",
        "export_changes",
        "mount",
        "unmount",
        "policy_set",
        "policy_write",
        "approval_setup",
        "approval_approve",
        "approval_deny",
        "gc",
        "maintain",
        "prune",
        "quota_set",
        "daemon_stop",
    ];

    #[test]
    fn every_operation_is_of_one_class() {
        for line in OPERATIONS {
            let lists = [EVERYWHERE, MADE, OWNER];
            let lists = lists.iter().filter(|list| list.contains(&line.name));
            assert_eq!(lists.count(), 1, "{} is not in one list", line.name);
        }
        let known = |name: &&str| !OPERATIONS.iter().any(|line| line.name == *name);
        let unknown: Vec<_> = [EVERYWHERE, MADE, OWNER]
            .concat()
            .into_iter()
            .filter(known)
            .collect();
        assert!(unknown.is_empty(), "{unknown:?}");
    }
}
