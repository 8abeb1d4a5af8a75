//! Which changes a report lists, and which it counts by directory.
//!
//! Who may lie: the command, which writes the rules, the names and what is at them. Rules that cannot be used hide nothing.

use super::*;
use crate::Counts;
use crate::history::ignored::DIRECTORIES_MAX;

/// `directory: created modified deleted` of what was counted.
fn counted(report: &ExecReport) -> Vec<String> {
    let line = |(directory, counts): (&Vec<u8>, &Counts)| {
        let directory = String::from_utf8_lossy(directory);
        let (created, modified) = (counts.created, counts.modified);
        format!("{directory}: {created} {modified} {}", counts.deleted)
    };
    report.ignored.directories.iter().map(line).collect()
}

#[test]
fn what_a_repository_ignores_is_counted_by_directory() {
    let place = PlainHome::new();
    place.write("/w/.git/info/exclude", "/private\n");
    place.write(
        "/w/.gitignore",
        "target/\n*.o\n!keep.o\n/only-here\n# comment\n",
    );
    place.write("/w/sub/.gitignore", "!wanted.o\n/deep\n");
    let report = place.sh(
        "cd w; mkdir -p target/debug sub/deep sub/target private only-here sub/only-here; \
         printf 12345 > target/debug/a; echo > target/b; echo > sub/deep/c; echo > sub/target/d; \
         echo > private/e; echo > a.o; echo > keep.o; echo > sub/b.o; echo > sub/wanted.o; \
         echo > only-here/f; echo > sub/only-here/g; echo > src.c",
    );
    assert_eq!(report.status, ExecStatus::Exited(0), "{report:?}");
    assert_eq!(
        changes(&report),
        [
            "+/w/keep.o",
            "+/w/src.c",
            "+/w/sub/only-here",
            "+/w/sub/only-here/g",
            "+/w/sub/wanted.o"
        ]
    );
    assert_eq!(
        counted(&report),
        [
            "/w/: 1 0 0",
            "/w/only-here/: 2 0 0",
            "/w/private/: 2 0 0",
            "/w/sub/: 1 0 0",
            "/w/sub/deep/: 2 0 0",
            "/w/sub/target/: 2 0 0",
            "/w/target/: 4 0 0"
        ]
    );
    assert_eq!(report.changes.total, 5);
    assert_eq!(report.ignored.paths(), 14);
    assert_eq!(
        report.ignored.directories[b"/w/target/".as_slice()].bytes,
        6
    );
    let later = place.sh("cd w; echo >> target/b; rm target/debug/a; chmod 600 private/e");
    assert_eq!(changes(&later), Vec::<String>::new());
    assert_eq!(counted(&later), ["/w/private/: 0 1 0", "/w/target/: 0 1 1"]);
}

/// The rules of a directory above a repository are not the repository's; without a repository all hold.
#[test]
fn rules_end_at_the_top_of_a_repository() {
    let place = PlainHome::new();
    place.write("/.gitignore", "x\n");
    let report = place.sh("mkdir -p a/b/.git; echo > a/x; echo > a/b/x; echo > x");
    assert_eq!(changes(&report), ["+/a", "+/a/b", "+/a/b/.git", "+/a/b/x"]);
    assert_eq!(counted(&report), ["/: 1 0 0", "/a/: 1 0 0"]);
}

#[test]
fn rules_do_not_hide_what_git_itself_reads() {
    let place = PlainHome::new();
    place.write("/w/.git/HEAD", "x");
    let report = place.sh(
        "cd w; printf '*\\n.git\\n.gitignore\\n' > .gitignore; mkdir .git/hooks src vendor; \
         echo > .git/hooks/pre-commit; echo > src/.gitignore; echo > src/a; \
         mkdir -p vendor/lib/.git/hooks; echo > vendor/lib/.git/hooks/post-checkout",
    );
    assert_eq!(
        changes(&report),
        [
            "+/w/.git/hooks",
            "+/w/.git/hooks/pre-commit",
            "+/w/.gitignore"
        ]
    );
    // What is in an ignored directory is counted there, whatever it is.
    assert_eq!(counted(&report), ["/w/src/: 3 0 0", "/w/vendor/: 5 0 0"]);
}

#[test]
fn caches_in_the_home_directory_are_counted_by_directory() {
    let place = PlainHome::new();
    let report = place.sh(
        "mkdir -p home/agent/.cache/pip home/agent/.cargo/registry; echo > home/agent/.cache/pip/a; \
         echo > home/agent/.cargo/registry/b; echo > home/agent/.cargo/config.toml; \
         echo > home/agent/.gitignore; echo > home/agent/x",
    );
    assert_eq!(changes(&report), Vec::<String>::new());
    assert_eq!(
        counted(&report),
        [
            "/home/agent/.cache/: 3 0 0",
            "/home/agent/.cargo/registry/: 2 0 0"
        ]
    );
    // home, agent, .cargo, config.toml, .gitignore, x
    assert_eq!(report.home_changes, 6);
}

/// Each of these names nothing, and takes nothing away from what the other lines name.
#[test]
fn hostile_rules_change_nothing_but_what_they_name() {
    let writes = [
        // Longer than a file of rules may be: the rest is not read, nor is the line that it would be cut in.
        "for i in $(seq 9000); do echo \"name-$i\"; done > .gitignore; echo real >> .gitignore",
        // One line without an end.
        "head -c 200000 /dev/zero | tr '\\0' x > .gitignore",
        "head -c 200000 /dev/zero > .gitignore",
        "ln -s secret .gitignore; echo 'real' > secret",
        "ln -s .gitignore .gitignore",
        "mkfifo .gitignore",
        "mkdir .gitignore; echo real > .gitignore/real",
        "printf 'r\\377al\\n\\377\\376\\n[\\n[z-a]\\n{{{{\\n\\\\\\n!\\n/\\n//\\n**/**/**\\377\\n' > .gitignore",
        // Patterns that take long by backtracking.
        "for i in $(seq 900); do echo 'r*e*a*l*r*e*a*l*r*e*a*l*r*e*a*lx'; done > .gitignore",
        "for i in $(seq 300); do echo '**/r*/**/e*/**/a*/**/x'; done > .gitignore",
        "printf '%0500d\\n' 0 | tr 0 '*' > .gitignore",
        "printf '%0500d\\n' 0 | tr 0 '{' > .gitignore",
    ];
    for write in writes {
        let place = PlainHome::new();
        let report = place.sh(&format!("mkdir .git; {write}; echo > real; echo > other"));
        assert_eq!(report.status, ExecStatus::Exited(0), "{write}: {report:?}");
        let listed = changes(&report);
        for path in ["+/.git", "+/.gitignore", "+/other", "+/real"] {
            assert!(listed.iter().any(|it| it == path), "{write}: {listed:?}");
        }
        assert_eq!(counted(&report), Vec::<String>::new(), "{write}");
    }
}

/// A rule among hostile ones still holds.
#[test]
fn a_usable_rule_among_others_holds() {
    let place = PlainHome::new();
    let report = place.sh(
        "mkdir .git; printf '\\377\\n[\\n****************a****\\nreal\\r\\n  \\n' > .gitignore; \
         echo > real; echo > other",
    );
    assert_eq!(changes(&report), ["+/.git", "+/.gitignore", "+/other"]);
    assert_eq!(counted(&report), ["/: 1 0 0"]);
}

/// Many files of rules, deep below each other, each of which is as costly as it may be.
#[test]
fn rules_without_end_are_given_up() {
    let place = PlainHome::new();
    let report = place.sh(
        "mkdir .git; for i in $(seq 250); do echo \"*a*b*c*d*e*f*g*h*i*j*k*l*$i\"; done > rules; \
         for i in $(seq 150); do mkdir d; cp rules d/.gitignore; cp rules d/rules; \
           : > d/aabbccddeeffgghhiijjkkll; cd d; done",
    );
    assert_eq!(report.status, ExecStatus::Exited(0), "{report:?}");
    // Nothing is named, so everything is listed.
    assert_eq!(report.ignored.paths(), 0);
    assert_eq!(report.changes.total, 2 + 150 * 4);
}

#[test]
fn what_is_in_too_many_directories_is_counted_together() {
    let place = PlainHome::new();
    let many = DIRECTORIES_MAX + 50;
    let report = place.sh(&format!(
        "echo 'out/' > .gitignore; for i in $(seq {many}); do mkdir -p $i/out; echo > $i/out/f; done"
    ));
    assert_eq!(report.ignored.directories.len(), DIRECTORIES_MAX);
    assert_eq!(report.ignored.other.created, 2 * 50);
    assert_eq!(report.ignored.paths(), 2 * many as u64);
    assert_eq!(report.changes.total, many as u64 + 1);
}

#[test]
fn a_report_lists_as_many_paths_as_it_is_asked_for() {
    let place = PlainHome::new();
    let with = |limit, text: &str| {
        let mut request = shell(text);
        request.options.detail.changes_limit = limit;
        place.session().exec(request, &Quiet)
    };
    let report = with(Some(2), "echo > a; echo > b; echo > c").unwrap();
    assert_eq!(changes(&report), ["+/a", "+/b"]);
    assert_eq!(
        (report.changes.total, report.changes.is_truncated()),
        (3, true)
    );
    let whole = with(Some(3), "rm a b c").unwrap();
    assert!(!whole.changes.is_truncated());
    let none = with(Some(0), "echo > a").unwrap();
    assert!(none.changes.listed.is_empty() && none.changes.total == 1);
    let error = with(Some(10_001), "true").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    let many = place.sh("for i in $(seq 1500); do : > n$i; done");
    assert_eq!(many.changes.total, 1500);
    assert!(many.changes.is_truncated() && many.changes.listed.len() < 1000);
}
