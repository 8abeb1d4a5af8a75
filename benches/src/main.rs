//! Prints every figure of the product in one run, beside the host's own.
//!
//! `cargo run --release -p avfs-benches [-- --quick|--million] [PART…]`, with `target/release/avfs` built. Run it as root and
//! as an ordinary user: they use different mechanisms of the kernel. Figures are medians; ratios are against the same work on the
//! host's filesystem in the same run.
#![allow(clippy::print_stdout, clippy::print_stderr)]

mod bed;
mod clients;
mod exec;
mod files;
mod network;
mod pointers;
mod policy;
mod streams;
mod tools;
mod transfer;
mod views;

use bed::Bed;
use std::time::Duration;

/// How long many clients are served.
const LONG: Duration = Duration::from_secs(60);
const SHORT: Duration = Duration::from_secs(2);

/// The parts of a run, in order; arguments select some of them.
const PARTS: [&str; 12] = [
    "import", "pointers", "exec", "streams", "tools", "views", "files", "mcp", "clients", "policy",
    "network", "forks",
];

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if let [first, kind, path] = &words[..]
        && first == "__io"
    {
        return views::io::run(kind, path.as_ref());
    }
    let has = |word: &str| words.iter().any(|given| given == word);
    let known =
        |word: &String| ["--quick", "--million"].contains(&&**word) || PARTS.contains(&&**word);
    if let Some(unknown) = words.iter().find(|word| !known(word)) {
        eprintln!(
            "{unknown}: known are --quick, --million, {}",
            PARTS.join(", ")
        );
        std::process::exit(2);
    }
    let chosen = |part: &str| has(part) || !PARTS.iter().any(|part| has(part));
    let sizes: &[usize] = match has("--quick") {
        true => &[1_000],
        false if has("--million") => &[1_000, 50_000, 1_000_000],
        false => &[1_000, 50_000],
    };
    let bed = Bed::make();
    println!("# avfs {} as {}", env!("CARGO_PKG_VERSION"), bed.who());
    println!("{}", bed.machine());
    for part in PARTS.into_iter().filter(|part| chosen(part)) {
        // Synced, so that no part waits for writes of the one before.
        bed::host(&["sync"]);
        match part {
            "import" => sizes
                .iter()
                .for_each(|&files| transfer::measure(&bed, files)),
            "pointers" => pointers::measure(&bed, sizes),
            "exec" => exec::measure(&bed, sizes),
            "streams" => streams::measure(&bed, sizes[0]),
            "tools" => tools::measure(&bed, if has("--quick") { 2_000 } else { 20_000 }),
            "views" => views::measure(&bed, sizes, if has("--quick") { 2_000 } else { 20_000 }),
            "files" => files::measure(&bed),
            "mcp" => clients::mcp(&bed),
            "clients" => clients::traffic(&bed, if has("--quick") { SHORT } else { LONG }),
            "policy" => policy::measure(),
            "network" => network::measure(&bed, if has("--quick") { 100 } else { 1_000 }),
            _ => {
                pointers::at_rest(&bed);
                pointers::many_forks(&bed, sizes[sizes.len() - 1]);
            }
        }
    }
}
