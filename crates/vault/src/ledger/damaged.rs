//! Which states are damaged, for whoever lists them: damage stays with the vault that it is in.

use std::collections::HashMap;

use super::sightings::{all_states, damages, sight};
use crate::tree::check::{Check, Contents, Problems};
use crate::tree::reach::Reach;
use crate::{Damage, Result, RootId, Vaults};

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
        let mut sightings = sight(&mut check, &states);
        // What is wrong with the content of files hides nothing.
        sightings.retain(|(object, _, _), _| unreadable.contains_key(object));
        Ok(damages(unreadable.clone(), sightings))
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
