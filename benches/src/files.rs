//! Files over the socket, by one client and by sixteen at once.

use avfs_api::wire::{Cat, Write};

use crate::bed::{Bed, median_ms, timed};

const SIZES: [(&str, usize); 3] = [("1 KB", 1 << 10), ("64 KB", 64 << 10), ("1 MB", 1 << 20)];
const CLIENTS: usize = 16;
const WRITES_EACH: usize = 25;

pub fn measure(bed: &Bed) {
    bed.avfs(&["vault", "create", "files"]);
    let mut client = bed.client();
    println!("\n| one file over the socket, ms | write | read |\n|---|---|---|");
    for (name, bytes) in SIZES {
        let write = median_ms(31, |round| {
            let request = write(format!("/f{bytes}-{round}"), content(bytes, round));
            timed(|| drop(client.call("files", &request).expect("writes")))
        });
        let read = median_ms(31, |round| {
            let request = cat(format!("/f{bytes}-{round}"));
            timed(|| drop(client.call("files", &request).expect("reads")))
        });
        println!("| {name} | {write:.2} | {read:.2} |");
    }
    sixteen(bed);
}

/// Everyone writes into one vault: each write is a version, and none may be lost.
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
        host_file: None,
        host_file_b64: None,
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
