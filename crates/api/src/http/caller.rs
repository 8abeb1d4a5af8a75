//! Who asks: the process at the other end of the socket, and the class it asks in. The one place where classes are
//! enforced.

use super::App;
use super::errors::Failure;
use super::routes::parse;
use crate::wire::{CLASS_HEADER, Class, NAME_HEADER, Operation, VERSION, VERSION_HEADER};
use avfs_runtime::{ErrorKind, Principal, PrincipalName, Session};
use axum::extract::ConnectInfo;
use axum::http::HeaderMap;
use axum::http::request::Parts;
use std::sync::Arc;
use tokio::net::UnixStream;

/// The process that opened a connection, as the kernel knew it then; nothing where it would not say.
#[derive(Copy, Clone, Debug, Default)]
pub(crate) struct Peer {
    pub uid: Option<u32>,
    pub pid: Option<i32>,
}

impl Peer {
    pub fn of(stream: &UnixStream) -> Peer {
        match stream.peer_cred() {
            Ok(credentials) => Peer {
                uid: Some(credentials.uid()),
                pid: credentials.pid(),
            },
            Err(_) => Peer::default(),
        }
    }
}

/// Whoever sent a request.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Caller {
    pub principal: Principal,
    pub peer: Peer,
}

/// A request that was let in: the daemon, and the runtime in the caller's name.
pub(crate) struct Ask {
    pub app: Arc<App>,
    pub session: Session,
    pub caller: Caller,
}

impl Ask {
    pub fn new(app: Arc<App>, caller: Caller) -> Ask {
        let session = app.runtime.by(caller.principal);
        Ask {
            app,
            session,
            caller,
        }
    }
}

/// Lets a request in: from a client of this version, in a class that may ask for this.
pub(crate) fn admit<O: Operation>(parts: &Parts) -> Result<Caller, Failure> {
    if O::ROUTE != "/v1/daemon" && O::ROUTE != "/v1/daemon/stop" {
        // Those two keep their shape for ever, so that any client can replace any daemon.
        same_version(&parts.headers)?;
    }
    let class = class(&parts.headers)?;
    if class == Class::Agent && Class::needed(O::NAME) == Class::Owner {
        return Err(Failure::new(
            ErrorKind::Denied,
            format!("{} is for the owner alone", O::NAME.replace('_', " ")),
        )
        .hint("ask the owner to do it"));
    }
    let peer = parts.extensions.get::<ConnectInfo<Peer>>();
    Ok(Caller {
        principal: principal(class, &parts.headers)?,
        peer: peer.map_or_else(Peer::default, |info| info.0),
    })
}

fn same_version(headers: &HeaderMap) -> Result<(), Failure> {
    match headers.get(VERSION_HEADER) {
        Some(version) if version.as_bytes() != VERSION.as_bytes() => Err(Failure::other_version(
            &String::from_utf8_lossy(version.as_bytes()),
        )),
        _ => Ok(()),
    }
}

/// Who asks, whatever is asked for.
pub(crate) fn asking(headers: &HeaderMap) -> Result<Principal, Failure> {
    principal(class(headers)?, headers)
}

/// The class a caller asks in: the owner's, unless it was given up.
fn class(headers: &HeaderMap) -> Result<Class, Failure> {
    let Some(given) = headers.get(CLASS_HEADER) else {
        return Ok(Class::Owner);
    };
    let word = String::from_utf8_lossy(given.as_bytes());
    Class::parse(&word).ok_or_else(|| Failure::invalid(format!("{word:?} is no class")))
}

/// Who a caller of that class says it is.
fn principal(class: Class, headers: &HeaderMap) -> Result<Principal, Failure> {
    let name = headers
        .get(NAME_HEADER)
        .map(|name| String::from_utf8_lossy(name.as_bytes()));
    let name: Option<PrincipalName> = name.map(|name| parse(&name)).transpose()?;
    Ok(match class {
        Class::Agent => Principal::agent(name),
        Class::Owner => Principal::owner(name),
    })
}
