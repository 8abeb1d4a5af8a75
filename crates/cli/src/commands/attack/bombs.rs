//! Bombs, floods and orphans: each runs alone, under limits that have to hold.

use super::{AttackItem, exec};
use crate::error::Result;
use crate::session::Session;
use avfs_api::wire::{EnvelopeResult, Exec, LimitsAsk, StatusWord};
use avfs_sandbox::attack::HIDING;

/// Their scripts in the vault.
pub const SCRIPTS: [(&str, &str); 5] = [
    ("names.txt", OWN_NAMES),
    (
        "names.sh",
        r#"cd /workspace
for name in $(cat names.txt); do
    mkdir "$name" && echo x > "$name/to-first"
    ln -s /workspace/names.sh "$name/first" && ln -s /workspace/names.txt "$name/second"
done
"#,
    ),
    ("fork.sh", "f() { f | f & }\nf\nsleep 1\n"),
    (
        "orphans.sh",
        "setsid sleep 600 &\n(setsid sh -c 'setsid sleep 600 &' &)\nnohup sleep 600 &\nexit 0\n",
    ),
    (
        "plant.sh",
        r#"set -e
payload=$(cat)
mkdir -p /workspace/planted/.git/hooks && cd /workspace/planted
put() { mkdir -p "$(dirname "$1")"; printf '%s\n' "$payload" > "$1"; chmod 755 "$1"; }
for hook in pre-commit post-checkout post-merge fsmonitor-watchman pre-push; do put ".git/hooks/$hook"; done
put run
cat > .git/config <<END
[core]
    repositoryformatversion = 0
    fsmonitor = /workspace/planted/run
    pager = /workspace/planted/run
    sshCommand = /workspace/planted/run
    hooksPath = /workspace/planted/.git/hooks
[filter "x"]
    clean = /workspace/planted/run
    smudge = /workspace/planted/run
[diff "x"]
    command = /workspace/planted/run
    textconv = /workspace/planted/run
[alias]
    status = !/workspace/planted/run
END
printf 'ref: refs/heads/main\n' > .git/HEAD
printf '* filter=x diff=x\n' > .gitattributes
for name in .envrc .bashrc .profile .vscode/tasks.json .idea/workspace.xml .mcp.json Makefile \
    conftest.py sitecustomize.py build.rs .cargo/config.toml .npmrc package.json; do put "$name"; done
ln -s /etc/passwd link-out
ln -s ../../../../../../etc link-up
"#,
    ),
];

/// One of them.
struct Bomb {
    name: &'static str,
    layer: &'static str,
    argv: &'static [&'static str],
    limits: LimitsAsk,
    /// What stopped it, or nothing.
    held: fn(&EnvelopeResult) -> Option<String>,
}

const NO_LIMITS: LimitsAsk = LimitsAsk {
    memory: None,
    cpus: None,
    pids: None,
    disk: None,
};

/// Whether it was ended for its memory.
fn killed_for_memory(result: &EnvelopeResult) -> Option<String> {
    let hit = result.limit_hit.as_ref()?;
    (hit.limit == "memory").then(|| format!("killed, by {}", hit.enforced_by))
}

const LITTLE_MEMORY: LimitsAsk = LimitsAsk {
    memory: Some(64 << 20),
    ..NO_LIMITS
};

/// Directory names that look like those of our own temporary files.
const OWN_NAMES: &str =
    ".avfs-moving-1\n.avfs-moving-\n.avfs-writing\n.moved-1\n.avfs-export-1\n.wh.x\n";

const BOMBS: [Bomb; 8] = [
    Bomb {
        name: "hiding files under names like our own temporary ones",
        layer: "commit of every name",
        argv: &["/bin/sh", "/workspace/names.sh"],
        limits: NO_LIMITS,
        held: |result| {
            let stored = |path: &String| result.changed_files.contains(path);
            let made = OWN_NAMES.lines().flat_map(|name| {
                ["to-first", "first", "second"].map(|file| format!("/workspace/{name}/{file}"))
            });
            let made: Vec<String> = made.collect();
            (result.skipped.is_empty() && made.iter().all(stored))
                .then(|| format!("all {} were stored and reported", made.len()))
        },
    },
    Bomb {
        name: "a fork bomb",
        layer: "limit on processes",
        argv: &["/bin/sh", "/workspace/fork.sh"],
        limits: LimitsAsk {
            pids: Some(40),
            ..NO_LIMITS
        },
        held: |result| enforced(result, "pids"),
    },
    Bomb {
        name: "a memory bomb",
        layer: "limit on memory",
        argv: &["/usr/bin/tail", "/dev/zero"],
        limits: LITTLE_MEMORY,
        held: killed_for_memory,
    },
    Bomb {
        name: "memory in a file without a name",
        layer: "limit on memory",
        argv: &["/workspace/avfs", "__attack", HIDING[0]],
        limits: LITTLE_MEMORY,
        held: killed_for_memory,
    },
    Bomb {
        name: "memory in segments that nobody has attached",
        layer: "limit on memory",
        argv: &["/workspace/avfs", "__attack", HIDING[1]],
        limits: LITTLE_MEMORY,
        held: killed_for_memory,
    },
    Bomb {
        name: "filling the disk",
        layer: "limit on the disk",
        argv: &["/bin/dd", "if=/dev/zero", "of=/workspace/big", "bs=64k"],
        limits: LimitsAsk {
            disk: Some(8 << 20),
            ..NO_LIMITS
        },
        held: |result| {
            let hit = result.limit_hit.as_ref()?;
            (hit.limit == "disk").then(|| format!("killed, by {}", hit.enforced_by))
        },
    },
    Bomb {
        name: "a flood of output",
        layer: "limit on output",
        argv: &["/usr/bin/head", "-c", "6000000", "/dev/zero"],
        limits: NO_LIMITS,
        held: |result| {
            let counts = result.output.stdout;
            let kept = result.stdout.len();
            (counts.truncated && counts.bytes == 6_000_000)
                .then(|| format!("{} bytes counted, {kept} kept", counts.bytes))
        },
    },
    Bomb {
        name: "daemons that outlive their command",
        layer: "supervisor",
        argv: &["/bin/sh", "/workspace/orphans.sh"],
        limits: NO_LIMITS,
        held: |result| {
            (result.leftovers >= 3).then(|| format!("{} were found and ended", result.leftovers))
        },
    },
];

fn enforced(result: &EnvelopeResult, limit: &str) -> Option<String> {
    let held = result.limits.iter().find(|held| held.limit == limit)?;
    Some(format!("held, by {}", held.enforced_by))
}

/// Runs each, and checks that the sandbox still works afterwards.
pub fn try_all(session: &mut Session) -> Result<Vec<AttackItem>> {
    let mut items = Vec::new();
    for bomb in &BOMBS {
        let request = Exec {
            argv: bomb.argv.iter().map(|word| (*word).to_owned()).collect(),
            limits: bomb.limits,
            timeout_ms: Some(20_000),
            output_limit: Some(1000),
            ..Exec::default()
        };
        let result = exec(session, &request)?;
        let after = exec(
            session,
            &Exec {
                argv: vec!["/bin/true".into()],
                ..Exec::default()
            },
        )?;
        let alive = after.status == StatusWord::Exited && after.ending.exit_code == Some(0);
        let held = (bomb.held)(&result).filter(|_| alive);
        items.push(AttackItem {
            name: bomb.name.into(),
            group: "bombs and orphans".into(),
            stopped: held.is_some(),
            layer: bomb.layer.into(),
            answer: held
                .unwrap_or_else(|| format!("{:?}: {}", result.status, result.stderr.trim())),
        });
    }
    Ok(items)
}
