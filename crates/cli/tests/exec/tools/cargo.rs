//! cargo: build and test of a crate whose dependencies are vendored, one with a build script.

use super::judge::{Bench, without_likes};
use crate::AVFS;
use avfs_testkit::{Home, Shown, skip};
use std::path::Path;

const LIB: &str = "
pub fn words(text: &str) -> usize { shlex::split(text).map_or(0, |words| words.len()) }
pub fn page() -> usize { unsafe { libc::sysconf(libc::_SC_PAGESIZE) as usize } }
#[cfg(test)]
mod tests {
    #[test]
    fn counts() { assert_eq!(super::words(\"a 'b c' d\"), 3); assert!(super::page() >= 4096); }
}
";

#[test]
fn cargo_builds_and_tests_a_crate_with_vendored_dependencies() {
    let Some(tools) = avfs_testkit::tools(env!("CARGO_MANIFEST_DIR")) else {
        return;
    };
    // Only this user's own toolchain can be lent.
    let home = || Home::new(AVFS).with_real_user_home();
    let mut all = vec![Shown::by_exec(home())];
    all.extend(Shown::mounted_in_every_way(home));
    for shown in without_likes(all) {
        if shown.run("/", &["cargo", "--version"]).code != Some(0) {
            return skip("no cargo in the sandbox of this machine");
        }
        build(Bench::new(shown), &tools);
    }
}

fn build(mut bench: Bench, tools: &Path) {
    let vendored = tools.join("crate");
    let vendored = vendored.to_str().expect("a path of ours is text");
    bench.shown.home.ok(&["import", vendored, "/crate"]);
    let copy = format!("cp -a ../crate/. .; mkdir -p src; cat > src/lib.rs <<'END'{LIB}END\n");
    let top = "/workspace";
    bench.step(top, &copy);
    bench.stored_step(
        top,
        "cargo build --offline --locked -q; test -e target/debug/deps",
    );
    let tested = bench.stored_step(top, "cargo test --offline --locked 2>&1");
    assert!(tested.stdout.contains("1 passed"), "{}", tested.stdout);
    // What is built need not be built again in another view.
    let again = bench.stored_step(top, "cargo build --offline --locked 2>&1");
    assert!(!again.stdout.contains("Compiling"), "{}", again.stdout);
    bench.stored_step(
        top,
        "sed -i s/4096/1024/ src/lib.rs; cargo test --offline --locked -q",
    );
    bench.still_there(top, &["cargo test --offline --locked -q"]);
}
