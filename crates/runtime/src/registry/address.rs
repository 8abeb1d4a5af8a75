//! Where a registry is: an address out of a configuration, parsed once.

use std::fmt;

use avfs_policy::{Host, HostName, HostPort, HostRule};
use percent_encoding::percent_decode_str;
use zeroize::Zeroizing;

/// Longer ones are nobody's.
const ADDRESS_MAX: usize = 2048;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scheme {
    Http,
    Https,
}

impl Scheme {
    /// The port that an address need not name.
    pub fn port(self) -> u16 {
        match self {
            Scheme::Http => 80,
            Scheme::Https => 443,
        }
    }

    pub fn as_str(self) -> &'static str {
        match self {
            Scheme::Http => "http",
            Scheme::Https => "https",
        }
    }
}

/// The address of a registry, without what is secret in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Address {
    pub scheme: Scheme,
    pub name: HostName,
    pub port: u16,
    /// Begins with a slash.
    pub path: String,
}

/// A user and a password.
pub(super) struct Login {
    pub user: String,
    pub password: Zeroizing<String>,
}

impl Address {
    /// The address, with the credentials that were in it. The reason why it cannot be one repeats no credentials.
    pub fn parse(text: &str) -> Result<(Address, Option<Login>), String> {
        let text = text.trim();
        if text.len() > ADDRESS_MAX {
            return Err(format!("an address has more than {ADDRESS_MAX} bytes"));
        }
        let (scheme, rest) = match text.split_once("://") {
            Some(("https", rest)) => (Scheme::Https, rest),
            Some(("http", rest)) => (Scheme::Http, rest),
            _ => return Err("an address is neither https:// nor http://".to_owned()),
        };
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let (authority, after) = rest.split_at(end);
        let (login, host) = match authority.rsplit_once('@') {
            Some((login, host)) => (Some(login), host),
            None => (None, authority),
        };
        let at = HostPort::parse_with_default(host, Some(scheme.port()));
        let at = at.map_err(|error| error.to_string())?;
        let Host::Name(name) = at.host else {
            return Err(format!("{} is an address, not a name", at.host));
        };
        let other = match scheme {
            Scheme::Http => Scheme::Https,
            Scheme::Https => Scheme::Http,
        };
        if at.port == 0 || at.port == other.port() {
            return Err(format!(
                "{name}:{} is no port for {}://",
                at.port,
                scheme.as_str()
            ));
        }
        let path = after.split(['?', '#']).next().unwrap_or_default();
        let path = if path.is_empty() { "/" } else { path };
        let address = Address {
            scheme,
            name,
            port: at.port,
            path: path.to_owned(),
        };
        Ok((address, login.map(Login::parse)))
    }

    /// The rule that allows its host.
    pub fn rule(&self) -> HostRule {
        HostRule::exactly(Host::Name(self.name.clone()), self.port)
    }

    pub fn at(&self) -> HostPort {
        HostPort::new(Host::Name(self.name.clone()), self.port)
    }

    /// Whether it is on the port that it need not name.
    pub fn is_usual(&self) -> bool {
        self.port == self.scheme.port()
    }
}

/// Without credentials, since there are none in it.
impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}", self.scheme.as_str(), self.name)?;
        if !self.is_usual() {
            write!(f, ":{}", self.port)?;
        }
        f.write_str(&self.path)
    }
}

impl Login {
    fn parse(text: &str) -> Login {
        let (user, password) = text.split_once(':').unwrap_or((text, ""));
        let decoded = |text: &str| percent_decode_str(text).decode_utf8_lossy().into_owned();
        Login {
            user: decoded(user),
            password: Zeroizing::new(decoded(password)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_a_name_on_a_port() {
        let (address, login) = Address::parse("https://us%65r:p%40ss@R.test/a/b/?x#y").unwrap();
        assert_eq!(address.to_string(), "https://r.test/a/b/");
        assert_eq!(address.rule().to_string(), "r.test:443");
        let login = login.unwrap();
        assert_eq!((&*login.user, login.password.as_str()), ("user", "p@ss"));
        let (bare, none) = Address::parse(" http://r.test ").unwrap();
        assert_eq!(
            (bare.to_string(), none.is_none()),
            ("http://r.test/".into(), true)
        );
        let (other, _) = Address::parse("https://r.test:8443").unwrap();
        assert_eq!(other.to_string(), "https://r.test:8443/");
        assert_eq!(other.rule().to_string(), "r.test:8443");
        for text in [
            "",
            "r.test",
            "ftp://r.test/",
            "https://r.test:80/",
            "http://r.test:443/",
            "http://r.test:0/",
            "https://10.0.0.1/",
            "https://[::1]/",
            "https://user:hunter22@/",
            "https://user:hunter22@r test/",
            "https://user:hunter22@r.test:99999/",
        ] {
            let error = Address::parse(text).err().unwrap();
            assert!(!error.contains("hunter22"), "{error}");
        }
    }
}
