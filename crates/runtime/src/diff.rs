//! What is different between two states, as names or as a patch.

use std::str::FromStr;

use avfs_vault::{
    Change, ChangeKind, CheckpointName, Entry, Kind, RootId, Vault, VaultName, pair_renames,
};
use imara_diff::{
    Algorithm, BasicLineDiffPrinter, Diff as LineDiff, InternedInput, UnifiedDiffConfig,
};

use crate::runtime::{Runtime, Select};
use crate::{Error, Result};

/// Larger files are named in a patch, not shown.
const PATCH_BYTES_MAX: u64 = 1 << 20;

/// A state to compare.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DiffPoint {
    Head,
    /// What the vault was forked from, or its creation.
    Base,
    Checkpoint(CheckpointName),
    Version(u64),
    /// The head of another vault.
    Vault(VaultName),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DiffDetail {
    Names,
    Patch,
}

#[derive(Debug)]
pub struct Diff {
    pub from: String,
    pub to: String,
    pub changes: Vec<Change>,
    pub patch: Option<String>,
}

impl FromStr for DiffPoint {
    type Err = Error;

    /// `HEAD`, `BASE`, `v3` or `@3`, `vault:NAME`, or the name of a checkpoint.
    fn from_str(text: &str) -> Result<DiffPoint> {
        let number = |digits: &str| digits.parse().ok().map(DiffPoint::Version);
        Ok(match text {
            "HEAD" => DiffPoint::Head,
            "BASE" => DiffPoint::Base,
            _ => {
                if let Some(name) = text.strip_prefix("vault:") {
                    return Ok(DiffPoint::Vault(name.parse()?));
                }
                let digits = text.strip_prefix('@').or_else(|| text.strip_prefix('v'));
                match digits.and_then(number) {
                    Some(version) => version,
                    None => DiffPoint::Checkpoint(text.parse()?),
                }
            }
        })
    }
}

impl std::fmt::Display for DiffPoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            DiffPoint::Head => f.write_str("HEAD"),
            DiffPoint::Base => f.write_str("BASE"),
            DiffPoint::Checkpoint(name) => name.fmt(f),
            DiffPoint::Version(number) => write!(f, "v{number}"),
            DiffPoint::Vault(name) => write!(f, "vault:{name}"),
        }
    }
}

impl Runtime {
    /// The differences between two states of (or beside) a vault.
    pub fn diff(
        &self,
        vault: Select,
        from: &DiffPoint,
        to: &DiffPoint,
        detail: DiffDetail,
    ) -> Result<Diff> {
        let vault = self.vault(&vault)?;
        let before = self.point(&vault, from)?;
        let after = self.point(&vault, to)?;
        let changes = self.inner.vaults.trees().diff(before, after)?.into_iter();
        let changes = changes
            .filter(|change| change.kind != ChangeKind::Times)
            .collect();
        let changes = pair_renames(changes);
        let patch = match detail {
            DiffDetail::Names => None,
            DiffDetail::Patch => Some(self.patch(&changes)?),
        };
        Ok(Diff {
            from: from.to_string(),
            to: to.to_string(),
            changes,
            patch,
        })
    }

    fn point(&self, vault: &Vault, point: &DiffPoint) -> Result<RootId> {
        let vaults = &self.inner.vaults;
        Ok(match point {
            DiffPoint::Head => vault.head,
            DiffPoint::Base => match &vault.parent {
                Some(parent) => parent.root,
                None => vaults.trees().empty_root()?,
            },
            DiffPoint::Checkpoint(name) => vaults.checkpoint(vault.id, name)?.root,
            DiffPoint::Version(number) => vaults.version(vault.id, *number)?.root,
            DiffPoint::Vault(name) => vaults.get(name)?.head,
        })
    }

    /// A unified patch of all text files that differ; the rest is named.
    fn patch(&self, changes: &[Change]) -> Result<String> {
        let mut patch = String::new();
        for change in changes {
            let before = change.before.as_ref();
            let after = change.after.as_ref();
            if before.is_some_and(Entry::is_dir) || after.is_some_and(Entry::is_dir) {
                continue;
            }
            let old_path = match &change.kind {
                ChangeKind::Renamed { from } => from,
                _ => &change.path,
            };
            patch += &format!("diff --avfs a{old_path} b{}\n", change.path);
            if let (Some(before), Some(after)) = (before, after)
                && before.meta.mode != after.meta.mode
            {
                patch += &format!(
                    "old mode {:o}\nnew mode {:o}\n",
                    before.meta.mode, after.meta.mode
                );
            }
            match (self.text(before)?, self.text(after)?) {
                (Some(old), Some(new)) if old != new => {
                    let old_name = before.map_or("/dev/null".into(), |_| format!("a{old_path}"));
                    let new_name =
                        after.map_or("/dev/null".into(), |_| format!("b{}", change.path));
                    patch += &format!("--- {old_name}\n+++ {new_name}\n");
                    patch += &unified(&old, &new);
                }
                (Some(_), Some(_)) => {}
                _ => patch += "Binary or large files differ\n",
            }
        }
        Ok(patch)
    }

    /// The text to compare: nothing for an absent file, `None` for what cannot be shown.
    fn text(&self, entry: Option<&Entry>) -> Result<Option<String>> {
        Ok(match entry.map(|entry| &entry.kind) {
            None => Some(String::new()),
            Some(Kind::Symlink { target }) => Some(String::from_utf8_lossy(target).into_owned()),
            Some(Kind::File { content, size, .. }) if *size <= PATCH_BYTES_MAX => {
                let bytes = self
                    .inner
                    .vaults
                    .trees()
                    .read(*content, 0, *size as usize)?;
                String::from_utf8(bytes)
                    .ok()
                    .filter(|text| !text.contains('\0'))
            }
            Some(_) => None,
        })
    }
}

fn unified(old: &str, new: &str) -> String {
    let input = InternedInput::new(old, new);
    let mut diff = LineDiff::compute(Algorithm::Histogram, &input);
    diff.postprocess_lines(&input);
    let printer = BasicLineDiffPrinter(&input.interner);
    diff.unified_diff(&printer, UnifiedDiffConfig::default(), &input)
        .to_string()
}
