//! The addresses that names have inside a sandbox.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::{Mutex, PoisonError};

use avfs_policy::{Host, HostName};

/// 198.18.0.0/15, which is for measuring networks and so is nobody's address.
const FIRST: u32 = Ipv4Addr::new(198, 18, 0, 0).to_bits();
const SIZE: u32 = 1 << 17;
/// fd61:7666:7300::/64, a unique local range, which is routed nowhere.
const FIRST_V6: u128 = Ipv6Addr::new(0xfd61, 0x7666, 0x7300, 0, 0, 0, 0, 0).to_bits();

/// The two addresses of a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Addresses {
    pub(crate) v4: Ipv4Addr,
    pub(crate) v6: Ipv6Addr,
}

impl Addresses {
    fn of(number: u32) -> Addresses {
        Addresses {
            v4: Ipv4Addr::from_bits(FIRST + number),
            v6: Ipv6Addr::from_bits(FIRST_V6 + u128::from(number)),
        }
    }
}

/// Each name has one address of each kind for as long as the sandbox lives, and each address one name. The address says which
/// name was meant when a connection to it arrives.
pub(crate) struct Names {
    max: usize,
    given: Mutex<Given>,
}

#[derive(Default)]
struct Given {
    by_name: HashMap<HostName, u32>,
    /// The name with number `n` is at `n - 1`; the address with number 0 is nobody's.
    in_order: Vec<HostName>,
}

impl Names {
    pub(crate) fn new(max: usize) -> Names {
        Names {
            max: max.min(SIZE as usize - 2),
            given: Mutex::default(),
        }
    }

    /// The addresses of a name, which it gets if it has none. `None` when there are too many names.
    pub(crate) fn addresses_of(&self, name: &HostName) -> Option<Addresses> {
        let mut given = self.given.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(number) = given.by_name.get(name) {
            return Some(Addresses::of(*number));
        }
        if given.in_order.len() >= self.max {
            return None;
        }
        given.in_order.push(name.clone());
        let number = u32::try_from(given.in_order.len()).ok()?;
        given.by_name.insert(name.clone(), number);
        Some(Addresses::of(number))
    }

    /// The host that a client means by an address: the name that has it, or else the address itself.
    pub(crate) fn host_at(&self, address: IpAddr) -> Host {
        let host = Host::from_address(address);
        let number = match host {
            Host::Address(IpAddr::V4(v4)) => u128::from(v4.to_bits().wrapping_sub(FIRST)),
            Host::Address(IpAddr::V6(v6)) => v6.to_bits().wrapping_sub(FIRST_V6),
            Host::Name(_) => return host,
        };
        let number = u32::try_from(number).ok();
        let Some(number) = number.filter(|number| (1..SIZE).contains(number)) else {
            return host;
        };
        let given = self.given.lock().unwrap_or_else(PoisonError::into_inner);
        let name = given.in_order.get(number as usize - 1);
        name.map_or(host, |name| Host::Name(name.clone()))
    }

    /// The name itself, or the name whose address a client wrote.
    pub(crate) fn meant(&self, host: Host) -> Host {
        match host {
            Host::Name(_) => host,
            Host::Address(address) => self.host_at(address),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_name_keeps_its_own_address_and_there_is_a_bound() {
        let names = Names::new(3);
        let name = |text: &str| HostName::parse(text).unwrap();
        let a = names.addresses_of(&name("a.test")).unwrap();
        let b = names.addresses_of(&name("b.test")).unwrap();
        assert!(a.v4 != b.v4 && a.v6 != b.v6);
        assert_eq!(names.addresses_of(&name("A.test.")), Some(a));
        assert_eq!(names.host_at(a.v4.into()), Host::Name(name("a.test")));
        assert_eq!(names.host_at(a.v6.into()), Host::Name(name("a.test")));
        let mapped = IpAddr::V6(b.v4.to_ipv6_mapped());
        assert_eq!(names.host_at(mapped), Host::Name(name("b.test")));
        assert!(names.addresses_of(&name("c.test")).is_some());
        assert_eq!(names.addresses_of(&name("d.test")), None);
        for text in [
            "198.18.0.0",
            "198.18.0.9",
            "198.20.0.1",
            "8.8.8.8",
            "::1",
            "fd61:7666:7300::",
            "fd61:7666:7300::9",
            "fd61:7666:7300::1:0:1",
            "fd61:7666:7300:1::1",
        ] {
            let address: IpAddr = text.parse().unwrap();
            assert_eq!(names.host_at(address), Host::Address(address));
        }
    }
}
