//! Reading and changing files.

use super::LIST_VAULTS;
use crate::mcp::answer::{Object, bytes_of, fitting, word};
use crate::mcp::hands::Hands;
use crate::mcp::tools::Asked;
use crate::ops::failure::Failure;
use crate::wire::{Base64, Cat, Edit, Ls, Output, Stat, StreamWord, TypeWord, Write, from_text};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ReadTool {
    /// A file, or a directory to list.
    path: Option<String>,
    /// Instead of a path: what this exec wrote.
    exec: Option<String>,
    stream: Option<StreamName>,
    vault: Option<String>,
    /// Bytes, as is limit.
    #[serde(default)]
    offset: u64,
    limit: Option<u64>,
    version: Option<u64>,
    max_tokens: Option<usize>,
}

#[derive(Copy, Clone, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum StreamName {
    #[default]
    Stdout,
    Stderr,
}

impl From<StreamName> for StreamWord {
    fn from(name: StreamName) -> StreamWord {
        match name {
            StreamName::Stdout => StreamWord::Stdout,
            StreamName::Stderr => StreamWord::Stderr,
        }
    }
}

#[derive(Default, Serialize, JsonSchema)]
pub(crate) struct ReadSaid {
    #[serde(skip_serializing_if = "Option::is_none")]
    content: Option<String>,
    /// Where it is no text.
    #[serde(skip_serializing_if = "Option::is_none")]
    base64: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    entries: Option<Vec<EntryLine>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    size: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_offset: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(skip)]
    version: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct EntryLine {
    name: String,
    r#type: String,
    size: u64,
}

impl Asked for ReadTool {
    const NAME: &'static str = "read";
    const SENTENCE: &'static str =
        "Read a file, list a directory, or read the output of an earlier exec that was cut.";
    const ROWS: &'static [&'static str] = &["cat", "ls", "stat", "output"];
    const IF_MISSING: Option<&'static str> = LIST_VAULTS;
    type Answer = Object<ReadSaid>;

    async fn run(self, hands: &Hands) -> Result<Object<ReadSaid>, Failure> {
        let budget = bytes_of(self.max_tokens);
        let limit = self.limit.unwrap_or(u64::MAX).min(budget as u64);
        let said = match (&self.path, &self.exec) {
            (Some(path), None) => self.read_path(hands, path, limit).await?,
            (None, Some(exec)) => self.read_output(hands, exec, limit).await?,
            _ => return Err(Failure::invalid("read takes either a path or an exec")),
        };
        Ok(Object(said))
    }
}

impl ReadTool {
    async fn read_path(&self, hands: &Hands, path: &str, limit: u64) -> Result<ReadSaid, Failure> {
        let vault = hands.vault(self.vault.as_deref());
        let cat = Cat {
            path: path.to_owned(),
            path_b64: None,
            version: self.version,
            offset: self.offset,
            limit: Some(limit),
        };
        let body = match hands.ask(vault, &cat).await {
            Ok(body) => body,
            Err(failure) => return self.list(hands, vault, path, failure).await,
        };
        let bytes = from_text(&body.content, body.content_b64.as_ref());
        let mut said = part(bytes, self.offset, body.size, limit);
        said.version = Some(body.version);
        Ok(said)
    }

    /// What is in a directory; if it is none, the failure to read it.
    async fn list(
        &self,
        hands: &Hands,
        vault: &str,
        path: &str,
        failure: Failure,
    ) -> Result<ReadSaid, Failure> {
        let stat = Stat {
            path: path.to_owned(),
            path_b64: None,
        };
        match hands.ask(vault, &stat).await {
            Ok(stat) if stat.attributes.kind == TypeWord::Directory => {}
            _ => return Err(failure),
        }
        let ls = Ls {
            path: path.to_owned(),
            path_b64: None,
            after: None,
            after_b64: None,
            limit: None,
        };
        let listing = hands.ask(vault, &ls).await?;
        let lines = listing.entries.into_iter().map(|entry| EntryLine {
            name: entry.name,
            r#type: word(entry.attributes.kind),
            size: entry.attributes.size,
        });
        let (entries, whole) = fitting(lines.collect(), bytes_of(self.max_tokens));
        let next = "there are more; search by name, or read a directory below";
        Ok(ReadSaid {
            entries: Some(entries),
            next: (listing.more || !whole).then(|| next.into()),
            ..ReadSaid::default()
        })
    }

    async fn read_output(
        &self,
        hands: &Hands,
        exec: &str,
        limit: u64,
    ) -> Result<ReadSaid, Failure> {
        let output = Output {
            exec: exec.to_owned(),
            stream: self.stream.unwrap_or_default().into(),
            from: self.offset,
            to: Some(self.offset.saturating_add(limit)),
        };
        let read = hands.ask("", &output).await?;
        let bytes = from_text(&read.data, read.data_b64.as_ref());
        Ok(part(bytes, read.from, read.kept, limit))
    }
}

/// A part of something, as text where it is some. A character that was cut in two is left to the next part.
fn part(mut bytes: Vec<u8>, offset: u64, size: u64, limit: u64) -> ReadSaid {
    let whole = match std::str::from_utf8(&bytes) {
        Ok(text) => Some(text.len()),
        Err(error) if error.error_len().is_none() && error.valid_up_to() > 0 => {
            Some(error.valid_up_to())
        }
        Err(_) => None,
    };
    let mut said = ReadSaid {
        size: Some(size),
        ..ReadSaid::default()
    };
    // Base64 is a third longer than what it stands for.
    bytes.truncate(whole.unwrap_or(bytes.len().min((limit as usize).div_ceil(4) * 3)));
    let end = offset + bytes.len() as u64;
    said.next_offset = (end < size).then_some(end);
    match whole {
        Some(_) => said.content = String::from_utf8(bytes).ok(),
        None => {
            let text = serde_json::to_value(Base64(bytes)).ok();
            said.base64 = text.and_then(|text| text.as_str().map(str::to_owned));
        }
    }
    said
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct WriteTool {
    path: String,
    content: String,
    vault: Option<String>,
    #[serde(default)]
    append: bool,
    /// Octal.
    mode: Option<String>,
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct WriteSaid {
    path: String,
    size: u64,
    version: u64,
}

impl Asked for WriteTool {
    const NAME: &'static str = "write";
    const SENTENCE: &'static str = "Write a whole file, making directories above it.";
    const ROWS: &'static [&'static str] = &["write"];
    const IF_MISSING: Option<&'static str> = LIST_VAULTS;
    type Answer = Object<WriteSaid>;

    async fn run(self, hands: &Hands) -> Result<Object<WriteSaid>, Failure> {
        let write = Write {
            path: self.path,
            path_b64: None,
            content: self.content,
            content_b64: None,
            append: self.append,
            parents: true,
            mode: self.mode,
        };
        let written = hands
            .ask(hands.vault(self.vault.as_deref()), &write)
            .await?;
        Ok(Object(WriteSaid {
            path: written.path,
            size: written.size,
            version: written.version,
        }))
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct EditTool {
    path: String,
    /// Exact text, found once.
    old: String,
    new: String,
    vault: Option<String>,
    /// Replace every occurrence.
    #[serde(default)]
    all: bool,
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct EditSaid {
    path: String,
    replacements: usize,
    size: u64,
    version: u64,
}

impl Asked for EditTool {
    const NAME: &'static str = "edit";
    const SENTENCE: &'static str = "Replace an exact text in a file.";
    const ROWS: &'static [&'static str] = &["edit"];
    const IF_MISSING: Option<&'static str> = LIST_VAULTS;
    type Answer = Object<EditSaid>;

    async fn run(self, hands: &Hands) -> Result<Object<EditSaid>, Failure> {
        let edit = Edit {
            path: self.path,
            path_b64: None,
            old: self.old,
            old_b64: None,
            new: self.new,
            new_b64: None,
            all: self.all,
        };
        let edited = hands.ask(hands.vault(self.vault.as_deref()), &edit).await?;
        Ok(Object(EditSaid {
            path: edited.path,
            replacements: edited.replacements,
            size: edited.size,
            version: edited.version,
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_text_join_where_characters_end() {
        let text = "aä€😀".repeat(9);
        for limit in 4..30_u64 {
            let (mut read, mut offset) = (String::new(), Some(0_u64));
            while let Some(at) = offset {
                let end = text.len().min((at + limit) as usize);
                let bytes = text.as_bytes()[at as usize..end].to_vec();
                let said = part(bytes, at, text.len() as u64, limit);
                read.push_str(&said.content.expect("it is text"));
                offset = said.next_offset;
            }
            assert_eq!(read, text, "{limit}");
        }
    }

    #[test]
    fn what_is_no_text_is_base64() {
        let said = part(vec![0xff; 100], 0, 100, 40);
        assert!(said.content.is_none());
        assert_eq!(said.base64.map(|text| text.len()), Some(40));
        assert_eq!(said.next_offset, Some(30));
    }
}
