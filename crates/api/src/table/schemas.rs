//! The answer of each operation as a JSON Schema: `docs/schemas/`.

use super::openapi::plain;
use super::{EachRow, each_row};
use crate::ops::handler::{Handler, Served};
use crate::wire::{Problem, SCHEMA_VERSION};
use schemars::JsonSchema;
use schemars::generate::{Contract, SchemaSettings};
use serde_json::{Map, Value, json};

/// A schema for every answer in JSON, by the name of its operation, and one for the refusals of HTTP.
pub fn schemas() -> Map<String, Value> {
    struct Schemas(Map<String, Value>);
    impl EachRow for Schemas {
        fn row<O: Served>(&mut self) {
            if !matches!(O::HANDLER, Handler::Opens(_) | Handler::Sends(..)) {
                let mut schema = schema_of::<O::Response>();
                schema["title"] = O::ROW.name.into();
                self.0.insert(O::ROW.name.to_owned(), schema);
            }
        }
    }
    let mut schemas = Schemas(Map::new());
    each_row(&mut schemas);
    schemas.0.insert("problem".into(), schema::<Problem>());
    schemas.0
}

/// The schema of an answer, which says the version of its shape.
pub fn schema_of<T: JsonSchema>() -> Value {
    let mut schema = schema::<T>();
    if schema.get("properties").is_none() {
        schema["properties"] = json!({});
    }
    schema["properties"]["schema_version"] = version();
    let required = match schema["required"].take() {
        Value::Array(required) => required,
        _ => Vec::new(),
    };
    let others = required.into_iter().filter(|it| it != "schema_version");
    let first = std::iter::once(Value::from("schema_version"));
    schema["required"] = first.chain(others).collect();
    schema
}

/// What `schema_version` is in every answer.
pub(super) fn version() -> Value {
    json!({ "description": "The version of the shape of the answer.", "const": SCHEMA_VERSION })
}

fn schema<T: JsonSchema>() -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.contract = Contract::Serialize;
    });
    plain(
        settings
            .into_generator()
            .into_root_schema_for::<T>()
            .to_value(),
    )
}
