//! The rules in force for a vault: where they are written, when they are read again, and what they say.
//!
//! Files are looked at before every decision and read again when they changed. One that cannot be used refuses every
//! command: what it would have forbidden is not known. Nothing in a vault is ever read as a rule.

use std::collections::HashMap;
use std::fs::{File, Metadata};
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use avfs_policy::{
    CommandForm, Decision, Error as PolicyError, Example, Level, ListedRule, Network, Request,
    RuleFile, Rules, decide,
};
use avfs_vault::{Vault, VaultId, VaultName, VaultPath};

use crate::command::call::ExecCommand;
use crate::command::check::check_command;
use crate::command::network::ExecNetwork;
use crate::command::options::ExecOptions;
use crate::gate::Verb;
use crate::runtime::{Runtime, Select, lock};
use crate::session::Session;
use crate::{Error, Result};

/// Where a machine's administrator writes rules.
const SYSTEM_FILE: &str = "/etc/agentvfs/policy.toml";
/// A larger file is not one that a person wrote.
const LARGEST_FILE: u64 = 1 << 20;

/// The files of rules that hold for all vaults of a home.
pub(crate) struct PolicyFiles {
    pub files: Vec<(Level, PathBuf)>,
    /// Held while it is noted what the files hold.
    pub noting: Mutex<()>,
    loaded: Mutex<HashMap<VaultId, Loaded>>,
}

struct Loaded {
    stamps: Vec<Option<Stamp>>,
    own: Option<String>,
    name: VaultName,
    rules: Result<Arc<Rules>, PolicyError>,
}

/// What changes when a file is written or replaced.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Stamp {
    place: (u64, u64),
    size: u64,
    changed: (i64, i64),
    owner: (u32, u32),
}

/// One place where rules can be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PolicySource {
    pub level: Level,
    /// A path of the host, or the vault's name.
    pub name: String,
    /// None if nothing is written there.
    pub text: Option<String>,
}

/// The rules of a vault.
#[derive(Debug)]
pub struct PolicyListing {
    pub sources: Vec<PolicySource>,
    /// Why there are none that could be used.
    pub rules: Result<Vec<ListedRule>, PolicyError>,
}

/// A request that is not to be run, only judged.
#[derive(Debug, Clone)]
pub struct PolicyQuestion {
    pub command: ExecCommand,
    pub cwd: Option<VaultPath>,
    pub env: Vec<(Vec<u8>, Vec<u8>)>,
    /// The vault's, when it is left out.
    pub network: Option<Network>,
}

impl PolicyFiles {
    pub fn new(user: Option<PathBuf>) -> PolicyFiles {
        PolicyFiles::at(PathBuf::from(SYSTEM_FILE), user)
    }

    fn at(system: PathBuf, user: Option<PathBuf>) -> PolicyFiles {
        let user = user.into_iter().map(|path| (Level::User, path));
        PolicyFiles {
            files: [(Level::System, system)].into_iter().chain(user).collect(),
            noting: Mutex::default(),
            loaded: Mutex::default(),
        }
    }

    /// The rules for a vault whose own ones are `own`.
    fn rules(&self, vault: &Vault, own: Option<String>) -> Result<Arc<Rules>, PolicyError> {
        self.rules_now(vault, own).0
    }

    /// The rules in force, and whether they were read just now.
    fn rules_now(
        &self,
        vault: &Vault,
        own: Option<String>,
    ) -> (Result<Arc<Rules>, PolicyError>, bool) {
        let stamps: Vec<_> = self.files.iter().map(|(_, path)| stamp(path)).collect();
        let mut loaded = lock(&self.loaded);
        let known = loaded
            .get(&vault.id)
            .filter(|known| known.stamps == stamps && known.own == own && known.name == vault.name);
        if let Some(known) = known {
            return (known.rules.clone(), false);
        }
        let rules = self.load(vault, own.as_deref()).map(Arc::new);
        let fresh = Loaded {
            stamps,
            own,
            name: vault.name.clone(),
            rules: rules.clone(),
        };
        loaded.insert(vault.id, fresh);
        (rules, true)
    }

    /// Of how many vaults the rules are held.
    #[cfg(test)]
    pub fn held(&self) -> usize {
        lock(&self.loaded).len()
    }

    /// Lets go of the rules of a vault that is no more.
    pub fn forget(&self, vault: VaultId) {
        lock(&self.loaded).remove(&vault);
    }

    fn load(&self, vault: &Vault, own: Option<&str>) -> Result<Rules, PolicyError> {
        let mut files = Vec::new();
        for (level, path) in &self.files {
            if let Some(text) = read(path)? {
                files.push(rule_file(*level, path.display().to_string(), text));
            }
        }
        if let Some(text) = own {
            files.push(rule_file(Level::Vault, own_name(&vault.name), text.into()));
        }
        Rules::load(&files)
    }
}

pub(crate) fn rule_file(level: Level, name: String, text: String) -> RuleFile {
    RuleFile { level, name, text }
}

fn own_name(vault: &VaultName) -> String {
    format!("vault {vault}")
}

fn stamp(path: &Path) -> Option<Stamp> {
    let meta = std::fs::metadata(path).ok()?;
    Some(Stamp {
        place: (meta.dev(), meta.ino()),
        size: meta.len(),
        changed: (meta.ctime(), meta.ctime_nsec()),
        owner: (meta.uid(), meta.mode()),
    })
}

/// The text of a file that is there, from somebody who may write rules.
fn read(path: &Path) -> Result<Option<String>, PolicyError> {
    let refused = |reason: String| PolicyError::Unavailable {
        file: path.display().to_string(),
        reason,
    };
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(refused(error.to_string())),
    };
    let meta = file.metadata().map_err(|e| refused(e.to_string()))?;
    trusted(&meta).map_err(|reason| refused(reason.to_owned()))?;
    let mut text = String::new();
    let mut limited = file.take(LARGEST_FILE + 1);
    let size = limited.read_to_string(&mut text);
    match size.map_err(|e| refused(e.to_string()))? as u64 > LARGEST_FILE {
        true => Err(refused("it is larger than 1 MiB".to_owned())),
        false => Ok(Some(text)),
    }
}

/// What is written in a file. Why one cannot be read is told with the rules.
pub(crate) fn written(path: &Path) -> Option<String> {
    read(path).unwrap_or(Some(String::new()))
}

fn trusted(meta: &Metadata) -> Result<(), &'static str> {
    let own = rustix::process::geteuid().as_raw();
    if !meta.is_file() {
        Err("it is no regular file")
    } else if meta.uid() != 0 && meta.uid() != own {
        Err("it belongs to another user")
    } else if meta.mode() & 0o022 != 0 {
        Err("others may write to it: run `chmod go-w` on it")
    } else {
        Ok(())
    }
}

impl Runtime {
    /// What the rules of a vault say about a request.
    pub(crate) fn decision(&self, vault: &Vault, request: &Request<'_>) -> Result<Decision> {
        let own = self.inner.vaults.policy(vault.id)?;
        let (rules, fresh) = self.inner.policy.rules_now(vault, own);
        if fresh {
            self.note_rule_files()?;
        }
        Ok(match rules {
            Ok(rules) => decide(&rules, request),
            Err(error) => error.decision(),
        })
    }
}

impl Session {
    /// What policy would decide, for somebody who only wants to know.
    pub fn policy_explain(&self, vault: Select, question: &PolicyQuestion) -> Result<Decision> {
        let vault = self.vault(&vault, Verb::Read)?;
        let cwd = match &question.cwd {
            Some(cwd) => cwd.clone(),
            None => self.default_cwd(vault.head)?,
        };
        check_command(&question.command, &question.env)?;
        let request = Request {
            command: question.command.form(),
            cwd: cwd.as_bytes(),
            network: match question.network {
                Some(network) => network,
                None => {
                    let settings = self.settings_of(&vault)?;
                    ExecNetwork::of(&ExecOptions::default(), &settings)?.policy()
                }
            },
            env: &question.env,
        };
        self.decision(&vault, &request)
    }

    pub fn policy_list(&self, vault: Select) -> Result<PolicyListing> {
        let vault = self.vault(&vault, Verb::Read)?;
        let own = self.inner.vaults.policy(vault.id)?;
        let mut sources = Vec::new();
        for (level, path) in &self.inner.policy.files {
            sources.push(PolicySource {
                level: *level,
                name: path.display().to_string(),
                text: written(path),
            });
        }
        sources.push(PolicySource {
            level: Level::Vault,
            name: own_name(&vault.name),
            text: own.clone(),
        });
        let rules = self.inner.policy.rules(&vault, own);
        Ok(PolicyListing {
            sources,
            rules: rules.map(|rules| rules.list()),
        })
    }

    /// Every example in the rules of a vault, with what became of it.
    pub fn policy_test(&self, vault: Select) -> Result<Vec<Example>> {
        let listing = self.policy_list(vault)?;
        // What cannot be read has no examples that could be right.
        if let Err(error @ PolicyError::Unavailable { .. }) = listing.rules {
            return Err(invalid(error));
        }
        let mut examples = Vec::new();
        for source in listing.sources {
            if let Some(text) = source.text {
                examples.extend(examples_of(source.level, source.name, text)?);
            }
        }
        Ok(examples)
    }

    /// Whether a text could be written at that level, and what its examples say.
    pub fn policy_validate(&self, level: Level, text: String) -> Result<Vec<Example>> {
        let name = match level {
            Level::Vault => "vault".to_owned(),
            _ => self.policy_file(level).unwrap_or_default(),
        };
        Rules::load(&[rule_file(level, name.clone(), text.clone())]).map_err(invalid)?;
        examples_of(level, name, text)
    }

    fn policy_file(&self, level: Level) -> Option<String> {
        let mut files = self.inner.policy.files.iter();
        let found = files.find(|(at, _)| *at == level)?;
        Some(found.1.display().to_string())
    }

    /// Replaces a vault's own rules; `seen` is what they were when somebody began to edit them.
    pub fn policy_set(
        &self,
        vault: Select,
        seen: Option<&str>,
        text: Option<&str>,
    ) -> Result<VaultName> {
        let vault = self.vault(&vault, Verb::Govern)?;
        if let Some(text) = text {
            let file = rule_file(Level::Vault, own_name(&vault.name), text.to_owned());
            Rules::load(&[file]).map_err(invalid)?;
        }
        let by = &self.principal();
        self.inner.vaults.set_policy(vault.id, seen, text, by)?;
        Ok(vault.name)
    }
}

fn examples_of(level: Level, name: String, text: String) -> Result<Vec<Example>> {
    Rules::examples(&rule_file(level, name, text)).map_err(invalid)
}

pub(crate) fn invalid(error: PolicyError) -> Error {
    Error::Invalid {
        what: "policy",
        reason: error.to_string(),
    }
}

impl ExecCommand {
    pub(crate) fn form(&self) -> CommandForm<'_> {
        match self {
            ExecCommand::Argv(argv) => CommandForm::Argv(argv),
            ExecCommand::Shell(text) => CommandForm::Shell(text),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use avfs_policy::Action;
    use avfs_vault::{Principal, RootId, Vaults};
    use std::os::unix::fs::PermissionsExt;

    struct Bed {
        dir: tempfile::TempDir,
        files: PolicyFiles,
        vault: Vault,
    }

    fn bed() -> Bed {
        let dir = tempfile::tempdir().unwrap();
        let store = avfs_store::Store::open(&dir.path().join("home")).unwrap();
        let vaults = Vaults::open(store).unwrap();
        let name = "v".parse().unwrap();
        let vault = vaults.create(&name, &Principal::OWNER).unwrap();
        let _: RootId = vault.head;
        let files = PolicyFiles::at(
            dir.path().join("system.toml"),
            Some(dir.path().join("user.toml")),
        );
        Bed { dir, files, vault }
    }

    impl Bed {
        fn action(&self, own: Option<&str>) -> (Action, String) {
            let argv = [b"git".to_vec(), b"push".to_vec()];
            let request = Request {
                command: CommandForm::Argv(&argv),
                cwd: b"/workspace",
                network: Network::None,
                env: &[],
            };
            let decision = match self.files.rules(&self.vault, own.map(str::to_owned)) {
                Ok(rules) => decide(&rules, &request),
                Err(error) => error.decision(),
            };
            (decision.action, decision.rule)
        }

        fn write(&self, name: &str, text: &str) -> PathBuf {
            let path = self.dir.path().join(name);
            std::fs::write(&path, text).unwrap();
            std::fs::set_permissions(&path, PermissionsExt::from_mode(0o644)).unwrap();
            path
        }
    }

    const ALLOW: &str = "[[rule]]\ncommand = \"git push\"\naction = \"allow\"\n";
    const DENY: &str = "[[rule]]\ncommand = \"git push\"\naction = \"deny\"\n";

    #[test]
    fn files_are_read_again_when_they_change() {
        let bed = bed();
        assert_eq!(bed.action(None).0, Action::RequireApproval);
        bed.write("user.toml", ALLOW);
        assert_eq!(bed.action(None).0, Action::Allow);
        bed.write("system.toml", DENY);
        assert_eq!(bed.action(None).0, Action::Deny);
        assert_eq!(bed.action(Some(ALLOW)).0, Action::Deny);
        std::fs::remove_file(bed.dir.path().join("system.toml")).unwrap();
        assert_eq!(bed.action(None).0, Action::Allow);
        let (action, rule) = bed.action(Some(DENY));
        assert_eq!((action, &*rule), (Action::Deny, "vault v:1"));
    }

    #[test]
    fn a_file_that_cannot_be_used_refuses_everything() {
        let bed = bed();
        let path = bed.write("user.toml", "[[rule]]\ncommand = \"ls\"\n");
        let (action, rule) = bed.action(None);
        assert_eq!(action, Action::Deny);
        assert_eq!(rule, format!("{}:1", path.display()));
        bed.write("user.toml", ALLOW);
        assert_eq!(bed.action(None).0, Action::Allow);
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o666)).unwrap();
        assert_eq!(bed.action(None).0, Action::Deny, "others may write it");
        std::fs::remove_file(&path).unwrap();
        std::fs::create_dir(&path).unwrap();
        assert_eq!(bed.action(None).0, Action::Deny, "a directory");
        std::fs::remove_dir(&path).unwrap();
        bed.write("user.toml", &"#\n".repeat(600_000));
        assert_eq!(bed.action(None).0, Action::Deny, "too large");
    }
}
