//! Import, and `cp -a` of the same tree.

use crate::bed::{Bed, host, make_tree, median_ms, timed};

pub fn measure(bed: &Bed, files: usize) {
    let tree = bed.path(&format!("tree-{files}"));
    make_tree(&tree, files);
    let tree = tree.to_str().expect("plain path").to_owned();
    // Both read a warm cache.
    host(&[
        "sh",
        "-c",
        &format!("find {tree} -type f -exec cat {{}} + > /dev/null"),
    ]);
    // A million files are made, copied and imported only once, because the disk is slow.
    let rounds = if files > 100_000 { 1 } else { 3 };
    let copy = median_ms(rounds, |_| {
        let target = bed.path("copy");
        let target = target.to_str().expect("plain path");
        let time = timed(|| host(&["cp", "-a", &tree, target]));
        host(&["rm", "-rf", target]);
        time
    });
    // Each round has a new home, so that nothing is stored already.
    let import = median_ms(rounds, |round| {
        let vault = format!("files-{files}");
        if round > 0 {
            bed.avfs(&["daemon", "stop"]);
            std::fs::remove_dir_all(bed.path("home")).expect("an old home");
        }
        bed.avfs(&["vault", "create", &vault]);
        bed.cli(&["--vault", &vault, "import", &tree])
    });
    println!(
        "import of {files} × 4 KB: {import:.0} ms, cp -a {copy:.0} ms, ratio {:.2}",
        import / copy
    );
}
