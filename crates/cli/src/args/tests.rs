//! Words that are accepted and refused, and a command line for every operation.

use super::*;

#[test]
fn the_definition_is_consistent() {
    command().debug_assert();
}

#[test]
fn a_command_may_have_options_of_its_own() {
    let cli = Cli::parse_from(["avfs", "proxy", "exec", "--cwd", "/a", "--", "ls", "--json"]);
    assert!(!cli.global.json);
    let Verb::Proxy(ProxyVerb::Exec(exec)) = cli.verb else {
        panic!("another verb")
    };
    assert_eq!(exec.run.command, ["ls", "--json"]);
    assert_eq!(exec.run.timeout, None);
}

/// `requires` is void where what is required conflicts with something that is given: each of these once ran, and an
/// option in it did nothing.
#[test]
fn no_option_is_taken_and_ignored() {
    for words in [
        "exec --size 80x24 --stdin -- cat",
        "exec --size 80x24 --stdin-file f -- cat",
        "exec --size 80x24 --stream -- true",
        "exec --record f --stdin -- cat",
        "exec --record f --stdin-file f -- cat",
        "exec --record f --stream -- true",
        "job start --size 80x24 --stdin -- cat",
        "export / --tar f --overwrite",
        "export --changed-only d --overwrite",
        "tag --list --delete t",
        "tag --list --rename t:u",
    ] {
        let parsed = Cli::try_parse_from(std::iter::once("avfs").chain(words.split(' ')));
        assert!(parsed.is_err(), "{words}");
    }
}

#[test]
fn a_command_is_required() {
    assert!(Cli::try_parse_from(["avfs", "exec"]).is_err());
    assert!(Cli::try_parse_from(["avfs", "exec", "--shell", "a", "--", "b"]).is_err());
    assert!(Cli::try_parse_from(["avfs", "exec", "--shell", "a"]).is_ok());
}

/// For each operation of the API, a command line that uses it.
const WORDS: &[(&str, &str)] = &[
    ("vault_create", "vault create v"),
    ("vault_list", "vault list"),
    ("vault_info", "vault info v"),
    ("vault_use", "vault use v"),
    ("vault_rename", "vault rename v w"),
    ("vault_fork", "vault fork v w --checkpoint c --use"),
    ("vault_delete", "vault delete v -y --force"),
    ("vault_list_deleted", "vault list --deleted"),
    ("vault_undelete", "vault undelete v"),
    ("vault_set", "vault set env.A=b memory=1g"),
    ("vault_unset", "vault unset env.A memory"),
    ("defaults", "vault defaults"),
    ("defaults_set", "vault set --default memory=1g max_files=9"),
    ("vault_log", "vault log v -n 5"),
    ("log", "log /f -n 3"),
    ("checkout", "checkout /f --version v3"),
    ("revert", "revert /f"),
    ("ls", "ls -l -a /d"),
    ("cat", "cat /f --offset 1 --limit 2 -v 3"),
    ("write", "write /f --from-file x -a -p -m 600"),
    ("read_content", "cat /f --offset 1"),
    ("write_content", "write /f --from-file x"),
    ("mkdir", "mkdir -p /d"),
    ("rm", "rm -r -f /d"),
    ("mv", "mv /a /b"),
    ("stat", "stat /f"),
    ("tree", "tree -L 2 /d"),
    ("cp", "cp -r /a /b"),
    ("ln", "ln -s a /b"),
    ("chmod", "chmod -R -x /d"),
    ("touch", "touch -c /f"),
    ("edit", "edit /f --old a --new b --all"),
    ("grep", "grep -i -n -v -A 1 -B 2 -C 3 --glob *.rs x /d"),
    (
        "find",
        "find /d --name * --type f,d --size +1k --size -2M --mtime -1 -d 3",
    ),
    ("search", "search two words --limit 3"),
    ("tag", "tag /f t"),
    ("untag", "untag /f t"),
    ("tag_list", "tag /f --list"),
    ("tag_list_all", "tag --list-all"),
    ("tag_delete", "tag --delete t"),
    ("tag_rename", "tag --rename t:u"),
    ("meta_list", "meta /f --export"),
    ("meta_get", "meta /f k"),
    ("meta_set", "meta /f k v"),
    ("meta_delete", "meta /f k --delete"),
    ("meta_import", "meta /f --import {}"),
    ("import", "import . /workspace --exclude *.o --gitignore"),
    ("export", "export /workspace out"),
    ("export_archive", "export /workspace --tar out.tar"),
    ("export_changes", "export --changed-only . --dry-run"),
    ("archive_write", "import - /workspace"),
    ("archive_read", "export /workspace --tar -"),
    ("transfer_in", "transfer in data.tar /data --gitignore"),
    ("transfer_out", "transfer out /workspace report-1"),
    ("transfer", "transfer show"),
    ("transfer_set", "transfer set d"),
    ("checkpoint_save", "checkpoint save c"),
    ("checkpoint_list", "snapshot list"),
    ("checkpoint_info", "checkpoint info c"),
    ("checkpoint_restore", "checkpoint restore --undo --force"),
    ("checkpoint_delete", "checkpoint delete c"),
    ("diff", "diff BASE HEAD /f --stat --patch"),
    ("exec", "exec -- true"),
    ("exec_input", "exec --stdin -- cat"),
    (
        "output",
        "output 01a1de36-3b62-77b2-8258-ad8380643645 --range 0-9",
    ),
    (
        "changes",
        "changes 01a1de36-3b62-77b2-8258-ad8380643645 --all --patch",
    ),
    ("git_status", "git status -C /repo"),
    (
        "git_diff",
        "git diff --staged --stat --file a --commit HEAD --max-bytes 9",
    ),
    (
        "git_commit",
        "git commit -a -m x --author-name a --author-email b",
    ),
    ("git_branch", "git branch --create x --from y --switch x"),
    ("git_log", "git log --from x -n 3"),
    ("git_clone", "git clone /a /b --branch x --depth 1"),
    (
        "job_start",
        "job start --lifetime client --lease 5s -- make",
    ),
    ("job_list", "job list --running"),
    ("job_poll", "job poll 1 --offset 5 --stderr-offset 6"),
    ("job_logs", "job logs -f 1 --stream stderr"),
    ("job_wait", "job wait 1 --timeout 5s"),
    ("job_kill", "job kill 1 --signal INT"),
    ("job_stdin", "job stdin 1 text --eof"),
    ("job_resize", "attach 1 --detach-key ctrl-a"),
    ("policy_list", "policy list"),
    ("policy_explain", "policy explain -- git push"),
    ("policy_test", "policy test"),
    ("policy_set", "policy edit --from x"),
    ("policy_write", "policy edit --level user --from x"),
    ("policy_validate", "policy edit --level user"),
    ("approval_setup", "approval setup"),
    ("approval_list", "approval list --all"),
    ("approval_show", "approval show x"),
    ("approval_approve", "approval approve x --expires 5m"),
    ("approval_deny", "approval deny x"),
    ("journal", "audit --limit 5"),
    ("journal_verify", "audit verify"),
    ("events", "audit --follow --after 7"),
    ("gc", "gc --dry-run"),
    ("fsck", "fsck"),
    ("stats", "stats"),
    ("maintain", "maintain"),
    ("prune", "prune --keep 5 --dry-run"),
    ("quota", "quota"),
    ("quota_set", "quota set max_files 10"),
    ("commit", "commit"),
    ("mount", "mount d --readonly --at v3 --foreground"),
    ("unmount", "unmount d --force"),
    ("mounts", "mounts"),
    ("network_show", "network show"),
    ("network_set", "network set example.com,*.example.org:8443"),
    ("network_allow", "network allow example.com"),
    ("network_deny", "network deny example.com"),
    ("network_inspect", "network inspect example.com --off"),
    ("network_log", "network log --denied"),
    ("network_cache", "network cache show"),
    ("network_cache_clear", "network cache clear"),
    ("port_forward", "port forward v 3000 8080 --listen ::1"),
    ("port_list", "port list"),
    ("port_remove", "port remove v 3000"),
    (
        "key_create",
        "key create ci --scope read,exec --vault team-* --expires 30d",
    ),
    ("key_list", "key list"),
    ("key_revoke", "key revoke ci"),
    ("key_rotate", "key rotate ci --expires 30d"),
    (
        "secret_set",
        "secret set TOKEN --host example.com --basic git --vault team-* --file f",
    ),
    ("secret_list", "secret list"),
    ("secret_rm", "secret rm TOKEN"),
    ("daemon", "daemon status"),
    ("daemon_stop", "daemon stop"),
];

#[test]
fn every_operation_can_be_asked_for() {
    // Ctrl-C cancels, and SIGWINCH resizes: neither has a verb.
    let wordless = ["exec_cancel", "exec_resize", "metrics"];
    let listed = avfs_api::table::OPERATIONS.iter().map(|row| row.name);
    let listed: Vec<&str> = listed.filter(|name| !wordless.contains(name)).collect();
    let spoken: Vec<&str> = WORDS.iter().map(|(name, _)| *name).collect();
    assert_eq!(spoken, listed);
    for (_, words) in WORDS {
        let words = std::iter::once("avfs").chain(words.split(' '));
        Cli::try_parse_from(words).unwrap();
    }
}
