//! A range of addresses: an address and how many of its leading bits count.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::{Host, HostError};

/// `10.0.0.0/8`. A single address is the range of all its bits, and is written without them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AddressRange {
    address: IpAddr,
    bits: u8,
}

impl AddressRange {
    pub fn single(address: IpAddr) -> AddressRange {
        let address = address.to_canonical();
        AddressRange {
            address,
            bits: width(address),
        }
    }

    pub(super) const fn v4(octets: [u8; 4], bits: u8) -> AddressRange {
        let [a, b, c, d] = octets;
        AddressRange {
            address: IpAddr::V4(Ipv4Addr::new(a, b, c, d)),
            bits,
        }
    }

    pub(super) const fn v6(parts: [u16; 8], bits: u8) -> AddressRange {
        let [a, b, c, d, e, f, g, h] = parts;
        AddressRange {
            address: IpAddr::V6(Ipv6Addr::new(a, b, c, d, e, f, g, h)),
            bits,
        }
    }

    /// Parses `ADDRESS` or `ADDRESS/BITS`. Bits after the prefix must be zero. A range of IPv4-mapped IPv6 addresses
    /// is written as IPv4.
    pub fn parse(text: &str) -> Result<AddressRange, HostError> {
        let wrong = || HostError::Range(text.to_owned());
        let (address, bits) = match text.split_once('/') {
            Some((address, bits)) => (address, Some(bits)),
            None => (text, None),
        };
        let Host::Address(parsed) = Host::parse(address)? else {
            return Err(wrong());
        };
        let Some(bits) = bits else {
            return Ok(AddressRange::single(parsed));
        };
        // The bits of a mapped address would count from another place.
        if parsed.is_ipv4() && address.contains(':') {
            return Err(wrong());
        }
        let digits = bits.bytes().all(|byte| byte.is_ascii_digit());
        let leading_zero = bits.len() > 1 && bits.starts_with('0');
        let bits: u8 = bits.parse().map_err(|_| wrong())?;
        if !digits || leading_zero || bits > width(parsed) {
            return Err(wrong());
        }
        let range = AddressRange {
            address: masked(parsed, bits),
            bits,
        };
        match range.address == parsed {
            true => Ok(range),
            false => Err(HostError::HostBits {
                given: text.to_owned(),
                meant: range.to_string(),
            }),
        }
    }

    pub fn contains(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        address.is_ipv4() == self.address.is_ipv4() && masked(address, self.bits) == self.address
    }

    pub fn is_within(&self, other: &AddressRange) -> bool {
        self.bits >= other.bits && other.contains(self.address)
    }

    /// The first address of the range, and how many bits count.
    pub fn parts(&self) -> (IpAddr, u8) {
        (self.address, self.bits)
    }

    pub fn is_v6(&self) -> bool {
        self.address.is_ipv6()
    }
}

fn width(address: IpAddr) -> u8 {
    if address.is_ipv4() { 32 } else { 128 }
}

fn masked(address: IpAddr, bits: u8) -> IpAddr {
    match address {
        IpAddr::V4(v4) => {
            let mask = u32::MAX.checked_shl(32 - u32::from(bits)).unwrap_or(0);
            IpAddr::V4(Ipv4Addr::from_bits(v4.to_bits() & mask))
        }
        IpAddr::V6(v6) => {
            let mask = u128::MAX.checked_shl(128 - u32::from(bits)).unwrap_or(0);
            IpAddr::V6(Ipv6Addr::from_bits(v6.to_bits() & mask))
        }
    }
}

impl fmt::Display for AddressRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.bits == width(self.address) {
            true => self.address.fmt(f),
            false => write!(f, "{}/{}", self.address, self.bits),
        }
    }
}
