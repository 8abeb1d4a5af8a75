//! Ranges of addresses.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::error::{Error, Result};

/// Local in every sandbox with a network of its own, for addresses that stand for names. Reserved for benchmarks
/// (RFC 2544), so no host on the internet has one of them.
pub const FAKE_V4: AddressRange = AddressRange {
    address: IpAddr::V4(Ipv4Addr::new(198, 18, 0, 0)),
    prefix: 15,
};

/// Local in every sandbox with a network of its own and IPv6. A unique local prefix (RFC 4193), which is routed nowhere.
pub const FAKE_V6: AddressRange = AddressRange {
    address: IpAddr::V6(Ipv6Addr::new(0xfd61, 0x7666, 0x7300, 0, 0, 0, 0, 0)),
    prefix: 64,
};

/// All addresses that begin with the same bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct AddressRange {
    address: IpAddr,
    prefix: u8,
}

impl AddressRange {
    /// The addresses whose first `prefix` bits are those of `address`; the other bits of `address` must be zero.
    pub fn new(address: IpAddr, prefix: u8) -> Result<AddressRange> {
        let invalid = |reason: &str| Error::Invalid {
            what: "range of addresses",
            reason: format!("{address}/{prefix}: {reason}"),
        };
        if u32::from(prefix) > bits(address) {
            return Err(invalid("the prefix is longer than the address"));
        }
        let range = AddressRange { address, prefix };
        if range.network(address) != number(address) {
            return Err(invalid("bits after the prefix are set"));
        }
        Ok(range)
    }

    /// Its first address.
    pub fn address(self) -> IpAddr {
        self.address
    }

    /// How many bits all its addresses share.
    pub fn prefix(self) -> u8 {
        self.prefix
    }

    /// Whether it has `address`. An IPv4 address is never in a range of IPv6.
    pub fn contains(self, address: IpAddr) -> bool {
        address.is_ipv4() == self.address.is_ipv4() && self.network(address) == number(self.address)
    }

    /// `address` with all bits after the prefix cleared.
    fn network(self, address: IpAddr) -> u128 {
        let rest = bits(address) - u32::from(self.prefix);
        // A shift by all 128 bits is no shift.
        let mask = u128::MAX.checked_shl(rest).unwrap_or(0);
        number(address) & mask
    }
}

fn bits(address: IpAddr) -> u32 {
    match address {
        IpAddr::V4(_) => 32,
        IpAddr::V6(_) => 128,
    }
}

fn number(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => u128::from(address.to_bits()),
        IpAddr::V6(address) => address.to_bits(),
    }
}

impl std::fmt::Display for AddressRange {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.address, self.prefix)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(text: &str) -> Result<AddressRange> {
        let (address, prefix) = text.split_once('/').unwrap();
        AddressRange::new(address.parse().unwrap(), prefix.parse().unwrap())
    }

    #[test]
    fn ranges_have_no_stray_bits() {
        for good in ["0.0.0.0/0", "10.0.0.0/8", "10.1.2.3/32", "::/0", "::1/128"] {
            assert_eq!(range(good).unwrap().to_string(), good);
        }
        for bad in [
            "10.0.0.1/8",
            "0.0.0.0/33",
            "::/129",
            "fd00::1/64",
            "128.0.0.0/0",
        ] {
            assert!(range(bad).is_err(), "{bad}");
        }
        for ours in [FAKE_V4, FAKE_V6] {
            assert_eq!(AddressRange::new(ours.address, ours.prefix).unwrap(), ours);
        }
    }

    #[test]
    fn membership_goes_by_the_prefix() {
        let has = |range: AddressRange, address: &str| range.contains(address.parse().unwrap());
        assert!(has(FAKE_V4, "198.18.0.0") && has(FAKE_V4, "198.19.255.255"));
        assert!(!has(FAKE_V4, "198.20.0.0") && !has(FAKE_V4, "198.17.255.255"));
        assert!(has(FAKE_V6, "fd61:7666:7300::ffff"));
        assert!(!has(FAKE_V6, "fd61:7666:7300:1::"));
        assert!(!has(FAKE_V6, "198.18.0.1") && !has(FAKE_V4, "::ffff:198.18.0.1"));
        let all = range("0.0.0.0/0").unwrap();
        assert!(has(all, "255.255.255.255") && !has(all, "::"));
    }
}
