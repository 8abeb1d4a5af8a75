//! What the tests of vaults have in common.

use std::time::Duration;

use avfs_store::Store;
use avfs_vault::{
    Cause, Checkpoint, CheckpointOrigin, Entry, GcMode, GcOptions, Kind, Meta, NewVersion,
    Principal, Result, RootId, Time, Vault, VaultName, Vaults, Version,
};
use serde_json::json;

pub const OWNER: &Principal = &Principal::OWNER;

pub fn open() -> (tempfile::TempDir, Vaults) {
    let home = tempfile::tempdir().unwrap();
    let vaults = Vaults::open(Store::open(home.path()).unwrap()).unwrap();
    (home, vaults)
}

pub fn name(text: &str) -> VaultName {
    text.parse().unwrap()
}

/// Bytes that do not compress, different for each seed.
pub fn noise(seed: u64, length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length];
    let mut hasher = blake3::Hasher::new();
    let seeded = hasher.update(&seed.to_le_bytes());
    seeded.finalize_xof().fill(&mut bytes);
    bytes
}

pub fn head(vaults: &Vaults, vault: &Vault) -> RootId {
    vaults.by_id(vault.id).unwrap().head
}

/// `base` with a file in it.
pub fn edit_file(vaults: &Vaults, base: RootId, path: &str, bytes: &[u8]) -> RootId {
    let (content, size) = vaults.trees().write_bytes(bytes).unwrap();
    let mut edit = vaults.trees().edit(base).unwrap();
    let entry = Entry::file(content, size, Meta::new(0o644, Time::EPOCH));
    edit.put(&path.parse().unwrap(), entry).unwrap();
    edit.finish().unwrap()
}

pub fn publish(vaults: &Vaults, vault: &Vault, root: RootId) -> Result<Version> {
    let version = NewVersion {
        by: Principal::OWNER,
        exec: None,
        cause: Cause::Write,
        details: json!({}),
    };
    vaults.publish(vault.id, head(vaults, vault), root, version)
}

/// Writes a file and publishes it.
pub fn add_file(vaults: &Vaults, vault: &Vault, path: &str, bytes: &[u8]) -> RootId {
    let _lease = vaults.lease();
    let root = edit_file(vaults, head(vaults, vault), path, bytes);
    publish(vaults, vault, root).unwrap();
    root
}

pub fn checkpoint(vaults: &Vaults, vault: &Vault, label: &str) -> Checkpoint {
    let label = label.parse().unwrap();
    let asked = CheckpointOrigin::Asked;
    let root = head(vaults, vault);
    vaults
        .save_checkpoint(vault.id, Some(&label), root, asked, OWNER)
        .unwrap()
}

/// The bytes of a file.
pub fn read(vaults: &Vaults, root: RootId, path: &str) -> Vec<u8> {
    let entry = vaults
        .trees()
        .entry(root, &path.parse().unwrap())
        .unwrap()
        .unwrap();
    let Kind::File { content, size, .. } = entry.kind else {
        panic!("{path} is no file")
    };
    vaults.trees().read(content, 0, size as usize).unwrap()
}

/// Options of a gc that removes all it can.
pub fn collect() -> GcOptions {
    GcOptions {
        mode: GcMode::Collect,
        grace: Duration::ZERO,
        roots: Vec::new(),
    }
}
