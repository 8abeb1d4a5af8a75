//! Homes that are copied, moved, replaced or removed while their daemon runs.

use crate::AVFS;
use avfs_testkit::{Home, SOON, process_ends};
use serde_json::Value;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Another home of the same user, whose daemon ends with it.
struct Second<'a> {
    first: &'a Home,
    path: PathBuf,
}

impl Second<'_> {
    fn avfs(&self, words: &[&str]) -> Output {
        let mut command = self.first.command(words);
        command.env("AVFS_HOME", &self.path).output().unwrap()
    }

    fn ok(&self, words: &[&str]) -> String {
        let output = self.avfs(words);
        assert!(output.status.success(), "{words:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    fn status(&self) -> Value {
        let output = self.avfs(&["--json", "daemon", "status"]);
        serde_json::from_slice(&output.stdout).unwrap()
    }
}

impl Drop for Second<'_> {
    fn drop(&mut self) {
        let _ = self.avfs(&["daemon", "stop"]);
    }
}

fn second<'a>(first: &'a Home, name: &str) -> Second<'a> {
    let path = first.path().join(name);
    Second { first, path }
}

/// All of it: sockets, links and times included.
fn copied<'a>(first: &'a Home, name: &str) -> Second<'a> {
    let second = second(first, name);
    let mut copy = Command::new("cp");
    copy.arg("-a").arg(first.avfs_home()).arg(&second.path);
    assert!(copy.status().unwrap().success());
    second
}

fn rename(from: &Path, to: &Path) {
    fs::rename(from, to).unwrap();
}

#[test]
fn a_copy_of_a_live_home_works_apart_from_it() {
    for home in Home::of_every_user(AVFS) {
        home.ok(&["vault", "create", "v"]);
        home.ok(&["write", "/f", "original"]);
        let pid = home.daemon_pid().expect("it runs");
        let copy = copied(&home, "copy");
        assert_eq!(copy.status()["running"], false, "{}", copy.status());
        let stopped = copy.ok(&["daemon", "stop"]);
        assert!(stopped.contains("not running"), "{stopped}");
        assert_eq!(home.daemon_pid(), Some(pid), "the original goes on");

        assert_eq!(copy.ok(&["cat", "/f"]), "original");
        copy.ok(&["write", "/f", "copy"]);
        copy.ok(&["proxy", "exec", "--", "touch", "/made-in-copy"]);
        assert_ne!(copy.status()["pid"], pid);
        home.ok(&["write", "/g", "original"]);
        assert_eq!(home.ok(&["cat", "/f"]), "original");
        assert_eq!(home.ok(&["ls", "/"]), "f\ng\n");
        assert_eq!(copy.ok(&["cat", "/f"]), "copy");
        assert!(!copy.ok(&["ls", "/"]).contains('g'), "both work apart");
        assert_eq!(home.daemon_pid(), Some(pid));
        copy.ok(&["daemon", "stop"]);
        assert_eq!(home.daemon_pid(), Some(pid), "each ends its own");
    }
}

#[test]
fn another_home_in_its_place_is_never_written_by_the_old_daemon() {
    for home in Home::of_every_user(AVFS) {
        home.ok(&["vault", "create", "v"]);
        home.ok(&["proxy", "exec", "--", "sh", "-c", "echo old > /f"]);
        let pid = home.daemon_pid().expect("it runs");
        let socket = home.socket();
        let moved = second(&home, "moved");
        rename(&home.avfs_home(), &moved.path);
        // The next command makes a home where none is, with a daemon of its own.
        let list = home.json(&["vault", "list"]);
        assert_eq!(list.as_array().map(Vec::len), Some(0), "{list}");
        home.ok(&["vault", "create", "w"]);
        assert_ne!(home.daemon_pid(), Some(pid));
        // Who still speaks to the old one is told, and nothing is done.
        let answer = curl(&socket, "/v1/vaults");
        if let Some(answer) = answer {
            assert!(
                answer.contains("was moved, replaced or removed"),
                "{answer}"
            );
        }
        assert!(process_ends(pid, SOON), "it ends by itself");
        assert_eq!(home.json(&["vault", "list"])[0]["name"], "w");
        home.ok(&["fsck"]);
        assert_eq!(moved.ok(&["cat", "/f"]), "old\n", "nothing is lost");
    }
}

/// What the daemon at a socket answers, if one is there.
fn curl(socket: &Path, address: &str) -> Option<String> {
    use std::io::{Read, Write};
    let mut stream = std::os::unix::net::UnixStream::connect(socket).ok()?;
    let request = format!("GET {address} HTTP/1.1\r\nhost: avfs\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    Some(answer)
}

#[test]
fn a_moved_home_is_refused_until_its_daemon_has_ended() {
    let home = Home::new(AVFS);
    home.ok(&["vault", "create", "v"]);
    home.ok(&["write", "/f", "kept"]);
    let pid = home.daemon_pid().expect("it runs");
    let moved = second(&home, "moved");
    rename(&home.avfs_home(), &moved.path);
    // The same directory under another name: its daemon still holds it, and writes by the old name.
    let refused = moved.avfs(&["write", "/f", "lost"]);
    let told = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(!refused.status.success());
    assert!(told.contains("was moved, replaced or removed"), "{told}");
    assert!(told.contains("run the command again"), "{told}");
    assert!(process_ends(pid, SOON));
    assert_eq!(moved.ok(&["cat", "/f"]), "kept");
    assert!(!home.avfs_home().exists(), "and nothing was made there");
}

#[test]
fn a_removed_home_ends_its_daemon() {
    let home = Home::new(AVFS);
    // Nothing was run: an overlay's work directory can be removed by nobody but root.
    home.ok(&["vault", "create", "v"]);
    let pid = home.daemon_pid().expect("it runs");
    home.ok(&["daemon", "status"]);
    fs::rename(home.avfs_home(), home.path().join("gone")).unwrap();
    fs::remove_dir_all(home.path().join("gone")).unwrap();
    assert!(process_ends(pid, SOON), "without being asked for anything");
    assert!(!home.avfs_home().exists());
    home.ok(&["vault", "create", "v"]);
}

#[test]
fn a_copy_leaves_the_mounts_of_the_original_alone() {
    let home = Home::new(AVFS);
    home.ok(&["vault", "create", "v"]);
    home.ok(&["write", "/f", "shown"]);
    let dir = home.path().join("mounted");
    fs::create_dir(&dir).unwrap();
    home.ok(&["mount", dir.to_str().unwrap()]);
    let copy = copied(&home, "copy");
    copy.ok(&["vault", "list"]);
    let shown = fs::read_to_string(dir.join("f"));
    home.ok(&["unmount", dir.to_str().unwrap()]);
    assert_eq!(shown.unwrap(), "shown");
}

/// A path of that many bytes beneath the home's own directory, all but the last of which is made.
fn long_path(home: &Home, length: usize) -> PathBuf {
    let top = home.path().join("d".repeat(180)).join("e".repeat(100));
    let mut made = home.host_command("mkdir");
    assert!(made.arg("-p").arg(&top).status().unwrap().success());
    let rest = length - top.as_os_str().len() - 1;
    let path = top.join("f".repeat(rest));
    assert_eq!(path.as_os_str().len(), length);
    path
}

#[test]
fn a_home_of_a_long_path_works_or_is_refused_plainly() {
    for home in Home::of_every_user(AVFS) {
        let path = long_path(&home, 440);
        let longest = Second { first: &home, path };
        longest.ok(&["vault", "create", "v"]);
        longest.ok(&["write", "/f", "word"]);
        assert!(longest.ok(&["search", "word"]).contains("/f"));
        assert_eq!(longest.ok(&["proxy", "exec", "--", "cat", "/f"]), "word");
        let path = long_path(&home, 441);
        refused_plainly(&Second { first: &home, path }, "440 are the most");
    }
}

#[test]
fn a_home_whose_path_is_no_text_is_refused_plainly() {
    use std::os::unix::ffi::OsStrExt;
    let home = Home::new(AVFS);
    let name = std::ffi::OsStr::from_bytes(b"home\xff");
    let path = home.path().join(name);
    refused_plainly(&Second { first: &home, path }, "not UTF-8");
    // Nor under another name, if it is really there.
    fs::create_dir(home.path().join(name)).unwrap();
    std::os::unix::fs::symlink(name, home.path().join("link")).unwrap();
    let linked = second(&home, "link");
    let refused = linked.avfs(&["vault", "create", "v"]);
    assert_eq!(refused.status.code(), Some(1), "{refused:?}");
}

fn refused_plainly(home: &Second<'_>, why: &str) {
    for words in [&["vault", "create", "v"][..], &["daemon", "status"]] {
        let refused = home.avfs(words);
        let told = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert_eq!(refused.status.code(), Some(1), "{refused:?}");
        assert!(told.contains(why), "{told}");
    }
    assert!(!home.path.exists(), "and nothing is made");
}

/// Puts an overlay, in which no other overlay can be written, at `$place/over`.
const ON_OVERLAY: &str = r#"
cd "$place"; mkdir memory chosen; chmod 700 chosen
mount -t tmpfs tmpfs memory; cd memory; mkdir lower upper work "$place/over"
mount -t overlay overlay -o lowerdir=lower,upperdir=upper,workdir=work$extra "$place/over"
exec $then sh -euc "$rest"
"#;

/// Works with `$avfs` in a home there, and prints what happened.
const IN_IT: &str = r#"
export AVFS_HOME="$place/over/home"
trap '"$avfs" daemon stop --force >&2' EXIT
"$avfs" vault create v >&2
"$avfs" proxy exec -- sh -c 'echo written > /f; cat /f'
"$avfs" --json doctor > "$place/doctor.json" || true
"$avfs" job start -- sh -c 'echo job > /j; sleep 1000' >&2
until "$avfs" cat /j >/dev/null 2>&1; do sleep 0.05; done
kill -9 $("$avfs" --json daemon status | sed -n 's/.*"pid": *\([0-9]*\).*/\1/p')
export AVFS_LAYERS="$place/chosen"
until "$avfs" cat /j 2>/dev/null; do sleep 0.05; done
"$avfs" proxy exec -- sh -c 'cat /f; ls /' >&2
ls "$place/chosen" | sed 's/-.*//'
"#;

#[test]
fn a_home_on_an_overlay_has_its_layers_elsewhere() {
    for home in Home::of_every_user(AVFS) {
        let named = home.command::<&str>(&[]);
        let binary = named.get_args().last().unwrap_or(named.get_program());
        let mut unshare = home.host_command("unshare");
        if home.is_root() {
            unshare.arg("--mount").env("extra", "").env("then", "");
        } else {
            let uid = fs::metadata(home.user_home()).unwrap().uid();
            let itself = format!("unshare --user --map-user={uid} --map-group={uid} --");
            unshare.args(["--user", "--map-root-user", "--mount"]);
            unshare.env("extra", ",userxattr").env("then", itself);
        }
        unshare.args(["--", "sh", "-euc", ON_OVERLAY]);
        unshare.env("rest", IN_IT);
        unshare.env("avfs", binary).env("place", home.path());
        let output = unshare.output().unwrap();
        let out = String::from_utf8_lossy(&output.stdout).into_owned();
        let err = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(out, "written\njob\nlayers\n", "{}: {err}", home.user());
        let doctor = fs::read(home.path().join("doctor.json")).unwrap();
        let doctor: Value = serde_json::from_slice(&doctor).unwrap();
        let probes = doctor["probes"].as_array().unwrap();
        let layers = probes.iter().find(|probe| probe["name"] == "layers");
        let told = layers.unwrap()["detail"].as_str().unwrap();
        assert!(
            told.contains("AVFS_LAYERS") && told.contains("power cut"),
            "{told}"
        );
        assert_eq!(doctor["works"], true, "{doctor}");
    }
}

#[test]
fn the_format_names_all_that_is_in_a_home() {
    let home = Home::new(AVFS);
    let at = |name: &str| home.path().join(name).to_str().unwrap().to_owned();
    home.ok(&["vault", "create", "v"]);
    fs::create_dir(at("project")).unwrap();
    fs::write(at("project/f"), "word").unwrap();
    fs::create_dir(at("mounted")).unwrap();
    home.ok(&["import", &at("project"), "/p"]);
    home.ok(&["search", "word"]);
    let script = "seq 100000; echo new > /p/f";
    home.ok(&["proxy", "exec", "--", "sh", "-c", script]);
    home.ok(&["job", "start", "--", "true"]);
    home.ok(&["export", "--changed-only", &at("project")]);
    home.ok(&["export", "/p", &at("out")]);
    home.ok(&["mount", &at("mounted"), "--readonly"]);
    home.ok(&["unmount", &at("mounted")]);
    let format = include_str!("../../../../docs/format.md");
    let listed = format.split("```").nth(1).unwrap();
    for entry in fs::read_dir(home.avfs_home()).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        let is_dir = entry.file_type().unwrap().is_dir();
        let word = if is_dir { format!("{name}/") } else { name };
        let named = listed.split_whitespace().any(|listed| match is_dir {
            true => listed.starts_with(&word),
            false => listed == word,
        });
        assert!(named, "docs/format.md does not name {word}");
    }
}
