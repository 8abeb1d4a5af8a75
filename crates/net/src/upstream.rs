//! The proxy that the host itself needs to reach others.
//!
//! Behind a proxy, the proxy resolves names. So the addresses that a name resolves to are not seen here, and only literal
//! addresses are checked. The list decides on every host and port all the same.

use std::fmt;

use avfs_policy::{AddressRange, Host, HostName, HostPort};
use base64ct::{Base64, Encoding};
use percent_encoding::percent_decode_str;

use crate::error::Error;

/// Which proxy, if any, leads to a host. Made of the values of `HTTP_PROXY`, `HTTPS_PROXY` and `NO_PROXY`.
#[derive(Debug, Clone, Default)]
pub struct Upstream {
    http: Option<Proxy>,
    https: Option<Proxy>,
    without: Vec<Without>,
}

/// An HTTP proxy. Its credentials are never sent into a sandbox, and are not shown.
#[derive(Clone)]
pub(crate) struct Proxy {
    pub(crate) at: HostPort,
    pub(crate) authorization: Option<String>,
}

impl fmt::Debug for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Proxy({})", self.at)
    }
}

/// One entry of `NO_PROXY`.
#[derive(Debug, Clone)]
enum Without {
    All,
    /// The name, and the names below it.
    Name(HostName),
    Range(AddressRange),
}

impl Upstream {
    /// Empty texts count as absent, as they do for other programs. Only proxies that are spoken to by plain HTTP are supported.
    pub fn from_variables(
        http: Option<&str>,
        https: Option<&str>,
        without: Option<&str>,
    ) -> Result<Upstream, Error> {
        let words = without.unwrap_or_default().split(',').map(str::trim);
        let without = words
            .filter(|word| !word.is_empty())
            .filter_map(Without::parse);
        Ok(Upstream {
            http: http
                .filter(|text| !text.is_empty())
                .map(Proxy::parse)
                .transpose()?,
            https: https
                .filter(|text| !text.is_empty())
                .map(Proxy::parse)
                .transpose()?,
            without: without.collect(),
        })
    }

    /// The proxy for a tunnel to a host.
    pub(crate) fn tunnel(&self, host: &Host) -> Option<&Proxy> {
        self.https.as_ref().filter(|_| !self.is_direct(host))
    }

    /// The proxy for a plain HTTP request to a host.
    pub(crate) fn request(&self, host: &Host) -> Option<&Proxy> {
        self.http.as_ref().filter(|_| !self.is_direct(host))
    }

    fn is_direct(&self, host: &Host) -> bool {
        self.without.iter().any(|without| match (without, host) {
            (Without::All, _) => true,
            (Without::Name(own), Host::Name(name)) => name == own || name.is_below(own),
            (Without::Range(range), Host::Address(address)) => range.contains(*address),
            (Without::Name(_), Host::Address(_)) | (Without::Range(_), Host::Name(_)) => false,
        })
    }
}

impl Without {
    /// `*`, a name with or without `.` or `*.` before it, an address, or a range. An entry that is none of these matches nothing, as it
    /// does for other programs.
    fn parse(text: &str) -> Option<Without> {
        if text == "*" {
            return Some(Without::All);
        }
        if let Ok(range) = AddressRange::parse(text) {
            return Some(Without::Range(range));
        }
        let name = text.strip_prefix("*.").or_else(|| text.strip_prefix('.'));
        let name = HostName::parse(name.unwrap_or(text)).ok()?;
        Some(Without::Name(name))
    }
}

impl Proxy {
    fn parse(text: &str) -> Result<Proxy, Error> {
        // The text may hold a password, so no error repeats it.
        let wrong = |why| Error::Proxy("the given proxy".to_owned(), why);
        let rest = match text.split_once("://") {
            Some(("http", rest)) => rest,
            Some(_) => return Err(wrong("only http:// proxies are supported")),
            None => text,
        };
        let rest = rest.split(['/', '?', '#']).next().unwrap_or(rest);
        let (credentials, host) = match rest.rsplit_once('@') {
            Some((credentials, host)) => (Some(credentials), host),
            None => (None, rest),
        };
        let at = HostPort::parse_with_default(host, Some(80));
        let authorization = credentials.map(|credentials| {
            let decoded: Vec<u8> = percent_decode_str(credentials).collect();
            format!("Basic {}", Base64::encode_string(&decoded))
        });
        Ok(Proxy {
            at: at.map_err(|_| wrong("write http://[USER:PASSWORD@]HOST:PORT"))?,
            authorization,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(text: &str) -> Host {
        Host::parse(text).unwrap()
    }

    #[test]
    fn variables_are_read_as_other_programs_read_them() {
        let without = Some("localhost, .corp.test,*.lab.test,10.0.0.0/8,!!,");
        let proxy = Some("http://us%65r:p%40ss@proxy.test:3128/");
        let upstream = Upstream::from_variables(None, proxy, without).unwrap();
        let found = upstream.tunnel(&host("a.test")).unwrap();
        assert_eq!(found.at.to_string(), "proxy.test:3128");
        assert_eq!(found.authorization.as_deref(), Some("Basic dXNlcjpwQHNz"));
        assert!(!format!("{upstream:?}").contains("ss@"));
        for direct in [
            "localhost",
            "corp.test",
            "a.corp.test",
            "x.lab.test",
            "10.1.2.3",
        ] {
            assert!(upstream.tunnel(&host(direct)).is_none(), "{direct}");
        }
        assert!(upstream.tunnel(&host("evilcorp.test")).is_some());
        assert!(upstream.request(&host("a.test")).is_none());
    }

    #[test]
    fn an_error_does_not_repeat_a_password() {
        for text in [
            "https://u:hunter2@p.test",
            "http://u:hunter2@p test:1",
            "socks5://u:hunter2@p.test",
        ] {
            let error = Upstream::from_variables(Some(text), None, None).unwrap_err();
            assert!(!error.to_string().contains("hunter2"), "{error}");
        }
        assert!(Upstream::from_variables(Some(""), Some(""), Some("")).is_ok());
    }
}
