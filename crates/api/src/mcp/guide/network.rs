//! Networks of workspaces: there are none, and each tool says so.

use super::LIST;
use super::workspace::{WorkspaceId, described, without_network};
use crate::mcp::answer::Json;
use crate::mcp::hands::Hands;
use crate::mcp::tools::Asked;
use crate::ops::failure::Failure;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "it is read only to be refused in the end")]
pub(super) struct PortForward {
    workspace_id: WorkspaceId,
    guest_port: u16,
    host_port: Option<u16>,
}

impl Asked for PortForward {
    const NAME: &'static str = "port_forward";
    const SENTENCE: &'static str =
        "Forward a port of the host to a workspace; refused, as workspaces have no network.";
    const ROWS: &'static [&'static str] = &["vault_list"];
    type Answer = Json;

    async fn run(self, _: &Hands) -> Result<Json, Failure> {
        Err(without_network("port_forward"))
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "it is read only to be refused in the end")]
pub(super) struct PortForwardRemove {
    workspace_id: WorkspaceId,
    guest_port: u16,
}

impl Asked for PortForwardRemove {
    const NAME: &'static str = "port_forward_remove";
    const SENTENCE: &'static str = "Remove a forwarded port; there are none.";
    const ROWS: &'static [&'static str] = &["vault_list"];
    type Answer = Json;

    async fn run(self, _: &Hands) -> Result<Json, Failure> {
        Err(without_network("port_forward_remove"))
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Policy {
    workspace_id: WorkspaceId,
    #[serde(default)]
    allow_internet: bool,
    #[serde(default)]
    allow_inter_vm: bool,
    #[serde(default)]
    allowed_ports: Vec<u16>,
}

impl Asked for Policy {
    const NAME: &'static str = "network_policy";
    const SENTENCE: &'static str = "Say what network a workspace has; none can be given.";
    const ROWS: &'static [&'static str] = &["vault_list", "vault_info"];
    const IF_MISSING: Option<&'static str> = LIST;
    type Answer = Json;

    async fn run(self, hands: &Hands) -> Result<Json, Failure> {
        if self.allow_internet || self.allow_inter_vm || !self.allowed_ports.is_empty() {
            return Err(without_network("network_policy"));
        }
        let vault = self.workspace_id.name(hands).await?;
        Ok(Json(json!({
            "workspace_id": described(hands, &vault).await?.id,
            "network_policy": {
                "allow_internet": false, "allow_inter_vm": false, "allowed_ports": [],
            },
        })))
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "it is read only to be refused in the end")]
pub(super) struct Ip {
    workspace_id: WorkspaceId,
}

impl Asked for Ip {
    const NAME: &'static str = "workspace_ip";
    const SENTENCE: &'static str = "Say the address of a workspace; it has none.";
    const ROWS: &'static [&'static str] = &["vault_list"];
    type Answer = Json;

    async fn run(self, _: &Hands) -> Result<Json, Failure> {
        Err(without_network("workspace_ip"))
    }
}
