//! Who asks: all that the surfaces offer is done in somebody's name.

use std::ops::Deref;

use avfs_vault::Principal;

use crate::runtime::Runtime;

/// All use cases of a home, for one principal. Whatever is done is recorded in its name.
#[derive(Clone)]
pub struct Session {
    runtime: Runtime,
    by: Principal,
}

impl Runtime {
    /// The verbs, in the name of `by`.
    pub fn by(&self, by: Principal) -> Session {
        Session {
            runtime: self.clone(),
            by,
        }
    }
}

impl Session {
    pub fn principal(&self) -> Principal {
        self.by
    }
}

/// What needs no principal: the machinery beneath the verbs.
impl Deref for Session {
    type Target = Runtime;

    fn deref(&self) -> &Runtime {
        &self.runtime
    }
}
