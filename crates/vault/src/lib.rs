//! What a workspace is: trees, edits, diff, checkpoints, forks, history, journal
