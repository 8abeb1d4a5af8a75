//! Which requests commands may make of hosts whose TLS the owner has opened.
//!
//! Opening TLS lets the daemon see what a command sends, so only the owner turns it on; only the owner turns it off or allows more
//! requests, since both let more through. Allowing fewer requests is for everybody.

use std::collections::BTreeMap;

use avfs_net::{Inspect, RequestRules, Terms};
use avfs_policy::HostPattern;
use avfs_vault::Vault;

use crate::command::network::VaultNetwork;
use crate::command::network_limits::NetworkLimits;
use crate::command::settings::SettingKey;
use crate::gate::Verb;
use crate::runtime::{Select, lock};
use crate::session::Session;
use crate::{Error, Result};

/// Hosts of one vault that have rules.
const HOSTS_MAX: usize = 64;

/// The rules of a vault, by host.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Inspection(BTreeMap<HostPattern, RequestRules>);

/// How the rules of a host change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InspectChange {
    /// These and no others.
    Set(RequestRules),
    /// These beside those that are there.
    Add(RequestRules),
    /// None: its TLS is not opened any more.
    Off,
}

impl Inspection {
    pub fn iter(&self) -> impl Iterator<Item = (&HostPattern, &RequestRules)> {
        self.0.iter()
    }

    pub(crate) fn set(&mut self, host: HostPattern, rules: RequestRules) -> Result<()> {
        self.0.insert(host, rules);
        match self.0.len() > HOSTS_MAX {
            true => Err(invalid(format!(
                "a vault has rules for at most {HOSTS_MAX} hosts; a pattern such as *.example.com is one"
            ))),
            false => Ok(()),
        }
    }

    /// The terms with these rules. All rules that are about a host hold for it.
    pub(crate) fn added_to(&self, mut terms: Terms) -> Terms {
        let inspect = self.0.iter().map(|(host, rules)| Inspect {
            hosts: host.clone(),
            allow: rules.rules().to_vec(),
        });
        terms.inspect.extend(inspect);
        terms
    }

    /// The rules of a host after a change; none if there are none then.
    fn after(&self, host: &HostPattern, change: &InspectChange) -> Result<Option<RequestRules>> {
        let before = self.0.get(host);
        let missing = || invalid(format!("requests to {host} are not seen: it has no rules"));
        Ok(match change {
            InspectChange::Set(rules) => Some(rules.clone()),
            InspectChange::Add(rules) => Some(before.ok_or_else(missing)?.with(rules)?),
            InspectChange::Off => {
                before.ok_or_else(missing)?;
                None
            }
        })
    }

    /// Whether these rules for a host let no request through that was refused, and open no TLS that was closed.
    fn is_narrowed_by(&self, host: &HostPattern, after: Option<&RequestRules>) -> bool {
        let before = self.0.get(host);
        after
            .zip(before)
            .is_some_and(|(after, before)| after.is_within(before))
    }
}

impl Session {
    /// Changes which requests the commands of a vault may make of a host, those that run included.
    pub fn network_inspect(
        &self,
        vault: &Select,
        host: HostPattern,
        change: &InspectChange,
    ) -> Result<(Vault, VaultNetwork)> {
        let vault = self.vault(vault, Verb::Work)?;
        let _alone = lock(&self.inner.networks.changing);
        let mut inspection = self.settings_of(&vault)?.inspection;
        let after = inspection.after(&host, change)?;
        if self.principal().is_agent() && !inspection.is_narrowed_by(&host, after.as_ref()) {
            return Err(Error::OwnerOnly {
                what: "opening TLS of a host, or allowing it more requests,",
            });
        }
        let stored = after.as_ref().map(ToString::to_string);
        let stored = [(SettingKey::Inspect(host.clone()).to_string(), stored)];
        if let Some(rules) = after {
            inspection.set(host, rules)?;
        }
        let by = self.principal();
        self.inner.vaults.change_settings(vault.id, &stored, &by)?;
        self.refresh_networks(&vault)?;
        let network = self.settings_of(&vault)?.network();
        Ok((vault, network))
    }

    /// Which requests the commands of a vault may make, and how much network they may use.
    pub fn network_terms(&self, vault: &Vault) -> Result<(Inspection, NetworkLimits)> {
        let settings = self.settings_of(vault)?;
        Ok((settings.inspection, settings.network_limits))
    }
}

fn invalid(reason: String) -> Error {
    Error::Invalid {
        what: "rule about requests",
        reason,
    }
}
