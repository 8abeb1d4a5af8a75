//! What the host offers, and what the keeper does with it.

use avfs_sandbox::probe::{self, Outcome};

use crate::Test;
use crate::world::own_binary;

pub const TESTS: &[Test] = &[("probes_work", probes_work)];

fn probes_work() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let probes = probe::run(dir.path(), &own_binary());
    assert_eq!(probes.len(), 7);
    for probe in &probes {
        assert_eq!(
            probe.outcome,
            Outcome::Works,
            "{}: {}",
            probe.name,
            probe.detail
        );
    }
    let left = std::fs::read_dir(dir.path())
        .expect("the directory is there")
        .count();
    assert_eq!(left, 0, "probes leave nothing behind");
}
