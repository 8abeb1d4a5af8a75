//! A root and a layer shown as a directory: lens, layers, commit
