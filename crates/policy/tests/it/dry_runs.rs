//! Dry runs of what publishes do not ask, and nothing that publishes passes for one.

use avfs_policy::Network;

use crate::grammar::texts;
use crate::strictness::milder;
use crate::support::{NETWORKS, cases, shell};

#[test]
fn a_dry_run_does_not_ask() {
    for text in [
        "git push --dry-run",
        "git push -n origin main",
        "git push origin --tags --force -n",
        "cd repo && git push --dry-run -v origin feature/x",
        "cargo publish --dry-run",
        "cargo publish -n --allow-dirty --locked",
        "npm publish --dry-run --json",
    ] {
        let decision = shell(text, Network::None);
        let action = decision.action.as_str();
        assert!(action.starts_with("allow"), "{text}\n{decision:#?}");
        assert_ne!(action, "allow", "hooks and scripts may run: {text}");
    }
}

/// Each of these may publish.
const REAL: &[&str] = &[
    // Another command, or the same one again.
    "git push --dry-run; git push",
    "git push --dry-run && git push origin main",
    "git push $(git push) --dry-run",
    "git push -n `git push`",
    "npm publish --dry-run || npm publish",
    // The value of an option, or taken back.
    "git push -o -n",
    "git push -o --dry-run origin",
    "git push --push-option -n",
    "git push --repo --dry-run",
    "git push --receive-pack -n origin",
    "git push -fo -n",
    "git push --dry-run --no-dry-run",
    "git push -n --no-dry",
    "git push --dry-run=no",
    "cargo publish --token -n",
    "cargo publish -p -n",
    "cargo publish --registry --dry-run",
    "cargo +nightly publish -Z --dry-run",
    "cargo yank --dry-run",
    "npm publish --dry-run false",
    "npm publish --dry-run=false",
    "npm publish --no-dry-run --dry-run",
    "npm publish --tag --dry-run",
    "npm publish --otp --dry-run x",
    "npm --dry-run false publish",
    "npm unpublish --dry-run x",
    // Not an option, or nobody knows.
    "git push -- --dry-run",
    "git push origin -- -n",
    "git push \"$FLAG\"",
    "git push -n \"$@\"",
    "git push -n $REST",
    "git push -n *",
    "git push {-n,--no-dry-run}",
    "git push -nf $x",
    "echo --no-dry-run | xargs git push -n",
    "echo --no-dry-run | xargs -I{} git push -n {}",
    "parallel git push -n ::: --no-dry-run",
    "find . -exec git push -n {} \\;",
    "bash -c 'git push -n \"$@\"' x --no-dry-run",
    "bash -c 'git push -n $0' --no-dry-run",
    // Another transport, and other programs in the configuration or the environment.
    "git push -n ext::sh",
    "git push -n 'ext::sh -c git% push'",
    "git push --dry-run file://host/x",
    "git -c alias.x='push' x --dry-run",
    "git -c alias.x='!git push' x -n",
    "git -c remote.pushDefault=ext::sh push -n",
    "git -c url.ext::sh.insteadOf=origin push -n origin",
    "git -c core.sshCommand='git push' push -n",
    "git --exec-path=. push -n",
    "GIT_SSH_COMMAND='git push' git push -n",
    "git() { command git push; }; git push -n",
    "alias git='git push #'; git push -n",
    "PATH=. git push -n",
    "./git push -n",
    "git send-pack --dry-run x",
    "git subtree push --dry-run",
];

#[test]
fn nothing_that_publishes_passes_for_a_dry_run() {
    let mut passed = Vec::new();
    for text in REAL {
        for network in NETWORKS {
            let decision = shell(text, network);
            if decision.action.as_str().starts_with("allow") {
                passed.push((*text, decision.action, decision.rule, decision.categories));
            }
        }
    }
    assert!(passed.is_empty(), "{passed:#?}");
}

/// A push beside a dry run, hidden by the grammar, is judged like the push alone.
#[test]
fn no_generated_text_hides_a_push_behind_a_dry_run() {
    let argv = ["git", "push", "-f"];
    let mut weaker = Vec::new();
    for text in texts(cases(300) as usize, 12, "git push -f") {
        for text in [
            format!("git push --dry-run; {text}"),
            format!("{text}\ngit push -n origin main"),
        ] {
            weaker.extend(milder(&text, &argv, Network::None));
        }
    }
    assert!(weaker.is_empty(), "{}: {}", weaker.len(), weaker.join("\n"));
}
