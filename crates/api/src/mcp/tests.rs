//! What holds of every tool.

use super::server::{Wanted, described};
use super::tools::Toolset;
use super::{exempt, resources};
use crate::table::{OPERATIONS, Who};
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
fn every_row_has_a_tool_or_a_reason() {
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
