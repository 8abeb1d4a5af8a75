//! The reference of all operations, generated from the table (`docs/http.md`).

use super::fields::{fields_of, smallest};
use super::{EachRow, OPERATIONS, Row, Scope, TERMINALS, each_row};
use crate::ops::handler::Served;
use serde_json::Value;
use std::fmt::Write;

const HEAD: &str = "\
# HTTP

Made from the table of operations by `avfs __docs http`; a test fails when it is out of date.

The daemon listens on a Unix socket that its own user and root can connect to: `daemon.sock` in `AVFS_HOME` is a link to it. `POST`
has the fields of a request as a JSON object in the body, the other methods have them in the query. The body of a `PUT` is
a stream of bytes. `{vault}` is a vault's name, or `@current`. A path, name or text that is not UTF-8 goes as base64 into the field of the
same name with `_b64` behind it; such fields are not listed here. [serve.md](serve.md) has conditions, ranges, pages, idempotency keys
and events; [openapi.json](openapi.json) has all types.

Every answer in JSON is an object with `schema_version`, which is 1; agentkernel's addresses keep their own answers. `docs/schemas/` has a JSON Schema of the answer
of each operation. A field may be added without a new `schema_version`.

An error is `application/problem+json` with `kind`, `detail` and often a `hint`. A request with `accept: text/event-stream` for `exec`,
`job_logs`, `events`, `import` or one of the exports is answered with server-sent events; the last one of a stream that ends is `result`, `end` or `error`.

| header | |
|---|---|
| `avfs-class: agent` | gives up the owner's class |
| `avfs-name: NAME` | who asks; the journal keeps it |
| `avfs-scopes: read,run` | gives up all scopes but these |
| `avfs-vaults: a,b` | gives up all vaults but these |
| `avfs-version: VERSION` | refused with 426 when the daemon is of another version |

";

/// The whole text.
pub fn reference() -> String {
    let mut text = HEAD.to_owned();
    text.push_str("| scope | for |\n|---|---|\n");
    for scope in Scope::ALL {
        let _ = writeln!(text, "| `{}` | {} |", scope.as_str(), meaning(scope));
    }
    text.push_str("\n## Operations\n\n");
    text.push_str(
        "| operation | address | class | scope | vault | lane |\n|---|---|---|---|---|---|\n",
    );
    for row in OPERATIONS {
        let _ = writeln!(
            text,
            "| [{name}](#{name}) | `{} {}` | {} | {} | {} | {} |",
            row.method.as_str(),
            row.route,
            row.who.as_str(),
            row.scope.as_str(),
            row.vault.as_str(),
            row.lane.name,
            name = row.name,
        );
    }
    text.push_str("\n## WebSocket\n\n| address | for | scope |\n|---|---|---|\n");
    for terminal in TERMINALS {
        let (route, sentence, scopes) = (
            terminal.route,
            terminal.sentence,
            terminal.scopes().join(", "),
        );
        let _ = writeln!(text, "| `GET {route}` | {sentence} | {scopes} |");
    }
    text.push_str("\n[serve.md](serve.md#terminals) has the messages.\n");
    let mut fields = Fields(text);
    each_row(&mut fields);
    format!("{}\n", fields.0.trim_end())
}

/// Every row with its smallest valid request, for tests that call all operations.
pub fn smallest_requests() -> Vec<(Row, Value)> {
    let mut all = Smallest(Vec::new());
    each_row(&mut all);
    all.0
}

struct Smallest(Vec<(Row, Value)>);

impl EachRow for Smallest {
    fn row<O: Served>(&mut self) {
        self.0.push((O::ROW, Value::Object(smallest::<O>())));
    }
}

fn meaning(scope: Scope) -> &'static str {
    match scope {
        Scope::Read => "reading files, history, jobs, rules and the journal",
        Scope::Write => "changing vaults: files, labels, checkpoints, forks",
        Scope::Run => "running commands, writing to their input and ending them",
        Scope::Approve => "answering commands that wait for approval",
        Scope::Admin => {
            "changing what agents may do: rules, settings, quotas, host paths, the daemon"
        }
    }
}

/// The sentence and the fields of each operation.
struct Fields(String);

impl EachRow for Fields {
    fn row<O: Served>(&mut self) {
        let text = &mut self.0;
        let row = O::ROW;
        let _ = writeln!(text, "\n## {}\n\n{}", row.name, row.sentence);
        let required = smallest::<O>();
        let mut fields = fields_of::<O>();
        fields.retain(|field| !field.shape.is_empty() && !field.path.ends_with("_b64"));
        // The variants of an enum are not listed as fields: their names are enough.
        let whole: Vec<String> = fields
            .iter()
            .filter(|field| field.shape.starts_with('`'))
            .map(|field| format!("{}.", field.path))
            .collect();
        fields.retain(|field| {
            !whole
                .iter()
                .any(|enumerated| field.path.starts_with(enumerated))
        });
        if fields.is_empty() {
            return;
        }
        text.push_str("\n| field | value |\n|---|---|\n");
        for field in fields {
            let needed = if required.contains_key(&field.path) {
                ", required"
            } else {
                ""
            };
            let shape = match field.names_the_host() {
                true => "an absolute path of the host",
                false => &field.shape,
            };
            let _ = writeln!(text, "| `{}` | {shape}{needed} |", field.path);
        }
    }
}
