//! The cost of a command: `true`, bare, in bubblewrap, and through avfs.

use std::ops::ControlFlow;
use std::time::Duration;

use avfs_api::client::Client;
use avfs_api::wire::Exec;

use crate::bed::{Bed, has, host, median_ms, timed};
use crate::pointers::ensure_vault;

const ROUNDS: usize = 31;
const BWRAP: [&str; 16] = [
    "bwrap",
    "--ro-bind",
    "/usr",
    "/usr",
    "--symlink",
    "usr/bin",
    "/bin",
    "--symlink",
    "usr/lib",
    "/lib",
    "--symlink",
    "usr/lib64",
    "/lib64",
    "--unshare-all",
    "--die-with-parent",
    "true",
];

pub fn measure(bed: &Bed, sizes: &[usize]) {
    println!("\n| exec of `true`, ms | files | median |\n|---|---|---|");
    let bare = median_ms(ROUNDS, |_| timed(|| host(&["true"])));
    println!("| bare spawn | - | {bare:.2} |");
    if has("bwrap") {
        println!(
            "| bubblewrap, all namespaces | - | {:.2} |",
            median_ms(ROUNDS, |_| timed(|| host(&BWRAP)))
        );
    }
    for &files in sizes {
        let vault = ensure_vault(bed, files);
        bed.avfs(&["--vault", &vault, "proxy", "exec", "--", "true"]);
        let mut client = bed.client();
        let socket = median_ms(ROUNDS, |_| socket_true(&mut client, &vault));
        println!("| warm, over the socket | {files} | {socket:.2} |");
        let cli = median_ms(ROUNDS, |_| {
            bed.cli(&["--vault", &vault, "proxy", "exec", "--", "true"])
        });
        println!("| warm, through the CLI | {files} | {cli:.2} |");
        let cold = median_ms(ROUNDS, |round| {
            let fork = format!("{vault}-cold-{round}");
            bed.avfs(&["vault", "fork", &vault, &fork]);
            bed.cli(&["--vault", &fork, "proxy", "exec", "--", "true"])
        });
        println!("| cold fork, through the CLI | {files} | {cold:.2} |");
        changed(bed, &vault, files);
    }
}

fn socket_true(client: &mut Client, vault: &str) -> Duration {
    let request = Exec {
        argv: vec!["true".into()],
        ..Exec::default()
    };
    timed(|| {
        let envelope = client.exec(vault, &request, &mut |_| ControlFlow::Continue(()));
        assert!(envelope.expect("the daemon answers").success);
    })
}

/// Ten files changed among many: commit, publishing and report together.
fn changed(bed: &Bed, vault: &str, files: usize) {
    let commit = median_ms(11, |round| {
        let text = format!(
            "for i in 0 1 2 3 4 5 6 7 8 9; do echo {round} >> d000/e0$i/f${{i}}00.txt; done"
        );
        let envelope = bed.shell(vault, &text);
        assert_eq!(
            envelope.result.changed_files.len(),
            10,
            "{:?}",
            envelope.result.changed_files
        );
        let timings = serde_json::to_value(envelope.result.timings).expect("plain data");
        Duration::from_micros(timings["commit_us"].as_u64().expect("a number"))
    });
    println!("| commit and report of 10 changed files | {files} | {commit:.2} |");
}
