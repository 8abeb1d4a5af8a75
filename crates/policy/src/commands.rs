//! What a program does, by its name and its options.

use crate::Category::{self, *};
use crate::brace::glob_matches;
use crate::word::{HOLE, Word};
use crate::{code, git, tools};

/// What is known about a command.
#[derive(Debug, Default)]
pub(crate) struct Known {
    pub categories: Vec<Category>,
    pub note: Option<String>,
    /// A place of the host that it names.
    pub place: Option<String>,
    /// Shell text that it would run.
    pub scripts: Vec<String>,
}

impl Known {
    pub fn is(categories: &[Category]) -> Known {
        Known {
            categories: categories.to_vec(),
            ..Known::default()
        }
    }
}

/// Programs that only read, whatever their options.
const READERS: &[&str] = &[
    ":",
    "[",
    "ag",
    "alias",
    "arch",
    "b2sum",
    "base32",
    "base64",
    "basename",
    "bc",
    "bg",
    "break",
    "cal",
    "cat",
    "cd",
    "cksum",
    "cmp",
    "column",
    "comm",
    "command",
    "compgen",
    "continue",
    "cut",
    "declare",
    "df",
    "diff",
    "diff3",
    "dir",
    "dirname",
    "dirs",
    "du",
    "echo",
    "egrep",
    "exit",
    "export",
    "expr",
    "factor",
    "false",
    "fg",
    "fgrep",
    "fmt",
    "fold",
    "free",
    "getconf",
    "getopts",
    "grep",
    "groups",
    "hash",
    "head",
    "hexdump",
    "id",
    "jobs",
    "join",
    "jq",
    "let",
    "local",
    "locale",
    "ls",
    "lsblk",
    "lscpu",
    "lsof",
    "mapfile",
    "md5sum",
    "nl",
    "nm",
    "nproc",
    "numfmt",
    "objdump",
    "od",
    "paste",
    "pathchk",
    "pgrep",
    "pidof",
    "popd",
    "printenv",
    "printf",
    "ps",
    "pushd",
    "pwd",
    "read",
    "readarray",
    "readelf",
    "readlink",
    "readonly",
    "realpath",
    "return",
    "rev",
    "seq",
    "set",
    "sha1sum",
    "sha224sum",
    "sha256sum",
    "sha384sum",
    "sha512sum",
    "shift",
    "shopt",
    "size",
    "sleep",
    "stat",
    "strings",
    "sum",
    "tac",
    "tail",
    "test",
    "times",
    "tr",
    "true",
    "tsort",
    "tty",
    "type",
    "typeset",
    "ulimit",
    "umask",
    "uname",
    "unset",
    "uptime",
    "vdir",
    "wait",
    "wc",
    "whatis",
    "whereis",
    "which",
    "who",
    "whoami",
    "zcat",
    "zgrep",
];

/// Programs that read unless one of these options is given, or an argument that may be one.
const READERS_BUT: &[(&str, &[&str])] = &[
    ("date", &["-s", "--set"]),
    ("fd", &["-x", "-X", "--exec", "--exec-batch"]),
    ("file", &["-C", "--compile"]),
    ("hostname", &["-F", "--file", "-b"]),
    ("iconv", &["-o", "--output"]),
    ("rg", &["--pre", "--hostname-bin"]),
    ("shuf", &["-o", "--output"]),
    ("sort", &["-o", "--output", "--compress-program", "-T"]),
    ("tree", &["-o"]),
    ("uniq", &[]),
    ("xxd", &["-r"]),
    ("yq", &["-i", "--inplace"]),
];

/// Programs that change files in the vault, or run code that may.
const WRITERS: &[&str] = &[
    "ant",
    "ar",
    "as",
    "awk",
    "bazel",
    "black",
    "bzip2",
    "c++",
    "cargo",
    "cc",
    "chgrp",
    "chmod",
    "chown",
    "clang",
    "clang++",
    "clang-format",
    "cmake",
    "cp",
    "csplit",
    "ctest",
    "deno",
    "dotnet",
    "ed",
    "esbuild",
    "eslint",
    "ex",
    "ffmpeg",
    "flake8",
    "g++",
    "gawk",
    "gcc",
    "gdb",
    "gem",
    "go",
    "gofmt",
    "gpg",
    "gradle",
    "gunzip",
    "gzip",
    "install",
    "isort",
    "java",
    "javac",
    "jest",
    "just",
    "kill",
    "killall",
    "ld",
    "ln",
    "lua",
    "make",
    "mawk",
    "meson",
    "mkdir",
    "mkfifo",
    "mktemp",
    "mocha",
    "mv",
    "mvn",
    "mypy",
    "ninja",
    "node",
    "nodejs",
    "nox",
    "openssl",
    "patch",
    "perl",
    "php",
    "pkill",
    "playwright",
    "pre-commit",
    "prettier",
    "pylint",
    "pyright",
    "pytest",
    "python",
    "python2",
    "python3",
    "rake",
    "renice",
    "rmdir",
    "ruby",
    "ruff",
    "rustc",
    "rustfmt",
    "sed",
    "split",
    "sqlite3",
    "strip",
    "swift",
    "swiftc",
    "tar",
    "tee",
    "touch",
    "tox",
    "truncate",
    "ts-node",
    "tsc",
    "tsx",
    "unxz",
    "unzip",
    "valgrind",
    "vite",
    "vitest",
    "webpack",
    "xz",
    "zip",
    "zstd",
];

/// Programs whose purpose is the network.
const NETWORKERS: &[&str] = &[
    "apk",
    "apt",
    "apt-get",
    "aptitude",
    "aria2c",
    "az",
    "brew",
    "curl",
    "dig",
    "dnf",
    "ftp",
    "gcloud",
    "host",
    "http",
    "https",
    "lynx",
    "mysql",
    "nc",
    "ncat",
    "netcat",
    "nmap",
    "nslookup",
    "pacman",
    "ping",
    "ping6",
    "psql",
    "redis-cli",
    "scp",
    "sftp",
    "snap",
    "socat",
    "ssh",
    "ssh-copy-id",
    "telnet",
    "tracepath",
    "traceroute",
    "w3m",
    "wget",
    "whois",
    "yum",
    "zypper",
];

/// Programs that wait for a person.
const TALKERS: &[&str] = &[
    "btop", "dialog", "emacs", "htop", "less", "lldb", "man", "micro", "more", "mutt", "nano",
    "nvim", "screen", "tig", "tmux", "top", "vi", "view", "vim", "vimdiff", "whiptail",
];

/// Programs whose only purpose is to change the boundary.
const ESCAPERS: &[&str] = &[
    "avfs",
    "bpftool",
    "bwrap",
    "capsh",
    "chroot",
    "containerd",
    "ctr",
    "debugfs",
    "depmod",
    "firejail",
    "fusermount",
    "fusermount3",
    "insmod",
    "kexec",
    "losetup",
    "mount",
    "newgidmap",
    "newuidmap",
    "nsenter",
    "pivot_root",
    "rmmod",
    "modprobe",
    "runc",
    "setcap",
    "swapoff",
    "swapon",
    "switch_root",
    "systemd-nspawn",
    "umount",
    "unshare",
];

/// Programs that destroy by purpose.
const DESTROYERS: &[&str] = &[
    "blkdiscard",
    "fdisk",
    "mkfs",
    "mkswap",
    "parted",
    "shred",
    "wipefs",
];

/// Classifies a command that runs no other command.
pub(crate) fn classify(name: &str, args: &[Word]) -> Known {
    if asks_for_help(name, args) {
        return Known::is(&[ReadOnly]);
    }
    if let Some(known) = tools::classify(name, args).or_else(|| special(name, args)) {
        return known;
    }
    let name = unversioned(name);
    let categories: &[Category] = if READERS.contains(&name) {
        &[ReadOnly]
    } else if let Some((_, options)) = READERS_BUT.iter().find(|(n, _)| *n == name) {
        return Known::is(if changes(name, args, options) {
            &[Mutating]
        } else {
            &[ReadOnly]
        });
    } else if WRITERS.contains(&name) {
        &[Mutating]
    } else if NETWORKERS.contains(&name) {
        &[Networked]
    } else if TALKERS.contains(&name) {
        &[Interactive]
    } else if ESCAPERS.contains(&name) {
        &[HostEscapeRisk]
    } else if DESTROYERS.contains(&name) {
        &[Destructive]
    } else {
        &[Unknown]
    };
    let note = (categories == [HostEscapeRisk])
        .then(|| format!("{name} only makes sense at the boundary, and is no use inside it"));
    Known {
        note,
        ..Known::is(categories)
    }
}

/// Programs with a mind of their own.
fn special(name: &str, args: &[Word]) -> Option<Known> {
    let has = |options: &[&str]| args.iter().any(|w| is_option(w, options));
    Some(match unversioned(name) {
        "git" => git::classify(args),
        "rm" | "unlink" => {
            let hard = has(&["-r", "-R", "-f", "--recursive", "--force"])
                || args.iter().any(|w| w.glob || w.starts_unknown());
            Known::is(if hard { &[Destructive] } else { &[Mutating] })
        }
        "dd" if args.iter().any(|w| w.text.starts_with("of=")) => Known::is(&[Destructive]),
        "dd" => Known::is(&[ReadOnly]),
        "sed" | "gsed" => Known::is(if code::sed_reads(args) {
            &[ReadOnly]
        } else {
            &[Mutating]
        }),
        "awk" | "gawk" | "mawk" | "nawk" => code::awk(args),
        "python" | "perl" | "ruby" | "node" | "nodejs" | "php" | "lua" | "deno" => {
            code::interpreter(unversioned(name), args)
        }
        "bash" | "sh" | "dash" | "zsh" | "ksh" | "fish" | "ash" if args.is_empty() => {
            Known::is(&[Interactive])
        }
        "mount" if args.is_empty() || has(&["-l", "-V"]) && args.len() == 1 => {
            Known::is(&[ReadOnly])
        }
        "curl" | "wget" => {
            let saves = unversioned(name) == "wget"
                || has(&["-o", "-O", "--output", "--remote-name", "-c", "-D"]);
            Known::is(if saves {
                &[Networked, Mutating]
            } else {
                &[Networked]
            })
        }
        "rsync" if args.iter().all(|w| !w.text.contains(':') && !w.dynamic) => {
            Known::is(if has(&["--delete"]) {
                &[Destructive]
            } else {
                &[Mutating]
            })
        }
        "rsync" | "scp" => Known::is(&[Networked, Mutating]),
        "tar" if lists_archive(args) => Known::is(&[ReadOnly]),
        "unzip" if has(&["-l", "-p", "-t", "-Z"]) => Known::is(&[ReadOnly]),
        "source" | "." => Known::is(&[Mutating, Unknown]),
        name if name.starts_with("mkfs.") => Known::is(&[Destructive]),
        "test" | "[" | "let" | "printf" | "declare" | "typeset" | "read" | "unset" | "local"
        | "export" | "readonly" | "mapfile"
            if args.iter().any(may_hold_commands) =>
        {
            Known::is(&[Unknown])
        }
        _ => return None,
    })
}

/// `python3.11` is `python`, `gcc-12` is `gcc`.
fn unversioned(name: &str) -> &str {
    let bare = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.' || c == '-');
    match bare {
        "python" | "perl" | "ruby" | "node" | "php" | "lua" | "gcc" | "g++" | "clang"
        | "clang++" | "pip" | "pytest" => bare,
        _ => name,
    }
}

/// Lists an archive's names, with no option that could run a program.
fn lists_archive(args: &[Word]) -> bool {
    let lists = args.iter().any(|w| {
        is_option(w, &["-t", "--list"]) || args[0] == *w && w.text.starts_with('t') && !w.dynamic
    });
    lists
        && !args
            .iter()
            .any(|w| is_option(w, &["-I", "-F"]) || runs_program(&w.text))
}

fn runs_program(option: &str) -> bool {
    [
        "--checkpoint-action",
        "--to-command",
        "--use-compress",
        "--rsh-command",
        "--info-script",
    ]
    .iter()
    .any(|long| option.starts_with(long))
}

fn changes(name: &str, args: &[Word], options: &[&str]) -> bool {
    let plain = args
        .iter()
        .filter(|w| !w.text.starts_with('-') || w.text == "-")
        .count();
    match name {
        "uniq" if plain > 1 => true,
        "hostname" if plain > 0 => true,
        _ => args
            .iter()
            .any(|w| w.starts_unknown() || is_option(w, options)),
    }
}

/// Whether the word is, or begins, one of the options: `-o`, `-ofile`, `-no`, `--output=x`, `--outp`.
pub(crate) fn is_option(word: &Word, options: &[&str]) -> bool {
    let text = word.text.as_str();
    if let Some(long) = text.strip_prefix("--") {
        let name = long.split('=').next().unwrap_or_default();
        let abbreviates = |option: &&str| {
            option
                .strip_prefix("--")
                .is_some_and(|o| o == name || name.len() > 2 && o.starts_with(name))
        };
        return options.iter().any(abbreviates);
    }
    let Some(cluster) = text.strip_prefix('-').filter(|c| !c.is_empty()) else {
        return false;
    };
    options
        .iter()
        .filter_map(|o| o.strip_prefix('-'))
        .any(|option| {
            let mut letters = option.chars();
            match (letters.next(), letters.next()) {
                (Some(letter), None) if letter != '-' => cluster.contains(letter),
                _ => cluster == option,
            }
        })
}

fn asks_for_help(name: &str, args: &[Word]) -> bool {
    let [only] = args else { return false };
    let asks = matches!(
        only.text.as_str(),
        "--version" | "--help" | "-V" | "version"
    ) || only.text == "-v" && matches!(name, "node" | "npm" | "yarn" | "pnpm");
    asks && !only.dynamic && is_known(name) && !ESCAPERS.contains(&name)
}

/// Every name this crate knows something about.
fn names() -> impl Iterator<Item = &'static str> {
    let plain = [
        READERS,
        WRITERS,
        NETWORKERS,
        TALKERS,
        ESCAPERS,
        DESTROYERS,
        tools::NAMES,
    ];
    let special = [
        "git", "rm", "dd", "sed", "awk", "rsync", "scp", "tar", "bash", "sh", "env", "sudo",
    ];
    plain
        .into_iter()
        .flatten()
        .copied()
        .chain(special)
        .chain(READERS_BUT.iter().map(|(n, _)| *n))
}

pub(crate) fn is_known(name: &str) -> bool {
    let name = unversioned(name);
    names().any(|n| n == name)
}

/// The strictest of the known names that a pattern such as `/usr/bin/c?rl` could mean.
pub(crate) fn names_like(pattern: &str) -> Vec<&'static str> {
    let pattern = pattern.rsplit('/').next().unwrap_or_default();
    if pattern.chars().all(|c| c == HOLE || "*?[]".contains(c)) {
        return Vec::new();
    }
    let strict = [ESCAPERS, NETWORKERS, tools::NAMES]
        .into_iter()
        .flatten()
        .copied()
        .chain(["git"]);
    strict
        .filter(|name| glob_matches(pattern, name, HOLE))
        .take(8)
        .collect()
}

/// The arguments that may be paths: not text to print, patterns, programs or messages.
pub(crate) fn path_arguments(name: &str, args: &[Word]) -> Vec<Word> {
    let skip_after: &[&str] = match name {
        "echo" | "printf" | "expr" | "seq" | "export" | "declare" | "local" => return Vec::new(),
        "test" | "["
            if args
                .iter()
                .any(|w| matches!(w.text.as_str(), "=" | "==" | "!=")) =>
        {
            return Vec::new();
        }
        "git" | "hg" | "jj" => &["-m", "--message", "-S", "-G", "--grep", "--author", "-L"],
        "grep" | "egrep" | "fgrep" | "rg" | "ag" | "sed" | "find" => &[
            "-e",
            "--regexp",
            "--expression",
            "-path",
            "-wholename",
            "-regex",
            "-not",
            "-iregex",
        ],
        _ => &[],
    };
    let remote = matches!(
        name,
        "scp" | "rsync" | "ssh" | "docker" | "podman" | "kubectl" | "sftp"
    );
    let mut pattern_next =
        first_is_pattern(name) && !args.iter().any(|w| is_option(w, &["-e", "-f"]));
    let mut skip = false;
    let mut paths = Vec::new();
    for word in args {
        let taken = std::mem::replace(&mut skip, skip_after.contains(&word.text.as_str()));
        if taken || remote && word.text.contains(":/") {
            continue;
        }
        if pattern_next && !word.text.starts_with('-') {
            pattern_next = false;
            continue;
        }
        paths.push(word.clone());
    }
    paths
}

fn first_is_pattern(name: &str) -> bool {
    matches!(
        name,
        "grep"
            | "egrep"
            | "fgrep"
            | "rg"
            | "ag"
            | "sed"
            | "gsed"
            | "awk"
            | "gawk"
            | "mawk"
            | "jq"
            | "yq"
            | "tr"
            | "zgrep"
            | "fd"
            | "pgrep"
    )
}

/// Where the system, and the toolchains it lends, keep programs.
pub(crate) fn is_program_directory(normalised: &str, given: &str) -> bool {
    const SYSTEM: &[&str] = &[
        "/bin",
        "/sbin",
        "/usr/bin",
        "/usr/sbin",
        "/usr/local/bin",
        "/usr/local/sbin",
    ];
    const LENT: &[&str] = &[
        "/.rustup/toolchains/",
        "/.pyenv/versions/",
        "/.nvm/versions/",
        "/.cargo/bin/",
    ];
    given.starts_with('/')
        && (SYSTEM.contains(&normalised)
            || LENT.iter().any(|l| format!("{normalised}/").contains(l)))
}

/// Builtins and arithmetic evaluate substitutions even in quoted text.
pub(crate) fn may_hold_commands(word: &Word) -> bool {
    word.text.contains("$(") || word.text.contains('`')
}

/// Variables that change what other programs do.
pub(crate) fn changes_meaning(name: &str) -> bool {
    const PREFIXES: &[&str] = &[
        "LD_",
        "DYLD_",
        "GIT_CONFIG",
        "BASH_FUNC_",
        "GIT_SSH",
        "CARGO_TARGET_",
    ];
    const NAMES: &[&str] = &[
        "BASHOPTS",
        "CARGO_BUILD_RUSTC_WRAPPER",
        "CLASSPATH",
        "ENV",
        "GCONV_PATH",
        "GIT_DIR",
        "GIT_EXEC_PATH",
        "GIT_TEMPLATE_DIR",
        "HOME",
        "IFS",
        "JAVA_TOOL_OPTIONS",
        "JDK_JAVA_OPTIONS",
        "MAKEFLAGS",
        "NODE_OPTIONS",
        "NODE_PATH",
        "PATH",
        "PERL5DB",
        "PERL5LIB",
        "PERL5OPT",
        "PS4",
        "PYTHONHOME",
        "PYTHONINSPECT",
        "PYTHONPATH",
        "PYTHONSTARTUP",
        "RUBYLIB",
        "RUBYOPT",
        "RUSTC_WORKSPACE_WRAPPER",
        "RUSTC_WRAPPER",
        "SHELL",
        "SHELLOPTS",
        "TAR_OPTIONS",
        "XDG_CONFIG_HOME",
        "ZDOTDIR",
        "_JAVA_OPTIONS",
    ];
    PREFIXES.iter().any(|p| name.starts_with(p))
        || NAMES.contains(&name)
        || is_command_variable(name)
}

/// Variables whose value is a command.
pub(crate) fn is_command_variable(name: &str) -> bool {
    matches!(
        name,
        "BASH_ENV"
            | "BROWSER"
            | "EDITOR"
            | "GIT_ASKPASS"
            | "GIT_EDITOR"
            | "GIT_EXTERNAL_DIFF"
            | "GIT_PAGER"
            | "GIT_PROXY_COMMAND"
            | "GIT_SEQUENCE_EDITOR"
            | "GIT_SSH"
            | "GIT_SSH_COMMAND"
            | "LESSCLOSE"
            | "LESSOPEN"
            | "MANPAGER"
            | "PAGER"
            | "PROMPT_COMMAND"
            | "RSYNC_RSH"
            | "SSH_ASKPASS"
            | "SUDO_ASKPASS"
            | "VISUAL"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_seen_in_clusters_and_abbreviations_only() {
        let is = |text: &str, options: &[&str]| is_option(&Word::fixed(text), options);
        assert!(is("-rf", &["-r"]));
        assert!(is("-oout", &["-o"]));
        assert!(is("--output=x", &["--output"]));
        assert!(is("--outp", &["--output"]));
        assert!(!is("my-report.txt", &["-r"]));
        assert!(!is("--", &["--output"]));
        assert!(!is("-", &["-o"]));
    }

    #[test]
    fn patterns_find_only_the_strict_names() {
        assert!(names_like("/usr/bin/c?rl").contains(&"curl"));
        assert!(names_like("*").is_empty());
    }
}
