//! The caller of a request: by its connection, its credential, and the rights it has given up.

use super::{docs, kernel};
use crate::auth::Identity;
use crate::ops::app::App;
use crate::ops::caller::{Caller, Grant, Peer, Share};
use crate::ops::failure::Failure;
use crate::ops::parse;
use crate::ops::traces::TraceContext;
use crate::serving::Open;
use crate::table::{Class, Row, Scope};
use crate::wire::{
    CLASS_HEADER, NAME_HEADER, SCOPES_HEADER, VAULTS_HEADER, VERSION, VERSION_HEADER,
};
use avfs_runtime::{ErrorKind, Principal, PrincipalName, VaultPattern};
use axum::extract::{ConnectInfo, Request, State};
use axum::http::HeaderMap;
use axum::http::header::{AUTHORIZATION, SEC_WEBSOCKET_PROTOCOL};
use axum::http::request::Parts;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use std::borrow::Cow;
use std::sync::Arc;

/// The other header in which a key may be shown.
const KEY_HEADER: &str = "x-api-key";

/// How a page shows a key when it opens a WebSocket: browsers let it name protocols there, and set no headers.
const KEY_PROTOCOL: &str = "avfs.key.";

/// Whether an address needs no credential.
fn is_public(path: &str) -> bool {
    ["/healthz", "/readyz", kernel::PUBLIC].contains(&path)
        || docs::PAGE.iter().any(|part| part.0 == path)
}

/// Identifies the caller before anything else. Handlers find it in the request's extensions as [`Caller`].
pub(crate) async fn identify(
    State(app): State<Arc<App>>,
    mut request: Request,
    next: Next,
) -> Response {
    match identified(&app, &request) {
        Ok(caller) => {
            if let Some(caller) = caller {
                request.extensions_mut().insert(caller);
            }
            next.run(request).await
        }
        Err(failure) => failure.into_response(),
    }
}

/// The caller of a request; `None` for public addresses.
fn identified(app: &App, request: &Request) -> Result<Option<Caller>, Failure> {
    let headers = request.headers();
    let Some(ConnectInfo(peer)) = request.extensions().get::<ConnectInfo<Peer>>() else {
        return Err(Failure::new(
            ErrorKind::Bug,
            "a request without a connection",
        ));
    };
    let credential = credential(headers);
    if let Peer::Remote { address, local } = *peer {
        app.hosts.check(headers, request.uri(), local)?;
        if is_public(request.uri().path()) {
            return Ok(None);
        }
        let shown = credential.and_then(|shown| {
            shown.ok_or_else(|| Failure::unauthenticated("this needs a credential"))
        });
        let identity = shown.and_then(|shown| app.auth.identify(shown));
        let identity = identity.map_err(|failure| {
            app.metrics.unauthenticated();
            app.logs.unauthenticated(address);
            app.auth.refused(address, failure)
        })?;
        return caller(app, *peer, Some(identity), request).map(Some);
    }
    let identity = credential?.map(|shown| app.auth.identify(shown));
    caller(app, *peer, identity.transpose()?, request).map(Some)
}

/// The caller of a request with this identity, or of a local request without one.
fn caller(
    app: &App,
    peer: Peer,
    identity: Option<Identity>,
    request: &Request,
) -> Result<Caller, Failure> {
    let headers = request.headers();
    let (class, named) = (class(headers)?, name(headers)?);
    let mut grant = Grant::default();
    let Some(identity) = identity else {
        give_up(&mut grant, headers)?;
        return Ok(Caller {
            class,
            principal: principal(class, named),
            peer,
            share: peer.share(),
            grant,
            trace: trace(app, headers),
        });
    };
    if named.is_some_and(|named| named != identity.name) {
        let problem = format!("this credential is {}'s", identity.name.as_str());
        return Err(Failure::new(ErrorKind::Denied, problem).hint("leave the name out"));
    }
    let proof = identity.proof();
    app.auth.take_turn(&proof)?;
    if let Some(open) = request.extensions().get::<Open>() {
        open.note(proof);
    }
    let class = match class {
        Class::Agent => Class::Agent,
        Class::Owner => identity.class(),
    };
    grant.scopes = Some(identity.scopes);
    grant.asks_user = identity.asks_user;
    grant.limit(identity.vaults);
    give_up(&mut grant, headers)?;
    Ok(Caller {
        class,
        principal: principal(class, Some(identity.name)),
        peer,
        share: Share::Credential(identity.name),
        grant,
        trace: trace(app, headers),
    })
}

/// The trace that a request belongs to, if traces are wanted.
fn trace(app: &App, headers: &HeaderMap) -> Option<TraceContext> {
    let parent = headers.get("traceparent").and_then(|it| it.to_str().ok());
    app.traces.is_on().then(|| TraceContext::new(parent))
}

/// The credential that a request shows, if any. Two are refused: whoever looks at the other one, a proxy perhaps, must
/// not have seen somebody else.
fn credential(headers: &HeaderMap) -> Result<Option<&str>, Failure> {
    let strange = || Failure::unauthenticated("this is no credential");
    let mut shown = Vec::new();
    for value in headers.get_all(KEY_HEADER) {
        shown.push(value.to_str().map_err(|_| strange())?.trim());
    }
    for value in headers.get_all(AUTHORIZATION) {
        let text = value.to_str().map_err(|_| strange())?;
        let (scheme, text) = text.split_once(' ').ok_or_else(strange)?;
        if !scheme.eq_ignore_ascii_case("bearer") {
            return Err(strange());
        }
        shown.push(text.trim());
    }
    for value in headers.get_all(SEC_WEBSOCKET_PROTOCOL) {
        let protocols = value.to_str().map_err(|_| strange())?.split(',');
        shown.extend(protocols.filter_map(|it| it.trim().strip_prefix(KEY_PROTOCOL)));
    }
    match shown[..] {
        [] => Ok(None),
        [only] => Ok(Some(only)),
        _ => Err(Failure::invalid("a request shows one credential")),
    }
}

/// The caller that [`identify`] found, if its version is this one.
pub(crate) fn known(row: &Row, parts: &Parts) -> Result<Caller, Failure> {
    if row.route != "/v1/daemon" && row.route != "/v1/daemon/stop" {
        // These two operations never change, so that any client can replace any daemon.
        same_version(&parts.headers)?;
    }
    identified_in(parts)
}

/// The caller that [`identify`] found, on a surface that serves agents alone: an agent, whatever else it is or says. What
/// its credential was given and what it gave up stay.
pub(crate) fn agent(parts: &Parts) -> Result<Caller, Failure> {
    same_version(&parts.headers)?;
    let caller = identified_in(parts)?;
    let named = match caller.share {
        Share::Credential(name) => Some(name),
        Share::Process(_) | Share::Address(_) => name(&parts.headers)?,
    };
    Ok(Caller {
        class: Class::Agent,
        principal: principal(Class::Agent, named),
        ..caller
    })
}

fn identified_in(parts: &Parts) -> Result<Caller, Failure> {
    let caller = parts.extensions.get::<Caller>().cloned();
    caller.ok_or_else(|| Failure::unauthenticated("this needs a credential"))
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

/// The class of a caller: owner, unless it was given up.
fn class(headers: &HeaderMap) -> Result<Class, Failure> {
    let Some(word) = text(headers, CLASS_HEADER) else {
        return Ok(Class::Owner);
    };
    Class::parse(&word).ok_or_else(|| Failure::invalid(format!("{word:?} is not a class")))
}

/// The name in a request's headers.
fn name(headers: &HeaderMap) -> Result<Option<PrincipalName>, Failure> {
    let name = text(headers, NAME_HEADER);
    name.map(|name| parse(&name)).transpose()
}

fn principal(class: Class, name: Option<PrincipalName>) -> Principal {
    match class {
        Class::Agent => Principal::agent(name),
        Class::Owner => Principal::owner(name),
    }
}

/// Removes the rights that a caller has given up. If a header is given twice, both apply.
fn give_up(grant: &mut Grant, headers: &HeaderMap) -> Result<(), Failure> {
    let scope = |word: &str| {
        Scope::parse(word).ok_or_else(|| Failure::invalid(format!("{word:?} is not a scope")))
    };
    for kept in lists(headers, SCOPES_HEADER, scope)? {
        match &mut grant.scopes {
            Some(scopes) => scopes.retain(|scope| kept.contains(scope)),
            None => grant.scopes = Some(kept),
        }
    }
    for kept in lists(headers, VAULTS_HEADER, |text| {
        Ok(VaultPattern::parse(text)?)
    })? {
        grant.limit(kept);
    }
    Ok(())
}

/// The comma-separated words of each header of this name.
fn lists<T>(
    headers: &HeaderMap,
    name: &str,
    read: impl Fn(&str) -> Result<T, Failure>,
) -> Result<Vec<Vec<T>>, Failure> {
    let list = |value: &axum::http::HeaderValue| {
        let text = String::from_utf8_lossy(value.as_bytes());
        let words = text.split(',').map(str::trim).filter(|it| !it.is_empty());
        words.map(&read).collect::<Result<Vec<T>, Failure>>()
    };
    headers.get_all(name).iter().map(list).collect()
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
        let mut grant = Grant::default();
        give_up(&mut grant, &headers).unwrap();
        grant.scopes
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
            assert!(
                give_up(&mut Grant::default(), &headers).is_err(),
                "{name}: {value}"
            );
        }
    }

    #[test]
    fn vaults_of_every_list_are_left() {
        let mut headers = HeaderMap::new();
        for value in ["a-*,b", "*", "*-1"] {
            headers.append(VAULTS_HEADER, HeaderValue::from_static(value));
        }
        let mut grant = Grant::default();
        give_up(&mut grant, &headers).unwrap();
        let reaches = |name: &str| grant.reaches(&name.parse().unwrap());
        assert!(reaches("a-1"));
        for name in ["a-2", "b", "c-1"] {
            assert!(!reaches(name), "{name}");
        }
    }

    /// What a request with these headers shows; the status where that is refused.
    fn shown(pairs: &[(&'static str, &'static str)]) -> Result<Option<String>, u16> {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(*name, HeaderValue::from_static(value));
        }
        let found = credential(&headers).map(|text| text.map(str::to_owned));
        found.map_err(|failure| failure.problem().status)
    }

    #[test]
    fn one_credential_is_shown_in_one_of_three_headers() {
        assert_eq!(shown(&[]), Ok(None));
        for pair in [
            ("authorization", "Bearer k"),
            ("authorization", "bEARER  k "),
            ("x-api-key", "k"),
            ("sec-websocket-protocol", "avfs.terminal, avfs.key.k"),
        ] {
            assert_eq!(shown(&[pair]), Ok(Some("k".into())), "{pair:?}");
        }
        for pair in [("authorization", "Basic k"), ("authorization", "k")] {
            assert_eq!(shown(&[pair]), Err(401), "{pair:?}");
        }
        let (bearer, key) = (("authorization", "Bearer k"), ("x-api-key", "k"));
        let page = ("sec-websocket-protocol", "avfs.key.k");
        for two in [[bearer, key], [bearer, bearer], [key, key], [key, page]] {
            assert_eq!(shown(&two), Err(400), "{two:?}");
        }
        let both = ("sec-websocket-protocol", "avfs.key.k,avfs.key.k");
        assert_eq!(shown(&[both]), Err(400));
        assert_eq!(shown(&[("sec-websocket-protocol", "chat")]), Ok(None));
    }
}
