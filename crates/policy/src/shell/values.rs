//! The values that variables may have, and which variables are read in loops and functions.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

/// The values that each variable may have at this point of the text.
#[derive(Debug, Clone, Default)]
pub(crate) struct Vars {
    values: BTreeMap<String, Vec<String>>,
    reads: Rc<RefCell<Reads>>,
}

/// The names that were read in loops and functions. All copies of `Vars` share them.
#[derive(Debug, Default)]
struct Reads {
    /// The number of loops and functions around the current text.
    repeats: usize,
    /// For each name, whether a value was known when it was read.
    names: BTreeMap<String, bool>,
}

impl Vars {
    pub fn get(&self, name: &str) -> Option<&Vec<String>> {
        let values = self.values.get(name);
        let mut reads = self.reads.borrow_mut();
        if reads.repeats > 0 && reads.names.get(name) != Some(&true) {
            reads.names.insert(name.to_owned(), values.is_some());
        }
        values
    }

    pub fn contains_key(&self, name: &str) -> bool {
        self.values.contains_key(name)
    }

    pub fn entry(&mut self, name: &str) -> &mut Vec<String> {
        self.values.entry(name.to_owned()).or_default()
    }

    pub fn insert(&mut self, name: String, values: Vec<String>) {
        self.values.insert(name, values);
    }

    pub fn remove(&mut self, name: &str) {
        self.values.remove(name);
    }

    /// Enters a loop, a function, or other text that may run several times or later.
    pub fn enter_repeated(&self) {
        self.reads.borrow_mut().repeats += 1;
    }

    pub fn leave_repeated(&self) {
        self.reads.borrow_mut().repeats -= 1;
    }

    /// If a loop or a function has read the variable: whether a value was known then.
    pub fn read_in_repeated(&self, name: &str) -> Option<bool> {
        self.reads.borrow().names.get(name).copied()
    }
}

impl<const N: usize> From<[(String, Vec<String>); N]> for Vars {
    fn from(values: [(String, Vec<String>); N]) -> Vars {
        Vars {
            values: BTreeMap::from(values),
            ..Vars::default()
        }
    }
}
