//! Views and sandboxes: `slot.rs` is the one place where a vault's view is opened, committed and closed; `view.rs` is one
//! view, `engine.rs` the processes that serve all of them.

pub(crate) mod admission;
pub(crate) mod authorities;
mod beside;
mod descriptors;
pub(crate) mod disk_watch;
pub(crate) mod engine;
pub(crate) mod git_user;
pub(crate) mod host;
pub(crate) mod layer_commit;
pub(crate) mod layers_place;
mod lendable;
pub(crate) mod lending;
pub(crate) mod mounts;
pub(crate) mod network;
pub(crate) mod network_teller;
pub(crate) mod ports;
pub(crate) mod recover;
pub(crate) mod reserve;
mod room;
#[cfg(not(test))]
mod served;
#[cfg(test)]
#[path = "plain.rs"]
mod served;
pub(crate) mod shape;
mod shims;
pub(crate) mod slot;
pub(crate) mod view;
mod view_backend;
pub(crate) mod view_base;
pub(crate) mod view_writer;
