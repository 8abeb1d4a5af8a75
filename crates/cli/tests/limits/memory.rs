//! What the daemon and the kernel remember, and what they let go.

use avfs_testkit::{Home, SOON, status_kib, wait_for, with_vault};

use crate::AVFS;

/// Enough that a layer which holds them has grown.
const FILES: u64 = 1_000;

/// How often a process has read anything: each question that the kernel asks the lens is a read.
fn reads(pid: u32) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{pid}/io")).expect("it lives");
    let line = text.lines().find(|line| line.starts_with("syscr:"));
    line.and_then(|line| line.split_whitespace().nth(1)?.parse().ok())
        .expect("a number")
}

fn resident_kib(pid: u32) -> u64 {
    status_kib(pid, "VmRSS:")
}

fn with_files(home: &Home) {
    let source = home.path().join("source");
    for directory in 0..10 {
        let path = source.join(format!("d{directory}"));
        std::fs::create_dir_all(&path).unwrap();
        for file in 0..FILES / 10 {
            std::fs::write(path.join(format!("f{file}")), format!("{directory} {file}")).unwrap();
        }
    }
    home.ok(&["import", source.to_str().unwrap()]);
}

/// The layers of the one vault there is: whatever lies beside its scratch.
fn layers(home: &Home) -> usize {
    let vaults = std::fs::read_dir(home.avfs_home().join("layers")).unwrap();
    vaults
        .flatten()
        .filter_map(|vault| std::fs::read_dir(vault.path()).ok())
        .flat_map(|names| names.flatten())
        .filter(|name| name.file_name() != "tmp")
        .count()
}

#[test]
fn what_was_read_once_is_not_asked_for_again() {
    with_vault(AVFS, |home| {
        with_files(home);
        let look = "cd /workspace && stat -c %s */* > /dev/null && cat */* | wc -c";
        let first = home.shell(look);
        let pid = home.daemon_pid().unwrap();
        let before = reads(pid);
        let second = home.shell(look);
        assert_eq!(first["result"]["stdout"], second["result"]["stdout"]);
        let asked = reads(pid) - before;
        assert!(asked < FILES / 4, "{asked} reads, as {}", home.user());
    });
}

#[test]
fn a_grown_layer_is_exchanged_once_nothing_runs() {
    with_vault(AVFS, |home| {
        let made = home.shell("mkdir /d && cd /d && seq 500 | xargs -I@ sh -c 'echo @ > f@'");
        assert_eq!(made["result"]["exit_code"], 0, "{made:#}");
        let grown = |home: &Home| home.shell("ls -l /d/f500")["result"]["stdout"].clone();
        let before = grown(home);
        let upper = || {
            let find = "find $0/layers/*/*/upper -name f500 | wc -l";
            let output = std::process::Command::new("sh")
                .args(["-c", find, home.avfs_home().to_str().unwrap()])
                .output()
                .unwrap();
            String::from_utf8_lossy(&output.stdout).trim() == "1"
        };
        assert!(upper(), "at first the layer holds it");
        assert!(wait_for(SOON, || !upper()), "as {}", home.user());
        assert!(wait_for(SOON, || layers(home) == 1), "the old one is gone");
        assert_eq!(grown(home), before, "and it looks the same");
    });
}

#[test]
fn a_large_layer_that_stop_left_is_removed_by_the_next_daemon() {
    with_vault(AVFS, |home| {
        home.shell("mkdir /d && cd /d && seq 500 | xargs touch");
        home.ok(&["daemon", "stop"]);
        assert_eq!(home.ok(&["ls", "/d"]).lines().count(), 500);
        assert!(wait_for(SOON, || layers(home) == 0), "as {}", home.user());
    });
}

#[test]
fn memory_that_only_speed_needs_is_given_back() {
    let home = Home::new(AVFS);
    home.ok(&["vault", "create", "v"]);
    home.shell("true");
    let pid = home.daemon_pid().unwrap();
    let fresh = resident_kib(pid);
    let made = home.shell("mkdir /d && cd /d && seq 20000 | xargs touch");
    assert_eq!(made["result"]["exit_code"], 0, "{made:#}");
    let most = status_kib(pid, "VmHWM:");
    assert!(most > fresh, "{fresh} KiB before, {most} KiB at work");
    // What the view still shows is known to the kernel, and stays.
    let enough = most - (most - fresh) / 4;
    let rested = wait_for(SOON, || resident_kib(pid) < enough);
    assert!(rested, "{fresh}, {most}, {} KiB", resident_kib(pid));
}
