//! What one look at the host's package managers gives.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};

use avfs_net::{Inspect, RequestRule, Secret, Terms};
use avfs_policy::{HostList, HostRule};
use base64ct::{Base64, Encoding};
use zeroize::Zeroizing;

use super::address::{Address, Login, Scheme};
use crate::Result;

/// Hosts of all package managers together.
const HOSTS_MAX: usize = 64;
const CREDENTIALS_MAX: usize = 64;
const PROBLEMS_MAX: usize = 32;
/// A larger file is no configuration.
const FILE_MAX: u64 = 256 << 10;
/// A longer value of a header is nobody's token.
const VALUE_MAX: usize = 4096;
/// A shorter text would be found, and masked, where it means nothing.
const MASKED_MIN: usize = 8;
/// What `registries` lets commands do.
const READING: &str = "GET,HEAD";

/// A package manager.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum RegistryTool {
    Pip,
    Npm,
    Cargo,
}

impl RegistryTool {
    pub fn as_str(self) -> &'static str {
        match self {
            RegistryTool::Pip => "pip",
            RegistryTool::Npm => "npm",
            RegistryTool::Cargo => "cargo",
        }
    }
}

/// Who names a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Origin {
    /// The package manager itself, without any configuration.
    Default,
    /// The owner's configuration.
    Configuration,
    /// The index of a registry, which keeps its files there.
    Index,
}

impl Origin {
    pub fn as_str(self) -> &'static str {
        match self {
            Origin::Default => "default",
            Origin::Configuration => "configuration",
            Origin::Index => "index",
        }
    }
}

/// One host that a package manager reads from.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct RegistryHost {
    /// The host, on one port.
    pub rule: HostRule,
    pub tool: RegistryTool,
    pub origin: Origin,
    /// Whether requests get credentials of the configuration.
    pub credentials: bool,
}

/// What could not be found out, or cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RegistryProblem {
    pub tool: RegistryTool,
    pub text: String,
}

/// Credentials of the configuration, for one host.
struct Credential {
    /// The host, on one port.
    host: HostRule,
    /// The header.
    value: Zeroizing<String>,
    /// What of it is masked in output.
    masked: Vec<Zeroizing<String>>,
    path: String,
    rule: RequestRule,
}

/// What was found.
#[derive(Default)]
pub(crate) struct Look {
    hosts: BTreeSet<(HostRule, RegistryTool, Origin)>,
    /// Those of them on other ports than the usual ones.
    unusual: BTreeSet<(HostRule, Scheme)>,
    problems: Vec<RegistryProblem>,
    credentials: Vec<Credential>,
    /// What commands get, so that their package managers use these registries.
    variables: BTreeMap<String, String>,
    /// The files that were looked at, whether or not they are there.
    pub(super) files: Vec<PathBuf>,
    /// Whether something could not be found out this time.
    failed: bool,
}

impl Look {
    pub(super) fn problem(&mut self, tool: RegistryTool, text: impl Into<String>) {
        let text = text.into();
        let problem = RegistryProblem { tool, text };
        if self.problems.len() < PROBLEMS_MAX && !self.problems.contains(&problem) {
            self.problems.push(problem);
        }
    }

    /// Something that may be found out another time.
    pub(super) fn failed(&mut self, tool: RegistryTool, text: impl Into<String>) {
        self.failed = true;
        self.problem(tool, text);
    }

    pub(super) fn has_failed(&self) -> bool {
        self.failed
    }

    /// A file of configuration; none if it is not there.
    pub(super) fn read(&mut self, tool: RegistryTool, path: &Path) -> Option<Zeroizing<String>> {
        if !self.files.iter().any(|known| known == path) {
            self.files.push(path.to_owned());
        }
        let mut text = Zeroizing::new(String::new());
        let read = File::open(path).and_then(|file| {
            // A FIFO or a device is no configuration, and could block.
            match file.metadata()?.is_file() {
                true => file.take(FILE_MAX + 1).read_to_string(&mut text),
                false => Ok(0),
            }
        });
        match read {
            Ok(bytes) if bytes as u64 <= FILE_MAX => return Some(text),
            Ok(_) => self.problem(tool, format!("{} is too large", path.display())),
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => self.problem(tool, format!("{}: {error}", path.display())),
        }
        None
    }

    /// Takes the host of an address in, and the credentials that are in the address.
    pub(super) fn add(
        &mut self,
        tool: RegistryTool,
        origin: Origin,
        text: &str,
    ) -> Option<Address> {
        match Address::parse(text) {
            Ok((address, login)) => {
                self.add_host(tool, origin, &address);
                if let Some(login) = login {
                    // The files of an index may be anywhere on its host.
                    self.add_login(tool, &address, "/", &login);
                }
                Some(address)
            }
            Err(why) => {
                self.problem(
                    tool,
                    format!("{why}; allow its host by name if commands need it"),
                );
                None
            }
        }
    }

    pub(super) fn add_host(&mut self, tool: RegistryTool, origin: Origin, address: &Address) {
        if self.hosts.len() >= HOSTS_MAX {
            return self.problem(tool, format!("more than {HOSTS_MAX} hosts are not allowed"));
        }
        self.hosts.insert((address.rule(), tool, origin));
        if !address.is_usual() {
            self.unusual.insert((address.rule(), address.scheme));
        }
    }

    pub(super) fn add_login(
        &mut self,
        tool: RegistryTool,
        address: &Address,
        path: &str,
        login: &Login,
    ) {
        let pair = Zeroizing::new([&login.user, ":", login.password.as_str()].concat());
        let encoded = Zeroizing::new(Base64::encode_string(pair.as_bytes()));
        let value = Zeroizing::new(["Basic ", &encoded].concat());
        // A token may be in the place of the user.
        let secret = match login.password.is_empty() {
            true => Zeroizing::new(login.user.clone()),
            false => login.password.clone(),
        };
        self.add_credential(tool, address, path, value, vec![secret, encoded]);
    }

    /// Takes in the value of `Authorization` for paths of a host.
    pub(super) fn add_credential(
        &mut self,
        tool: RegistryTool,
        address: &Address,
        path: &str,
        value: Zeroizing<String>,
        masked: Vec<Zeroizing<String>>,
    ) {
        let name = &address.name;
        if address.scheme == Scheme::Http {
            let why = format!("the credentials for {name} are not sent over plain HTTP");
            return self.problem(tool, why);
        }
        let rule = RequestRule::parse(&format!("{READING} {path}"));
        let visible = value.bytes().all(|byte| (b' '..=b'~').contains(&byte));
        let usable = visible && value.len() <= VALUE_MAX;
        match rule {
            Ok(rule) if usable && self.credentials.len() < CREDENTIALS_MAX => {
                self.credentials.push(Credential {
                    host: address.rule(),
                    value,
                    masked,
                    path: path.to_owned(),
                    rule,
                });
            }
            _ => self.problem(tool, format!("the credentials for {name} cannot be used")),
        }
    }

    /// Has commands use what the host uses, where they say nothing else.
    pub(super) fn lend(&mut self, name: &str, value: String) {
        self.variables.insert(name.to_owned(), value);
    }

    /// To be called when everything has been taken in.
    pub(super) fn finish(mut self) -> Look {
        // The last of several for one request is the one that is sent.
        self.credentials
            .sort_by_key(|credential| credential.path.len());
        self
    }

    pub(crate) fn hosts(&self) -> Vec<RegistryHost> {
        let hosts = self.hosts.iter().cloned();
        let told = hosts.map(|(rule, tool, origin)| RegistryHost {
            credentials: self.credentials.iter().any(|it| it.is_for(&rule)),
            rule,
            tool,
            origin,
        });
        told.collect()
    }

    pub(crate) fn problems(&self) -> &[RegistryProblem] {
        &self.problems
    }

    pub(crate) fn variables(&self) -> &BTreeMap<String, String> {
        &self.variables
    }

    /// What is masked in what commands write.
    pub(crate) fn masked(&self) -> impl Iterator<Item = &str> {
        let all = self.credentials.iter().flat_map(|it| &it.masked);
        all.map(|text| text.as_str())
            .filter(|text| text.len() >= MASKED_MIN)
    }

    /// The terms with these registries. They are for reading, except those that the list has by name as well.
    pub(crate) fn added_to(&self, mut terms: Terms) -> Result<Terms> {
        let rules: BTreeSet<HostRule> = self.hosts.iter().map(|(rule, ..)| rule.clone()).collect();
        for rule in &rules {
            let by_name = HostList::new([rule.clone()])?.is_within(&terms.list);
            let reading = RequestRule::parse(&format!("{READING} /"))?;
            terms.inspect.push(Inspect {
                hosts: rule.pattern.clone(),
                allow: if by_name { Vec::new() } else { vec![reading] },
            });
        }
        terms.registries = HostList::new(rules)?;
        terms.http_ports = self.on_unusual_ports(Scheme::Http)?;
        terms.tls_ports = self.on_unusual_ports(Scheme::Https)?;
        terms.list = terms.list.union(&terms.registries)?;
        let secrets: Result<Vec<Secret>> =
            self.credentials.iter().map(Credential::secret).collect();
        terms.secrets.extend(secrets?);
        Ok(terms)
    }
}

impl Look {
    /// Hosts that speak this on another port than the usual one. What is said to be plain is taken for that.
    fn on_unusual_ports(&self, scheme: Scheme) -> Result<HostList> {
        let plain = |rule: &HostRule| self.unusual.contains(&(rule.clone(), Scheme::Http));
        let all = self.unusual.iter();
        let all =
            all.filter(|(rule, own)| *own == scheme && (*own == Scheme::Http || !plain(rule)));
        Ok(HostList::new(all.map(|(rule, _)| rule.clone()))?)
    }
}

impl Credential {
    fn is_for(&self, rule: &HostRule) -> bool {
        *rule == self.host
    }

    fn secret(&self) -> Result<Secret> {
        let hosts = HostList::new([self.host.clone()])?;
        let secret = Secret::new(hosts, "Authorization", &self.value, false)?;
        Ok(secret.only_for(self.rule.clone()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn look(addresses: &[&str]) -> Look {
        let mut look = Look::default();
        for address in addresses {
            look.add(RegistryTool::Pip, Origin::Configuration, address);
        }
        look.finish()
    }

    #[test]
    fn credentials_are_for_their_host_and_not_shown() {
        let look = look(&["https://me:canary-1234@a.test/simple", "https://b.test/"]);
        let hosts = look.hosts();
        assert_eq!(hosts.len(), 2);
        assert!(hosts[0].credentials && !hosts[1].credentials);
        assert!(!format!("{hosts:?} {:?}", look.problems()).contains("canary"));
        assert!(look.masked().any(|text| text == "canary-1234"));
        let terms = look.added_to(Terms::default()).unwrap();
        assert_eq!(terms.list.to_string(), "a.test:443,b.test:443");
        assert_eq!(terms.secrets.len(), 1);
        assert!(!format!("{terms:?}").contains("canary"));
    }

    #[test]
    fn other_ports_speak_what_the_address_says() {
        let look = look(&[
            "https://me:canary-1234@a.test:8443/simple",
            "http://b.test:8080/",
            "https://c.test:9000/",
            "http://c.test:9000/",
            "https://d.test/",
        ]);
        assert!(look.problems().is_empty(), "{:?}", look.problems());
        let terms = look.added_to(Terms::default()).unwrap();
        assert_eq!(terms.registries, terms.list);
        assert_eq!(terms.list.rules().len(), 4);
        assert_eq!(terms.tls_ports.to_string(), "a.test:8443");
        assert_eq!(terms.http_ports.to_string(), "b.test:8080,c.test:9000");
        assert!(look.hosts()[0].credentials);
    }

    #[test]
    fn plain_http_gets_no_credentials() {
        let look = look(&["http://me:canary-1234@a.test/simple"]);
        assert!(!look.hosts()[0].credentials && !look.problems().is_empty());
        assert!(look.added_to(Terms::default()).unwrap().secrets.is_empty());
    }

    #[test]
    fn reading_is_all_unless_the_list_has_the_host_by_name() {
        let look = look(&["https://a.test/", "https://b.test/"]);
        let named = Terms::of("a.test,registries".parse().unwrap());
        let terms = look.added_to(named).unwrap();
        let of = |name: &str| {
            let pattern: avfs_policy::HostPattern = name.parse().unwrap();
            terms
                .inspect
                .iter()
                .find(|it| it.hosts == pattern)
                .unwrap()
                .allow
                .len()
        };
        assert_eq!((of("a.test"), of("b.test")), (0, 1));
        assert!(terms.list.has_registries());
    }
}
