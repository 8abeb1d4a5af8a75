//! Hierarchies of both kinds, and groups in a directory that looks like one.

use super::*;

const ALL: [Controller; 3] = [Controller::Memory, Controller::Pids, Controller::Cpu];

#[test]
fn both_kinds_of_hierarchies_are_found() {
    let mounts = "31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw,mode=755\n\
        32 31 0:29 / /cg/cpu,cpuacct rw,relatime - cgroup cgroup rw,cpu,cpuacct\n\
        35 31 0:32 /box /cg/memory rw,relatime shared:9 - cgroup cgroup rw,memory\n\
        41 31 0:38 / /cg/unified rw,relatime - cgroup2 cgroup2 rw\n";
    let memberships = "4:memory:/box/inner\n2:cpu,cpuacct:/\n0::/user.slice/me\n";
    let host = Host::parse(mounts, memberships);
    let apart = [
        (Controller::Memory, PathBuf::from("/cg/memory/inner")),
        (Controller::Cpu, PathBuf::from("/cg/cpu,cpuacct/")),
    ];
    assert_eq!(host.apart, BTreeMap::from(apart));
    let unified = ("/cg/unified".into(), "/cg/unified/user.slice/me".into());
    assert_eq!(host.unified, Some(unified));
    let places = host.places(&ALL);
    assert!(
        places[0]
            .1
            .as_ref()
            .is_ok_and(|place| place.by == Mechanism::CgroupV1)
    );
    assert!(
        places[1]
            .1
            .as_ref()
            .is_err_and(|reason| reason.contains("pids"))
    );
}

/// A directory that looks like a delegated part of a unified hierarchy.
fn delegated() -> (tempfile::TempDir, Host) {
    let dir = tempfile::tempdir().unwrap();
    let own = dir.path().join("given/app");
    fs::create_dir_all(&own).unwrap();
    for group in [dir.path().join("given"), own.clone()] {
        fs::write(group.join("cgroup.procs"), "").unwrap();
    }
    let given = dir.path().join("given/cgroup.subtree_control");
    fs::write(given, "memory pids\n").unwrap();
    // A directory cannot be written to, like the control file of a group that has processes.
    fs::create_dir(own.join("cgroup.subtree_control")).unwrap();
    let host = Host {
        apart: BTreeMap::new(),
        unified: Some((dir.path().to_owned(), own)),
    };
    (dir, host)
}

#[test]
fn a_delegated_group_is_divided() {
    let (dir, host) = delegated();
    let limits = Limits {
        memory_bytes: Some(1 << 26),
        pids: Some(9),
        cpus: Some(0.5),
        ..Limits::default()
    };
    let mut group = Group::default();
    for (controller, place) in host.places(&[Controller::Memory, Controller::Pids]) {
        let place = place.unwrap();
        assert_eq!(place.dir, dir.path().join("given"));
        assert_eq!(
            group.hold(&place, controller, &limits),
            Ok(Mechanism::CgroupV2)
        );
    }
    assert_eq!(group.doors().len(), 1, "one group for both");
    let made = group.dirs[0].0.clone();
    let read = |file: &str| fs::read_to_string(made.join(file)).unwrap();
    assert_eq!(
        (read("memory.max"), read("pids.max")),
        ("67108864".into(), "9".into())
    );
    assert!(!group.ran_out_of_memory());
    fs::write(made.join("memory.events"), "low 0\noom 3\noom_kill 2\n").unwrap();
    assert!(group.ran_out_of_memory());
    let place = CgroupDir {
        dir: dir.path().join("given"),
        by: Mechanism::CgroupV2,
    };
    group.hold(&place, Controller::Cpu, &limits).unwrap();
    assert_eq!(read("cpu.max"), "50000 100000");
}

#[test]
fn groups_of_the_dead_are_removed() {
    let dir = tempfile::tempdir().unwrap();
    let own = format!("{PREFIX}{}-1", std::process::id());
    for name in ["avfs-999999999-1", &own, "avfs-mine", "other"] {
        fs::create_dir(dir.path().join(name)).unwrap();
    }
    sweep(dir.path());
    let left = |name: &str| dir.path().join(name).exists();
    assert!(!left("avfs-999999999-1"));
    assert!(left(&own) && left("avfs-mine") && left("other"));
}
