//! fsx: random reads, writes, truncations and mappings of one file, checked at every read.

use super::{bring, programs};
use crate::AVFS;
use avfs_testkit::Shown;

/// A part for every run; see the head of `main.rs` for the whole.
const OPERATIONS: &str = "4000";

/// A disk's own slowness is not the matter: it is waited for now and then, not at every write.
const ALL_KINDS: &str = "
nomsyncafterwrite = true
[weights]
close_open = 2
read = 10
write = 10
mapread = 10
mapwrite = 10
invalidate = 0.3
truncate = 5
fsync = 0.1
fdatasync = 0.1
posix_fallocate = 2
punch_hole = 3
sendfile = 3
posix_fadvise = 1
copy_file_range = 3
";

/// Works on a file that exists before and keeps its size, so that stored bytes are read too.
const OVER_STORED: &str = "
blockmode = true
nomsyncafterwrite = true
[weights]
read = 10
write = 10
mapread = 10
mapwrite = 10
truncate = 0
fsync = 0.1
";

fn operations() -> String {
    std::env::var("AVFS_FSX_OPERATIONS").unwrap_or_else(|_| OPERATIONS.to_owned())
}

#[test]
fn random_operations_read_what_was_written_and_it_is_stored() {
    let Some(programs) = programs() else { return };
    for shown in Shown::in_every_way(AVFS) {
        bring(&shown, &programs, "fsx");
        shown.home.ok(&["write", "/all.toml", ALL_KINDS]);
        shown.home.ok(&["write", "/over.toml", OVER_STORED]);
        shown.home.ok(&["mkdir", "/w"]);
        for seed in ["1", "2"] {
            exercise(&shown, "/all.toml", seed, "/w/f");
            let live = digests(&shown);
            shown.reopen();
            assert_eq!(digests(&shown), live, "{:?} stored", shown.way());
        }
        shown.shell(
            "/",
            &format!("head -c 3000000 /dev/urandom > {}", shown.at("/w/big")),
        );
        shown.reopen();
        exercise(&shown, "/over.toml", "3", "/w/big");
        let live = digests(&shown);
        shown.reopen();
        assert_eq!(digests(&shown), live, "{:?} stored", shown.way());
    }
}

fn exercise(shown: &Shown, config: &str, seed: &str, file: &str) {
    let (program, config, file) = (shown.at("/programs/fsx"), shown.at(config), shown.at(file));
    let (count, artifacts) = (operations(), shown.at("/w"));
    let words = [
        &program, "-f", &config, "-N", &count, "-S", seed, "-P", &artifacts, &file,
    ];
    let ran = shown.run("/", &words);
    assert_eq!(
        ran.code,
        Some(0),
        "{:?}, seed {seed}: {}",
        shown.way(),
        ran.stderr
    );
    assert!(
        ran.stdout.contains("A-OK") || ran.stderr.contains("A-OK"),
        "{ran:#?}"
    );
}

fn digests(shown: &Shown) -> String {
    let command = format!("cd {} && sha256sum *", shown.at("/w"));
    shown.shell("/", &command).stdout
}
