//! How much an archive may ask for.

/// Pieces of data in a sparse file of an archive. The map of them is held in memory.
pub(crate) const PIECES_MAX: usize = 1 << 20;
