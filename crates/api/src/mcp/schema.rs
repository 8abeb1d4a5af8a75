//! The types of arguments and answers as JSON Schema, in few words: a client pays for every one of them.

use rmcp::model::JsonObject;
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::Value;

/// What a tool takes. Whoever leaves a field out may also say null, but need not know.
pub(crate) fn input<T: JsonSchema>() -> JsonObject {
    let mut schema = schema::<T>();
    schema.remove("description");
    shorten(&mut schema, Nulls::Unsaid);
    schema
}

/// What a tool answers. Descriptions are left out: an answer explains itself.
pub(crate) fn output<T: JsonSchema>() -> JsonObject {
    let mut schema = schema::<T>();
    shorten(&mut schema, Nulls::Said);
    schema
}

fn schema<T: JsonSchema>() -> JsonObject {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.inline_subschemas = true;
        settings.meta_schema = None;
    });
    let schema = settings.into_generator().into_root_schema_for::<T>();
    match schema.to_value() {
        Value::Object(schema) => schema,
        // A schema that is no object says that everything is fine.
        _ => JsonObject::new(),
    }
}

#[derive(Copy, Clone, Eq, PartialEq)]
enum Nulls {
    Said,
    Unsaid,
}

/// Words that tell nobody anything.
const NOISE: [&str; 4] = ["title", "format", "default", "minimum"];

fn shorten(schema: &mut JsonObject, nulls: Nulls) {
    for word in NOISE {
        // A property of that name is none of the words.
        if schema.get(word).is_some_and(|value| !value.is_object()) {
            schema.remove(word);
        }
    }
    if nulls == Nulls::Said {
        schema.remove("description");
    } else {
        forget_null(schema);
    }
    for value in schema.values_mut() {
        shorten_value(value, nulls);
    }
}

fn shorten_value(value: &mut Value, nulls: Nulls) {
    match value {
        Value::Object(inner) => shorten_inner(inner, nulls),
        Value::Array(items) => items
            .iter_mut()
            .for_each(|item| shorten_value(item, nulls)),
        _ => {}
    }
}

fn shorten_inner(inner: &mut JsonObject, nulls: Nulls) {
    let is_schema = ["type", "anyOf", "oneOf", "enum", "const", "properties"]
        .iter()
        .any(|word| inner.get(*word).is_some_and(|value| !value.is_object() || *word == "properties"));
    if is_schema {
        shorten(inner, nulls);
    } else {
        // The names of properties, each with a schema.
        inner
            .values_mut()
            .for_each(|value| shorten_value(value, nulls));
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

    #[test]
    fn answers_may_be_null() {
        let output = Value::Object(output::<Asked>());
        let count = &output["properties"]["count"]["type"];
        assert_eq!(*count, json!(["integer", "null"]));
        assert!(output["properties"]["title"].get("description").is_none());
    }
}
