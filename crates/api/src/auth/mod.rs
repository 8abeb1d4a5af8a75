//! Who a credential is. What its holder may do is for the gate to say (`ops/caller.rs`), from what stands here.

mod jwk;
pub(crate) mod jwt;
pub(crate) mod keys;
pub(crate) mod rate;
mod secret;

use crate::bounds::FAILURES_PER_SECOND;
use crate::ops::failure::Failure;
use crate::ops::parse;
use crate::table::{Class, Scope};
use avfs_runtime::{PrincipalName, VaultPattern};
use jwt::Tokens;
use keys::Keys;
use rate::Rates;
use std::net::IpAddr;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// All credentials that are good for something, and how often they are shown.
pub(crate) struct Auth {
    pub keys: Keys,
    tokens: Option<Tokens>,
    requests: Rates<PrincipalName>,
    failures: Rates<IpAddr>,
}

impl Auth {
    pub fn new(keys: Keys, tokens: Option<Tokens>) -> Auth {
        Auth {
            keys,
            tokens,
            requests: Rates::default(),
            failures: Rates::default(),
        }
    }

    /// Whether anybody could show a credential that is good now.
    pub fn is_set_up(&self) -> bool {
        self.tokens.is_some() || self.keys.any_usable(now())
    }

    /// Keeps what comes from elsewhere up to date.
    pub async fn keep_fresh(&self) {
        if let Some(tokens) = &self.tokens {
            tokens.keep_fresh().await;
        }
    }

    /// Whoever shows this text.
    pub fn identify(&self, shown: &str) -> Result<Identity, Failure> {
        let known = match &self.tokens {
            Some(tokens) if shown.contains('.') => tokens.identify(shown, now()),
            _ => self.keys.identify(shown, now()),
        };
        known.map_err(|refused| Failure::unauthenticated(refused.as_str()))
    }

    /// Whether what was shown before is still good.
    pub fn is_good(&self, source: &Source) -> bool {
        match source {
            Source::Key(id) => self.keys.is_usable(*id, now()),
            Source::Token { expires } => now() < *expires,
        }
    }

    /// Counts a request of a credential, or refuses it.
    pub fn take_turn(&self, proof: &Proof) -> Result<(), Failure> {
        let taken = self.requests.take(proof.name, proof.rate, Instant::now());
        taken.map_err(|_| Failure::too_fast(proof.name.as_str(), proof.rate))
    }

    /// What is said to whoever showed nothing good: that, or that it does so too often.
    pub fn refused(&self, address: IpAddr, failure: Failure) -> Failure {
        match self
            .failures
            .take(address, FAILURES_PER_SECOND, Instant::now())
        {
            Ok(()) => failure,
            Err(_) => Failure::too_fast("whoever shows no credential", FAILURES_PER_SECOND),
        }
    }
}

/// Seconds since 1970.
pub(crate) fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs() as i64)
}

/// Whoever a credential belongs to, and what it was given.
#[derive(Clone, Debug)]
pub(crate) struct Identity {
    /// What the journal calls it.
    pub name: PrincipalName,
    pub scopes: Vec<Scope>,
    /// The vaults that it reaches.
    pub vaults: Vec<VaultPattern>,
    pub source: Source,
    /// Requests per second.
    pub rate: u32,
    /// Whether the user of its MCP client may approve.
    pub asks_user: bool,
}

/// How an identity was proven, so that it can be looked at again.
#[derive(Clone, Debug, Eq, PartialEq, Hash)]
pub(crate) enum Source {
    Key(secret::KeyId),
    /// A token, until it expires.
    Token {
        expires: i64,
    },
}

/// What a connection keeps of an identity: whether it still holds, and how often it may ask.
#[derive(Clone, Debug)]
pub(crate) struct Proof {
    pub source: Source,
    name: PrincipalName,
    rate: u32,
}

impl Identity {
    pub fn proof(&self) -> Proof {
        Proof {
            source: self.source.clone(),
            name: self.name,
            rate: self.rate,
        }
    }

    /// The class that these scopes are of: whoever moves the boundary or answers for the owner is no agent.
    pub fn class(&self) -> Class {
        class_of(&self.scopes)
    }
}

/// The class of a caller that was given these scopes.
pub(crate) fn class_of(scopes: &[Scope]) -> Class {
    let is_owners = |scope: &Scope| matches!(scope, Scope::Approve | Scope::Admin);
    match scopes.iter().any(is_owners) {
        true => Class::Owner,
        false => Class::Agent,
    }
}

/// No credential can both ask for commands and approve them, unless it may do everything.
pub(crate) fn check_scopes(scopes: &[Scope]) -> Result<(), Failure> {
    if scopes.is_empty() {
        return Err(Failure::invalid("a credential has at least one scope"));
    }
    let asks = |scope: &Scope| matches!(scope, Scope::Write | Scope::Run);
    let has = |scope: Scope| scopes.contains(&scope);
    if scopes.iter().any(asks) && has(Scope::Approve) && !has(Scope::Admin) {
        let problem = "a key that approves commands cannot write or run commands";
        return Err(Failure::invalid(problem).hint("create two keys, or one with admin"));
    }
    Ok(())
}

/// Why a credential was not taken. Only whoever knows the secret learns more than that.
#[derive(Copy, Clone, Debug, Eq, PartialEq)]
pub(crate) enum Refused {
    Unknown,
    Expired,
    Revoked,
    /// A valid token whose claims name no principal, scope or vault.
    Unfit,
}

impl Refused {
    pub fn as_str(self) -> &'static str {
        match self {
            Refused::Unknown => "the credential is not known here",
            Refused::Expired => "the credential has expired",
            Refused::Revoked => "the credential was revoked",
            Refused::Unfit => "the claims of the token are not valid here",
        }
    }
}

/// A scope from its word; `exec` is another word for `run`.
pub(crate) fn scope(word: &str) -> Result<Scope, Failure> {
    let known = Scope::parse(if word == "exec" { "run" } else { word });
    known.ok_or_else(|| {
        let words: Vec<&str> = Scope::ALL.iter().map(|scope| scope.as_str()).collect();
        let hint = format!("scopes are: {}", words.join(", "));
        Failure::invalid(format!("{word:?} is no scope")).hint(hint)
    })
}

/// A name for a key. Names of tokens' holders are not for keys.
pub(crate) fn key_name(text: &str) -> Result<PrincipalName, Failure> {
    match text.starts_with(jwt::PREFIX) {
        true => Err(Failure::invalid(format!(
            "{text:?} is the name of a token's holder"
        ))),
        false => parse(text),
    }
}
