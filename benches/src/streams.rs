//! What accompanies a command: a file written before it, its output, and a temporary fork.

use std::ops::ControlFlow;
use std::time::Instant;

use avfs_api::wire::{Exec, ExecEvent, ForkWord, Write};

use crate::bed::{Bed, host, median_ms, timed};
use crate::pointers::ensure_vault;

const ROUNDS: usize = 31;
const GIGABYTE: u64 = 1_000_000_000;
const FAN: usize = 100;

pub fn measure(bed: &Bed, files: usize) {
    println!("\n| with a command | figure |\n|---|---|");
    let vault = ensure_vault(bed, files);
    write_then_exec(bed, &vault);
    for output in GIGABYTES {
        gigabyte(bed, &vault, output);
    }
    fan_out(bed, &vault);
}

/// A file is written, and a command reads it: the usual work of an agent.
fn write_then_exec(bed: &Bed, vault: &str) {
    let mut client = bed.client();
    let round_trip = median_ms(ROUNDS, |round| {
        let text = round.to_string();
        let write = Write {
            path: "/note".into(),
            path_b64: None,
            content: text.clone(),
            content_b64: None,
            append: false,
            parents: false,
            mode: None,
        };
        let cat = Exec {
            argv: vec!["cat".into(), "/note".into()],
            ..Exec::default()
        };
        timed(|| {
            client.call(vault, &write).expect("it is written");
            let envelope = client.exec(vault, &cat, &mut |_| ControlFlow::Continue(()));
            assert_eq!(envelope.expect("the daemon answers").result.stdout, text);
        })
    });
    println!("| write a file, then a command reads it, over the socket | {round_trip:.2} ms |");
}

/// Lines of text, and the worst case for JSON: each of these bytes takes six there.
const GIGABYTES: [(&str, &str); 2] = [
    (
        "lines of text",
        "yes 'test result: ok. 29 passed; 0 failed'",
    ),
    ("zero bytes", "cat /dev/zero"),
];

fn gigabyte(bed: &Bed, vault: &str, (what, source): (&str, &str)) {
    let text = format!("{source} | head -c {GIGABYTE}");
    let native = timed(|| host(&["sh", "-c", &format!("{text} | cat > /dev/null")]));
    let request = Exec {
        shell: Some(text),
        timeout_ms: Some(600_000),
        ..Exec::default()
    };
    let mut seen = 0;
    let began = Instant::now();
    let envelope = bed.client().exec(vault, &request, &mut |event| {
        if let ExecEvent::Stdout(chunk) = event {
            seen += chunk.bytes().len() as u64;
        }
        ControlFlow::Continue(())
    });
    let took = began.elapsed();
    let counts = envelope.expect("the daemon answers").result.output.stdout;
    assert_eq!(
        (counts.bytes, seen),
        (GIGABYTE, GIGABYTE),
        "every byte arrives"
    );
    let rate = GIGABYTE as f64 / 1e6 / took.as_secs_f64();
    println!(
        "| 1 GB of output ({what}), streamed | {:.2} s ({rate:.0} MB/s; a pipe alone: {:.2} s) |",
        took.as_secs_f64(),
        native.as_secs_f64()
    );
}

/// A hundred forks at once, each with a command that changes something, all deleted afterwards.
fn fan_out(bed: &Bed, vault: &str) {
    let request = Exec {
        shell: Some("echo changed > /note".into()),
        fork: Some(ForkWord::Discard),
        ..Exec::default()
    };
    let began = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..FAN {
            scope.spawn(|| {
                let envelope = bed
                    .client()
                    .exec(vault, &request, &mut |_| ControlFlow::Continue(()))
                    .expect("the daemon answers");
                assert!(envelope.success, "{envelope:?}");
            });
        }
    });
    let took = began.elapsed().as_secs_f64() * 1000.0;
    println!("| {FAN} forks at once: fork, command, discard | {took:.0} ms |");
}
