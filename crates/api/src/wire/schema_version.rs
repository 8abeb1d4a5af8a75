//! The version of the shape of all answers in JSON.

/// What `schema_version` says in every answer that is an object. It grows when a field goes or gets another meaning, not
/// when one is added.
pub const SCHEMA_VERSION: u32 = 1;

/// An answer that says the version of its shape, if it is an object. One that says it by itself has it as its first field.
pub(crate) fn versioned(json: Vec<u8>) -> Vec<u8> {
    let Some(fields) = json.strip_prefix(b"{") else {
        return json;
    };
    if fields.starts_with(b"\"schema_version\":") {
        return json;
    }
    let comma = if fields == b"}" { "" } else { "," };
    let mut versioned = format!("{{\"schema_version\":{SCHEMA_VERSION}{comma}").into_bytes();
    versioned.extend_from_slice(fields);
    versioned
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_says_its_version_once() {
        for (json, expected) in [
            ("{}", r#"{"schema_version":1}"#),
            (r#"{"a":{}}"#, r#"{"schema_version":1,"a":{}}"#),
            (
                r#"{"schema_version":1,"a":1}"#,
                r#"{"schema_version":1,"a":1}"#,
            ),
            ("[{}]", "[{}]"),
            ("null", "null"),
        ] {
            assert_eq!(versioned(json.into()), expected.as_bytes());
        }
    }
}
