//! Sandboxes come and go.

use super::LIST;
use crate::mcp::answer::{Json, Plain};
use crate::mcp::guide::lifecycle::no_image;
use crate::mcp::guide::workspace::{Marks, start, state, stop};
use crate::mcp::hands::Hands;
use crate::mcp::tools::Asked;
use crate::ops::failure::Failure;
use crate::wire::{VaultCreate, VaultDelete, VaultFork, VaultList};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use std::fmt::Write;

/// What holds a sandbox, in agentkernel's column.
const BACKEND: &str = "namespace";

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Create {
    name: String,
    image: Option<String>,
}

impl Asked for Create {
    const NAME: &'static str = "sandbox_create";
    const SENTENCE: &'static str = "Create a sandbox that stays until it is removed.";
    const ROWS: &'static [&'static str] = &["vault_create"];
    type Answer = Plain;

    async fn run(self, hands: &Hands) -> Result<Plain, Failure> {
        no_image(self.image.as_deref())?;
        let image = self.image.unwrap_or_else(|| "host".into());
        let created = hands.ask("", &VaultCreate::named(self.name)).await?;
        let name = created.created;
        Ok(Plain(format!(
            "Sandbox '{name}' created and started with image '{image}'"
        )))
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct List {}

impl Asked for List {
    const NAME: &'static str = "sandbox_list";
    const SENTENCE: &'static str = "List the sandboxes.";
    const ROWS: &'static [&'static str] = &["vault_list", "meta_list"];
    type Answer = Plain;

    async fn run(self, hands: &Hands) -> Result<Plain, Failure> {
        let mut rows = String::from("NAME\tSTATUS\tBACKEND");
        for vault in hands
            .ask("", &VaultList::default())
            .await?
            .vaults
            .into_iter()
            .take(200)
        {
            let marks = Marks::of(hands, &vault.name).await.unwrap_or_default();
            let _ = write!(rows, "\n{}\t{}\t{BACKEND}", vault.name, state(&marks));
        }
        Ok(Plain(rows))
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Remove {
    name: String,
}

impl Asked for Remove {
    const NAME: &'static str = "sandbox_remove";
    const SENTENCE: &'static str = "Remove a sandbox and end what runs in it.";
    const ROWS: &'static [&'static str] = &["vault_delete"];
    const IF_MISSING: Option<&'static str> = LIST;
    type Answer = Plain;

    async fn run(self, hands: &Hands) -> Result<Plain, Failure> {
        let removed = hands.ask(&self.name, &VaultDelete { force: true }).await?;
        Ok(Plain(format!("Sandbox '{}' removed", removed.deleted)))
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Start {
    name: String,
}

impl Asked for Start {
    const NAME: &'static str = "sandbox_start";
    const SENTENCE: &'static str = "Start a stopped sandbox.";
    const ROWS: &'static [&'static str] = &["meta_list", "meta_delete"];
    const IF_MISSING: Option<&'static str> = LIST;
    type Answer = Plain;

    async fn run(self, hands: &Hands) -> Result<Plain, Failure> {
        start(hands, &self.name).await?;
        Ok(Plain(format!("Sandbox '{}' started", self.name)))
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Stop {
    name: String,
}

impl Asked for Stop {
    const NAME: &'static str = "sandbox_stop";
    const SENTENCE: &'static str = "Stop a sandbox: what runs in it ends, its files stay.";
    const ROWS: &'static [&'static str] = &["job_list", "job_kill", "meta_import"];
    const IF_MISSING: Option<&'static str> = LIST;
    type Answer = Plain;

    async fn run(self, hands: &Hands) -> Result<Plain, Failure> {
        stop(hands, &self.name).await?;
        Ok(Plain(format!("Sandbox '{}' stopped", self.name)))
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Fork {
    name: String,
    as_name: String,
}

impl Asked for Fork {
    const NAME: &'static str = "sandbox_fork";
    const SENTENCE: &'static str = "Make a sandbox that begins as another is now.";
    const ROWS: &'static [&'static str] = &["vault_fork"];
    const IF_MISSING: Option<&'static str> = LIST;
    type Answer = Json;

    async fn run(self, hands: &Hands) -> Result<Json, Failure> {
        let fork = VaultFork {
            name: self.as_name,
            checkpoint: None,
            version: None,
            make_current: false,
        };
        let forked = hands.ask(&self.name, &fork).await?;
        Ok(Json(json!({
            "sandbox": { "name": forked.name, "status": "running", "backend": BACKEND },
            "security_warning": null,
        })))
    }
}
