//! Values at rest: sealed with a key that is among the user's configuration, outside of the home.

use std::fs::{self, DirBuilder, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use base64ct::{Base64, Encoding};
use chacha20poly1305::aead::{Aead, Payload};
use chacha20poly1305::{KeyInit, XChaCha20Poly1305, XNonce};
use rustix::fs::OFlags;
use rustix::rand::{GetRandomFlags, getrandom};
use zeroize::Zeroizing;

use super::model::{Secret, SecretValue};
use crate::error::SecretError;
use crate::{Error, Result};

const KEY: usize = 32;
const NONCE: usize = 24;

/// A key, which does not stay in memory.
pub(super) struct Key(Zeroizing<[u8; KEY]>);

/// Where the key is, once a secret was set.
#[derive(Debug)]
pub(super) struct KeyFile(Option<PathBuf>);

impl KeyFile {
    /// A place within the home is none: whoever copies the home would have the key.
    pub(super) fn new(file: Option<PathBuf>, home: &Path) -> KeyFile {
        KeyFile(file.filter(|file| !file.starts_with(home)))
    }

    fn path(&self) -> Result<&Path> {
        let path = self.0.as_deref();
        Ok(path.ok_or(SecretError::NoPlace)?)
    }

    pub(super) fn read(&self) -> Result<Key> {
        let path = self.path()?;
        match read(path) {
            Ok(Ok(key)) => Ok(key),
            Ok(Err(why)) => Err(unfit(path, why)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                Err(unfit(path, "it is not there"))
            }
            Err(error) => Err(Error::io(format!("reading {}", path.display()))(error)),
        }
    }

    /// Makes the key if there is none. Of several that are made at once, by the daemons of several homes, the first stays.
    pub(super) fn read_or_make(&self) -> Result<Key> {
        let path = self.path()?;
        if !path.try_exists().unwrap_or(true) {
            make(path).map_err(Error::io(format!("writing {}", path.display())))?;
        }
        self.read()
    }
}

fn unfit(path: &Path, why: &'static str) -> Error {
    let path = path.to_owned();
    SecretError::Key { path, why }.into()
}

fn make(path: &Path) -> io::Result<()> {
    let directory = path.parent().unwrap_or(Path::new("/"));
    let mut maker = DirBuilder::new();
    maker.recursive(true).mode(0o700).create(directory)?;
    let mut key = Zeroizing::new([0; KEY]);
    fill(&mut *key)?;
    let new = path.with_extension(format!("new-{}", std::process::id()));
    // One that is there was left by a daemon of this number that is gone.
    let _ = fs::remove_file(&new);
    let mut options = File::options();
    let mut file = options
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&new)?;
    let linked = file
        .write_all(&*key)
        .and_then(|()| file.sync_all())
        .and_then(|()| fs::hard_link(&new, path));
    let _ = fs::remove_file(&new);
    match linked {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        linked => linked.and_then(|()| File::open(directory)?.sync_all()),
    }
}

/// The key, or why the file is not to be believed.
fn read(path: &Path) -> io::Result<Result<Key, &'static str>> {
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
    let mut file = match File::options().read(true).custom_flags(flags).open(path) {
        Err(error) if error.raw_os_error() == Some(libc::ELOOP) => {
            return Ok(Err("it is a symbolic link"));
        }
        opened => opened?,
    };
    let meta = file.metadata()?;
    if meta.uid() != rustix::process::geteuid().as_raw() {
        return Ok(Err("it belongs to another user"));
    }
    if meta.mode() & 0o077 != 0 {
        return Ok(Err(
            "others may use it; `chmod 600` mends that, if nobody has read it",
        ));
    }
    if !meta.is_file() || meta.len() != KEY as u64 {
        return Ok(Err("it is no key"));
    }
    let mut key = Zeroizing::new([0; KEY]);
    file.read_exact(&mut *key)?;
    Ok(Ok(Key(key)))
}

fn fill(mut bytes: &mut [u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        let count = getrandom(&mut *bytes, GetRandomFlags::empty())?;
        bytes = &mut bytes[count..];
    }
    Ok(())
}

impl Key {
    fn cipher(&self) -> XChaCha20Poly1305 {
        XChaCha20Poly1305::new(&(*self.0).into())
    }

    /// A value as it is stored. It can be opened only together with all that `secret` says.
    pub(super) fn seal(&self, secret: &Secret, value: &SecretValue) -> Result<String> {
        let mut nonce = [0; NONCE];
        fill(&mut nonce).map_err(Error::io("drawing a random number"))?;
        let about = about(secret)?;
        let payload = Payload {
            msg: value.as_str().as_bytes(),
            aad: &about,
        };
        let sealed = self.cipher().encrypt(&XNonce::from(nonce), payload);
        let sealed = sealed.map_err(|_| unsealed(secret))?;
        Ok(Base64::encode_string(&[&nonce[..], &sealed].concat()))
    }

    pub(super) fn open(&self, secret: &Secret, sealed: &str) -> Result<SecretValue> {
        let wrong = || unsealed(secret);
        let sealed = Base64::decode_vec(sealed).map_err(|_| wrong())?;
        let (nonce, sealed) = sealed.split_first_chunk::<NONCE>().ok_or_else(wrong)?;
        let about = about(secret)?;
        let payload = Payload {
            msg: sealed,
            aad: &about,
        };
        let opened = self.cipher().decrypt(&XNonce::from(*nonce), payload);
        let opened = opened.map_err(|_| wrong())?;
        let text = String::from_utf8(opened).map_err(|_| wrong())?;
        SecretValue::new(Zeroizing::new(text))
    }
}

fn about(secret: &Secret) -> Result<Vec<u8>> {
    serde_json::to_vec(secret).map_err(|_| unsealed(secret))
}

fn unsealed(secret: &Secret) -> Error {
    let name = secret.name.to_string();
    SecretError::Sealed { name }.into()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::super::model::SecretForm;
    use super::*;

    fn secret() -> Secret {
        Secret {
            name: "TOKEN".parse().unwrap(),
            hosts: "a.test".parse().unwrap(),
            form: SecretForm::new(None, None).unwrap(),
            plain_http: false,
            vaults: Vec::new(),
            set_at: 7,
        }
    }

    fn key_file() -> (tempfile::TempDir, PathBuf, KeyFile) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("deep/er/key");
        let file = KeyFile::new(Some(path.clone()), Path::new("/home/of/avfs"));
        (directory, path, file)
    }

    #[test]
    fn a_value_opens_with_its_key_and_its_purpose_alone() {
        let (_directory, _, file) = key_file();
        let key = file.read_or_make().unwrap();
        let value = SecretValue::new(Zeroizing::new("canary-1234".into())).unwrap();
        let sealed = key.seal(&secret(), &value).unwrap();
        assert!(!sealed.contains("canary"));
        assert_ne!(sealed, key.seal(&secret(), &value).unwrap());
        let again = file.read_or_make().unwrap();
        assert_eq!(
            again.open(&secret(), &sealed).unwrap().as_str(),
            "canary-1234"
        );
        let elsewhere = Secret {
            hosts: "evil.test".parse().unwrap(),
            ..secret()
        };
        assert!(key.open(&elsewhere, &sealed).is_err());
        let (_other, _, other) = key_file();
        assert!(
            other
                .read_or_make()
                .unwrap()
                .open(&secret(), &sealed)
                .is_err()
        );
        for wrong in ["", "?", "AAAA"] {
            assert!(key.open(&secret(), wrong).is_err());
        }
    }

    #[test]
    fn a_key_that_others_could_have_is_refused() {
        let (directory, path, file) = key_file();
        assert!(file.read().is_err(), "there is none");
        file.read_or_make().unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&path), 0o600);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        assert!(file.read().is_err());
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        assert!(file.read().is_ok());
        let moved = directory.path().join("moved");
        fs::rename(&path, &moved).unwrap();
        std::os::unix::fs::symlink(&moved, &path).unwrap();
        assert!(file.read().is_err());
        assert!(file.read_or_make().is_err());
        fs::remove_file(&path).unwrap();
        fs::write(&path, "short").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        assert!(file.read_or_make().is_err());
    }

    #[test]
    fn a_key_within_the_home_is_none() {
        let within = KeyFile::new(
            Some("/home/of/avfs/config/key".into()),
            Path::new("/home/of/avfs"),
        );
        assert!(within.read_or_make().is_err());
    }
}
