//! Connections to the address of a host: the address says which host is meant.

use std::sync::Arc;

use avfs_policy::HostPort;
use tokio::net::TcpStream;

use super::accept::reset;
use super::tunnel;
use crate::attempts::Door;
use crate::execs::{Connection, Speaks};
use crate::service::Service;

pub(super) async fn serve(service: &Arc<Service>, connection: &Arc<Connection>, stream: TcpStream) {
    let Ok(local) = stream.local_addr() else {
        return;
    };
    let at = HostPort::new(service.names.host_at(local.ip()), local.port());
    let door = match connection.speaks(&at) {
        Speaks::Http => Door::Http,
        Speaks::Tls => Door::Tls,
        Speaks::Anything => Door::Raw,
    };
    // Requests decide for themselves, so that a refusal can be answered.
    if door != Door::Http
        && let Err(refusal) = connection.open(door, &at)
    {
        connection.refused(door, &refusal);
        return reset(stream);
    }
    tunnel::run(service, connection, door, &at, stream, None).await;
}
