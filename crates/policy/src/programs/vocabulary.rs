//! Lists of programs by category, and of variables that change what programs do.
//!
//! A list is one string of words, which keeps it short and sorted.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::LazyLock;

use super::category::Category;

/// Programs that only read, with any options.
pub(crate) const READ_ONLY: &str = "\
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
pub(crate) const MUTATING: &str = "\
    ant ar as awk bazel black bzip2 c++ cargo cc chgrp chmod chown clang clang++ \
    clang-format cmake cp csplit ctest deno dotnet ed esbuild eslint ex ffmpeg flake8 g++ \
    gawk gcc gdb gem go gofmt gpg gradle gunzip gzip install isort java javac jest just kill \
    killall ld ln lua make mawk meson mkdir mkfifo mktemp mocha mv mvn mypy ninja node \
    nodejs nox openssl patch perl php pkill playwright pre-commit prettier pylint pyright \
    pytest python python2 python3 rake renice rmdir ruby ruff rustc rustfmt sed split \
    sqlite3 strip swift swiftc tar tee touch tox truncate ts-node tsc tsx unxz unzip \
    valgrind vite vitest webpack xz zip zstd";

/// Programs that use the network.
pub(crate) const NETWORKED: &str = "\
    apk apt apt-get aptitude aria2c az brew curl dig dnf ftp gcloud host http https lynx \
    mysql nc ncat netcat nmap nslookup pacman ping ping6 psql redis-cli scp sftp snap socat \
    ssh ssh-copy-id telnet tracepath traceroute w3m wget whois yum zypper";

/// Programs that need a terminal and a person.
pub(crate) const INTERACTIVE: &str = "\
    btop dialog emacs htop less lldb man micro more mutt nano nvim screen tig tmux top vi \
    view vim vimdiff whiptail";

/// Programs that change mounts, namespaces, capabilities or the kernel, or that control avfs itself.
pub(crate) const HOST_ESCAPE: &str = "\
    avfs bpftool bwrap capsh chroot containerd ctr debugfs depmod firejail fusermount \
    fusermount3 insmod kexec losetup modprobe mount newgidmap newuidmap nsenter pivot_root \
    rmmod runc setcap swapoff swapon switch_root systemd-nspawn umount unshare";

/// Programs that always destroy data.
pub(crate) const DESTRUCTIVE: &str = "\
    blkdiscard fdisk mkfs mkswap parted shred wipefs";

/// Variables that change what other programs do. `LD_*` means all that begin with `LD_`.
const SETTINGS: &str = "\
    BASHOPTS BASH_ALIASES BASH_CMDS BASH_FUNC_* BASH_LOADABLES_PATH CARGO_HOME CARGO_TARGET_* CLASSPATH \
    COMPILER_PATH DOTNET_STARTUP_HOOKS DYLD_* EMACSLOADPATH ENV GCC_EXEC_PREFIX \
    GCONV_PATH GIO_EXTRA_MODULES GIT_CONFIG* GIT_DIR GIT_EXEC_PATH GIT_SSH* \
    GIT_TEMPLATE_DIR GOROOT GTK_MODULES GTK_PATH HOME IFS INPUTRC LD_* LOCPATH \
    LUA_CPATH LUA_PATH NODE_PATH NPM_CONFIG_* OPENSSL_CONF OPENSSL_ENGINES \
    OPENSSL_MODULES PATH PERL5LIB PERLLIB PHPRC PHP_INI_SCAN_DIR PIP_CONFIG_FILE \
    PYTEST_PLUGINS PYTHONBREAKPOINT PYTHONHOME PYTHONINSPECT PYTHONPATH PYTHONSTARTUP \
    PYTHONUSERBASE QT_PLUGIN_PATH RIPGREP_CONFIG_PATH RUBYLIB R_PROFILE R_PROFILE_USER \
    SHELLOPTS TCLLIBPATH VIMRUNTIME WGETRC XDG_CONFIG_DIRS XDG_CONFIG_HOME ZDOTDIR \
    npm_config_*";

/// Variables whose value is a command.
const COMMANDS: &str = "\
    AR AS AWS_PAGER BASH_ENV BAT_PAGER BROWSER CARGO_BUILD_RUSTC \
    CARGO_BUILD_RUSTC_WORKSPACE_WRAPPER CARGO_BUILD_RUSTC_WRAPPER CARGO_BUILD_RUSTDOC \
    CC CMAKE_CUDA_COMPILER_LAUNCHER CMAKE_CXX_COMPILER_LAUNCHER \
    CMAKE_C_COMPILER_LAUNCHER CPP CVS_RSH CXX DELTA_PAGER EDITOR FC FCEDIT \
    FZF_DEFAULT_COMMAND GH_BROWSER GH_EDITOR GH_PAGER GIT_ASKPASS GIT_EDITOR \
    GIT_EXTERNAL_DIFF GIT_PAGER GIT_PROXY_COMMAND GIT_SEQUENCE_EDITOR GIT_SSH \
    GIT_SSH_COMMAND HGEDITOR HGMERGE HOSTCC HOSTCXX KUBECTL_EXTERNAL_DIFF KUBE_EDITOR \
    LD LESSCLOSE LESSOPEN LEX MAKE MANPAGER NM OBJCOPY PAGER PERLDOC_PAGER PKG_CONFIG \
    PROMPT_COMMAND PSQL_EDITOR PSQL_PAGER RANLIB RSYNC_CONNECT_PROG RSYNC_RSH RUSTC \
    RUSTC_WORKSPACE_WRAPPER RUSTC_WRAPPER RUSTDOC RUSTFMT SHELL SSH_ASKPASS STRIP \
    SUDO_ASKPASS SUDO_EDITOR SVN_EDITOR SVN_SSH SYSTEMD_EDITOR SYSTEMD_PAGER VISUAL \
    YACC";

/// Variables whose value is options or code, which may have a command in it.
const OPTIONS: &str = "\
    CARGO_ALIAS_* CARGO_BUILD_RUSTFLAGS CARGO_ENCODED_RUSTFLAGS \
    EXINIT FZF_DEFAULT_OPTS GNUMAKEFLAGS GOFLAGS GRADLE_OPTS GVIMINIT \
    JAVA_OPTS JAVA_TOOL_OPTIONS JDK_JAVA_OPTIONS LESS LUA_INIT* MAKEFLAGS \
    MANOPT MAVEN_ARGS MAVEN_OPTS MFLAGS NODE_OPTIONS PERL5DB PERL5OPT PYTEST_ADDOPTS \
    RUBYOPT RUSTDOCFLAGS RUSTFLAGS SBT_OPTS TAR_OPTIONS VIMINIT _JAVA_OPTIONS";

/// Variables whose value is options of compilers and linkers, of which few run a command.
const FLAGS: &str = "CFLAGS CPPFLAGS CXXFLAGS LDFLAGS";

/// Variables that a shell expands whenever it prints them.
const PROMPTS: &str = "MAILPATH PS0 PS1 PS2 PS4";

/// How programs use a variable of these lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Meaning {
    /// A directory, a file or a switch.
    Setting,
    Command,
    Options,
    Flags,
    Prompt,
}

/// A table by name. The names are constants of this crate, so a hash without a random key is safe.
pub(crate) type Names<V> = HashMap<&'static str, V, BuildHasherDefault<Fnv>>;

/// The FNV-1a hash.
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

/// The category of a program in one of the lists. It is looked up for every command, so the lists are made into a
/// table.
pub(crate) fn category_of(program: &str) -> Option<Category> {
    static CATEGORIES: LazyLock<Names<Category>> = LazyLock::new(|| {
        let lists = [
            (READ_ONLY, Category::ReadOnly),
            (MUTATING, Category::Mutating),
            (NETWORKED, Category::Networked),
            (INTERACTIVE, Category::Interactive),
            (HOST_ESCAPE, Category::HostEscapeRisk),
            (DESTRUCTIVE, Category::Destructive),
        ];
        let words = |(list, category): (&'static str, Category)| {
            list.split_ascii_whitespace()
                .map(move |word| (word, category))
        };
        lists.into_iter().flat_map(words).collect()
    });
    CATEGORIES.get(program).copied()
}

/// Whether the list has the word.
pub(crate) fn listed(list: &str, word: &str) -> bool {
    list.split_ascii_whitespace().any(|listed| listed == word)
}

/// How programs use a variable. `None` for a variable in no list.
pub(crate) fn meaning(variable: &str) -> Option<Meaning> {
    static NAMES: LazyLock<Names<Meaning>> = LazyLock::new(|| lists().collect());
    static PREFIXES: LazyLock<Vec<(&str, Meaning)>> = LazyLock::new(|| {
        let prefix =
            |(name, meaning): (&'static str, Meaning)| Some((name.strip_suffix('*')?, meaning));
        lists().filter_map(prefix).collect()
    });
    let prefixed = || {
        let mut prefixes = PREFIXES.iter();
        prefixes
            .find(|(prefix, _)| variable.starts_with(prefix))
            .map(|(_, meaning)| *meaning)
    };
    match NAMES.get(variable).copied().or_else(prefixed)? {
        Meaning::Setting if runs(variable) => Some(Meaning::Command),
        meaning => Some(meaning),
    }
}

fn lists() -> impl Iterator<Item = (&'static str, Meaning)> {
    let lists = [
        (SETTINGS, Meaning::Setting),
        (COMMANDS, Meaning::Command),
        (OPTIONS, Meaning::Options),
        (FLAGS, Meaning::Flags),
        (PROMPTS, Meaning::Prompt),
    ];
    let words = |(list, meaning): (&'static str, Meaning)| {
        list.split_ascii_whitespace()
            .map(move |name| (name, meaning))
    };
    lists.into_iter().flat_map(words)
}

/// Whether a setting of a tool names a program: `CARGO_TARGET_X_RUNNER`, `npm_config_script_shell`.
fn runs(variable: &str) -> bool {
    let lower = variable.to_ascii_lowercase();
    let ends = [
        "_runner", "_linker", "_shell", "_editor", "_git", "_viewer", "_browser",
    ];
    ends.iter().any(|end| lower.ends_with(end))
}

pub(crate) fn is_special_variable(variable: &str) -> bool {
    meaning(variable).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_sorted_and_no_program_is_in_two() {
        let lists = [
            READ_ONLY,
            MUTATING,
            NETWORKED,
            INTERACTIVE,
            HOST_ESCAPE,
            DESTRUCTIVE,
        ];
        for list in lists
            .iter()
            .chain([&SETTINGS, &COMMANDS, &OPTIONS, &FLAGS, &PROMPTS])
        {
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
            is_special_variable("LD_PRELOAD")
                && is_special_variable("PATH")
                && is_special_variable("PAGER")
        );
        assert!(!is_special_variable("RUST_LOG") && !is_special_variable("MYPATH"));
        assert_eq!(meaning("GIT_SSH_COMMAND"), Some(Meaning::Command));
        assert_eq!(
            meaning("CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUNNER"),
            Some(Meaning::Command)
        );
        assert_eq!(meaning("PATH"), Some(Meaning::Setting));
        assert_eq!(meaning("RUSTFLAGS"), Some(Meaning::Options));
    }
}
