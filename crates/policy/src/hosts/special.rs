//! Addresses that are not of the public network, and why.

use std::fmt;
use std::net::IpAddr;

use super::AddressRange;

/// Why an address is not dialled unless a rule lists it by address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Special {
    Loopback,
    Private,
    LinkLocal,
    /// Where clouds hand out credentials.
    Metadata,
    CarrierNat,
    UniqueLocal,
    Multicast,
    /// `0.0.0.0/8` and `::`. To connect to it is to connect to the host itself.
    Unspecified,
    Broadcast,
    /// `198.18.0.0/15`, of which names get their addresses inside a sandbox.
    Benchmark,
    /// IPv6 addresses that stand for an IPv4 address (NAT64, 6to4, Teredo, IPv4-compatible), which may be any of these.
    Translated,
    Documentation,
    Reserved,
}

impl Special {
    pub fn as_str(self) -> &'static str {
        match self {
            Special::Loopback => "loopback",
            Special::Private => "private",
            Special::LinkLocal => "link-local",
            Special::Metadata => "cloud metadata",
            Special::CarrierNat => "carrier NAT",
            Special::UniqueLocal => "unique local",
            Special::Multicast => "multicast",
            Special::Unspecified => "unspecified",
            Special::Broadcast => "broadcast",
            Special::Benchmark => "benchmark",
            Special::Translated => "translated IPv4",
            Special::Documentation => "documentation",
            Special::Reserved => "reserved",
        }
    }

    /// Why no rule can allow such an address, if none can.
    pub(super) fn never(self) -> Option<&'static str> {
        match self {
            Special::Unspecified => Some("it is the address of no host"),
            Special::Multicast | Special::Broadcast => Some("no connection can be made to it"),
            Special::Benchmark => Some("names get their addresses from this range in a sandbox"),
            _ => None,
        }
    }
}

impl fmt::Display for Special {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

const fn v4(octets: [u8; 4], bits: u8, special: Special) -> (AddressRange, Special) {
    (AddressRange::v4(octets, bits), special)
}

const fn v6(parts: [u16; 8], bits: u8, special: Special) -> (AddressRange, Special) {
    (AddressRange::v6(parts, bits), special)
}

/// The first range that has an address says what it is, so a part stands before the whole.
const RANGES: [(AddressRange, Special); 46] = [
    v4([0, 0, 0, 0], 8, Special::Unspecified),
    v4([10, 0, 0, 0], 8, Special::Private),
    v4([100, 100, 100, 200], 32, Special::Metadata),
    v4([100, 64, 0, 0], 10, Special::CarrierNat),
    v4([127, 0, 0, 0], 8, Special::Loopback),
    v4([169, 254, 169, 254], 32, Special::Metadata),
    v4([169, 254, 170, 2], 32, Special::Metadata),
    v4([169, 254, 170, 23], 32, Special::Metadata),
    v4([169, 254, 0, 0], 16, Special::LinkLocal),
    v4([172, 16, 0, 0], 12, Special::Private),
    v4([192, 0, 0, 192], 32, Special::Metadata),
    v4([192, 0, 0, 0], 24, Special::Reserved),
    v4([192, 0, 2, 0], 24, Special::Documentation),
    v4([192, 88, 99, 0], 24, Special::Reserved),
    v4([192, 168, 0, 0], 16, Special::Private),
    v4([198, 18, 0, 0], 15, Special::Benchmark),
    v4([198, 51, 100, 0], 24, Special::Documentation),
    v4([203, 0, 113, 0], 24, Special::Documentation),
    v4([224, 0, 0, 0], 4, Special::Multicast),
    v4([255, 255, 255, 255], 32, Special::Broadcast),
    v4([240, 0, 0, 0], 4, Special::Reserved),
    v6([0, 0, 0, 0, 0, 0, 0, 0], 128, Special::Unspecified),
    v6([0, 0, 0, 0, 0, 0, 0, 1], 128, Special::Loopback),
    v6([0, 0, 0, 0, 0, 0, 0, 0], 96, Special::Translated),
    v6([0, 0, 0, 0, 0xffff, 0, 0, 0], 96, Special::Translated),
    v6([0x64, 0xff9b, 0, 0, 0, 0, 0, 0], 96, Special::Translated),
    v6([0x64, 0xff9b, 1, 0, 0, 0, 0, 0], 48, Special::Translated),
    v6([0x2001, 0, 0, 0, 0, 0, 0, 0], 32, Special::Translated),
    v6([0x2002, 0, 0, 0, 0, 0, 0, 0], 16, Special::Translated),
    v6([0x2001, 0, 0, 0, 0, 0, 0, 0], 23, Special::Reserved),
    v6(
        [0x2001, 0xdb8, 0, 0, 0, 0, 0, 0],
        32,
        Special::Documentation,
    ),
    v6([0x3fff, 0, 0, 0, 0, 0, 0, 0], 20, Special::Documentation),
    v6([0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x23], 128, Special::Metadata),
    v6(
        [0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254],
        128,
        Special::Metadata,
    ),
    v6([0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254], 128, Special::Metadata),
    v6(
        [0xfe80, 0, 0, 0, 0, 0, 0xa9fe, 0xa9fe],
        128,
        Special::Metadata,
    ),
    v6([0xfc00, 0, 0, 0, 0, 0, 0, 0], 7, Special::UniqueLocal),
    v6([0xfe80, 0, 0, 0, 0, 0, 0, 0], 10, Special::LinkLocal),
    v6([0xfec0, 0, 0, 0, 0, 0, 0, 0], 10, Special::UniqueLocal),
    v6([0xff00, 0, 0, 0, 0, 0, 0, 0], 8, Special::Multicast),
    // Public addresses are those of 2000::/3. All else is reserved, whatever it may become.
    v6([0, 0, 0, 0, 0, 0, 0, 0], 3, Special::Reserved),
    v6([0x4000, 0, 0, 0, 0, 0, 0, 0], 2, Special::Reserved),
    v6([0x8000, 0, 0, 0, 0, 0, 0, 0], 2, Special::Reserved),
    v6([0xc000, 0, 0, 0, 0, 0, 0, 0], 3, Special::Reserved),
    v6([0xe000, 0, 0, 0, 0, 0, 0, 0], 4, Special::Reserved),
    v6([0xf000, 0, 0, 0, 0, 0, 0, 0], 4, Special::Reserved),
];

/// What kind of special address this is; `None` for one of the public network. An IPv4-mapped IPv6 address is what its IPv4
/// address is.
pub fn address_is_special(address: IpAddr) -> Option<Special> {
    special_range(address).map(|(_, special)| special)
}

/// The special range that an address is in. A rule lists the address only if it lies within this range: `0.0.0.0/0` means
/// the public network, not the metadata service.
pub(super) fn special_range(address: IpAddr) -> Option<(AddressRange, Special)> {
    let address = address.to_canonical();
    RANGES
        .into_iter()
        .find(|(range, _)| range.contains(address))
}

/// Every special range that a range lies within.
pub(super) fn special_ranges_around(
    range: &AddressRange,
) -> impl Iterator<Item = (AddressRange, Special)> {
    let range = *range;
    RANGES
        .into_iter()
        .filter(move |(whole, _)| range.is_within(whole))
}
