//! Secrets of one command: what its requests get, and what it has in their place.

use avfs_net::{Inspect, Terms};
use avfs_vault::VaultName;

use crate::Result;
use crate::command::call::add;
use crate::command::network::ExecNetwork;
use crate::runtime::Runtime;
use crate::secret::Outgoing;

/// The secrets that a command's requests get.
pub(crate) struct CommandSecrets(Vec<Outgoing>);

impl Runtime {
    /// The secrets for commands of the vault that the caller named, also where they run in a fork of it.
    pub(crate) fn secrets_of(
        &self,
        asked: &VaultName,
        network: &ExecNetwork,
    ) -> Result<CommandSecrets> {
        let outgoing = match network {
            ExecNetwork::Listed(hosts) if hosts.is_empty() => Vec::new(),
            ExecNetwork::Listed(hosts) => self.outgoing_secrets(asked, Some(hosts))?,
            ExecNetwork::Observe => self.outgoing_secrets(asked, None)?,
            // Its requests do not come by.
            ExecNetwork::Host => Vec::new(),
        };
        Ok(CommandSecrets(outgoing))
    }
}

impl Runtime {
    /// On which terms a network is served: with the hosts that its words stand for.
    pub(crate) fn terms_of_network(&self, network: &ExecNetwork) -> Result<Terms> {
        let terms = network.terms();
        match terms.list.has_registries() {
            true => self.registries().added_to(terms),
            false => Ok(terms),
        }
    }

    /// Has package managers use the registries that the host's use, if the command may.
    pub(crate) fn add_registries(
        &self,
        network: &ExecNetwork,
        environment: &mut Vec<(Vec<u8>, Vec<u8>)>,
    ) {
        if network.terms().list.has_registries() {
            for (name, value) in self.registries().variables() {
                add(environment, name, value);
            }
        }
    }
}

impl CommandSecrets {
    /// The terms with them. TLS is opened to their hosts, and to no others.
    pub fn added_to(&self, mut terms: Terms) -> Terms {
        for outgoing in &self.0 {
            terms.secrets.push(outgoing.secret.clone());
            for rule in &outgoing.opened {
                let inspect = Inspect {
                    hosts: rule.pattern.clone(),
                    allow: Vec::new(),
                };
                if !terms.inspect.contains(&inspect) {
                    terms.inspect.push(inspect);
                }
            }
        }
        terms
    }

    /// Gives programs that insist on a token something to send. What the caller or the vault sets goes first.
    pub fn add_placeholders(&self, environment: &mut Vec<(Vec<u8>, Vec<u8>)>) {
        for Outgoing { name, .. } in &self.0 {
            add(environment, name.as_str(), &name.placeholder());
        }
    }
}
