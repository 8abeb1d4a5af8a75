//! Pairs what went with what came.

use crate::Change;

pub fn pair_renames(_changes: Vec<Change>) -> Vec<Change> {
    todo!()
}
