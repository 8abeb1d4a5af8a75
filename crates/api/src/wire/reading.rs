//! Which operations only read a home: those that a home which cannot be changed still answers.

/// Whether an operation changes nothing; one that is not listed may.
pub fn only_reads(operation: &str) -> bool {
    READING.contains(&operation)
}

const READING: &[&str] = &[
    "vault_list",
    "vault_info",
    "vault_list_deleted",
    "vault_log",
    "defaults",
    "log",
    "ls",
    "cat",
    "read_content",
    "stat",
    "tree",
    "grep",
    "find",
    "search",
    "tag_list",
    "tag_list_all",
    "meta_list",
    "meta_get",
    "export",
    "export_archive",
    "archive_read",
    "checkpoint_list",
    "checkpoint_info",
    "diff",
    "output",
    "job_list",
    "job_poll",
    "job_logs",
    "job_wait",
    "policy_list",
    "policy_explain",
    "policy_test",
    "policy_validate",
    "approval_list",
    "approval_show",
    "journal",
    "journal_verify",
    // Its repair is refused where it begins.
    "fsck",
    "stats",
    "quota",
    "mounts",
    "daemon",
    "daemon_stop",
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::OPERATIONS;

    /// Written out, so that a new operation is placed by a person and not by chance.
    const CHANGING: &[&str] = &[
        "vault_create",
        "vault_use",
        "vault_rename",
        "vault_fork",
        "vault_delete",
        "vault_undelete",
        "vault_set",
        "vault_unset",
        "defaults_set",
        "checkout",
        "revert",
        "write",
        "write_content",
        "mkdir",
        "rm",
        "mv",
        "cp",
        "ln",
        "chmod",
        "touch",
        "edit",
        "tag",
        "untag",
        "tag_delete",
        "tag_rename",
        "meta_set",
        "meta_delete",
        "meta_import",
        "import",
        "export_changes",
        "archive_write",
        "checkpoint_save",
        "checkpoint_restore",
        "checkpoint_delete",
        "exec",
        "exec_input",
        "exec_cancel",
        "exec_resize",
        "job_start",
        "job_kill",
        "job_stdin",
        "job_resize",
        "policy_set",
        "policy_write",
        "approval_setup",
        "approval_approve",
        "approval_deny",
        "gc",
        "maintain",
        "prune",
        "quota_set",
        "commit",
        "mount",
        "unmount",
    ];

    #[test]
    fn every_operation_reads_or_changes() {
        for line in OPERATIONS {
            let lists = [READING, CHANGING];
            let lists = lists.iter().filter(|list| list.contains(&line.name));
            assert_eq!(lists.count(), 1, "{} is not in one list", line.name);
        }
        let all = READING.len() + CHANGING.len();
        assert_eq!(all, OPERATIONS.len(), "no name is left over");
    }
}
