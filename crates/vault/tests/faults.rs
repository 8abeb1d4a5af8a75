//! A disk that fails at every step: after it the state is the old or the new, damage is named, and the store goes
//! on by itself once the disk is well.
//!
//! Each round is a process of its own, under a library that lets one call of it fail (`avfs_testkit::FaultyDisk`).
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Output};

use avfs_store::Store;
use avfs_testkit::{Calls, Fault, FaultyDisk};
use avfs_vault::{
    Cause, CheckpointOrigin, Entry, Error, GcMode, GcOptions, Kind, Meta, NewVersion, Principal,
    Time, Vault, Vaults,
};
use serde_json::json;

const HOME: &str = "AVFS_FAULTS_HOME";
/// How many places of each kind are tried; `AVFS_FAULTS=all cargo test -p avfs-vault --test faults` tries every one.
const PLACES: u64 = 9;

/// Path → the step that wrote it.
type Files = BTreeMap<String, u64>;

#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Step {
    Write,
    Checkpoint,
    Restore,
    Collect,
    Reopen,
}

const STEPS: &[Step] = &[
    Step::Write,
    Step::Write,
    Step::Checkpoint,
    Step::Write,
    Step::Reopen,
    Step::Write,
    Step::Restore,
    Step::Write,
    Step::Collect,
    Step::Write,
    Step::Collect,
    Step::Write,
];

/// What the vault holds after a step, given what it held before and at the checkpoint.
fn after(step: usize, files: &mut Files, saved: &mut Files) {
    match STEPS[step] {
        Step::Write => drop(files.insert(format!("/{}", step % 4), step as u64)),
        Step::Checkpoint => *saved = files.clone(),
        Step::Restore => *files = saved.clone(),
        Step::Collect | Step::Reopen => {}
    }
}

fn content(step: u64) -> Vec<u8> {
    let mut bytes = vec![0; [300, 70_000, 1_300_000][step as usize % 3]];
    let mut hasher = blake3::Hasher::new();
    let seeded = hasher.update(&step.to_le_bytes());
    seeded.finalize_xof().fill(&mut bytes);
    bytes
}

fn open(home: &Path) -> Result<(Vaults, Vault), Error> {
    let vaults = Vaults::open(Store::open(home)?)?;
    let name = "v".parse()?;
    let vault = match vaults.get(&name) {
        Ok(vault) => vault,
        Err(_) => vaults.create(&name, &Principal::OWNER)?,
    };
    Ok((vaults, vault))
}

fn take(step: usize, vaults: &Vaults, vault: &Vault) -> Result<(), Error> {
    let by = Principal::OWNER;
    let version = |cause| NewVersion {
        by,
        exec: None,
        cause,
        details: json!({}),
    };
    let head = vaults.by_id(vault.id)?.head;
    match STEPS[step] {
        Step::Write => {
            let _lease = vaults.lease();
            let (content, size) = vaults.trees().write_bytes(&content(step as u64))?;
            let mut edit = vaults.trees().edit(head)?;
            let entry = Entry::file(content, size, Meta::new(0o644, Time::EPOCH));
            edit.put(&format!("/{}", step % 4).parse()?, entry)?;
            let root = edit.finish()?;
            vaults.publish(vault.id, head, root, version(Cause::Write))?;
        }
        Step::Checkpoint => {
            let name = "saved".parse()?;
            let asked = CheckpointOrigin::Asked;
            vaults.save_checkpoint(vault.id, Some(&name), head, asked, &by)?;
        }
        Step::Restore => drop(vaults.restore(vault.id, head, &"saved".parse()?, &by)?),
        Step::Collect => {
            let options = GcOptions {
                mode: GcMode::Collect,
                grace: std::time::Duration::ZERO,
                roots: Vec::new(),
            };
            vaults.gc(&options, &by)?;
        }
        Step::Reopen => {}
    }
    Ok(())
}

#[test]
#[ignore = "the process that meets the fault"]
fn under_the_fault() {
    let home = std::env::var_os(HOME).expect("the other test names it");
    let mut opened = None;
    for (step, kind) in STEPS.iter().enumerate() {
        // A disk that was bad for a moment is tried again, as a person would.
        for _ in 0..12 {
            if *kind == Step::Reopen {
                opened = None;
            }
            println!("begin {step}");
            let done = match &opened {
                Some((vaults, vault)) => take(step, vaults, vault),
                None => match open(home.as_ref()) {
                    Ok(fresh) => {
                        let (vaults, vault) = opened.insert(fresh);
                        take(step, vaults, vault)
                    }
                    Err(error) => Err(error),
                },
            };
            match done {
                Ok(()) => {
                    println!("done {step}");
                    break;
                }
                Err(error) => println!("refused {step} {error}"),
            }
        }
    }
    println!("all tried");
}

/// Runs the child with one fault; gives what it said.
fn run(disk: &FaultyDisk, place: &Path, at: (Calls, u64, Fault)) -> (Output, u64) {
    let mut child = Command::new(std::env::current_exe().unwrap());
    let words = ["--exact", "under_the_fault", "--ignored", "--nocapture"];
    child.args(words).env(HOME, place.join("home"));
    let count = place.join("count");
    disk.under(&mut child, &place.join("home"), at, &count);
    let output = child.output().unwrap();
    let count = std::fs::read_to_string(count).unwrap_or_default();
    (output, count.parse().unwrap_or(0))
}

/// The states that the vault may be in after what the child said.
fn possible(said: &str) -> Vec<Files> {
    let (mut files, mut saved) = (Files::new(), Files::new());
    let mut open_step = None;
    for line in said.lines() {
        let mut words = line.split(' ');
        let word = words.next();
        let Some(Ok(step)) = words.next().map(str::parse::<usize>) else {
            continue;
        };
        match word {
            Some("begin") => open_step = Some(step),
            Some("done") => {
                after(step, &mut files, &mut saved);
                open_step = None;
            }
            Some("refused") => open_step = None,
            _ => {}
        }
    }
    let old = files.clone();
    match open_step {
        Some(step) => {
            after(step, &mut files, &mut saved);
            vec![old, files]
        }
        None => vec![old],
    }
}

/// What the vault holds, every byte of it checked; an error where it cannot be read.
fn held(vaults: &Vaults, vault: &Vault) -> Result<Files, Error> {
    let head = vaults.by_id(vault.id)?.head;
    let mut files = Files::new();
    for number in 0..4 {
        let path = format!("/{number}");
        let Some(entry) = vaults.trees().entry(head, &path.parse()?)? else {
            continue;
        };
        let Kind::File {
            content: id, size, ..
        } = entry.kind
        else {
            panic!("{path} is no file")
        };
        let bytes = vaults.trees().read(id, 0, size as usize)?;
        let step = (0..STEPS.len() as u64).find(|step| content(*step) == bytes);
        let step = step.unwrap_or_else(|| panic!("{path} has bytes that nobody wrote"));
        files.insert(path, step);
    }
    Ok(files)
}

fn try_fault(disk: &FaultyDisk, at: (Calls, u64, Fault)) {
    let place = tempfile::tempdir().unwrap();
    let (output, _) = run(disk, place.path(), at);
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let ends = matches!(at.2, Fault::Torn | Fault::End);
    let context = format!("{at:?}: {said}{}", String::from_utf8_lossy(&output.stderr));
    let last = format!("done {}", STEPS.len() - 1);
    if !ends && at.2 != Fault::Dropped {
        assert!(
            said.contains("all tried") && said.contains(&last),
            "{context}"
        );
    }
    let opened = open(&place.path().join("home"));
    let states = possible(&said);
    if at.2 == Fault::Dropped {
        // The disk has lied. What is found is right, or named as damage; it may be older than was promised.
        if let Ok((vaults, vault)) = opened {
            let found = held(&vaults, &vault);
            assert!(found.is_ok() || !vaults.fsck().is_clean(), "{context}");
        }
        return;
    }
    let (vaults, vault) = opened.unwrap_or_else(|error| panic!("{error}: {context}"));
    let found = held(&vaults, &vault).unwrap_or_else(|error| panic!("{error}: {context}"));
    assert!(
        states.contains(&found),
        "{found:?} in {states:?}: {context}"
    );
    let fsck = vaults.fsck();
    assert!(fsck.is_clean(), "{fsck:#?}: {context}");
    // And it goes on.
    take(STEPS.len() - 1, &vaults, &vault).unwrap();
}

#[test]
fn a_disk_that_fails_at_any_step_loses_nothing_acknowledged() {
    let library = tempfile::tempdir().unwrap();
    let disk = FaultyDisk::compile(library.path());
    let kinds = [
        (Calls::Writes, Fault::Eio),
        (Calls::Writes, Fault::Enospc),
        (Calls::Writes, Fault::Edquot),
        (Calls::Writes, Fault::Short),
        (Calls::Writes, Fault::Torn),
        (Calls::Writes, Fault::Dropped),
        (Calls::Syncs, Fault::Eio),
        (Calls::All, Fault::End),
    ];
    for (calls, fault) in kinds {
        let place = tempfile::tempdir().unwrap();
        let (output, count) = run(&disk, place.path(), (calls, 0, fault));
        assert!(output.status.success(), "{output:?}");
        assert!(count > 10, "{calls:?}: {count}");
        let stride = match std::env::var("AVFS_FAULTS").as_deref() {
            Ok("all") => 1,
            _ => count.div_ceil(PLACES),
        };
        let first = 1 + fault as u64 % stride;
        for number in (first..=count).step_by(stride as usize) {
            try_fault(&disk, (calls, number, fault));
        }
    }
}
