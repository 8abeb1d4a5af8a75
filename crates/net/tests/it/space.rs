//! Network namespaces: one per test, and one per sandbox.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, UdpSocket};
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::mpsc;

use avfs_net::Sockets;
use avfs_policy::AddressRange;

const INSIDE: &str = "AVFS_NET_TEST_INSIDE";

/// Runs a test in namespaces of its own: starts the test program again for this test alone, in them.
pub fn alone(name: &str, test: impl FnOnce()) {
    if std::env::var_os(INSIDE).is_some() {
        loopback_up();
        return test();
    }
    let (uid, gid) = (rustix::process::getuid(), rustix::process::getgid());
    let uids = format!("0 {} 1", uid.as_raw());
    let gids = format!("0 {} 1", gid.as_raw());
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(["--exact", name, "--nocapture"])
        .env(INSIDE, "1");
    // SAFETY: the closure only makes system calls; its texts were made before the fork.
    unsafe {
        command.pre_exec(move || {
            if libc::unshare(libc::CLONE_NEWUSER | libc::CLONE_NEWNET) != 0 {
                return Err(io::Error::last_os_error());
            }
            write_to(c"/proc/self/setgroups", b"deny")?;
            write_to(c"/proc/self/uid_map", uids.as_bytes())?;
            write_to(c"/proc/self/gid_map", gids.as_bytes())
        });
    }
    let output = command.output().unwrap();
    let shown = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (out, err) = (shown(&output.stdout), shown(&output.stderr));
    print!("{out}");
    assert!(
        output.status.success(),
        "{name} in its namespaces:\n{out}\n{err}"
    );
    assert!(out.contains("1 passed"), "{name} did not run:\n{out}");
}

fn write_to(path: &std::ffi::CStr, bytes: &[u8]) -> io::Result<()> {
    use rustix::fs::{Mode, OFlags};
    let file = rustix::fs::open(path, OFlags::WRONLY, Mode::empty())?;
    rustix::io::write(&file, bytes)?;
    Ok(())
}

/// A sandbox's network namespace: whatever is run in it makes its sockets there.
#[derive(Clone)]
pub struct Space {
    work: mpsc::Sender<Box<dyn FnOnce() + Send>>,
}

impl Space {
    pub fn new() -> Space {
        let (work, receiver) = mpsc::channel::<Box<dyn FnOnce() + Send>>();
        std::thread::spawn(move || {
            // SAFETY: changes the network namespace of this thread alone.
            let made = unsafe { libc::unshare(libc::CLONE_NEWNET) };
            assert_eq!(made, 0, "{}", io::Error::last_os_error());
            loopback_up();
            add_route(Ipv4Addr::new(198, 18, 0, 0).into(), 15).unwrap();
            let v6 = Ipv6Addr::new(0xfd61, 0x7666, 0x7300, 0, 0, 0, 0, 0);
            add_route(v6.into(), 64).unwrap();
            for task in receiver {
                task();
            }
        });
        Space { work }
    }

    pub fn run<T: Send + 'static>(&self, task: impl FnOnce() -> T + Send + 'static) -> T {
        let (send, receive) = mpsc::channel();
        let task = move || drop(send.send(task()));
        self.work.send(Box::new(task)).unwrap();
        receive
            .recv()
            .expect("what runs in the namespace does not panic")
    }
}

impl Sockets for Space {
    fn tcp_listener(&self, address: SocketAddr) -> io::Result<TcpListener> {
        self.run(move || listen_on(address))
    }

    fn has_ipv6(&self) -> bool {
        true
    }

    fn udp(&self, address: SocketAddr) -> io::Result<UdpSocket> {
        self.run(move || UdpSocket::bind(address))
    }

    fn route(&self, range: AddressRange) -> io::Result<()> {
        let (first, bits) = range.parts();
        self.run(move || add_route(first, bits))
    }
}

/// `ip link set lo up`.
fn loopback_up() {
    // SAFETY: an interface request for "lo" that lives as long as the calls.
    unsafe {
        let socket = libc::socket(libc::AF_INET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0);
        assert!(socket >= 0);
        let mut request: libc::ifreq = std::mem::zeroed();
        for (to, from) in request.ifr_name.iter_mut().zip(b"lo") {
            *to = *from as libc::c_char;
        }
        request.ifr_ifru.ifru_flags = libc::IFF_UP as libc::c_short;
        assert_eq!(libc::ioctl(socket, libc::SIOCSIFFLAGS as _, &request), 0);
        libc::close(socket);
    }
}

pub fn listen_on(address: SocketAddr) -> io::Result<TcpListener> {
    match address {
        SocketAddr::V4(_) => TcpListener::bind(address),
        SocketAddr::V6(_) => listen_v6(address),
    }
}

/// A socket for IPv6 alone: one for both would take the port of IPv4. An address that is the namespace's own only by a route needs
/// `IPV6_FREEBIND`.
fn listen_v6(address: SocketAddr) -> io::Result<TcpListener> {
    use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, listen, socket_with, sockopt};
    let socket = socket_with(
        AddressFamily::INET6,
        SocketType::STREAM,
        SocketFlags::CLOEXEC,
        None,
    )?;
    sockopt::set_ipv6_v6only(&socket, true)?;
    sockopt::set_ipv6_freebind(&socket, true)?;
    sockopt::set_socket_reuseaddr(&socket, true)?;
    bind(&socket, &address)?;
    listen(&socket, 1024)?;
    Ok(socket.into())
}

/// `ip route add local FIRST/BITS dev lo`.
pub fn add_route(first: IpAddr, bits: u8) -> io::Result<()> {
    let (family, octets) = match first {
        IpAddr::V4(first) => (libc::AF_INET, first.octets().to_vec()),
        IpAddr::V6(first) => (libc::AF_INET6, first.octets().to_vec()),
    };
    let destination = 4 + octets.len() as u16;
    let mut message = Vec::new();
    let flags = libc::NLM_F_REQUEST | libc::NLM_F_ACK | libc::NLM_F_CREATE | libc::NLM_F_REPLACE;
    message.extend((36 + u32::from(destination)).to_ne_bytes());
    message.extend(libc::RTM_NEWROUTE.to_ne_bytes());
    message.extend((flags as u16).to_ne_bytes());
    message.extend([0; 8]);
    let (family, local) = (family as u8, libc::RTN_LOCAL);
    message.extend([
        family,
        bits,
        0,
        0,
        libc::RT_TABLE_LOCAL,
        libc::RTPROT_BOOT,
        libc::RT_SCOPE_HOST,
        local,
    ]);
    message.extend([0; 4]);
    message.extend(destination.to_ne_bytes());
    message.extend(libc::RTA_DST.to_ne_bytes());
    message.extend(octets);
    message.extend(8u16.to_ne_bytes());
    message.extend(libc::RTA_OIF.to_ne_bytes());
    message.extend(1u32.to_ne_bytes());
    let mut answer = [0u8; 64];
    // SAFETY: the buffers are as long as is said.
    let length = unsafe {
        let socket = libc::socket(
            libc::AF_NETLINK,
            libc::SOCK_RAW | libc::SOCK_CLOEXEC,
            libc::NETLINK_ROUTE,
        );
        libc::send(socket, message.as_ptr().cast(), message.len(), 0);
        let length = libc::recv(socket, answer.as_mut_ptr().cast(), answer.len(), 0);
        libc::close(socket);
        length
    };
    assert!(length >= 20);
    let code = i32::from_ne_bytes(answer[16..20].try_into().unwrap());
    match code {
        0 => Ok(()),
        code => Err(io::Error::from_raw_os_error(-code)),
    }
}
