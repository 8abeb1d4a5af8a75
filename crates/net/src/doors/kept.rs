//! Requests to package registries, answered from what is kept, or by the host and kept then.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use avfs_policy::HostPort;
use http_body_util::Empty;
use http_cache_semantics::{AfterResponse, BeforeRequest, CachePolicy};
use hyper::body::{Body as _, Bytes, Incoming};
use hyper::client::conn::http1::handshake;
use hyper::header::{
    AUTHORIZATION, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_RANGE, COOKIE, ETAG,
    HOST, HeaderMap, HeaderName, HeaderValue, IF_MODIFIED_SINCE, IF_NONE_MATCH, LAST_MODIFIED,
    RANGE, SET_COOKIE, TRANSFER_ENCODING, UPGRADE, USER_AGENT,
};
use hyper::http::{request, response};
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::sync::watch;
use tokio::time::timeout;

use super::feed::{self, Held, Source};
use super::head;
use super::http::{Body, Requests, empty};
use crate::cache::{
    Cache, Entry, Joined, Key, Lead, Origin, SENT, Stage, download, is_release, policy,
    policy_of_release,
};
use crate::dial::{self, AGENT};
use crate::refusal::Refusal;

/// How often a request waits for a download of somebody else that fails.
const TRIES: usize = 4;
/// For the head of an answer to come.
const PATIENCE: Duration = Duration::from_secs(60);
/// Longer ones are no package manager's.
const SENT_MAX: usize = 1024;
/// With these a request is for one client alone, or for a part of an answer. It is passed on as it is.
const OWN: [HeaderName; 5] = [AUTHORIZATION, COOKIE, RANGE, UPGRADE, TRANSFER_ENCODING];

/// A request for an answer that may be kept.
struct Asked<'a> {
    requests: &'a Arc<Requests>,
    cache: Cache,
    at: &'a HostPort,
    key: Key,
    /// What the client sent.
    client: &'a request::Parts,
    /// All of it that the host gets, without credentials.
    sent: request::Parts,
    secrets: Vec<(HeaderName, HeaderValue)>,
}

/// The answer to a request, unless it is to be passed on.
pub(super) async fn answer(
    requests: &Arc<Requests>,
    at: &HostPort,
    head: &request::Parts,
) -> Result<Option<Response<Body>>, Refusal> {
    let Some(asked) = asked(requests, at, head)? else {
        return Ok(None);
    };
    let found = asked.found().await?;
    Ok(found.map(|found| asked.give(found)))
}

/// What a request is answered with.
struct Found {
    status: StatusCode,
    headers: HeaderMap,
    source: Source,
}

/// A request whose answer broke off, to be made again.
pub(super) struct Again {
    requests: Arc<Requests>,
    at: HostPort,
    client: request::Parts,
    /// Of the answer that the client has begun to get.
    headers: HeaderMap,
}

impl Again {
    /// All of that answer, if it can still be had. It may be another one: what the client has got must be its beginning.
    pub(super) async fn source(&self) -> Option<Source> {
        let asked = asked(&self.requests, &self.at, &self.client).ok()??;
        let found = asked.found().await.ok()??;
        let same = [ETAG, LAST_MODIFIED, CONTENT_ENCODING]
            .iter()
            .all(|name| found.headers.get(name) == self.headers.get(name));
        (found.status == StatusCode::OK && same).then_some(found.source)
    }
}

/// Waits until the host has answered whoever asked it.
async fn answered(mut stage: watch::Receiver<Stage>) -> Stage {
    let changed = stage.wait_for(|stage| !matches!(stage, Stage::Asked)).await;
    changed.map_or(Stage::Failed, |stage| stage.clone())
}

/// The request, if its answer may be kept.
fn asked<'a>(
    requests: &'a Arc<Requests>,
    at: &'a HostPort,
    head: &'a request::Parts,
) -> Result<Option<Asked<'a>>, Refusal> {
    let Some(cache) = &requests.service.common.config.cache else {
        return Ok(None);
    };
    let is_for_all = head.method == Method::GET
        && !words(&head.headers, &CACHE_CONTROL).any(|word| word == "no-store")
        && requests.plain_proxy(&at.host).is_none()
        && requests.connection.is_registry(at);
    let Some(path) = head.uri.path_and_query().filter(|_| is_for_all) else {
        return Ok(None);
    };
    let secure = requests.is_secure();
    let secrets = requests.connection.secrets(at, secure, head)?;
    // What a secret takes the place of is a placeholder.
    let replaced = |name: &HeaderName| secrets.iter().any(|(secret, _)| secret == name);
    let mut own = OWN.iter().filter(|name| head.headers.contains_key(*name));
    if own.any(|name| !replaced(name)) {
        return Ok(None);
    }
    let parts = cache.parts();
    let key = Key::of(
        secure,
        at,
        path.as_str(),
        &head.headers,
        &parts.credentials,
        &secrets,
    );
    let sent = sent(at, secure, path.as_str(), &head.headers);
    Ok(key.zip(sent).map(|(key, sent)| Asked {
        requests,
        cache: cache.clone(),
        at,
        key,
        client: head,
        sent,
        secrets,
    }))
}

/// The request that the host gets, in absolute form: nothing of the client's is in it but what the key has.
fn sent(at: &HostPort, secure: bool, path: &str, headers: &HeaderMap) -> Option<request::Parts> {
    let scheme = if secure { "https" } else { "http" };
    let uri = format!("{scheme}://{at}{path}");
    let mut request = Request::get(uri).header(HOST, at.host.to_string());
    request = request.header(USER_AGENT, AGENT);
    let mut bytes = 0;
    for name in &SENT {
        for value in headers.get_all(name) {
            bytes += value.len();
            request = request.header(name, value);
        }
    }
    let request = request.body(()).ok().filter(|_| bytes <= SENT_MAX)?;
    Some(request.into_parts().0)
}

fn words<'a>(headers: &'a HeaderMap, name: &HeaderName) -> impl Iterator<Item = String> + 'a {
    let values = headers.get_all(name).iter();
    let texts = values.filter_map(|value| value.to_str().ok());
    texts.flat_map(|text| text.split(',').map(|word| word.trim().to_ascii_lowercase()))
}

impl Asked<'_> {
    /// What answers the request: an answer that is kept, or the host's; nothing if it is to be passed on.
    async fn found(&self) -> Result<Option<Found>, Refusal> {
        for _ in 0..TRIES {
            let kept = self.kept().await;
            if let Some(found) = kept.as_ref().and_then(|kept| self.fresh(kept)) {
                return Ok(Some(found));
            }
            match self.cache.parts().flights.join(self.key) {
                Joined::First(lead) => {
                    // Somebody may have finished between the look and now.
                    let kept = self.kept().await;
                    if let Some(found) = kept.as_ref().and_then(|kept| self.fresh(kept)) {
                        return Ok(Some(found));
                    }
                    return self.ask(lead, kept).await;
                }
                Joined::Waits(stage) => match answered(stage).await {
                    Stage::Coming(coming) => {
                        let headers = coming.headers.clone();
                        return Ok(Some(whole(headers, Source::Coming(coming, true))));
                    }
                    Stage::Kept(entry) => return Ok(Some(self.still_right(&entry))),
                    Stage::NotShared => return Ok(None),
                    Stage::Asked | Stage::Failed => {}
                },
            }
        }
        Ok(None)
    }

    async fn kept(&self) -> Option<Entry> {
        let (shelf, key) = (Arc::clone(&self.cache.parts().shelf), self.key);
        let found = tokio::task::spawn_blocking(move || shelf.get(&key)).await;
        found.ok().flatten()
    }

    /// What is kept, if it may be used without asking the host.
    fn fresh(&self, entry: &Entry) -> Option<Found> {
        match entry
            .policy()
            .before_request(&self.wanted(), SystemTime::now())
        {
            BeforeRequest::Fresh(head) => Some(from_entry(head.headers, entry)),
            BeforeRequest::Stale { .. } => None,
        }
    }

    /// What the host gets, with what the client says about answers that are kept.
    fn wanted(&self) -> request::Parts {
        let mut wanted = self.sent.clone();
        for value in self.client.headers.get_all(CACHE_CONTROL) {
            wanted.headers.append(CACHE_CONTROL, value.clone());
        }
        wanted
    }

    /// An entry that the host has just said to be right, whatever its age.
    fn still_right(&self, entry: &Entry) -> Found {
        let head = entry.policy().before_request(&self.sent, SystemTime::now());
        let headers = match head {
            BeforeRequest::Fresh(head) => head.headers,
            // Good for this answer alone.
            BeforeRequest::Stale { .. } => entry.headers(),
        };
        from_entry(headers, entry)
    }

    /// An answer to the client, or that it has the answer already.
    fn give(&self, found: Found) -> Response<Body> {
        let Found {
            status,
            headers,
            source,
        } = found;
        let meter = &self.requests.connection.meter;
        let shared = !matches!(source, Source::Host(..));
        let mut answer = match shared && is_known(&self.client.headers, &headers) {
            true => {
                let mut known = Response::new(empty());
                *known.status_mut() = StatusCode::NOT_MODIFIED;
                known
            }
            false => {
                let again = shared.then(|| self.again(&headers));
                let mut answer = Response::new(feed::body(source, again, meter));
                *answer.status_mut() = status;
                answer
            }
        };
        *answer.headers_mut() = headers;
        if answer.status() == StatusCode::NOT_MODIFIED {
            answer.headers_mut().remove(CONTENT_LENGTH);
        }
        answer
    }

    fn again(&self, headers: &HeaderMap) -> Again {
        Again {
            requests: Arc::clone(self.requests),
            at: self.at.clone(),
            client: self.client.clone(),
            headers: headers.clone(),
        }
    }

    /// Asks the host, and keeps its answer if that may be.
    async fn ask(&self, lead: Lead, kept: Option<Entry>) -> Result<Option<Found>, Refusal> {
        let mut request = self.sent.clone();
        if let Some(entry) = &kept
            && let BeforeRequest::Stale { request: asks, .. } = entry
                .policy()
                .before_request(&self.wanted(), SystemTime::now())
        {
            for name in [IF_NONE_MATCH, IF_MODIFIED_SINCE] {
                if let Some(value) = asks.headers.get(&name) {
                    request.headers.insert(name, value.clone());
                }
            }
        }
        let (answer, origin) = self.send(request).await?;
        let (mut head, body) = answer.into_parts();
        head::strip_hop_by_hop(&mut head.headers, false);
        match kept {
            Some(entry) if head.status == StatusCode::NOT_MODIFIED => {
                self.renewed(lead, &entry, &head, origin).await
            }
            _ => Ok(Some(self.taken(lead, head, body, origin).await)),
        }
    }

    /// What is kept is still right.
    async fn renewed(
        &self,
        lead: Lead,
        entry: &Entry,
        head: &response::Parts,
        origin: Origin,
    ) -> Result<Option<Found>, Refusal> {
        let now = SystemTime::now();
        let AfterResponse::NotModified(policy, renewed) =
            entry.policy().after_response(&self.sent, head, now)
        else {
            // It means another answer than the one that is kept.
            lead.tell(Stage::NotShared);
            return Ok(None);
        };
        let mut headers = renewed.headers;
        headers.remove(SET_COOKIE);
        let entry = Arc::new(entry.renewed(policy, headers));
        let (shelf, key, noted) = (
            Arc::clone(&self.cache.parts().shelf),
            self.key,
            Arc::clone(&entry),
        );
        let _ = tokio::task::spawn_blocking(move || shelf.renew(key, &noted)).await;
        lead.tell(Stage::Kept(Arc::clone(&entry)));
        tokio::spawn(self.held(origin).release());
        Ok(Some(self.still_right(&entry)))
    }

    /// The host's answer, which is kept if that may be.
    async fn taken(
        &self,
        lead: Lead,
        head: response::Parts,
        body: Incoming,
        origin: Origin,
    ) -> Found {
        let policy = self.policy(&head);
        let shelf = Arc::clone(&self.cache.parts().shelf);
        let length = body.size_hint().exact();
        let begun = match policy.is_some() {
            true => tokio::task::spawn_blocking(move || shelf.begin(length))
                .await
                .ok()
                .flatten(),
            false => None,
        };
        let Some((policy, begun)) = policy.zip(begun) else {
            lead.tell(Stage::NotShared);
            return Found {
                status: head.status,
                headers: head.headers,
                source: Source::Host(body, self.held(origin)),
            };
        };
        let headers = policy.1.clone();
        let shelf = Arc::clone(&self.cache.parts().shelf);
        let (coming, work) = download(shelf, lead, policy, begun, body);
        // Whoever asked reads it from now on. The work ends when nobody does.
        let found = whole(headers, Source::Coming(coming, false));
        let held = self.held(origin);
        tokio::spawn(async move {
            if work.await {
                held.release().await;
            }
        });
        found
    }

    /// When the host's answer may be used again, and its headers as they are kept; none if it may not be kept.
    fn policy(&self, head: &response::Parts) -> Option<(CachePolicy, HeaderMap)> {
        let mut shared = Response::new(());
        *shared.status_mut() = head.status;
        *shared.headers_mut() = head.headers.clone();
        // A cookie is for one client.
        let personal = shared.headers_mut().remove(SET_COOKIE).is_some();
        let shared = shared.into_parts().0;
        let path = self
            .sent
            .uri
            .path_and_query()
            .map_or("", |path| path.as_str());
        let now = SystemTime::now();
        let policy = match is_release(path) && !personal {
            true => policy_of_release(&self.sent, &shared, now),
            false => policy(&self.sent, &shared, now),
        };
        policy.map(|policy| (policy, shared.headers))
    }

    fn held(&self, origin: Origin) -> Held {
        Held {
            cache: self.cache.clone(),
            secure: self.requests.is_secure(),
            at: self.at.clone(),
            origin,
        }
    }

    /// A connection that was used before, to an address that this command may dial too.
    fn used_before(&self) -> Option<Origin> {
        let (connection, origins) = (&self.requests.connection, &self.cache.parts().origins);
        let may = |address| connection.check_resolved(address, self.at.port).is_ok();
        let origin = origins.take(self.requests.is_secure(), self.at, may)?;
        if let Some(address) = origin.address {
            connection.dialled(address);
        }
        Some(origin)
    }

    /// Sends a request to the host, on a connection that was used before if there is one.
    async fn send(&self, head: request::Parts) -> Result<(Response<Incoming>, Origin), Refusal> {
        let failed = |why: String| Refusal::Unreachable(self.at.clone(), why);
        let secure = self.requests.is_secure();
        let mut head = head;
        head::address(&mut head, self.at, secure, false)?;
        for (name, value) in &self.secrets {
            head.headers.insert(name, value.clone());
        }
        let mut request = Request::from_parts(head, Empty::<Bytes>::new());
        if let Some(mut origin) = self.used_before()
            && origin.sender.ready().await.is_ok()
        {
            match timeout(PATIENCE, origin.sender.try_send_request(request)).await {
                Ok(Ok(answer)) => return Ok((answer, origin)),
                Ok(Err(mut error)) => match error.take_message() {
                    Some(unsent) => request = unsent,
                    None => return Err(failed(error.into_error().to_string())),
                },
                Err(_) => return Err(failed("it took too long".to_owned())),
            }
        }
        let mut origin = self.connect().await?;
        let answer = timeout(PATIENCE, origin.sender.send_request(request)).await;
        let answer = answer.map_err(|_| failed("it took too long".to_owned()))?;
        Ok((answer.map_err(|error| failed(error.to_string()))?, origin))
    }

    async fn connect(&self) -> Result<Origin, Refusal> {
        let (common, at) = (&self.requests.service.common, self.at);
        let mut stream = dial::unmetered(common, &self.requests.connection, at).await?;
        if self.requests.is_secure() {
            stream = dial::secure(common, at, stream).await?;
        }
        let shaken = handshake(TokioIo::new(stream)).await;
        let (sender, connection) =
            shaken.map_err(|error| Refusal::Unreachable(at.clone(), error.to_string()))?;
        // Ends when nobody holds the other side.
        tokio::spawn(connection);
        let address = self.requests.connection.address();
        Ok(Origin { sender, address })
    }
}

fn whole(headers: HeaderMap, source: Source) -> Found {
    Found {
        status: StatusCode::OK,
        headers,
        source,
    }
}

fn from_entry(mut headers: HeaderMap, entry: &Entry) -> Found {
    headers.insert(CONTENT_LENGTH, HeaderValue::from(entry.length()));
    if !entry.has(&CACHE_CONTROL) {
        // It is our own rule about releases, and no word of the host.
        headers.remove(CACHE_CONTROL);
    }
    whole(
        headers,
        Source::Kept(Arc::clone(&entry.body), entry.length()),
    )
}

/// Whether the client says that it has this very answer.
fn is_known(client: &HeaderMap, answer: &HeaderMap) -> bool {
    if client.contains_key(CONTENT_RANGE) {
        return false;
    }
    let strong = |tag: &str| tag.strip_prefix("W/").unwrap_or(tag).to_owned();
    if client.contains_key(IF_NONE_MATCH) {
        let own = answer
            .get(ETAG)
            .and_then(|tag| tag.to_str().ok())
            .map(strong);
        let texts = client.get_all(IF_NONE_MATCH).iter();
        let texts = texts.filter_map(|value| value.to_str().ok());
        let mut tags = texts
            .flat_map(|text| text.split(','))
            .map(|tag| strong(tag.trim()));
        return own.is_some_and(|own| tags.any(|tag| tag == own || tag == "*"));
    }
    let since = client.get(IF_MODIFIED_SINCE);
    since.is_some() && since == answer.get(LAST_MODIFIED)
}
