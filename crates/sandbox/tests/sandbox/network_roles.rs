//! A program inside that does what its standard input says, one line at a time, and answers each with one line.

use std::fs::File;
use std::io::{self, BufRead, BufReader, IoSlice, IoSliceMut, Write};
use std::mem::MaybeUninit;
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};

use avfs_sandbox::{Command, ExecKey, Sandbox};
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};

use crate::world::{Outcome, Started, command, start_with};

/// Plays the part that the arguments name; false when it is none of these.
pub fn play(arguments: &[String]) -> bool {
    match arguments.get(1).map(String::as_str) {
        Some("__obey") => obey(),
        _ => return false,
    }
    true
}

/// What it keeps open: its sockets, and descriptors that only count.
#[derive(Default)]
struct Held {
    sockets: Vec<OwnedFd>,
    /// A socket in whose queue the others are.
    queue: Option<(UnixStream, UnixStream)>,
    others: Vec<File>,
}

fn obey() {
    let mut held = Held::default();
    while let Some(line) = next_order() {
        if line == "leave-first-thread" {
            go_on_in_a_thread(held);
        }
        let answer = reply(&mut held, &line);
        writeln!(io::stdout(), "{answer}").expect("stdout is open");
    }
}

fn next_order() -> Option<String> {
    let mut line = String::new();
    let read = io::stdin().read_line(&mut line).expect("stdin is open");
    (read > 0).then(|| line.trim_end().to_owned())
}

fn reply(held: &mut Held, line: &str) -> String {
    let words: Vec<&str> = line.split(' ').collect();
    let answer = match words[..] {
        [verb, argument, ..] if ADDRESSES.contains(&verb) => {
            at_address(held, verb, argument).map(|address| address.to_string())
        }
        ["resolve", name] => resolve(name),
        _ => follow(held, &words).map(|()| "done".to_owned()),
    };
    match answer {
        Ok(answer) => answer,
        Err(error) => format!("errno {}", error.raw_os_error().unwrap_or(0)),
    }
}

/// Obeys further in a second thread, while the first ends.
fn go_on_in_a_thread(held: Held) -> ! {
    std::thread::spawn(move || {
        let first = std::process::id();
        // Its descriptors are not shown any more once it has ended.
        while std::fs::read_dir(format!("/proc/{first}/fd")).is_ok_and(|fds| fds.count() > 0) {}
        writeln!(io::stdout(), "done").expect("stdout is open");
        let mut held = held;
        while let Some(line) = next_order() {
            let answer = reply(&mut held, &line);
            writeln!(io::stdout(), "{answer}").expect("stdout is open");
        }
        std::process::exit(0);
    });
    // SAFETY: ends this thread; nothing of it is used by the other.
    unsafe { libc::syscall(libc::SYS_exit, 0) };
    unreachable!("the thread has ended")
}

/// Orders that are answered by an address.
const ADDRESSES: [&str; 4] = ["tcp", "listen", "echo", "udp"];

fn at_address(held: &mut Held, verb: &str, address: &str) -> io::Result<SocketAddr> {
    match verb {
        "tcp" => {
            let stream = TcpStream::connect(address)?;
            let local = stream.local_addr();
            held.sockets.push(stream.into());
            local
        }
        "udp" => {
            let remote: SocketAddr = address.parse().map_err(io::Error::other)?;
            let any = if remote.is_ipv4() {
                "0.0.0.0:0"
            } else {
                "[::]:0"
            };
            let socket = UdpSocket::bind(any)?;
            socket.connect(remote)?;
            socket.send(b"question")?;
            let local = socket.local_addr();
            held.sockets.push(socket.into());
            local
        }
        _ => {
            let listener = TcpListener::bind(address)?;
            let local = listener.local_addr();
            match verb {
                "echo" => echo(move || Ok(listener.accept()?.0), TcpStream::try_clone),
                _ => held.sockets.push(listener.into()),
            }
            local
        }
    }
}

/// Sends back what comes, in a thread.
fn echo<S: io::Read + io::Write + Send>(
    next: impl Fn() -> io::Result<S> + Send + 'static,
    copy: impl Fn(&S) -> io::Result<S> + Send + 'static,
) {
    std::thread::spawn(move || {
        loop {
            let mut stream = next().expect("a connection");
            let mut back = copy(&stream).expect("a descriptor");
            io::copy(&mut stream, &mut back).expect("an echo");
        }
    });
}

fn resolve(name: &str) -> io::Result<String> {
    use std::net::ToSocketAddrs;
    let mut found = (name, 80).to_socket_addrs()?;
    let first = found.next();
    Ok(first.map_or("none".into(), |address| address.to_string()))
}

fn follow(held: &mut Held, words: &[&str]) -> io::Result<()> {
    let number = |text: &str| text.parse::<usize>().map_err(io::Error::other);
    match words[..] {
        ["unix-listen", path] => held.sockets.push(UnixListener::bind(path)?.into()),
        ["unix-echo", path] => {
            let listener = UnixListener::bind(path)?;
            echo(move || Ok(listener.accept()?.0), UnixStream::try_clone);
        }
        ["listeners", count] => {
            for _ in 0..number(count)? {
                let listener = TcpListener::bind("127.0.0.1:0")?;
                held.sockets.push(listener.into());
            }
        }
        ["give", path] => give(&UnixStream::connect(path)?, &held.sockets)?,
        ["take", path] => {
            let (stream, _) = UnixListener::bind(path)?.accept()?;
            held.sockets.extend(take(&stream)?);
        }
        ["queue"] => {
            let pair = UnixStream::pair()?;
            give(&pair.0, &held.sockets)?;
            held.sockets.clear();
            held.queue = Some(pair);
        }
        ["close"] => held.sockets.clear(),
        ["abort"] => {
            for socket in held.sockets.drain(..) {
                let now = Some(std::time::Duration::ZERO);
                rustix::net::sockopt::set_socket_linger(&socket, now)?;
            }
        }
        ["undumpable"] => {
            let never = rustix::process::DumpableBehavior::NotDumpable;
            rustix::process::set_dumpable_behavior(never)?;
        }
        ["descriptors", count] => open_many(held, number(count)?)?,
        ["processes", count] => {
            for _ in 0..number(count)? {
                std::process::Command::new("sleep").arg("1000").spawn()?;
            }
        }
        ["forks"] => fork_madly()?,
        _ => return Err(io::Error::from_raw_os_error(libc::EINVAL)),
    }
    Ok(())
}

fn open_many(held: &mut Held, count: usize) -> io::Result<()> {
    let files = rustix::process::Resource::Nofile;
    let hard = rustix::process::getrlimit(files).maximum;
    let limit = rustix::process::Rlimit {
        current: hard,
        maximum: hard,
    };
    rustix::process::setrlimit(files, limit)?;
    for _ in 0..count {
        held.others.push(File::open("/dev/null")?);
    }
    Ok(())
}

/// Children that start and end all the time.
fn fork_madly() -> io::Result<()> {
    let script = "while :; do (:); done";
    for _ in 0..4 {
        std::process::Command::new("sh")
            .args(["-c", script])
            .spawn()?;
    }
    Ok(())
}

fn give(to: &UnixStream, sockets: &[OwnedFd]) -> io::Result<()> {
    let passed: Vec<_> = sockets.iter().map(AsFd::as_fd).collect();
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(8))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    assert!(control.push(SendAncillaryMessage::ScmRights(&passed)));
    let parts = [IoSlice::new(b"x")];
    sendmsg(to, &parts, &mut control, SendFlags::empty())?;
    Ok(())
}

fn take(from: &UnixStream) -> io::Result<Vec<OwnedFd>> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(8))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0];
    let mut parts = [IoSliceMut::new(&mut byte)];
    recvmsg(from, &mut parts, &mut control, RecvFlags::CMSG_CLOEXEC)?;
    let mut taken = Vec::new();
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(rights) = message {
            taken.extend(rights);
        }
    }
    Ok(taken)
}

/// One that runs in a sandbox in which this program is `/attack`.
pub struct Obedient {
    started: Started,
    orders: File,
    answers: BufReader<File>,
}

impl Obedient {
    pub fn start(sandbox: &Sandbox, key: u64) -> Obedient {
        let (stdin, orders) =
            rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC).expect("a pipe");
        let command = Command {
            key: ExecKey(key),
            ..command(&["/attack", "__obey"])
        };
        let started = start_with(sandbox, &command, stdin);
        let answers = started.stdout.try_clone().expect("a descriptor");
        Obedient {
            started,
            orders: orders.into(),
            answers: BufReader::new(answers),
        }
    }

    /// Gives an order without waiting for the answer.
    pub fn tell(&mut self, order: &str) {
        writeln!(self.orders, "{order}").expect("it reads its orders");
    }

    pub fn answer(&mut self) -> String {
        let mut line = String::new();
        self.answers.read_line(&mut line).expect("it answers");
        line.trim_end().to_owned()
    }

    pub fn ask(&mut self, order: &str) -> String {
        self.tell(order);
        self.answer()
    }

    /// Asks for something whose answer is an address.
    pub fn address(&mut self, order: &str) -> SocketAddr {
        let answer = self.ask(order);
        let address = answer.parse();
        address.unwrap_or_else(|_| panic!("{order}: {answer}"))
    }

    pub fn finish(self) -> Outcome {
        drop(self.orders);
        self.started.finish()
    }
}
