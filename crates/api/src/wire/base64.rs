//! Bytes in JSON: text if they are UTF-8, else base64 beside it.

use base64ct::Encoding;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::borrow::Cow;

/// Bytes written as standard base64 with padding.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Base64(pub Vec<u8>);

/// The text of `bytes`, and the exact bytes beside it if they are not UTF-8.
pub fn to_text(bytes: Vec<u8>) -> (String, Option<Base64>) {
    match String::from_utf8(bytes) {
        Ok(text) => (text, None),
        Err(error) => {
            let bytes = error.into_bytes();
            (
                String::from_utf8_lossy(&bytes).into_owned(),
                Some(Base64(bytes)),
            )
        }
    }
}

/// Bytes as `data` if they are UTF-8, else as `data_b64`: never both, to keep streams small.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Data {
    #[serde(skip_serializing_if = "Option::is_none", default)]
    data: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    data_b64: Option<Base64>,
}

impl Data {
    /// These bytes.
    pub fn new(bytes: Vec<u8>) -> Data {
        let (data, data_b64) = match String::from_utf8(bytes) {
            Ok(text) => (Some(text), None),
            Err(error) => (None, Some(Base64(error.into_bytes()))),
        };
        Data { data, data_b64 }
    }

    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        match (&self.data_b64, &self.data) {
            (Some(exact), _) => &exact.0,
            (None, Some(text)) => text.as_bytes(),
            (None, None) => &[],
        }
    }
}

/// The bytes of a pair made by [`to_text`].
pub fn from_text(text: &str, exact: Option<&Base64>) -> Vec<u8> {
    exact.map_or_else(|| text.as_bytes().to_vec(), |exact| exact.0.clone())
}

impl JsonSchema for Base64 {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Base64".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "contentEncoding": "base64",
            "pattern": "^([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$",
        })
    }
}

/// The bytes of a pair that may be missing as a whole. The exact bytes suffice.
pub fn from_text_if_any(text: Option<&str>, exact: Option<&Base64>) -> Option<Vec<u8>> {
    match (text, exact) {
        (None, None) => None,
        (text, exact) => Some(from_text(text.unwrap_or_default(), exact)),
    }
}

impl Serialize for Base64 {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&encode(&self.0))
    }
}

impl<'de> Deserialize<'de> for Base64 {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        decode(&text)
            .map(Base64)
            .ok_or_else(|| D::Error::custom("not valid base64"))
    }
}

fn encode(bytes: &[u8]) -> String {
    base64ct::Base64::encode_string(bytes)
}

fn decode(text: &str) -> Option<Vec<u8>> {
    base64ct::Base64::decode_vec(text).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_answers() {
        for (plain, coded) in [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
            ("fooba", "Zm9vYmE="),
            ("foobar", "Zm9vYmFy"),
        ] {
            assert_eq!(encode(plain.as_bytes()), coded);
            assert_eq!(decode(coded).as_deref(), Some(plain.as_bytes()));
        }
    }

    #[test]
    fn every_byte_survives() {
        for length in 0..260usize {
            let bytes: Vec<u8> = (0..length).map(|i| (i * 7 + length) as u8).collect();
            assert_eq!(decode(&encode(&bytes)), Some(bytes));
        }
    }

    #[test]
    fn broken_text_is_refused() {
        for text in ["A", "AB", "ABC", "A=BC", "====", "AB=C", "AB*D", "Zg==Zg=="] {
            assert_eq!(decode(text), None, "{text}");
        }
    }

    #[test]
    fn exact_bytes_count_without_text_beside_them() {
        let exact = Base64(vec![0xff]);
        assert_eq!(from_text_if_any(None, None), None);
        assert_eq!(from_text_if_any(Some("a"), None), Some(vec![b'a']));
        assert_eq!(from_text_if_any(None, Some(&exact)), Some(vec![0xff]));
        assert_eq!(from_text_if_any(Some("a"), Some(&exact)), Some(vec![0xff]));
    }

    #[test]
    fn only_text_goes_without_base64() {
        assert_eq!(to_text("né".into()), ("né".into(), None));
        let (text, exact) = to_text(vec![b'a', 0xff]);
        assert_eq!(text, "a\u{fffd}");
        assert_eq!(from_text(&text, exact.as_ref()), vec![b'a', 0xff]);
    }
}
