//! stand-in
pub use crate::export::*;
