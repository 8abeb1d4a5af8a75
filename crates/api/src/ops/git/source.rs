//! Where a repository is cloned from: a path of the vault, or a host that the vault's commands may reach.

use crate::ops::failure::Failure;
use avfs_runtime::{ErrorKind, Hint, HostPort, VaultNetwork};

/// Schemes that git speaks by itself, and their ports. `ssh` needs a key, which no sandbox has.
const SCHEMES: [(&str, u16); 3] = [("https", 443), ("http", 80), ("git", 9418)];

/// The address that git is given. Whether the vault's network reaches it is looked at here only to say what to do; the
/// sandbox enforces it.
pub(super) fn of(
    url: &str,
    network: impl FnOnce() -> Result<VaultNetwork, Failure>,
) -> Result<String, Failure> {
    let path = url.strip_prefix("file://").unwrap_or(url);
    if path.is_empty() {
        return Err(Failure::invalid("the address of the repository is empty"));
    }
    if path.starts_with('/') {
        // As an address, so that the depth counts.
        return Ok(format!("file://{path}"));
    }
    let at = outside(url)?;
    if let VaultNetwork::Listed(hosts) = network()?
        && !hosts.decide(&at.host, at.port).is_allowed()
    {
        let what = format!("commands in this vault may not reach {at}");
        let hint = match Hint::to_allow(at.host, at.port) {
            Some(hint) => format!("the owner allows it with `{hint}`"),
            None => "clone it on the host, and import it with `avfs import DIR`".into(),
        };
        return Err(Failure::new(ErrorKind::Denied, what).hint(hint));
    }
    Ok(url.to_owned())
}

/// The host of an address outside of the vault.
fn outside(url: &str) -> Result<HostPort, Failure> {
    let unknown = || {
        let schemes = SCHEMES.map(|(name, _)| name).join(", ");
        let what = format!("{url:?} is neither a path of the vault nor an address of {schemes}");
        Failure::invalid(what).hint("write https://HOST/PATH, or an absolute path of the vault")
    };
    let (scheme, rest) = url.split_once("://").ok_or_else(unknown)?;
    let known = SCHEMES.iter().find(|(name, _)| *name == scheme);
    let (_, port) = known.ok_or_else(unknown)?;
    let host = rest.split(['/', '?', '#']).next().unwrap_or(rest);
    if host.contains('@') {
        let what = "an address must not carry a user or a password";
        return Err(Failure::invalid(what).hint("the owner keeps tokens with `avfs secret set`"));
    }
    let at = HostPort::parse_with_default(host, Some(*port));
    at.map_err(|error| Failure::from(avfs_runtime::Error::from(error)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use avfs_runtime::HostList;

    fn listed(hosts: &str) -> Result<VaultNetwork, Failure> {
        let hosts: HostList = hosts.parse().expect("a list");
        Ok(VaultNetwork::Listed(hosts))
    }

    #[test]
    fn paths_of_the_vault_need_no_network() {
        for inside in ["/a b", "file:///a b"] {
            let source = of(inside, || panic!("nobody asks")).unwrap();
            assert_eq!(source, "file:///a b");
        }
    }

    #[test]
    fn a_host_must_be_on_the_list() {
        let url = "https://code.example.test/x.git";
        assert_eq!(of(url, || listed("code.example.test")).unwrap(), url);
        assert_eq!(of(url, || Ok(VaultNetwork::Host)).unwrap(), url);
        let refused = of(url, || listed("other.test")).unwrap_err();
        assert_eq!(refused.problem().kind, "Denied");
        let hint = refused.problem().hint.clone().unwrap();
        assert!(
            hint.contains("avfs network allow code.example.test"),
            "{hint}"
        );
        assert!(of("git://code.example.test/x", || listed("code.example.test")).is_err());
    }

    #[test]
    fn what_is_no_address_is_refused() {
        for wrong in [
            "git@example.org:x.git",
            "ext::sh -c true",
            "file://host/share",
            "ssh://example.org/x",
            "https://user:token@example.org/x",
            "https://exa mple.org/x",
            "-u",
            "../x",
            "",
        ] {
            let refused = of(wrong, || Ok(VaultNetwork::Host)).unwrap_err();
            assert_eq!(refused.problem().kind, "Invalid", "{wrong}");
        }
    }
}
