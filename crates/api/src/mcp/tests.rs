//! What holds of every tool.

use super::server::{Wanted, described, protocol_error};
use super::tools::Toolset;
use super::{answer, exempt, resources};
use crate::ops::failure::Failure;
use crate::table::{OPERATIONS, Who};
use crate::wire::Problem;
use avfs_runtime::ErrorKind;
use axum::response::IntoResponse;
use serde_json::Value;
use std::collections::BTreeSet;

/// As many tokens as a tokenizer made of the list of tools, by four bytes each: measured, it was 4.05.
fn tokens(sets: &[Toolset]) -> usize {
    let wanted = Wanted {
        sets: sets.to_vec(),
        ..Wanted::default()
    };
    let tools = serde_json::json!({ "tools": described(&wanted) });
    tools.to_string().len().div_ceil(4)
}

#[test]
fn the_core_tools_are_few_and_cost_little() {
    let count = Toolset::Core.tools().len();
    assert!(count <= 8, "{count} tools");
    let cost = tokens(&[Toolset::Core]);
    assert!(cost < 2_000, "{cost} tokens");
}

/// Every operation can be reached, or it is written down why not.
#[test]
fn table_rows_each_have_a_tool_or_a_reason() {
    let tools = Toolset::ALL.into_iter().flat_map(Toolset::tools);
    let mut reached: BTreeSet<&str> = tools.flat_map(|tool| tool.rows).copied().collect();
    reached.extend(resources::ROWS);
    for row in OPERATIONS {
        let exempt = exempt::ROWS.iter().any(|(name, _)| *name == row.name);
        assert!(
            reached.contains(row.name) != exempt,
            "{}: a tool ({}) or a reason ({exempt})",
            row.name,
            reached.contains(row.name)
        );
        if row.who == Who::Owner {
            assert!(exempt, "{} is the owner's", row.name);
        }
    }
    let known: BTreeSet<&str> = OPERATIONS.iter().map(|row| row.name).collect();
    let named = reached
        .iter()
        .chain(exempt::ROWS.iter().map(|(name, _)| name));
    for name in named {
        assert!(known.contains(name), "there is no operation {name}");
    }
}

#[test]
fn every_tool_is_described_well() {
    for set in Toolset::ALL {
        let wanted = Wanted {
            sets: vec![set],
            ..Wanted::default()
        };
        let tools = described(&wanted);
        let names: BTreeSet<_> = tools.iter().map(|tool| tool.name.clone()).collect();
        assert_eq!(names.len(), set.tools().len(), "{}", set.as_str());
        for tool in tools {
            let name = &tool.name;
            assert!(
                tool.description.is_some_and(|it| it.ends_with('.')),
                "{name}"
            );
            let schema = &tool.input_schema;
            assert_eq!(
                schema.get("additionalProperties"),
                Some(&false.into()),
                "{name}"
            );
            assert!(!schema.contains_key("$defs"), "{name}");
            let hints = tool.annotations.expect("hints");
            let hints = serde_json::to_value(hints).expect("plain data");
            assert_eq!(hints.as_object().map(|it| it.len()), Some(4), "{name}");
            assert_eq!(hints["openWorldHint"], false, "{name}");
        }
        assert_eq!(Toolset::parse(set.as_str()), Some(set));
    }
}

/// A tool that says that it only reads is made of rows that only read, and the other way round.
#[test]
fn hints_are_those_of_the_rows() {
    let tools = described(&Wanted::default());
    let reads = |name: &str| {
        let tool = tools.iter().find(|tool| tool.name == name).expect("a tool");
        let hints = tool.annotations.as_ref().expect("hints");
        (
            hints.read_only_hint,
            hints.destructive_hint,
            hints.idempotent_hint,
        )
    };
    assert_eq!(reads("read"), (Some(true), Some(false), Some(true)));
    assert_eq!(reads("search"), (Some(true), Some(false), Some(true)));
    assert_eq!(reads("exec"), (Some(false), Some(true), Some(false)));
    assert_eq!(reads("vault"), (Some(false), Some(true), Some(false)));
}

/// Says, past the capture of output, that something was left out.
pub(super) fn skip(why: &str) {
    use std::io::Write;
    let _ = writeln!(std::io::stderr(), "SKIPPED: {why}");
}

/// What a client of HTTP reads.
fn by_http(failure: Failure) -> Problem {
    let body = failure.into_response().into_body();
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    let runtime = runtime.expect("a runtime");
    let bytes = runtime.block_on(axum::body::to_bytes(body, 1 << 20));
    serde_json::from_slice(&bytes.expect("a body")).expect("a problem")
}

#[test]
fn table_errors_have_one_kind_on_every_surface() {
    for kind in ErrorKind::ALL {
        let failure = || Failure::new(kind, "what").hint("how").at("/p");
        let problem = by_http(failure());
        assert_eq!(problem.kind, kind.as_str());
        let told = crate::Error::Refused(Box::new(problem));
        assert_eq!(told.kind(), kind, "the command line and the library");
        let answered = answer::failed(&failure(), None);
        assert_eq!(answered.is_error, Some(true));
        let answered = serde_json::to_value(answered).expect("plain data");
        let text = answered["content"][0]["text"].as_str().expect("a text");
        let text: Value = serde_json::from_str(text).expect("JSON");
        assert_eq!(text["error"], kind.as_str(), "a tool");
        assert_eq!(
            (&text["hint"], &text["path"]),
            (&"how".into(), &"/p".into())
        );
        let refused = protocol_error(&failure()).data.expect("more words");
        assert_eq!(refused["error"], kind.as_str(), "a resource");
    }
}

/// Every operation of the table can be served, and says who may ask for it.
#[test]
fn table_rows_each_have_a_handler() {
    let served = crate::ops::erased::all();
    let served: Vec<&str> = served.iter().map(|it| it.row.name).collect();
    let listed: Vec<&str> = OPERATIONS.iter().map(|row| row.name).collect();
    assert_eq!(served, listed);
    for (name, reason) in exempt::ROWS {
        assert!(reason.len() > 10, "{name}: {reason:?} is no reason");
    }
}
