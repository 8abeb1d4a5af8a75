//! Routes that make a range of addresses local, so that a listener gets connections to all of them (AnyIP).

use std::net::IpAddr;

use rustix::io::Errno;

use super::netlink::{Netlink, Want, push_attribute};
use super::range::AddressRange;

const NEW_ROUTE: u16 = 24;
/// The table that the kernel looks into first, and keeps its own local addresses in.
const TABLE_LOCAL: u8 = 255;
const PROTOCOL_BOOT: u8 = 3;
const SCOPE_HOST: u8 = 254;
const KIND_LOCAL: u8 = 2;
const DESTINATION: u16 = 1;
const INTERFACE: u16 = 4;
/// The loopback interface is the first of every network namespace.
const LOOPBACK: u32 = 1;

/// `ip route add local RANGE dev lo`. One that exists already is no error.
pub(super) fn add_local(netlink: &mut Netlink, range: AddressRange) -> Result<(), Errno> {
    let (family, octets) = match range.address() {
        IpAddr::V4(address) => (libc::AF_INET, address.octets().to_vec()),
        IpAddr::V6(address) => (libc::AF_INET6, address.octets().to_vec()),
    };
    // family, length of destination and of source, type of service, table, protocol, scope, kind, flags
    let mut body = vec![
        family as u8,
        range.prefix(),
        0,
        0,
        TABLE_LOCAL,
        PROTOCOL_BOOT,
        SCOPE_HOST,
        KIND_LOCAL,
        0,
        0,
        0,
        0,
    ];
    push_attribute(&mut body, DESTINATION, &octets);
    push_attribute(&mut body, INTERFACE, &LOOPBACK.to_ne_bytes());
    match netlink.ask(NEW_ROUTE, Want::Create, &body, |_| true) {
        Err(Errno::EXIST) => Ok(()),
        done => done,
    }
}
