//! SOCKS 5 (RFC 1928), 4 and 4a: CONNECT alone, without authentication.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use avfs_policy::{Host, HostPort};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::tunnel;
use crate::attempts::Door;
use crate::dial;
use crate::execs::Connection;
use crate::refusal::Refusal;
use crate::service::Service;

const CONNECT: u8 = 1;
/// The longest user id or name that SOCKS 4 is read with.
const MAX_TEXT: usize = 255;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Version {
    Four,
    Five,
}

/// What is answered. Both versions have fewer words than we have reasons.
#[derive(Debug, Clone, Copy)]
enum Reply {
    Granted,
    NotAllowed,
    Unreachable,
    UnknownCommand,
    UnknownAddress,
}

/// What a client asked for, or what to answer at once.
enum Asked {
    For(Version, HostPort),
    Refused(Version, Reply, Option<Refusal>),
}

pub(super) async fn serve(
    service: &Arc<Service>,
    connection: &Arc<Connection>,
    mut stream: TcpStream,
) {
    let time = service.bounds().greeting_time;
    let read = async {
        tokio::select! {
            asked = timeout(time, read_request(&mut stream)) => asked.ok().and_then(Result::ok),
            () = connection.cut.cancelled() => None,
        }
    };
    let Some(asked) = read.await else {
        return;
    };
    let (version, at) = match asked {
        Asked::For(version, at) => (version, at),
        Asked::Refused(version, reply, refusal) => {
            if let Some(refusal) = refusal {
                connection.refused(Door::Socks, &refusal);
            }
            let _ = answer(&mut stream, version, reply).await;
            return;
        }
    };
    let at = HostPort::new(service.names.meant(at.host), at.port);
    let dialled = async {
        connection.open(Door::Socks, &at)?;
        // Requests dial for themselves.
        match tunnel::has_requests(connection, &at) {
            true => Ok(None),
            false => dial::tunnel(&service.common, connection, &at)
                .await
                .map(Some),
        }
    };
    match dialled.await {
        Ok(dialled) => {
            if answer(&mut stream, version, Reply::Granted).await.is_ok() {
                tunnel::run(service, connection, Door::Socks, &at, stream, dialled).await;
            }
        }
        Err(refusal) => {
            connection.refused(Door::Socks, &refusal);
            let reply = match refusal {
                Refusal::Unreachable(..) => Reply::Unreachable,
                _ => Reply::NotAllowed,
            };
            let _ = answer(&mut stream, version, reply).await;
        }
    }
}

async fn read_request(stream: &mut TcpStream) -> io::Result<Asked> {
    match stream.read_u8().await? {
        5 => read_five(stream).await,
        4 => read_four(stream).await,
        _ => Err(io::ErrorKind::InvalidData.into()),
    }
}

async fn read_five(stream: &mut TcpStream) -> io::Result<Asked> {
    let methods = stream.read_u8().await?;
    let mut offered = vec![0; methods.into()];
    stream.read_exact(&mut offered).await?;
    if !offered.contains(&0) {
        stream.write_all(&[5, 0xff]).await?;
        return Err(io::ErrorKind::InvalidData.into());
    }
    stream.write_all(&[5, 0]).await?;
    let mut head = [0; 4];
    stream.read_exact(&mut head).await?;
    let [version, command, _, kind] = head;
    if version != 5 {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let refused = |reply| Ok(Asked::Refused(Version::Five, reply, None));
    let host = match kind {
        1 => Ok(Host::from_address(
            Ipv4Addr::from(stream.read_u32().await?).into(),
        )),
        4 => Ok(Host::from_address(
            Ipv6Addr::from(stream.read_u128().await?).into(),
        )),
        3 => {
            let length = stream.read_u8().await?;
            let mut name = vec![0; length.into()];
            stream.read_exact(&mut name).await?;
            host_of(&name)
        }
        _ => return refused(Reply::UnknownAddress),
    };
    let port = stream.read_u16().await?;
    if command != CONNECT {
        return refused(Reply::UnknownCommand);
    }
    Ok(asked(Version::Five, host, port))
}

async fn read_four(stream: &mut TcpStream) -> io::Result<Asked> {
    let command = stream.read_u8().await?;
    let port = stream.read_u16().await?;
    let address = Ipv4Addr::from(stream.read_u32().await?);
    read_text(stream).await?;
    // 0.0.0.x says that a name follows (4a).
    let host = match address.octets() {
        [0, 0, 0, last] if last != 0 => host_of(&read_text(stream).await?),
        _ => Ok(Host::from_address(IpAddr::V4(address))),
    };
    match command {
        CONNECT => Ok(asked(Version::Four, host, port)),
        _ => Ok(Asked::Refused(Version::Four, Reply::UnknownCommand, None)),
    }
}

/// A text that ends with NUL.
async fn read_text(stream: &mut TcpStream) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    loop {
        match stream.read_u8().await? {
            0 => return Ok(text),
            _ if text.len() >= MAX_TEXT => return Err(io::ErrorKind::InvalidData.into()),
            byte => text.push(byte),
        }
    }
}

/// The host, or what was written and why it is none.
fn host_of(text: &[u8]) -> Result<Host, (String, String)> {
    let shown = || String::from_utf8_lossy(text).into_owned();
    let read = std::str::from_utf8(text).map_err(|_| (shown(), "it is not UTF-8".to_owned()))?;
    Host::parse(read).map_err(|error| (shown(), error.to_string()))
}

fn asked(version: Version, host: Result<Host, (String, String)>, port: u16) -> Asked {
    match host {
        Ok(host) if port != 0 => Asked::For(version, HostPort::new(host, port)),
        Ok(_) => Asked::Refused(version, Reply::NotAllowed, None),
        Err((text, why)) => {
            let refusal = Refusal::no_host(&text, port, why);
            Asked::Refused(version, Reply::NotAllowed, Some(refusal))
        }
    }
}

async fn answer(stream: &mut TcpStream, version: Version, reply: Reply) -> io::Result<()> {
    match version {
        Version::Five => {
            let code = match reply {
                Reply::Granted => 0,
                Reply::NotAllowed => 2,
                Reply::Unreachable => 4,
                Reply::UnknownCommand => 7,
                Reply::UnknownAddress => 8,
            };
            stream.write_all(&[5, code, 0, 1, 0, 0, 0, 0, 0, 0]).await
        }
        Version::Four => {
            let code = match reply {
                Reply::Granted => 90,
                _ => 91,
            };
            stream.write_all(&[0, code, 0, 0, 0, 0, 0, 0]).await
        }
    }
}
