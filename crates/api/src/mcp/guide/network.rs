//! Networks of workspaces.

use super::LIST;
use super::workspace::{WorkspaceId, described, without_network};
use crate::mcp::answer::Json;
use crate::mcp::hands::Hands;
use crate::mcp::tools::Asked;
use crate::ops::failure::Failure;
use crate::wire::{NetworkSet, NetworkShow, NetworkState, NetworkWord};
use avfs_runtime::ErrorKind;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

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

/// What is left out stays as it is.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Policy {
    workspace_id: WorkspaceId,
    /// Whether commands reach every host; a wider network is for the owner.
    allow_internet: Option<bool>,
    #[serde(default)]
    allow_inter_vm: bool,
    /// Ports on which they do; all when left out.
    #[serde(default)]
    allowed_ports: Vec<u16>,
}

impl Asked for Policy {
    const NAME: &'static str = "network_policy";
    const SENTENCE: &'static str =
        "Say or change what network a workspace has. A wider one is for the owner.";
    const ROWS: &'static [&'static str] =
        &["vault_list", "vault_info", "network_show", "network_set"];
    const IF_MISSING: Option<&'static str> = LIST;
    type Answer = Json;

    async fn run(self, hands: &Hands) -> Result<Json, Failure> {
        if self.allow_inter_vm {
            let what = "allow_inter_vm: workspaces do not reach each other";
            return Err(Failure::new(ErrorKind::Unavailable, what)
                .hint("the owner forwards a port of one with `avfs port forward`"));
        }
        let vault = self.workspace_id.name(hands).await?;
        let state = match (self.allow_internet, self.allowed_ports.as_slice()) {
            (Some(true), ports) => internet(hands, &vault, ports).await?,
            (Some(false), []) => hands.ask(&vault, &NetworkSet::default()).await?,
            (None, []) => hands.ask(&vault, &NetworkShow {}).await?,
            (Some(false) | None, _) => {
                return Err(Failure::invalid(
                    "allowed_ports goes with allow_internet: true",
                ));
            }
        };
        Ok(Json(json!({
            "workspace_id": described(hands, &vault).await?.id,
            "network_policy": policy(&state),
        })))
    }
}

/// Lets the commands of a workspace reach every host, on these ports if there are any.
pub(super) async fn internet(
    hands: &Hands,
    vault: &str,
    ports: &[u16],
) -> Result<NetworkState, Failure> {
    let hosts = match ports {
        [] => vec!["*:*".to_owned()],
        ports => ports.iter().map(|port| format!("*:{port}")).collect(),
    };
    let set = NetworkSet {
        network: None,
        hosts,
    };
    hands.ask(vault, &set).await
}

/// The guide's words for a network; `allowed_hosts` says it exactly.
pub(super) fn policy(state: &NetworkState) -> Value {
    let every = state
        .hosts
        .iter()
        .filter_map(|rule| rule.strip_prefix("*:"));
    let ports: Vec<u16> = every.filter_map(|port| port.parse().ok()).collect();
    let is_every = |rule: &String| rule == "*" || rule.starts_with("*:");
    let internet = state.network == NetworkWord::Host || state.hosts.iter().any(is_every);
    json!({
        "allow_internet": internet, "allow_inter_vm": false, "allowed_ports": ports,
        "allowed_hosts": state.hosts,
    })
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
