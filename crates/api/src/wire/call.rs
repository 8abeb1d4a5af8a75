//! The handle of a running exec.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::borrow::Cow;
use std::fmt;

/// Identifies one exec to its caller: 128 random bits, written as 32 hexadecimal digits.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub struct CallId(u128);

impl CallId {
    /// The handle with these bits.
    pub fn from_bytes(bytes: [u8; 16]) -> CallId {
        CallId(u128::from_be_bytes(bytes))
    }
}

impl fmt::Display for CallId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl JsonSchema for CallId {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "CallId".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "pattern": "^[0-9a-fA-F]{32}$" })
    }
}

impl Serialize for CallId {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for CallId {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<CallId, D::Error> {
        let text = String::deserialize(from)?;
        let digits = text.len() == 32 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        match u128::from_str_radix(&text, 16) {
            Ok(number) if digits => Ok(CallId(number)),
            _ => Err(D::Error::custom("a call is 32 hexadecimal digits")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_text_and_back() {
        let call = CallId::from_bytes([0x0a; 16]);
        let text = serde_json::to_string(&call).unwrap();
        assert_eq!(text, format!("\"{}\"", "0a".repeat(16)));
        assert_eq!(serde_json::from_str::<CallId>(&text).unwrap(), call);
        for wrong in ["1", "\"1\"", "\"\"", "\"+a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a\""] {
            assert!(serde_json::from_str::<CallId>(wrong).is_err(), "{wrong}");
        }
    }
}
