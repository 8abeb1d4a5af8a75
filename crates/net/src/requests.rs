//! Rules about requests, for hosts whose TLS is opened, and secrets that are put into requests.

use std::fmt;
use std::str::FromStr;

use avfs_policy::{Host, HostList, HostPattern, HostPort};
use hyper::Method;
use hyper::header::{HeaderName, HeaderValue};
use hyper::http::request::Parts;
use percent_encoding::percent_decode_str;

use crate::error::Error;

const MAX_METHODS: usize = 16;
const MAX_METHOD: usize = 32;
const MAX_PATH: usize = 1024;

/// Hosts whose requests are seen: on port 443 TLS is opened, with a certificate of the sandbox's own authority. Requests on port 80 are
/// held to the same rules.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Inspect {
    pub hosts: HostPattern,
    /// A request must match one of these. None at all allows every request.
    pub allow: Vec<RequestRule>,
}

/// `METHODS PATH`, as in `GET,HEAD /org/repo` or `* /`. The path is that one and all below it. Its text means nothing to a shell
/// inside single quotes, since whoever is refused can choose what a hint has in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestRule {
    /// Empty for every method.
    methods: Vec<Method>,
    /// Without a slash at the end; empty for every path.
    path: String,
}

impl RequestRule {
    pub fn parse(text: &str) -> Result<RequestRule, Error> {
        let wrong = |why| Error::RequestRule(text.to_owned(), why);
        let (methods, path) = text
            .split_once(' ')
            .ok_or_else(|| wrong("write METHODS PATH"))?;
        let methods: Vec<Method> = match methods {
            "*" => Vec::new(),
            words if words.split(',').count() > MAX_METHODS => {
                return Err(wrong("that are too many methods; `*` is all of them"));
            }
            words => words
                .split(',')
                .map(method)
                .collect::<Option<_>>()
                .ok_or_else(|| wrong("methods are words of capital letters, as GET,HEAD"))?,
        };
        if !path.starts_with('/') || !is_plain(path) {
            return Err(wrong(
                "a path begins with / and has no . or .. in it, nor //, and none of % ; ? # \\ '",
            ));
        }
        if path.len() > MAX_PATH {
            return Err(wrong("the path is too long"));
        }
        Ok(RequestRule {
            methods,
            path: path.trim_end_matches('/').to_owned(),
        })
    }

    /// The smallest rule that allows a request. None for a method that no rule can name.
    pub(crate) fn exactly(method: &Method, path: &str) -> Option<RequestRule> {
        let path = match path.len() <= MAX_PATH && path.starts_with('/') && is_plain(path) {
            true => path.trim_end_matches('/').to_owned(),
            // Only a rule for every path matches it.
            false => String::new(),
        };
        Some(RequestRule {
            methods: vec![self::method(method.as_str())?],
            path,
        })
    }

    /// Whether `other` allows every request that this rule allows.
    pub fn is_within(&self, other: &RequestRule) -> bool {
        let methods = other.methods.is_empty()
            || !self.methods.is_empty() && self.methods.iter().all(|it| other.methods.contains(it));
        methods && other.is_above(&self.path)
    }

    fn is_above(&self, path: &str) -> bool {
        let below = path.strip_prefix(&self.path);
        let below = below.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
        // `OPTIONS *` has a path that begins with no slash.
        below || self.path.is_empty()
    }

    fn matches(&self, method: &Method, path: &str) -> bool {
        let below = self.is_above(path);
        // A path that servers could read as another one is only matched by a rule for all of them.
        let path = below && (self.path.is_empty() || is_unambiguous(path));
        path && (self.methods.is_empty() || self.methods.contains(method))
    }
}

/// A method as a rule may have it.
fn method(word: &str) -> Option<Method> {
    let plain = |byte: u8| byte.is_ascii_uppercase() || byte == b'-';
    let fits = (1..=MAX_METHOD).contains(&word.len()) && word.bytes().all(plain);
    fits.then(|| Method::from_bytes(word.as_bytes()).ok())
        .flatten()
}

/// A path as a rule may have it. `;` stands between rules.
fn is_plain(path: &str) -> bool {
    let printable = path
        .bytes()
        .all(|byte| byte.is_ascii_graphic() && !b"%;?#\\'".contains(&byte));
    printable && is_unambiguous(path)
}

/// Whether every server takes the path for the one that is written.
fn is_unambiguous(path: &str) -> bool {
    let decoded: Vec<u8> = percent_decode_str(path).collect();
    let written = path.matches('/').count();
    let slashes = decoded.iter().filter(|byte| **byte == b'/').count();
    let odd = decoded
        .iter()
        .any(|byte| *byte == b'\\' || byte.is_ascii_control());
    let mut segments = decoded.split(|byte| *byte == b'/');
    let dots = segments.any(|segment| {
        // `;` begins parameters, which some servers take away first.
        let name = segment
            .split(|byte| *byte == b';')
            .next()
            .unwrap_or(segment);
        matches!(name, b"." | b"..")
    });
    written == slashes && !odd && !dots && !path.contains("//")
}

impl Inspect {
    pub(crate) fn is_for(&self, host: &Host) -> bool {
        self.hosts.matches(host)
    }

    pub(crate) fn allows(&self, method: &Method, path: &str) -> bool {
        self.allow.is_empty() || self.allow.iter().any(|rule| rule.matches(method, path))
    }

    /// Whether it says which requests are allowed, and so must see all of them.
    pub(crate) fn has_rules(&self) -> bool {
        !self.allow.is_empty()
    }

    /// The command that would allow a request.
    pub(crate) fn hint(&self, method: &Method, path: &str) -> Option<String> {
        let rule = RequestRule::exactly(method, path)?;
        Some(format!(
            "avfs network inspect '{}' --add '{rule}'",
            self.hosts
        ))
    }
}

impl fmt::Display for RequestRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.methods.as_slice() {
            [] => f.write_str("*")?,
            methods => {
                let words: Vec<&str> = methods.iter().map(Method::as_str).collect();
                f.write_str(&words.join(","))?;
            }
        }
        let path = if self.path.is_empty() {
            "/"
        } else {
            &self.path
        };
        write!(f, " {path}")
    }
}

impl FromStr for RequestRule {
    type Err = Error;

    fn from_str(text: &str) -> Result<RequestRule, Error> {
        RequestRule::parse(text)
    }
}

/// One or more rules, as `GET,HEAD /org/repo; POST /org/repo/search`. A request must match one of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestRules(Vec<RequestRule>);

impl RequestRules {
    pub const MAX: usize = 64;

    pub fn new(rules: Vec<RequestRule>) -> Result<RequestRules, Error> {
        match rules.len() {
            0 => Err(Error::RequestRules(
                "at least one is needed; `* /` is every request",
            )),
            1..=RequestRules::MAX => Ok(RequestRules(rules)),
            _ => Err(Error::RequestRules("a host has at most 64 of them")),
        }
    }

    pub fn rules(&self) -> &[RequestRule] {
        &self.0
    }

    /// These rules and others.
    pub fn with(&self, others: &RequestRules) -> Result<RequestRules, Error> {
        let new = others.0.iter().filter(|rule| !self.0.contains(rule));
        RequestRules::new(self.0.iter().chain(new).cloned().collect())
    }

    /// Whether `other` allows every request that these allow. The answer may be `false` where several rules of `other` together
    /// cover one of these.
    pub fn is_within(&self, other: &RequestRules) -> bool {
        let mut own = self.0.iter();
        own.all(|rule| other.0.iter().any(|other| rule.is_within(other)))
    }
}

impl fmt::Display for RequestRules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let texts: Vec<String> = self.0.iter().map(ToString::to_string).collect();
        f.write_str(&texts.join("; "))
    }
}

impl FromStr for RequestRules {
    type Err = Error;

    fn from_str(text: &str) -> Result<RequestRules, Error> {
        let parts = text.split(';').map(str::trim);
        let rules: Result<Vec<_>, _> = parts.map(RequestRule::parse).collect();
        RequestRules::new(rules?)
    }
}

/// A header that requests to some hosts get, whatever the client sent in it. The sandbox never has the value.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret {
    hosts: HostList,
    header: HeaderName,
    value: HeaderValue,
    /// Also put into requests that go over the network as they are, on port 80.
    plain: bool,
    /// The only requests that get it; all when none.
    only: Option<RequestRule>,
}

impl Secret {
    pub fn new(hosts: HostList, header: &str, value: &str, plain: bool) -> Result<Secret, Error> {
        let wrong = |why| Error::Secret(why);
        let header = HeaderName::try_from(header).map_err(|_| wrong("its header is none"))?;
        if NOT_FOR_SECRETS.contains(&header.as_str()) {
            return Err(wrong("its header says how a request is sent"));
        }
        let value = HeaderValue::try_from(value);
        let mut value = value.map_err(|_| wrong("its value cannot be in a header"))?;
        value.set_sensitive(true);
        Ok(Secret {
            hosts,
            header,
            value,
            plain,
            only: None,
        })
    }

    /// Only for requests that match a rule.
    pub fn only_for(self, rule: RequestRule) -> Secret {
        Secret {
            only: Some(rule),
            ..self
        }
    }

    pub(crate) fn is_for(&self, at: &HostPort, secure: bool, head: &Parts) -> bool {
        let matches = |rule: &RequestRule| rule.matches(&head.method, head.uri.path());
        (secure || self.plain)
            && self.hosts.decide(&at.host, at.port).is_allowed()
            && self.only.as_ref().is_none_or(matches)
    }

    /// Its header, if the request has that and would go to one of its hosts over plain HTTP, which it may not. The program
    /// expects the value there, so the request is refused instead of being sent without it.
    pub(crate) fn kept_from(&self, host: &Host, head: &Parts) -> Option<&HeaderName> {
        let mut rules = self.hosts.rules().iter();
        let kept = !self.plain && rules.any(|rule| rule.pattern.matches(host));
        (kept && head.headers.contains_key(&self.header)).then_some(&self.header)
    }

    pub(crate) fn header(&self) -> (HeaderName, HeaderValue) {
        (self.header.clone(), self.value.clone())
    }
}

const NOT_FOR_SECRETS: [&str; 8] = [
    "host",
    "connection",
    "content-length",
    "transfer-encoding",
    "upgrade",
    "te",
    "trailer",
    "proxy-authorization",
];

/// Without the value.
impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Secret({} for {})", self.header, self.hosts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_means_itself_and_what_is_below() {
        let rule = RequestRule::parse("GET,HEAD /org/repo").unwrap();
        for path in [
            "/org/repo",
            "/org/repo/",
            "/org/repo/x/y",
            "/org/repo/a%20b",
        ] {
            assert!(rule.matches(&Method::GET, path), "{path}");
        }
        for path in [
            "/",
            "/org",
            "/org/repository",
            "/org/repo/../x",
            "/org/repo/%2e%2e/x",
            "/org/repo/.%2E/x",
            "/org/repo/..;a/x",
            "/org/repo%2f..%2fx",
            "/org/repo/%5c../x",
            "/org/repo//x",
            "//org/repo",
            "/x/../org/repo",
            "/ORG/repo",
            "/org/repo/%00",
        ] {
            assert!(!rule.matches(&Method::GET, path), "{path}");
        }
        assert!(!rule.matches(&Method::POST, "/org/repo"));
        let all = RequestRule::parse("* /").unwrap();
        assert!(all.matches(&Method::PUT, "/a/../b"));
        for text in ["GET,HEAD /org/repo", "* /", "POST /x"] {
            assert_eq!(RequestRule::parse(text).unwrap().to_string(), text);
        }
        for text in [
            "",
            "GET",
            "GET x",
            "GET /..",
            "GET /a//b",
            "GET /%41",
            "G T /",
            "GET /a b",
            "GET /?x",
            "GET /a;b",
            "GET /it's",
            "get /",
            "GET'$(x)' /",
            "GET, /",
        ] {
            assert!(RequestRule::parse(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn rules_lie_within_others_and_a_hint_is_the_smallest() {
        let rules = |text: &str| text.parse::<RequestRules>().unwrap();
        for (own, other, within) in [
            ("GET /a", "GET,HEAD /a", true),
            ("GET /a/b", "GET /a", true),
            ("GET /ab", "GET /a", false),
            ("* /a", "GET /a", false),
            ("GET /a", "* /", true),
            ("POST /a", "GET /", false),
            ("GET /a; POST /b", "GET /; POST /b", true),
            ("GET /a; POST /b", "GET /", false),
        ] {
            assert_eq!(rules(own).is_within(&rules(other)), within, "{own} {other}");
        }
        assert_eq!(rules("GET /a;POST /b").to_string(), "GET /a; POST /b");
        assert!("".parse::<RequestRules>().is_err() && "GET /a;".parse::<RequestRules>().is_err());
        let hint = |method: &str, path: &str| {
            let method = Method::from_bytes(method.as_bytes()).unwrap();
            RequestRule::exactly(&method, path).map(|rule| {
                assert!(rule.matches(&method, path), "{rule}");
                rule.to_string()
            })
        };
        assert_eq!(hint("POST", "/a/b").as_deref(), Some("POST /a/b"));
        for path in ["/a/../b", "/a%20b", "/it's", "/a;b", "*", "/a//b"] {
            assert_eq!(hint("PUT", path).as_deref(), Some("PUT /"), "{path}");
        }
        assert_eq!(hint("G'T", "/"), None);
    }

    #[test]
    fn a_secret_is_not_shown_and_goes_only_where_it_may() {
        let hosts: HostList = "a.test".parse().unwrap();
        let secret = Secret::new(hosts.clone(), "Authorization", "hunter2", false).unwrap();
        assert!(!format!("{secret:?} {:?}", secret.header()).contains("hunter2"));
        let request = |method: &str, path: &str| {
            let request = hyper::Request::builder().method(method).uri(path).body(());
            request.unwrap().into_parts().0
        };
        let at = |text: &str| HostPort::parse(text).unwrap();
        let get = request("GET", "/x/y");
        assert!(secret.is_for(&at("a.test:443"), true, &get));
        assert!(!secret.is_for(&at("a.test:80"), false, &get));
        assert!(!secret.is_for(&at("b.test:443"), true, &get));
        let narrow = secret.only_for(RequestRule::parse("GET,HEAD /x").unwrap());
        assert!(narrow.is_for(&at("a.test:443"), true, &get));
        for (method, path) in [("PUT", "/x/y"), ("GET", "/xy"), ("GET", "/x/../y")] {
            let other = request(method, path);
            assert!(!narrow.is_for(&at("a.test:443"), true, &other), "{path}");
        }
        assert!(Secret::new(hosts.clone(), "Host", "x", false).is_err());
        assert!(Secret::new(hosts, "X-Key", "a\nb", false).is_err());
    }
}
