//! Tools: each is made of rows of the table, takes arguments of one type and answers with another. Unknown arguments are
//! refused, as those types refuse them.

use super::answer::{self, Reply};
use super::hands::Hands;
use super::{core, guide, sandbox, schema};
use crate::ops::failure::Failure;
use crate::table::{Effect, OPERATIONS};
use avfs_runtime::ErrorKind;
use rmcp::model::{self, CallToolResult, JsonObject, ToolAnnotations};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::pin::Pin;
use std::sync::Arc;

/// A tool; the type is what it takes.
pub(crate) trait Asked: DeserializeOwned + JsonSchema + Send + 'static {
    const NAME: &'static str;
    /// What it does. Clients look for tools by its first words.
    const SENTENCE: &'static str;
    /// The operations that it is made of.
    const ROWS: &'static [&'static str];
    /// What to call when something that was named is not there.
    const IF_MISSING: Option<&'static str> = None;
    type Answer: Reply;

    fn run(self, hands: &Hands) -> impl Future<Output = Result<Self::Answer, Failure>> + Send;
}

type Running<'a> = Pin<Box<dyn Future<Output = CallToolResult> + Send + 'a>>;

/// A tool without its types.
pub(crate) struct Tool {
    pub name: &'static str,
    pub sentence: &'static str,
    pub rows: &'static [&'static str],
    input: fn() -> JsonObject,
    output: fn() -> Option<JsonObject>,
    run: for<'a> fn(&'a Hands, JsonObject) -> Running<'a>,
}

impl Tool {
    pub const fn new<T: Asked>() -> Tool {
        Tool {
            name: T::NAME,
            sentence: T::SENTENCE,
            rows: T::ROWS,
            input: schema::input::<T>,
            output: T::Answer::schema,
            run: |hands, arguments| Box::pin(call::<T>(hands, arguments)),
        }
    }

    /// Runs it; whatever goes wrong is an answer that the model reads.
    pub fn run<'a>(&self, hands: &'a Hands, arguments: JsonObject) -> Running<'a> {
        (self.run)(hands, arguments)
    }

    /// What a client is told of it.
    pub fn describe(&self) -> model::Tool {
        let mut tool = model::Tool::new(self.name, self.sentence, (self.input)());
        tool.output_schema = (self.output)().map(Arc::new);
        tool.with_annotations(self.annotations())
    }

    /// What its rows leave behind, taken together. Nothing here reaches the world outside.
    fn annotations(&self) -> ToolAnnotations {
        let effects: Vec<Effect> = effects(self.rows);
        let all = |holds: fn(Effect) -> bool| effects.iter().copied().all(holds);
        let reads = all(Effect::is_read_only);
        ToolAnnotations::new()
            .read_only(reads)
            .destructive(effects.iter().any(|it| it.is_destructive()))
            .idempotent(all(Effect::is_idempotent))
            .open_world(false)
    }
}

fn effects(rows: &[&str]) -> Vec<Effect> {
    let row = |name: &&str| OPERATIONS.iter().find(|row| row.name == *name);
    let rows = rows.iter().filter_map(row);
    rows.map(|row| row.effect).collect()
}

async fn call<T: Asked>(hands: &Hands, arguments: JsonObject) -> CallToolResult {
    let asked = match serde_json::from_value::<T>(Value::Object(arguments)) {
        Ok(asked) => asked,
        Err(error) => {
            let failure = Failure::invalid(format!("{}: {error}", T::NAME));
            let next = format!("call {} again as its schema says", T::NAME);
            return answer::failed(&failure, Some(next));
        }
    };
    match asked.run(hands).await {
        Ok(said) => said.reply(),
        Err(failure) => answer::failed(&failure, next::<T>(&failure)),
    }
}

/// What to do about a failure, in terms of tools.
fn next<T: Asked>(failure: &Failure) -> Option<String> {
    let problem = failure.problem();
    let kind = ErrorKind::parse(&problem.kind)?;
    let advice = match kind {
        ErrorKind::NotFound if problem.path.is_none() => T::IF_MISSING?,
        ErrorKind::NotFound => "look for it by name with a search, or list the directory above it",
        ErrorKind::AlreadyExists => "choose another name, or use what is there",
        ErrorKind::Conflict => "wait for what is in the way, or ask for it to be ended",
        ErrorKind::Denied => "do without it, or tell the owner what you need and why",
        ErrorKind::NeedsApproval => "ask the owner to answer, then repeat the call",
        ErrorKind::Quota => "remove what is not needed, or ask the owner for a larger limit",
        ErrorKind::Unavailable if problem.hint.is_some() => "do as the hint says",
        ErrorKind::Unavailable | ErrorKind::TimedOut => "try again in a moment",
        ErrorKind::Invalid => "correct the arguments",
        ErrorKind::Corrupt | ErrorKind::Bug => "tell the owner",
    };
    Some(advice.to_owned())
}

/// A set of tools that a client can be given.
#[derive(Copy, Clone, Debug, Eq, PartialEq)]
pub enum Toolset {
    /// Few tools for nine tenths of the work.
    Core,
    /// The flat workspace tools of agentiso's guide.
    Guide,
    /// The names of agentkernel.
    Sandbox,
}

impl Toolset {
    pub const ALL: [Toolset; 3] = [Toolset::Core, Toolset::Guide, Toolset::Sandbox];

    pub fn as_str(self) -> &'static str {
        match self {
            Toolset::Core => "core",
            Toolset::Guide => "guide",
            Toolset::Sandbox => "sandbox",
        }
    }

    /// The set with this name.
    pub fn parse(text: &str) -> Option<Toolset> {
        Toolset::ALL.into_iter().find(|set| set.as_str() == text)
    }

    pub(crate) fn tools(self) -> &'static [Tool] {
        match self {
            Toolset::Core => core::TOOLS,
            Toolset::Guide => guide::TOOLS,
            Toolset::Sandbox => sandbox::TOOLS,
        }
    }
}
