//! What a list of hosts costs: bytes, connections, and the start of a sandbox, each beside a direct connection in the same run.

mod server;

use std::process::Command;

use crate::bed::{Bed, has};

const ROUNDS: usize = 5;
const STARTS: usize = 31;
const NAME: &str = "bench.example.test";
/// How many connections are made one after the other, and how many are open at once.
const IN_TURN: usize = 500;
const AT_ONCE: usize = 1_000;

/// Connects, sends a byte and gets it back: so often in turn, then so many at once. Prints milliseconds for one of the first, and
/// for all of the second.
const CONNECT: &str = "
import socket, sys, time
address, port = sys.argv[1], int(sys.argv[2])
where = socket.getaddrinfo(address, port, socket.AF_INET, socket.SOCK_STREAM)[0][4]
def one():
    stream = socket.create_connection(where, 60)
    stream.sendall(b'x')
    return stream
begun = time.monotonic()
for _ in range(int(sys.argv[3])):
    with one() as stream:
        assert stream.recv(1) == b'x'
turn = (time.monotonic() - begun) * 1000 / int(sys.argv[3])
begun = time.monotonic()
held = [one() for _ in range(int(sys.argv[4]))]
assert all(stream.recv(1) == b'x' for stream in held)
print(turn, (time.monotonic() - begun) * 1000)
";

pub fn measure(bed: &Bed, megabytes: u64) {
    if !has("curl") || !has("python3") {
        return println!("\nnetwork: no curl or no python3 on this machine");
    }
    let port = server::start(megabytes * 1_000_000);
    std::fs::create_dir_all(bed.path("home")).expect("a home");
    std::fs::write(
        bed.path("home").join("hosts"),
        format!("127.0.0.1 {NAME}\n"),
    )
    .expect("own file");
    let list = format!("{NAME}:{port},127.0.0.1:{port}");
    for (vault, network) in [("listed", list.as_str()), ("unlisted", "none")] {
        bed.avfs(&["vault", "create", vault]);
        bed.avfs(&["--vault", vault, "network", "set", network]);
    }
    println!("\n| a list of hosts | direct | in a sandbox | |\n|---|---|---|---|");
    for (what, scheme) in [("TLS", "https"), ("plain", "http")] {
        let (direct, inside) = download(bed, scheme, port);
        let ratio = inside / direct;
        println!(
            "| {megabytes} MB, {what}, MB/s | {direct:.0} | {inside:.0} | {ratio:.2} of direct |"
        );
    }
    let (direct, inside) = connections(bed, port);
    println!(
        "| a connection, ms | {:.3} | {:.3} | {:.3} added |",
        direct[0],
        inside[0],
        inside[0] - direct[0]
    );
    println!(
        "| {AT_ONCE} at once, ms | {:.0} | {:.0} | |",
        direct[1], inside[1]
    );
    starts(bed);
}

/// Megabytes a second, in turn, so that both have the same neighbours.
fn download(bed: &Bed, scheme: &str, port: u16) -> (f64, f64) {
    let (mut direct, mut inside) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let at = |host: &str| {
            format!(
                "curl -sSk --noproxy '*' -o /dev/null -w '%{{speed_download}}' {scheme}://{host}:{port}/"
            )
        };
        direct.push(number(host(&at("127.0.0.1"))));
        inside.push(number(&bed.shell("listed", &at(NAME)).result.stdout));
    }
    (median(direct) / 1e6, median(inside) / 1e6)
}

/// Milliseconds of one connection, and of many at once.
fn connections(bed: &Bed, port: u16) -> ([f64; 2], [f64; 2]) {
    let script = bed.path("connect.py");
    std::fs::write(&script, CONNECT).expect("own file");
    bed.avfs(&["--vault", "listed", "write", "/connect.py", CONNECT]);
    let both = |text: String| -> [f64; 2] {
        let mut words = text.split_whitespace().map(number);
        let mut next = || words.next().expect("two numbers");
        [next(), next()]
    };
    let words = format!("{port} {IN_TURN} {AT_ONCE}");
    let direct = host(&format!("python3 {} 127.0.0.1 {words}", script.display()));
    let inside = bed.shell("listed", &format!("python3 /connect.py {NAME} {words}"));
    (both(direct), both(inside.result.stdout))
}

/// A first command in a fork of a vault with a list, and in one of a vault without, in turn.
fn starts(bed: &Bed) {
    let start = |vault: &str, round: usize| {
        let fork = format!("{vault}-{round}");
        bed.avfs(&["vault", "fork", vault, &fork]);
        let took = bed.cli(&["--vault", &fork, "exec", "--", "true"]);
        took.as_secs_f64() * 1e3
    };
    let (mut without, mut with) = (Vec::new(), Vec::new());
    for round in 0..STARTS {
        without.push(start("unlisted", round));
        with.push(start("listed", round));
    }
    let (without, with) = (median(without), median(with));
    let more = with - without;
    println!(
        "| first command of a fork, ms | {without:.2} without | {with:.2} | {more:.2} added |"
    );
}

fn host(text: &str) -> String {
    let output = Command::new("sh").args(["-c", text]).output();
    let output = output.expect("a shell");
    assert!(output.status.success(), "{text}: {output:?}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn number(text: impl AsRef<str>) -> f64 {
    let text = text.as_ref().trim();
    text.parse()
        .unwrap_or_else(|_| panic!("{text:?} is no number"))
}

fn median(mut all: Vec<f64>) -> f64 {
    all.sort_by(f64::total_cmp);
    all[all.len() / 2]
}
