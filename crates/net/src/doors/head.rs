//! The head of an HTTP request: which host it is for, and what of it is passed on.

use avfs_policy::{Host, HostPort};
use hyper::header::{
    CONNECTION, CONTENT_LENGTH, HOST, HeaderMap, HeaderName, HeaderValue, TE, TRAILER,
    TRANSFER_ENCODING, UPGRADE,
};
use hyper::http::request;
use hyper::{Method, Uri, Version};

use crate::names::Names;
use crate::refusal::Refusal;

/// Headers that are about one connection and not about the request. `Proxy-Authorization` is among them: credentials for a proxy are
/// nothing for a host.
const HOP_BY_HOP: [&str; 6] = [
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "connection",
    "http2-settings",
];

/// The target of a request to the proxy, in absolute form. The Host header, if there is one, must name the same.
pub(super) fn target_of_proxied(head: &request::Parts, names: &Names) -> Result<HostPort, Refusal> {
    check_framing(&head.headers)?;
    let Some(authority) = head.uri.authority() else {
        return Err(Refusal::Malformed(
            "a request to a proxy names the whole address",
        ));
    };
    if head.uri.scheme_str() != Some("http") {
        return Err(Refusal::Malformed(
            "only http:// is passed on; use CONNECT for others",
        ));
    }
    let at = host_port(authority.as_str(), 80, names)?;
    match host_header(&head.headers, 80, names)? {
        Some(named) if named != at => Err(other(&at, &named)),
        _ => Ok(at),
    }
}

/// Checks that a request on a connection for a host is for that host.
pub(super) fn check_direct(
    head: &request::Parts,
    names: &Names,
    at: &HostPort,
) -> Result<(), Refusal> {
    check_framing(&head.headers)?;
    if head.method == Method::CONNECT {
        return Err(Refusal::Malformed("CONNECT is for the proxy"));
    }
    if let Some(authority) = head.uri.authority() {
        let named = host_port(authority.as_str(), at.port, names)?;
        if named != *at {
            return Err(other(at, &named));
        }
    }
    // Connections for a host are on the port that its scheme leaves out.
    match host_header(&head.headers, at.port, names)? {
        Some(named) if named == *at => Ok(()),
        Some(named) => Err(other(at, &named)),
        None => Err(Refusal::Malformed("a request has a Host header")),
    }
}

fn other(dialled: &HostPort, named: &HostPort) -> Refusal {
    Refusal::other_host(dialled, &named.host.to_string(), named.port)
}

/// The target of CONNECT.
pub(super) fn target_of_connect(uri: &Uri, names: &Names) -> Result<HostPort, Refusal> {
    let text = uri.authority().map_or("", |authority| authority.as_str());
    let at = HostPort::parse(text).map_err(|error| Refusal::no_host(text, 0, error))?;
    Ok(HostPort::new(names.meant(at.host), at.port))
}

fn host_port(text: &str, default: u16, names: &Names) -> Result<HostPort, Refusal> {
    let at = HostPort::parse_with_default(text, Some(default));
    let at = at.map_err(|error| Refusal::no_host(text, default, error))?;
    Ok(HostPort::new(names.meant(at.host), at.port))
}

/// The one Host header. Two are refused even if they are equal.
fn host_header(
    headers: &HeaderMap,
    default: u16,
    names: &Names,
) -> Result<Option<HostPort>, Refusal> {
    let mut all = headers.get_all(HOST).iter();
    let (Some(one), None) = (all.next(), all.next()) else {
        return match headers.contains_key(HOST) {
            true => Err(Refusal::Malformed("a request has one Host header")),
            false => Ok(None),
        };
    };
    let shown = String::from_utf8_lossy(one.as_bytes());
    host_port(&shown, default, names).map(Some)
}

/// The length of a body is said once and in one way.
fn check_framing(headers: &HeaderMap) -> Result<(), Refusal> {
    let lengths = headers.get_all(CONTENT_LENGTH).iter().count();
    let encodings = headers.get_all(TRANSFER_ENCODING).iter().count();
    if lengths + encodings > 1 {
        return Err(Refusal::Malformed(
            "the length of the body is said more than once",
        ));
    }
    let chunked = |value: &HeaderValue| value.as_bytes().eq_ignore_ascii_case(b"chunked");
    match headers.get(TRANSFER_ENCODING).is_none_or(chunked) {
        true => Ok(()),
        false => Err(Refusal::Malformed("the only transfer encoding is chunked")),
    }
}

/// Whether a request asks for a WebSocket. Any other upgrade is not passed on, as what follows could name other hosts.
pub(super) fn wants_websocket(headers: &HeaderMap) -> bool {
    let upgrade = headers.get(UPGRADE).and_then(|value| value.to_str().ok());
    let mut connection = words(headers, &CONNECTION);
    upgrade.is_some_and(|value| value.eq_ignore_ascii_case("websocket"))
        && connection.any(|word| word.eq_ignore_ascii_case("upgrade"))
}

fn words<'a>(headers: &'a HeaderMap, name: &HeaderName) -> impl Iterator<Item = &'a str> {
    let values = headers.get_all(name).iter();
    let texts = values.filter_map(|value| value.to_str().ok());
    texts.flat_map(|text| text.split(',').map(str::trim))
}

/// Takes away what is about one connection.
pub(super) fn strip_hop_by_hop(headers: &mut HeaderMap, websocket: bool) {
    let named: Vec<HeaderName> = words(headers, &CONNECTION)
        .filter_map(|word| HeaderName::try_from(word).ok())
        // A request cannot have its own framing or host taken away.
        .filter(|name| ![HOST, CONTENT_LENGTH, TRANSFER_ENCODING, UPGRADE].contains(name))
        .collect();
    for name in named {
        headers.remove(name);
    }
    for name in HOP_BY_HOP {
        headers.remove(name);
    }
    let trailers = words(headers, &TE).any(|word| word.eq_ignore_ascii_case("trailers"));
    headers.remove(TE);
    if trailers {
        headers.insert(TE, HeaderValue::from_static("trailers"));
    }
    // Framing is said anew for the connection that the message goes out on.
    headers.remove(TRANSFER_ENCODING);
    headers.remove(TRAILER);
    match websocket {
        true => {
            headers.insert(CONNECTION, HeaderValue::from_static("upgrade"));
        }
        false => {
            headers.remove(UPGRADE);
        }
    }
}

/// Makes a head that is for the host: its path alone, or the whole address for a proxy, and one Host header.
pub(super) fn address(
    head: &mut request::Parts,
    at: &HostPort,
    secure: bool,
    whole: bool,
) -> Result<(), Refusal> {
    let wrong = |_| Refusal::Malformed("the address of the request cannot be passed on");
    // The port of the scheme is left out, as hosts expect.
    let usual = at.port == if secure { 443 } else { 80 };
    let host = match &at.host {
        Host::Name(name) if usual => name.to_string(),
        _ => at.to_string(),
    };
    let value = HeaderValue::try_from(&host);
    let value = value.map_err(|_| Refusal::Malformed("the host cannot be passed on"))?;
    head.headers.insert(HOST, value);
    head.version = Version::HTTP_11;
    let path = head.uri.path_and_query().map_or("/", |path| path.as_str());
    // `OPTIONS *` has no path.
    let uri = match (whole, path) {
        (true, "*") => format!("http://{host}"),
        (true, path) => format!("http://{host}{path}"),
        (false, path) => path.to_owned(),
    };
    head.uri = uri.parse::<Uri>().map_err(wrong)?;
    Ok(())
}
