//! Paths of the host: a command that names one is taken for an attempt to reach outside the sandbox.
//!
//! The vault is the sandbox's `/`, so most absolute paths are paths of the vault. The paths listed here are not:
//! credentials and homes of the host, sockets of its daemons, memory and descriptors of other processes, kernel
//! settings, raw devices.

use crate::shell::{UNKNOWN, Word, glob_matches};

/// The home inside the sandbox.
pub(crate) const HOME: &str = "/home/agent";

/// Paths of the host, with everything beneath them.
const HOST_PATHS: &str = "\
    /boot /dev/block /dev/disk /dev/fuse /dev/kmem /dev/kmsg /dev/kvm /dev/mapper /dev/mem \
    /dev/net/tun /dev/port /etc/gshadow /etc/shadow /etc/sudoers /etc/sudoers.d /proc/1 \
    /proc/kallsyms /proc/kcore /proc/kmsg /proc/self/root /proc/sys /proc/sysrq-trigger \
    /proc/thread-self/root /root /run/containerd /run/crio /run/dbus /run/docker.sock \
    /run/podman /run/secrets /run/systemd /run/user /sys /var/lib/containers /var/lib/docker \
    /var/lib/kubelet /var/run/containerd /var/run/crio /var/run/dbus /var/run/docker.sock \
    /var/run/podman /var/run/secrets /var/run/systemd /var/run/user";

/// Names under `/dev` that begin like this are disks.
const DISKS: &[&str] = &[
    "dm-", "hd", "loop", "nvme", "sd", "sr", "vd", "vhost", "xvd",
];

/// Files of another process in `/proc` that show its memory, environment or descriptors.
const PROCESS_FILES: &[&str] = &[
    "cwd",
    "environ",
    "fd",
    "maps",
    "map_files",
    "mem",
    "root",
    "task",
];

/// Directories of toolchains, which a sandbox has read-only from a home of the host.
const TOOLCHAINS: &[&str] = &[
    "/.cargo/bin/",
    "/.nvm/versions/",
    "/.pyenv/versions/",
    "/.rustup/toolchains/",
];

/// The paths of the host in a word. Looks at the whole word, and at what follows `=`, `:`, `,` or `@` in it.
pub(crate) fn host_paths_in(word: &Word, cwd: Option<&str>) -> Vec<String> {
    let text = word.text.as_str();
    let bare = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'/');
    let one_path = text.bytes().all(bare) && !(text.starts_with('-') && text.contains('/'));
    if one_path && is_surely_inside(text, cwd, word.glob) {
        return Vec::new();
    }
    if text.contains(char::is_whitespace) {
        return Vec::new();
    }
    starts(text)
        .filter_map(|start| host_path(&text[start..], cwd, word.glob))
        .collect()
}

/// Where in a word a path may begin.
fn starts(text: &str) -> impl Iterator<Item = usize> + '_ {
    let option = text
        .strip_prefix('-')
        .and_then(|_| text.find('/'))
        .filter(|&i| text[1..i].chars().all(|c| c.is_ascii_alphabetic()) && !text[1..i].is_empty());
    let inner = text.char_indices().filter(|&(i, c)| match c {
        '=' | ',' | '@' | '<' | '>' => true,
        ':' => !text[i..].starts_with("://") || file_url(&text[..i]),
        _ => false,
    });
    let inner = inner
        .map(|(i, c)| i + c.len_utf8())
        .filter(|&i| text[i..].starts_with(['/', '~']));
    [Some(0), option].into_iter().flatten().chain(inner)
}

fn file_url(before: &str) -> bool {
    ["file", "unix"]
        .iter()
        .any(|scheme| before.ends_with(scheme))
}

/// The path, normalised, if it is one of the host. It may be absolute, relative, or begin with a tilde.
pub(crate) fn host_path(path: &str, cwd: Option<&str>, glob: bool) -> Option<String> {
    if let Some(rest) = path.strip_prefix('~') {
        return host_path_of_tilde(rest, glob);
    }
    if is_surely_inside(path, cwd, glob) {
        return None;
    }
    let absolute = if path.starts_with('/') {
        normalise(path)
    } else {
        normalise(&format!("{}/{path}", cwd?))
    };
    is_host_path(&absolute, glob).then_some(absolute)
}

fn host_path_of_tilde(rest: &str, glob: bool) -> Option<String> {
    let user = rest.split('/').next().unwrap_or_default();
    match user {
        "" | "+" | "-" | "agent" => {
            host_path(&format!("{HOME}/{}", &rest[user.len()..]), None, glob)
        }
        _ if user
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "_-.".contains(c)) =>
        {
            let numeric = user.chars().all(|c| c.is_ascii_digit());
            (!numeric && !user.starts_with('.')).then(|| format!("~{user}"))
        }
        _ => None,
    }
}

/// The path without empty, `.` and `..` components.
pub(crate) fn normalise(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            other => parts.push(other),
        }
    }
    format!("/{}", parts.join("/"))
}

/// The first components of all host paths, for a quick answer about other paths.
const HOST_TOP_NAMES: &[&str] = &[
    "boot", "dev", "etc", "home", "proc", "root", "run", "sys", "var",
];

/// Whether the path is certainly none of the host, by its first component alone.
fn is_surely_inside(path: &str, cwd: Option<&str>, glob: bool) -> bool {
    let whole = if path.starts_with('/') {
        Some(path)
    } else {
        cwd
    };
    let names = |whole: &str| {
        let first = whole.split('/').find(|name| !matches!(*name, "" | "."));
        let open = |first: &str| glob && first.contains(['*', '?', '[', UNKNOWN]);
        first.is_some_and(|first| !HOST_TOP_NAMES.contains(&first) && !open(first))
    };
    let climbs = |path: &str| path.as_bytes().windows(2).any(|pair| pair == b"..");
    whole.is_some_and(names) && !climbs(path)
}

fn is_host_path(path: &str, glob: bool) -> bool {
    let first = path[1..].split('/').next().unwrap_or_default();
    if !glob && !HOST_TOP_NAMES.contains(&first) {
        return false;
    }
    if is_toolchain(path) {
        return false;
    }
    let parts: Vec<&str> = path.split('/').skip(1).collect();
    is_listed(&parts, glob) || is_process_file(&parts) || is_disk(&parts) || is_other_home(&parts)
}

/// Whether a normalised path is in a toolchain.
pub(crate) fn is_toolchain(path: &str) -> bool {
    let path = format!("{path}/");
    TOOLCHAINS.iter().any(|toolchain| path.contains(toolchain))
}

fn is_listed(parts: &[&str], glob: bool) -> bool {
    HOST_PATHS.split_ascii_whitespace().any(|path| {
        let mut path = path.split('/').skip(1);
        let mut wild_only = true;
        let mut mine = parts.iter();
        let all = path.all(|name| {
            mine.next().is_some_and(|part| {
                let star = part.chars().all(|c| c == '*' || c == UNKNOWN);
                wild_only &= star;
                *part == name || glob && !star && glob_matches(part, name, UNKNOWN)
            })
        });
        all && !wild_only
    })
}

/// Whether it is `/proc/<pid>/environ` or the like. The pid may be a pattern or a variable.
fn is_process_file(parts: &[&str]) -> bool {
    let [first, process, what, ..] = parts else {
        return false;
    };
    let other = !process.is_empty()
        && process
            .chars()
            .all(|c| c.is_ascii_digit() || c == UNKNOWN || "*?[]-".contains(c));
    *first == "proc" && other && PROCESS_FILES.contains(what)
}

fn is_disk(parts: &[&str]) -> bool {
    let [first, device, ..] = parts else {
        return false;
    };
    *first == "dev" && *device != "shm" && DISKS.iter().any(|disk| device.starts_with(disk))
}

fn is_other_home(parts: &[&str]) -> bool {
    let [first, user, ..] = parts else {
        return false;
    };
    *first == "home" && *user != "agent" && !user.contains(UNKNOWN)
}

/// Every path of the host in code.
pub(crate) fn host_paths_in_code(code: &str) -> Vec<String> {
    let is_path = |c: char| c.is_ascii_alphanumeric() || "/._-~*".contains(c);
    code.split(|c: char| !is_path(c))
        .filter(|piece| piece.starts_with('/') && piece.len() > 1)
        .filter_map(|piece| host_path(piece, None, false))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(text: &str) -> bool {
        let word = Word {
            glob: text.contains(['*', '?', '[']),
            ..Word::fixed(text)
        };
        !host_paths_in(&word, Some("/workspace")).is_empty()
    }

    #[test]
    fn the_host_is_refused_however_it_is_spelled() {
        for path in [
            "/root/.ssh/id_rsa",
            "/workspace/../root/x",
            "../root/x",
            "//root",
            "/home/alice/.aws",
            "~bob/x",
            "~root",
            "/etc/./shadow",
            "/etc/shad*",
            "--file=/etc/shadow",
            "-I/root/include",
            "if=/dev/sda",
            "unix:///var/run/docker.sock",
            "file:///etc/shadow",
            "@/etc/shadow",
            "/proc/1/mem",
            "/proc/77/environ",
            "/proc/self/root/etc",
            "/proc/*/environ",
            "/sys/fs/cgroup",
            "/run/user/1000/bus",
            "/root/.rustup/toolchains/../../.ssh/id_rsa",
        ] {
            assert!(refused(path), "{path}");
        }
    }

    #[test]
    fn the_quick_answer_knows_every_place() {
        for path in HOST_PATHS.split_ascii_whitespace() {
            let first = path[1..].split('/').next().unwrap();
            assert!(HOST_TOP_NAMES.contains(&first), "{path}");
        }
    }

    #[test]
    fn ordinary_paths_are_not() {
        for path in [
            "/src/main.py",
            "/tmp/x",
            "/app/y",
            "/home/agent/.config",
            "~/x",
            "/usr/include",
            "/etc/passwd",
            "/etc/hosts",
            "/dev/null",
            "/proc/self/status",
            "/proc/cpuinfo",
            "/root/.rustup/toolchains/stable/bin/rustc",
            "/root/.cargo/bin",
            "https://root/sys/x",
            "HEAD~3",
            "~1",
            "src/root/x",
            "*",
            "/*",
            "/home",
        ] {
            assert!(!refused(path), "{path}");
        }
    }
}
