//! How much network a vault's commands may use. Connections and bandwidth are for all of them together; bytes are for each command.

use std::fmt;
use std::num::NonZeroU64;
use std::str::FromStr;

use avfs_net::{Bounds, Terms};
use serde::{Deserialize, Serialize};

use crate::command::settings::parse_size;
use crate::{Error, Result};

/// What a vault says about it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NetworkLimits {
    /// Connections of all commands at once.
    pub connections: Option<Connections>,
    /// Bytes of all commands in a second.
    pub bandwidth: Option<Bandwidth>,
    /// Bytes of one command.
    pub traffic: Option<Traffic>,
}

impl NetworkLimits {
    pub(crate) fn added_to(self, terms: Terms) -> Terms {
        Terms {
            connections: self.connections.map(|it| it.0),
            bytes_per_second: self.bandwidth.map(|it| it.0),
            max_bytes: self.traffic.map(|it| it.0.get()),
            ..terms
        }
    }

    pub fn is_empty(&self) -> bool {
        *self == NetworkLimits::default()
    }
}

/// A number of connections, from 1 to what a sandbox can have at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Connections(u32);

/// Bytes in a second, as `512k`, `2m` or `2m/s`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bandwidth(NonZeroU64);

/// Bytes, as `100m` or `2g`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Traffic(NonZeroU64);

impl Connections {
    pub fn get(self) -> u32 {
        self.0
    }
}

impl Bandwidth {
    pub fn bytes_per_second(self) -> u64 {
        self.0.get()
    }
}

impl Traffic {
    pub fn bytes(self) -> u64 {
        self.0.get()
    }
}

impl FromStr for Connections {
    type Err = Error;

    fn from_str(text: &str) -> Result<Connections> {
        let most = Bounds::default().connections_per_sandbox;
        let count = text.trim().parse::<u32>().ok();
        let count = count.filter(|count| (1..=most).contains(&(*count as usize)));
        count.map(Connections).ok_or_else(|| Error::Invalid {
            what: "setting",
            reason: format!("connections: {text:?} is not a number from 1 to {most}"),
        })
    }
}

impl FromStr for Bandwidth {
    type Err = Error;

    fn from_str(text: &str) -> Result<Bandwidth> {
        let size = text.trim();
        let size = size.strip_suffix("/s").unwrap_or(size);
        bytes("bandwidth", "512k, 2m or 2m/s", size).map(Bandwidth)
    }
}

impl FromStr for Traffic {
    type Err = Error;

    fn from_str(text: &str) -> Result<Traffic> {
        bytes("traffic", "100m or 2g", text).map(Traffic)
    }
}

fn bytes(what: &str, like: &str, text: &str) -> Result<NonZeroU64> {
    let size = parse_size(text).ok().and_then(NonZeroU64::new);
    size.ok_or_else(|| Error::Invalid {
        what: "setting",
        reason: format!("{what}: {text:?} is not like {like}"),
    })
}

impl fmt::Display for Connections {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for Bandwidth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/s", self.0)
    }
}

impl fmt::Display for Traffic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_text_and_back() {
        for (text, shown) in [("512k", "524288/s"), ("2m/s", "2097152/s"), ("7", "7/s")] {
            let rate: Bandwidth = text.parse().unwrap();
            assert_eq!(rate.to_string(), shown);
            assert_eq!(shown.parse::<Bandwidth>().unwrap(), rate);
        }
        assert_eq!("2g".parse::<Traffic>().unwrap().bytes(), 2 << 30);
        assert_eq!("9".parse::<Connections>().unwrap().get(), 9);
        for wrong in ["", "0", "-1", "1025", "many"] {
            assert!(wrong.parse::<Connections>().is_err(), "{wrong}");
        }
        for wrong in ["", "0", "/s", "2m/h", "2 m/s/s"] {
            assert!(wrong.parse::<Bandwidth>().is_err(), "{wrong}");
            assert!(wrong.parse::<Traffic>().is_err(), "{wrong}");
        }
    }
}
