//! The caller in a request's headers: version, class, name, and the rights it has given up.

use crate::ops::caller::{Caller, Grant, Peer};
use crate::ops::failure::Failure;
use crate::ops::parse;
use crate::table::{Class, Row, Scope};
use crate::wire::{
    CLASS_HEADER, NAME_HEADER, SCOPES_HEADER, VAULTS_HEADER, VERSION, VERSION_HEADER,
};
use avfs_runtime::{Principal, PrincipalName};
use axum::extract::ConnectInfo;
use axum::http::HeaderMap;
use axum::http::request::Parts;
use std::borrow::Cow;

/// The caller of a request, if its version is this one.
pub(crate) fn caller(row: &Row, parts: &Parts) -> Result<Caller, Failure> {
    let headers = &parts.headers;
    if row.route != "/v1/daemon" && row.route != "/v1/daemon/stop" {
        // These two operations never change, so that any client can replace any daemon.
        same_version(headers)?;
    }
    let class = class(headers)?;
    let peer = parts.extensions.get::<ConnectInfo<Peer>>();
    Ok(Caller {
        class,
        principal: principal(class, headers)?,
        peer: peer.map_or_else(Peer::default, |info| info.0),
        grant: grant(headers)?,
    })
}

/// Whoever sent a request to a surface that serves agents alone: an agent, whatever it says of its class.
pub(crate) fn agent(parts: &Parts) -> Result<Caller, Failure> {
    let headers = &parts.headers;
    same_version(headers)?;
    let peer = parts.extensions.get::<ConnectInfo<Peer>>();
    Ok(Caller {
        class: Class::Agent,
        principal: principal(Class::Agent, headers)?,
        peer: peer.map_or_else(Peer::default, |info| info.0),
        grant: grant(headers)?,
    })
}

fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<Cow<'a, str>> {
    let value = headers.get(name)?;
    Some(String::from_utf8_lossy(value.as_bytes()))
}

fn same_version(headers: &HeaderMap) -> Result<(), Failure> {
    match text(headers, VERSION_HEADER) {
        Some(version) if version != VERSION => Err(Failure::other_version(&version)),
        _ => Ok(()),
    }
}

/// The caller, whatever the operation.
pub(crate) fn asking(headers: &HeaderMap) -> Result<Principal, Failure> {
    principal(class(headers)?, headers)
}

/// The class of a caller: owner, unless it was given up.
fn class(headers: &HeaderMap) -> Result<Class, Failure> {
    let Some(word) = text(headers, CLASS_HEADER) else {
        return Ok(Class::Owner);
    };
    Class::parse(&word).ok_or_else(|| Failure::invalid(format!("{word:?} is not a class")))
}

/// The principal that a caller of this class names.
fn principal(class: Class, headers: &HeaderMap) -> Result<Principal, Failure> {
    let name = text(headers, NAME_HEADER);
    let name: Option<PrincipalName> = name.map(|name| parse(&name)).transpose()?;
    Ok(match class {
        Class::Agent => Principal::agent(name),
        Class::Owner => Principal::owner(name),
    })
}

/// The rights that a caller has not given up.
fn grant(headers: &HeaderMap) -> Result<Grant, Failure> {
    let scope = |word: &str| {
        Scope::parse(word).ok_or_else(|| Failure::invalid(format!("{word:?} is not a scope")))
    };
    Ok(Grant {
        scopes: list(headers, SCOPES_HEADER, scope)?,
        vaults: list(headers, VAULTS_HEADER, parse)?,
    })
}

/// The comma-separated words of a header. If it is given twice, both apply.
fn list<T: PartialEq>(
    headers: &HeaderMap,
    name: &str,
    read: impl Fn(&str) -> Result<T, Failure>,
) -> Result<Option<Vec<T>>, Failure> {
    let mut all: Option<Vec<T>> = None;
    for value in headers.get_all(name) {
        let text = String::from_utf8_lossy(value.as_bytes());
        let words = text.split(',').map(str::trim).filter(|it| !it.is_empty());
        let words: Vec<T> = words.map(&read).collect::<Result<_, _>>()?;
        match &mut all {
            Some(all) => all.retain(|word| words.contains(word)),
            None => all = Some(words),
        }
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::HeaderValue;

    fn granted(values: &[&'static str]) -> Option<Vec<Scope>> {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(SCOPES_HEADER, HeaderValue::from_static(value));
        }
        grant(&headers).unwrap().scopes
    }

    #[test]
    fn rights_can_only_be_given_up() {
        assert_eq!(granted(&[]), None, "all of them");
        assert_eq!(granted(&["read, run"]), Some(vec![Scope::Read, Scope::Run]));
        assert_eq!(granted(&[""]), Some(Vec::new()), "none of them");
        assert_eq!(granted(&["read,run", "run,admin"]), Some(vec![Scope::Run]));
    }

    #[test]
    fn a_word_that_nobody_knows_is_refused() {
        for (name, value) in [(SCOPES_HEADER, "reed"), (VAULTS_HEADER, "a/b")] {
            let mut headers = HeaderMap::new();
            headers.insert(name, HeaderValue::from_static(value));
            assert!(grant(&headers).is_err(), "{name}: {value}");
        }
    }
}
