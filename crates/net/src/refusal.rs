//! Why a connection or a request is not let through, in the one shape that every door uses.

use std::fmt;

use avfs_policy::{Denial, HostPort};
use serde::Serialize;

use crate::attempts::Kind;

/// Why a connection or a request is not let through.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// The list does not allow it.
    Denied(HostPort, Denial),
    /// What names the host is no host, in the client's own words.
    NoHost(String, u16, String),
    /// TLS without a server name, to a host that has one.
    NoServerName(HostPort),
    /// The server name is encrypted.
    EncryptedHello(HostPort),
    /// Port 443, and not TLS.
    NotTls(HostPort),
    /// The server name or the Host header names another host than the one that was dialled.
    OtherHost {
        dialled: HostPort,
        named: String,
        port: u16,
    },
    /// A request that is not one of HTTP, or that two programs would read differently.
    Malformed(&'static str),
    /// The host could not be reached. This is no decision.
    Unreachable(HostPort, String),
    /// The host is allowed, and the request is not.
    Request {
        at: HostPort,
        request: String,
        /// The command that would allow it.
        allow: Option<String>,
    },
    /// The host has rules about requests, and on this port requests are not seen.
    Unseen(HostPort),
    /// A header that a secret is for, over plain HTTP.
    PlainSecret(HostPort, String),
    /// The sandbox has as many connections as it may, which is this number.
    TooMany(HostPort, u32),
    /// The command has moved as many bytes as it may, which is this number.
    TooMuch(HostPort, u64),
    /// The terms no longer allow the connection.
    Cut,
}

/// `application/problem+json`.
#[derive(Debug, Serialize)]
pub(crate) struct Problem {
    #[serde(rename = "type")]
    about: &'static str,
    title: &'static str,
    status: u16,
    detail: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    host: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    port: Option<u16>,
    rule: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    allow: Option<String>,
}

impl Refusal {
    pub(crate) fn status(&self) -> u16 {
        match self {
            Refusal::Malformed(_) => 400,
            Refusal::Unreachable(..) => 502,
            _ => 403,
        }
    }

    /// The rule that refuses.
    pub(crate) fn rule(&self) -> String {
        match self {
            Refusal::Denied(_, denial) => denial.rule(),
            Refusal::NoHost(..) => "default:no-host".to_owned(),
            Refusal::NoServerName(_) => "default:no-server-name".to_owned(),
            Refusal::EncryptedHello(_) => "default:encrypted-hello".to_owned(),
            Refusal::NotTls(_) => "default:not-tls".to_owned(),
            Refusal::OtherHost { .. } => "default:other-host".to_owned(),
            Refusal::Malformed(_) => "default:malformed".to_owned(),
            Refusal::Request { .. } => "default:request-not-allowed".to_owned(),
            Refusal::Unseen(_) => "default:requests-not-seen".to_owned(),
            Refusal::PlainSecret(..) => "default:secret-over-plain-http".to_owned(),
            Refusal::Unreachable(..) => "default:unreachable".to_owned(),
            Refusal::TooMany(..) => "limit:connections".to_owned(),
            Refusal::TooMuch(..) => "limit:traffic".to_owned(),
            Refusal::Cut => "default:cut".to_owned(),
        }
    }

    /// The host that was meant, as far as it is known.
    pub(crate) fn host(&self) -> Option<(String, u16)> {
        match self {
            Refusal::Denied(at, _)
            | Refusal::NoServerName(at)
            | Refusal::EncryptedHello(at)
            | Refusal::NotTls(at)
            | Refusal::Request { at, .. }
            | Refusal::Unseen(at)
            | Refusal::TooMany(at, _)
            | Refusal::TooMuch(at, _)
            | Refusal::PlainSecret(at, _)
            | Refusal::Unreachable(at, _) => Some((at.host.to_string(), at.port)),
            Refusal::OtherHost { named, port, .. } => Some((named.clone(), *port)),
            Refusal::NoHost(text, port, _) => Some((text.clone(), *port)),
            // Names no host that could be believed.
            Refusal::Malformed(_) => Some(("-".to_owned(), 0)),
            Refusal::Cut => None,
        }
    }

    /// The command that would allow it, where one would.
    pub(crate) fn allow(&self) -> Option<String> {
        match self {
            // A name that was only looked up has no port yet, and most are looked up for the web.
            Refusal::Denied(at, denial) => {
                let port = if at.port == 0 { 443 } else { at.port };
                denial.hint(&at.host, port).map(|hint| hint.to_string())
            }
            Refusal::Request { allow, .. } => allow.clone(),
            Refusal::TooMany(_, most) => Some(format!(
                "avfs vault set connections={}",
                most.saturating_mul(2)
            )),
            Refusal::TooMuch(_, most) => {
                Some(format!("avfs vault set traffic={}", most.saturating_mul(2)))
            }
            _ => None,
        }
    }

    pub(crate) fn no_host(text: &str, port: u16, why: impl fmt::Display) -> Refusal {
        Refusal::NoHost(Kind::printable(text), port, why.to_string())
    }

    /// `named` is in the client's own words.
    pub(crate) fn other_host(dialled: &HostPort, named: &str, port: u16) -> Refusal {
        Refusal::OtherHost {
            dialled: dialled.clone(),
            named: Kind::printable(named),
            port,
        }
    }

    pub(crate) fn problem(&self) -> Problem {
        let (host, port) = match self.host() {
            Some((host, port)) if host != "-" => (Some(host), Some(port)),
            _ => (None, None),
        };
        Problem {
            about: "about:blank",
            title: match self.status() {
                400 => "Bad request",
                502 => "Host not reached",
                _ => "Not allowed by the network list",
            },
            status: self.status(),
            detail: self.to_string(),
            host,
            port,
            rule: self.rule(),
            allow: self.allow(),
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::Denied(at, denial) if at.port == 0 => {
                write!(f, "{} is not allowed: {denial}", at.host)
            }
            Refusal::Denied(at, denial) => write!(f, "{at} is not allowed: {denial}"),
            Refusal::NoHost(text, _, why) => write!(f, "{text:?} is not allowed: {why}"),
            Refusal::NoServerName(at) => {
                write!(f, "{at} is not allowed without a TLS server name (SNI)")
            }
            Refusal::EncryptedHello(at) => {
                write!(f, "{at} is not allowed with an encrypted server name (ECH)")
            }
            Refusal::NotTls(at) => write!(f, "{at} is only allowed with TLS"),
            Refusal::OtherHost {
                dialled,
                named,
                port,
            } if *port == dialled.port => {
                write!(f, "the connection is for {dialled}, but names {named:?}")
            }
            Refusal::OtherHost {
                dialled,
                named,
                port,
            } => {
                write!(
                    f,
                    "the connection is for {dialled}, but names {named:?} on port {port}"
                )
            }
            Refusal::Request { at, request, .. } => {
                write!(f, "no rule allows this request to {at}: {request}")
            }
            Refusal::Unseen(at) => write!(
                f,
                "{} has rules about requests, so {at} is not allowed: requests are not seen on that port",
                at.host
            ),
            Refusal::PlainSecret(at, header) => write!(
                f,
                "the secret for the header {header} of {at} is not sent over plain HTTP; use https"
            ),
            Refusal::TooMany(at, most) => write!(
                f,
                "{at} is not reached: the vault's commands may have {most} connections at once"
            ),
            Refusal::TooMuch(at, most) => write!(
                f,
                "{at} is not reached any more: the command may move {most} bytes"
            ),
            Refusal::Malformed(what) => write!(f, "the request is refused: {what}"),
            Refusal::Unreachable(at, why) => write!(f, "{at} could not be reached: {why}"),
            Refusal::Cut => f.write_str("the network list no longer allows the connection"),
        }
    }
}
