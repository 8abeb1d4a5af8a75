//! The values that variables may have at a point of the text, and which of them were looked at where the text may run again.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

/// The values a variable may have at this point of the text.
#[derive(Debug, Clone, Default)]
pub(crate) struct Vars {
    values: BTreeMap<String, Vec<String>>,
    reads: Rc<RefCell<Reads>>,
}

/// The names that were read in loops and functions; copies of the variables share them.
#[derive(Debug, Default)]
struct Reads {
    /// How many loops and functions are around the text being judged.
    repeats: usize,
    /// Whether a value was known when it was read.
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

    pub fn of(&mut self, name: &str) -> &mut Vec<String> {
        self.values.entry(name.to_owned()).or_default()
    }

    pub fn insert(&mut self, name: String, values: Vec<String>) {
        self.values.insert(name, values);
    }

    pub fn remove(&mut self, name: &str) {
        self.values.remove(name);
    }

    /// The text of a loop or a function begins.
    pub fn repeat(&self) {
        self.reads.borrow_mut().repeats += 1;
    }

    pub fn end_repeat(&self) {
        self.reads.borrow_mut().repeats -= 1;
    }

    /// Whether text that may run again has read the variable, and a value of it was known then.
    pub fn was_read(&self, name: &str) -> Option<bool> {
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
