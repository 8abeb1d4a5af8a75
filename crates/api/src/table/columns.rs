//! The columns of a row.

use crate::bounds::LaneBound;

/// How a request is sent: `Post` has its fields in a JSON body, the others in the query. The body of a `Put` is a byte
/// stream.
#[derive(Copy, Clone, Debug, Eq, PartialEq)]
pub enum Method {
    Get,
    Post,
    Put,
    Delete,
}

impl Method {
    /// Whether the fields of a request are in the query.
    pub fn has_query(self) -> bool {
        self != Method::Post
    }

    pub fn as_str(self) -> &'static str {
        match self {
            Method::Get => "GET",
            Method::Post => "POST",
            Method::Put => "PUT",
            Method::Delete => "DELETE",
        }
    }
}

/// The class of a caller.
///
/// Owner operations change what agents may do, or reach beyond the vaults: rules, approvals, limits, host paths, pruning,
/// the daemon. A surface for agents has the agent class only.
#[derive(Copy, Clone, Debug, Default, Eq, PartialEq, Hash)]
pub enum Class {
    /// An agent's, which has given up what is the owner's.
    Agent,
    /// The owner's.
    #[default]
    Owner,
}

impl Class {
    pub fn as_str(self) -> &'static str {
        match self {
            Class::Agent => "agent",
            Class::Owner => "owner",
        }
    }

    /// The class with this name.
    pub fn parse(text: &str) -> Option<Class> {
        [Class::Agent, Class::Owner]
            .into_iter()
            .find(|class| class.as_str() == text)
    }
}

/// Who may ask for an operation. The owner may ask for each.
#[derive(Copy, Clone, Debug, Eq, PartialEq)]
pub enum Who {
    /// Any agent, in any vault.
    Agent,
    /// The agent that made the vault, checkpoint, job or command; the runtime's gate checks that.
    Maker,
    /// The owner alone.
    Owner,
}

impl Who {
    /// The class that a caller needs.
    pub fn class(self) -> Class {
        match self {
            Who::Agent | Who::Maker => Class::Agent,
            Who::Owner => Class::Owner,
        }
    }

    pub fn as_str(self) -> &'static str {
        match self {
            Who::Agent => "agent",
            Who::Maker => "agent, of what it made",
            Who::Owner => "owner",
        }
    }
}

/// The right that a limited caller needs.
#[derive(Copy, Clone, Debug, Eq, PartialEq, Hash)]
pub enum Scope {
    /// Read files, history, jobs, rules, the journal.
    Read,
    /// Change vaults: files, labels, checkpoints, forks.
    Write,
    /// Run commands, write to their input and end them.
    Run,
    /// Answer commands that wait for approval.
    Approve,
    /// Change what agents may do: rules, settings, quotas, host paths, the daemon.
    Admin,
}

impl Scope {
    pub const ALL: [Scope; 5] = [
        Scope::Read,
        Scope::Write,
        Scope::Run,
        Scope::Approve,
        Scope::Admin,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            Scope::Read => "read",
            Scope::Write => "write",
            Scope::Run => "run",
            Scope::Approve => "approve",
            Scope::Admin => "admin",
        }
    }

    /// The scope with this name.
    pub fn parse(text: &str) -> Option<Scope> {
        Scope::ALL.into_iter().find(|scope| scope.as_str() == text)
    }
}

/// The effect of an operation, for clients that plan or repeat calls.
#[derive(Copy, Clone, Debug, Eq, PartialEq)]
pub enum Effect {
    /// Changes nothing.
    Reads,
    /// Adds something; repeated, it adds again or fails.
    Adds,
    /// Adds something unless it exists; repeating changes nothing.
    Ensures,
    /// Replaces or removes something; repeating changes nothing.
    Replaces,
    /// Replaces or removes something; repeating may change more.
    Changes,
    /// Changes the host or the daemon, and nothing in the home: it works on a read-only home.
    Outside,
}

impl Effect {
    pub fn is_read_only(self) -> bool {
        self == Effect::Reads
    }

    /// Whether it can remove something from the newest version.
    pub fn is_destructive(self) -> bool {
        matches!(self, Effect::Replaces | Effect::Changes | Effect::Outside)
    }

    /// Whether a read-only home refuses it.
    pub fn changes_home(self) -> bool {
        !matches!(self, Effect::Reads | Effect::Outside)
    }

    /// Whether it is idempotent.
    pub fn is_idempotent(self) -> bool {
        matches!(self, Effect::Reads | Effect::Ensures | Effect::Replaces)
    }
}

/// Where a request names its vault.
#[derive(Copy, Clone, Debug, Eq, PartialEq)]
pub enum VaultIn {
    /// In its address.
    Address,
    /// In its address, and its fields may name others.
    AddressAndFields,
    /// In its address, unless its fields say that it is about all.
    AddressOrHome,
    /// In a field.
    Field,
    /// It names a job, which belongs to a vault.
    Job,
    /// It names a running exec, which belongs to a vault.
    Call,
    /// It names an exec that has ended, which belonged to a vault.
    Exec,
    /// It names an approval, which belongs to a vault.
    Approval,
    /// It names a mount, which shows a vault.
    Mount,
    /// It is about all vaults, and its answer lists those that the caller may reach.
    Listed,
    /// It is about the home with all its vaults.
    Home,
    /// It is about no vault.
    Nothing,
}

impl VaultIn {
    pub fn as_str(self) -> &'static str {
        match self {
            VaultIn::Address => "address",
            VaultIn::AddressAndFields => "address and fields",
            VaultIn::AddressOrHome => "address, or all vaults",
            VaultIn::Field => "field",
            VaultIn::Job => "the job's",
            VaultIn::Call => "the running exec's",
            VaultIn::Exec => "the exec's",
            VaultIn::Approval => "the approval's",
            VaultIn::Mount => "the mount's",
            VaultIn::Listed => "those that the caller may reach",
            VaultIn::Home => "all vaults",
            VaultIn::Nothing => "none",
        }
    }
}

/// One row of the table of operations.
#[derive(Copy, Clone, Debug)]
pub struct Row {
    pub name: &'static str,
    pub method: Method,
    /// The address; `{vault}` is a vault's name or [`crate::wire::CURRENT`].
    pub route: &'static str,
    pub who: Who,
    pub scope: Scope,
    pub effect: Effect,
    pub vault: VaultIn,
    pub lane: LaneBound,
    /// The most bytes that the request may have in JSON.
    pub body_max: usize,
    /// What it does, in one sentence.
    pub sentence: &'static str,
}
