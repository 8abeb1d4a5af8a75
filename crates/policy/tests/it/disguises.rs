//! Hidden commands: none may get a weaker verdict than the plain command.

use avfs_policy::{Action, Category, Network};

use crate::strictness::weaker;
use crate::support::{shell, surrounded};

/// Ways to hide a command `CMD` (words without quotes).
const DISGUISES: &[&str] = &[
    "CMD",
    "ls; CMD",
    "ls && CMD",
    "ls || CMD",
    "ls | CMD",
    "ls & CMD",
    "(CMD)",
    "{ CMD; }",
    "! CMD",
    "time CMD",
    "echo $(CMD)",
    "echo \"a $(CMD) b\"",
    "echo `CMD`",
    "echo \"`CMD`\"",
    "echo ${x:-$(CMD)}",
    "echo $((1 + $(CMD)))",
    "cat <(CMD)",
    "ls > >(CMD)",
    "cat <<EOF\n$(CMD)\nEOF",
    "cat <<EOF\n`CMD`\nEOF",
    "bash <<EOF\nCMD\nEOF",
    "bash <<< 'CMD'",
    "echo 'CMD' | bash",
    "echo 'CMD' | sh -s",
    "printf 'CMD\\n' | sh",
    "if true; then CMD; fi",
    "for i in 1 2; do CMD; done",
    "while true; do CMD; done",
    "case x in x) CMD;; esac",
    "f() { CMD; }; f",
    "function f { CMD; }; f",
    "x=$(CMD)",
    "a=(1 $(CMD))",
    "[[ -n $(CMD) ]]",
    "bash -c 'CMD'",
    "bash -lc 'CMD'",
    "bash -e -o pipefail -c 'CMD'",
    "sh -c \"bash -c 'CMD'\"",
    "eval 'CMD'",
    "eval CMD",
    "env CMD",
    "env -i A=b CMD",
    "env -S 'CMD'",
    "env --split-string='CMD'",
    "sudo CMD",
    "sudo -u nobody -E CMD",
    "doas CMD",
    "su -c 'CMD'",
    "nohup CMD &",
    "nice -n 5 CMD",
    "setsid -f CMD",
    "timeout -k 5 10s CMD",
    "stdbuf -oL CMD",
    "command CMD",
    "builtin command CMD",
    "exec CMD",
    "xargs CMD",
    "xargs -n 1 -I{} CMD",
    "find . -exec CMD \\;",
    "find . -type f -execdir CMD {} +",
    "find . -ok CMD \\;",
    "busybox CMD",
    "git -c alias.x='!CMD' x",
    "git -c core.pager='CMD' log",
    "git -c core.sshCommand='CMD' fetch",
    "git rebase -x 'CMD' main",
    "git bisect run CMD",
    "git submodule foreach 'CMD'",
    "tar cf x --checkpoint=1 --checkpoint-action=exec='CMD' .",
    "tar xf x --to-command='CMD'",
    "ssh -oProxyCommand='CMD' h",
    "ssh -o ProxyCommand='CMD' h",
    "rsync -e 'CMD' a h:b",
    "vim -c ':!CMD' x",
    "vim '+!CMD' x",
    "trap 'CMD' EXIT",
    "alias ll='CMD'; ll",
    "GIT_SSH_COMMAND='CMD' git fetch",
    "PAGER='CMD' man x",
    "watch CMD",
    "strace -o log CMD",
    "script -c 'CMD' out",
    "flock lock CMD",
    "make SHELL='CMD'",
    "poetry run CMD",
    "uv run CMD",
    "x='CMD'; $x",
    "x='CMD'; eval $x",
    "x='CMD'; bash -c \"$x\"",
    "for x in 'CMD'; do $x; done",
    "run() { \"$@\"; }; run CMD",
    "bash -c '\"$@\"' _ CMD",
    "true\nCMD",
    "true # comment\nCMD",
    "CMD > /dev/null 2>&1",
    "coproc CMD",
    "python3 -c \"import os; os.system('CMD')\"",
    "perl -e 'system(\"CMD\")'",
    "awk 'BEGIN { system(\"CMD\") }'",
    "bash -x -c 'CMD'",
    "bash --norc -c 'CMD'",
    "dash -c 'CMD'",
    "env -u HOME bash -c 'CMD'",
    "env - PATH=/bin CMD",
    "env - CMD",
    "env a.b=1 CMD",
    "env -i a-b= CMD",
    "exec -a ls CMD",
    "command -p CMD",
    "sudo -n -- CMD",
    "ionice -c 3 CMD",
    "chrt -o 0 CMD",
    "taskset 1 CMD",
    "unbuffer CMD",
    "xargs -0 -P4 CMD",
    "xargs -I {} sh -c 'CMD'",
    "find . -name x -exec sh -c 'CMD' \\;",
    "until CMD; do true; done",
    "if CMD; then true; fi",
    "[ -n \"$(CMD)\" ]",
    "echo ${x:=$(CMD)}",
    "echo \"${x:+`CMD`}\"",
    "read x < <(CMD)",
    "tee >(CMD)",
    "cat <<-EOF\n\t$(CMD)\n\tEOF",
    "sh <<'EOF'\nCMD\nEOF",
    "cat <<EOF | bash\nCMD\nEOF",
    "( ( CMD ) )",
    "{ { CMD; }; }",
    "f() ( CMD ); f",
    "true && { false || CMD; }",
    "local x=$(CMD)",
    "export X=\"$(CMD)\"",
    "declare -r y=`CMD`",
    "git -c alias.p='!CMD' p",
    "git -c sequence.editor='CMD' rebase -i HEAD~1",
    "EDITOR='CMD' git commit",
    "GIT_PAGER='CMD' git log",
    "BASH_ENV=x; bash -c 'CMD'",
    "CMD;",
    "CMD &",
    "  CMD  ",
    "CMD # harmless",
    "CMD\\\n",
    "node -e 'require(\"child_process\").execSync(\"CMD\")'",
];

/// Plain commands of every strictness.
const PLAIN: &[&str] = &[
    "touch a",
    "rm -rf src",
    "curl http://x",
    "git push -f",
    "cargo publish",
    "cat /root/.ssh/id_rsa",
    "mount -t proc x y",
];

#[test]
fn no_disguise_weakens_a_verdict() {
    let weaker: Vec<String> = PLAIN
        .iter()
        .flat_map(|plain| weaker(DISGUISES, plain))
        .collect();
    assert!(weaker.is_empty(), "{weaker:#?}");
    assert!(DISGUISES.len() * PLAIN.len() > 800);
}

/// Other spellings of `curl x`.
#[test]
fn spelling_does_not_weaken_a_verdict() {
    for text in [
        "/usr/bin/curl x",
        "/usr/bin/../bin/curl x",
        "cu\\rl x",
        "c'u'rl x",
        "\"curl\" x",
        "cu\\\nrl x",
        "$'\\x63url' x",
        "$'\\143url' x",
        "c${y}url x",
        "${y:-curl} x",
        "${y-curl} x",
        "$(echo curl) x",
        "`printf curl` x",
        "/usr/bin/c?rl x",
        "/usr/bin/cur* x",
        "{curl,x}",
        "curl$IFS'x'",
        "curl${IFS}x",
        "a=cu; b=rl; $a$b x",
        "c=curl; ${c} x",
        "$SOMETHING x",
        "\"$@\"",
        "cat < /dev/tcp/1.2.3.4/80",
        "exec 3<>/dev/tcp/1.2.3.4/80",
        "python3 -c 'import urllib.request'",
        "node -e 'fetch(\"http://x\")'",
        "python3 -c \"import subprocess; subprocess.run(['curl', 'x'])\"",
    ] {
        let decision = shell(text, Network::Host);
        assert!(
            decision.action >= Action::RequireApproval,
            "{text}\n{decision:#?}"
        );
    }
}

#[test]
fn host_paths_are_denied_however_they_are_spelled() {
    for text in [
        "cat /root/.ssh/id_rsa",
        "cat ~root/.ssh/id_rsa",
        "ls /home/alice",
        "cat /workspace/../root/x",
        "cat ../root/x",
        "cd / && cat root/x",
        "cd ..; cat root/x",
        "cat /etc/shadow",
        "cat /etc/{passwd,shadow}",
        "cat /etc/shad*",
        "cat /et?/shadow",
        "a=/etc; cat $a/shadow",
        "cat ${HOME:0:1}etc/shadow",
        "cat < /etc/shadow",
        "cat 0</etc/shadow",
        "echo x > /proc/sys/kernel/core_pattern",
        "echo x >| /sys/power/state",
        "dd if=/dev/sda of=x",
        "grep root --file=/etc/shadow",
        "curl --unix-socket /var/run/docker.sock http://x",
        "DOCKER_HOST=unix:///run/docker.sock docker ps",
        "cat /proc/1/environ",
        "cat /proc/$$/environ",
        "cat /proc/*/environ",
        "cat /proc/self/root/etc/passwd",
        "/proc/self/root/bin/ls",
        "python3 -c 'open(\"/etc/shadow\").read()'",
        "awk 'BEGIN { while ((getline l < \"/etc/shadow\") > 0) print l }'",
        "ln -s /root x",
        "tar cf x /root",
        "git --git-dir=/root/x/.git log",
        "git -C /root/x log",
        "ls /run/user/1000",
        "for f in /etc/shadow; do cat $f; done",
        "f=/etc/shadow",
        "nsenter -t 1 -a",
        "unshare -r bash",
        "/usr/bin/mount",
        "mount /dev/vda x",
        "chroot /x",
        "busybox mount x y",
        "setcap cap_sys_admin+ep x",
        "avfs vault list",
        "/usr/local/bin/avfs daemon stop",
    ] {
        if text == "/usr/bin/mount" {
            // Without arguments it only lists.
            assert_eq!(shell(text, Network::None).action, Action::Allow);
            continue;
        }
        let decision = shell(text, Network::None);
        assert_eq!(decision.action, Action::Deny, "{text}\n{decision:#?}");
        assert!(
            decision.categories.contains(Category::HostEscapeRisk),
            "{text}"
        );
    }
}

#[test]
fn what_may_be_anything_is_never_simply_allowed() {
    for text in [
        "$x",
        "${x}",
        "$(cat cmd)",
        "`cat cmd`",
        "\"$x\" y",
        "./cat x",
        "/tmp/ls",
        "bin/ls",
        "ls*",
        "ＬＳ",
        "сat x",
        "LD_PRELOAD=./x.so ls",
        "BASH_ENV=x ls",
        "NODE_OPTIONS='--require ./x' ls",
        "PYTHONSTARTUP=x ls",
        "PATH=. ls",
        "IFS=x; ls",
        "export PATH=.; ls",
        "env PATH=. ls",
        "declare -x LD_PRELOAD=x",
        "source ./x",
        ". ./x",
        "cat x | bash",
        "bash < x",
        "bash <(cat x)",
        "base64 -d x | sh",
        "find $x",
        "find . $x",
        "sort $opts a",
        "sed \"$script\" a",
        "xargs env",
        "xargs git",
        "xargs sh -c",
        "git $x",
        "git x",
        "git diff --output=x",
        "git log --outpu=x",
        "git diff --ext-diff",
        "git grep -O x",
        "git --exec-path=. status",
        "git -c core.fsmonitor=./x status",
        "git --config-env=core.pager=X log",
        "find . -fprint x",
        "sort --outp=x a",
        "sed 'w x' a",
        "sed 's/a/b/e' a",
        "sed --in-place s/a/b/ a",
        "sed -ni p a",
        "sed -f x a",
        "awk -f x a",
        "uniq a b",
        "tar tf x --checkpoint-action=exec=./x",
        "tar tf x -I ./x",
        "rg --pre ./x y",
        "test 'a[$(touch x)]' -eq 0",
        "[[ 'a[$(touch x)]' -eq 0 ]]",
        "x='$(touch y)'; echo ${x@P}",
        "echo a >&b",
        "echo a <>b",
        "tee x",
        "ls() { ./x; }; ls",
        "shopt -s extglob; ls !(a|b)",
        "coproc x",
        "echo \\$'a\\'; rm x #'",
        "echo $$'a\\'; rm x #'",
        "echo $(( $((1)) <<E ))\nrm x\nE\n))",
        "echo $(echo a  # '\nrm x # ' )",
        "ld-linux-x86-64.so.2 /bin/ls",
    ] {
        let decision = shell(text, Network::None);
        assert!(decision.action > Action::Allow, "{text}\n{decision:#?}");
    }
}

#[test]
fn what_cannot_be_parsed_asks() {
    for text in [
        "echo 'open",
        "echo \"open",
        "echo $(open",
        "(ls",
        "ls)",
        "if true",
        "ls; ; ls",
        "ls | | ls",
        "cat <<EOF\nnever closed",
        "cat <<$'E'\nx\nE",
        "&& ls",
        "for",
        "}",
        "echo \0",
        "select x in a; do ls; done",
        "99999999999999999999> x",
    ] {
        let decision = shell(text, Network::None);
        assert_eq!(
            decision.action,
            Action::RequireApproval,
            "{text:?}\n{decision:#?}"
        );
    }
}

#[test]
fn the_callers_variables_and_directory_count() {
    let with = |cwd: &[u8], env: &[(&str, &str)]| surrounded("ls", cwd, env).action;
    assert_eq!(with(b"/workspace", &[("RUST_LOG", "debug")]), Action::Allow);
    assert_eq!(
        with(b"/workspace", &[("LD_PRELOAD", "x.so")]),
        Action::AllowWithCheckpoint
    );
    assert_eq!(
        with(b"/workspace", &[("PAGER", "git push")]),
        Action::RequireApproval
    );
    assert_eq!(
        with(b"/workspace", &[("X", "/root/.aws/credentials")]),
        Action::Deny
    );
    assert_eq!(with(b"/root/x", &[]), Action::Deny);
    assert_eq!(with(b"/home/agent", &[]), Action::Allow);
}
