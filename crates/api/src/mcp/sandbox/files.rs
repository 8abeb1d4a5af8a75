//! Files of sandboxes.

use super::LIST;
use crate::mcp::answer::{Plain, word};
use crate::mcp::hands::Hands;
use crate::mcp::tools::Asked;
use crate::ops::failure::Failure;
use crate::wire;
use schemars::JsonSchema;
use serde::Deserialize;
use std::collections::BTreeMap;

async fn write(hands: &Hands, vault: &str, path: &str, content: &str) -> Result<(), Failure> {
    let write = wire::Write {
        path: path.to_owned(),
        path_b64: None,
        content: content.to_owned(),
        content_b64: None,
        append: false,
        parents: true,
        mode: None,
    };
    hands.ask(vault, &write).await.map(drop)
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Write {
    name: String,
    path: String,
    content: String,
}

impl Asked for Write {
    const NAME: &'static str = "sandbox_file_write";
    const SENTENCE: &'static str = "Write a file in a sandbox.";
    const ROWS: &'static [&'static str] = &["write"];
    const IF_MISSING: Option<&'static str> = LIST;
    type Answer = Plain;

    async fn run(self, hands: &Hands) -> Result<Plain, Failure> {
        write(hands, &self.name, &self.path, &self.content).await?;
        let (size, path, name) = (self.content.len(), self.path, self.name);
        Ok(Plain(format!(
            "Wrote {size} bytes to '{path}' in sandbox '{name}'"
        )))
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct WriteAll {
    name: String,
    /// Content by path.
    files: BTreeMap<String, String>,
}

impl Asked for WriteAll {
    const NAME: &'static str = "sandbox_write_files";
    const SENTENCE: &'static str = "Write several files in a sandbox.";
    const ROWS: &'static [&'static str] = &["write"];
    const IF_MISSING: Option<&'static str> = LIST;
    type Answer = Plain;

    async fn run(self, hands: &Hands) -> Result<Plain, Failure> {
        for (path, content) in &self.files {
            write(hands, &self.name, path, content).await?;
        }
        Ok(Plain(format!(
            "Wrote {} files in sandbox '{}'",
            self.files.len(),
            self.name
        )))
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Read {
    name: String,
    path: String,
}

impl Asked for Read {
    const NAME: &'static str = "sandbox_file_read";
    const SENTENCE: &'static str = "Read a file of a sandbox.";
    const ROWS: &'static [&'static str] = &["cat"];
    const IF_MISSING: Option<&'static str> = LIST;
    type Answer = Plain;

    async fn run(self, hands: &Hands) -> Result<Plain, Failure> {
        let cat = wire::Cat {
            path: self.path,
            path_b64: None,
            version: None,
            offset: 0,
            limit: None,
        };
        let body = hands.ask(&self.name, &cat).await?;
        if body.more {
            let what = format!(
                "{} has {} bytes, more than one answer holds",
                body.path, body.size
            );
            return Err(Failure::invalid(what).hint("read parts of it with sandbox_exec"));
        }
        Ok(Plain(match body.content_b64 {
            None => body.content,
            Some(bytes) => {
                let size = bytes.0.len();
                format!(
                    "[binary file, {size} bytes, base64 encoded]\n{}",
                    word(bytes)
                )
            }
        }))
    }
}
