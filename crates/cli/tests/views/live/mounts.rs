//! A vault as a directory of the host: whoever writes where, all see the same, and nothing is lost.

use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;

use avfs_testkit::{Home, SOON, signal, wait_for};
use rustix::process::Signal;
use serde_json::Value;

use super::causes;
use crate::AVFS;

/// A way to mount, for a user who can.
pub(crate) struct Scene {
    pub home: Home,
    pub driver: &'static str,
}

/// Root by overlay and by FUSE, and a user with a name by FUSE; each with a vault `v`.
pub(crate) fn scenes() -> Vec<Scene> {
    let scene = |home, driver| Scene { home, driver };
    let homes = Home::of_every_named_user(AVFS).into_iter();
    let mut scenes: Vec<Scene> = homes.map(|home| scene(home, "fuse")).collect();
    if rustix::process::geteuid().is_root() {
        scenes.insert(1, scene(Home::new(AVFS), "overlay"));
    }
    let found = Command::new("fusermount3").arg("--version").output();
    if found.is_err() {
        skip("mounts of ordinary users, because fusermount3 is not installed");
        scenes.retain(|scene| scene.home.user() == "uid 0");
    }
    for scene in &scenes {
        scene.home.ok(&["vault", "create", "v"]);
        scene.home.ok(&["write", "-p", "/src/a.txt", "stored\n"]);
    }
    scenes
}

impl Scene {
    pub fn dir(&self) -> PathBuf {
        self.home.path().join("m")
    }

    pub fn mount(&self) -> PathBuf {
        let dir = self.dir();
        let words = ["mount", text(&dir), "--driver", self.driver];
        self.home.ok(&words);
        dir
    }

    /// Shell text run by this user on the host, in the mount.
    pub fn host(&self, script: &str) -> String {
        let mut command = self.home.host_command("sh");
        command.args(["-ec", script]).current_dir("/");
        command.env("M", self.dir());
        let output = command.output().expect("a shell runs");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{self}: {script}: {said}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }
}

impl Scene {
    /// Whether this user sees something in the mount: nobody else may look, not even root.
    pub fn there(&self, path: &str) -> bool {
        let mut command = self.home.host_command("test");
        let status = command.arg("-e").arg(self.dir().join(path)).status();
        status.expect("it runs").success()
    }
}

impl std::fmt::Display for Scene {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} as {}", self.driver, self.home.user())
    }
}

#[test]
fn no_name_is_taken_from_whoever_writes_in_a_mount() {
    for scene in scenes() {
        // Stored by a command, seen in the mount; and the other way round.
        scene
            .home
            .shell("mkdir /d; echo by exec > /d/.avfs-moving-1");
        scene.mount();
        let names = [
            ".avfs-moving-1",
            ".avfs-moving-2",
            ".avfs-writing",
            ".moved-1",
        ];
        for name in &names[1..] {
            scene.host(&format!("echo by hand > $M/d/{name}"));
        }
        assert_eq!(scene.host("ls -A $M/d"), names.join("\n") + "\n", "{scene}");
        // What is left behind by removals and replacements is nothing.
        scene.host("cd $M; rm src/a.txt; mkdir src/a.txt src/b; rmdir src/b src/a.txt; mv src/../d e; rm -r src; mkdir src");
        scene.home.ok(&["write", "/e/new", "text"]);
        assert_eq!(scene.host("ls -A $M"), "e\nsrc\n", "{scene}");
        scene.home.ok(&["unmount", text(&scene.dir())]);
        let stored = scene.home.shell("cd /e; cat .[am]* new; ls -A / /e");
        let stored = stored["result"]["stdout"].as_str().expect("text");
        assert!(
            stored.starts_with("by exec\nby hand\nby hand\nby hand\ntext"),
            "{scene}: {stored}"
        );
        assert!(!stored.contains("view-"), "{scene}: {stored}");
    }
}

/// Says aloud what was not tried.
fn skip(what: &str) {
    use std::io::Write;
    let _ = writeln!(std::io::stderr(), "SKIPPED: {what}");
}

pub(crate) fn text(path: &Path) -> &str {
    path.to_str().expect("a plain path")
}

pub(crate) fn mounts(home: &Home) -> Vec<Value> {
    let listing = home.json(&["mounts"]);
    listing["mounts"].as_array().expect("a list").clone()
}

#[test]
fn a_mount_and_the_vault_are_the_same() {
    for scene in scenes() {
        let home = &scene.home;
        let dir = scene.mount();
        let own = std::fs::metadata(home.path().join("user")).unwrap();
        assert_eq!(scene.host("cat $M/src/a.txt"), "stored\n");
        assert_eq!(
            scene.host("stat -c %u:%g $M/src"),
            format!("{}:{}\n", own.uid(), own.gid())
        );
        scene.host(
            "cd $M; echo new > new; mkdir d; mv src d/src; chmod 700 d; ln -s new link; \
             echo more >> d/src/a.txt; printf '#!/bin/sh\necho ran\n' > run; chmod +x run; ./run",
        );
        assert_eq!(home.ok(&["cat", "/new"]), "new\n", "{scene}");
        assert_eq!(
            home.ok(&["cat", "/d/src/a.txt"]),
            "stored\nmore\n",
            "{scene}"
        );
        assert!(!home.avfs(&["stat", "/src"]).status.success());
        assert_eq!(home.json(&["stat", "/d"])["mode"], "0700", "{scene}");
        // Verbs are seen in the mount at once.
        home.ok(&["write", "-p", "/verb/w", "w\n"]);
        home.ok(&["write", "-a", "/new", "appended\n"]);
        home.ok(&["mv", "/d/src", "/back"]);
        home.ok(&["edit", "/back/a.txt", "--old", "more", "--new", "less"]);
        home.ok(&["chmod", "640", "/verb/w"]);
        home.ok(&["rm", "/link"]);
        let seen = scene.host("cd $M; cat verb/w new back/a.txt; ls; stat -c %a verb/w");
        assert_eq!(
            seen, "w\nnew\nappended\nstored\nless\nback\nd\nnew\nrun\nverb\n640\n",
            "{scene}"
        );
        scene.host("echo last > $M/last");
        let gone = home.json(&["unmount", text(&dir)]);
        assert!(gone["unmounted"][0]["version"].is_u64(), "{scene}: {gone}");
        assert_eq!(home.ok(&["cat", "/last"]), "last\n", "{scene}");
        assert_eq!(std::fs::read_dir(&dir).unwrap().count(), 0);
        assert_eq!(home.exec(&["./run"])["result"]["stdout"], "ran\n");
        let causes = causes(home);
        for cause in ["commit", "write", "move", "edit", "mode", "remove"] {
            assert!(causes.iter().any(|it| it == cause), "{cause} in {causes:?}");
        }
    }
}

/// A program and the verbs append to one file while commits go on: every line is there at the end.
#[test]
fn a_program_and_verbs_write_at_the_same_time() {
    for scene in scenes() {
        let home = &scene.home;
        let dir = scene.mount();
        let script = "cd $M; i=0; while [ ! -e stop ]; do i=$((i+1)); echo host $i >> log; \
                      echo $i > f$((i % 7)); sleep 0.002; done; echo $i";
        let mut writer = home.host_command("sh");
        let writer = writer.args(["-c", script]).env("M", &dir);
        let writer = writer.stdout(std::process::Stdio::piped());
        let writer = writer.spawn().expect("it runs");
        assert!(wait_for(SOON, || scene.there("log")), "{scene}");
        for number in 0..15 {
            home.ok(&["write", "-a", "/log", &format!("verb {number}\n")]);
            home.ok(&["write", &format!("/w{number}"), "w"]);
        }
        home.ok(&["write", "/stop", ""]);
        let turns = writer.wait_with_output().expect("it ends").stdout;
        let turns: usize = String::from_utf8_lossy(&turns).trim().parse().unwrap();
        home.ok(&["unmount", text(&dir)]);
        let log = home.ok(&["cat", "/log"]);
        let count = |who: &str| log.lines().filter(|line| line.starts_with(who)).count();
        assert_eq!((count("host "), count("verb ")), (turns, 15), "{scene}");
        assert_eq!(log.lines().count(), turns + 15, "{scene}");
    }
}

#[test]
fn whoever_reads_the_head_reads_what_was_written_before() {
    for scene in scenes() {
        let home = &scene.home;
        scene.mount();
        scene.host("echo 1 > $M/f");
        home.ok(&["vault", "fork", "v", "fork"]);
        assert_eq!(home.ok(&["--vault", "fork", "cat", "/f"]), "1\n", "{scene}");
        scene.host("echo 2 > $M/f");
        home.ok(&["checkpoint", "save", "two"]);
        scene.host("echo 3 > $M/f");
        let committed = home.json(&["commit"]);
        assert_eq!(committed["changed_files"][0]["path"], "/f", "{scene}");
        scene.host("echo 4 > $M/f");
        assert!(
            home.ok(&["diff", "two", "--patch"]).contains("+4"),
            "{scene}"
        );
        // Going back would pull the files from under whoever works there.
        let refused = home.json(&["checkpoint", "restore", "two"]);
        assert_eq!(refused["error"], "Conflict", "{scene}: {refused}");
        assert!(refused["hint"].to_string().contains("avfs unmount"));
        let words = ["exec", "--fork", "--", "cat", "/f"];
        assert_eq!(home.json(&words)["result"]["stdout"], "4\n", "{scene}");
        home.ok(&["unmount"]);
        home.ok(&["checkpoint", "restore", "two"]);
        assert_eq!(home.ok(&["cat", "/f"]), "2\n", "{scene}");
    }
}

#[test]
fn older_states_can_be_looked_at() {
    for scene in scenes() {
        let home = &scene.home;
        home.ok(&["checkpoint", "save", "then"]);
        home.ok(&["write", "/src/a.txt", "now\n"]);
        let [then, first, now] = ["then", "first", "now"].map(|name| home.path().join(name));
        home.ok(&["mount", text(&then), "--at", "then"]);
        home.ok(&["mount", text(&first), "--at", "v2"]);
        home.ok(&["mount", text(&now), "--readonly"]);
        scene.mount();
        scene.host("echo later > $M/src/a.txt");
        let seen = scene.host("cd $M/..; cat then/src/a.txt first/src/a.txt now/src/a.txt");
        assert_eq!(seen, "stored\nstored\nnow\n", "{scene}");
        scene.host("! touch $M/../then/x 2>/dev/null; ! rm $M/../now/src/a.txt 2>/dev/null");
        assert_eq!(mounts(home).len(), 4, "{scene}");
        let gone = home.json(&["unmount", "--all"]);
        assert_eq!(gone["unmounted"].as_array().unwrap().len(), 4, "{gone}");
        assert_eq!(home.ok(&["mounts"]).trim(), "there are no mounts");
        assert_eq!(home.ok(&["cat", "/src/a.txt"]), "later\n", "{scene}");
        let refused = home.json(&["mount", text(&then), "--at", "never"]);
        assert_eq!(refused["error"], "NotFound", "{refused}");
    }
}

#[test]
fn what_cannot_be_is_said_and_changes_nothing() {
    for scene in scenes() {
        let home = &scene.home;
        let dir = scene.mount();
        let refused = |words: &[&str]| home.json(words)["error"].to_string();
        let other = home.path().join("other");
        assert_eq!(refused(&["mount", text(&other)]), "\"AlreadyExists\"");
        home.ok(&["vault", "create", "w"]);
        assert_eq!(
            refused(&["mount", "--vault", "w", text(&dir)]),
            "\"AlreadyExists\""
        );
        assert_eq!(refused(&["unmount", text(&other)]), "\"NotFound\"");
        assert_eq!(refused(&["unmount", "--vault", "w"]), "\"NotFound\"");
        assert_eq!(
            refused(&["mount", "--vault", "w", text(home.path())]),
            "\"Invalid\""
        );
        assert_eq!(
            refused(&["mount", "--vault", "w", text(&home.avfs_home())]),
            "\"Invalid\""
        );
        assert_eq!(refused(&["vault", "rename", "v", "x"]), "\"Conflict\"");
        // A program that works there is not cut off, unless that is asked for.
        let mut busy = home.host_command("sh");
        busy.args(["-c", "cd $M && touch here && exec sleep 60"]);
        let mut busy = busy.env("M", &dir).spawn().expect("it runs");
        assert!(wait_for(SOON, || scene.there("here")), "{scene}");
        let said = home.json(&["unmount", text(&dir)]);
        assert_eq!(said["error"], "Conflict", "{scene}: {said}");
        assert!(said["hint"].to_string().contains("--force"), "{said}");
        assert_eq!(mounts(home).len(), 1);
        home.ok(&["unmount", text(&dir), "--force"]);
        assert_eq!(mounts(home).len(), 0);
        busy.kill().expect("it runs");
        busy.wait().expect("it ended");
        assert_eq!(home.json(&["unmount", text(&dir)])["error"], "NotFound");
    }
}

#[test]
fn commits_come_by_themselves_and_at_the_end() {
    for scene in scenes() {
        let home = &scene.home;
        let dir = scene.dir();
        let words = [
            "mount",
            text(&dir),
            "--driver",
            scene.driver,
            "--autocommit",
            "1",
        ];
        home.ok(&words);
        scene.host("echo one > $M/one");
        let version = || mounts(home)[0]["version"].as_u64().unwrap();
        let before = version();
        assert!(wait_for(SOON, || version() > before), "{scene}");
        scene.host("echo two > $M/two");
        // A mount taken away by other means is noticed.
        match home.user().as_str() {
            "uid 0" => drop(scene.host("umount $M")),
            _ => drop(scene.host("fusermount3 -u $M")),
        }
        assert!(wait_for(SOON, || mounts(home).is_empty()), "{scene}");
        assert_eq!(home.ok(&["cat", "/two"]), "two\n", "{scene}");
        // A daemon that ends commits and unmounts.
        scene.mount();
        scene.host("echo three > $M/three");
        home.ok(&["daemon", "stop"]);
        assert_eq!(std::fs::read_dir(&dir).unwrap().count(), 0, "{scene}");
        assert_eq!(home.ok(&["cat", "/three"]), "three\n", "{scene}");
        assert!(
            !causes(home).iter().any(|it| it == "interrupted"),
            "{scene}"
        );
    }
}

#[test]
fn the_vault_may_stand_before_the_directory() {
    for scene in scenes() {
        let (home, dir) = (&scene.home, scene.dir());
        home.ok(&["vault", "fork", "v", "other"]);
        home.ok(&["--vault", "other", "write", "/only-here", "x"]);
        home.ok(&["mount", "other", text(&dir), "--driver", scene.driver]);
        assert_eq!(scene.host("cat $M/only-here"), "x", "{scene}");
        assert_eq!(mounts(home)[0]["vault"], "other", "{scene}");
        home.ok(&["unmount", text(&dir)]);
        let two = home.json(&["--vault", "v", "mount", "other", text(&dir)]);
        assert_eq!(two["error"], "Invalid", "{two:#}");
        let nowhere = home.json(&["mount", "nowhere", text(&dir)]);
        assert_eq!(nowhere["error"], "NotFound", "{nowhere:#}");
        let third = home.avfs(&["mount", "other", text(&dir), "more"]);
        assert_eq!(third.status.code(), Some(2));
        assert!(mounts(home).is_empty(), "{scene}");
    }
}

#[test]
fn a_mount_in_the_foreground_ends_with_its_caller() {
    for scene in scenes() {
        let dir = scene.dir();
        let words = [
            "mount",
            text(&dir),
            "--foreground",
            "--driver",
            scene.driver,
        ];
        let mut child = scene.home.command(&words);
        let mut child = child
            .stdout(std::process::Stdio::null())
            .spawn()
            .expect("it runs");
        assert!(wait_for(SOON, || mounts(&scene.home).len() == 1), "{scene}");
        scene.host("echo f > $M/f");
        signal(child.id(), Signal::INT);
        assert!(child.wait().expect("it ends").success(), "{scene}");
        assert_eq!(mounts(&scene.home).len(), 0);
        assert_eq!(scene.home.ok(&["cat", "/f"]), "f\n", "{scene}");
    }
}

#[test]
fn a_quota_is_felt_while_writing_or_keeps_the_mount() {
    for scene in scenes() {
        let home = &scene.home;
        home.ok(&["quota", "set", "max_size_mb", "1"]);
        let dir = scene.mount();
        let script =
            "dd if=/dev/zero of=$M/big bs=65536 count=32 2>/dev/null && echo fits || echo full";
        let said = scene.host(script);
        match scene.driver {
            "fuse" => {
                assert_eq!(said, "full\n", "{scene}");
                scene.host("rm $M/big; echo small > $M/small");
                home.ok(&["unmount", text(&dir)]);
                assert_eq!(home.ok(&["cat", "/small"]), "small\n");
            }
            _ => {
                assert_eq!(said, "fits\n", "{scene}");
                let refused = home.json(&["unmount", text(&dir)]);
                assert_eq!(refused["error"], "Quota", "{refused}");
                assert_eq!(mounts(home).len(), 1, "it stays");
                let gone = home.json(&["unmount", text(&dir), "--force"]);
                let aside = gone["unmounted"][0]["uncommitted"]
                    .as_str()
                    .expect("a checkpoint");
                home.ok(&["quota", "clear", "max_size_mb"]);
                home.ok(&["checkpoint", "restore", aside]);
                assert_eq!(home.json(&["stat", "/big"])["size"], 2 << 20);
            }
        }
    }
}

#[test]
fn without_fusermount3_the_package_is_named() {
    let Some(home) = Home::of_named_user(AVFS) else {
        skip("only root can become another user");
        return;
    };
    // A PATH on which the daemon finds nothing of the sort.
    let tools = home.path().join("bin");
    std::fs::create_dir(&tools).unwrap();
    std::fs::set_permissions(&tools, std::fs::Permissions::from_mode(0o755)).unwrap();
    let found = Command::new("sh")
        .args(["-c", "command -v setpriv"])
        .output();
    let setpriv = String::from_utf8(found.unwrap().stdout).unwrap();
    std::os::unix::fs::symlink(setpriv.trim(), tools.join("setpriv")).unwrap();
    let run = |words: &[&str]| home.command(words).env("PATH", &tools).output().unwrap();
    assert!(run(&["vault", "create", "v"]).status.success());
    let dir = home.path().join("m");
    let said = run(&["mount", text(&dir)]);
    let said = String::from_utf8_lossy(&said.stderr).into_owned();
    let package = "fuse3 is not installed: apt-get install fuse3";
    assert!(said.contains(package), "{said}");
    // With a directory on it that cannot be searched, the kernel says "Permission denied" instead.
    run(&["daemon", "stop"]);
    let closed = home.path().join("closed");
    std::fs::create_dir(&closed).unwrap();
    std::fs::set_permissions(&closed, std::fs::Permissions::from_mode(0o700)).unwrap();
    let path = format!("{}:{}", text(&closed), text(&tools));
    let said = home
        .command(&["mount", text(&dir)])
        .env("PATH", path)
        .output();
    let said = String::from_utf8_lossy(&said.unwrap().stderr).into_owned();
    assert!(said.contains(package), "{said}");
}

#[test]
fn a_caller_elsewhere_is_told() {
    for home in [Some(Home::new(AVFS)), Home::of_named_user(AVFS)]
        .into_iter()
        .flatten()
    {
        if !rustix::process::geteuid().is_root() {
            skip("only root makes a mount namespace without more ado");
            return;
        }
        home.ok(&["vault", "create", "v"]);
        let mut command = Command::new("unshare");
        command.args(["--mount", "--"]);
        let inner = home.command(&["--json", "mount", text(&home.path().join("m"))]);
        command.arg(inner.get_program()).args(inner.get_args());
        for (name, value) in inner.get_envs() {
            command.env(name, value.expect("set"));
        }
        let output = command.output().expect("unshare runs");
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(said.contains("another mount namespace"), "{said}");
        assert_eq!(mounts(&home).len(), 0);
    }
}

#[test]
fn holes_go_through_a_mount_as_holes() {
    for scene in scenes() {
        let home = &scene.home;
        home.exec(&["truncate", "-s", "4T", "/big"]);
        let dir = scene.mount();
        let few = "test $(du -k $M/big | cut -f1) -le 256; test $(du -k $M/new | cut -f1) -le 256";
        let script = format!(
            "printf x >> $M/big; cp --sparse=always $M/big $M/new; truncate -s 5T $M/new; {few}"
        );
        scene.host(&script);
        home.ok(&["unmount", text(&dir)]);
        let size = |path| home.json(&["stat", path])["size"].as_u64();
        assert_eq!(size("/big"), Some((4 << 40) + 1), "{scene}");
        assert_eq!(size("/new"), Some(5 << 40), "{scene}");
        let range = ["cat", "/new", "--offset", "4398046511103", "--limit", "3"];
        assert_eq!(home.ok(&range), "\0x\0", "{scene}");
    }
}
