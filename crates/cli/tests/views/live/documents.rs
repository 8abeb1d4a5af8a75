//! The examples of `docs/mounts.md` do what they say.

use std::process::Command;

use avfs_testkit::Home;

use super::causes;
use crate::AVFS;

const DOCUMENT: &str = include_str!("../../../../../docs/mounts.md");

/// The shell texts of the document, one after another.
fn examples() -> String {
    let blocks = DOCUMENT.split("```sh\n").skip(1);
    let texts = blocks.map(|block| block.split("```").next().expect("a block ends"));
    texts.collect()
}

/// Every user who can mount.
fn homes() -> Vec<Home> {
    let mut homes = Home::of_every_named_user(AVFS);
    let has_helper = Command::new("fusermount3")
        .arg("--version")
        .output()
        .is_ok();
    homes.retain(|home| home.is_root() || has_helper);
    homes
}

#[test]
fn the_examples_of_mounts_run() {
    let text = examples();
    for verb in ["mount", "mounts", "cat", "commit", "unmount"] {
        assert!(
            text.contains(&format!("\navfs {verb}")) || text.starts_with(&format!("avfs {verb}"))
        );
    }
    for home in homes() {
        home.ok(&["vault", "create", "v"]);
        let words = home.command(&[""; 0]);
        let binary = match words.get_args().last() {
            // An ordinary user's command is started by another.
            Some(binary) => binary.to_owned(),
            None => words.get_program().to_owned(),
        };
        let script = format!("avfs() {{ \"$BINARY\" \"$@\"; }}\n{text}");
        let mut shell = home.host_command("sh");
        shell.args(["-euc", &script]).env("BINARY", binary);
        let output = shell.output().expect("a shell runs");
        let said = String::from_utf8_lossy(&output.stdout);
        let complaint = String::from_utf8_lossy(&output.stderr);
        assert!(
            output.status.success(),
            "{}: {said}{complaint}",
            home.user()
        );
        assert!(said.contains("\nhello\n"), "the same file: {said}");
        let dir = home.user_home().join("project");
        assert!(said.contains(dir.to_str().expect("plain")), "{said}");
        let left = std::fs::read_dir(&dir).expect("it was made").count();
        assert_eq!(left, 0, "nothing is mounted any more");
        assert_eq!(home.ok(&["cat", "/hello.txt"]), "hello\n");
        assert!(causes(&home).len() > 1, "{:?}", causes(&home));
    }
}
