//! Bringing things in.

use super::{at, host, project, state, write};
use crate::AVFS;
use avfs_testkit::{Home, Terminal, scan, with_vault};
use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

/// Runs the binary with a file as its standard input.
fn with_input(home: &Home, words: &[&str], input: &Path) -> serde_json::Value {
    let mut all = vec!["--json"];
    all.extend(words);
    let mut command = home.command(&all);
    let output = command.stdin(File::open(input).unwrap()).output().unwrap();
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{output:?}"))
}

#[test]
fn a_directory_comes_in_and_goes_out_byte_for_byte() {
    with_vault(AVFS, |home| {
        let dir = project(home);
        let imported = home.json(&["import", "project"]);
        assert_eq!(imported["vfs_path"], "/workspace", "{imported}");
        assert_eq!(imported["files_imported"], 9, "{imported}");
        assert_eq!(imported["skipped"], serde_json::json!([]));
        home.ok(&["export", "/workspace", "out"]);
        assert_eq!(scan(&at(home, "out")), scan(&dir), "{}", home.user());
        // The same files that commands see.
        let envelope = home.shell("cat README && ./run.sh && readlink link");
        assert_eq!(envelope["result"]["stdout"], "read me\nrun\nsrc/main.py\n");
    });
}

#[test]
fn archives_of_every_kind_are_the_same_as_the_directory() {
    with_vault(AVFS, |home| {
        let dir = project(home);
        home.ok(&["import", "project", "/dir"]);
        home.ok(&["export", "/dir", "from-dir"]);
        let wanted = scan(&at(home, "from-dir"));
        for (flags, name) in [
            ("cf", "plain.tar"),
            ("czf", "a.tgz"),
            ("cf", "pax.tar"),
            ("c --zstd -f", "a.tar.zst"),
        ] {
            let path = at(home, name);
            let mut words = vec!["tar"];
            words.extend(flags.split(' '));
            words.push(path.to_str().unwrap());
            if name == "pax.tar" {
                words.push("--format=pax");
            }
            words.push(".");
            host(&dir, &words);
            home.give(&path);
            let place = format!("/{name}");
            home.ok(&["import", name, &place]);
            home.ok(&["export", &place, &format!("out-{name}")]);
            assert_eq!(scan(&at(home, &format!("out-{name}"))), wanted, "{name}");
            let piped = with_input(home, &["import", "-", "/piped"], &path);
            assert_eq!(piped["files_imported"], 9, "{name}: {piped}");
        }
        home.ok(&["export", "/piped", "out-piped"]);
        assert_eq!(scan(&at(home, "out-piped")), wanted);
    });
}

#[test]
fn an_unchanged_tree_is_not_read_again() {
    with_vault(AVFS, |home| {
        let dir = project(home);
        let first = home.json(&["import", "project"]);
        assert_eq!(first["files_reused"], 0);
        let before = state(home);
        let second = home.json(&["import", "project"]);
        // Seven names of files; links have nothing to read.
        assert_eq!(second["files_reused"], 7, "{second}");
        assert_eq!(state(home), before, "nothing new");
        fs::write(dir.join("README"), "changed").unwrap();
        let third = home.json(&["import", "project"]);
        assert_eq!(third["files_reused"], 5, "two names, one file: {third}");
        assert_eq!(home.ok(&["cat", "/workspace/src/README.too"]), "changed");
        // Another vault may rely on what this one stored.
        home.ok(&["vault", "create", "w"]);
        let other = home.json(&["--vault", "w", "import", "project"]);
        assert!(other["files_reused"].as_u64().unwrap() >= 5, "{other}");
        assert_eq!(
            home.ok(&["--vault", "w", "cat", "/workspace/README"]),
            "changed"
        );
    });
}

#[test]
fn what_is_left_out_is_listed() {
    with_vault(AVFS, |home| {
        let dir = project(home);
        write(&dir, ".gitignore", "*.log\n/cache/\n");
        write(&dir, "a.log", "");
        write(&dir, "cache/x", "");
        write(&dir, "src/y.tmp", "");
        home.give(&dir);
        let socket = std::os::unix::net::UnixListener::bind(dir.join("socket")).unwrap();
        let imported = home.json(&["import", "project", "--gitignore", "--exclude", "*.tmp"]);
        drop(socket);
        let told: Vec<String> = imported["skipped"]
            .as_array()
            .unwrap()
            .iter()
            .map(|item| format!("{}: {}", item["path"], item["reason"]).replace('"', ""))
            .collect();
        assert_eq!(
            told,
            [
                "a.log: ignored by .gitignore (*.log)",
                "cache: ignored by .gitignore (/cache/)",
                "socket: it is a socket",
                "src/y.tmp: excluded by *.tmp",
            ]
        );
        let text = home.ok(&["import", "project", "/again"]);
        assert!(text.contains("imported 13 files"), "{text}");
    });
}

/// What a script prints that the user runs on the host.
fn on_host(home: &Home, script: &str) -> String {
    let mut bash = home.host_command("bash");
    let output = bash.args(["-ec", script]).output().unwrap();
    assert!(output.status.success(), "{script}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

const REPOSITORY: &str = r"
set -e
export GIT_CONFIG_GLOBAL=/dev/null GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b
mkdir -p repo && cd repo && git init -q -b main
printf 'config\nlogs/\ntags\nbuild/\n*.o\n.git\n' > .gitignore
mkdir -p build/deep build/other sub
echo kept > build/deep/tracked; echo kept > lib.o; echo kept > sub/lib.o; echo in > README
git add -f .gitignore build/deep/tracked lib.o sub/lib.o README
git commit -qm first && git tag v1
echo lost > build/deep/free; echo lost > build/other/free; echo lost > new.o; echo lost > sub/new.o; echo free > sub/free
# A repository in the work tree: its own files, and its own index.
git init -q nested && cd nested && echo '*.log' > .gitignore && echo kept > a.log && git add -f . && echo lost > b.log
";

/// The repository stays one, and what it tracks stays whole, whatever the rules name. git says what is tracked.
#[test]
fn ignore_rules_spare_the_repository_and_what_it_tracks() {
    with_vault(AVFS, |home| {
        on_host(home, REPOSITORY);
        let imported = home.json(&["import", "repo", "/r", "--gitignore"]);
        let mut skipped: Vec<_> = imported["skipped"].as_array().unwrap().iter().collect();
        skipped.sort_by_key(|item| item["path"].to_string());
        let skipped: Vec<_> = skipped.iter().map(|it| it["path"].as_str()).collect();
        let expected = [
            "build/deep/free",
            "build/other",
            "nested/b.log",
            "new.o",
            "sub/new.o",
        ];
        assert_eq!(skipped, expected.map(Some), "{imported:#}");
        let inside = "cd /r && git fsck --strict && git tag && git reflog && git status --porcelain && git -C nested status --porcelain";
        let inside = home.ok(&["exec", "--shell", inside]);
        let outside = on_host(
            home,
            "cd repo && git tag && git reflog && rm build/deep/free build/other/free new.o sub/new.o nested/b.log && git status --porcelain && git -C nested status --porcelain",
        );
        assert_eq!(inside, outside);

        // A directory of a work tree belongs to it, too.
        let part = home.json(&["import", "repo/sub", "/sub", "--gitignore"]);
        assert_eq!(
            part["skipped"].as_array().map(Vec::len),
            Some(0),
            "{part:#}"
        );
        // What only looks like a repository has nothing tracked, and is none of the repository around it.
        on_host(
            home,
            "mkdir -p repo/sub/empty/.git; echo '*.o' > repo/sub/empty/.gitignore; echo > repo/sub/empty/x.o",
        );
        let empty = home.json(&["import", "repo/sub/empty", "/empty", "--gitignore"]);
        assert_eq!(empty["skipped"][0]["path"], "x.o", "{empty:#}");
        // An index that cannot be read keeps nothing out in silence.
        on_host(home, "echo broken > repo/.git/index");
        let (kind, told) = home.refused(&["import", "repo", "/broken", "--gitignore"]);
        assert_eq!(kind, "Invalid", "{told}");
        assert!(told.to_string().contains("which files"), "{told}");
    });
}

#[test]
fn an_import_goes_as_deep_as_it_is_told() {
    with_vault(AVFS, |home| {
        project(home);
        let imported = home.json(&["import", "project", "--max-depth", "2"]);
        let skipped = imported["skipped"].as_array().unwrap();
        assert!(
            skipped.iter().any(|item| item["path"] == "src/deep/er"
                && item["reason"] == "it is more than 2 levels deep"),
            "{imported}"
        );
        assert!(home.ok(&["ls", "/workspace/src"]).contains("main.py"));
        assert_eq!(home.ok(&["ls", "/workspace/src/deep"]), "");
        host(home.path(), &["tar", "cf", "p.tar", "-C", "project", "."]);
        home.ok(&["import", "p.tar", "/from-tar", "--max-depth", "2"]);
        assert_eq!(home.ok(&["ls", "/from-tar/src/deep"]), "");
        let piped = with_input(
            home,
            &["import", "-", "/piped", "--max-depth", "1"],
            &at(home, "p.tar"),
        );
        assert_eq!(piped["vfs_path"], "/piped", "{piped}");
        assert_eq!(home.ok(&["ls", "/piped/src"]), "");
    });
}

#[test]
fn a_git_revision_comes_in_as_it_was() {
    with_vault(AVFS, |home| {
        let dir = at(home, "repository");
        write(&dir, "file", "old");
        let git = |words: &[&str]| {
            let mut all = vec!["git", "-c", "user.name=a", "-c", "user.email=a@b"];
            all.extend(words);
            host(&dir, &all);
        };
        git(&["init", "-q"]);
        git(&["add", "."]);
        git(&["commit", "-qm", "one"]);
        write(&dir, "file", "new");
        write(&dir, "untracked", "x");
        git(&["commit", "-qam", "two"]);
        home.give(&dir);
        let imported = home.json(&["import", "repository", "--git-rev", "HEAD~1"]);
        assert_eq!(imported["files_imported"], 1, "{imported}");
        assert_eq!(home.ok(&["cat", "/workspace/file"]), "old");
        let before = state(home);
        for revision in ["nope", "--upload-pack=x", "HEAD:file"] {
            let option = format!("--git-rev={revision}");
            assert_eq!(
                home.refused(&["import", "repository", &option]).0,
                "Invalid"
            );
        }
        assert_eq!(
            home.refused(&["import", "user", "--git-rev", "HEAD"]).0,
            "Invalid"
        );
        assert_eq!(state(home), before);
    });
}

#[test]
fn a_bar_shows_on_a_terminal_when_it_takes_long() {
    let home = Home::new(crate::AVFS);
    home.ok(&["vault", "create", "v"]);
    let dir = project(&home);
    host(&dir, &["tar", "cf", "../slow.tar", "."]);
    let slowly = "head -c 100000 slow.tar; sleep 1.3; tail -c +100001 slow.tar; sleep 0.3";
    let import = |more: &str, stderr: Stdio| {
        let mut feeder = Command::new("sh");
        feeder.args(["-c", slowly]).current_dir(home.path());
        let mut feeder = feeder.stdout(Stdio::piped()).spawn().unwrap();
        let words: Vec<&str> = ["import", "-"]
            .into_iter()
            .chain(more.split_terminator(' '))
            .collect();
        let mut command = home.command(&words);
        command.stdin(feeder.stdout.take().unwrap()).stderr(stderr);
        command.env("TERM", "xterm");
        let output = command.output().unwrap();
        feeder.wait().unwrap();
        assert!(output.status.success(), "{output:?}");
        output.stderr
    };
    let terminal = Terminal::open();
    import("", terminal.stdio());
    let seen = terminal.text();
    assert!(seen.contains("importing"), "{seen:?}");
    let terminal = Terminal::open();
    import("--json", terminal.stdio());
    assert_eq!(terminal.text(), "");
    assert_eq!(import("", Stdio::piped()), b"");
}

#[test]
fn a_client_that_goes_away_leaves_nothing_behind() {
    let home = Home::new(crate::AVFS);
    home.ok(&["vault", "create", "v"]);
    let before = state(&home);
    let dir = project(&home);
    host(&dir, &["tar", "cf", "../slow.tar", "."]);
    let mut feeder = Command::new("sh");
    let endless = "head -c 100000 slow.tar; sleep 60";
    feeder.args(["-c", endless]).current_dir(home.path());
    let mut feeder = feeder.stdout(Stdio::piped()).spawn().unwrap();
    let mut command = home.command(&["import", "-"]);
    let mut import = command
        .stdin(feeder.stdout.take().unwrap())
        .spawn()
        .unwrap();
    std::thread::sleep(Duration::from_millis(500));
    import.kill().unwrap();
    import.wait().unwrap();
    feeder.kill().unwrap();
    feeder.wait().unwrap();
    assert_eq!(state(&home), before);
    home.ok(&["import", "project"]);
}
