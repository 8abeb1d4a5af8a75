//! Rules for every row.

use super::fields::{Field, fields_of, smallest};
use super::*;
use crate::wire::HostPath;
use std::collections::BTreeSet;

#[test]
fn names_and_addresses_are_unique() {
    let names: BTreeSet<_> = OPERATIONS.iter().map(|row| row.name).collect();
    let addresses: BTreeSet<_> = OPERATIONS
        .iter()
        .map(|row| (row.method.as_str(), row.route))
        .collect();
    assert_eq!(names.len(), OPERATIONS.len());
    assert_eq!(addresses.len(), OPERATIONS.len());
}

#[test]
fn every_address_is_versioned_and_says_whether_it_has_a_vault() {
    for row in OPERATIONS {
        assert!(row.route.starts_with("/v1/"), "{}", row.name);
        let in_address = matches!(
            row.vault,
            VaultIn::Address | VaultIn::AddressAndFields | VaultIn::AddressOrHome
        );
        assert_eq!(row.route.contains("{vault}"), in_address, "{}", row.name);
    }
}

#[test]
fn every_row_says_in_one_sentence_what_it_does() {
    let sentences: BTreeSet<_> = OPERATIONS.iter().map(|row| row.sentence).collect();
    assert_eq!(sentences.len(), OPERATIONS.len());
    for row in OPERATIONS {
        let sentence = row.sentence;
        assert!(sentence.starts_with(char::is_uppercase), "{sentence}");
        assert_eq!(sentence.find('.'), Some(sentence.len() - 1), "{sentence}");
    }
}

/// Class, scope, effect and method agree.
#[test]
fn the_columns_of_a_row_agree() {
    for row in OPERATIONS {
        let name = row.name;
        let scopes: &[Scope] = match row.who.class() {
            Class::Agent => &[Scope::Read, Scope::Write, Scope::Run],
            Class::Owner => &[Scope::Approve, Scope::Admin],
        };
        assert!(scopes.contains(&row.scope), "{name}");
        if row.scope == Scope::Read || row.method == Method::Get {
            assert!(row.effect.is_read_only(), "{name}");
        }
        if row.effect.is_read_only() {
            assert!(
                matches!(row.scope, Scope::Read | Scope::Admin),
                "{name}: it reads"
            );
        }
        if row.method == Method::Delete {
            assert!(row.effect.is_destructive(), "{name}");
        }
        assert!(crate::bounds::LANES.contains(&row.lane), "{name}");
    }
}

/// The fields of every request, with its row.
#[derive(Default)]
struct All(Vec<(Row, Vec<Field>)>);

impl EachRow for All {
    fn row<O: Served>(&mut self) {
        self.0.push((O::ROW, fields_of::<O>()));
    }
}

fn all() -> Vec<(Row, Vec<Field>)> {
    let mut all = All::default();
    each_row(&mut all);
    all.0
}

/// Likely names of a field for a host path.
fn looks_like_the_host(path: &str) -> bool {
    let name = path.rsplit('.').next().unwrap_or_default();
    let name = name.strip_suffix("_b64").unwrap_or(name);
    name == "dir"
        || (name.starts_with("host_") && name != "host_port")
        || ["_dir", "_file"].iter().any(|end| name.ends_with(end))
}

/// The types of the fields are those that serde would read.
#[test]
fn no_request_of_an_agent_names_the_host() {
    let mut by_owner = 0;
    for (row, fields) in all() {
        for field in fields {
            let names_the_host = field.names_the_host();
            let place = format!("{}: {}", row.name, field.path);
            match row.who.class() {
                Class::Agent => {
                    assert!(!names_the_host, "{place}");
                    assert!(!looks_like_the_host(&field.path), "{place}");
                }
                Class::Owner => {
                    by_owner += usize::from(names_the_host);
                    let exact = field.path.ends_with("_b64");
                    let looks = looks_like_the_host(&field.path) && !exact;
                    assert_eq!(looks, names_the_host, "{place}");
                }
            }
        }
    }
    assert!(by_owner >= 6, "import, three exports, mount and unmount");
}

#[test]
fn fields_are_found_however_deep_they_are() {
    let all = all();
    let shape = |operation: &str, path: &str| {
        let (_, fields) = all.iter().find(|(row, _)| row.name == operation).unwrap();
        let field = fields.iter().find(|field| field.path == path);
        field
            .map(|field| field.shape.clone())
            .unwrap_or_else(|| panic!("{operation}: {path}"))
    };
    assert_eq!(shape("job_start", "exec.stdin.text"), "text", "in an enum");
    assert_eq!(shape("job_start", "exec.argv_b64"), "list of text");
    assert_eq!(shape("find", "tags"), "list of text");
    assert_eq!(shape("exec", "env"), "map of text to text");
    assert_eq!(shape("exec", "fork"), "`discard`, `keep_on_success`");
    assert_eq!(shape("import", "host_dir"), "text");
    assert_eq!(shape("job_resize", "rows"), "number");
    assert_eq!(shape("rm", "force"), "true or false");
    let plain: HostPath = serde_json::from_str("\"/x\"").unwrap();
    assert_eq!(plain.as_str(), "/x", "it travels as text");
}

#[test]
fn what_has_no_default_is_required() {
    fn required<O: Operation>() -> Vec<String> {
        smallest::<O>().keys().cloned().collect()
    }
    assert_eq!(required::<Mv>(), ["destination", "source"]);
    assert_eq!(required::<ExecResize>(), ["call", "columns", "rows"]);
    assert_eq!(required::<JobStart>(), ["exec"]);
    assert!(required::<Find>().is_empty());
    assert!(required::<VaultList>().is_empty());
}

/// The smallest request of every row can be read.
#[test]
fn every_request_has_a_smallest() {
    struct Reads;
    impl EachRow for Reads {
        fn row<O: Served>(&mut self) {
            let read = serde_json::from_value::<O>(smallest::<O>().into());
            assert!(read.is_ok(), "{}: {:?}", O::NAME, read.err());
        }
    }
    each_row(&mut Reads);
}

/// Every `$ref` in a document.
fn references(value: &serde_json::Value, found: &mut BTreeSet<String>) {
    match value {
        serde_json::Value::Object(fields) => {
            if let Some(name) = fields.get("$ref").and_then(|it| it.as_str()) {
                found.insert(name.to_owned());
            }
            fields.values().for_each(|it| references(it, found));
        }
        serde_json::Value::Array(items) => items.iter().for_each(|it| references(it, found)),
        _ => {}
    }
}

#[test]
fn the_openapi_document_has_every_row_and_refers_to_nothing_that_is_not_there() {
    let document = openapi();
    for row in OPERATIONS {
        let method = row.method.as_str().to_ascii_lowercase();
        let operation = &document["paths"][row.route][&method];
        assert_eq!(operation["operationId"], row.name, "{}", row.route);
        assert_eq!(operation["summary"], row.sentence);
        assert_eq!(operation["x-avfs-scope"], row.scope.as_str());
        let answers = operation["responses"]["200"]["content"].as_object();
        assert!(answers.is_some_and(|it| !it.is_empty()), "{}", row.name);
    }
    let mut found = BTreeSet::new();
    references(&document, &mut found);
    assert!(found.len() > 100, "{}", found.len());
    for name in found {
        let place = name.strip_prefix('#').unwrap();
        assert!(document.pointer(place).is_some(), "{name}");
    }
}

/// The fields that the document requires are those that a request cannot be read without.
#[test]
fn the_openapi_document_requires_what_serde_requires() {
    struct Requires(serde_json::Value, usize);
    impl EachRow for Requires {
        fn row<O: Served>(&mut self) {
            let row = O::ROW;
            let method = row.method.as_str().to_ascii_lowercase();
            let operation = &self.0["paths"][row.route][&method];
            let body = &operation["requestBody"]["content"]["application/json"]["schema"]["$ref"];
            let mut listed: BTreeSet<String> = match body.as_str() {
                Some(name) => {
                    let schema = self.0.pointer(&name[1..]).unwrap();
                    let required = schema["required"].as_array();
                    let required = required.into_iter().flatten();
                    required.map(|it| it.as_str().unwrap().into()).collect()
                }
                None => {
                    let parameters = operation["parameters"].as_array();
                    let parameters = parameters.into_iter().flatten();
                    let required = parameters.filter(|it| it["required"] == true);
                    required
                        .map(|it| it["name"].as_str().unwrap().into())
                        .collect()
                }
            };
            if row.route.contains("{vault}") {
                listed.remove("vault");
            }
            let needed: BTreeSet<String> = smallest::<O>().keys().cloned().collect();
            self.1 += needed.len();
            assert_eq!(listed, needed, "{}", row.name);
        }
    }
    let mut requires = Requires(openapi(), 0);
    each_row(&mut requires);
    assert!(requires.1 > 50, "{}", requires.1);
}
