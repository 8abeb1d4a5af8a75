//! The table as an OpenAPI 3.1 document: `docs/openapi.json`, and `/openapi.json` of a daemon.
//!
//! Requests and answers have two generators. A field with a default may be left out of a request, while an answer always
//! has it.

use super::schemas::version;
use super::{ATTACH, EachRow, Method, OPEN, Row, Terminal, each_row};
use crate::ops::erased;
use crate::ops::handler::{Handler, Served};
use crate::wire::{
    Problem, TerminalAttach, TerminalControl, TerminalMessage, TerminalOpen, VERSION,
};
use schemars::JsonSchema;
use schemars::generate::{Contract, SchemaGenerator, SchemaSettings};
use serde_json::{Map, Value, json};

/// The whole document.
pub fn openapi() -> Value {
    let mut paths = Paths {
        requests: generator(Contract::Deserialize),
        answers: generator(Contract::Serialize),
        schemas: Map::new(),
        paths: Map::new(),
    };
    each_row(&mut paths);
    paths.terminal::<TerminalOpen>(&OPEN);
    paths.terminal::<TerminalAttach>(&ATTACH);
    let problem = plain(paths.answers.subschema_for::<Problem>().to_value());
    let answers = paths.answers.take_definitions(true);
    let answers = answers.into_iter().map(|(name, it)| (name, plain(it)));
    paths.schemas.extend(answers);
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "agentvfs",
            "version": VERSION,
            "summary": "Workspaces for agents, and the boundary around their commands.",
            "license": { "name": "MIT", "identifier": "MIT" },
        },
        "servers": [{ "url": "/" }],
        "security": [{ "bearer": [] }, { "key": [] }],
        "paths": paths.paths,
        "components": {
            "schemas": paths.schemas,
            "securitySchemes": {
                "bearer": { "type": "http", "scheme": "bearer" },
                "key": { "type": "apiKey", "in": "header", "name": "X-API-Key" },
            },
            "responses": {
                "problem": {
                    "description": "Why the request was refused (RFC 9457).",
                    "content": { "application/problem+json": { "schema": problem } },
                },
            },
        },
    })
}

fn generator(contract: Contract) -> SchemaGenerator {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.definitions_path = "/components/schemas".into();
        settings.meta_schema = None;
        // A type that both sides use would need two definitions.
        settings.inline_subschemas = matches!(contract, Contract::Deserialize);
        settings.contract = contract;
    });
    settings.into_generator()
}

struct Paths {
    requests: SchemaGenerator,
    answers: SchemaGenerator,
    schemas: Map<String, Value>,
    paths: Map<String, Value>,
}

impl EachRow for Paths {
    fn row<O: Served>(&mut self) {
        let row = O::ROW;
        let mut operation = json!({
            "operationId": row.name,
            "summary": row.sentence,
            "tags": [tag(&row)],
            "x-avfs-class": row.who.class().as_str(),
            "x-avfs-scope": row.scope.as_str(),
            "x-avfs-idempotent": row.effect.is_idempotent(),
            "responses": {
                "200": { "description": "Done.", "content": self.answer::<O>() },
                "4XX": { "$ref": "#/components/responses/problem" },
                "5XX": { "$ref": "#/components/responses/problem" },
            },
        });
        let mut parameters = Vec::new();
        if row.route.contains("{vault}") {
            parameters.push(vault());
        }
        if row.method.has_query() {
            parameters.extend(self.query::<O>());
        } else {
            operation["requestBody"] = json!({
                "required": true,
                "content": { "application/json": { "schema": self.request::<O>() } },
            });
        }
        if row.method == Method::Put {
            let bytes = json!({ "application/octet-stream": {} });
            operation["requestBody"] = json!({ "required": true, "content": bytes });
        }
        if !parameters.is_empty() {
            operation["parameters"] = parameters.into();
        }
        if erased::has_post(&row, &O::HANDLER) {
            let body = json!({ "application/json": { "schema": self.request::<O>() } });
            let mut by_post = operation.clone();
            by_post["operationId"] = format!("{}_by_post", row.name).into();
            by_post["description"] =
                "The same as by GET, for fields that are too long for a query.".into();
            by_post["requestBody"] = json!({ "required": true, "content": body });
            by_post["parameters"] = match row.route.contains("{vault}") {
                true => json!([vault()]),
                false => json!([]),
            };
            self.put(row.route, "post", by_post);
        }
        self.put(
            row.route,
            &row.method.as_str().to_ascii_lowercase(),
            operation,
        );
    }
}

impl Paths {
    fn put(&mut self, route: &str, method: &str, operation: Value) {
        let methods = self.paths.entry(route).or_insert_with(|| json!({}));
        methods[method] = operation;
    }

    /// An address of WebSocket. OpenAPI cannot describe messages, so their types are named beside it.
    fn terminal<O: JsonSchema>(&mut self, terminal: &Terminal) {
        let control = self.answers.subschema_for::<TerminalControl>();
        let message = self.answers.subschema_for::<TerminalMessage>();
        let mut parameters = self.query::<O>();
        if terminal.route.contains("{vault}") {
            parameters.insert(0, vault());
        }
        let operation = json!({
            "operationId": terminal.name,
            "summary": terminal.sentence,
            "description": "Binary messages are bytes of the terminal. Text messages are JSON of these types.",
            "tags": ["terminals"],
            "x-avfs-scope": terminal.scopes().join(" "),
            "x-avfs-websocket": { "receives": control.to_value(), "sends": message.to_value() },
            "parameters": parameters,
            "responses": {
                "101": { "description": "The connection is a WebSocket." },
                "4XX": { "$ref": "#/components/responses/problem" },
                "5XX": { "$ref": "#/components/responses/problem" },
            },
        });
        self.put(terminal.route, "get", operation);
    }

    /// The type of a request by its name.
    fn request<O: Served>(&mut self) -> Value {
        let name = O::schema_name().into_owned();
        let place = format!("#/components/schemas/{name}");
        let schema = plain(self.schema::<O>());
        self.schemas.insert(name, schema);
        json!({ "$ref": place })
    }

    fn schema<O: JsonSchema>(&mut self) -> Value {
        O::json_schema(&mut self.requests).to_value()
    }

    /// The fields of a request as parameters of the query.
    fn query<O: JsonSchema>(&mut self) -> Vec<Value> {
        let mut schema = plain(self.schema::<O>());
        let required = schema["required"].take();
        let is_required = |name: &str| {
            let required = required.as_array();
            required.is_some_and(|it| it.iter().any(|it| it == name))
        };
        let fields = match schema["properties"].take() {
            Value::Object(fields) => fields,
            _ => Map::new(),
        };
        let parameter = |(name, mut schema): (String, Value)| {
            // A query cannot say null.
            forget_null(&mut schema);
            let described = schema
                .as_object_mut()
                .and_then(|it| it.remove("description"));
            let mut parameter = json!({
                "name": name,
                "in": "query",
                "required": is_required(&name),
                "schema": schema,
            });
            if let Some(described) = described {
                parameter["description"] = described;
            }
            parameter
        };
        fields.into_iter().map(parameter).collect()
    }

    /// The media types of an answer.
    fn answer<O: Served>(&mut self) -> Value {
        let mut content = Map::new();
        match O::HANDLER {
            Handler::Opens(_) => {
                content.insert("application/octet-stream".into(), json!({}));
            }
            Handler::Sends(kind, _) => {
                content.insert(kind.into(), json!({}));
            }
            _ => {
                let schema = self.answers.subschema_for::<O::Response>();
                let schema = json!({
                    "allOf": [plain(schema.to_value())],
                    "type": "object",
                    "properties": { "schema_version": version() },
                    "required": ["schema_version"],
                });
                content.insert("application/json".into(), json!({ "schema": schema }));
            }
        }
        if has_events(&O::HANDLER) {
            content.insert("text/event-stream".into(), json!({}));
        }
        content.into()
    }
}

fn has_events<O: Served>(handler: &Handler<O>) -> bool {
    matches!(
        handler,
        Handler::Runs(_) | Handler::Follows { .. } | Handler::Tells { .. } | Handler::Watched(_)
    )
}

fn vault() -> Value {
    json!({
        "name": "vault",
        "in": "path",
        "required": true,
        "description": "The name of a vault, or `@current`.",
        "schema": { "type": "string", "minLength": 1 },
    })
}

/// The noun of an address: what comes after `/v1/`, or after the vault.
fn tag(row: &Row) -> &'static str {
    let rest = row.route.trim_start_matches("/v1/");
    let rest = rest.strip_prefix("vaults/{vault}/").unwrap_or(rest);
    rest.split('/').next().unwrap_or("vaults")
}

/// Makes a schema of Rust types one for everybody: numbers have their bounds instead of the names of types, and
/// descriptions have no links of rustdoc.
pub(super) fn plain(mut schema: Value) -> Value {
    visit(&mut schema, &mut |schema| {
        if let Some(Value::String(text)) = schema.get_mut("description") {
            *text = text
                .replace("[`", "`")
                .replace("`]", "`")
                .replace('\n', " ");
        }
        let most = match schema.get("format").and_then(Value::as_str) {
            Some("uint8") => json!(u8::MAX),
            Some("uint16") => json!(u16::MAX),
            Some("uint32") => json!(u32::MAX),
            Some("uint64" | "uint") => json!(u64::MAX),
            Some("int32" | "int64" | "double" | "float") | None => return,
            Some(_) => return,
        };
        schema.remove("format");
        schema.entry("maximum").or_insert(most);
    });
    schema
}

/// `string or null` becomes `string`.
fn forget_null(schema: &mut Value) {
    visit(schema, &mut |schema| {
        if schema.get("default").is_some_and(Value::is_null) {
            schema.remove("default");
        }
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
        if let Some(Value::Array(either)) = schema.get_mut("anyOf") {
            either.retain(|it| it["type"] != "null");
            if let [Value::Object(only)] = either.as_slice() {
                let only = only.clone();
                schema.remove("anyOf");
                schema.extend(only);
            }
        }
    });
}

/// Visits a schema and all schemas in it.
fn visit(value: &mut Value, visitor: &mut dyn FnMut(&mut Map<String, Value>)) {
    match value {
        Value::Object(schema) => {
            visitor(schema);
            schema.values_mut().for_each(|it| visit(it, visitor));
        }
        Value::Array(items) => items.iter_mut().for_each(|it| visit(it, visitor)),
        _ => {}
    }
}
