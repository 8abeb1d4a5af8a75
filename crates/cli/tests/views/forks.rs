//! Many forks of one vault read at once while their parent is rewritten: each reads its own state.
//!
//! `AVFS_FORKS=50 AVFS_FORK_FILES=50000 cargo test -p agentvfs-cli --test views forks` is the whole.

use avfs_testkit::{Home, number};
use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::AVFS;
const DIGEST: &str = include_str!("../scripts/digest.py");

/// A part for every run.
const FORKS: u64 = 6;
const FILES: u64 = 2_400;

/// What the daemon may take whatever is read, and for each file and each fork.
const MEMORY_AT_REST: u64 = 96 << 20;
const MEMORY_PER_FILE: u64 = 4 << 10;
const MEMORY_PER_FORK: u64 = 4 << 20;

#[test]
fn forks_read_their_own_state_while_the_parent_is_rewritten() {
    let (forks, files) = (
        number("AVFS_FORKS", FORKS),
        number("AVFS_FORK_FILES", FILES),
    );
    for home in Home::of_every_user(AVFS) {
        let source = home.path().join("source");
        make_source(&source, files);
        home.ok(&["vault", "create", "parent"]);
        let source_text = source.to_str().expect("a path of ours is text");
        home.ok(&["import", source_text, "/workspace"]);
        home.ok(&["write", "/digest.py", DIGEST]);
        let mut expected = Vec::new();
        for number in 0..forks {
            let fork = format!("fork-{number}");
            home.ok(&["vault", "fork", "parent", &fork]);
            // Every fork has something that no other has, and lacks something that the others have.
            let (mark, gone) = (source.join("mark"), format!("d{number}"));
            let hidden = home.path().join("hidden");
            home.ok(&["--vault", &fork, "write", "/workspace/mark", &fork]);
            home.ok(&["--vault", &fork, "rm", "-r", &format!("/workspace/{gone}")]);
            fs::write(&mark, &fork).expect("own file");
            fs::rename(source.join(&gone), &hidden).expect("own directory");
            expected.push(digest_of_host(&source));
            fs::rename(&hidden, source.join(&gone)).expect("own directory");
        }
        let rewrites = read_all(&home, &expected);
        assert!(rewrites > 0, "the parent was not rewritten");
        let memory = home.peak_memory();
        println!(
            "as {}: {forks} forks of {files} files, {rewrites} rewrites, {} MiB at most",
            home.user(),
            memory >> 20
        );
        let bound = MEMORY_AT_REST + files * MEMORY_PER_FILE + forks * MEMORY_PER_FORK;
        assert!(memory < bound, "{memory} bytes, bound {bound}");
    }
}

/// Reads every fork at once, with the parent being rewritten until all are read; gives how often it was.
fn read_all(home: &Home, expected: &[String]) -> usize {
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let parent = scope.spawn(|| {
            let mut rewrites = 0;
            while !done.load(Ordering::Relaxed) {
                rewrite(home, rewrites);
                rewrites += 1;
            }
            rewrites
        });
        let readers: Vec<_> = (0..expected.len())
            .map(|number| scope.spawn(move || digest_of_fork(home, number)))
            .collect();
        let found: Vec<_> = readers.into_iter().map(|reader| reader.join()).collect();
        done.store(true, Ordering::Relaxed);
        for (number, digest) in found.into_iter().enumerate() {
            let digest = digest.expect("the reader did not panic");
            assert_eq!(digest, expected[number], "fork {number} as {}", home.user());
        }
        parent.join().expect("the writer did not panic")
    })
}

/// Changes contents, modes and names in a tenth of the parent's directories.
fn rewrite(home: &Home, round: usize) {
    let text = format!(
        "cd /workspace; mkdir -p n; for d in d*{}; do for f in $d/*; do echo round {round} > $f; done; \
         chmod 700 $d/*; mv $d n/$d; mv n/$d $d; done; rm -rf extra; mkdir extra; echo {round} > extra/x",
        round % 10
    );
    let envelope = home.json(&[
        "--vault",
        "parent",
        "exec",
        "--timeout",
        "900000",
        "--shell",
        &text,
    ]);
    assert_eq!(envelope["result"]["exit_code"], 0, "{envelope:#}");
}

fn digest_of_fork(home: &Home, number: usize) -> String {
    let fork = format!("fork-{number}");
    let mut digests = Vec::new();
    for _ in 0..2 {
        let envelope = home.json(&[
            "--vault",
            &fork,
            "exec",
            "--timeout",
            "900000",
            "--",
            "python3",
            "/digest.py",
            "/workspace",
        ]);
        assert_eq!(envelope["result"]["exit_code"], 0, "{envelope:#}");
        let text = envelope["result"]["stdout"].as_str().expect("text");
        digests.push(text.trim().to_owned());
    }
    assert_eq!(digests[0], digests[1], "{fork} changed while it was read");
    digests.remove(0)
}

fn digest_of_host(dir: &Path) -> String {
    let output = Command::new("python3")
        .args(["-c", DIGEST])
        .arg(dir)
        .output();
    let output = output.expect("python3");
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout)
        .expect("text")
        .trim()
        .to_owned()
}

/// A hundred directories of files, all different.
fn make_source(dir: &Path, files: u64) {
    for number in 0..100 {
        fs::create_dir_all(dir.join(format!("d{number}"))).expect("a directory");
    }
    for number in 0..files {
        let text = format!("file {number}\n").repeat(1 + number as usize % 40);
        fs::write(dir.join(format!("d{}/f{number}", number % 100)), text).expect("a file");
    }
}
