//! Prints every figure of the product in one run, beside what the host does by itself.
//!
//! `cargo run --release -p avfs-benches [-- --quick|--million]`, with `target/release/avfs` built. Run it as root and
//! as an ordinary user: the two take different ways through the kernel. Medians; ratios are against the
//! same work on the host's filesystem in the same run.
#![allow(clippy::print_stdout, clippy::print_stderr)]

mod bed;
mod exec;
mod files;
mod pointers;
mod streams;
mod tools;
mod transfer;

use bed::Bed;

fn main() {
    let quick = std::env::args().any(|word| word == "--quick");
    let sizes: &[usize] = match quick {
        true => &[1_000],
        false if std::env::args().any(|word| word == "--million") => &[1_000, 50_000, 1_000_000],
        false => &[1_000, 50_000],
    };
    let bed = Bed::make();
    println!("# avfs {} as {}", env!("CARGO_PKG_VERSION"), bed.who());
    println!("{}", bed.machine());
    for &files in sizes {
        transfer::measure(&bed, files);
    }
    pointers::measure(&bed, sizes);
    exec::measure(&bed, sizes);
    streams::measure(&bed, sizes[0]);
    tools::measure(&bed, if quick { 2_000 } else { 20_000 });
    files::measure(&bed);
    pointers::at_rest(&bed);
    pointers::many_forks(&bed, sizes[sizes.len() - 1]);
}
