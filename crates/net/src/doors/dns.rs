//! Names inside a sandbox: a listed name has an address of its own, every other name does not exist. No question leaves.

use std::net::SocketAddr;
use std::sync::Arc;

use avfs_policy::{Denial, Host, HostName, HostPort};
use hickory_proto::op::{Edns, Message, MessageType, OpCode, Query, ResponseCode};
use hickory_proto::rr::rdata::{A, AAAA};
use hickory_proto::rr::{DNSClass, Name, RData, Record, RecordType};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpStream, UdpSocket};
use tokio::time::timeout;

use super::accept::{open_name, reset};
use crate::attempts::Door;
use crate::execs::Who;
use crate::names::Addresses;
use crate::refusal::Refusal;
use crate::sandbox::{DNS, Ends, Transport};
use crate::service::Service;

/// Names keep their address, so the time matters only where a list is changed.
const SECONDS: u32 = 30;
/// A question is small. Longer ones are not read whole, and so not answered.
const MAX_QUESTION: usize = 1232;
/// How many questions one TCP connection may ask.
const MAX_PER_CONNECTION: usize = 1000;
/// What attempts say about a name that was only looked up.
const NO_PORT: u16 = 0;

pub(super) async fn serve_udp(service: &Arc<Service>, socket: UdpSocket) {
    let socket = Arc::new(socket);
    let mut bytes = [0; MAX_QUESTION];
    loop {
        // Fails when an earlier answer found its port closed. The next question is read all the same.
        let Ok((length, peer)) = socket.recv_from(&mut bytes).await else {
            tokio::task::yield_now().await;
            continue;
        };
        let Ok(permit) = Arc::clone(&service.questions).acquire_owned().await else {
            return;
        };
        let (service, socket) = (Arc::clone(service), Arc::clone(&socket));
        let question = bytes[..length].to_vec();
        tokio::spawn(async move {
            let _permit = permit;
            if let Some(answer) = answer(&service, &question, Transport::Udp, peer).await {
                let _ = socket.send_to(&answer, peer).await;
            }
        });
    }
}

pub(super) async fn serve_tcp(service: &Arc<Service>, mut stream: TcpStream, peer: SocketAddr) {
    let time = service.bounds().greeting_time;
    for _ in 0..MAX_PER_CONNECTION {
        let exchange = async {
            let length = stream.read_u16().await.ok()?;
            let mut question = vec![0; length.into()];
            stream.read_exact(&mut question).await.ok()?;
            let answer = answer(service, &question, Transport::Tcp, peer).await?;
            let length = u16::try_from(answer.len()).ok()?;
            stream.write_u16(length).await.ok()?;
            stream.write_all(&answer).await.ok()
        };
        match timeout(time, exchange).await {
            Ok(Some(())) => {}
            Ok(None) => return,
            Err(_) => return reset(stream),
        }
    }
}

/// The answer to a message, if it is a question at all.
async fn answer(
    service: &Arc<Service>,
    message: &[u8],
    transport: Transport,
    peer: SocketAddr,
) -> Option<Vec<u8>> {
    let asked = Message::from_vec(message).ok()?;
    if asked.metadata.message_type != MessageType::Query {
        return None;
    }
    let mut reply = Message::response(asked.metadata.id, asked.metadata.op_code);
    reply.metadata.recursion_desired = asked.metadata.recursion_desired;
    reply.metadata.recursion_available = true;
    reply.queries = asked.queries.clone();
    if asked.edns.is_some() {
        let mut edns = Edns::new();
        edns.set_max_payload(MAX_QUESTION as u16);
        reply.edns = Some(edns);
    }
    let question = match asked.queries.as_slice() {
        [one] if asked.metadata.op_code == OpCode::Query => Some(one),
        _ => None,
    };
    reply.metadata.response_code = match question {
        None => ResponseCode::NotImp,
        Some(question) => match look_up(service, question, transport, peer).await {
            Ok(addresses) => {
                reply.answers.extend(record(service, question, addresses));
                ResponseCode::NoError
            }
            Err(code) => code,
        },
    };
    reply.to_vec().ok()
}

/// Only questions for addresses get a record. For HTTPS and SVCB records, which could hold keys to encrypt the server name with, and
/// for all others, the name exists and has none.
fn record(service: &Service, question: &Query, addresses: Addresses) -> Option<Record> {
    let data = match question.query_type {
        RecordType::A => RData::A(A(addresses.v4)),
        RecordType::AAAA if service.sockets.has_ipv6() => RData::AAAA(AAAA(addresses.v6)),
        _ => return None,
    };
    let name = question.name.clone();
    (question.query_class == DNSClass::IN).then(|| Record::from_rdata(name, SECONDS, data))
}

async fn look_up(
    service: &Arc<Service>,
    question: &Query,
    transport: Transport,
    peer: SocketAddr,
) -> Result<Addresses, ResponseCode> {
    let name = match host_name(&question.name) {
        Ok(name) => name,
        Err(refusal) => {
            let who = service.execs.who(ends(transport, peer)).await;
            service.execs.refused(&who, Door::Dns, &refusal);
            return Err(ResponseCode::NXDomain);
        }
    };
    let host = Host::Name(name.clone());
    let who = who(service, &host, transport, peer).await;
    if !service.execs.knows(&who, &host) {
        let at = HostPort::new(host, NO_PORT);
        let refusal = Refusal::Denied(at, Denial::NotListed);
        service.execs.refused(&who, Door::Dns, &refusal);
        return Err(ResponseCode::NXDomain);
    }
    let v6 = question.query_type == RecordType::AAAA && service.sockets.has_ipv6();
    // Most names are known and their ports open, which costs no thread.
    if let Some(addresses) = service.names.addresses_of(&name)
        && (!v6 || service.is_open_v6())
        && service
            .addresses_of_name(&name)
            .iter()
            .all(|own| service.is_claimed(*own))
    {
        return Ok(addresses);
    }
    let opener = Arc::clone(service);
    let opened = tokio::task::spawn_blocking(move || {
        let addresses = opener.names.addresses_of(&name);
        open_name(&opener, &name, v6);
        addresses
    });
    // Too many names: the client may try again, and the name is not said to be missing.
    opened.await.ok().flatten().ok_or(ResponseCode::ServFail)
}

fn ends(transport: Transport, client: SocketAddr) -> Ends {
    Ends {
        transport,
        client,
        server: DNS,
    }
}

/// Asks which command it is only if their lists differ about the name.
async fn who(service: &Arc<Service>, host: &Host, transport: Transport, peer: SocketAddr) -> Who {
    let all = service.execs.all_terms();
    let knowing = all
        .iter()
        .filter(|terms| terms.observe || terms.list.knows(host));
    match knowing.count() {
        0 => Who::Unknown,
        some if some == all.len() => Who::Unknown,
        _ => service.execs.who(ends(transport, peer)).await,
    }
}

/// The name of a question. Labels of other bytes than those of host names are refused before they are joined, since a label may
/// contain a dot.
fn host_name(name: &Name) -> Result<HostName, Refusal> {
    let mut text = String::new();
    for label in name.iter() {
        let fits = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        if !label.iter().all(fits) {
            let shown = String::from_utf8_lossy(label);
            return Err(Refusal::no_host(&shown, NO_PORT, "it is no host name"));
        }
        if !text.is_empty() {
            text.push('.');
        }
        text.extend(label.iter().copied().map(char::from));
    }
    HostName::parse(&text).map_err(|error| Refusal::no_host(&text, NO_PORT, error))
}
