//! Networks of workspaces, and the ports that lead into them.

use super::LIST;
use super::workspace::{WorkspaceId, described};
use crate::mcp::answer::Json;
use crate::mcp::hands::Hands;
use crate::mcp::tools::Asked;
use crate::ops::failure::Failure;
use crate::wire::{NetworkSet, NetworkShow, NetworkState, NetworkWord, PortItem, PortList};
use avfs_runtime::ErrorKind;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct PortForward {
    workspace_id: WorkspaceId,
    guest_port: u16,
    host_port: Option<u16>,
}

impl Asked for PortForward {
    const NAME: &'static str = "port_forward";
    const SENTENCE: &'static str =
        "Say which port of the host leads to a port of a workspace; only the owner opens one.";
    const ROWS: &'static [&'static str] = &["vault_list", "vault_info", "port_list"];
    const IF_MISSING: Option<&'static str> = LIST;
    type Answer = Json;

    async fn run(self, hands: &Hands) -> Result<Json, Failure> {
        let vault = self.workspace_id.name(hands).await?;
        let id = described(hands, &vault).await?.id;
        let opened = opened(hands, &vault, self.guest_port).await?;
        let wanted = |port: &&PortItem| self.host_port.is_none_or(|it| it == port.host_port);
        match opened.iter().find(wanted) {
            Some(port) => Ok(Json(json!({
                "workspace_id": id,
                "guest_port": self.guest_port,
                "host_port": port.host_port,
                "host": port.listen,
            }))),
            None => {
                let host = self.host_port.map(|port| format!(" {port}"));
                let host = host.unwrap_or_default();
                let command = format!("avfs port forward {vault} {}{host}", self.guest_port);
                let what = "a port of the host is the owner's to open, and none leads there";
                Err(by_owner(what, &command))
            }
        }
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct PortForwardRemove {
    workspace_id: WorkspaceId,
    guest_port: u16,
}

impl Asked for PortForwardRemove {
    const NAME: &'static str = "port_forward_remove";
    const SENTENCE: &'static str =
        "Close a port of the host that leads to a port of a workspace; only the owner does.";
    const ROWS: &'static [&'static str] = &["vault_list", "vault_info", "port_list"];
    const IF_MISSING: Option<&'static str> = LIST;
    type Answer = Json;

    async fn run(self, hands: &Hands) -> Result<Json, Failure> {
        let vault = self.workspace_id.name(hands).await?;
        let id = described(hands, &vault).await?.id;
        if opened(hands, &vault, self.guest_port).await?.is_empty() {
            return Ok(Json(json!({
                "workspace_id": id, "guest_port": self.guest_port, "removed": false,
            })));
        }
        let command = format!("avfs port remove {vault} {}", self.guest_port);
        let what = "a port of the host is the owner's to close";
        Err(by_owner(what, &command))
    }
}

/// The ports of the host that lead to a port of a workspace.
async fn opened(hands: &Hands, vault: &str, guest_port: u16) -> Result<Vec<PortItem>, Failure> {
    let mut forwards = hands.ask(vault, &list(vault)).await?.forwards;
    forwards.retain(|port| port.guest == guest_port.to_string());
    Ok(forwards)
}

fn list(vault: &str) -> PortList {
    PortList {
        vault: Some(vault.to_owned()),
    }
}

/// A refusal with the command by which the owner does it. Whoever speaks MCP is an agent.
fn by_owner(what: &str, command: &str) -> Failure {
    let hint = format!("ask the owner to run `{command}`");
    Failure::new(ErrorKind::Denied, what).hint(hint)
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
        "allowed_hosts": state.hosts, "allowed_requests": state.requests,
    })
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Ip {
    workspace_id: WorkspaceId,
}

impl Asked for Ip {
    const NAME: &'static str = "workspace_ip";
    const SENTENCE: &'static str = "Say the address of a workspace: 127.0.0.1 inside, and the ports of the host that lead there.";
    const ROWS: &'static [&'static str] = &["vault_list", "vault_info", "port_list"];
    const IF_MISSING: Option<&'static str> = LIST;
    type Answer = Json;

    async fn run(self, hands: &Hands) -> Result<Json, Failure> {
        let vault = self.workspace_id.name(hands).await?;
        let id = described(hands, &vault).await?.id;
        Ok(Json(json!({
            "workspace_id": id,
            "ip": INSIDE,
            "reachable_from": "commands of this workspace; from the host by its port forwards",
            "port_forwards": forwards(hands, &vault).await?,
        })))
    }
}

/// The address of a workspace. Each has a loopback interface of its own, and no other.
const INSIDE: &str = "127.0.0.1";

/// The ports of the host that lead into a workspace, as the guide lists them. Unix sockets have no port.
pub(super) async fn forwards(hands: &Hands, vault: &str) -> Result<Vec<Value>, Failure> {
    let ports = hands.ask(vault, &list(vault)).await?.forwards.into_iter();
    let ports = ports.filter_map(|port| {
        let guest: u16 = port.guest.parse().ok()?;
        Some(json!({ "guest_port": guest, "host_port": port.host_port, "host": port.listen }))
    });
    Ok(ports.collect())
}
