//! The record of a layer, beside its upper directory, where commands cannot reach it.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use avfs_vault::RootId;

use crate::view_ops::random_name;

/// The use, three roots and the boot id.
pub(super) const RECORD_BYTES: usize = 1 + 3 * ROOT_BYTES + 36;
/// A root in hexadecimal.
const ROOT_BYTES: usize = 64;

/// Who writes to a layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LayerUse {
    /// Commands of a sandbox, whose user owns the files.
    Sandbox,
    /// Programs of the host, through a mount: the files keep their owners.
    Host,
}

impl LayerUse {
    fn code(self) -> u8 {
        match self {
            LayerUse::Sandbox => 1,
            LayerUse::Host => 2,
        }
    }

    fn of_code(code: u8) -> Option<LayerUse> {
        [LayerUse::Sandbox, LayerUse::Host]
            .into_iter()
            .find(|used| used.code() == code)
    }
}

/// The base of a layer, and how far it was committed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LayerRecord {
    /// The root below the layer while it is mounted.
    pub base: RootId,
    /// The root that the last commit published (or `base`).
    pub last_commit: RootId,
    /// The root that a commit was about to publish; equal to `last_commit` between commits.
    pub pending: RootId,
    /// The boot id at its making: after another boot, unsynced files may be missing.
    pub boot: String,
    pub used_by: LayerUse,
}

impl LayerRecord {
    pub(super) fn encode(&self) -> [u8; RECORD_BYTES] {
        let mut bytes = [0; RECORD_BYTES];
        bytes[0] = self.used_by.code();
        for (index, root) in [self.base, self.last_commit, self.pending]
            .iter()
            .enumerate()
        {
            let text = root.to_string();
            bytes[1 + index * ROOT_BYTES..][..ROOT_BYTES].copy_from_slice(text.as_bytes());
        }
        let boot = self.boot.as_bytes();
        let length = boot.len().min(36);
        bytes[1 + 3 * ROOT_BYTES..][..length].copy_from_slice(&boot[..length]);
        bytes
    }

    pub(super) fn decode(bytes: &[u8; RECORD_BYTES]) -> Option<LayerRecord> {
        let used_by = LayerUse::of_code(bytes[0])?;
        let root = |index: usize| -> Option<RootId> {
            std::str::from_utf8(&bytes[1 + index * ROOT_BYTES..][..ROOT_BYTES])
                .ok()?
                .parse()
                .ok()
        };
        let boot = std::str::from_utf8(&bytes[1 + 3 * ROOT_BYTES..]).ok()?;
        Some(LayerRecord {
            base: root(0)?,
            last_commit: root(1)?,
            pending: root(2)?,
            boot: boot.trim_end_matches('\0').to_owned(),
            used_by,
        })
    }
}

/// A secret name for the daemon's own work in a layer. It follows the record; layers of earlier versions have none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Token(pub String);

/// The token in hexadecimal.
const TOKEN_BYTES: usize = 32;

impl Token {
    pub fn new() -> io::Result<Token> {
        random_name().map(Token)
    }

    pub fn write(&self, record: &File) -> io::Result<()> {
        record.write_all_at(self.0.as_bytes(), RECORD_BYTES as u64)
    }

    pub fn read(record: &File) -> io::Result<Option<Token>> {
        let mut bytes = [0; TOKEN_BYTES];
        match record.read_exact_at(&mut bytes, RECORD_BYTES as u64) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
            read => read?,
        }
        let is_token = bytes.iter().all(u8::is_ascii_hexdigit);
        let text = String::from_utf8(bytes.to_vec()).ok();
        Ok(text.filter(|_| is_token).map(Token))
    }
}
