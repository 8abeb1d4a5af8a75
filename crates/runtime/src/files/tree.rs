//! A directory with all that is in it.

use avfs_vault::{Entry, Step, VaultPath};

use crate::bounds::LISTED_MAX;
use crate::files::Listed;
use crate::files::scratch::Scratch;
use crate::gate::Verb;
use crate::runtime::Select;
use crate::session::Session;
use crate::{Error, Result};

/// One name of a tree, a directory before what is in it.
#[derive(Debug, Clone)]
pub struct TreeNode {
    /// 0 for the path that was asked about.
    pub depth: usize,
    pub name: Vec<u8>,
    pub entry: Entry,
}

#[derive(Debug, Clone)]
pub struct TreeListed {
    pub path: VaultPath,
    pub nodes: Vec<TreeNode>,
    /// Whether there are more than [`LISTED_MAX`].
    pub truncated: bool,
    pub version: u64,
}

impl Session {
    /// What is at `path` and beneath it, `levels` deep or all of it, up to [`LISTED_MAX`] names.
    pub fn tree(
        &self,
        vault: Select,
        path: &VaultPath,
        levels: Option<usize>,
    ) -> Result<TreeListed> {
        let vault = self.vault(&vault, Verb::Read)?;
        let levels = levels.unwrap_or(usize::MAX);
        let mut nodes = Vec::new();
        if let Some(scratch) = self.scratch(&vault, path)? {
            let top = TreeNode {
                depth: 0,
                name: path.file_name().unwrap_or_default().to_vec(),
                entry: scratch.stat(path)?,
            };
            list_scratch(&scratch, path, top, levels, &mut nodes)?;
            let truncated = nodes.len() > LISTED_MAX;
            nodes.truncate(LISTED_MAX);
            return Ok(TreeListed {
                path: path.clone(),
                nodes,
                truncated,
                version: vault.version,
            });
        }
        self.inner.host.check_own(path)?;
        let vault = self.up_to_date(&vault)?;
        let trees = self.inner.vaults.trees();
        let (path, _) = trees.resolve(vault.head, path)?;
        let mut truncated = false;
        trees.walk::<Error>(vault.head, &path, &mut |visit| {
            if nodes.len() == LISTED_MAX {
                truncated = true;
                return Ok(Step::Past);
            }
            nodes.push(TreeNode {
                depth: visit.depth,
                name: visit.path.file_name().unwrap_or(b"/").to_vec(),
                entry: visit.entry.clone(),
            });
            Ok(if visit.depth < levels {
                Step::Into
            } else {
                Step::Past
            })
        })?;
        Ok(TreeListed {
            path,
            nodes,
            truncated,
            version: vault.version,
        })
    }
}

/// Stops at the first node that is one too many.
pub(super) fn list_scratch(
    scratch: &Scratch,
    path: &VaultPath,
    top: TreeNode,
    levels: usize,
    nodes: &mut Vec<TreeNode>,
) -> Result<()> {
    let mut next = Some((path.clone(), top));
    // What is left of each directory above. Not recursion: trees may be deeper than a stack.
    let mut above: Vec<(VaultPath, std::vec::IntoIter<Listed>)> = Vec::new();
    loop {
        if let Some((path, node)) = next.take() {
            let is_entered = node.entry.is_dir() && node.depth < levels;
            if is_entered {
                let below = scratch.list(&path, None, LISTED_MAX)?;
                above.push((path, below.into_iter()));
            }
            nodes.push(node);
            if nodes.len() > LISTED_MAX {
                return Ok(());
            }
        }
        let depth = above.len();
        let Some((path, left)) = above.last_mut() else {
            return Ok(());
        };
        match left.next() {
            Some(Listed { name, entry }) => {
                next = Some((path.join(&name)?, TreeNode { depth, name, entry }));
            }
            None => drop(above.pop()),
        }
    }
}
