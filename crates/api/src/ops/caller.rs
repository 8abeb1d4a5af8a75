//! The gate: which caller, class, scopes and vault. Every handler needs an [`Ask`], and only the gate makes one.

use super::app::App;
use super::failure::Failure;
use super::handler::{Served, VaultOf};
use super::{parse, parse_vault};
use crate::table::{Class, Row, Scope, Who};
use avfs_runtime::{
    ApprovalId, ErrorKind, ExecId, JobId, JournalFilter, JournalOrder, Principal, Select, Session,
    VaultId, VaultName,
};
use std::sync::Arc;
use tokio::net::UnixStream;

/// The client process, by SO_PEERCRED; `None` if that failed.
#[derive(Copy, Clone, Debug, Default)]
pub(crate) struct Peer {
    pub uid: Option<u32>,
    pub pid: Option<i32>,
}

impl Peer {
    pub fn of(stream: &UnixStream) -> Peer {
        match stream.peer_cred() {
            Ok(credentials) => Peer {
                uid: Some(credentials.uid()),
                pid: credentials.pid(),
            },
            Err(_) => Peer::default(),
        }
    }
}

/// The caller of a request.
#[derive(Clone, Debug)]
pub(crate) struct Caller {
    pub class: Class,
    pub principal: Principal,
    pub peer: Peer,
    pub grant: Grant,
}

/// The rights of a caller; `None` is no limit.
#[derive(Clone, Debug, Default)]
pub(crate) struct Grant {
    pub scopes: Option<Vec<Scope>>,
    pub vaults: Option<Vec<VaultName>>,
}

impl Grant {
    fn has(&self, scope: Scope) -> bool {
        let scopes = self.scopes.as_ref();
        scopes.is_none_or(|scopes| scopes.contains(&scope))
    }

    /// Whether the caller may use a vault of this name.
    pub fn reaches(&self, vault: &VaultName) -> bool {
        let vaults = self.vaults.as_ref();
        vaults.is_none_or(|vaults| vaults.contains(vault))
    }
}

/// An admitted request: the daemon, and a session of the runtime in the caller's name.
pub(crate) struct Ask {
    pub app: Arc<App>,
    pub session: Session,
    pub caller: Caller,
}

/// Whether a caller may call the operation at all. It is checked before the request is read.
pub(crate) fn may_ask(row: &Row, caller: &Caller) -> Result<(), Failure> {
    let what = row.name.replace('_', " ");
    if caller.class == Class::Agent && row.who == Who::Owner {
        let problem = format!("{what} is for the owner alone");
        return Err(Failure::new(ErrorKind::Denied, problem).hint("ask the owner to do it"));
    }
    if !caller.grant.has(row.scope) {
        let problem = format!("{what} needs the scope {:?}", row.scope.as_str());
        let hint = "ask with a credential that has it";
        return Err(Failure::new(ErrorKind::Denied, problem).hint(hint));
    }
    Ok(())
}

impl Ask {
    /// Admits a request, or refuses it. Returns the vault to work on: for a caller limited to some vaults, the current vault is
    /// replaced by the one that was checked.
    pub fn admit<O: Served>(
        app: Arc<App>,
        caller: Caller,
        vault: Select,
        request: &O,
    ) -> Result<(Ask, Select), Failure> {
        may_ask(&O::ROW, &caller)?;
        let session = app.runtime.by(caller.principal);
        let ask = Ask {
            app,
            session,
            caller,
        };
        if ask.caller.grant.vaults.is_none() {
            return Ok((ask, vault));
        }
        let vault = ask.check_vaults(vault, request)?;
        Ok((ask, vault))
    }

    /// Checks every vault that a request names.
    fn check_vaults<O: Served>(&self, vault: Select, request: &O) -> Result<Select, Failure> {
        match O::VAULT {
            VaultOf::Address => return self.check(vault),
            VaultOf::AddressAnd(others) => {
                for other in others(request) {
                    self.check_text(&other)?;
                }
                return self.check(vault);
            }
            VaultOf::AddressOrHome(is_home) if is_home(request) => return Err(self.beyond()),
            VaultOf::AddressOrHome(_) => return self.check(vault),
            VaultOf::Field(field) => match field(request) {
                Some(name) => self.check_text(name)?,
                None => return Err(self.beyond().hint("name the vault")),
            },
            VaultOf::Job(id) => {
                let job = self.session.job(JobId::new(id(request)))?;
                self.check_id(Some(job.vault_id))?;
            }
            VaultOf::Call(call) => {
                let vault = self
                    .app
                    .calls
                    .vault_of(call(request), self.caller.principal);
                // A caller cannot tell what it may not reach from what does not exist.
                if let Some(vault) = vault {
                    self.check(Select::Named(vault))?;
                } else {
                    return Err(Failure::new(ErrorKind::NotFound, "no such call"));
                }
            }
            VaultOf::Exec(exec) => self.check_id(self.vault_of_exec(parse(exec(request))?)?)?,
            VaultOf::Approval(id) => self.check_id(self.vault_of_approval(parse(id(request))?)?)?,
            VaultOf::Mount(vaults) => {
                for name in vaults(self, request)? {
                    self.check_text(&name)?;
                }
            }
            VaultOf::Listed | VaultOf::Nothing => {}
            VaultOf::Home => return Err(self.beyond()),
        }
        Ok(vault)
    }

    /// The vault of this name, if the caller may reach it.
    fn check(&self, vault: Select) -> Result<Select, Failure> {
        let name = match vault {
            Select::Named(name) => name,
            Select::Current => self.session.vault_info(Select::Current)?.vault.name,
        };
        match self.caller.grant.reaches(&name) {
            true => Ok(Select::Named(name)),
            false => Err(self.beyond()),
        }
    }

    fn check_text(&self, vault: &str) -> Result<(), Failure> {
        match parse_vault(vault)? {
            // Another vault may be current by the time it is used.
            Select::Current => Err(self.beyond().hint("name the vault")),
            named => self.check(named).map(drop),
        }
    }

    /// Names can change, so vaults are compared by id.
    fn check_id(&self, vault: Option<VaultId>) -> Result<(), Failure> {
        let within = self.caller.grant.vaults.iter().flatten();
        let ids = within.filter_map(|name| {
            let info = self.session.vault_info(Select::Named(name.clone())).ok()?;
            Some(info.vault.id)
        });
        let mut ids = ids;
        match vault {
            Some(vault) if ids.any(|id| id == vault) => Ok(()),
            _ => Err(self.beyond()),
        }
    }

    fn vault_of_exec(&self, exec: ExecId) -> Result<Option<VaultId>, Failure> {
        let filter = JournalFilter {
            exec: Some(exec),
            limit: Some(1),
            order: JournalOrder::OldestFirst,
            ..JournalFilter::default()
        };
        let entries = self.session.journal(None, filter)?;
        Ok(entries.first().and_then(|entry| entry.vault))
    }

    fn vault_of_approval(&self, id: ApprovalId) -> Result<Option<VaultId>, Failure> {
        let all = self.session.approval_list(None, true)?;
        let found = all.iter().find(|info| info.approval.id == id);
        Ok(found.map(|info| info.approval.vault))
    }

    fn beyond(&self) -> Failure {
        let names = self.caller.grant.vaults.iter().flatten();
        let names: Vec<String> = names.map(ToString::to_string).collect();
        let problem = format!("this caller is limited to: {}", names.join(", "));
        Failure::new(ErrorKind::Denied, problem).hint("ask for one of these vaults")
    }
}
