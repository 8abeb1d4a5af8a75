//! Whatever a command calls its files, they are stored, reported and counted: no name is ours.

use std::process::{Child, Stdio};

use crate::AVFS;
use avfs_testkit::{Home, SOON, process_ends, signal, wait_for, with_vault};
use serde_json::{Value, json};

/// Names that were, or could be taken for, those of our own temporary files.
const NAMES: [&str; 9] = [
    "/.avfs-moving-",
    "/.avfs-moving-1",
    "/d/.avfs-moving-18c8/x",
    "/.avfs-writing",
    "/d/.avfs-writing/x",
    "/.moved-1/.moved-2/x",
    "/.avfs-export-1",
    "/.wh.f",
    "/.wh..wh..opq",
];

/// The record that once stood for an exchange under way, in a directory of this name.
fn forged(dir: &str) -> String {
    format!(
        "mkdir -p {dir}; ln -s /deploy.sh {dir}/first; ln -s /decoy {dir}/second; \
         echo echo GOOD > {dir}/to-first; echo echo EVIL > {dir}/to-second; "
    )
}

fn text(envelope: &Value) -> &str {
    envelope["result"]["stdout"].as_str().unwrap()
}

fn kill_daemon(home: &Home) {
    let status = home.json(&["daemon", "status"]);
    let pid = |name: &str| status[name].as_u64().unwrap() as u32;
    let keeper = pid("keeper_pid");
    signal(pid("pid"), rustix::process::Signal::KILL);
    assert!(process_ends(keeper, SOON), "the keeper ends with it");
}

#[test]
fn what_is_stored_is_what_runs() {
    with_vault(AVFS, |home| {
        let dirs = ["/.avfs-moving-1", "/d/.avfs-moving-2", "/proc-1/staging/1"];
        let forged: String = dirs.iter().map(|dir| forged(dir)).collect();
        let made = home.shell(&format!(
            "echo echo EVIL > /deploy.sh; echo echo GOOD > /decoy; {forged} sh /deploy.sh"
        ));
        assert_eq!(text(&made), "EVIL\n");
        let changed = made["result"]["changed_files"].as_array().unwrap();
        for dir in dirs {
            for name in ["first", "second", "to-first", "to-second"] {
                let path = format!("{dir}/{name}");
                assert!(changed.contains(&json!(path)), "{path}: {changed:?}");
            }
        }
        let check = |when: &str| {
            assert_eq!(home.ok(&["cat", "/deploy.sh"]), "echo EVIL\n", "{when}");
            assert_eq!(text(&home.shell("sh /deploy.sh")), "EVIL\n", "{when}");
            let linked = home.shell("readlink /.avfs-moving-1/first");
            assert_eq!(text(&linked), "/deploy.sh\n", "{when}");
        };
        check("in the same view");
        // What nobody had committed when everything was killed.
        let mut child = waiting(
            home,
            "echo echo WORSE > /deploy.sh; rm /.avfs-moving-1/to-second",
        );
        kill_daemon(home);
        child.wait().unwrap();
        assert_eq!(home.ok(&["cat", "/deploy.sh"]), "echo WORSE\n");
        assert_eq!(text(&home.shell("sh /deploy.sh")), "WORSE\n");
    });
}

/// Starts a command that does `script` and then waits until `/tmp/over` is there.
fn waiting(home: &Home, script: &str) -> Child {
    let script =
        format!("{script}\n touch /tmp/ready; until [ -e /tmp/over ]; do sleep 0.01; done");
    let child = home
        .command(&["proxy", "exec", "--shell", &script])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let ready = || home.avfs(&["cat", "/tmp/ready"]).status.success();
    assert!(wait_for(SOON, ready), "as {}", home.user());
    child
}

fn end(home: &Home, mut child: Child) {
    home.ok(&["write", "/tmp/over", ""]);
    assert!(child.wait().unwrap().success());
}

#[test]
fn every_name_is_reported_and_counted() {
    with_vault(AVFS, |home| {
        let make = |bytes: u32| {
            let put = |path: &&str| {
                format!("mkdir -p $(dirname {path}); head -c {bytes} /dev/zero > {path}; ")
            };
            NAMES.iter().map(put).collect::<String>()
        };
        let made = home.shell(&make(1000));
        let changed = made["result"]["changed_files"].as_array().unwrap();
        for path in NAMES {
            assert!(changed.contains(&json!(path)), "{path}: {changed:?}");
        }
        assert_eq!(made["result"]["skipped"], json!([]));
        home.ok(&["daemon", "stop"]);
        let listed = home.shell(
            "find / -xdev -name '.*' -size +0 -type f | wc -l; cat /d/.avfs-writing/x | wc -c",
        );
        assert_eq!(text(&listed), "6\n1000\n", "and are there in the next view");
        home.ok(&["quota", "set", "max_size_mb", "1"]);
        for path in NAMES {
            let big = format!("head -c 1500000 /dev/urandom > {path}");
            let refused = home.json(&["exec", "--shell", &big]);
            let error = &refused["result"]["uncommitted"]["error"];
            assert_eq!(error, "Quota", "{path}: {refused:#}");
            home.shell(&format!("head -c 1000 /dev/zero > {path}"));
        }
    });
}

#[test]
fn places_that_were_mount_points_are_stored() {
    with_vault(AVFS, |home| {
        home.shell("mkdir /var/lib; echo kept > /var/lib/f");
        // As root, a directory with a mount in it can be renamed; what then has its name is ordinary.
        let script = "mv /var /w 2> /dev/null; mkdir -p /var/tmp; echo hidden > /var/tmp/evil; \
                      mv /home /h2 && mkdir -p /home/agent && echo x > /home/agent/f && ls -d /h2/agent";
        let made = home.shell(script);
        assert_eq!(made["result"]["uncommitted"], Value::Null, "{made:#}");
        let paths = made["result"]["changed_files"].to_string();
        assert_eq!(paths.contains("/var/tmp/evil"), home.is_root(), "{paths}");
        assert!(paths.contains("/h2"), "{paths}");
        assert_eq!(text(&made), "/h2/agent\n");
        let next = home.shell("cat /var/lib/f /w/lib/f 2> /dev/null; cat /home/agent/f");
        assert_eq!(text(&next), "kept\nx\n", "{next:#}");
    });
}

#[test]
fn files_written_beside_commands_replace_no_others() {
    with_vault(AVFS, |home| {
        let names = [".avfs-moving-", ".avfs-writing"];
        let put = |name: &str| format!("echo mine > /d/{name}; mkdir -p /e/{name}/in; ");
        let all: String = names.iter().map(|name| put(name)).collect();
        let child = waiting(home, &format!("mkdir /d /e; {all}"));
        home.ok(&["write", "/d/new", "text"]);
        home.ok(&["write", "/e/new", "text"]);
        assert_eq!(home.ok(&["cat", "/d/new"]), "text");
        for name in names {
            assert_eq!(home.ok(&["cat", &format!("/d/{name}")]), "mine\n");
            home.ok(&["ls", &format!("/e/{name}/in")]);
        }
        let count = home.shell("ls -A /d | wc -l; ls -A /e | wc -l");
        assert_eq!(text(&count), "3\n3\n", "nothing is left over");
        end(home, child);
    });
}

#[test]
fn marks_of_the_overlay_cannot_be_forged() {
    with_vault(AVFS, |home| {
        home.shell("mkdir /s /t; echo s > /s/f; echo t > /t/f; touch /gone");
        home.ok(&["daemon", "stop"]);
        let forge = "import os\n\
            for prefix in ('user.overlay.', 'trusted.overlay.', 'user.overlay.overlay.'):\n\
            \x20   for name, value in (('opaque', b'y'), ('redirect', b'/t'), ('whiteout', b'y'), ('metacopy', b'')):\n\
            \x20       for path in ('/s', '/s/f'):\n\
            \x20           try: os.setxattr(path, prefix + name, value)\n\
            \x20           except OSError: pass\n\
            for path in ('/gone2', '/s/f2'):\n\
            \x20   try: os.mknod(path, 0o20666, 0); print('made', path)\n\
            \x20   except OSError: pass\n\
            os.rename('/s', '/s2')";
        let forged = home.exec(&["python3", "-c", forge]);
        assert_eq!(text(&forged), "", "{forged:#}");
        assert_eq!(forged["result"]["exit_code"], 0, "{forged:#}");
        // What no view could show is at least said.
        let skipped = forged["result"]["skipped"].to_string();
        for path in ["/s2", "/s2/f"] {
            assert!(skipped.contains(&format!("{path:?}")), "{forged:#}");
        }
        for (path, content) in [("/s2/f", "s\n"), ("/t/f", "t\n")] {
            assert_eq!(home.ok(&["cat", path]), content);
            assert_eq!(text(&home.shell(&format!("cat {path}"))), content);
        }
        home.ok(&["daemon", "stop"]);
        assert_eq!(
            text(&home.shell("cat /s2/f /t/f; ls / | grep -c gone")),
            "s\nt\n1\n"
        );
    });
}
