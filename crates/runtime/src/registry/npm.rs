//! npm: its configuration files, and the registry that it uses without any.

use std::collections::BTreeMap;
use std::path::PathBuf;

use base64ct::{Base64, Encoding};
use zeroize::Zeroizing;

use super::address::{Address, Login};
use super::ask::Facts;
use super::look::{Look, Origin, RegistryTool};

const NPM: RegistryTool = RegistryTool::Npm;

/// What the configuration says of one prefix, as `//host/path/`.
#[derive(Default)]
struct Auth {
    token: Option<Zeroizing<String>>,
    basic: Option<Zeroizing<String>>,
    user: Option<String>,
    password: Option<Zeroizing<String>>,
}

/// The owner's own file.
pub(super) fn user_file(facts: &Facts) -> Option<PathBuf> {
    let named = variable(facts, "npm_config_userconfig").map(PathBuf::from);
    let own = || Some(facts.home.as_ref()?.join(".npmrc"));
    named.or_else(own).filter(|path| path.is_absolute())
}

/// Takes in what the owner's configuration names: that of the whole host first.
pub(super) fn configured(look: &mut Look, facts: &Facts, global: Option<&str>) {
    let global = global.map(PathBuf::from).filter(|path| path.is_absolute());
    let files: Vec<PathBuf> = global.into_iter().chain(user_file(facts)).collect();
    let mut registry = None;
    let mut auths: BTreeMap<String, Auth> = BTreeMap::new();
    for file in files {
        let Some(text) = look.read(NPM, &file) else {
            continue;
        };
        for (key, value) in settings(&text) {
            match expanded(value, facts) {
                Ok(value) => note(look, &key, value, &mut registry, &mut auths),
                Err(name) => look.problem(
                    NPM,
                    format!(
                        "{} needs the variable {name}, which the daemon has not",
                        file.display()
                    ),
                ),
            }
        }
    }
    let named = variable(facts, "npm_config_registry").map(str::to_owned);
    if let Some(address) = named.or(registry)
        && let Some(address) = look.add(NPM, Origin::Configuration, &address)
    {
        look.lend("npm_config_registry", address.to_string());
    }
    for (prefix, auth) in auths {
        add_auth(look, &prefix, auth);
    }
}

/// Takes in what npm says that it uses without configuration.
pub(super) fn defaults(look: &mut Look, registry: &str) {
    look.add(NPM, Origin::Default, registry);
}

fn variable<'a>(facts: &'a Facts, name: &str) -> Option<&'a str> {
    let upper = name.to_ascii_uppercase();
    let said = facts.variable(name).or_else(|| facts.variable(&upper));
    said.filter(|value| !value.is_empty())
}

fn note(
    look: &mut Look,
    key: &str,
    value: Zeroizing<String>,
    registry: &mut Option<String>,
    auths: &mut BTreeMap<String, Auth>,
) {
    if key == "registry" {
        *registry = Some(value.to_string());
    } else if key.starts_with('@') && key.ends_with(":registry") {
        look.add(NPM, Origin::Configuration, &value);
    } else if ["_auth", "_authToken", "_password"].contains(&key) {
        let text = format!("{key} without a host is not used; write //HOST/:{key}");
        look.problem(NPM, text);
    } else if let Some((prefix, name)) = key.rsplit_once(':')
        && let Some(prefix) = prefix.strip_prefix("//")
    {
        let auth = auths.entry(prefix.to_owned()).or_default();
        match name {
            "_authToken" => auth.token = Some(value),
            "_auth" => auth.basic = Some(value),
            "username" => auth.user = Some(value.to_string()),
            "_password" => auth.password = Some(value),
            _ => {}
        }
    }
}

/// A host that the owner has credentials for is in use, also if only a project names it as its registry.
fn add_auth(look: &mut Look, prefix: &str, auth: Auth) {
    let address = match Address::parse(&format!("https://{prefix}")) {
        Ok((address, None)) => address,
        Ok(_) => return look.problem(NPM, "an address of credentials has credentials itself"),
        Err(why) => return look.problem(NPM, format!("credentials are not used: {why}")),
    };
    let path = address.path.trim_end_matches('/');
    let path = if path.is_empty() { "/" } else { path };
    if let Some(token) = auth.token {
        let value = Zeroizing::new(["Bearer ", &token].concat());
        look.add_credential(NPM, &address, path, value, vec![token]);
    } else if let Some(basic) = auth.basic {
        let value = Zeroizing::new(["Basic ", &basic].concat());
        let mut masked = vec![basic.clone()];
        masked.extend(decoded(&basic).and_then(|pair| {
            let (_, password) = pair.split_once(':')?;
            Some(Zeroizing::new(password.to_owned()))
        }));
        look.add_credential(NPM, &address, path, value, masked);
    } else if let (Some(user), Some(password)) = (auth.user, auth.password) {
        // npm writes the password in base64.
        let Some(password) = decoded(&password) else {
            let text = format!("the password for {} is not in base64", address.name);
            return look.problem(NPM, text);
        };
        look.add_login(NPM, &address, path, &Login { user, password });
    } else {
        return;
    }
    look.add_host(NPM, Origin::Configuration, &address);
}

fn decoded(text: &str) -> Option<Zeroizing<String>> {
    let bytes = Base64::decode_vec(text).ok()?;
    String::from_utf8(bytes).ok().map(Zeroizing::new)
}

/// The keys and values of a file. Sections, which npm has no use for, end it.
fn settings(text: &str) -> Vec<(String, &str)> {
    let lines = text.lines().map(str::trim);
    let lines = lines.take_while(|line| !line.starts_with('['));
    let said = lines.filter(|line| !line.is_empty() && !line.starts_with(['#', ';']));
    let pairs = said.filter_map(|line| line.split_once('='));
    let clean = pairs.map(|(key, value)| (unquoted(key.trim()).to_owned(), unquoted(value.trim())));
    clean.collect()
}

fn unquoted(text: &str) -> &str {
    let inner = |quote: char| text.strip_prefix(quote)?.strip_suffix(quote);
    inner('"').or_else(|| inner('\'')).unwrap_or(text)
}

/// A value with its `${VARIABLES}` replaced; otherwise the name of the one that is missing.
fn expanded(value: &str, facts: &Facts) -> Result<Zeroizing<String>, String> {
    let mut text = Zeroizing::new(String::new());
    let mut rest = value;
    while let Some((before, after)) = rest.split_once("${") {
        let Some((name, behind)) = after.split_once('}') else {
            break;
        };
        let (name, optional) = match name.strip_suffix('?') {
            Some(name) => (name, true),
            None => (name, false),
        };
        text.push_str(before);
        match facts.variable(name) {
            Some(value) => text.push_str(value),
            None if optional => {}
            None => return Err(name.chars().take(64).collect()),
        }
        rest = behind;
    }
    text.push_str(rest);
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn looked(text: &str, variables: &[(&str, &str)]) -> Look {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("npmrc");
        std::fs::write(&file, text).unwrap();
        let mut facts = Facts::of_nobody();
        facts.set("npm_config_userconfig", file.to_str().unwrap());
        variables
            .iter()
            .for_each(|(name, value)| facts.set(name, value));
        let mut look = Look::default();
        configured(&mut look, &facts, None);
        look.finish()
    }

    fn hosts(look: &Look) -> Vec<(String, bool)> {
        let hosts = look.hosts().into_iter();
        hosts
            .map(|it| (it.rule.to_string(), it.credentials))
            .collect()
    }

    #[test]
    fn registries_scopes_and_tokens_are_found() {
        let text = "registry=https://a.test/npm/\n; x\n@own:registry = \"https://b.test/\"\n\
                    //b.test/:_authToken=${TOKEN}\n//c.test/x/:username=me\n//c.test/x/:_password=Y2FuYXJ5LTEyMzQ=\n";
        let look = looked(text, &[("TOKEN", "canary-token")]);
        let found = hosts(&look);
        let at = |name: &str, with| (format!("{name}:443"), with);
        assert_eq!(
            found,
            [at("a.test", false), at("b.test", true), at("c.test", true)]
        );
        let masked: Vec<&str> = look.masked().collect();
        assert!(masked.contains(&"canary-token") && masked.contains(&"canary-1234"));
        assert_eq!(
            look.variables()["npm_config_registry"],
            "https://a.test/npm/"
        );
        assert!(look.problems().is_empty(), "{:?}", look.problems());
    }

    #[test]
    fn what_cannot_be_used_is_said_without_values() {
        let text = "_authToken=canary-token\n//a.test:80/:_authToken=canary-token\n\
                    //b.test/:_authToken=${NOT_THERE}\n//c.test/../x/:_authToken=canary-token\n";
        let look = looked(text, &[]);
        assert!(hosts(&look).iter().all(|(_, with)| !with));
        let said = format!("{:?}", look.problems());
        assert!(
            said.contains("NOT_THERE") && said.contains("a.test:80"),
            "{said}"
        );
        assert!(!said.contains("canary"), "{said}");
    }

    #[test]
    fn a_variable_goes_before_files() {
        let look = looked(
            "registry=https://a.test/",
            &[("NPM_CONFIG_REGISTRY", "https://b.test/")],
        );
        assert_eq!(hosts(&look), [("b.test:443".to_owned(), false)]);
    }
}
