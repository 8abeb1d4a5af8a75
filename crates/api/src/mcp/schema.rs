//! The types of arguments and answers as JSON Schema, in few words: a client pays for every one of them.

use rmcp::model::JsonObject;
use schemars::JsonSchema;
use schemars::generate::{Contract, SchemaSettings};
use serde_json::Value;

/// What a tool takes. Whoever leaves a field out may also say null, but need not know.
pub(crate) fn input<T: JsonSchema>() -> JsonObject {
    let mut schema = schema::<T>(Contract::Deserialize);
    schema.remove("description");
    shorten(&mut schema, Words::Kept);
    schema
}

/// What a tool answers: what is not there is left out, never null. An answer needs no descriptions.
pub(crate) fn output<T: JsonSchema>() -> JsonObject {
    let mut schema = schema::<T>(Contract::Serialize);
    shorten(&mut schema, Words::Dropped);
    schema
}

fn schema<T: JsonSchema>(contract: Contract) -> JsonObject {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.inline_subschemas = true;
        settings.meta_schema = None;
        settings.contract = contract;
    });
    let schema = settings.into_generator().into_root_schema_for::<T>();
    match schema.to_value() {
        Value::Object(schema) => schema,
        // A schema that is no object says that everything is fine.
        _ => JsonObject::new(),
    }
}

/// What becomes of descriptions.
#[derive(Copy, Clone, Eq, PartialEq)]
enum Words {
    Kept,
    Dropped,
}

/// Words that tell nobody anything.
const NOISE: [&str; 4] = ["title", "format", "default", "minimum"];

fn shorten(schema: &mut JsonObject, words: Words) {
    for word in NOISE {
        schema.remove(word);
    }
    if words == Words::Dropped {
        schema.remove("description");
    }
    forget_null(schema);
    for value in schema.values_mut() {
        shorten_value(value, words);
    }
    // What is in the list of an answer says by itself what it has.
    if words == Words::Dropped
        && let Some(Value::Object(items)) = schema.get_mut("items")
    {
        items.remove("required");
    }
}

fn shorten_value(value: &mut Value, words: Words) {
    match value {
        Value::Object(inner) => shorten_inner(inner, words),
        Value::Array(items) => items.iter_mut().for_each(|item| shorten_value(item, words)),
        _ => {}
    }
}

fn shorten_inner(inner: &mut JsonObject, words: Words) {
    let is_schema = ["type", "anyOf", "oneOf", "enum", "const", "properties"]
        .iter()
        .any(|word| {
            inner
                .get(*word)
                .is_some_and(|value| !value.is_object() || *word == "properties")
        });
    if is_schema {
        shorten(inner, words);
    } else {
        // The names of properties, each with a schema.
        inner
            .values_mut()
            .for_each(|value| shorten_value(value, words));
    }
}

/// `string or null` is `string`.
fn forget_null(schema: &mut JsonObject) {
    if let Some(Value::Array(types)) = schema.get_mut("type") {
        types.retain(|kind| kind != "null");
        if let [only] = types.as_slice() {
            let only = only.clone();
            schema.insert("type".into(), only);
        }
    }
    if let Some(Value::Array(words)) = schema.get_mut("enum") {
        words.retain(|word| !word.is_null());
    }
    let either = schema.get("anyOf").and_then(Value::as_array);
    let other = either.and_then(|either| {
        let is_null = |it: &Value| it.get("type").is_some_and(|kind| kind == "null");
        let mut others = either.iter().filter(|it| !is_null(it));
        match (others.next(), others.next()) {
            (Some(Value::Object(other)), None) => Some(other.clone()),
            _ => None,
        }
    });
    if let Some(other) = other {
        schema.remove("anyOf");
        for (word, value) in other {
            schema.entry(word).or_insert(value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::collections::BTreeMap;

    #[derive(JsonSchema)]
    #[allow(dead_code, reason = "only its schema is looked at")]
    #[schemars(deny_unknown_fields)]
    struct Asked {
        /// What it is called.
        title: String,
        #[serde(default)]
        count: Option<u64>,
        #[serde(default)]
        word: Option<Word>,
        #[serde(default)]
        env: BTreeMap<String, String>,
    }

    #[derive(JsonSchema)]
    #[allow(dead_code, reason = "only its schema is looked at")]
    #[serde(rename_all = "snake_case")]
    enum Word {
        One,
        TwoWords,
    }

    #[test]
    fn schemas_are_short_and_say_what_is_meant() {
        let input = Value::Object(input::<Asked>());
        let expected = json!({
            "type": "object",
            "additionalProperties": false,
            "required": ["title"],
            "properties": {
                "title": {"type": "string", "description": "What it is called."},
                "count": {"type": "integer"},
                "word": {"type": "string", "enum": ["one", "two_words"]},
                "env": {"type": "object", "additionalProperties": {"type": "string"}},
            },
        });
        assert_eq!(input, expected);
    }

    #[derive(JsonSchema)]
    #[allow(dead_code, reason = "only its schema is looked at")]
    struct Said {
        /// What it is.
        title: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        count: Option<u64>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        names: Vec<String>,
        #[schemars(skip)]
        more: Option<u64>,
    }

    #[test]
    fn what_an_answer_leaves_out_is_not_required() {
        let output = Value::Object(output::<Said>());
        let expected = json!({
            "type": "object",
            "required": ["title"],
            "properties": {
                "title": {"type": "string"},
                "count": {"type": "integer"},
                "names": {"type": "array", "items": {"type": "string"}},
            },
        });
        assert_eq!(output, expected);
    }
}
