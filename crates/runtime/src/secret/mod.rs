//! Secrets: values that requests get on their way out (`avfs_net`), and that no command ever has.
//!
//! What a secret is for is stored in clear. Its value is sealed with a key that is outside of the home (`seal.rs`), so a copy of the home
//! tells nobody a value. Sealed with the value is what it is for: who can write to the home cannot have it sent elsewhere.

mod known;
mod model;
mod seal;
mod verbs;

pub(crate) use known::{Outgoing, Secrets};
pub use model::{NewSecret, Secret, SecretForm, SecretName, SecretValue};
pub use verbs::SecretInfo;
