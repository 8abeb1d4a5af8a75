//! What a command changed, told again.

use super::*;
use crate::{ChangesOf, ExecChanges, ExecChangesRequest, PruneScope};
use avfs_vault::{ExecId, Keep};

fn ask(exec: ExecId, of: ChangesOf) -> ExecChangesRequest {
    ExecChangesRequest {
        exec,
        of,
        patch: false,
        from: 0,
        limit: None,
    }
}

fn paths(told: &ExecChanges) -> Vec<String> {
    let listed = told.changes.listed.iter();
    listed.map(|change| change.path.to_string()).collect()
}

#[test]
fn a_command_is_told_again_whatever_came_after() {
    let place = PlainHome::new();
    place.write("/w/.gitignore", "out/\n");
    place.write("/w/old", "one\n");
    let report = place.sh(
        "cd w; echo two >> old; mkdir out ../home ../home/agent; echo > out/x; echo > ../home/agent/y",
    );
    place.write("/w/old", "three\n");
    place.sh("rm -r w");
    let session = place.session();
    let told = session
        .exec_changes(&ask(report.exec, ChangesOf::Report))
        .unwrap();
    assert_eq!(paths(&told), ["/w/old"]);
    assert_eq!((told.changes.total, told.home_changes), (1, 3));
    assert_eq!(told.ignored, report.ignored);
    assert_eq!(Some(told.version), report.version);
    let all = session
        .exec_changes(&ask(report.exec, ChangesOf::All))
        .unwrap();
    assert_eq!(
        paths(&all),
        [
            "/home",
            "/home/agent",
            "/home/agent/y",
            "/w/old",
            "/w/out",
            "/w/out/x"
        ]
    );
    let with_patch = ExecChangesRequest {
        patch: true,
        ..ask(report.exec, ChangesOf::Report)
    };
    let patch = session.exec_changes(&with_patch).unwrap().patch.unwrap();
    assert!(
        patch.text.contains("+two\n") && !patch.truncated,
        "{patch:?}"
    );
}

#[test]
fn pages_are_the_whole_list() {
    let place = PlainHome::new();
    let report = place.sh(
        "echo 'out/' > .gitignore; mkdir out; for i in $(seq 30); do echo $i > f$i; echo > out/$i; done",
    );
    for (of, patch) in [(ChangesOf::Report, false), (ChangesOf::All, true)] {
        let request = |from, limit| ExecChangesRequest {
            patch,
            from,
            limit,
            ..ask(report.exec, of)
        };
        let session = place.session();
        let whole = session.exec_changes(&request(0, None)).unwrap();
        assert_eq!(whole.next, None);
        for limit in [1, 7, 30, 31, 100] {
            let (mut seen, mut text, mut from) = (Vec::new(), String::new(), Some(0));
            while let Some(at) = from {
                let page = session.exec_changes(&request(at, Some(limit))).unwrap();
                assert!(page.changes.listed.len() <= limit);
                assert_eq!(page.changes.total, whole.changes.total);
                seen.extend(paths(&page));
                text += &page.patch.map_or_else(String::new, |patch| patch.text);
                from = page.next;
            }
            assert_eq!(seen, paths(&whole), "{limit}");
            let expected = whole.patch.as_ref().map_or("", |patch| &patch.text);
            assert_eq!(text, expected, "{limit}");
        }
    }
}

#[test]
fn what_was_forgotten_is_said_to_be() {
    let place = PlainHome::new();
    let session = place.session();
    let why = |exec| {
        let error = session
            .exec_changes(&ask(exec, ChangesOf::All))
            .unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound, "{error}");
        error.to_string()
    };
    assert!(why(ExecId::new()).contains("no command with this id"));
    let looked = place.run(ExecRequest {
        options: ExecOptions {
            access: crate::Access::ReadOnly,
            ..ExecOptions::default()
        },
        ..shell("true")
    });
    assert!(why(looked.exec).contains("read-only"));
    let forked = place.run(ExecRequest {
        options: ExecOptions {
            branch: crate::Branch::Throwaway,
            ..ExecOptions::default()
        },
        ..shell("echo > f")
    });
    assert!(why(forked.exec).contains("deleted"));
    let first = place.sh("head -c 9000 /dev/urandom > a");
    place.sh("rm a; head -c 9000 /dev/urandom > b");
    place.sh("rm b; echo > c");
    let nothing = place.sh("true");
    let told = session
        .exec_changes(&ask(nothing.exec, ChangesOf::All))
        .unwrap();
    assert!(paths(&told).is_empty());
    session
        .prune(&PruneScope::All, Keep::Newest(1), crate::Run::Real)
        .unwrap();
    assert!(why(first.exec).contains("pruned"));
    assert!(
        session
            .exec_changes(&ask(nothing.exec, ChangesOf::All))
            .is_ok()
    );
}
