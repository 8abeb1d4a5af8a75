//! cargo: its configuration, and the registry that it uses without any.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use zeroize::Zeroizing;

use super::address::Address;
use super::ask::Facts;
use super::look::{Look, Origin, RegistryTool};

const CARGO: RegistryTool = RegistryTool::Cargo;
/// What an index over HTTP begins with.
const SPARSE: &str = "sparse+";

/// A registry that the configuration names.
#[derive(Default)]
struct Named {
    index: Option<String>,
    token: Option<Zeroizing<String>>,
}

/// An index whose own configuration says where its files are.
pub(super) struct Index {
    pub address: Address,
    /// The part of a variable that stands for it, if the configuration names it.
    pub name: Option<String>,
    /// Sent if the index wants it.
    pub token: Option<Zeroizing<String>>,
}

/// What an index says of itself.
#[derive(Deserialize)]
pub(super) struct IndexConfig {
    dl: String,
    #[serde(rename = "auth-required", default)]
    pub auth_required: bool,
}

impl IndexConfig {
    pub fn parse(bytes: &[u8]) -> Result<IndexConfig, String> {
        serde_json::from_slice(bytes).map_err(|_| "its config.json cannot be read".to_owned())
    }

    /// The host of the files, which must be reached as safely as the index is.
    pub fn files(&self, index: &Address) -> Result<Address, String> {
        let plain = self.dl.split('{').next().unwrap_or_default();
        let (files, login) = Address::parse(plain)?;
        // A marker within the host would have been cut.
        let whole = plain.len() == self.dl.len() || plain.matches('/').count() > 2;
        // An index says which other host has its files, and not which ports of it are open.
        let port = files.is_usual() || files.at() == index.at();
        match whole && login.is_none() && port && files.scheme >= index.scheme {
            true => Ok(files),
            false => Err(format!(
                "the index at {} names files at an odd address",
                index.name
            )),
        }
    }
}

/// Takes in what the owner's configuration names; gives the indexes that are to be asked.
pub(super) fn configured(look: &mut Look, facts: &Facts) -> Vec<Index> {
    let mut named: BTreeMap<String, Named> = BTreeMap::new();
    for file in files(facts) {
        let Some(text) = look.read(CARGO, &file) else {
            continue;
        };
        match text.parse::<toml::Table>() {
            Ok(table) => note_tables(look, &table, &mut named),
            Err(_) => look.problem(CARGO, format!("{} is not TOML", file.display())),
        }
    }
    note_variables(facts, &mut named);
    let mut indexes = Vec::new();
    for (name, Named { index, token }) in named {
        let Some(index) = index else {
            continue;
        };
        if let Some(address) = add_index(look, Origin::Configuration, &index) {
            let name = variable_name(&name);
            look.lend(
                &format!("CARGO_REGISTRIES_{name}_INDEX"),
                format!("{SPARSE}{address}"),
            );
            indexes.push(Index {
                address,
                name: Some(name),
                token,
            });
        }
    }
    indexes
}

/// Takes in the index that cargo says it uses without configuration.
pub(super) fn defaults(look: &mut Look, index: &str) -> Option<Index> {
    let address = add_index(look, Origin::Default, &format!("{SPARSE}{index}"))?;
    // A token for the public registry is for publishing.
    Some(Index {
        address,
        name: None,
        token: None,
    })
}

fn add_index(look: &mut Look, origin: Origin, index: &str) -> Option<Address> {
    match index.strip_prefix(SPARSE) {
        Some(address) => look.add(CARGO, origin, address),
        None => {
            let text = "an index is a git repository, whose hosts must be allowed by name";
            look.problem(CARGO, text);
            None
        }
    }
}

fn files(facts: &Facts) -> Vec<PathBuf> {
    let home = facts.variable("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| Some(facts.home.as_ref()?.join(".cargo")));
    let Some(home) = home.filter(|home| home.is_absolute()) else {
        return Vec::new();
    };
    let first = |new: &str, old: &str| match home.join(old) {
        old if Path::new(&old).exists() => old,
        _ => home.join(new),
    };
    vec![
        first("config.toml", "config"),
        first("credentials.toml", "credentials"),
    ]
}

fn note_tables(look: &mut Look, table: &toml::Table, named: &mut BTreeMap<String, Named>) {
    let text = |table: &toml::Value, key: &str| {
        let text = table.get(key).and_then(toml::Value::as_str);
        text.map(str::to_owned)
    };
    let tables = |key: &str| table.get(key).and_then(toml::Value::as_table);
    for (name, registry) in tables("registries").into_iter().flatten() {
        let known = named.entry(variable_name(name)).or_default();
        known.index = text(registry, "index").or(known.index.take());
        known.token = text(registry, "token")
            .map(Zeroizing::new)
            .or(known.token.take());
    }
    for (name, source) in tables("source").into_iter().flatten() {
        if let Some(index) = text(source, "registry") {
            add_source(look, name, &index, named);
        }
    }
}

/// A source in the place of another has no variable: commands need it in the project's own configuration.
fn add_source(look: &mut Look, name: &str, index: &str, named: &mut BTreeMap<String, Named>) {
    let known = named.values().any(|it| it.index.as_deref() == Some(index));
    if !known {
        let source = format!("SOURCE_{}", variable_name(name));
        named.entry(source).or_default().index = Some(index.to_owned());
    }
    if !index.starts_with(SPARSE) {
        let text = format!("the source {name} is a git repository: allow its host by name");
        look.problem(CARGO, text);
    }
}

fn note_variables(facts: &Facts, named: &mut BTreeMap<String, Named>) {
    for (variable, value) in facts.variables() {
        let Some(rest) = variable.strip_prefix("CARGO_REGISTRIES_") else {
            continue;
        };
        if let Some(name) = rest.strip_suffix("_INDEX") {
            named.entry(name.to_owned()).or_default().index = Some(value.clone());
        } else if let Some(name) = rest.strip_suffix("_TOKEN") {
            let token = Some(Zeroizing::new(value.clone()));
            named.entry(name.to_owned()).or_default().token = token;
        }
    }
}

/// The part of a variable that stands for a registry.
fn variable_name(name: &str) -> String {
    name.to_ascii_uppercase().replace(['-', '.'], "_")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(config: &str, credentials: &str) -> (tempfile::TempDir, Facts) {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("config.toml"), config).unwrap();
        std::fs::write(dir.path().join("credentials.toml"), credentials).unwrap();
        let mut facts = Facts::of_nobody();
        facts.set("CARGO_HOME", dir.path().to_str().unwrap());
        (dir, facts)
    }

    #[test]
    fn registries_sources_and_tokens_are_found() {
        let config = "[registries.my-own]\nindex = 'sparse+https://a.test/index/'\n\
                      [source.crates-io]\nreplace-with = 'near'\n[source.near]\nregistry = 'sparse+https://b.test/'\n\
                      [registries.old]\nindex = 'https://c.test/index.git'\n";
        let (_dir, mut facts) = facts(config, "[registries.my-own]\ntoken = 'canary-1234'\n");
        facts.set("CARGO_REGISTRIES_THIRD_INDEX", "sparse+https://d.test/");
        let mut look = Look::default();
        let indexes = configured(&mut look, &facts);
        let hosts: Vec<String> = look.hosts().iter().map(|it| it.rule.to_string()).collect();
        assert_eq!(hosts, ["a.test:443", "b.test:443", "d.test:443"]);
        let own = indexes
            .iter()
            .find(|it| it.address.name.as_str() == "a.test");
        assert_eq!(own.unwrap().token.as_ref().unwrap().as_str(), "canary-1234");
        assert!(look.problems()[0].text.contains("git repository"));
        let lent = &look.variables()["CARGO_REGISTRIES_MY_OWN_INDEX"];
        assert_eq!(lent, "sparse+https://a.test/index/");
    }

    #[test]
    fn an_index_cannot_name_files_anywhere() {
        let (index, _) = Address::parse("https://a.test/index/").unwrap();
        let files = |dl: &str| {
            let text = serde_json::json!({ "dl": dl }).to_string();
            IndexConfig::parse(text.as_bytes()).unwrap().files(&index)
        };
        let good = files("https://b.test/dl/{crate}/{version}/download").unwrap();
        assert_eq!(good.name.as_str(), "b.test");
        assert_eq!(files("https://b.test").unwrap().name.as_str(), "b.test");
        for dl in [
            "http://b.test/{crate}",
            "https://169.254.169.254/{crate}",
            "https://{crate}.b.test/",
            "https://b.{crate}.test/",
            "https://b.test{crate}/",
            "https://u:p@b.test/",
            "https://b.test:8443/",
            "https://a.test:8443/",
            "file:///etc",
            "",
        ] {
            assert!(files(dl).is_err(), "{dl}");
        }
        let (index, _) = Address::parse("https://a.test:8443/index/").unwrap();
        let own = IndexConfig::parse(b"{\"dl\": \"https://a.test:8443/dl\"}").unwrap();
        assert_eq!(
            own.files(&index).unwrap().to_string(),
            "https://a.test:8443/dl"
        );
        for text in ["", "[]", "{}", "{\"dl\": 7}"] {
            assert!(IndexConfig::parse(text.as_bytes()).is_err());
        }
    }
}
