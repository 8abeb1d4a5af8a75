//! What a daemon knows of the host's registries: looked at when first needed, and again when a file of the configuration has changed.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use avfs_net::Fetched;
use avfs_vault::Time;
use serde::{Deserialize, Serialize};

use super::ask::{self, Facts};
use super::cargo::{Index, IndexConfig};
use super::look::{Look, Origin, RegistryTool};
use super::{cargo, npm, pip};
use crate::runtime::{Runtime, lock};

/// How long a look is good while no file changes; shorter where something could not be found out.
const GOOD: Duration = Duration::from_secs(3600);
const GOOD_AFTER_FAILURE: Duration = Duration::from_secs(60);
/// How long the answers of programs are kept in the home.
const ANSWERS_GOOD: i64 = 7 * 24 * 3600;
/// When no further index is asked. What was answered is kept, so the next look gets further.
const INDEXES_PATIENCE: Duration = Duration::from_secs(20);
const VERSION: u32 = 1;
/// What commands have in the place of a token.
const PLACEHOLDER: &str = "avfs-token-of-the-host";
/// The file of the home with these answers. No credentials are in it.
const FILE: &str = "registries.json";
const FILE_MAX: u64 = 256 << 10;

/// When a file was changed, to the nanosecond, and its size.
type Stamp = Option<(i64, i64, u64)>;

#[derive(Default)]
pub(crate) struct KnownRegistries {
    kept: Mutex<Option<Kept>>,
    /// Counts looks, for whoever keeps something that is made of one.
    looks: AtomicU64,
}

struct Kept {
    look: Arc<Look>,
    stamps: Vec<(PathBuf, Stamp)>,
    until: Instant,
}

/// What a program or an index said, and of what that depends.
#[derive(Clone, Serialize, Deserialize)]
struct Answer {
    files: Vec<(PathBuf, Stamp)>,
    /// Seconds since 1970.
    at: i64,
    lines: Vec<String>,
}

#[derive(Default, Serialize, Deserialize)]
struct Answers {
    version: u32,
    answers: BTreeMap<String, Answer>,
}

impl KnownRegistries {
    /// The last look, if there was one, and its number.
    pub fn last(&self) -> (u64, Option<Arc<Look>>) {
        let kept = lock(&self.kept);
        let look = kept.as_ref().map(|kept| Arc::clone(&kept.look));
        (self.looks.load(Ordering::Acquire), look)
    }
}

impl Runtime {
    /// The host's registries as they are now. May take seconds when it is asked first.
    pub(crate) fn registries(&self) -> Arc<Look> {
        let known = &self.inner.registries;
        let mut kept = lock(&known.kept);
        if let Some(kept) = kept.as_ref().filter(|kept| kept.is_good()) {
            return Arc::clone(&kept.look);
        }
        let look = Arc::new(self.look_at_registries());
        let stamps = look.files.iter().map(|file| (file.clone(), stamp(file)));
        let good = match look.has_failed() {
            true => GOOD_AFTER_FAILURE,
            false => GOOD,
        };
        *kept = Some(Kept {
            look: Arc::clone(&look),
            stamps: stamps.collect(),
            until: Instant::now() + good,
        });
        known.looks.fetch_add(1, Ordering::Release);
        look
    }

    fn look_at_registries(&self) -> Look {
        let home = &self.inner.config.home;
        let facts = Facts::new(&self.inner.config.host, mounts(home), home.clone());
        let mut store = Store::open(home.join(FILE));
        let mut look = Look::default();
        pip::configured(&mut look, &facts);
        let programs = programs(&facts, &["pip", "pip3", "python3", "python"]);
        match store.answer("pip", programs, || ask::pip(&facts)) {
            Ok(lines) => pip::defaults(&mut look, &lines),
            Err(why) => look.failed(RegistryTool::Pip, why),
        }
        let user_file = npm::user_file(&facts);
        let mut depends = programs_of(&facts, "npm");
        depends.extend(user_file.clone());
        let asked = store.answer("npm", depends, || ask::npm(&facts, user_file.as_deref()));
        npm::configured(
            &mut look,
            &facts,
            asked
                .as_ref()
                .ok()
                .and_then(|it| it.get(1))
                .map(String::as_str),
        );
        match asked.as_deref() {
            Ok([registry, ..]) => npm::defaults(&mut look, registry),
            Ok([]) => {}
            Err(why) => look.failed(RegistryTool::Npm, why.clone()),
        }
        let mut indexes = cargo::configured(&mut look, &facts);
        let program = programs_of(&facts, "cargo");
        match store
            .answer("cargo", program, || ask::cargo(&facts))
            .as_deref()
        {
            Ok([index, ..]) => indexes.extend(cargo::defaults(&mut look, index)),
            Ok([]) => {}
            Err(why) => look.failed(RegistryTool::Cargo, why.clone()),
        }
        let until = Instant::now() + INDEXES_PATIENCE;
        for index in indexes {
            self.add_files_of(&mut look, &mut store, index, until);
        }
        store.save();
        look.finish()
    }

    /// Asks an index where its files are, and whether it wants a token.
    fn add_files_of(&self, look: &mut Look, store: &mut Store, index: Index, until: Instant) {
        let Index {
            address,
            name,
            token,
        } = index;
        let key = format!("index {address}");
        let asked = store.answer(&key, Vec::new(), || {
            if Instant::now() >= until {
                return Err("other indexes took too long".to_owned());
            }
            let config = self.index_config(&address, token.as_ref().map(|it| it.as_str()))?;
            let files = config.files(&address)?;
            Ok(vec![files.to_string(), config.auth_required.to_string()])
        });
        match asked.as_deref() {
            Ok([files, auth]) => {
                look.add(RegistryTool::Cargo, Origin::Index, files);
                if let Some(token) = token.filter(|_| auth == "true") {
                    if let Some(name) = name {
                        // cargo asks for nothing without one, and must be told to take it from there.
                        let token = format!("CARGO_REGISTRIES_{name}_TOKEN");
                        look.lend(&token, PLACEHOLDER.to_owned());
                        let provider = format!("CARGO_REGISTRIES_{name}_CREDENTIAL_PROVIDER");
                        look.lend(&provider, "cargo:token".to_owned());
                    }
                    let (value, masked) = (token.clone(), vec![token]);
                    look.add_credential(RegistryTool::Cargo, &address, "/", value, masked);
                }
            }
            Ok(_) => look.failed(RegistryTool::Cargo, "an index gave an odd answer"),
            Err(why) => {
                let text = format!("where {} has its files is not known: {why}", address.name);
                look.failed(RegistryTool::Cargo, text);
            }
        }
    }

    fn index_config(
        &self,
        address: &super::address::Address,
        token: Option<&str>,
    ) -> Result<IndexConfig, String> {
        let path = format!("{}/config.json", address.path.trim_end_matches('/'));
        let secure = address.scheme == super::address::Scheme::Https;
        let ask = |token: Option<&str>| {
            let networks = &self.inner.networks;
            networks.fetch(&address.at(), secure, &path, token)
        };
        let mut fetched = ask(None)?;
        if let (Fetched::Refused(401), Some(token), true) = (&fetched, token, secure) {
            fetched = ask(Some(token))?;
        }
        match fetched {
            Fetched::Body(bytes) => IndexConfig::parse(&bytes),
            Fetched::Refused(status) => Err(format!("it answered {status}")),
        }
    }
}

impl Kept {
    fn is_good(&self) -> bool {
        let unchanged = self.stamps.iter().all(|(path, was)| stamp(path) == *was);
        unchanged && Instant::now() < self.until
    }
}

/// The directories of the host at which vaults are mounted, by the notes about them: no lock of a vault is taken.
fn mounts(home: &Path) -> Vec<PathBuf> {
    let notes = fs::read_dir(home.join("mounts"))
        .into_iter()
        .flatten()
        .flatten();
    let notes = notes.filter_map(|note| fs::read(note.path()).ok());
    let dirs = notes.filter_map(|note| {
        let dir = note.split(|byte| *byte == 0).next()?;
        Some(PathBuf::from(OsStr::from_bytes(dir)))
    });
    dirs.filter(|dir| dir.is_absolute())
        .flat_map(|dir| [dir.canonicalize().unwrap_or_else(|_| dir.clone()), dir])
        .chain([home.join("mnt")])
        .collect()
}

fn programs_of(facts: &Facts, name: &str) -> Vec<PathBuf> {
    facts.program(name).into_iter().collect()
}

fn programs(facts: &Facts, names: &[&str]) -> Vec<PathBuf> {
    names
        .iter()
        .filter_map(|name| facts.program(name))
        .collect()
}

fn stamp(path: &Path) -> Stamp {
    let meta = fs::metadata(path).ok()?;
    Some((meta.mtime(), meta.mtime_nsec(), meta.size()))
}

/// The answers in the home.
struct Store {
    path: PathBuf,
    known: Answers,
    used: BTreeMap<String, Answer>,
}

impl Store {
    /// What cannot be read is asked again.
    fn open(path: PathBuf) -> Store {
        let small = fs::metadata(&path).is_ok_and(|meta| meta.len() <= FILE_MAX);
        let text = small.then(|| fs::read(&path).ok()).flatten();
        let known = text.and_then(|text| serde_json::from_slice::<Answers>(&text).ok());
        Store {
            path,
            known: known.filter(|it| it.version == VERSION).unwrap_or_default(),
            used: BTreeMap::new(),
        }
    }

    /// The answer that is known, or what `ask` gives. It holds while these files stay as they are, and for a week.
    fn answer(
        &mut self,
        key: &str,
        files: Vec<PathBuf>,
        ask: impl FnOnce() -> Result<Vec<String>, String>,
    ) -> Result<Vec<String>, String> {
        let now = Time::now().secs;
        let stamped = files.into_iter().map(|file| (file.clone(), stamp(&file)));
        let files: Vec<(PathBuf, Stamp)> = stamped.collect();
        let known = self.known.answers.get(key).filter(|known| {
            let age = now - known.at;
            known.files == files && (0..ANSWERS_GOOD).contains(&age)
        });
        let answer = match known {
            Some(known) => known.clone(),
            None => Answer {
                files,
                at: now,
                lines: ask()?,
            },
        };
        self.used.insert(key.to_owned(), answer.clone());
        Ok(answer.lines)
    }

    /// Keeps what was used. On a disk that is full, or that can only be read, it is asked again another time.
    fn save(self) {
        let answers = Answers {
            version: VERSION,
            answers: self.used,
        };
        let Ok(text) = serde_json::to_vec_pretty(&answers) else {
            return;
        };
        let temporary = self.path.with_extension("json.tmp");
        let mut options = OpenOptions::new();
        let opened = options
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(&temporary);
        let written = opened.and_then(|mut file| file.write_all(&text));
        let _ = written.and_then(|()| fs::rename(&temporary, &self.path));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_kept_until_what_it_depends_on_changes() {
        let dir = tempfile::tempdir().unwrap();
        let (path, program) = (dir.path().join(FILE), dir.path().join("program"));
        fs::write(&program, "1").unwrap();
        let ask = |store: &mut Store, text: &str| {
            let text = text.to_owned();
            store
                .answer("x", vec![program.clone()], || Ok(vec![text]))
                .unwrap()
        };
        let mut store = Store::open(path.clone());
        assert!(store.answer("y", Vec::new(), || Err("no".into())).is_err());
        assert_eq!(ask(&mut store, "one"), ["one"]);
        store.save();
        let mode = fs::metadata(&path).unwrap().mode() & 0o777;
        assert_eq!(mode, 0o600);
        let mut store = Store::open(path.clone());
        assert_eq!(ask(&mut store, "two"), ["one"]);
        store.save();
        fs::write(&program, "other").unwrap();
        let mut store = Store::open(path.clone());
        assert_eq!(ask(&mut store, "three"), ["three"]);
        fs::write(&path, "{ damaged").unwrap();
        let mut store = Store::open(path);
        assert_eq!(ask(&mut store, "four"), ["four"]);
    }
}
