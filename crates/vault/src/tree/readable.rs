//! Directories and files of which some may be damaged.

use super::node::Node;
use crate::{Content, Entry, Result, TreeId, Trees};

/// A directory of which some may be damaged.
#[derive(Debug, Default)]
pub struct Readable {
    /// Sorted by the bytes of the name.
    pub entries: Vec<(Vec<u8>, Entry)>,
    /// What is wrong with each part of it that cannot be read.
    pub problems: Vec<String>,
}

impl Trees {
    /// What can be read of a directory.
    pub fn list_readable(&self, tree: TreeId) -> Result<Readable> {
        let (mut entries, mut problems) = (Vec::new(), Vec::new());
        let mut ahead = vec![tree];
        while let Some(tree) = ahead.pop() {
            match self.node(tree) {
                Ok(node) => match &*node {
                    Node::Leaf(items) => {
                        let items = items.iter();
                        entries.extend(items.map(|item| (item.name.clone(), item.entry.clone())));
                    }
                    Node::Branch { children, .. } => {
                        ahead.extend(children.iter().map(|child| TreeId::new(child.id)));
                    }
                },
                Err(error) if error.is_damage() => problems.push(error.to_string()),
                Err(error) => return Err(error),
            }
        }
        entries.sort_by(|a, b| a.0.cmp(&b.0));
        Ok(Readable { entries, problems })
    }

    /// Reads a file to its end, for whoever has to know beforehand whether it can be.
    pub fn check_content(&self, content: Content, size: u64) -> Result<()> {
        self.pieces(content, size)
            .try_for_each(|piece| piece.map(drop))
    }
}
