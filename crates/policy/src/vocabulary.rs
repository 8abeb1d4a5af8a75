//! The names that mean something: programs by what they do, and variables that change what programs do.
//!
//! A list is one string of words, so that it can be read.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::LazyLock;

use crate::Category;

/// Programs that only read, whatever their options.
pub(crate) const READERS: &str = "\
    : [ ag alias arch b2sum base32 base64 basename bc bg break cal cat cd cksum cmp column \
    comm command compgen continue cut declare df diff diff3 dir dirname dirs du echo egrep \
    exit export expr factor false fg fgrep fmt fold free getconf getopts grep groups hash \
    head hexdump id jobs join jq let local locale ls lsblk lscpu lsof mapfile md5sum nl nm \
    nproc numfmt objdump od paste pathchk pgrep pidof popd printenv printf ps pushd pwd read \
    readarray readelf readlink readonly realpath return rev seq set sha1sum sha224sum \
    sha256sum sha384sum sha512sum shift shopt size sleep stat strings sum tac tail test \
    times tr true tsort tty type typeset ulimit umask uname unset uptime vdir wait wc whatis \
    whereis which who whoami zcat zgrep";

/// Programs that change files in the vault, or run code that may.
pub(crate) const WRITERS: &str = "\
    ant ar as awk bazel black bzip2 c++ cargo cc chgrp chmod chown clang clang++ \
    clang-format cmake cp csplit ctest deno dotnet ed esbuild eslint ex ffmpeg flake8 g++ \
    gawk gcc gdb gem go gofmt gpg gradle gunzip gzip install isort java javac jest just kill \
    killall ld ln lua make mawk meson mkdir mkfifo mktemp mocha mv mvn mypy ninja node \
    nodejs nox openssl patch perl php pkill playwright pre-commit prettier pylint pyright \
    pytest python python2 python3 rake renice rmdir ruby ruff rustc rustfmt sed split \
    sqlite3 strip swift swiftc tar tee touch tox truncate ts-node tsc tsx unxz unzip \
    valgrind vite vitest webpack xz zip zstd";

/// Programs whose purpose is the network.
pub(crate) const NETWORKERS: &str = "\
    apk apt apt-get aptitude aria2c az brew curl dig dnf ftp gcloud host http https lynx \
    mysql nc ncat netcat nmap nslookup pacman ping ping6 psql redis-cli scp sftp snap socat \
    ssh ssh-copy-id telnet tracepath traceroute w3m wget whois yum zypper";

/// Programs that wait for a person.
pub(crate) const TALKERS: &str = "\
    btop dialog emacs htop less lldb man micro more mutt nano nvim screen tig tmux top vi \
    view vim vimdiff whiptail";

/// Programs whose only purpose is to change the boundary.
pub(crate) const ESCAPERS: &str = "\
    avfs bpftool bwrap capsh chroot containerd ctr debugfs depmod firejail fusermount \
    fusermount3 insmod kexec losetup modprobe mount newgidmap newuidmap nsenter pivot_root \
    rmmod runc setcap swapoff swapon switch_root systemd-nspawn umount unshare";

/// Programs that destroy by purpose.
pub(crate) const DESTROYERS: &str = "\
    blkdiscard fdisk mkfs mkswap parted shred wipefs";

/// Variables that change what other programs do; `LD_*` means all that begin so.
const CHANGERS: &str = "\
    BASHOPTS BASH_FUNC_* CARGO_BUILD_RUSTC_WRAPPER CARGO_TARGET_* CLASSPATH DYLD_* ENV \
    GCONV_PATH GIT_CONFIG* GIT_DIR GIT_EXEC_PATH GIT_SSH* GIT_TEMPLATE_DIR HOME IFS \
    JAVA_TOOL_OPTIONS JDK_JAVA_OPTIONS LD_* MAKEFLAGS NODE_OPTIONS NODE_PATH PATH PERL5DB \
    PERL5LIB PERL5OPT PS4 PYTHONHOME PYTHONINSPECT PYTHONPATH PYTHONSTARTUP RUBYLIB RUBYOPT \
    RUSTC_WORKSPACE_WRAPPER RUSTC_WRAPPER SHELL SHELLOPTS TAR_OPTIONS XDG_CONFIG_HOME \
    ZDOTDIR _JAVA_OPTIONS";

/// Variables whose value is a command.
const COMMANDS: &str = "\
    BASH_ENV BROWSER EDITOR GIT_ASKPASS GIT_EDITOR GIT_EXTERNAL_DIFF GIT_PAGER \
    GIT_PROXY_COMMAND GIT_SEQUENCE_EDITOR GIT_SSH GIT_SSH_COMMAND LESSCLOSE LESSOPEN \
    MANPAGER PAGER PROMPT_COMMAND RSYNC_RSH SSH_ASKPASS SUDO_ASKPASS VISUAL";

/// Names of ours with what is known about them. They are short and nobody else chooses them, so a plain hash does.
pub(crate) type Names<V> = HashMap<&'static str, V, BuildHasherDefault<Fnv>>;

/// The hash of Fowler, Noll and Vo.
pub(crate) struct Fnv(u64);

impl Default for Fnv {
    fn default() -> Fnv {
        Fnv(0xcbf2_9ce4_8422_2325)
    }
}

impl Hasher for Fnv {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
        }
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

/// What a program of one of the lists is for. Looked up for every command, so it is a table.
pub(crate) fn purpose(program: &str) -> Option<Category> {
    static PURPOSES: LazyLock<Names<Category>> = LazyLock::new(|| {
        let lists = [
            (READERS, Category::ReadOnly),
            (WRITERS, Category::Mutating),
            (NETWORKERS, Category::Networked),
            (TALKERS, Category::Interactive),
            (ESCAPERS, Category::HostEscapeRisk),
            (DESTROYERS, Category::Destructive),
        ];
        let words = |(list, category): (&'static str, Category)| {
            list.split_ascii_whitespace()
                .map(move |word| (word, category))
        };
        lists.into_iter().flat_map(words).collect()
    });
    PURPOSES.get(program).copied()
}

/// Whether the list has the word.
pub(crate) fn listed(list: &str, word: &str) -> bool {
    list.split_ascii_whitespace().any(|listed| listed == word)
}

pub(crate) fn changes_meaning(variable: &str) -> bool {
    static NAMES: LazyLock<Names<()>> = LazyLock::new(|| {
        let lists = [CHANGERS, COMMANDS].into_iter();
        let names = lists.flat_map(str::split_ascii_whitespace);
        names.map(|name| (name, ())).collect()
    });
    static PREFIXES: LazyLock<Vec<&str>> = LazyLock::new(|| {
        let listed = CHANGERS.split_ascii_whitespace();
        listed.filter_map(|name| name.strip_suffix('*')).collect()
    });
    NAMES.contains_key(variable) || PREFIXES.iter().any(|prefix| variable.starts_with(prefix))
}

pub(crate) fn is_command_variable(variable: &str) -> bool {
    listed(COMMANDS, variable)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_sorted_and_no_program_is_in_two() {
        let lists = [READERS, WRITERS, NETWORKERS, TALKERS, ESCAPERS, DESTROYERS];
        for list in lists.iter().chain([&CHANGERS, &COMMANDS]) {
            let words: Vec<&str> = list.split_ascii_whitespace().collect();
            assert!(words.is_sorted_by(|a, b| a < b), "{words:?}");
        }
        let all: Vec<&str> = lists
            .iter()
            .flat_map(|l| l.split_ascii_whitespace())
            .collect();
        for word in &all {
            assert_eq!(all.iter().filter(|w| *w == word).count(), 1, "{word}");
        }
    }

    #[test]
    fn variables_match_whole_or_by_prefix() {
        assert!(
            changes_meaning("LD_PRELOAD") && changes_meaning("PATH") && changes_meaning("PAGER")
        );
        assert!(!changes_meaning("RUST_LOG") && !changes_meaning("MYPATH"));
        assert!(is_command_variable("GIT_SSH_COMMAND") && !is_command_variable("PATH"));
    }
}
