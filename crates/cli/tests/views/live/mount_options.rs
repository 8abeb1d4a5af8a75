//! Options of mounts: for other users, and taken away although somebody is in them.

use super::mounts::{Scene, scenes};
use std::process::Stdio;

fn text(scene: &Scene) -> String {
    scene.dir().to_str().expect("a plain path").to_owned()
}

/// Whether root's `/etc/fuse.conf` lets ordinary users open their mounts to others.
fn others_are_allowed() -> bool {
    let conf = std::fs::read_to_string("/etc/fuse.conf").unwrap_or_default();
    conf.lines().any(|line| line.trim() == "user_allow_other")
}

#[test]
fn a_mount_for_others_needs_the_line_of_root() {
    for scene in scenes() {
        let words = [
            "mount",
            &text(&scene),
            "--driver",
            scene.driver,
            "--allow-other",
        ];
        if scene.home.is_root() || others_are_allowed() {
            scene.home.ok(&words);
            // The directories above the mount are this user's alone; root passes them.
            if rustix::process::geteuid().is_root() {
                let seen = std::fs::read_to_string(scene.dir().join("src/a.txt"));
                assert_eq!(seen.expect("root may look"), "stored\n", "{scene}");
            }
            scene.home.ok(&["unmount", &text(&scene)]);
            continue;
        }
        let (kind, refused) = scene.home.refused(&words);
        assert_eq!(kind, "Invalid", "{scene}: {refused}");
        let said = format!("{} {}", refused["message"], refused["hint"]);
        for part in ["/etc/fuse.conf", "user_allow_other"] {
            assert!(said.contains(part), "{scene}: {said}");
        }
        assert!(!scene.there("src"), "{scene}: nothing is mounted");
    }
}

#[test]
fn a_lazy_unmount_does_not_wait_for_whoever_is_in_it() {
    for scene in scenes() {
        scene.mount();
        let mut inside = scene.home.host_command("sh");
        // It says when it is there, and stays until its input ends.
        inside.args(["-ec", "cd \"$1\"; echo kept > kept; echo there; cat", "sh"]);
        inside
            .arg(scene.dir())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        let mut inside = inside.spawn().expect("a shell runs");
        let mut said = [0; 6];
        let out = inside.stdout.as_mut().expect("a pipe");
        std::io::Read::read_exact(out, &mut said).expect("it says so");
        let (kind, _) = scene.home.refused(&["unmount", &text(&scene)]);
        assert_eq!(kind, "Conflict", "{scene}");
        scene.home.ok(&["unmount", &text(&scene), "--lazy"]);
        assert!(!scene.there("kept"), "{scene}: it is gone from its place");
        assert_eq!(scene.home.ok(&["cat", "/kept"]), "kept\n", "{scene}");
        let listed = scene.home.json(&["mounts"]);
        assert_eq!(listed["mounts"], serde_json::json!([]), "{scene}");
        drop(inside.stdin.take());
        inside.wait().expect("own child");
    }
}
