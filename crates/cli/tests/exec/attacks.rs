//! The sandbox bites: the attack corpus, and secrets that nothing inside finds.

use crate::AVFS;
use avfs_testkit::Home;
use std::fs;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{SocketAddr, UnixListener};

#[test]
fn every_attack_is_stopped() {
    for home in Home::of_every_user(AVFS) {
        let report = home.json(&["doctor", "--attack"]);
        let attacks = report["attacks"].as_array().unwrap();
        assert!(attacks.len() > 70, "{}", attacks.len());
        for attack in attacks {
            assert_eq!(attack["stopped"], true, "as {}: {attack:#}", home.user());
        }
        assert_eq!(report["held"], true);
    }
}

/// Where people keep what is nobody's business.
const SECRETS: [&str; 9] = [
    ".cargo/credentials.toml",
    ".npmrc",
    ".config/pip/pip.conf",
    ".netrc",
    ".git-credentials",
    ".ssh/id_ed25519",
    ".ssh/config",
    ".aws/credentials",
    ".bashrc",
];

/// Searches everything that can be read, the token in two pieces so as not to find itself.
const SEARCH: &str = r#"
import os, sys
token = (sys.argv[1] + sys.argv[2]).encode()
found = []
def look(path):
    try:
        if os.path.getsize(path) < 1 << 22 or path.startswith("/proc"):
            with open(path, "rb") as file:
                if token in file.read(1 << 22):
                    found.append(path)
    except OSError:
        pass
def lent(path):
    # What is lent by the host is read-only, and the same for everyone; but /etc is made.
    return not path.startswith("/etc") and os.statvfs(path).f_flag & os.ST_RDONLY
for top, dirs, files in os.walk("/"):
    paths = {d: os.path.join(top, d) for d in dirs}
    dirs[:] = [d for d in dirs if paths[d] not in ("/proc", "/dev") and not os.path.islink(paths[d])
               and os.access(paths[d], os.R_OK) and not lent(paths[d])]
    for name in files:
        look(os.path.join(top, name))
for pid in [p for p in os.listdir("/proc") if p.isdigit()]:
    for name in ("environ", "cmdline", "mountinfo"):
        look(f"/proc/{pid}/{name}")
for name, value in os.environ.items():
    if token in (name + value).encode():
        found.append("environment")
print(found)
"#;

#[test]
fn canaries_are_found_by_nothing_inside() {
    for home in Home::of_every_user(AVFS) {
        let (first, second) = ("canary-83", "1774c0");
        let token = format!("{first}{second}");
        let user = home.path().join("user");
        for name in SECRETS {
            let path = user.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, &token).unwrap();
            // Readable by the daemon's user, whoever that is: it must not be lent all the same.
            fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        }
        let set = |words: &[&str]| {
            let mut command = home.command(words);
            command
                .env("API_KEY", &token)
                .env("SSH_AUTH_SOCK", "/tmp/agent");
            command.output().unwrap()
        };
        // The daemon is started by a caller that has the secret, and so are the commands.
        assert!(set(&["vault", "create", "v"]).status.success());
        home.ok(&["write", "/search.py", SEARCH]);
        let found = set(&["exec", "--", "python3", "/search.py", first, second]);
        let found = String::from_utf8_lossy(&found.stdout).into_owned();
        assert_eq!(found.trim(), "[]", "as {}", home.user());
        // It can find: what is in the vault is found.
        home.ok(&["write", "/inside", &token]);
        let result = home.exec(&["python3", "/search.py", first, second]);
        assert_eq!(result["result"]["stdout"], "['/inside']\n");
        let names: Vec<_> = SECRETS.iter().map(|name| user.join(name)).collect();
        let reads: String = names
            .iter()
            .map(|path| format!("print(open({path:?}).read())\n"))
            .collect();
        home.ok(&["write", "/read.py", &format!("import sys\n{reads}")]);
        let result = home.exec(&["python3", "/read.py"]);
        assert_eq!(result["result"]["stdout"], "", "{result:#}");
    }
}

#[test]
fn host_sockets_cannot_be_reached() {
    for home in Home::of_every_user(AVFS) {
        home.ok(&["vault", "create", "v"]);
        let path = home.path().join("socket");
        let _by_path = UnixListener::bind(&path).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o777)).unwrap();
        let name = format!("avfs-attack-test-{}", std::process::id());
        let address = SocketAddr::from_abstract_name(&name).unwrap();
        let _without = UnixListener::bind_addr(&address);
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let connect = format!(
            "import socket\n\
             for family, address in [(socket.AF_UNIX, {path:?}), (socket.AF_UNIX, '\\0{name}'),\n\
                     (socket.AF_UNIX, {daemon:?}), (socket.AF_INET, ('127.0.0.1', {port}))]:\n\
             \x20   s = socket.socket(family)\n\
             \x20   s.settimeout(2)\n\
             \x20   try:\n\
             \x20       s.connect(address)\n\
             \x20       print('reached', address)\n\
             \x20   except OSError as error:\n\
             \x20       print('no')\n",
            daemon = home.socket(),
        );
        home.ok(&["write", "/connect.py", &connect]);
        let result = home.exec(&["python3", "/connect.py"]);
        assert_eq!(result["result"]["stdout"], "no\nno\nno\nno\n", "{result:#}");
    }
}

/// Whether a program is there at all; what is skipped is said.
fn there(program: &str) -> bool {
    let there = std::process::Command::new("sh")
        .args(["-c", &format!("command -v {program}")])
        .output()
        .is_ok_and(|output| output.status.success());
    if !there {
        use std::io::Write;
        let _ = writeln!(std::io::stderr(), "skipped: there is no {program} here");
    }
    there
}

#[test]
fn compilers_and_debuggers_work_inside() {
    for home in Home::of_every_user(AVFS) {
        home.ok(&["vault", "create", "v"]);
        home.ok(&[
            "write",
            "/w/main.c",
            "int twice(int n) { return 2 * n; }\nint main(void) { return twice(21); }\n",
            "-p",
        ]);
        home.ok(&["write", "/w/Makefile", "main: main.c\n\tcc -g -o $@ $<\n"]);
        if there("gcc") && there("make") {
            let result = home.json(&["exec", "--cwd", "/w", "--shell", "make && ./main"]);
            assert_eq!(
                result["result"]["exit_code"],
                42,
                "as {}: {result:#}",
                home.user()
            );
        }
        if there("gcc") && there("gdb") {
            let text = "gdb -batch -ex 'break twice' -ex run -ex bt ./main";
            let result = home.json(&["exec", "--cwd", "/w", "--shell", text]);
            let out = result["result"]["stdout"].as_str().unwrap();
            assert!(
                out.contains("#0  twice") && out.contains("main ("),
                "{result:#}"
            );
        }
    }
}
