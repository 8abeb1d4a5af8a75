//! Everyday commands of a coding agent: the categories of each, and that none of them needs approval.

use std::collections::BTreeSet;

use avfs_policy::Network;

use crate::support::{NETWORKS, argv, shell};

/// Action, categories (exactly), command. Network off.
const TABLE: &[(&str, &str, &str)] = &[
    ("allow", "read_only", "ls -la"),
    ("allow", "read_only", "cat src/main.rs"),
    ("allow", "read_only", "cat /etc/passwd"),
    ("allow", "read_only", "cat /etc/hosts"),
    ("allow", "read_only", "head -n 40 /workspace/README.md"),
    ("allow", "read_only", "tail -f log.txt"),
    ("allow", "read_only", "grep -rn 'TODO' src"),
    ("allow", "read_only", "grep -rn '/root/' src"),
    ("allow", "read_only", "rg --files | head"),
    ("allow", "read_only", "rg -n /etc/shadow docs"),
    ("allow", "read_only", "find . -name '*.rs' -type f"),
    (
        "allow",
        "read_only",
        "find / -path /proc -prune -o -name x -print",
    ),
    ("allow", "read_only", "pwd && ls"),
    ("allow", "read_only", "echo hello; echo world"),
    ("allow", "read_only", "echo done > /dev/null"),
    ("allow", "read_only", "ls nowhere 2>/dev/null || true"),
    ("allow", "read_only", "cat a.txt 2>&1 | wc -l"),
    ("allow", "read_only", "echo error >&2"),
    ("allow", "read_only", "wc -l $(git ls-files)"),
    ("allow", "read_only", "git status"),
    ("allow", "read_only", "git -C /workspace log --oneline -5"),
    ("allow", "read_only", "git --no-pager diff HEAD~3 -- src"),
    ("allow", "read_only", "git show HEAD:src/lib.rs"),
    ("allow", "read_only", "git rev-parse --show-toplevel"),
    ("allow", "read_only", "git branch"),
    ("allow", "read_only", "git branch -a"),
    ("allow", "read_only", "git branch --show-current"),
    ("allow", "read_only", "git blame src/lib.rs"),
    ("allow", "read_only", "git stash list"),
    ("allow", "read_only", "git remote -v"),
    ("allow", "read_only", "git config --get user.name"),
    ("allow", "read_only", "git -c core.pager=cat log"),
    ("allow", "read_only", "git -c color.ui=never status --short"),
    ("allow", "read_only", "GIT_PAGER=cat git diff"),
    ("allow", "read_only", "sed -n '1,80p' src/lib.rs"),
    ("allow", "read_only", "sed 's#/root/#/x/#' Dockerfile"),
    ("allow", "read_only", "awk '{print $1}' data.txt"),
    ("allow", "read_only", "awk '/root/{print}' /etc/passwd"),
    ("allow", "read_only", "sort a.txt | uniq -c | sort -rn"),
    ("allow", "read_only", "jq '.version' package.json"),
    ("allow", "read_only", "diff -u a b"),
    ("allow", "read_only", "tree -L 2"),
    ("allow", "read_only", "test -f Cargo.toml && echo yes"),
    ("allow", "read_only", "[ -d target ] || echo none"),
    ("allow", "read_only", "[[ -n $HOME && $x == y* ]]"),
    ("allow", "read_only", "for f in a b c; do cat \"$f\"; done"),
    (
        "allow",
        "read_only",
        "while IFS= read -r line; do echo \"$line\"; done < file.txt",
    ),
    (
        "allow",
        "read_only",
        "if git diff --quiet; then echo clean; fi",
    ),
    ("allow", "read_only", "cd /workspace/sub && ls"),
    ("allow", "read_only", "python3 --version"),
    ("allow", "read_only", "cargo --version"),
    ("allow", "read_only", "node -v"),
    ("allow", "read_only", "which python3"),
    ("allow", "read_only", "command -v rustc"),
    ("allow", "read_only", "env"),
    ("allow", "read_only", "tar tzf a.tar.gz"),
    ("allow", "read_only", "pip list"),
    ("allow", "read_only", "npm ls"),
    (
        "allow",
        "read_only",
        "cat <<'EOF'\nrm -rf / ' unbalanced\nEOF",
    ),
    ("allow", "read_only", "# only a comment"),
    ("allow", "read_only", "/bin/ls /usr/lib"),
    ("allow", "read_only", "timeout 5 cat x"),
    (
        "allow",
        "read_only",
        "find . -name '*.py' | xargs grep -n import",
    ),
    ("allow", "read_only", "echo $((1 + 2))"),
    ("allow", "read_only", "x=5; echo $x"),
    ("allow_with_checkpoint", "mutating", "touch a"),
    (
        "allow_with_checkpoint",
        "mutating",
        "mkdir -p /src /app/y /tmp/z",
    ),
    ("allow_with_checkpoint", "mutating", "cp a b"),
    ("allow_with_checkpoint", "mutating", "rm notes.txt"),
    ("allow_with_checkpoint", "mutating", "rm my-report.txt"),
    ("allow_with_checkpoint", "mutating", "echo x > file"),
    ("allow_with_checkpoint", "mutating", "echo x >> file"),
    ("allow_with_checkpoint", "mutating", "ls &> out.txt"),
    (
        "allow_with_checkpoint",
        "mutating",
        "cat > a.py <<'EOF'\nprint('it is :) \"fine\"')\nEOF",
    ),
    (
        "allow_with_checkpoint",
        "mutating",
        "sed -i 's/a/b/' src/lib.rs",
    ),
    ("allow_with_checkpoint", "mutating", "sort -o out in"),
    (
        "allow_with_checkpoint",
        "mutating",
        "awk '{print > \"out\"}' x",
    ),
    ("allow_with_checkpoint", "mutating", "chmod +x run.sh"),
    ("allow_with_checkpoint", "mutating", "cargo build"),
    (
        "allow_with_checkpoint",
        "mutating",
        "cargo +nightly test --all -- --nocapture",
    ),
    (
        "allow_with_checkpoint",
        "mutating",
        "cargo clippy --workspace",
    ),
    (
        "allow_with_checkpoint",
        "mutating",
        "cargo fmt && cargo test",
    ),
    ("allow_with_checkpoint", "mutating", "npm test"),
    ("allow_with_checkpoint", "mutating", "npm run build"),
    ("allow_with_checkpoint", "mutating", "pytest -q"),
    (
        "allow_with_checkpoint",
        "mutating",
        "python3 -m pytest tests/ -x",
    ),
    ("allow_with_checkpoint", "mutating", "python3 /src/main.py"),
    ("allow_with_checkpoint", "mutating", "python3 -c 'print(1)'"),
    ("allow_with_checkpoint", "mutating", "node index.js"),
    ("allow_with_checkpoint", "mutating", "make -j8"),
    ("allow_with_checkpoint", "mutating", "go test ./..."),
    ("allow_with_checkpoint", "mutating", "tsc --noEmit"),
    ("allow_with_checkpoint", "mutating", "bash build.sh"),
    ("allow_with_checkpoint", "mutating", "git add -A"),
    (
        "allow_with_checkpoint",
        "mutating",
        "git commit -m 'fix: /root/ handling'",
    ),
    (
        "allow_with_checkpoint",
        "mutating",
        "git checkout -b feature",
    ),
    ("allow_with_checkpoint", "mutating", "git branch feature"),
    ("allow_with_checkpoint", "mutating", "git stash"),
    ("allow_with_checkpoint", "mutating", "git merge main"),
    (
        "allow_with_checkpoint",
        "mutating",
        "git clone /workspace/a b",
    ),
    ("allow_with_checkpoint", "mutating", "patch -p1 < fix.diff"),
    (
        "allow_with_checkpoint",
        "mutating",
        "tar xzf a.tar.gz -C /tmp",
    ),
    ("allow_with_checkpoint", "mutating", "dotnet test"),
    (
        "allow_with_checkpoint",
        "mutating",
        "/root/.rustup/toolchains/1.95/bin/cargo build",
    ),
    ("allow_with_checkpoint", "mutating", "poetry run pytest"),
    (
        "allow_with_checkpoint",
        "mutating read_only",
        "git commit -m \"$(cat <<'EOF'\nfeat: don't say \"hi :)\n\nCloses (1)\nEOF\n)\"",
    ),
    (
        "allow_with_checkpoint",
        "mutating read_only",
        "cd sub && cargo test 2>&1 | tail -20",
    ),
    ("allow_with_checkpoint", "destructive", "rm -rf target"),
    ("allow_with_checkpoint", "destructive", "rm -f a b"),
    (
        "allow_with_checkpoint",
        "destructive",
        "git reset --hard HEAD~1",
    ),
    ("allow_with_checkpoint", "destructive", "git clean -fdx"),
    ("allow_with_checkpoint", "destructive", "git checkout -- ."),
    ("allow_with_checkpoint", "destructive", "git branch -D old"),
    (
        "allow_with_checkpoint",
        "destructive",
        "find . -name '*.pyc' -delete",
    ),
    (
        "allow_with_checkpoint",
        "destructive",
        "dd if=/dev/zero of=img bs=1M count=1",
    ),
    (
        "allow_with_checkpoint",
        "destructive read_only",
        "find . -name x -exec rm -rf {} +",
    ),
    ("allow_with_checkpoint", "interactive", "bash"),
    ("allow_with_checkpoint", "interactive", "vim src/lib.rs"),
    ("allow_with_checkpoint", "interactive", "python3"),
    ("allow_with_checkpoint", "unknown", "./run-me"),
    ("allow_with_checkpoint", "unknown", "frobnicate --all"),
    (
        "allow_with_checkpoint",
        "mutating unknown",
        "PATH=./bin:$PATH make",
    ),
    ("allow_with_checkpoint", "mutating unknown", "sudo touch /x"),
    (
        "allow_with_checkpoint",
        "networked",
        "curl https://example.com",
    ),
    ("allow_with_checkpoint", "mutating networked", "npm install"),
    (
        "allow_with_checkpoint",
        "mutating networked",
        "pip install -r requirements.txt",
    ),
    (
        "allow_with_checkpoint",
        "mutating networked",
        "git fetch origin",
    ),
    (
        "allow_with_checkpoint",
        "mutating networked",
        "cargo add serde",
    ),
    (
        "allow_with_checkpoint",
        "mutating networked",
        "npx tsc --noEmit",
    ),
];

#[test]
fn everyday_commands_are_what_they_are_and_never_ask() {
    for (action, categories, text) in TABLE {
        let decision = shell(text, Network::None);
        assert_eq!(decision.action.as_str(), *action, "{text}\n{decision:#?}");
        let found: BTreeSet<&str> = decision.categories.iter().map(|c| c.as_str()).collect();
        let wanted: BTreeSet<&str> = categories.split(' ').collect();
        assert_eq!(found, wanted, "{text}\n{decision:#?}");
    }
}

/// More everyday commands. None needs approval.
const NEVER_ASK: &[&str] = &[
    "ls -R src | head -100",
    "cat package.json | jq -r '.scripts | keys[]'",
    "rg -n 'fn main' --type rust -g '!target'",
    "fd -e py . tests",
    "find . -type f -newer Makefile -not -path './.git/*'",
    "git log --oneline --graph --decorate -20",
    "git diff --stat origin/main...HEAD",
    "git show --stat HEAD~2",
    "git add -p src/lib.rs",
    "git commit --amend --no-edit",
    "git commit -m \"$(cat <<'EOF'\nfix: a $5 bug (really)\n\nIt's done.\nEOF\n)\"",
    "git rebase main",
    "git cherry-pick abc123",
    "git worktree add ../wt -b topic",
    "git stash push -m wip && git checkout main",
    "git restore --staged .",
    "git bisect start HEAD v1.0",
    "git apply --check fix.patch",
    "git format-patch -1 --stdout > fix.patch",
    "cargo check --workspace --all-targets",
    "cargo test -p core -- --nocapture parses 2>&1 | tee test.log",
    "RUST_LOG=debug RUST_BACKTRACE=1 cargo run --example demo",
    "cargo fmt --all -- --check && cargo clippy -- -D warnings",
    "cargo tree -d",
    "npm run lint -- --fix",
    "npm test -- --watchAll=false",
    "node -e 'console.log(process.version)'",
    "npx --no-install eslint src",
    "pnpm build && pnpm test",
    "yarn workspace web test",
    "pytest tests/unit -k 'parse and not slow' -x --tb=short",
    "python3 -m venv .venv && . .venv/bin/activate && python -V",
    "python3 - <<'EOF'\nimport json\nprint(json.load(open('a.json'))['x'])\nEOF",
    "python3 -c \"import sys; print(sys.path)\"",
    "python manage.py migrate --plan",
    "ruff check . --fix && black .",
    "mypy src --strict",
    "go build ./... && go vet ./...",
    "go test -race -run TestX ./pkg/...",
    "gofmt -l -w .",
    "make -C build -j$(nproc) check",
    "cmake -S . -B build -DCMAKE_BUILD_TYPE=Debug && cmake --build build",
    "gcc -O2 -Wall -o app main.c && ./app",
    "mvn -q -o test",
    "./gradlew test --offline",
    "dotnet build -c Release",
    "bundle exec rspec",
    "tsc --noEmit && vitest run",
    "docker --version",
    "sed -i.bak -e 's/foo/bar/g' -e '/^$/d' config.ini",
    "perl -pi -e 's/old/new/g' src/*.c",
    "awk -F, 'NR>1 {s+=$3} END {print s}' data.csv",
    "cut -d: -f1 /etc/passwd | sort -u | wc -l",
    "tr -d '\\r' < dos.txt > unix.txt",
    "xargs -a files.txt -n1 wc -l",
    "find src -name '*.ts' -exec grep -l TODO {} +",
    "tar czf /tmp/out.tgz --exclude=node_modules .",
    "unzip -o archive.zip -d /tmp/x",
    "mkdir -p build && cd build && cmake .. && make",
    "cp -a src/. dst/ && rm -rf src/tmp",
    "mv old.rs new.rs && sed -i 's/old/new/' lib.rs",
    "ln -sf ../shared/config.json config.json",
    "chmod -R u+w vendor",
    "touch src/{a,b,c}.rs",
    "for f in *.md; do wc -w \"$f\"; done | sort -n",
    "while read -r l; do echo \"> $l\"; done < notes.txt",
    "if [ ! -d node_modules ]; then echo missing; fi",
    "test -x ./run.sh && ./run.sh --dry-run || echo skip",
    "timeout 120 ./long-test.sh > out.log 2>&1; echo $?",
    "(cd frontend && npm run build) && (cd backend && cargo build)",
    "set -e; source ./env.sh; make test",
    "trap 'rm -f /tmp/lock' EXIT; touch /tmp/lock; make",
    "diff <(sort a.txt) <(sort b.txt)",
    "cat <<EOF > Dockerfile\nFROM debian\nRUN apt-get update\nEOF",
    "printf '%s\\n' one two three | paste -sd,",
    "date +%F && uname -a && nproc && free -h",
    "ps aux | grep node | grep -v grep",
    "kill %1 2>/dev/null; wait",
    "sqlite3 db.sqlite '.schema'",
    "openssl rand -hex 16 > token.txt",
    "sha256sum -c SHA256SUMS",
    "base64 -d secret.b64 > secret.bin",
    "strace -f -o trace.log ./app",
    "gdb -batch -ex bt ./app core",
    "valgrind --leak-check=full ./app",
    "jq '.a |= . + 1' in.json > out.json && mv out.json in.json",
    "echo 'export const x = 1;' >> src/index.ts",
    "tee -a notes.md <<< 'done'",
    "env FOO=bar BAZ=1 ./script.py --flag",
    "nohup python3 server.py > server.log 2>&1 &",
    "true",
];

#[test]
fn a_working_day_passes_without_a_question() {
    let mut asked = Vec::new();
    for text in NEVER_ASK {
        let decision = shell(text, Network::None);
        if decision.action >= avfs_policy::Action::RequireApproval {
            asked.push((text, decision.action, decision.rule, decision.reason));
        }
    }
    assert!(asked.is_empty(), "{asked:#?}");
    assert!(TABLE.len() + NEVER_ASK.len() >= 150);
}

#[test]
fn the_host_network_makes_only_networked_commands_ask() {
    for (_, categories, text) in TABLE {
        let decision = shell(text, Network::Host);
        let asks = decision.action.as_str() == "require_approval";
        assert_eq!(
            asks,
            categories.contains("networked"),
            "{text}\n{decision:#?}"
        );
    }
}

#[test]
fn publishing_always_asks() {
    for text in [
        "git push",
        "git push --force origin main",
        "git -c user.name=x push",
        "cargo publish",
        "npm publish --access public",
        "twine upload dist/*",
        "python3 -m twine upload dist/*",
        "gh release create v1",
        "gh pr create --fill",
        "docker push x/y",
        "poetry publish --build",
        "gem push a.gem",
        "mvn clean deploy",
        "make && git push",
    ] {
        for network in NETWORKS {
            let decision = shell(text, network);
            assert_eq!(
                decision.action.as_str(),
                "require_approval",
                "{text}\n{decision:#?}"
            );
            assert_eq!(decision.rule, "default:publishing", "{text}");
        }
    }
}

#[test]
fn a_networked_command_without_network_runs_with_a_hint() {
    let mut decision = shell("curl https://example.com", Network::None);
    assert_eq!(decision.rule, "default:networked_offline");
    assert!(decision.reason.as_ref().unwrap().contains("network is off"));
    let offline = decision.reason.clone();
    decision.settle_network_hint(false);
    assert_eq!(decision.reason, None);
    decision.settle_network_hint(true);
    decision.settle_network_hint(true);
    assert_eq!(decision.reason, offline, "it is said once");
    assert_eq!(decision.smallest_rule, None);
}

#[test]
fn a_refusal_names_the_rule_that_would_allow_it() {
    let decision = shell("ls; git push origin main", Network::None);
    let rule = decision.smallest_rule.unwrap();
    assert!(
        rule.contains("command = [\"git\", \"push\", \"origin\", \"main\"]"),
        "{rule}"
    );
    let decision = shell("cat /root/.ssh/id_rsa", Network::None);
    assert_eq!(decision.rule, "default:host_escape_risk");
    assert!(
        decision
            .smallest_rule
            .unwrap()
            .contains("path = [\"/root/.ssh/id_rsa\"]")
    );
    assert!(decision.reason.unwrap().contains("belongs to the host"));
}

#[test]
fn parts_come_in_the_order_of_the_text() {
    let decision = shell("ls && rm -rf x | cat; git push", Network::None);
    let parts: Vec<_> = decision
        .parts
        .iter()
        .map(|p| (p.text.as_str(), p.rule.as_str()))
        .collect();
    assert_eq!(
        parts,
        [
            ("ls", "default:read_only"),
            ("rm -rf x", "default:destructive"),
            ("cat", "default:read_only"),
            ("git push", "default:publishing"),
        ]
    );
}

#[test]
fn an_argv_is_not_shell_text_unless_it_calls_a_shell() {
    let argv = |words: &[&str]| argv(words, Network::None);
    assert_eq!(argv(&["echo", "a; rm -rf b > c"]).action.as_str(), "allow");
    assert_eq!(
        argv(&["bash", "-c", "echo a > c"]).action.as_str(),
        "allow_with_checkpoint"
    );
    assert_eq!(
        argv(&["bash", "-lc", "git push"]).rule,
        "default:publishing"
    );
    assert_eq!(argv(&["true"]).rule, "default:read_only");
    assert_eq!(argv(&[]).rule, "default:unparseable");
    assert_eq!(argv(&["ls", "a\0b"]).rule, "default:unparseable");
}
