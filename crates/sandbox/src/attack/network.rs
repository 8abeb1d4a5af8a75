//! Attacks on the network: ways out, and ways to change what is local.
//!
//! Should one succeed, it sends nothing but to addresses that are reserved for documentation.

use std::fs;
use std::io;
use std::net::{Ipv6Addr, SocketAddr, SocketAddrV6, TcpListener, TcpStream, UdpSocket};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::Path;
use std::time::Duration;

use rustix::fs::{Mode, OFlags, open};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, recv, send, socket_with};

use super::{Outcome, Targets};
use crate::sys;

const PATIENCE: Duration = Duration::from_secs(2);
/// The loopback interface.
const LOOPBACK: u32 = 1;

/// Stopped if every attempt was stopped.
fn refused(attempts: impl Iterator<Item = (String, io::Result<()>)>) -> Outcome {
    let mut answer = "nothing to try".to_owned();
    for (what, done) in attempts {
        match done {
            Ok(()) => return Outcome::Succeeded(what),
            Err(error) => answer = error.to_string(),
        }
    }
    Outcome::Stopped(answer)
}

fn each<T: Copy + ToString>(
    targets: &[T],
    attempt: impl Fn(T) -> io::Result<()>,
) -> impl Iterator<Item = (String, io::Result<()>)> {
    targets
        .iter()
        .map(move |target| (target.to_string(), attempt(*target)))
}

pub(super) fn connections(_: &Targets) -> Outcome {
    let outside = ["192.0.2.1:443", "203.0.113.1:80", "[2001:db8::1]:443"];
    refused(each(&outside, |address| {
        let address = parse(address)?;
        TcpStream::connect_timeout(&address, PATIENCE).map(drop)
    }))
}

pub(super) fn datagrams(_: &Targets) -> Outcome {
    let outside = ["192.0.2.1:53", "192.0.2.1:443", "[2001:db8::1]:53"];
    refused(each(&outside, |address| {
        let address = parse(address)?;
        let socket = any_port(address)?;
        socket.send_to(b"x", address).map(drop)
    }))
}

/// Addresses of the metadata services of clouds, of private networks, and of neighbours. Connecting a UDP socket sends nothing.
pub(super) fn neighbours(_: &Targets) -> Outcome {
    let near = [
        "169.254.169.254:80",
        "10.0.0.1:80",
        "172.17.0.1:80",
        "192.168.1.1:80",
        "100.100.100.200:80",
        "224.0.0.251:5353",
        "255.255.255.255:67",
        "[fd00:ec2::254]:80",
    ];
    let plain = each(&near, |address| {
        let address = parse(address)?;
        any_port(address)?.connect(address)
    });
    let neighbour = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 1);
    let scopes = [LOOPBACK, 2, 3];
    let scoped = each(&scopes, move |scope| {
        let address = SocketAddr::from(SocketAddrV6::new(neighbour, 80, 0, scope));
        TcpStream::connect_timeout(&address, PATIENCE).map(drop)
    });
    refused(plain.chain(scoped))
}

fn parse(address: &str) -> io::Result<SocketAddr> {
    address.parse().map_err(io::Error::other)
}

fn any_port(like: SocketAddr) -> io::Result<UdpSocket> {
    match like {
        SocketAddr::V4(_) => UdpSocket::bind("0.0.0.0:0"),
        SocketAddr::V6(_) => UdpSocket::bind("[::]:0"),
    }
}

/// The ports at which the daemon serves names and connections.
pub(super) fn low_ports(_: &Targets) -> Outcome {
    let ports = [22, 53, 80, 443, 1023];
    let streams = each(&ports, |port| {
        TcpListener::bind(("127.0.0.1", port)).map(drop)
    });
    let datagrams = each(&ports, |port| {
        UdpSocket::bind(("127.0.0.1", port)).map(drop)
    });
    let six = each(&ports, |port| TcpListener::bind(("::", port)).map(drop));
    refused(streams.chain(datagrams).chain(six))
}

/// Requests of a routing socket: each has a kind and a body.
#[rustfmt::skip]
const CHANGES: [(&str, u16, &[u8]); 5] = [
    // local 192.0.2.0/24 dev lo
    ("a route", 24, &[2, 24, 0, 0, 255, 3, 254, 2, 0, 0, 0, 0, 8, 0, 1, 0, 192, 0, 2, 0, 8, 0, 4, 0, 1, 0, 0, 0]),
    // 192.0.2.1/32 dev lo
    ("an address", 20, &[2, 32, 0, 0, 1, 0, 0, 0, 8, 0, 2, 0, 192, 0, 2, 1]),
    // lo down
    ("an interface", 16, &[0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0]),
    // from all lookup main, which is looked into after the local table
    ("a rule", 32, &[2, 0, 0, 0, 254, 0, 0, 1, 0, 0, 0, 0]),
    // 192.0.2.2 dev lo
    ("a neighbour", 28, &[2, 0, 0, 0, 1, 0, 0, 0, 128, 0, 0, 0, 8, 0, 1, 0, 192, 0, 2, 2]),
];

pub(super) fn routing(_: &Targets) -> Outcome {
    let attempts = CHANGES
        .iter()
        .map(|(what, kind, body)| ((*what).to_owned(), change(*kind, body)));
    refused(attempts)
}

fn change(kind: u16, body: &[u8]) -> io::Result<()> {
    // A request that creates, and asks for an acknowledgement.
    const FLAGS: u16 = 0x1 | 0x4 | 0x400;
    let socket = socket_with(
        AddressFamily::NETLINK,
        SocketType::RAW,
        SocketFlags::CLOEXEC,
        None,
    )?;
    let mut message = (16 + body.len() as u32).to_ne_bytes().to_vec();
    message.extend(kind.to_ne_bytes());
    message.extend(FLAGS.to_ne_bytes());
    message.extend([0; 8]);
    message.extend(body);
    send(&socket, &message, rustix::net::SendFlags::empty())?;
    let mut reply = [0; 1024];
    recv(&socket, &mut reply[..], rustix::net::RecvFlags::DONTWAIT)?;
    // The errno of an acknowledgement follows its header.
    let code = i32::from_ne_bytes([reply[16], reply[17], reply[18], reply[19]]);
    match code {
        0 => Ok(()),
        code => Err(io::Error::from_raw_os_error(-code)),
    }
}

/// What would let a command take over addresses or hide its traffic.
pub(super) fn socket_options(_: &Targets) -> Outcome {
    const OPTIONS: [(&str, libc::c_int, libc::c_int); 4] = [
        ("a mark", libc::SOL_SOCKET, libc::SO_MARK),
        (
            "addresses that are not local",
            libc::SOL_IP,
            libc::IP_TRANSPARENT,
        ),
        ("a larger buffer", libc::SOL_SOCKET, libc::SO_RCVBUFFORCE),
        ("debugging", libc::SOL_SOCKET, libc::SO_DEBUG),
    ];
    let attempts = OPTIONS.iter().map(|(what, level, option)| {
        let set = || {
            let socket = TcpListener::bind("127.0.0.1:0")?;
            let on: libc::c_int = 1;
            // SAFETY: the kernel reads one number of the given size.
            let done = unsafe {
                libc::setsockopt(
                    socket.as_raw_fd(),
                    *level,
                    *option,
                    (&raw const on).cast(),
                    size_of_val(&on) as libc::socklen_t,
                )
            };
            match done {
                0 => Ok(()),
                _ => Err(io::Error::last_os_error()),
            }
        };
        ((*what).to_owned(), set())
    });
    refused(attempts)
}

/// Entering the network of any process that is seen.
pub(super) fn foreign_networks(_: &Targets) -> Outcome {
    let attempts = sys::process_ids().into_iter().map(|pid| {
        let path = format!("/proc/{pid}/ns/net");
        let entered = enter(Path::new(&path)).map_err(io::Error::from);
        (path, entered)
    });
    refused(attempts)
}

fn enter(namespace: &Path) -> Result<(), Errno> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    let namespace: OwnedFd = open(namespace, flags, Mode::empty())?;
    let kind = Some(rustix::thread::LinkNameSpaceType::Network);
    rustix::thread::move_into_link_name_space(namespace.as_fd(), kind)
}

/// The host's sockets in the tables of any process that is seen.
pub(super) fn tables(targets: &Targets) -> Outcome {
    let port = format!(":{:04X} ", targets.tcp);
    let marks = [
        ("tcp", port.as_str()),
        ("tcp6", port.as_str()),
        ("unix", targets.abstracted.as_str()),
        ("unix", targets.unix.as_str()),
    ];
    let mut read = 0;
    for pid in sys::process_ids() {
        for (table, mark) in marks {
            let path = format!("/proc/{pid}/net/{table}");
            let text = fs::read_to_string(&path).unwrap_or_default();
            read += usize::from(!text.is_empty());
            if !mark.is_empty() && text.contains(mark) {
                return Outcome::Succeeded(path);
            }
        }
    }
    Outcome::Stopped(format!("not in any of {read} tables"))
}

/// Interfaces other than the loopback.
pub(super) fn interfaces(_: &Targets) -> Outcome {
    let table = fs::read_to_string("/proc/net/dev").unwrap_or_default();
    let names = table.lines().filter_map(|line| line.split_once(':'));
    let mut names = names.map(|(name, _)| name.trim());
    match names.find(|name| *name != "lo") {
        Some(name) => Outcome::Succeeded(name.to_owned()),
        None => Outcome::Stopped("only lo is there".into()),
    }
}
