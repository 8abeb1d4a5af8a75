//! Files over the socket and in process, by one client and by sixteen at once.

use avfs_api::wire::{Cat, Write};
use avfs_runtime::{
    Config, HostFacts, IfLost, Principal, ReadOptions, Runtime, Select, Session, VaultPath,
    WriteOptions,
};

use crate::bed::{Bed, median_ms, timed};

const SIZES: [(&str, usize); 3] = [("1 KB", 1 << 10), ("64 KB", 64 << 10), ("1 MB", 1 << 20)];
const CLIENTS: usize = 16;
const WRITES_EACH: usize = 25;

pub fn measure(bed: &Bed) {
    bed.avfs(&["vault", "create", "files"]);
    let mut client = bed.client();
    let runtime = in_process(bed);
    println!(
        "\n| one file, ms | write over the socket | read | write in process | read |\n|---|---|---|---|---|"
    );
    for (name, bytes) in SIZES {
        let write = median_ms(31, |round| {
            let request = write(format!("/f{bytes}-{round}"), content(bytes, round));
            timed(|| drop(client.call("files", &request).expect("writes")))
        });
        let read = median_ms(31, |round| {
            let request = cat(format!("/f{bytes}-{round}"));
            timed(|| drop(client.call("files", &request).expect("reads")))
        });
        let path = |round: usize| {
            VaultPath::parse(format!("/f{bytes}-{round}").as_bytes()).expect("a path")
        };
        let write_here = median_ms(31, |round| {
            let content = content(bytes, round);
            let options = WriteOptions::default();
            timed(|| {
                let written = runtime.write(
                    Select::Current,
                    &path(round),
                    &mut content.as_bytes(),
                    &options,
                );
                drop(written.expect("writes"));
            })
        });
        let read_here = median_ms(31, |round| {
            let options = ReadOptions::default();
            timed(|| {
                let read = runtime.cat(Select::Current, &path(round), &options);
                drop(read.expect("reads"));
            })
        });
        println!("| {name} | {write:.2} | {read:.2} | {write_here:.2} | {read_here:.2} |");
    }
    runtime.shutdown();
    sixteen(bed);
}

/// A home without a daemon.
fn in_process(bed: &Bed) -> Session {
    let runtime_dir = bed.path("in-process-run");
    std::fs::create_dir(&runtime_dir).expect("a directory");
    let runtime = Runtime::open(Config {
        home: bed.path("in-process"),
        runtime_dir,
        binary: bed.binary(),
        host: HostFacts::default(),
        layers: None,
        if_lost: IfLost::Refuse,
    });
    let runtime = runtime.expect("a fresh home opens");
    let name = "files".parse().expect("a name");
    let runtime = runtime.by(Principal::OWNER);
    runtime.vault_create(&name).expect("a fresh vault");
    runtime
}

/// All clients write into one vault: each write is a version, and none may be lost.
fn sixteen(bed: &Bed) {
    bed.avfs(&["vault", "create", "shared"]);
    let time = timed(|| {
        std::thread::scope(|scope| {
            for number in 0..CLIENTS {
                scope.spawn(move || {
                    let mut client = bed.client();
                    for round in 0..WRITES_EACH {
                        let path = format!("/c{number}-{round}");
                        let request = write(path, content(1 << 10, number * 1000 + round));
                        client.call("shared", &request).expect("writes");
                    }
                });
            }
        });
    });
    let writes = CLIENTS * WRITES_EACH;
    let per_second = writes as f64 / time.as_secs_f64();
    println!(
        "{CLIENTS} clients at once, 1 KB writes into one vault: {per_second:.0} writes a second"
    );
}

fn content(bytes: usize, seed: usize) -> String {
    let mut state = seed as u64 + 1;
    let letters = (0..bytes).map(|_| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        char::from(b'a' + ((state >> 40) % 26) as u8)
    });
    letters.collect()
}

fn write(path: String, content: String) -> Write {
    Write {
        path,
        path_b64: None,
        content,
        content_b64: None,
        append: false,
        parents: false,
        mode: None,
    }
}

fn cat(path: String) -> Cat {
    Cat {
        path,
        path_b64: None,
        version: None,
        offset: 0,
        limit: None,
    }
}
