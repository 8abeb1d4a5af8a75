//! pip: its configuration files, and the index that it uses without any.

use std::path::{Path, PathBuf};

use super::ask::Facts;
use super::look::{Look, Origin, RegistryTool};

const PIP: RegistryTool = RegistryTool::Pip;

/// Prints the address of the default index, and the host that has its files.
pub(super) const ASKS: &str = "import pip._internal.models.index as i
print(i.PyPI.simple_url)
print(i.PyPI.file_storage_domain)";

/// What the configuration says, the last word last.
#[derive(Default)]
struct Said {
    index: Option<String>,
    more: Option<String>,
}

/// Takes in what the owner's configuration names.
pub(super) fn configured(look: &mut Look, facts: &Facts) {
    configured_by(look, facts, &files(facts));
}

fn configured_by(look: &mut Look, facts: &Facts, files: &[PathBuf]) {
    let mut said = Said::default();
    let mut addresses = Vec::new();
    for file in files {
        let Some(text) = look.read(PIP, file) else {
            continue;
        };
        for (key, value) in settings(&text) {
            note(&mut said, &mut addresses, &key, &value);
        }
    }
    for (name, key) in [
        ("PIP_INDEX_URL", "index-url"),
        ("PIP_EXTRA_INDEX_URL", "extra-index-url"),
    ] {
        if let Some(value) = facts.variable(name) {
            note(&mut said, &mut addresses, key, value);
        }
    }
    for address in &addresses {
        look.add(PIP, Origin::Configuration, address);
    }
    let shown = |text: &str| {
        let all = text.split_whitespace();
        let all = all.filter_map(|word| super::address::Address::parse(word).ok());
        let all: Vec<String> = all.map(|(address, _)| address.to_string()).collect();
        all.join(" ")
    };
    for (name, value) in [
        ("PIP_INDEX_URL", said.index),
        ("PIP_EXTRA_INDEX_URL", said.more),
    ] {
        let value = value.map(|value| shown(&value));
        if let Some(value) = value.filter(|value| !value.is_empty()) {
            look.lend(name, value);
        }
    }
}

/// Takes in what pip says that it uses without configuration.
pub(super) fn defaults(look: &mut Look, answer: &[String]) {
    let [index, files] = answer else {
        return look.problem(PIP, "pip did not say which index it uses by itself");
    };
    look.add(PIP, Origin::Default, index);
    look.add(PIP, Origin::Default, &format!("https://{files}/"));
}

fn note(said: &mut Said, addresses: &mut Vec<String>, key: &str, value: &str) {
    let place = match key {
        "index-url" => &mut said.index,
        "extra-index-url" => &mut said.more,
        _ => return,
    };
    *place = Some(value.to_owned());
    addresses.extend(value.split_whitespace().map(str::to_owned));
}

/// In the order in which pip reads them. That of a virtual environment is not among them: it may be in a vault.
fn files(facts: &Facts) -> Vec<PathBuf> {
    let first = facts.variable("PIP_CONFIG_FILE").map(PathBuf::from);
    if first.as_deref() == Some(Path::new("/dev/null")) {
        return Vec::new();
    }
    let dirs = facts.variable("XDG_CONFIG_DIRS").unwrap_or("/etc/xdg");
    let dirs = dirs
        .split(':')
        .map(|dir| Path::new(dir).join("pip/pip.conf"));
    let mut files: Vec<PathBuf> = first.into_iter().chain(dirs).collect();
    files.push("/etc/pip.conf".into());
    if let Some(home) = &facts.home {
        files.push(home.join(".pip/pip.conf"));
        let config = facts.variable("XDG_CONFIG_HOME").map(PathBuf::from);
        let config = config.unwrap_or_else(|| home.join(".config"));
        files.push(config.join("pip/pip.conf"));
    }
    files.retain(|file| file.is_absolute());
    files
}

/// The keys and values of an INI file, those of all sections. A line that begins with a blank goes on with the value before it.
fn settings(text: &str) -> Vec<(String, String)> {
    let mut settings: Vec<(String, String)> = Vec::new();
    for line in text.lines() {
        let said = line.trim();
        if said.is_empty() || said.starts_with(['#', ';', '[']) {
            continue;
        }
        if line.starts_with([' ', '\t'])
            && let Some((_, value)) = settings.last_mut()
        {
            value.push(' ');
            value.push_str(said);
            continue;
        }
        if let Some((key, value)) = said.split_once(['=', ':']) {
            let key = key.trim().to_ascii_lowercase().replace('_', "-");
            settings.push((key, value.trim().to_owned()));
        }
    }
    settings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_read_as_pip_reads_them() {
        let text = "[global]\nindex_url = https://me:canary-99@a.test/simple\n# x\n\
                    extra-index-url =\n    https://b.test/simple\n    https://c.test:8080/\n    https://10.0.0.1/\n[install]\nno-index = no\n";
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("pip.conf");
        std::fs::write(&file, text).unwrap();
        let mut look = Look::default();
        configured_by(&mut look, &Facts::of_nobody(), &[file]);
        let hosts: Vec<String> = look.hosts().iter().map(|it| it.rule.to_string()).collect();
        assert_eq!(hosts, ["a.test:443", "b.test:443", "c.test:8080"]);
        assert!(look.problems()[0].text.contains("10.0.0.1"));
        assert_eq!(look.variables()["PIP_INDEX_URL"], "https://a.test/simple");
        assert_eq!(
            look.variables()["PIP_EXTRA_INDEX_URL"],
            "https://b.test/simple https://c.test:8080/"
        );
    }

    #[test]
    fn without_files_there_is_nothing() {
        let mut facts = Facts::of_nobody();
        facts.set("PIP_CONFIG_FILE", "/dev/null");
        facts.set("PIP_INDEX_URL", "https://x.test/simple");
        let mut look = Look::default();
        configured(&mut look, &facts);
        assert_eq!(look.hosts().len(), 1);
        assert!(look.files.is_empty());
        let mut none = Look::default();
        defaults(&mut none, &[]);
        assert!(!none.problems().is_empty());
    }
}
