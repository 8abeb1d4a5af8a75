//! Which names this daemon answers to on the network. A page of the web can have its own name lead to this machine and
//! then speak to it as to itself; so a request is refused that was meant for another name, or comes from a page of another.

use crate::ops::failure::Failure;
use avfs_runtime::ErrorKind;
use axum::http::header::{HOST, ORIGIN};
use axum::http::uri::Authority;
use axum::http::{HeaderMap, HeaderName, Uri};
use std::net::IpAddr;

/// The names that the owner says are this machine's.
#[derive(Clone, Debug, Default)]
pub struct Hosts(Vec<String>);

impl Hosts {
    /// From names or addresses, without ports. None when one of them is neither.
    pub fn new(names: &[String]) -> Option<Hosts> {
        let plain = |name: &String| {
            let name = name.to_ascii_lowercase();
            let read = name.parse::<Authority>().ok()?;
            (read.host() == name).then_some(name)
        };
        names.iter().map(plain).collect::<Option<_>>().map(Hosts)
    }

    /// Refuses a request that was not meant for this machine, or that a page from elsewhere makes.
    pub(crate) fn check(
        &self,
        headers: &HeaderMap,
        uri: &Uri,
        local: IpAddr,
    ) -> Result<(), Failure> {
        let host = only(headers, HOST)?.ok_or_else(|| Failure::invalid("there is no host"))?;
        let host = authority(host).filter(|host| self.is_own(host, local));
        let host = host.ok_or_else(|| foreign("this host is not served here"))?;
        if uri
            .authority()
            .is_some_and(|other| !self.is_own(other, local))
        {
            return Err(foreign("this host is not served here"));
        }
        let Some(origin) = only(headers, ORIGIN)? else {
            return Ok(());
        };
        let page = origin
            .split_once("://")
            .and_then(|(_, page)| authority(page));
        match page {
            Some(page) if page.as_str().eq_ignore_ascii_case(host.as_str()) => Ok(()),
            _ => Err(foreign("pages from elsewhere are not served")),
        }
    }

    fn is_own(&self, host: &Authority, local: IpAddr) -> bool {
        if host.as_str().contains('@') {
            return false;
        }
        let name = host.host().to_ascii_lowercase();
        let bare = name.trim_start_matches('[').trim_end_matches(']');
        match bare.parse::<IpAddr>() {
            Ok(address) => address.to_canonical() == local.to_canonical() || self.0.contains(&name),
            Err(_) => {
                let is_here = local.to_canonical().is_loopback() && name == "localhost";
                is_here || self.0.contains(&name)
            }
        }
    }
}

fn authority(text: &str) -> Option<Authority> {
    text.parse().ok()
}

/// The value of a header that is there at most once.
fn only(headers: &HeaderMap, name: HeaderName) -> Result<Option<&str>, Failure> {
    let mut values = headers.get_all(&name).iter();
    let first = values.next();
    if values.next().is_some() {
        return Err(Failure::invalid(format!("there is more than one {name}")));
    }
    let text = first.map(|value| value.to_str()).transpose();
    text.map_err(|_| Failure::invalid(format!("{name} makes no sense")))
}

fn foreign(why: &str) -> Failure {
    Failure::new(ErrorKind::Denied, why).hint("`avfs serve --host NAME` adds a name")
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::HeaderValue;

    const HERE: &str = "127.0.0.1";

    fn asked(names: &[&str], local: &str, uri: &str, pairs: &[(&'static str, &str)]) -> u16 {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(*name, HeaderValue::from_str(value).unwrap());
        }
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let hosts = Hosts::new(&names).unwrap();
        let checked = hosts.check(&headers, &uri.parse().unwrap(), local.parse().unwrap());
        checked.map_or_else(|failure| failure.problem().status, |()| 200)
    }

    #[test]
    fn only_names_of_this_machine_are_answered_to() {
        let host = |local, host| asked(&["avfs.example"], local, "/", &[("host", host)]);
        for own in [
            "127.0.0.1",
            "127.0.0.1:80",
            "LOCALHOST:9",
            "avfs.example:1",
            "Avfs.Example",
        ] {
            assert_eq!(host(HERE, own), 200, "{own}");
        }
        for foreign in [
            "evil.example",
            "127.0.0.1.evil.example",
            "localhost.evil.example",
            "localhost.",
            "8.8.8.8",
            "127.0.0.2",
            "2130706433",
            "0",
            "[::1]",
            "localhost@evil.example",
            "evil@localhost",
            "x.avfs.example",
            "",
        ] {
            let answered = host(HERE, foreign);
            assert!(matches!(answered, 400 | 403), "{foreign}: {answered}");
        }
        assert_eq!(host("::1", "[::1]:80"), 200);
        assert_eq!(host("::ffff:127.0.0.1", "127.0.0.1"), 200);
        assert_eq!(host("192.0.2.1", "192.0.2.1"), 200);
        assert_eq!(host("192.0.2.1", "localhost"), 403);
    }

    #[test]
    fn a_request_has_one_host_wherever_it_says_so() {
        let own = ("host", HERE);
        assert_eq!(asked(&[], HERE, "/", &[]), 400);
        assert_eq!(asked(&[], HERE, "/", &[own, own]), 400);
        assert_eq!(asked(&[], HERE, "http://localhost/", &[own]), 200);
        assert_eq!(asked(&[], HERE, "http://evil.example/", &[own]), 403);
    }

    #[test]
    fn pages_from_elsewhere_are_refused() {
        let page = |origin: &str| {
            asked(
                &[],
                HERE,
                "/",
                &[("host", "localhost:80"), ("origin", origin)],
            )
        };
        assert_eq!(page("http://localhost:80"), 200, "its own page");
        for other in [
            "http://evil.example",
            "null",
            "http://localhost:81",
            "",
            "file://",
            "x",
        ] {
            assert_eq!(page(other), 403, "{other}");
        }
    }
}
