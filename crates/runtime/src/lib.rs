//! Every use case, written once: exec, fork, checkpoint, restore, files
