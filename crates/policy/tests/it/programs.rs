//! Programs that run a command because of an option, a setting or a variable: the command is judged as strictly as by
//! itself, and no rule that denies it is avoided.

use avfs_policy::{Action, Network};

use crate::strictness::{complaints, is_dynamic, passes_rule};
use crate::support::{shell, surrounded};

/// Ways to have a program run `CMD`.
const PROGRAMS: &[&str] = &[
    "perl -e 'exec \"CMD\"'",
    "perl -we 'exec qw(CMD)'",
    "perl -Mstrict -e 'exec \"CMD\"'",
    "perl -wle 'print `CMD`'",
    "perl -e 'exec @ARGV' CMD",
    "perl -e'system \"CMD\"'",
    "ruby -e 'exec \"CMD\"'",
    "ruby -rjson -e '`CMD`'",
    "ruby -e 'system *%w[CMD]'",
    "ruby -ne 'system(\"CMD\")' x",
    "php -r 'passthru(\"CMD\");'",
    "php -r 'system(\"CMD\");'",
    "lua -e 'os.execute(\"CMD\")'",
    "node -p 'require(\"child_process\").execSync(\"CMD\")'",
    "node -pe 'require(\"child_process\").execSync(\"CMD\")'",
    "node --print='require(\"child_process\").execSync(\"CMD\")'",
    "python3 -c 'import os; os.system(\"CMD\")'",
    "python3 -Ic 'import os; os.system(\"CMD\")'",
    "python3.11 -c'import os; os.system(\"CMD\")'",
    "python3 -m timeit -s 'import os; os.system(\"CMD\")' 1",
    "python3 -m timeit 'import os; os.system(\"CMD\")'",
    "python3 -m pdb -c '!import os; os.system(\"CMD\")' x.py",
    "awk 'BEGIN { \"CMD\" | getline }'",
    "awk 'BEGIN { print 1 | \"CMD\" }'",
    "awk -v c='CMD' 'BEGIN { system(c) }'",
    "gawk 'BEGIN { system(\"CMD\") }'",
    "make --eval='x:=$(shell CMD)'",
    "make --eval 'all: ; CMD'",
    "make -E 'all: ; CMD'",
    "make CC='CMD' all",
    "sed 's#.*#CMD#e' x",
    "sed -e 's|x|CMD|ge' x",
    "sed -n 's/a/b/;s,x,CMD,e' x",
    "sed '1e CMD' x",
    "sed -n '/x/e CMD' x",
    "sed '2,3{e CMD\n}' x",
    "cmake -E env A=b CMD",
    "cmake -E env --unset=A CMD",
    "cmake -E time CMD",
    "cmake -E chdir d CMD",
    "cmake -DCMAKE_C_COMPILER_LAUNCHER='CMD' .",
    "runuser -u nobody -- CMD",
    "runuser -u nobody CMD",
    "runuser nobody -c 'CMD'",
    "su - nobody -c 'CMD'",
    "go test -exec 'CMD' ./...",
    "go run -exec='CMD' x.go",
    "go build -toolexec 'CMD' ./...",
    "go build -toolexec='CMD' ./...",
    "go vet -vettool='CMD' ./...",
    "cargo --config 'target.x86_64-unknown-linux-gnu.runner=\"CMD\"' run",
    "cargo --config='build.rustc-wrapper=\"CMD\"' build",
    "cargo test --config 'target.x.runner=\"CMD\"'",
    "cargo run -- CMD",
    "cargo run -q --bin x -- CMD",
    "find . -ok CMD \\;",
    "find . -okdir CMD {} +",
    "xargs -a f CMD",
    "env -S 'CMD'",
    "env -vS 'CMD'",
    "tar xf x --to-command 'CMD'",
    "tar cf x -I 'CMD' .",
    "tar cf x '-ICMD' .",
    "tar cf x --use-compress-program='CMD' .",
    "tar cf x --rsh-command='CMD' .",
    "tar cf x --checkpoint=1 --checkpoint-action exec='CMD' .",
    "rsync --rsh='CMD' a h:b",
    "rsync --rsync-path='CMD' a h:b",
    "git difftool -x 'CMD'",
    "git difftool --extcmd='CMD'",
    "git -c core.sshCommand='CMD' fetch",
    "git grep -O'CMD' x",
    "git grep --open-files-in-pager='CMD' x",
    "git -c diff.external='CMD' diff",
    "git clone -u 'CMD' x y",
    "git clone --upload-pack='CMD' x y",
    "git fetch --upload-pack 'CMD' x",
    "git -c filter.x.clean='CMD' add .",
    "git -c merge.x.driver='CMD' merge y",
    "git -c credential.helper='!CMD' fetch",
    "git -c uploadpack.packObjectsHook='CMD' fetch",
    "git -c gpg.program='CMD' commit -S",
    "git -c trailer.x.command='CMD' commit",
    "git config --global alias.z '!CMD'",
    "git config set alias.z '!CMD'",
    "git rebase --exec='CMD' main",
    "git filter-branch --tree-filter 'CMD'",
    "ssh h CMD",
    "ssh -p 22 -i k h 'CMD'",
    "ssh -o PermitLocalCommand=yes -o LocalCommand='CMD' h",
    "ssh -o KnownHostsCommand='CMD' h",
    "ssh -o 'ProxyCommand CMD' h",
    "scp -o ProxyCommand='CMD' a h:b",
    "vim -c '!CMD'",
    "vim -c 'call system(\"CMD\")' x",
    "vim +':silent !CMD' x",
    "nvim --headless -c 'lua os.execute(\"CMD\")'",
    "man -P'CMD' ls",
    "man --pager='CMD' ls",
    "less +'!CMD' x",
    "nmap --script 'os.execute(\"CMD\")' x",
    "gdb -ex 'shell CMD'",
    "gdb --eval-command='python import os; os.system(\"CMD\")'",
    "strace CMD",
    "strace -f -e trace=open -o x CMD",
    "ltrace -o x CMD",
    "time -p CMD",
    "nice -5 CMD",
    "timeout --foreground 5 CMD",
    "timeout -k1 5 CMD",
    "setsid -w CMD",
    "stdbuf -o0 CMD",
    "watch -n1 CMD",
    "parallel CMD ::: a",
    "flock -n x CMD",
    "flock x -c 'CMD'",
    "script -qc 'CMD' x",
    "script --command='CMD'",
    "busybox sh -c 'CMD'",
    "busybox env CMD",
    "npx CMD",
    "npm exec --yes -- CMD",
    "npm --script-shell='CMD' test",
    "docker exec c CMD",
    "docker run --rm i CMD",
    "podman run i sh -c 'CMD'",
    "kubectl exec p -- CMD",
    "socat - EXEC:'CMD'",
    "socat - SYSTEM:'CMD'",
    "nc -e 'CMD' h 1",
    "ncat --exec 'CMD' h 1",
    "dc -e '!CMD'",
    "apt-get -o APT::Update::Pre-Invoke::='CMD' update",
    "java -XX:OnError='CMD' x",
    "java -XX:OnOutOfMemoryError='CMD' x",
    "bazel run --run_under='CMD' //x",
    "hg --config alias.x='!CMD' x",
    "jobs -x CMD",
    "compgen -W '$(CMD)'",
    "complete -C 'CMD' x",
    "rake -e 'sh \"CMD\"'",
    "tcpdump -z 'CMD' -w x",
    "sort --compress-program 'CMD' x",
    "wget --use-askpass='CMD' u",
    "zsh -c 'CMD'",
    "fish -c 'CMD'",
    "exec -a x CMD",
    "sh -c 'exec CMD'",
    "unknown-tool --run CMD",
    "command CMD -v",
    "command -- CMD -V",
    "flock x CMD -c y",
    "taskset -c 0 CMD",
    "setarch -R CMD",
    "setarch x86_64 -R CMD",
    "chrt -T 1 -P 2 0 CMD",
    "strace -P cat CMD",
    "strace -E ls CMD",
    "eval -- CMD",
    "bash --rcfile <(echo CMD) -i",
    "hash -p /usr/bin/git ls; ls push",
    "BASH_ALIASES[ls]='CMD'; ls",
    "shopt -s expand_aliases\nalias al='CMD'\nal",
    "shopt -s expand_aliases\nalias al=env\nal CMD",
];

/// Variables that make a program run `CMD`.
const VARIABLES: &[&str] = &[
    "RUSTC_WRAPPER='CMD'",
    "RUSTC_WORKSPACE_WRAPPER='CMD'",
    "CARGO_BUILD_RUSTC_WRAPPER='CMD'",
    "RUSTC='CMD'",
    "CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUNNER='CMD'",
    "CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_LINKER='CMD'",
    "RUSTFLAGS='-C linker=CMD'",
    "CC='CMD'",
    "CXX='CMD'",
    "LD='CMD'",
    "AR='CMD'",
    "MAKE='CMD'",
    "CMAKE_C_COMPILER_LAUNCHER='CMD'",
    "MAKEFLAGS='--eval=$(shell CMD)'",
    "GNUMAKEFLAGS='--eval=$(shell CMD)'",
    "GOFLAGS='-toolexec=CMD'",
    "JAVA_TOOL_OPTIONS='-XX:OnError=CMD'",
    "_JAVA_OPTIONS='-XX:OnError=CMD'",
    "MAVEN_OPTS='-XX:OnError=CMD'",
    "PERL5OPT='-Mbase;system(\"CMD\")'",
    "PERL5DB='BEGIN { system(\"CMD\") }'",
    "LUA_INIT='os.execute(\"CMD\")'",
    "VIMINIT=':!CMD'",
    "EXINIT=':!CMD'",
    "GIT_CONFIG_VALUE_0='!CMD'",
    "GIT_SSH_COMMAND='CMD'",
    "GIT_SSH='CMD'",
    "GIT_EXTERNAL_DIFF='CMD'",
    "GIT_PAGER='CMD'",
    "GIT_EDITOR='CMD'",
    "GIT_SEQUENCE_EDITOR='CMD'",
    "GIT_ASKPASS='CMD'",
    "GIT_PROXY_COMMAND='CMD'",
    "PAGER='CMD'",
    "MANPAGER='CMD'",
    "SYSTEMD_PAGER='CMD'",
    "GH_PAGER='CMD'",
    "AWS_PAGER='CMD'",
    "EDITOR='CMD'",
    "VISUAL='CMD'",
    "BROWSER='CMD'",
    "LESSOPEN='|CMD'",
    "LESSCLOSE='CMD'",
    "FZF_DEFAULT_COMMAND='CMD'",
    "RSYNC_RSH='CMD'",
    "RSYNC_CONNECT_PROG='CMD'",
    "SVN_SSH='CMD'",
    "CVS_RSH='CMD'",
    "SSH_ASKPASS='CMD'",
    "SUDO_ASKPASS='CMD'",
    "npm_config_script_shell='CMD'",
    "NPM_CONFIG_EDITOR='CMD'",
    "TAR_OPTIONS='--to-command=CMD'",
    "PROMPT_COMMAND='CMD'",
    "PS4='$(CMD)'",
    "PS1='`CMD`'",
    "SHELL='CMD'",
    "BASH_ENV='$(CMD)'",
];

const PLAIN: &[&str] = &[
    "rm -rf victim",
    "curl http://x",
    "git push -f",
    "cargo publish",
];

/// Everything that is too mild about a text that runs this plain command.
fn wrong(text: &str, plain: &str) -> Vec<String> {
    complaints(text, &plain.split(' ').collect::<Vec<_>>())
}

#[test]
fn no_program_makes_a_command_milder() {
    let mut found = Vec::new();
    for (program, plain) in PROGRAMS
        .iter()
        .flat_map(|program| PLAIN.iter().map(move |plain| (program, plain)))
    {
        found.extend(wrong(&program.replace("CMD", plain), plain));
    }
    assert!(found.is_empty(), "{}: {}", found.len(), found.join("\n"));
}

#[test]
fn no_variable_makes_a_command_milder() {
    let ways = [
        "VAR make",
        "VAR; make",
        "export VAR; make",
        "declare -x VAR; make",
        "env VAR make",
        "env -i VAR make",
        "sudo VAR make",
        "(export VAR; make)",
    ];
    let mut found = Vec::new();
    for (variable, plain) in VARIABLES
        .iter()
        .flat_map(|variable| PLAIN.iter().map(move |plain| (variable, plain)))
    {
        let variable = variable.replace("CMD", plain);
        for way in ways {
            found.extend(wrong(&way.replace("VAR", &variable), plain));
        }
    }
    assert!(found.is_empty(), "{}: {}", found.len(), found.join("\n"));
}

/// A variable that the caller or the vault sets is judged like one in the text.
#[test]
fn no_variable_of_the_request_makes_a_command_milder() {
    for variable in VARIABLES {
        let (name, value) = variable.split_once('=').expect("an assignment");
        let value = value.trim_matches('\'').replace("CMD", "git push -f");
        let decision = surrounded("make", b"/workspace", &[(name, &value)]);
        assert!(
            decision.action >= Action::RequireApproval,
            "{variable}\n{decision:#?}"
        );
    }
}

/// Variables that replace libraries or directories of programs. They need a checkpoint, like a script in a file.
#[test]
fn what_changes_every_program_is_never_simply_allowed() {
    for variable in [
        "PATH=.",
        "LD_PRELOAD=./x.so",
        "LD_LIBRARY_PATH=.",
        "LD_AUDIT=./x.so",
        "BASH_ENV=./x",
        "ENV=./x",
        "PYTHONSTARTUP=./x",
        "PYTHONPATH=.",
        "PYTHONHOME=.",
        "PERL5LIB=.",
        "RUBYLIB=.",
        "RUBYOPT=-r./x",
        "NODE_OPTIONS='--require ./x'",
        "NODE_PATH=.",
        "CLASSPATH=.",
        "GIT_DIR=.",
        "GIT_EXEC_PATH=.",
        "GIT_CONFIG_GLOBAL=./x",
        "CARGO_HOME=.",
        "GCC_EXEC_PREFIX=./",
        "DOTNET_STARTUP_HOOKS=./x",
        "OPENSSL_CONF=./x",
        "HOME=.",
        "XDG_CONFIG_HOME=.",
        "ZDOTDIR=.",
        "IFS=x",
        "SHELLOPTS=xtrace",
        "npm_config_prefix=.",
    ] {
        for text in [
            format!("{variable} ls"),
            format!("export {variable}; ls"),
            format!("env {variable} ls"),
        ] {
            let decision = shell(&text, Network::None);
            assert!(decision.action > Action::Allow, "{text}\n{decision:#?}");
        }
    }
}

/// Commands that are known only when they run.
#[test]
fn unknown_code_is_a_dynamic_command() {
    for text in [
        "eval \"$x\"",
        "bash -c \"$x\"",
        "bash -c \"cd a && $x\"",
        "perl -e \"$x\"",
        "python3 -c \"$x\"",
        "node -e \"$x\"",
        "awk \"$x\" f",
        "sed s/a/b/e f",
        "base64 -d x | sh",
        "trap \"$x\" EXIT",
        "CC=$x make",
        "PAGER=\"$x\" git log",
        "MAKEFLAGS=$x make",
        "PS4=$x; set -x; ls",
        "read -r PAGER < x; git log",
        "printf -v EDITOR %s x; git commit",
        "echo $((x))",
        "[[ $1 -eq 0 ]]",
        "echo ${!x}",
        "echo ${x@P}",
        "echo $(( $(cat n) ))",
        "n=$(cat n); ((n))",
        "[ $x ]",
        "declare -n r=x",
        "git $x",
        "g() { git \"$@\"; }; g push",
        "cargo \"$x\"",
        "hash -p ./x ls; ls",
        "BASH_CMDS[ls]=./x; ls",
    ] {
        assert!(is_dynamic(text), "{text}");
        let decision = shell(text, Network::Host);
        assert!(decision.action >= Action::RequireApproval, "{text}");
        assert!(
            passes_rule("ls", &["rm"]) && !passes_rule(text, &["rm"]),
            "{text}"
        );
        assert!(!passes_rule(text, &["git", "push"]), "{text}");
    }
}
