//! Commands in the arguments or the input of other programs, and unusual spellings: none is judged more mildly for
//! it.

use avfs_policy::{Action, Category, Network};

use crate::strictness::weaker;
use crate::support::{NETWORKS, shell};

/// Ways to have another program run the command `CMD` (words without quotes).
const EMBEDDINGS: &[&str] = &[
    "fakeroot CMD",
    "gosu root CMD",
    "setpriv --reuid 0 CMD",
    "xvfb-run CMD",
    "prlimit --cpu=1 CMD",
    "dbus-run-session -- CMD",
    "systemd-run --user CMD",
    "mise exec -- CMD",
    "uvx CMD",
    "tmux new -d 'CMD'",
    "screen -dm CMD",
    "at now <<< 'CMD'",
    "echo 'CMD' | at now",
    "crontab - <<< '* * * * * CMD'",
    "expect -c 'spawn CMD'",
    "emacs --batch --eval '(shell-command \"CMD\")'",
    "gdb -batch -ex 'shell CMD'",
    "gdb -batch -ex '!CMD'",
    "ex -sc '!CMD' x",
    "ed x <<'E'\n!CMD\nE",
    "less '+!CMD' x",
    "man -P 'CMD' x",
    "sqlite3 x '.shell CMD'",
    "psql -c '\\! CMD'",
    "hyperfine 'CMD'",
    "parallel ::: 'CMD'",
    "ls | parallel 'CMD {}'",
    "npx -c 'CMD'",
    "npm exec -c 'CMD'",
    "npm exec -- CMD",
    "npm explore x -- CMD",
    "pnpm exec CMD",
    "yarn dlx CMD",
    "bun x CMD",
    "nix-shell --run 'CMD'",
    "make CC='CMD'",
    "make --eval='$(shell CMD)'",
    "make -f - <<'E'\nall:\n\t@CMD\nE",
    "printf 'all:\\n\\tCMD\\n' | make -f -",
    "sort --compress-program='CMD' x",
    "rg --pre 'CMD' x",
    "fd -x CMD",
    "fd . --exec CMD",
    "scp -S 'CMD' a b:",
    "zip x y -T -TT 'CMD'",
    "mapfile -C 'CMD' -c 1 a < x",
    "readarray -C 'CMD' -c 1 a < x",
    "sed '1e CMD' x",
    "git bisect run sh -c 'CMD'",
    "git submodule foreach CMD",
    "git config alias.x '!CMD'; git x",
    "git archive --exec='CMD' --remote=x y",
    "python3 <<< \"import os; os.system('CMD')\"",
    "python3 - <<'E'\nimport os\nos.system('CMD')\nE",
    "echo \"import os; os.system('CMD')\" | python3",
    "node - <<'E'\nrequire('child_process').execSync('CMD')\nE",
    "perl <<'E'\nsystem(\"CMD\");\nE",
    "printf '%s\\n' 'CMD' | sh",
    "printf '%s ' CMD | sh",
    ". /dev/stdin <<< 'CMD'",
    "bash /dev/stdin <<< 'CMD'",
    "sh -c \"$(echo CMD)\"",
    "bash -c 'eval \"$0\"' 'CMD'",
    "bash -c 'eval \"$1\"' _ 'CMD'",
    "bash -c '\"$0\" \"$@\"' CMD",
    "PS4='$(CMD)' bash -x y",
    "env 'BASH_FUNC_ls%%=() { CMD; }' bash -c ls",
    "$(echo CMD)",
    "CMD >| out",
    "{ CMD; } 2>&1 | cat",
    "coproc X { CMD; }",
    "command -p -- CMD",
    "trap 'CMD' DEBUG; ls",
    "busybox sh -c 'CMD'",
    "xargs -I% CMD < list",
    "find . -execdir CMD \\;",
    "nohup setsid nice -n 5 timeout 9 CMD",
];

const PLAIN: &[&str] = &[
    "git push -f",
    "cargo publish",
    "curl http://x",
    "rm -rf src",
];

#[test]
fn no_embedding_weakens_a_verdict() {
    let weaker: Vec<String> = PLAIN
        .iter()
        .flat_map(|plain| weaker(EMBEDDINGS, plain))
        .collect();
    assert!(weaker.is_empty(), "{weaker:#?}");
}

/// Spellings of `git push`, or of a command that may be it.
#[test]
fn a_push_is_a_push_however_it_is_spelled() {
    for text in [
        "$'\\x67it' push",
        "git${IFS}push",
        "git$IFS'push'",
        "g\\it pu\\sh",
        "\"g\"i't' p${x}ush",
        "git pu$@sh",
        "git pu${@}sh",
        "git pu$()sh",
        "git pu``sh",
        "git pu?h",
        "git p*",
        "git [p]ush",
        "git pus{h,}",
        "git-push",
        "/usr/lib/git-core/git-push",
        "hub push",
        "git send-pack x",
        "git subtree push x",
        "git lfs push x",
        "jj git push",
        "npm publi$@sh",
        "git config alias.x push; git x",
        "git clone 'ext::sh -c git% push' x",
        "python3 -c \"import os;os.execvp('git',['git','push'])\"",
        "node --eval \"require('child_process').spawnSync('git',['push'])\"",
        "deno eval \"new Deno.Command('git',{args:['push']})\"",
        "printf 'git %s\\n' push | sh",
        "bash -c '$0 $1' git push",
        "{git,push}",
    ] {
        for network in NETWORKS {
            let decision = shell(text, network);
            let publishes = decision.categories.contains(Category::Publishing);
            let asks = decision.action >= Action::RequireApproval;
            assert!(publishes && asks, "{text}\n{decision:#?}");
        }
    }
}

/// A command that is known only when it runs needs approval if there is a network.
#[test]
fn unknown_shell_text_asks_where_there_is_a_network() {
    for text in [
        "eval \"$(echo Z2l0IHB1c2g= | base64 -d)\"",
        "echo Z2l0IHB1c2g= | base64 -d | sh",
        "source <(cat x)",
        "sh <(cat x)",
        "unzip -p x | sh",
        "cat x | bash -s",
    ] {
        assert_eq!(shell(text, Network::None).rule, "default:unknown", "{text}");
        let decision = shell(text, Network::Host);
        assert_eq!(
            decision.action,
            Action::RequireApproval,
            "{text}\n{decision:#?}"
        );
    }
}

/// Names with look-alike characters or carriage returns are other programs, and need a checkpoint.
#[test]
fn look_alikes_are_unknown() {
    for text in [
        "g\u{456}t status",
        "ls\rcat x",
        "\u{ff4c}\u{ff53}",
        "cat\u{200b} x",
        "cat\u{a0}x",
    ] {
        assert_eq!(
            shell(text, Network::None).rule,
            "default:unknown",
            "{text:?}"
        );
    }
}
