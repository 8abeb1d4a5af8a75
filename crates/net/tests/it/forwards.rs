//! Ports of the host that lead into a sandbox.
//!
//! Who may lie: a server inside that sends without end, never accepts or never answers; a client that opens connections without end.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use avfs_net::{Bounds, Error, Forward, Inside, Upstream, Way};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};

use crate::space::{Space, alone};
use crate::world::World;

const ANY: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0);
const PORT: u16 = 3000;

/// A sandbox whose port 3000 is meant, as long as it is there.
struct Door {
    space: Space,
    is_there: AtomicBool,
}

impl Inside for Door {
    fn ways(&self) -> io::Result<Vec<Way>> {
        if !self.is_there.load(Ordering::Relaxed) {
            return Err(ErrorKind::NotConnected.into());
        }
        let socket: OwnedFd = self.space.run(|| {
            let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
            socket_with(AddressFamily::INET, SocketType::STREAM, flags, None).unwrap()
        });
        Ok(vec![Way::Tcp(
            socket,
            SocketAddr::from((Ipv4Addr::LOCALHOST, PORT)),
        )])
    }
}

fn door(space: &Space) -> Arc<Door> {
    Arc::new(Door {
        space: space.clone(),
        is_there: AtomicBool::new(true),
    })
}

fn forward(world: &World, space: &Space) -> Forward {
    world.net.forward(ANY, door(space)).unwrap()
}

/// A server on port 3000, which does this with each connection.
fn serves(space: &Space, each: fn(TcpStream)) {
    let listener = space.run(|| TcpListener::bind((Ipv4Addr::LOCALHOST, PORT)).unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let stream = stream.unwrap();
            std::thread::spawn(move || each(stream));
        }
    });
}

fn echo(mut stream: TcpStream) {
    let mut out = stream.try_clone().unwrap();
    let _ = io::copy(&mut stream, &mut out);
    let _ = out.shutdown(Shutdown::Write);
}

fn ask(forward: &Forward, text: &str) -> io::Result<String> {
    let mut stream = TcpStream::connect(forward.address())?;
    stream.write_all(text.as_bytes())?;
    stream.shutdown(Shutdown::Write)?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}

/// How a connection ends that was accepted, and to which nobody says anything.
fn fate(address: SocketAddr) -> ErrorKind {
    let mut stream = TcpStream::connect(address).unwrap();
    match stream.read(&mut [0]) {
        Ok(0) => ErrorKind::UnexpectedEof,
        Ok(_) => panic!("somebody answers"),
        Err(error) => error.kind(),
    }
}

#[test]
fn each_port_leads_to_its_own_sandbox() {
    alone("forwards::each_port_leads_to_its_own_sandbox", || {
        let world = World::new();
        let [one, other] = [Space::new(), Space::new()];
        serves(&one, |mut stream| stream.write_all(b"one").unwrap());
        serves(&other, |mut stream| stream.write_all(b"other").unwrap());
        let to_one = forward(&world, &one);
        let to_other = forward(&world, &other);
        assert_eq!(ask(&to_one, "").unwrap(), "one");
        assert_eq!(ask(&to_other, "").unwrap(), "other");
        // The host's own port is not opened by it.
        let own = TcpStream::connect((Ipv4Addr::LOCALHOST, PORT));
        assert_eq!(own.unwrap_err().kind(), ErrorKind::ConnectionRefused);
        let taken = world.net.forward(to_one.address(), door(&one));
        let Err(Error::Listen(address, error)) = taken.map(drop) else {
            panic!("two forwards have one port");
        };
        assert_eq!(
            (address, error.kind()),
            (to_one.address(), ErrorKind::AddrInUse)
        );
    });
}

#[test]
fn bytes_pass_whole_and_ends_are_passed_on() {
    alone("forwards::bytes_pass_whole_and_ends_are_passed_on", || {
        let world = World::new();
        let space = Space::new();
        serves(&space, echo);
        let forward = forward(&world, &space);
        let text = "0123456789abcdef".repeat(1 << 18);
        let mut stream = TcpStream::connect(forward.address()).unwrap();
        let mut back = stream.try_clone().unwrap();
        let reader = std::thread::spawn(move || {
            let mut answer = String::new();
            back.read_to_string(&mut answer).unwrap();
            answer
        });
        stream.write_all(text.as_bytes()).unwrap();
        assert_eq!(forward.connections(), 1);
        stream.shutdown(Shutdown::Write).unwrap();
        assert!(
            reader.join().unwrap() == text,
            "not what was sent came back"
        );
    });
}

#[test]
fn nothing_inside_is_a_reset() {
    alone("forwards::nothing_inside_is_a_reset", || {
        let world = World::new();
        let space = Space::new();
        let door = door(&space);
        let forward = world.net.forward(ANY, door.clone()).unwrap();
        // A sandbox in which nobody listens, no sandbox, and a server again.
        assert_eq!(fate(forward.address()), ErrorKind::ConnectionReset);
        door.is_there.store(false, Ordering::Relaxed);
        assert_eq!(fate(forward.address()), ErrorKind::ConnectionReset);
        door.is_there.store(true, Ordering::Relaxed);
        serves(&space, echo);
        assert_eq!(ask(&forward, "again").unwrap(), "again");
    });
}

#[test]
fn dropping_it_closes_the_port_and_cuts_connections() {
    alone(
        "forwards::dropping_it_closes_the_port_and_cuts_connections",
        || {
            let world = World::new();
            let space = Space::new();
            serves(&space, echo);
            let forward = forward(&world, &space);
            let mut stream = TcpStream::connect(forward.address()).unwrap();
            stream.write_all(b"x").unwrap();
            stream.read_exact(&mut [0]).unwrap();
            let address = forward.address();
            drop(forward);
            let cut = stream.read(&mut [0]).unwrap_err().kind();
            assert_eq!(cut, ErrorKind::ConnectionReset);
            let closed = TcpStream::connect(address).unwrap_err().kind();
            assert_eq!(closed, ErrorKind::ConnectionRefused);
            // Somebody else may have it now.
            TcpListener::bind(address).unwrap();
        },
    );
}

#[test]
fn a_server_that_never_accepts_holds_nobody_else_up() {
    alone(
        "forwards::a_server_that_never_accepts_holds_nobody_else_up",
        || {
            let bounds = Bounds {
                dial_time: Duration::from_millis(300),
                ..Bounds::default()
            };
            let world = World::with(bounds, Upstream::default());
            let [deaf, good] = [Space::new(), Space::new()];
            let (said, heard) = mpsc::channel();
            deaf.run(move || {
                let flags = SocketFlags::CLOEXEC;
                let socket =
                    socket_with(AddressFamily::INET, SocketType::STREAM, flags, None).unwrap();
                let address = SocketAddr::from((Ipv4Addr::LOCALHOST, PORT));
                rustix::net::bind(&socket, &address).unwrap();
                rustix::net::listen(&socket, 0).unwrap();
                said.send(socket).unwrap();
            });
            let _listening = heard.recv().unwrap();
            serves(&good, echo);
            let to_deaf = forward(&world, &deaf);
            let to_good = forward(&world, &good);
            let waiting: Vec<TcpStream> = (0..100)
                .map(|_| TcpStream::connect(to_deaf.address()).unwrap())
                .collect();
            assert_eq!(ask(&to_good, "here").unwrap(), "here");
            let (tell, ended) = mpsc::channel();
            for mut stream in waiting {
                let tell = tell.clone();
                thread::spawn(move || tell.send(stream.read(&mut [0]).unwrap_err().kind()));
            }
            // All but one, whichever it is, that the kernel keeps for the server.
            for _ in 0..99 {
                let kind = ended.recv_timeout(Duration::from_secs(60)).unwrap();
                assert_eq!(kind, ErrorKind::ConnectionReset);
            }
        },
    );
}

#[test]
fn a_server_that_sends_without_end_is_held_by_its_client() {
    alone(
        "forwards::a_server_that_sends_without_end_is_held_by_its_client",
        || {
            let world = World::new();
            let space = Space::new();
            serves(
                &space,
                |mut stream| {
                    while stream.write_all(&[7; 65536]).is_ok() {}
                },
            );
            let forward = forward(&world, &space);
            let mut silent = TcpStream::connect(forward.address()).unwrap();
            let mut reading = TcpStream::connect(forward.address()).unwrap();
            let mut bytes = vec![0; 16 << 20];
            reading.read_exact(&mut bytes).unwrap();
            assert!(bytes.iter().all(|byte| *byte == 7));
            drop(reading);
            silent.read_exact(&mut bytes[..100]).unwrap();
        },
    );
}

#[test]
fn a_silent_connection_ends() {
    alone("forwards::a_silent_connection_ends", || {
        let bounds = Bounds {
            idle_time: Duration::from_millis(100),
            ..Bounds::default()
        };
        let world = World::with(bounds, Upstream::default());
        let space = Space::new();
        serves(&space, |stream| {
            std::mem::forget(stream);
        });
        let forward = forward(&world, &space);
        assert_eq!(fate(forward.address()), ErrorKind::ConnectionReset);
    });
}

#[test]
fn a_thousand_connections_and_no_more_than_allowed() {
    alone(
        "forwards::a_thousand_connections_and_no_more_than_allowed",
        || {
            crate::load::raise_descriptors();
            let bounds = Bounds {
                connections_per_forward: 1000,
                ..Bounds::default()
            };
            let world = World::with(bounds, Upstream::default());
            let [crowded, other] = [Space::new(), Space::new()];
            serves(&crowded, echo);
            serves(&other, echo);
            let to_crowded = forward(&world, &crowded);
            let to_other = forward(&world, &other);
            let mut streams: Vec<TcpStream> = (0..1000)
                .map(|_| TcpStream::connect(to_crowded.address()).unwrap())
                .collect();
            for stream in &mut streams {
                stream.write_all(b"x").unwrap();
            }
            for stream in &mut streams {
                stream.read_exact(&mut [0]).unwrap();
            }
            assert_eq!(to_crowded.connections(), 1000);
            assert_eq!(fate(to_crowded.address()), ErrorKind::ConnectionReset);
            assert_eq!(ask(&to_other, "other").unwrap(), "other");
        },
    );
}
