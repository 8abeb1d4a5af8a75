//! A disk that is full at any moment: an error that says so, nothing half-done, nothing lost.
//!
//! The disk is a small tmpfs in a mount namespace of its own, which only root can make.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Write;
use std::path::Path;
use std::process::Command;

use avfs_store::Store;
use avfs_vault::{
    Cause, Entry, Error, GcMode, GcOptions, Kind, Meta, NewVersion, Principal, RootId, Time, Vault,
    Vaults,
};
use serde_json::json;

const DISK: &str = "AVFS_SMALL_DISK";

/// Runs a test of this file again, with a disk of `kib` at the directory it is given.
fn on_small_disk(test: &str, kib: u32) {
    let id = Command::new("id").arg("-u").output().unwrap();
    if id.stdout != b"0\n" {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let script = format!(
        "mount -t tmpfs -o size={kib}k,mode=0700 tmpfs {0} && exec \"$0\" --exact {test} --ignored",
        dir.path().display()
    );
    let mut command = Command::new("unshare");
    command
        .args(["--mount", "--propagation", "private", "sh", "-c", &script])
        .arg(std::env::current_exe().unwrap())
        .env(DISK, dir.path());
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}\n{told}");
    assert!(said.contains("1 passed"), "{said}");
}

/// Takes up room until only about `kib` are left.
fn fill(dir: &Path, kib: usize) {
    let mut ballast = File::create(dir.join("ballast")).unwrap();
    let block = [0; 4096];
    while ballast.write_all(&block).is_ok() {}
    let length = ballast.metadata().unwrap().len();
    ballast
        .set_len(length.saturating_sub(kib as u64 * 1024))
        .unwrap();
}

fn noise(seed: u64, length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length];
    let mut hasher = blake3::Hasher::new();
    let seeded = hasher.update(&seed.to_le_bytes());
    seeded.finalize_xof().fill(&mut bytes);
    bytes
}

fn write(vaults: &Vaults, vault: &Vault, path: &str, bytes: &[u8]) -> Result<RootId, Error> {
    let _lease = vaults.lease();
    let head = vaults.by_id(vault.id)?.head;
    let (content, size) = vaults.trees().write_bytes(bytes)?;
    let mut edit = vaults.trees().edit(head)?;
    let entry = Entry::file(content, size, Meta::new(0o644, Time::EPOCH));
    edit.put(&path.parse().unwrap(), entry)?;
    let root = edit.finish()?;
    let version = NewVersion {
        by: Principal::OWNER,
        exec: None,
        cause: Cause::Write,
        details: json!({}),
    };
    vaults.publish(vault.id, head, root, version)?;
    Ok(root)
}

fn is_full(error: &Error) -> bool {
    matches!(error, Error::Store(error) if error.is_full()) || matches!(error, Error::Swept { .. })
}

fn check(vaults: &Vaults, vault: &Vault, files: &BTreeMap<String, Vec<u8>>) {
    let head = vaults.by_id(vault.id).unwrap().head;
    assert_eq!(
        vaults.trees().root(head).unwrap().files(),
        files.len() as u64
    );
    for (path, bytes) in files {
        let entry = vaults
            .trees()
            .entry(head, &path.parse().unwrap())
            .unwrap()
            .unwrap();
        let Kind::File { content, size, .. } = entry.kind else {
            panic!("{path} is no file")
        };
        assert_eq!(
            &vaults.trees().read(content, 0, size as usize).unwrap(),
            bytes
        );
    }
    let fsck = vaults.fsck();
    assert!(fsck.is_clean(), "{fsck:#?}");
}

#[test]
#[ignore = "needs the small disk that another test makes"]
fn with_so_much_left() {
    let disk = std::env::var_os(DISK).expect("the other test names it");
    let disk = Path::new(&disk);
    let mut vaults = Vaults::open(Store::open(&disk.join("home")).unwrap()).unwrap();
    let vault = vaults
        .create(&"v".parse().unwrap(), &Principal::OWNER)
        .unwrap();
    let (mut files, mut refused) = (BTreeMap::new(), 0);
    for (n, left) in (0..400_usize).step_by(12).enumerate() {
        fill(disk, left);
        let path = format!("/{n}");
        // Of all sizes: within one buffer, in chunks, and above both.
        let bytes = noise(n as u64, [3000, 70_000, 1_500_000][n % 3]);
        match write(&vaults, &vault, &path, &bytes) {
            Ok(_) => drop(files.insert(path, bytes)),
            Err(error) => {
                assert!(is_full(&error), "{left} KiB left: {error}");
                refused += 1;
            }
        }
        // Whatever happened, a little room is enough for a little work.
        fs::remove_file(disk.join("ballast")).unwrap();
        fill(disk, 300);
        write(&vaults, &vault, "/small", &n.to_le_bytes()).unwrap();
        files.insert("/small".into(), n.to_le_bytes().to_vec());
        fs::remove_file(disk.join("ballast")).unwrap();
        check(&vaults, &vault, &files);
        if n % 5 == 4 {
            drop(vaults);
            vaults = Vaults::open(Store::open(&disk.join("home")).unwrap()).unwrap();
            check(&vaults, &vault, &files);
            let options = GcOptions {
                mode: GcMode::Collect,
                grace: std::time::Duration::ZERO,
                roots: Vec::new(),
            };
            vaults.gc(&options, &Principal::OWNER).unwrap();
            check(&vaults, &vault, &files);
        }
    }
    assert!(refused > 5, "{refused} writes were refused");
    assert!(files.len() > 5, "{} were not", files.len());
}

#[test]
fn a_full_disk_is_told_and_loses_nothing() {
    on_small_disk("with_so_much_left", 24 << 10);
}

#[test]
#[ignore = "needs the small disk that another test makes"]
fn with_nothing_but_reading() {
    let disk = std::env::var_os(DISK).expect("the other test names it");
    let home = Path::new(&disk).join("home");
    drop(Vaults::open(Store::open(&home).unwrap()).unwrap());
    let mount = |option: &str| {
        let mut command = Command::new("mount");
        let status = command.args(["-o", option]).arg(&disk).status();
        assert!(status.unwrap().success());
    };
    mount("remount,ro");
    let error = Store::open(&home).map(drop).unwrap_err();
    let text = error.to_string().to_lowercase();
    assert!(
        text.contains("read-only") || text.contains("readonly"),
        "{error}"
    );
    mount("remount,rw");
    let vaults = Vaults::open(Store::open(&home).unwrap()).unwrap();
    let vault = vaults
        .create(&"v".parse().unwrap(), &Principal::OWNER)
        .unwrap();
    write(&vaults, &vault, "/f", b"x").unwrap();
}

#[test]
fn a_read_only_home_is_told() {
    on_small_disk("with_nothing_but_reading", 8 << 10);
}
