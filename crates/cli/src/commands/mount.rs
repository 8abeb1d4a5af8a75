//! `avfs mount`, `avfs unmount`, `avfs mounts`: vaults mounted on the host.

use crate::args::{MountArgs, MountDriverName, Time, UnmountArgs};
use crate::error::{Error, Result};
use crate::output::Output;
use crate::output::table::table;
use crate::session::Session;
use avfs_api::wire::{
    Base64, CURRENT, Mount, MountDriverWord, MountItem, MountListing, Mounts, Unmount,
    UnmountListing, UnmountedItem, to_text,
};
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// How often a mount in the foreground is checked.
const LOOK: Duration = Duration::from_millis(300);

pub fn run(args: MountArgs, session: &mut Session, output: Output) -> Result<()> {
    let (vault, dir) = match args.places.as_slice() {
        [vault, dir] => (one_vault(vault, session)?, Some(dir)),
        places => (session.vault().to_owned(), places.first()),
    };
    let (dir, dir_b64) = match dir {
        Some(dir) => text_of(&resolve(dir)?),
        None => (None, None),
    };
    let mount_namespace = avfs_runtime::mount_namespace().map_err(|error| Error::Unavailable {
        text: error.to_string(),
        hint: None,
    })?;
    let request = Mount {
        dir: dir.map(Into::into),
        dir_b64,
        readonly: args.readonly,
        at: args.at,
        driver: args.driver.map(|name| match name {
            MountDriverName::Overlay => MountDriverWord::Overlay,
            MountDriverName::Fuse => MountDriverWord::Fuse,
        }),
        autocommit_s: args.autocommit.map(Time::seconds),
        allow_other: args.allow_other,
        mount_namespace,
    };
    // Before it is mounted, so that an interrupt at any moment unmounts it.
    let asked = args.foreground.then(interrupts).transpose()?;
    let mounted = session.call_on(&vault, &request)?;
    output.answer(&mounted, mounted_text)?;
    match asked {
        Some(asked) => stay(&mounted, &asked, session, output),
        None => Ok(()),
    }
}

/// Set from the first interrupt on.
fn interrupts() -> Result<Arc<AtomicBool>> {
    let asked = Arc::new(AtomicBool::new(false));
    let ask = Arc::clone(&asked);
    avfs_api::on_interrupt(move || ask.store(true, Ordering::Release))?;
    Ok(asked)
}

/// The vault named before the directory; an error if `--vault` names another.
fn one_vault(named: &Path, session: &Session) -> Result<String> {
    let named = named.to_string_lossy().into_owned();
    match session.vault() {
        other if other == CURRENT || other == named => Ok(named),
        other => Err(Error::Invalid {
            text: format!("two vaults are given: {named}, and {other} by --vault or AVFS_VAULT"),
            hint: Some("give one of them".into()),
        }),
    }
}

pub fn unmount(args: UnmountArgs, session: &mut Session, output: Output) -> Result<()> {
    let (dir, dir_b64) = match &args.dir {
        Some(dir) => text_of(&resolve(dir)?),
        None => (None, None),
    };
    let vault = (dir.is_none() && !args.all).then(|| session.vault().to_owned());
    let gone = session.call(&Unmount {
        dir: dir.map(Into::into),
        dir_b64,
        vault,
        all: args.all,
        force: args.force || args.lazy,
    })?;
    output.answer(&gone, unmounted_text)
}

pub fn list(session: &mut Session, output: Output) -> Result<()> {
    let listing = session.call(&Mounts {})?;
    output.answer(&listing, list_text)
}

/// Waits for an interrupt, then unmounts; or until the mount is gone.
fn stay(
    mounted: &MountItem,
    asked: &AtomicBool,
    session: &mut Session,
    output: Output,
) -> Result<()> {
    while !asked.load(Ordering::Acquire) {
        std::thread::sleep(LOOK);
        let listing = session.call(&Mounts {})?;
        if !listing.mounts.iter().any(|mount| mount.dir == mounted.dir) {
            return Ok(());
        }
    }
    let gone = session.call(&Unmount {
        dir: Some(mounted.dir.clone().into()),
        dir_b64: mounted.dir_b64.clone(),
        ..Unmount::default()
    })?;
    output.answer(&gone, unmounted_text)
}

/// The directory without symbolic links. `stat` fails on a mount without a server, so only its parent is resolved.
fn resolve(dir: &Path) -> Result<PathBuf> {
    let failed = || Error::io(format!("cannot resolve {}", dir.display()));
    let absolute = std::path::absolute(dir).map_err(failed())?;
    match absolute.canonicalize() {
        Ok(real) => Ok(real),
        Err(error) => {
            let (Some(parent), Some(name)) = (absolute.parent(), absolute.file_name()) else {
                return Err(failed()(error));
            };
            match parent.canonicalize() {
                Ok(parent) => Ok(parent.join(name)),
                Err(missing) if missing.kind() == ErrorKind::NotFound => Ok(absolute),
                Err(error) => Err(failed()(error)),
            }
        }
    }
}

fn text_of(dir: &Path) -> (Option<String>, Option<Base64>) {
    let (text, exact) = to_text(dir.as_os_str().as_bytes().to_vec());
    (Some(text), exact)
}

fn mounted_text(mount: &MountItem) -> String {
    let access = if mount.readonly { ", read-only" } else { "" };
    format!(
        "vault {} at v{} is mounted at {}{access}\nto unmount: avfs unmount {}",
        mount.vault, mount.version, mount.dir, mount.dir
    )
}

fn unmounted_text(gone: &UnmountListing) -> String {
    if gone.unmounted.is_empty() {
        return "there was nothing to unmount".into();
    }
    let lines: Vec<String> = gone.unmounted.iter().map(unmounted_line).collect();
    lines.join("\n")
}

fn unmounted_line(gone: &UnmountedItem) -> String {
    let what = match (&gone.uncommitted, gone.version) {
        (Some(name), _) => {
            format!("; the quota refused what was written, which is now the checkpoint {name}")
        }
        (None, Some(version)) => format!("; what was written is now v{version}"),
        (None, None) => "; nothing had changed".into(),
    };
    format!("unmounted {} from {}{what}", gone.vault, gone.dir)
}

fn list_text(listing: &MountListing) -> String {
    if listing.mounts.is_empty() {
        return "there are no mounts".into();
    }
    let rows = listing.mounts.iter().map(|mount| {
        let access = match (mount.readonly, mount.autocommit_s) {
            (true, _) => "read-only".into(),
            (false, None) => "read-write".into(),
            (false, Some(every)) => format!("read-write, committed every {every} s"),
        };
        let driver = match mount.driver {
            MountDriverWord::Overlay => "overlay",
            MountDriverWord::Fuse => "fuse",
        };
        let version = format!("v{}", mount.version);
        vec![
            mount.vault.clone(),
            version,
            mount.dir.clone(),
            driver.into(),
            access,
        ]
    });
    table(
        &["VAULT", "VERSION", "DIRECTORY", "DRIVER", "ACCESS"],
        rows.collect(),
    )
    .trim_fmt()
}
