//! The same tests once more, as an ordinary user.

use std::os::unix::process::CommandExt;
use std::process::Command;

/// Nobody: the setuid helper wants its user to have a name.
const SOMEBODY: u32 = 65_534;

#[test]
fn all_of_it_holds_for_an_ordinary_user() {
    if !rustix::process::getuid().is_root() {
        return;
    }
    let mut again = Command::new("/proc/self/exe");
    again.args(["readwrite::", "--skip", "user::", "--test-threads", "2"]);
    // Only the uid is another: what was inherited from root must not help.
    again.env_remove("TMPDIR").uid(SOMEBODY).gid(SOMEBODY);
    let output = again.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success(),
        "{text}{}",
        String::from_utf8_lossy(&output.stderr)
    );
    assert!(text.contains(" passed; 0 failed"), "{text}");
}
