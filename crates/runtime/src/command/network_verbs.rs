//! Verbs on the network of a vault. Going beyond what it has is for the owner; narrowing it is for everybody.

use std::sync::Arc;

use avfs_policy::HostList;
use avfs_vault::{ExecId, JournalEntry, JournalEvent, JournalFilter, JournalOrder, Vault};

use crate::command::call::Call;
use crate::command::network::{ExecNetwork, VaultNetwork};
use crate::command::report::Attempts;
use crate::command::settings::SettingKey;
use crate::gate::Verb;
use crate::live::network::TermsNow;
use crate::registry::{RegistryHost, RegistryProblem};
use crate::runtime::{Select, lock};
use crate::session::Session;
use crate::{Error, Result};

/// The most entries of the journal that one listing reads, and so the most execs.
const LISTED_MAX: usize = 1_000;

/// What an exec tried to reach.
#[derive(Debug, Clone)]
pub struct NetworkRecord {
    pub exec: ExecId,
    pub entry: JournalEntry,
    pub attempts: Attempts,
}

impl Session {
    /// The network of a vault, with its name.
    pub fn network(&self, vault: &Select) -> Result<(Vault, VaultNetwork)> {
        let vault = self.vault(vault, Verb::Read)?;
        let network = self.settings_of(&vault)?.network();
        Ok((vault, network))
    }

    /// What the word `registries` stands for on this host now: its hosts, and what could not be found out.
    pub fn network_registries(&self) -> (Vec<RegistryHost>, Vec<RegistryProblem>) {
        let look = self.registries();
        let mut problems = look.problems().to_vec();
        // They may name files of the host.
        if self.principal().is_agent() {
            let told = "something could not be found out; the owner sees what";
            problems.iter_mut().for_each(|it| it.text = told.to_owned());
            problems.dedup();
        }
        (look.hosts(), problems)
    }

    /// Gives the commands of a vault this network, those that run included.
    pub fn network_set(
        &self,
        vault: &Select,
        network: VaultNetwork,
    ) -> Result<(Vault, VaultNetwork)> {
        let vault = self.vault(vault, Verb::Work)?;
        let _alone = lock(&self.inner.networks.changing);
        let before = self.settings_of(&vault)?.network();
        if self.principal().is_agent() && !wish(&network).is_within(&before) {
            return Err(Error::OwnerOnly {
                what: "a wider network",
            });
        }
        let stored = [(SettingKey::Network.to_string(), Some(network.to_string()))];
        let by = self.principal();
        self.inner.vaults.change_settings(vault.id, &stored, &by)?;
        self.refresh_networks(&vault)?;
        Ok((vault, network))
    }

    /// Has the commands that run in a vault reach what its settings say now.
    pub(crate) fn refresh_networks(&self, vault: &Vault) -> Result<()> {
        let networks = self.inner.networks.of(vault.id);
        networks.iter().try_for_each(|network| network.refresh())
    }

    /// Adds hosts to the list of a vault.
    pub fn network_allow(&self, vault: &Select, hosts: &HostList) -> Result<(Vault, VaultNetwork)> {
        match self.network(vault)? {
            (_, VaultNetwork::Listed(listed)) => {
                let wider = VaultNetwork::Listed(listed.union(hosts)?);
                self.network_set(vault, wider)
            }
            (_, VaultNetwork::Host) => Err(every_host(
                "the vault's commands have the host's network already",
            )),
        }
    }

    /// Takes rules from the list of a vault. Each must be on it.
    pub fn network_deny(&self, vault: &Select, hosts: &HostList) -> Result<(Vault, VaultNetwork)> {
        let (_, network) = self.network(vault)?;
        let VaultNetwork::Listed(listed) = network else {
            return Err(every_host(
                "the vault's commands have the host's network, which has no list",
            ));
        };
        let missing = hosts
            .rules()
            .iter()
            .find(|rule| !listed.rules().contains(rule));
        if let Some(rule) = missing {
            return Err(Error::Invalid {
                what: "host",
                reason: format!("{rule} is not on the vault's list, which is: {listed}"),
            });
        }
        self.network_set(vault, VaultNetwork::Listed(listed.without(hosts)))
    }

    /// What commands of a vault tried to reach, the newest first.
    pub fn network_log(
        &self,
        vault: &Select,
        exec: Option<ExecId>,
        limit: usize,
    ) -> Result<Vec<NetworkRecord>> {
        let vault = self.vault(vault, Verb::Read)?;
        let filter = JournalFilter {
            vault: Some(vault.id),
            exec,
            operation: Some(JournalEvent::ExecNetwork.as_str().to_owned()),
            limit: Some(LISTED_MAX),
            order: JournalOrder::NewestFirst,
            ..JournalFilter::default()
        };
        let entries = self.inner.vaults.journal(&filter)?;
        let mut records = joined(entries.into_iter().filter_map(record));
        records.truncate(limit);
        Ok(records)
    }
}

/// One record for each exec. One that ran for a while has several entries, which add up.
fn joined(records: impl Iterator<Item = NetworkRecord>) -> Vec<NetworkRecord> {
    let mut joined: Vec<NetworkRecord> = Vec::new();
    for record in records {
        match joined.iter_mut().find(|it| it.exec == record.exec) {
            Some(known) => known.attempts.add(record.attempts),
            None => joined.push(record),
        }
    }
    joined
}

fn record(entry: JournalEntry) -> Option<NetworkRecord> {
    Some(NetworkRecord {
        exec: entry.exec?,
        attempts: serde_json::from_value(entry.details.clone()).ok()?,
        entry,
    })
}

/// What a command has that asks for nothing in a vault with this network.
fn wish(network: &VaultNetwork) -> ExecNetwork {
    match network {
        VaultNetwork::Listed(hosts) => ExecNetwork::Listed(hosts.clone()),
        VaultNetwork::Host => ExecNetwork::Host,
    }
}

fn every_host(reason: &str) -> Error {
    Error::Invalid {
        what: "network",
        reason: reason.into(),
    }
}

impl Call {
    /// Its terms as the vault's settings are then. An agent's command never has more than its vault.
    pub fn network_now(&self) -> TermsNow {
        let (session, vault) = (self.runtime.clone(), self.vault.clone());
        let asked = self.asked.clone();
        let options = self.request.options.clone();
        Arc::new(move || {
            let settings = session.settings_of(&vault)?;
            let mut network = ExecNetwork::of(&options, &settings)?;
            if session.principal().is_agent() {
                network = network.narrowed_to(&settings.network());
            }
            // A sandbox that has a namespace of its own keeps it until it ends.
            if network == ExecNetwork::Host {
                return Ok(None);
            }
            let secrets = session.secrets_of(&asked, &network)?;
            let terms = settings
                .inspection
                .added_to(session.terms_of_network(&network)?);
            let terms = settings.network_limits.added_to(terms);
            Ok(Some(secrets.added_to(terms)))
        })
    }
}
