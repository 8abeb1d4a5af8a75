//! Pointer moves: fork, checkpoint, restore; and the cost of an idle daemon.

use avfs_api::client::Client;
use avfs_api::wire::{CheckpointRestore, CheckpointSave, VaultFork, VaultList};

use crate::bed::{Bed, make_tree, median_ms, rest, timed};

const ROUNDS: usize = 21;

pub fn measure(bed: &Bed, sizes: &[usize]) {
    println!(
        "\n| pointer moves, ms | files | through the CLI | over the socket |\n|---|---|---|---|"
    );
    for &files in sizes {
        let vault = ensure_vault(bed, files);
        let mut client = bed.client();
        let cli = median_ms(ROUNDS, |round| {
            bed.cli(&["vault", "fork", &vault, &format!("{vault}-cli-{round}")])
        });
        let socket = median_ms(ROUNDS, |round| {
            let name = format!("{vault}-socket-{round}");
            timed(|| {
                drop(
                    client
                        .call(&vault, &VaultFork { name, ..fork() })
                        .expect("forks"),
                )
            })
        });
        println!("| fork | {files} | {cli:.2} | {socket:.2} |");
        let cli = median_ms(ROUNDS, |round| {
            bed.cli(&[
                "--vault",
                &vault,
                "checkpoint",
                "save",
                &format!("cli-{round}"),
            ])
        });
        let socket = median_ms(ROUNDS, |round| {
            let name = Some(format!("socket-{round}"));
            timed(|| {
                drop(
                    client
                        .call(
                            &vault,
                            &CheckpointSave {
                                name,
                                description: None,
                            },
                        )
                        .expect("saves"),
                )
            })
        });
        println!("| checkpoint save | {files} | {cli:.2} | {socket:.2} |");
        let (cli, socket) = restores(bed, &vault, &mut client);
        println!("| checkpoint restore | {files} | {cli:.2} | {socket:.2} |");
    }
}

/// The vault with this many files; that of the last import exists already.
pub fn ensure_vault(bed: &Bed, files: usize) -> String {
    let vault = format!("files-{files}");
    let listed = bed.avfs(&["vault", "list", "--json"]).stdout;
    if !String::from_utf8_lossy(&listed).contains(&format!("\"{vault}\"")) {
        bed.avfs(&["vault", "create", &vault]);
        let tree = bed.path(&format!("tree-{files}"));
        if !tree.exists() {
            make_tree(&tree, files);
        }
        bed.avfs(&[
            "--vault",
            &vault,
            "import",
            tree.to_str().expect("plain path"),
        ]);
    }
    vault
}

/// Back and forth between two states.
fn restores(bed: &Bed, vault: &str, client: &mut Client) -> (f64, f64) {
    let path = "/workspace/d000/e00/f0.txt";
    bed.avfs(&["--vault", vault, "write", path, "changed"]);
    let cli = median_ms(ROUNDS, |_| {
        bed.cli(&["--vault", vault, "checkpoint", "restore", "cli-0"])
    });
    let socket = median_ms(ROUNDS, |round| {
        let request = CheckpointRestore {
            name: Some(format!("cli-{}", round % 2)),
            undo: false,
            force: false,
        };
        timed(|| drop(client.call(vault, &request).expect("restores")))
    });
    (cli, socket)
}

fn fork() -> VaultFork {
    VaultFork {
        name: String::new(),
        checkpoint: None,
        version: None,
        make_current: false,
    }
}

pub fn at_rest(bed: &Bed) {
    // If this part is the first, the daemon has not been started yet.
    bed.avfs(&["vault", "list"]);
    let mut client = bed.client();
    let list = median_ms(ROUNDS, |_| bed.cli(&["vault", "list"]));
    let list_socket = median_ms(ROUNDS, |_| {
        timed(|| drop(client.call("", &VaultList::default()).expect("lists")))
    });
    let version = median_ms(ROUNDS, |_| bed.cli(&["--version"]));
    println!("\nvault list: {list:.2} ms through the CLI, {list_socket:.2} ms over the socket");
    println!("avfs --version (process start alone): {version:.2} ms");
    let pid = client.daemon().expect("the daemon answers").pid;
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("it lives");
    for line in status
        .lines()
        .filter(|line| line.starts_with("VmRSS") || line.starts_with("VmHWM"))
    {
        println!("daemon right after all this: {line}");
    }
    rest();
    println!(
        "daemon at rest, {} views of what was used still open: {} KiB",
        client.daemon().expect("the daemon answers").live_views,
        resident_kib(pid)
    );
    bed.avfs(&["daemon", "stop"]);
    bed.avfs(&["vault", "list"]);
    let pid = bed.client().daemon().expect("the daemon answers").pid;
    println!("a daemon that has just started: {} KiB", resident_kib(pid));
}

/// The cost of a hundred idle forks with ten small changes each on disk, and of three hundred in memory: what is allocated
/// once is told from the cost of each fork.
pub fn many_forks(bed: &Bed, files: usize) {
    let vault = ensure_vault(bed, files);
    let pid = bed.client().daemon().expect("the daemon answers").pid;
    // What the first change of a fork allocates should not count as the cost of a fork.
    bed.shell(&vault, "true");
    rest();
    let (disk, memory) = (stored(bed), resident_kib(pid));
    fork_a_hundred(bed, &vault, 0);
    let hot = resident_kib(pid);
    rest();
    let (disk_after, first) = (stored(bed), resident_kib(pid));
    fork_a_hundred(bed, &vault, 1);
    fork_a_hundred(bed, &vault, 2);
    rest();
    let all = resident_kib(pid);
    println!(
        "100 idle forks of {files} files, 10 small changes each: disk × {:.3}",
        disk_after as f64 / disk as f64
    );
    println!(
        "300 of them: {:.1} KiB of memory each (the first hundred {:.1}, and {:.1} right after its changes; the others {:.1})",
        all.saturating_sub(memory) as f64 / 300.0,
        first.saturating_sub(memory) as f64 / 100.0,
        hot.saturating_sub(memory) as f64 / 100.0,
        all.saturating_sub(first) as f64 / 200.0
    );
}

fn fork_a_hundred(bed: &Bed, vault: &str, hundred: usize) {
    for number in hundred * 100..(hundred + 1) * 100 {
        let fork = format!("{vault}-many-{number}");
        bed.avfs(&["vault", "fork", vault, &fork]);
        for change in 0..10 {
            let path = format!("/workspace/d000/e00/f{change}.txt");
            bed.avfs(&[
                "--vault",
                &fork,
                "write",
                &path,
                &format!("{number} {change}"),
            ]);
        }
    }
}

/// Bytes of the home on disk.
fn stored(bed: &Bed) -> u64 {
    let home = bed.path("home");
    let output = std::process::Command::new("du")
        .args(["-s", "-B1"])
        .arg(home)
        .output()
        .expect("du runs");
    let text = String::from_utf8_lossy(&output.stdout);
    text.split_whitespace()
        .next()
        .and_then(|number| number.parse().ok())
        .expect("a number")
}

fn resident_kib(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("it lives");
    let line = status
        .lines()
        .find(|line| line.starts_with("VmRSS"))
        .expect("every process has it");
    line.split_whitespace()
        .nth(1)
        .and_then(|number| number.parse().ok())
        .expect("a number")
}
