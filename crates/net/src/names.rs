//! The addresses that names have inside a sandbox.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::{Mutex, PoisonError};

use avfs_policy::{Host, HostName};

/// 198.18.0.0/15, which is for measuring networks and so is nobody's address.
const FIRST: u32 = Ipv4Addr::new(198, 18, 0, 0).to_bits();
const SIZE: u32 = 1 << 17;

/// Each name has one address for as long as the sandbox lives, and each address one name. The address says which name was
/// meant when a connection to it arrives.
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

    /// The address of a name, which it gets if it has none. `None` when there are too many names.
    pub(crate) fn address_of(&self, name: &HostName) -> Option<Ipv4Addr> {
        let mut given = self.given.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(number) = given.by_name.get(name) {
            return Some(Ipv4Addr::from_bits(FIRST + number));
        }
        if given.in_order.len() >= self.max {
            return None;
        }
        given.in_order.push(name.clone());
        let number = u32::try_from(given.in_order.len()).ok()?;
        given.by_name.insert(name.clone(), number);
        Some(Ipv4Addr::from_bits(FIRST + number))
    }

    /// The host that a client means by an address: the name that has it, or else the address itself.
    pub(crate) fn host_at(&self, address: IpAddr) -> Host {
        let host = Host::from_address(address);
        let Host::Address(IpAddr::V4(v4)) = host else {
            return host;
        };
        let number = v4.to_bits().wrapping_sub(FIRST);
        if number == 0 || number >= SIZE {
            return host;
        }
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
        let a = names.address_of(&name("a.test")).unwrap();
        let b = names.address_of(&name("b.test")).unwrap();
        assert_ne!(a, b);
        assert_eq!(names.address_of(&name("A.test.")), Some(a));
        assert_eq!(names.host_at(a.into()), Host::Name(name("a.test")));
        let mapped = IpAddr::V6(b.to_ipv6_mapped());
        assert_eq!(names.host_at(mapped), Host::Name(name("b.test")));
        assert!(names.address_of(&name("c.test")).is_some());
        assert_eq!(names.address_of(&name("d.test")), None);
        for text in ["198.18.0.0", "198.18.0.9", "198.20.0.1", "8.8.8.8", "::1"] {
            let address: IpAddr = text.parse().unwrap();
            assert_eq!(names.host_at(address), Host::Address(address));
        }
    }
}
