//! Who may do what. Every verb passes this one gate, with the maker of the vault or thing that it is about.

use avfs_vault::{ExecId, Principal, PrincipalKind, Vault, VaultId, VaultName};

use crate::runtime::{Select, id_in};
use crate::session::Session;
use crate::{Error, Result};

/// What is to be done, as far as it matters who may.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Verb {
    /// Look into a vault: files, history, checkpoints, rules.
    Read,
    /// Work inside a vault: files, commands, checkpoints, restores, forks.
    Work,
    /// Deal with a thing as a whole: rename or delete it, type into it, end it, read what it wrote.
    Own,
    /// Move the boundary: rules, settings, quotas, approvals, mounts, paths of the host.
    Govern,
}

impl Verb {
    pub const ALL: [Verb; 4] = [Verb::Read, Verb::Work, Verb::Own, Verb::Govern];
}

/// Whether `by` may do that to something that `maker` made.
pub fn may(by: &Principal, verb: Verb, maker: &Principal) -> bool {
    match (by.kind(), verb) {
        (PrincipalKind::Owner | PrincipalKind::System, _) => true,
        (PrincipalKind::Agent, Verb::Read | Verb::Work) => true,
        (PrincipalKind::Agent, Verb::Own) => by == maker,
        (PrincipalKind::Agent, Verb::Govern) => false,
    }
}

impl Session {
    /// The vault that `select` means, if the caller may do that to it. While what an earlier daemon left of it is taken in,
    /// the caller waits, for that vault and for no other.
    pub(crate) fn vault(&self, select: &Select, verb: Verb) -> Result<Vault> {
        let vault = self.vault_as_it_is(select, verb)?;
        match self.slot_of(vault.id) {
            Some(slot) if slot.is_recovering() => slot.recovered(self),
            _ => Ok(vault),
        }
    }

    /// The vault that `select` means, without waiting for what an earlier daemon left of it.
    pub(crate) fn vault_as_it_is(&self, select: &Select, verb: Verb) -> Result<Vault> {
        let vaults = &self.inner.vaults;
        let vault = match select {
            Select::Named(name) => vaults.get(name)?,
            Select::Id(id) => self.by_id_or_name(*id)?,
            Select::Current => {
                let current = vaults.current(&self.principal())?;
                current.ok_or(Error::NoCurrentVault)?
            }
        };
        self.check(verb, &vault.made_by, || format!("vault {}", vault.name))?;
        Ok(vault)
    }

    /// A vault by its id. Before names that look like ids were refused, a vault could be called like one.
    fn by_id_or_name(&self, id: VaultId) -> Result<Vault> {
        let vaults = &self.inner.vaults;
        match vaults.by_id(id) {
            Err(avfs_vault::Error::VaultIdNotFound { .. }) => {
                Ok(vaults.get(&id.to_string().parse()?)?)
            }
            found => Ok(found?),
        }
    }

    /// The vault of this name or id, if the caller may do that to it.
    pub(crate) fn named(&self, name: &VaultName, verb: Verb) -> Result<Vault> {
        self.vault(&name.as_str().parse()?, verb)
    }

    /// Refuses what the caller may not do to something that `maker` made.
    pub(crate) fn check(
        &self,
        verb: Verb,
        maker: &Principal,
        what: impl FnOnce() -> String,
    ) -> Result<()> {
        match may(&self.principal(), verb, maker) {
            true => Ok(()),
            false if verb == Verb::Govern => Err(Error::OwnerOnly { what: "this" }),
            false => Err(Error::NotMaker {
                what: what(),
                maker: *maker,
            }),
        }
    }

    /// Refuses whoever is not the owner.
    pub(crate) fn govern(&self, what: &'static str) -> Result<()> {
        match may(&self.principal(), Verb::Govern, &Principal::OWNER) {
            true => Ok(()),
            false => Err(Error::OwnerOnly { what }),
        }
    }

    /// Refuses a name that could be taken for the id of another vault, and an agent a name under which somebody else's
    /// deleted vault can still be had back.
    pub(crate) fn check_name(&self, name: &VaultName) -> Result<()> {
        if id_in(name.as_str()).is_some() {
            return Err(Error::Invalid {
                what: "vault name",
                reason: format!("{name} looks like the id of a vault"),
            });
        }
        if !self.principal().is_agent() {
            return Ok(());
        }
        for deleted in self.inner.vaults.deleted()? {
            if deleted.vault.name == *name {
                let what = || format!("the name {name}");
                self.check(Verb::Own, &deleted.vault.made_by, what)?;
            }
        }
        Ok(())
    }

    /// Refuses whoever may not end that command, or read what it wrote.
    pub(crate) fn check_exec(&self, exec: ExecId) -> Result<()> {
        let maker = self.maker_of(exec)?;
        self.check(Verb::Own, &maker, || format!("command {exec}"))
    }

    /// Whose command that was; what nobody knows of is the owner's.
    fn maker_of(&self, exec: ExecId) -> Result<Principal> {
        let asked = self.inner.vaults.asked_by(exec)?;
        Ok(asked.unwrap_or(Principal::OWNER))
    }
}

impl Error {
    /// What to do about a refusal.
    pub(crate) fn class_hint(&self) -> Option<String> {
        Some(match self {
            Error::NotMaker { .. } => {
                "ask the owner to do it, or work in a fork of your own: `avfs vault fork`".into()
            }
            Error::OwnerOnly { .. } => "ask the owner to run it, or leave that option out".into(),
            Error::RulesChanged { .. } => "edit them again, as they are now".into(),
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every verb, for whoever can ask.
    #[test]
    fn an_agent_works_everywhere_and_owns_what_it_made() {
        let principal = |text: &str| text.parse::<Principal>().unwrap();
        let maker = principal("agent:a");
        let allowed = |by: &str| Verb::ALL.map(|verb| may(&principal(by), verb, &maker));
        for all in ["owner", "owner:me", "system"] {
            assert_eq!(allowed(all), [true; 4], "{all}");
        }
        assert_eq!(allowed("agent:a"), [true, true, true, false]);
        for other in ["agent:b", "agent"] {
            assert_eq!(allowed(other), [true, true, false, false], "{other}");
        }
        assert!(!may(&Principal::AGENT, Verb::Own, &Principal::OWNER));
    }
}
