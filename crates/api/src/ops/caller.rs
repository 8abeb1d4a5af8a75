//! The gate: which caller, class, scopes and vault. Every handler needs an [`Ask`], and only the gate makes one.

use super::app::App;
use super::failure::Failure;
use super::handler::{Served, VaultOf};
use super::traces::TraceContext;
use super::{parse, parse_vault};
use crate::table::{Class, Row, Scope, Who};
use avfs_runtime::{
    ApprovalId, ErrorKind, ExecId, JobId, JournalFilter, JournalOrder, Principal, PrincipalName,
    Select, Session, VaultId, VaultName, VaultPattern,
};
use std::net::IpAddr;
use std::sync::Arc;
use tokio::net::UnixStream;

/// The other end of a connection.
#[derive(Copy, Clone, Debug)]
pub(crate) enum Peer {
    /// A process of this machine, by SO_PEERCRED; `None` if that failed.
    Process { uid: Option<u32>, pid: Option<i32> },
    /// A client on the network.
    Remote {
        address: IpAddr,
        /// The address of this machine that it connected to.
        local: IpAddr,
    },
}

impl Peer {
    pub fn of(stream: &UnixStream) -> Peer {
        let credentials = stream.peer_cred().ok();
        Peer::Process {
            uid: credentials.map(|it| it.uid()),
            pid: credentials.and_then(|it| it.pid()),
        }
    }

    pub fn uid(self) -> Option<u32> {
        match self {
            Peer::Process { uid, .. } => uid,
            Peer::Remote { .. } => None,
        }
    }

    pub fn pid(self) -> Option<i32> {
        match self {
            Peer::Process { pid, .. } => pid,
            Peer::Remote { .. } => None,
        }
    }

    /// Whose limits apply to it.
    pub fn share(self) -> Share {
        match self {
            Peer::Process { pid, .. } => Share::Process(pid),
            Peer::Remote { address, .. } => Share::Address(network_of(address)),
        }
    }
}

/// An IPv6 client usually has a whole /64.
fn network_of(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => {
            let network = u128::from(address) & !u128::from(u64::MAX);
            IpAddr::V6(network.into())
        }
        address => address,
    }
}

/// Whose requests and connections are counted together.
#[derive(Copy, Clone, Debug, Eq, PartialEq, Hash)]
pub(crate) enum Share {
    /// Unknown processes share one.
    Process(Option<i32>),
    Address(IpAddr),
    /// A credential, wherever it is used.
    Credential(PrincipalName),
}

/// The caller of a request.
#[derive(Clone, Debug)]
pub(crate) struct Caller {
    pub class: Class,
    pub principal: Principal,
    pub peer: Peer,
    pub share: Share,
    pub grant: Grant,
    /// Where its spans belong, if traces are wanted.
    pub trace: Option<TraceContext>,
}

/// The rights of a caller.
#[derive(Clone, Debug, Default)]
pub(crate) struct Grant {
    /// `None` is no limit.
    pub scopes: Option<Vec<Scope>>,
    /// A vault must match a pattern of every list. No list is no limit.
    pub vaults: Vec<Vec<VaultPattern>>,
    /// Whether the user of the caller's MCP client may approve.
    pub asks_user: bool,
}

impl Grant {
    pub fn has(&self, scope: Scope) -> bool {
        let scopes = self.scopes.as_ref();
        scopes.is_none_or(|scopes| scopes.contains(&scope))
    }

    /// Whether the caller may use a vault of this name.
    pub fn reaches(&self, vault: &VaultName) -> bool {
        let fits = |patterns: &Vec<VaultPattern>| patterns.iter().any(|it| it.fits(vault));
        self.vaults.iter().all(fits)
    }

    /// Limits the caller to vaults that match one of these.
    pub fn limit(&mut self, vaults: Vec<VaultPattern>) {
        if !vaults.iter().any(|pattern| pattern.as_str() == "*") {
            self.vaults.push(vaults);
        }
    }

    /// Whether the caller is limited to some vaults.
    pub fn is_limited(&self) -> bool {
        !self.vaults.is_empty()
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
        if !ask.caller.grant.is_limited() {
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
                let vault = self.check(vault)?;
                for other in others(request) {
                    self.check_text(&other)?;
                }
                return Ok(vault);
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
            // Whether an id that the caller may not reach exists is not for it to know.
            Select::Id(id) => match self.session.vault_name(id)? {
                Some(name) => name,
                None => return Err(self.beyond()),
            },
        };
        match self.caller.grant.reaches(&name) {
            true => Ok(Select::Named(name)),
            false => Err(self.beyond()),
        }
    }

    /// Refuses a new name for a vault that the caller could not reach.
    pub fn check_name(&self, name: &VaultName) -> Result<(), Failure> {
        match self.caller.grant.reaches(name) {
            true => Ok(()),
            false => Err(self.beyond()),
        }
    }

    /// The name of a vault that a request names in a field, by name or id.
    pub fn named(&self, vault: &str) -> Result<VaultName, Failure> {
        match parse_vault(vault)? {
            Select::Named(name) => Ok(name),
            other => Ok(self.session.vault_info(other)?.vault.name),
        }
    }

    /// The name of a vault that a request may name in a field.
    pub fn named_if_any(&self, vault: Option<&str>) -> Result<Option<VaultName>, Failure> {
        vault.map(|vault| self.named(vault)).transpose()
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
        let name = vault.map(|id| self.session.vault_name(id)).transpose()?;
        match name.flatten() {
            Some(name) if self.caller.grant.reaches(&name) => Ok(()),
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
        let list = |patterns: &Vec<VaultPattern>| {
            let patterns: Vec<&str> = patterns.iter().map(VaultPattern::as_str).collect();
            patterns.join(", ")
        };
        let lists: Vec<String> = self.caller.grant.vaults.iter().map(list).collect();
        let problem = format!("this caller is limited to: {}", lists.join("; of these "));
        Failure::new(ErrorKind::Denied, problem).hint("ask for one of these vaults")
    }
}
