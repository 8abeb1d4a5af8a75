//! `avfs vault`: create, list, fork and delete vaults.

use super::care::damaged_line;
use crate::args::VaultVerb;
use crate::environment;
use crate::error::{Error, Result};
use crate::here;
use crate::output::changes::printable;
use crate::output::table::{align_right, count, size, table, time};
use crate::output::{Output, style};
use crate::session::Session;
use avfs_api::wire::{
    AncestorItem, Class, Defaults, DefaultsListing, DefaultsSet, DeletedVaultItem, LentItem,
    ModeItem, VaultCreate, VaultCreated, VaultDelete, VaultDetails, VaultFork, VaultForked,
    VaultInfo, VaultItem, VaultLimitItem, VaultList, VaultListDeleted, VaultLog, VaultRename,
    VaultSet, VaultSettings, VaultUndelete, VaultUnset, VaultUse, VaultUsed, VersionItem,
};
use std::collections::BTreeMap;

pub fn run(verb: VaultVerb, session: &mut Session, output: Output) -> Result<()> {
    match verb {
        VaultVerb::Create { name, backend } => {
            let created = session.call(&VaultCreate { name, backend })?;
            output.answer(&created, create_text)
        }
        VaultVerb::List { deleted: true } => {
            let deleted = session.call(&VaultListDeleted::default())?.vaults;
            output.answer(&deleted, |deleted| deleted_text(deleted))
        }
        VaultVerb::List { deleted: false } => {
            let vaults = session.call(&VaultList::default())?.vaults;
            output.answer(&vaults, |vaults| list_text(vaults))
        }
        VaultVerb::Info { name } => {
            let vault = name.unwrap_or_else(|| session.vault().to_owned());
            let details = session.call_on(&vault, &VaultInfo {})?;
            output.answer(&details, info_text)
        }
        VaultVerb::Use { name, here: true } => use_here(name.as_deref(), session, output),
        VaultVerb::Use { name, here: false } => {
            let name = name.unwrap_or_default();
            let used = session.call_on(&name, &VaultUse {})?;
            let text = |used: &VaultUsed| format!("{} is now the current vault", used.current);
            output.answer(&used, text)
        }
        VaultVerb::Rename { name, new_name } => {
            let request = VaultRename { name: new_name };
            let renamed = session.call_on(&name, &request)?;
            output.answer(&renamed, |renamed| {
                format!("renamed vault {} to {}", renamed.old_name, renamed.name)
            })
        }
        VaultVerb::Fork {
            source,
            name,
            checkpoint,
            version,
            make_current,
        } => {
            let request = VaultFork {
                name,
                checkpoint,
                version,
                make_current,
            };
            let forked = session.call_on(&source, &request)?;
            output.answer(&forked, fork_text)
        }
        VaultVerb::Delete { name, force, .. } => delete(&name, force, session, output),
        VaultVerb::Undelete { name, to } => {
            let back = session.call(&VaultUndelete { name, to })?;
            output.answer(&back, |back| {
                let (name, version) = (&back.undeleted, back.version);
                format!("vault {name} is back, at version {version}")
            })
        }
        VaultVerb::Set { settings, default } => set(&settings, default, session, output),
        VaultVerb::Unset { keys, default } => unset(keys, default, session, output),
        VaultVerb::Defaults => {
            let listing = session.call(&Defaults {})?;
            output.answer(&listing, defaults_text)
        }
        VaultVerb::Log { name, limit } => {
            let vault = name.unwrap_or_else(|| session.vault().to_owned());
            let versions = session.call_on(&vault, &VaultLog::newest(limit))?.versions;
            output.answer(&versions, |versions| log_text(versions))
        }
    }
}

/// The answer of `vault use --here`.
#[derive(serde::Serialize)]
struct UsedHere {
    directory: String,
    /// The vault of this directory; null if it has none of its own.
    vault: Option<String>,
}

/// Sets the vault of the working directory, by its id: it keeps its vault when that is renamed.
fn use_here(name: Option<&str>, session: &mut Session, output: Output) -> Result<()> {
    let place = environment::place()?;
    if place.class() != Class::Owner {
        return Err(Error::Invalid {
            text: "which vault a directory has is for the owner to say".into(),
            hint: Some("set AVFS_VAULT, or name the vault with --vault".into()),
        });
    }
    let found = match name {
        Some(name) => Some(session.call_on(name, &VaultInfo {})?.item),
        None => None,
    };
    let id = found.as_ref().map(|vault| vault.id.as_str());
    let directory = here::choose(place.home(), id)?;
    let used = UsedHere {
        directory: directory.display().to_string(),
        vault: found.map(|vault| vault.name),
    };
    output.answer(&used, |used| {
        let directory = printable(&used.directory);
        match &used.vault {
            Some(vault) => format!(
                "{vault} is now the vault in {directory} and below\nto undo: avfs vault use --here"
            ),
            None => format!("{directory} has no vault of its own"),
        }
    })
}

fn delete(name: &str, force: bool, session: &mut Session, output: Output) -> Result<()> {
    let deleted = session.call_on(name, &VaultDelete { force })?;
    output.answer(&deleted, |deleted| {
        let name = &deleted.deleted;
        format!("deleted vault {name}\nto restore it: avfs vault undelete {name}")
    })
}

fn set(settings: &[String], default: bool, session: &mut Session, output: Output) -> Result<()> {
    let settings = settings.iter().map(|pair| key_value(pair));
    let settings = settings.collect::<Result<BTreeMap<_, _>>>()?;
    if default {
        let settings = settings.into_iter();
        let settings = settings.map(|(key, value)| (key, Some(value))).collect();
        let changed = session.call(&DefaultsSet { settings })?;
        return output.answer(&changed, defaults_text);
    }
    let changed = session.call(&VaultSet { settings })?;
    output.answer(&changed, settings_text)
}

fn unset(keys: Vec<String>, default: bool, session: &mut Session, output: Output) -> Result<()> {
    if default {
        let settings = keys.into_iter().map(|key| (key, None)).collect();
        let changed = session.call(&DefaultsSet { settings })?;
        return output.answer(&changed, defaults_text);
    }
    let changed = session.call(&VaultUnset { keys })?;
    output.answer(&changed, settings_text)
}

fn key_value(pair: &str) -> Result<(String, String)> {
    let (key, value) = pair.split_once('=').ok_or_else(|| Error::Invalid {
        text: format!("{pair:?} is not KEY=VALUE"),
        hint: Some("for example memory=2g, or env.CI=1".into()),
    })?;
    Ok((key.to_owned(), value.to_owned()))
}

fn settings_text(changed: &VaultSettings) -> String {
    if changed.settings.is_empty() {
        return format!("vault {} has no settings", changed.vault);
    }
    lines_of(&changed.settings)
}

fn defaults_text(listing: &DefaultsListing) -> String {
    if listing.settings.is_empty() {
        return "there are no defaults for new vaults".into();
    }
    lines_of(&listing.settings)
}

fn lines_of(settings: &BTreeMap<String, String>) -> String {
    let lines = settings.iter();
    let lines: Vec<String> = lines
        .map(|(key, value)| printable(&format!("{key}={value}")))
        .collect();
    lines.join("\n")
}

fn now_current(current: bool) -> &'static str {
    if current { ", now the current one" } else { "" }
}

fn create_text(created: &VaultCreated) -> String {
    let current = now_current(created.current);
    format!("created vault {}{current}", created.created)
}

fn fork_text(forked: &VaultForked) -> String {
    let current = now_current(forked.current);
    let (name, source) = (&forked.name, &forked.source);
    match &forked.freeze {
        None => format!("forked {name} from {source}{current}"),
        Some(freeze) => format!(
            "forked {name} from {source}{current}\n{} stopped meanwhile by {}; consistency: {}",
            count(freeze.commands as u64, "command"),
            freeze.method,
            freeze.consistency
        ),
    }
}

fn list_text(vaults: &[VaultItem]) -> String {
    if vaults.is_empty() {
        return "there are no vaults; create one with `avfs vault create NAME`".into();
    }
    let rows = vaults
        .iter()
        .map(|vault| {
            vec![
                if vault.current { "*" } else { "" }.into(),
                vault.name.clone(),
                vault.files.to_string(),
                size(vault.size),
                vault.checkpoints.to_string(),
                vault.parent.clone().unwrap_or_default(),
                vault.made_by.clone(),
                time(&vault.created_at),
            ]
        })
        .collect();
    let headings = [
        "",
        "NAME",
        "FILES",
        "SIZE",
        "CHECKPOINTS",
        "FORKED FROM",
        "MADE BY",
        "CREATED",
    ];
    let mut table = table(&headings, rows);
    for column in [2, 3, 4] {
        align_right(&mut table, column);
    }
    let mut text = table.trim_fmt();
    for vault in vaults {
        text += &damaged_line(&vault.name, vault.damage.as_deref());
    }
    text
}

fn deleted_text(deleted: &[DeletedVaultItem]) -> String {
    if deleted.is_empty() {
        return "there are no deleted vaults to restore".into();
    }
    let row = |it: &DeletedVaultItem| {
        vec![
            it.name.clone(),
            time(&it.deleted_at),
            format!("v{}", it.version),
            it.id.clone(),
        ]
    };
    let rows = deleted.iter().map(row).collect();
    table(&["NAME", "DELETED", "VERSION", "ID"], rows).trim_fmt()
}

fn info_text(details: &VaultDetails) -> String {
    let item = &details.item;
    let mut rows = vec![
        (
            "name",
            format!(
                "{}{}",
                item.name,
                if item.current { " (current)" } else { "" }
            ),
        ),
        (
            "files",
            format!("{}, {}", count(item.files, "file"), size(item.size)),
        ),
        ("version", item.version.to_string()),
        ("checkpoints", item.checkpoints.to_string()),
        (
            "created",
            format!("{} by {}", time(&item.created_at), item.made_by),
        ),
    ];
    let lineage: Vec<String> = details.lineage.iter().map(ancestor_text).collect();
    if !lineage.is_empty() {
        rows.push(("forked from", lineage.join(" ← ")));
    }
    if !details.forks.is_empty() {
        rows.push(("forks", details.forks.join(", ")));
    }
    let settings = details.settings.iter();
    let settings: Vec<String> = settings
        .map(|(key, value)| format!("{key}={value}"))
        .collect();
    if !settings.is_empty() {
        rows.push(("settings", settings.join(", ")));
    }
    rows.extend(details.mode.as_ref().map(|mode| ("mode", mode_text(mode))));
    let limits: Vec<String> = details.limits.iter().map(limit_text).collect();
    rows.push(("limits", limits.join(", ")));
    rows.extend(item.damage.clone().map(|damage| ("damaged", damage)));
    let lent = lent_texts(&details.lent).into_iter();
    rows.extend(lent.map(|text| ("lent", text)));
    for item in &details.uncommitted {
        rows.push(("uncommitted", item.message.clone()));
        rows.extend(item.hint.clone().map(|hint| ("hint", hint)));
    }
    rows.extend([("root", details.root.clone()), ("id", item.id.clone())]);
    rows.push(("home", details.path.clone()));
    let rows = rows
        .into_iter()
        .map(|(name, value)| vec![name.into(), value])
        .collect();
    table(&[], rows).trim_fmt()
}

/// `claude: profile moderate, timeout 120s, toolset core, network none, CLAUDECODE=1`.
fn mode_text(mode: &ModeItem) -> String {
    let seconds = mode.timeout_ms / 1000;
    let mut text = format!(
        "{}: profile {}, timeout {seconds}s, toolset {}, network {}",
        mode.name, mode.profile, mode.toolset, mode.network
    );
    for (name, value) in &mode.env {
        text += &format!(", {name}={value}");
    }
    text
}

/// `memory 18.0 GiB (default)`.
fn limit_text(limit: &VaultLimitItem) -> String {
    let in_bytes = ["memory", "disk", "disk_reserve"].contains(&limit.limit.as_str());
    let value = match limit.value {
        None => "unlimited".to_owned(),
        Some(bytes) if in_bytes => size(bytes as u64),
        Some(number) => number.to_string(),
    };
    format!("{} {value} ({})", limit.limit, limit.source)
}

/// `main at v3`, or with a checkpoint's name if there is one.
fn ancestor_text(ancestor: &AncestorItem) -> String {
    let state = match (&ancestor.checkpoints[..], ancestor.version) {
        ([name, ..], _) => format!(" at {name}"),
        ([], Some(number)) => format!(" at v{number}"),
        ([], None) => String::new(),
    };
    let gone = if ancestor.exists { "" } else { " (deleted)" };
    format!("{}{state}{gone}", ancestor.name)
}

pub fn log_text(versions: &[VersionItem]) -> String {
    let rows = versions
        .iter()
        .map(|version| {
            vec![
                format!("v{}", version.version),
                time(&version.created_at),
                version.cause.clone(),
                version.by.clone(),
                version.hash.clone(),
                version.exec.clone().unwrap_or_default(),
            ]
        })
        .collect();
    let mut text = table(&["VERSION", "TIME", "CAUSE", "BY", "ROOT", "EXEC"], rows).trim_fmt();
    for version in versions.iter().filter(|version| version.damage.is_some()) {
        text += &format!(
            "\n{} v{} cannot be read",
            style::bad("damaged:"),
            version.version
        );
    }
    text
}

/// `python 3.11.7, 3.12.1`, and each directory by itself.
fn lent_texts(lent: &[LentItem]) -> Vec<String> {
    let mut texts: Vec<(&str, String)> = Vec::new();
    for item in lent {
        let name = item.name.as_ref().unwrap_or(&item.path);
        match texts.last_mut().filter(|(kind, _)| *kind == item.kind) {
            Some((_, text)) => *text += &format!(", {}", printable(name)),
            None => texts.push((&item.kind, format!("{} {}", item.kind, printable(name)))),
        }
    }
    texts.into_iter().map(|(_, text)| text).collect()
}
