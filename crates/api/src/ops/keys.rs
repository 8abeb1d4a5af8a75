//! API keys: made, listed, taken back.

use super::failure::Failure;
use super::{Ask, Reply};
use super::{approvals, items};
use crate::auth::keys::{Key, Made, NewKey};
use crate::auth::{self, key_name};
use crate::auth::{class_of, now};
use crate::bounds::REQUESTS_PER_SECOND;
use crate::table::Scope;
use crate::wire::{KeyCreate, KeyItem, KeyList, KeyListing, KeyMade, KeyRevoke, KeyRotate};
use avfs_runtime::{CredentialChange, ErrorKind, Time, VaultPattern};
use serde_json::json;

pub(crate) fn create(ask: &Ask, request: KeyCreate) -> Reply<KeyCreate> {
    ask.session.govern_credentials()?;
    let mut scopes = Vec::new();
    for word in &request.scopes {
        let scope = auth::scope(word)?;
        if !scopes.contains(&scope) {
            scopes.push(scope);
        }
    }
    let answers = request.asks_user || scopes.contains(&Scope::Approve);
    check_gift(ask, &scopes, answers, request.passphrase)?;
    let all = ["*".to_owned()];
    let vaults = match request.vaults.is_empty() {
        true => &all,
        false => request.vaults.as_slice(),
    };
    let vaults = vaults.iter().map(|text| VaultPattern::parse(text));
    let new = NewKey {
        name: key_name(&request.name)?,
        scopes,
        vaults: vaults.collect::<Result<_, _>>()?,
        expires: request.expires_s.map(end),
        rate: request.rate,
        asks_user: request.asks_user,
    };
    let made = ask.app.auth.keys.create(new, now())?;
    told(ask, CredentialChange::Create, made)
}

/// A caller can only give scopes that it has. Whoever makes an approver must be one.
fn check_gift(
    ask: &Ask,
    scopes: &[Scope],
    answers: bool,
    passphrase: Option<String>,
) -> Result<(), Failure> {
    if answers {
        let proof = approvals::proof(&ask.caller, passphrase);
        ask.session.check_approver(&proof)?;
    }
    let Some(own) = &ask.caller.grant.scopes else {
        return Ok(());
    };
    match scopes.iter().find(|scope| !own.contains(scope)) {
        None => Ok(()),
        Some(scope) => {
            let problem = format!("the scope {:?} is not yours to give", scope.as_str());
            Err(Failure::new(ErrorKind::Denied, problem))
        }
    }
}

pub(crate) fn list(ask: &Ask, _: KeyList) -> Reply<KeyList> {
    ask.session.govern_credentials()?;
    let keys = ask.app.auth.keys.list();
    Ok(KeyListing {
        keys: keys.iter().map(item).collect(),
    })
}

pub(crate) fn revoke(ask: &Ask, request: KeyRevoke) -> Reply<KeyRevoke> {
    ask.session.govern_credentials()?;
    let key = ask.app.auth.keys.revoke(&request.name, now())?;
    let (name, details) = (key_name(&key.name)?, json!({ "id": key.id }));
    ask.session
        .record_credential(CredentialChange::Revoke, &name, details)?;
    Ok(item(&key))
}

pub(crate) fn rotate(ask: &Ask, request: KeyRotate) -> Reply<KeyRotate> {
    ask.session.govern_credentials()?;
    let keys = &ask.app.auth.keys;
    let old = keys.list().into_iter().find(|key| key.name == request.name);
    let scopes = old.iter().flat_map(|key| &key.scopes);
    let scopes = scopes.map(|word| auth::scope(word));
    let scopes = scopes.collect::<Result<Vec<_>, _>>()?;
    let asks_user = old.as_ref().is_some_and(|key| key.asks_user);
    let answers = asks_user || scopes.contains(&Scope::Approve);
    check_gift(ask, &scopes, answers, request.passphrase)?;
    let end = match (request.expires_s, request.forever) {
        (None, true) => Some(None),
        (None, false) => None,
        (Some(seconds), false) => Some(Some(end(seconds))),
        (Some(_), true) => return Err(Failure::invalid("it ends after a time or never, not both")),
    };
    let made = keys.rotate(&request.name, end, now())?;
    told(ask, CredentialChange::Rotate, made)
}

fn told(ask: &Ask, change: CredentialChange, made: Made) -> Result<KeyMade, Failure> {
    let key = &made.key;
    let details = json!({
        "id": key.id,
        "scopes": key.scopes,
        "vaults": key.vaults,
        "expires": key.expires.map(time),
        "asks_user": key.asks_user,
    });
    let name = key_name(&key.name)?;
    ask.session.record_credential(change, &name, details)?;
    Ok(KeyMade {
        item: item(key),
        key: made.secret,
    })
}

fn end(seconds: u64) -> i64 {
    now().saturating_add(i64::try_from(seconds).unwrap_or(i64::MAX))
}

fn time(secs: i64) -> String {
    items::time(Time { secs, nanos: 0 })
}

fn item(key: &Key) -> KeyItem {
    let scopes = key.scopes.iter().filter_map(|word| Scope::parse(word));
    let state = match key {
        key if key.revoked.is_some() => "revoked",
        key if key.expires.is_some_and(|end| now() >= end) => "expired",
        _ => "active",
    };
    KeyItem {
        name: key.name.clone(),
        id: key.id.clone(),
        class: class_of(&scopes.collect::<Vec<_>>()).as_str().into(),
        scopes: key.scopes.clone(),
        vaults: key.vaults.clone(),
        rate: key.rate.unwrap_or(REQUESTS_PER_SECOND),
        asks_user: key.asks_user,
        created_at: time(key.created),
        expires_at: key.expires.map(time),
        revoked_at: key.revoked.map(time),
        state: state.into(),
    }
}
