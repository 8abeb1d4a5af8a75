//! Figures beside those of a direct connection: `AVFS_NET_MEGABYTES=1000 cargo test -p avfs-net --test it speed -- --nocapture`,
//! built with optimisation. Without the variable a few bytes are moved, and only that they arrive is checked.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::client::echoes;
use crate::servers::{Authority, echo, zeros};
use crate::space::alone;
use crate::world::World;

/// Reads all that comes.
fn drain(stream: &mut impl Read) -> u64 {
    let mut buffer = vec![0; 256 * 1024];
    let mut all = 0;
    while let Ok(length) = stream.read(&mut buffer) {
        if length == 0 {
            break;
        }
        all += length as u64;
    }
    all
}

fn secure(stream: TcpStream, config: &Arc<rustls::ClientConfig>) -> u64 {
    let name = "a.test".try_into().unwrap();
    let session = rustls::ClientConnection::new(config.clone(), name).unwrap();
    let mut stream = rustls::StreamOwned::new(session, stream);
    stream.write_all(b"go").unwrap();
    drain(&mut stream)
}

fn timed(bytes: u64, read: impl FnOnce() -> u64) -> f64 {
    let begun = Instant::now();
    assert_eq!(read(), bytes);
    bytes as f64 / begun.elapsed().as_secs_f64() / 1e6
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}

#[test]
fn figures() {
    alone("speed::figures", || {
        let asked = std::env::var("AVFS_NET_MEGABYTES").ok();
        let megabytes: u64 = asked.map_or(1, |n| n.parse().unwrap());
        let bytes = megabytes * 1_000_000;
        let authority = Authority::new();
        zeros("127.0.5.1:22", bytes);
        authority.zeros("127.0.5.1:443", "a.test", bytes);
        echo("127.0.5.1:23");
        let world = World::new();
        world.names.set("a.test", &["127.0.5.1"]);
        let ports = "127.0.5.1:22,127.0.5.1:23,127.0.5.1:443";
        let (sandbox, _guard) = world.with_list(&format!("a.test:22,a.test:23,a.test:443,{ports}"));
        let client = authority.client();
        let direct = |port| TcpStream::connect(("127.0.5.1", port)).unwrap();
        let rows = [
            (
                "bytes",
                timed(bytes, || drain(&mut direct(22))),
                timed(bytes, || drain(&mut sandbox.dial("a.test", 22).unwrap())),
            ),
            (
                "TLS",
                timed(bytes, || secure(direct(443), &client)),
                timed(bytes, || {
                    secure(sandbox.dial("a.test", 443).unwrap(), &client)
                }),
            ),
            (
                "TLS by CONNECT",
                timed(bytes, || secure(direct(443), &client)),
                timed(bytes, || {
                    secure(sandbox.tunnel("a.test:443").unwrap(), &client)
                }),
            ),
        ];
        for (what, direct, through) in rows {
            println!(
                "{what}: direct {direct:.0} MB/s, through {through:.0} MB/s, {:.2}",
                through / direct
            );
        }
        let begun = Instant::now();
        let (_other, _entered) = world.with_list("a.test,b.test,c.test");
        println!(
            "namespace, sockets and first command: {:?}",
            begun.elapsed()
        );
        let address = sandbox.address("a.test");
        let time = |connect: &dyn Fn() -> TcpStream| {
            let times = (0..200).map(|_| {
                let begun = Instant::now();
                assert!(echoes(&mut connect()));
                begun.elapsed()
            });
            median(times.collect())
        };
        let (near, far) = (
            time(&|| direct(23)),
            time(&|| sandbox.connect((address, 23)).unwrap()),
        );
        println!("connection and one exchange: direct {near:?}, through {far:?}");
    });
}
