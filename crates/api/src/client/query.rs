//! Requests in an address: percent-encoding and the query of a `GET`.

use crate::error::{Error, Result};
use serde::Serialize;
use serde_json::Value;

/// `text` with everything but unreserved characters percent-encoded.
pub(crate) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~@".contains(&byte) {
            escaped.push(char::from(byte));
        } else {
            escaped.push_str(&format!("%{byte:02X}"));
        }
    }
    escaped
}

/// The fields of a flat request as `?name=value&…`, or nothing when it has none.
pub(crate) fn query(request: &impl Serialize) -> Result<String> {
    let nonsense = |what: String| Error::Nonsense { what };
    let value = serde_json::to_value(request).map_err(|error| nonsense(error.to_string()))?;
    let Value::Object(fields) = value else {
        return Err(nonsense("a request has fields".into()));
    };
    let mut text = String::new();
    for (name, value) in fields {
        let value = match value {
            Value::Null => continue,
            Value::String(text) => text,
            Value::Bool(_) | Value::Number(_) => value.to_string(),
            Value::Array(_) | Value::Object(_) => {
                return Err(nonsense(format!("{name} does not fit into an address")));
            }
        };
        text.push(if text.is_empty() { '?' } else { '&' });
        text.push_str(&format!("{}={}", escape(&name), escape(&value)));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::{Diff, VaultList};

    #[test]
    fn fields_become_a_query() {
        let diff = Diff {
            from: "vault:a b&c".into(),
            to: "HEAD".into(),
            patch: true,
            ..Diff::default()
        };
        assert_eq!(
            query(&diff).unwrap(),
            "?from=vault%3Aa%20b%26c&patch=true&stat=false&to=HEAD"
        );
        assert_eq!(query(&VaultList {}).unwrap(), "");
    }

    #[test]
    fn a_name_cannot_leave_its_place() {
        assert_eq!(escape("../x?y#z"), "..%2Fx%3Fy%23z");
        assert_eq!(escape("@current"), "@current");
    }
}
