//! Files of workspaces.

use super::LIST;
use super::workspace::WorkspaceId;
use crate::mcp::answer::{Json, Plain, word};
use crate::mcp::hands::Hands;
use crate::mcp::tools::Asked;
use crate::ops::failure::Failure;
use crate::wire;
use avfs_runtime::ErrorKind;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Write {
    workspace_id: WorkspaceId,
    path: String,
    content: String,
    /// Octal; 0644 when left out.
    mode: Option<String>,
}

impl Asked for Write {
    const NAME: &'static str = "file_write";
    const SENTENCE: &'static str = "Write a whole file in a workspace.";
    const ROWS: &'static [&'static str] = &["vault_list", "write"];
    const IF_MISSING: Option<&'static str> = LIST;
    type Answer = Plain;

    async fn run(self, hands: &Hands) -> Result<Plain, Failure> {
        let vault = self.workspace_id.name(hands).await?;
        let write = wire::Write {
            path: self.path,
            path_b64: None,
            content: self.content,
            content_b64: None,
            append: false,
            parents: true,
            mode: Some(self.mode.unwrap_or_else(|| "0644".into())),
        };
        let written = hands.ask(&vault, &write).await?;
        Ok(Plain(format!("File written: {}", written.path)))
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Read {
    workspace_id: WorkspaceId,
    path: String,
    /// In bytes, as is limit.
    #[serde(default)]
    offset: u64,
    limit: Option<u64>,
}

impl Asked for Read {
    const NAME: &'static str = "file_read";
    const SENTENCE: &'static str = "Read a text file of a workspace.";
    const ROWS: &'static [&'static str] = &["vault_list", "cat"];
    const IF_MISSING: Option<&'static str> = LIST;
    type Answer = Plain;

    async fn run(self, hands: &Hands) -> Result<Plain, Failure> {
        let vault = self.workspace_id.name(hands).await?;
        let cat = wire::Cat {
            path: self.path,
            path_b64: None,
            version: None,
            offset: self.offset,
            limit: self.limit,
        };
        let body = hands.ask(&vault, &cat).await?;
        match body.content_b64 {
            None => Ok(Plain(body.content)),
            Some(_) => {
                let what = format!("{} is no text", body.path);
                Err(Failure::invalid(what).hint("look at it with exec: `xxd`, `file`"))
            }
        }
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Edit {
    workspace_id: WorkspaceId,
    path: String,
    old_string: String,
    new_string: String,
}

impl Asked for Edit {
    const NAME: &'static str = "file_edit";
    const SENTENCE: &'static str = "Replace the first occurrence of a text in a file.";
    const ROWS: &'static [&'static str] = &["vault_list", "cat", "edit"];
    const IF_MISSING: Option<&'static str> = LIST;
    type Answer = Plain;

    async fn run(self, hands: &Hands) -> Result<Plain, Failure> {
        let vault = self.workspace_id.name(hands).await?;
        let cat = wire::Cat {
            path: self.path.clone(),
            path_b64: None,
            version: None,
            offset: 0,
            limit: None,
        };
        let body = hands.ask(&vault, &cat).await?;
        let is_whole_text = !body.more && body.content_b64.is_none();
        let several = body.content.matches(&self.old_string).nth(1).is_some();
        // All of the file, so that nobody's change in between is lost.
        let (old, new) = match is_whole_text && several && !self.old_string.is_empty() {
            true => {
                let new = body.content.replacen(&self.old_string, &self.new_string, 1);
                (body.content, new)
            }
            false => (self.old_string, self.new_string),
        };
        let edit = wire::Edit {
            path: self.path,
            path_b64: None,
            old,
            old_b64: None,
            new,
            new_b64: None,
            all: false,
        };
        let edited = hands.ask(&vault, &edit).await?;
        Ok(Plain(format!("File edited: {}", edited.path)))
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct List {
    workspace_id: WorkspaceId,
    path: String,
}

impl Asked for List {
    const NAME: &'static str = "file_list";
    const SENTENCE: &'static str = "List a directory of a workspace.";
    const ROWS: &'static [&'static str] = &["vault_list", "ls"];
    const IF_MISSING: Option<&'static str> = LIST;
    type Answer = Json;

    async fn run(self, hands: &Hands) -> Result<Json, Failure> {
        let vault = self.workspace_id.name(hands).await?;
        let ls = wire::Ls {
            path: self.path,
            path_b64: None,
            after: None,
            after_b64: None,
            limit: Some(2_000),
        };
        let listing = hands.ask(&vault, &ls).await?;
        let entries = listing.entries.iter().map(|it| {
            json!({
                "name": it.name, "kind": word(it.attributes.kind), "size": it.attributes.size,
                "permissions": it.attributes.mode, "modified": it.attributes.modified,
            })
        });
        Ok(Json(entries.collect::<Vec<Value>>().into()))
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Upload {
    workspace_id: WorkspaceId,
    /// Beneath the transfer directory.
    host_path: String,
    guest_path: String,
}

impl Asked for Upload {
    const NAME: &'static str = "file_upload";
    const SENTENCE: &'static str =
        "Bring a directory or an archive of the transfer directory into a workspace.";
    const ROWS: &'static [&'static str] = &["vault_list", "transfer_in"];
    const IF_MISSING: Option<&'static str> = LIST;
    type Answer = Plain;

    async fn run(self, hands: &Hands) -> Result<Plain, Failure> {
        let vault = self.workspace_id.name(hands).await?;
        let transfer = wire::TransferIn {
            name: self.host_path.clone(),
            name_b64: None,
            path: self.guest_path.clone(),
            path_b64: None,
            exclude: Vec::new(),
            gitignore: false,
            max_depth: None,
        };
        let done = hands.ask(&vault, &transfer).await?;
        let (from, to, bytes) = (self.host_path, self.guest_path, done.total_bytes);
        Ok(Plain(format!("Uploaded {from} -> {to} ({bytes} bytes)")))
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Download {
    workspace_id: WorkspaceId,
    /// A new name in the transfer directory.
    host_path: String,
    guest_path: String,
}

impl Asked for Download {
    const NAME: &'static str = "file_download";
    const SENTENCE: &'static str =
        "Copy a directory of a workspace to a new name in the transfer directory.";
    const ROWS: &'static [&'static str] = &["vault_list", "transfer_out"];
    const IF_MISSING: Option<&'static str> = LIST;
    type Answer = Plain;

    async fn run(self, hands: &Hands) -> Result<Plain, Failure> {
        let vault = self.workspace_id.name(hands).await?;
        if self.host_path.starts_with('/') {
            let what = "host_path is a name in the transfer directory, not a path of the host";
            return Err(Failure::new(ErrorKind::Denied, what));
        }
        let transfer = wire::TransferOut {
            path: self.guest_path.clone(),
            path_b64: None,
            name: self.host_path.clone(),
            name_b64: None,
        };
        let done = hands.ask(&vault, &transfer).await?;
        let bytes = done.total_bytes;
        let (from, to) = (self.guest_path, self.host_path);
        Ok(Plain(format!("Downloaded {from} -> {to} ({bytes} bytes)")))
    }
}
