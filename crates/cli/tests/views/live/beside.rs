//! Commands beside a mount: both sides see the same files, reports say whose changes they may hold, and neither reaches
//! beyond the vault through the other.

use std::process::{Command, Stdio};

use avfs_testkit::{SOON, process_ends, signal, wait_for};
use rustix::process::Signal;
use serde_json::{Value, json};

use super::mounts::{Scene, mounts, scenes, text};
use super::{Worker, causes};

/// Mounts that commands can run beside.
pub(super) fn shared_scenes() -> impl Iterator<Item = Scene> {
    scenes().into_iter().filter(|scene| scene.driver == "fuse")
}

fn exec(scene: &Scene, script: &str) -> Value {
    let result = scene.home.shell(script)["result"].clone();
    assert_eq!(result["exit_code"], 0, "{scene}: {script}: {result}");
    result
}

fn changed(result: &Value) -> Vec<&str> {
    let paths = result["changed_files"].as_array().expect("a list");
    paths.iter().map(|path| path.as_str().unwrap()).collect()
}

#[test]
fn both_sides_see_each_other_at_once() {
    for scene in shared_scenes() {
        let dir = scene.dir();
        // As somebody mounts who asks for no driver.
        scene.home.ok(&["mount", text(&dir)]);
        scene.host("echo before > $M/src/before; ls $M/src $M/new 2>/dev/null || true");
        let seen = exec(&scene, "cat /src/before /src/a.txt; echo new > /new; id -u");
        assert_eq!(seen["stdout"], "before\nstored\n1000\n", "{scene}");
        // What the mount had written before is not the command's.
        assert_eq!(changed(&seen), ["/new"], "{scene}");
        assert_eq!(seen["shared_with"], json!(["mount"]), "{scene}");
        let own = "stat -c %u:%g $M/src/a.txt";
        assert_eq!(
            scene.host(own),
            scene.host("stat -c %u:%g $M/new"),
            "{scene}"
        );
        // While a command runs: a file that it has open and mapped, names, modes, removals.
        let before = "echo one > /f; exec 3< /f";
        let turn = "[ -e /ask ] && { cat /f <&3 > /said.tmp; stat -c %a /f >> /said.tmp; rm /ask; mv /said.tmp /said; }";
        let worker = Worker::start(&scene.home, before, turn);
        assert_eq!(scene.host("cat $M/f"), "one\n", "{scene}");
        scene.host("echo two >> $M/f; chmod 640 $M/f; touch $M/ask");
        assert!(wait_for(SOON, || scene.there("said")), "{scene}");
        assert_eq!(scene.host("cat $M/said"), "one\ntwo\n640\n", "{scene}");
        assert!(!scene.there("ask"), "{scene}");
        let ended = worker.stop()["result"].clone();
        assert_eq!(changed(&ended), ["/f", "/said"], "{scene}: {ended}");
        assert_eq!(ended["shared_with"], json!(["mount"]), "{scene}");
        // What only the mount writes meanwhile is in the report, too.
        let worker = Worker::start(&scene.home, "true", "true");
        scene.host("echo by hand > $M/by-hand; rm $M/said");
        let ended = worker.stop()["result"].clone();
        assert_eq!(changed(&ended), ["/by-hand", "/said"], "{scene}: {ended}");
        scene.home.ok(&["unmount"]);
        let alone = exec(&scene, "cat /f; rm /f");
        assert_eq!(alone["stdout"], "one\ntwo\n", "{scene}");
        assert_eq!(alone["shared_with"], json!([]), "{scene}");
    }
}

#[test]
fn a_mapping_on_one_side_is_seen_on_the_other() {
    const MAP: &str = "import mmap, os, time\n\
        f = open('/m', 'r+b'); m = mmap.mmap(f.fileno(), 4096); m[0:4] = b'mine'; m.flush()\n\
        open('/up', 'w').close()\n\
        while m[4:9] != b'yours': time.sleep(0.005)\n\
        m[9:13] = b'done'";
    for scene in shared_scenes() {
        scene.mount();
        scene.host("head -c 4096 /dev/zero > $M/m");
        let mut command = scene
            .home
            .command(&["--json", "exec", "--", "python3", "-c", MAP]);
        let command = command.stdout(Stdio::piped()).spawn().expect("it runs");
        assert!(wait_for(SOON, || scene.there("up")), "{scene}");
        assert_eq!(scene.host("head -c 4 $M/m"), "mine", "{scene}");
        scene.host("printf yours | dd of=$M/m bs=1 seek=4 conv=notrunc 2>/dev/null");
        let ended = command.wait_with_output().expect("it ends");
        assert!(ended.status.success(), "{scene}: {ended:?}");
        assert_eq!(scene.host("head -c 13 $M/m"), "mineyoursdone", "{scene}");
        let stored = scene.home.ok(&["cat", "/m"]);
        assert!(stored.starts_with("mineyoursdone"), "{scene}");
    }
}

#[test]
fn a_checkpoint_before_a_command_has_what_the_mount_had_written() {
    for scene in shared_scenes() {
        let home = &scene.home;
        scene.mount();
        exec(&scene, "true");
        scene.host("echo by hand > $M/draft");
        let risky = home.json(&[
            "exec",
            "--checkpoint",
            "safe",
            "--shell",
            "rm -rf /draft /src",
        ]);
        assert_eq!(risky["result"]["checkpoint"], "safe", "{scene}: {risky}");
        assert_eq!(
            changed(&risky["result"]),
            ["/draft", "/src", "/src/a.txt"],
            "{scene}"
        );
        assert!(!scene.there("draft"), "{scene}");
        // What would pull files from under whoever works there is still refused.
        for words in [
            &["checkpoint", "restore", "safe"][..],
            &["vault", "rename", "v", "w"],
            &["vault", "delete", "v", "-y"],
        ] {
            assert_eq!(home.json(words)["error"], "Conflict", "{scene}: {words:?}");
        }
        home.ok(&["unmount"]);
        home.ok(&["checkpoint", "restore", "safe"]);
        assert_eq!(home.ok(&["cat", "/draft"]), "by hand\n", "{scene}");
    }
}

#[test]
fn overlayfs_cannot_be_shared_and_says_what_can() {
    for scene in scenes().into_iter().filter(|it| it.driver == "overlay") {
        scene.mount();
        let refused = scene.home.json(&["exec", "--", "true"]).to_string();
        for word in ["Conflict", "avfs unmount", "--driver fuse", "--fork"] {
            assert!(refused.contains(word), "{scene}: {refused}");
        }
        scene
            .home
            .ok(&["exec", "--fork", "--", "cat", "/src/a.txt"]);
    }
}

#[test]
fn a_mount_has_no_lent_directories_and_a_command_is_told_so() {
    for scene in shared_scenes() {
        // As root it is not below `/tmp`, so that it needs a mount point in the vault.
        let own = scene.home.is_root().then(|| {
            let own = tempfile::Builder::new()
                .prefix("avfs-lent-")
                .tempdir_in("/srv");
            own.unwrap()
        });
        let above = own
            .as_ref()
            .map_or(scene.home.user_home(), |own| own.path());
        let lent = above.join("lent-beside");
        std::fs::create_dir(&lent).unwrap();
        std::fs::write(lent.join("file"), "lent\n").unwrap();
        let setting = format!("lend={}", text(&lent));
        scene.home.ok(&["vault", "set", &setting]);
        let file = lent.join("file");
        let cat = ["exec", "--", "cat", text(&file)];
        assert_eq!(scene.home.ok(&cat), "lent\n", "{scene}");
        scene.mount();
        let (_, told) = scene.home.refused(&cat);
        assert!(told.to_string().contains("mounted at"), "{scene}: {told}");
        scene.home.ok(&["unmount"]);
        assert_eq!(scene.home.ok(&cat), "lent\n", "{scene}");
    }
}

/// TLS that the owner lets be opened has an authority in every sandbox that the mount has, one after the other.
#[test]
fn one_sandbox_after_the_other_opens_beside_a_mount() {
    for scene in shared_scenes() {
        scene.mount();
        exec(&scene, "cat /etc/agentvfs/authorities.pem > /dev/null");
        let limited = [
            "exec",
            "--network",
            "none",
            "--memory",
            "200M",
            "--",
            "true",
        ];
        scene.home.ok(&limited);
        scene
            .home
            .ok(&["exec", "--driver", "process", "--", "true"]);
        exec(
            &scene,
            "cat /etc/agentvfs/authorities.pem > /dev/null; echo > /after",
        );
        assert!(scene.there("after"), "{scene}");
    }
}

#[test]
fn neither_side_reaches_further_through_the_other() {
    for scene in shared_scenes() {
        let dir = scene.mount();
        let host = text(&dir).to_owned();
        std::fs::write(scene.home.path().join("secret"), "of the host").unwrap();
        scene.host("ls $M/usr $M/etc 2>/dev/null || true");
        // A symbolic link of a command leads where the command is, and so do dots at the top.
        let secret = scene.home.path().join("secret");
        let script = format!(
            "ln -s {host}/../secret /out; ln -s /etc/passwd /in; ! cat /out /../secret {} 2>/dev/null; \
             grep -q agent /in; ! grep -F '{host}' /proc/self/mountinfo; ls /usr/bin/env /proc/self/status; \
             ! rmdir /usr /proc 2>/dev/null; ! mv /usr /u 2>/dev/null",
            text(&secret)
        );
        exec(&scene, &script);
        // What is mounted for commands is mounted nowhere else, and is not listed.
        let table = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
        let within = table.lines().filter(|line| line.contains(&host));
        assert_eq!(within.count(), 1, "{scene}: {table}");
        assert_eq!(
            scene.host("ls -A $M; ls -A $M/usr"),
            "in\nout\nsrc\n",
            "{scene}"
        );
        // Nor can a program of the host take it away from commands without a word.
        scene.host("cd $M; ! rmdir usr 2>/dev/null; ! mv usr u 2>/dev/null; ! mv src usr/../proc -T 2>/dev/null");
        exec(&scene, "test -x /usr/bin/env && test -r /proc/self/status");
        // What is mounted there is not for commands.
        if scene.home.user() == "uid 0" {
            scene.host("mkdir $M/sub; mount -t tmpfs none $M/sub; echo x > $M/sub/x");
            exec(&scene, "test -d /sub && test ! -e /sub/x");
            scene.host("umount $M/sub");
        }
        // What is written at a mount point is the vault's, and hidden from commands.
        scene.host("echo x > $M/opt/x");
        exec(&scene, "test ! -e /opt/x");
        assert_eq!(scene.host("ls -A $M/opt"), "x\n", "{scene}");
        scene.home.ok(&["unmount"]);
    }
}

#[test]
fn a_command_does_not_keep_the_mount_busy() {
    for scene in shared_scenes() {
        let home = &scene.home;
        scene.mount();
        // What a command leaves behind ends with it.
        exec(
            &scene,
            "cd /src; (exec 3> /src/open; trap '' TERM HUP; sleep 1000) & sleep 0.1",
        );
        let gone = home.json(&["unmount"]);
        assert_eq!(
            gone["unmounted"].as_array().map(Vec::len),
            Some(1),
            "{scene}: {gone}"
        );
        // While one runs, unmounting is refused, or ends it.
        scene.mount();
        let worker = Worker::start(home, "cd /src; exec 3> /src/open", "true");
        let refused = home.json(&["unmount"]);
        assert_eq!(refused["error"], "Conflict", "{scene}: {refused}");
        home.ok(&["unmount", "--force"]);
        assert!(mounts(home).is_empty(), "{scene}");
        drop(worker);
        assert_eq!(
            exec(&scene, "cat /src/a.txt")["stdout"],
            "stored\n",
            "{scene}"
        );
        // Taken away by other means, the mount ends with the commands beside it. Nothing is lost.
        scene.mount();
        let worker = Worker::start(home, "true", "echo x >> /late");
        match home.user().as_str() {
            "uid 0" => drop(scene.host("umount $M")),
            _ => drop(scene.host("fusermount3 -u $M")),
        }
        let ended = worker.stop();
        assert_eq!(changed(&ended["result"]), ["/late"], "{scene}: {ended}");
        assert!(wait_for(SOON, || mounts(home).is_empty()), "{scene}");
        assert!(home.ok(&["cat", "/late"]).starts_with("x\n"), "{scene}");
        assert_eq!(
            std::fs::read_dir(scene.dir()).unwrap().count(),
            0,
            "{scene}"
        );
    }
}

/// The daemon dies while a command and a program of the host write: what either was told is written is there.
#[test]
fn a_killed_daemon_loses_nothing_of_either_side() {
    for scene in shared_scenes() {
        let home = &scene.home;
        let dir = scene.mount();
        let daemon = home.daemon_pid().expect("it runs");
        let turn = |who: &str, top: &str, note: &str| {
            format!(
                "mkdir -p {top}/{who}; i=0; while i=$((i+1)); echo $i > {top}/{who}/f$i && \
                 mv {top}/{who}/f$i {top}/{who}/g$i && echo $i >> {note}; do :; done"
            )
        };
        let noted = home.path().join("noted");
        let mut writer = home.host_command("sh");
        let script = turn("host", "$M", "$NOTED");
        let writer = writer.args(["-c", &script]).env("M", &dir);
        let writer = writer.env("NOTED", &noted).stderr(Stdio::null());
        std::fs::File::create(&noted).unwrap();
        let allowed = Command::new("chmod").arg("666").arg(&noted).status();
        assert!(allowed.expect("it runs").success());
        let mut writer = writer.spawn().expect("it runs");
        // The command notes in its /tmp, which is a directory of the host.
        let script = turn("command", "", "/tmp/noted");
        let mut command = home.command(&["exec", "--shell", &script]);
        let command = command.stdout(Stdio::null()).stderr(Stdio::null());
        let mut command = command.spawn().expect("it runs");
        for who in ["host/g20", "command/g20"] {
            assert!(wait_for(SOON, || scene.there(who)), "{scene}: {who}");
        }
        signal(daemon, Signal::KILL);
        assert!(process_ends(daemon, SOON), "{scene}");
        writer.wait().expect("it ends");
        command.wait().expect("it ends");
        let said = std::fs::read_to_string(&noted).unwrap();
        let said = [("host", said), ("command", home.ok(&["cat", "/tmp/noted"]))];
        for (who, said) in said {
            let kept = home.ok(&["ls", &format!("/{who}")]);
            let kept: Vec<&str> = kept.split_whitespace().collect();
            assert!(said.lines().count() >= 19, "{scene}: {who}");
            for number in said.lines() {
                let name = format!("g{number}");
                assert!(kept.contains(&&*name), "{scene}: {who}/{name}");
            }
        }
        assert!(causes(home).iter().any(|it| it == "interrupted"), "{scene}");
    }
}

#[test]
fn a_killed_keeper_ends_the_commands_and_not_the_mount() {
    for scene in shared_scenes() {
        let home = &scene.home;
        scene.mount();
        exec(&scene, "echo by command > /by-command");
        let keeper = home.json(&["daemon", "status"])["keeper_pid"].as_u64();
        let keeper = u32::try_from(keeper.expect("it runs")).expect("a pid");
        signal(keeper, Signal::KILL);
        assert!(process_ends(keeper, SOON), "{scene}");
        scene.host("cat $M/by-command; echo after > $M/after");
        assert_eq!(
            exec(&scene, "cat /after /by-command")["stdout"],
            "after\nby command\n"
        );
        home.ok(&["unmount"]);
        assert_eq!(home.ok(&["cat", "/after"]), "after\n", "{scene}");
    }
}
