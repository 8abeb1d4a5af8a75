//! Which states are damaged, for whoever lists them: damage stays with the vault that it is in.

use std::collections::HashMap;

use crate::check::{Check, Contents, Problems, all_states, damages};
use crate::node::Node;
use crate::reach::Reach;
use crate::{Content, Damage, Entry, Result, RootId, TreeId, Trees, Vaults};

impl Vaults {
    /// Those of `roots` that are damaged, and what is wrong with them. As long as no object is known to be damaged, only
    /// the roots themselves are read.
    pub fn damaged(
        &self,
        roots: impl IntoIterator<Item = RootId>,
    ) -> Result<HashMap<RootId, String>> {
        let mut found = HashMap::new();
        let mut check = Check::new(self.trees(), Contents::NotKnownDamaged, Problems::new());
        for root in roots {
            match self.trees().root(root) {
                Err(error) if error.is_damage() => {
                    found.insert(root, error.to_string());
                }
                Err(error) => return Err(error),
                Ok(_) if self.store().any_damage() && check.root(root) => {
                    found.insert(root, in_words(&check, root));
                }
                Ok(_) => {}
            }
        }
        Ok(found)
    }

    /// What could not be read on the way through all states, and where that matters.
    pub(crate) fn unreadable(&self, reach: &Reach) -> Result<Vec<Damage>> {
        let unreadable = reach.unreadable();
        if unreadable.is_empty() {
            return Ok(Vec::new());
        }
        let states = self.store().read(all_states)?;
        let mut check = Check::new(self.trees(), Contents::NotKnownDamaged, unreadable.clone());
        let mut sightings = check.sight(&states);
        // What is wrong with the content of files hides nothing.
        sightings.retain(|(object, _, _), _| unreadable.contains_key(object));
        Ok(damages(unreadable.clone(), sightings))
    }
}

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

fn in_words(check: &Check<'_>, root: RootId) -> String {
    let places = check.paths(root);
    let Some((object, path)) = places.first() else {
        return "something in it cannot be read".to_owned();
    };
    let problem = check.problems.get(object).map_or("", String::as_str);
    match places.len() - 1 {
        0 => format!("{path}: {problem}"),
        more => format!("{path}: {problem}, and {more} more"),
    }
}
