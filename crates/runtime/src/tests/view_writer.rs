//! File verbs in a vault in which a command is at work: it sees them at once, and both end in the head.

use super::*;
use crate::{Depth, Missing};

/// A command that does `text` when somebody writes `go`, after `verbs` were done beside it.
fn beside(place: &PlainHome, text: &str, verbs: impl FnOnce()) -> ExecReport {
    let running = place.start(&format!("{UNTIL_GO}; {text}"));
    verbs();
    place.write("/go", "");
    let report = running.end();
    assert_eq!(report.status, ExecStatus::Exited(0), "{report:?}");
    report
}

#[test]
fn a_running_command_sees_what_verbs_do() {
    let place = PlainHome::new();
    let session = place.session();
    let at = path;
    place.write("/d/old", "old\n");
    place.write("/d/gone/x", "x");
    place.write("/log", "one\n");
    let look = "cat d/new renamed log; ls d; stat -c %a renamed; readlink link; cat made/by/verb";
    let report = beside(&place, look, || {
        place.write("/d/new", "new\n");
        session
            .mv(Select::Current, &at("/d/old"), &at("/renamed"))
            .unwrap();
        session
            .rm(Select::Current, &at("/d/gone"), Depth::Recursive)
            .unwrap();
        place.write_as("/log", "two\n", WriteMode::Append);
        let mode = "600".parse().unwrap();
        session
            .chmod(Select::Current, &at("/renamed"), &mode, Depth::Single)
            .unwrap();
        let link = crate::NewLink::Symbolic(b"d/new".to_vec());
        session.ln(Select::Current, &link, &at("/link")).unwrap();
        place.write("/made/by/verb", "made\n");
        session
            .touch(Select::Current, &at("/touched"), Missing::Create)
            .unwrap();
    });
    assert_eq!(
        stdout(&report),
        "new\nold\none\ntwo\nnew\n600\nd/new\nmade\n"
    );
    for (file, text) in [
        ("/d/new", "new\n"),
        ("/renamed", "old\n"),
        ("/log", "one\ntwo\n"),
        ("/touched", ""),
    ] {
        assert_eq!(place.cat(file).unwrap(), text, "{file}");
    }
    assert!(place.cat("/d/old").is_err() && place.cat("/d/gone/x").is_err());
}

#[test]
fn a_file_that_is_open_goes_on_under_its_new_name() {
    let place = PlainHome::new();
    let session = place.session();
    let open = "exec 3>> log; echo first >&3";
    let running = place.start(&format!("{open}; echo > opened; {UNTIL_GO}; echo last >&3"));
    assert!(wait_for(SOON, || place.cat("/opened").is_ok()));
    session
        .mv(Select::Current, &path("/log"), &path("/moved"))
        .unwrap();
    place.write_as("/moved", "between\n", WriteMode::Append);
    place.write("/go", "");
    running.end();
    assert_eq!(place.cat("/moved").unwrap(), "first\nbetween\nlast\n");
    assert!(place.cat("/log").is_err());
}

#[test]
fn a_verb_is_refused_beside_a_command_as_it_is_alone() {
    let place = PlainHome::new();
    place.write("/f", "x");
    let session = place.session();
    let running = place.start(UNTIL_GO);
    let below = session.mkdir(Select::Current, &path("/f/below"), Parents::Require);
    assert!(below.is_err());
    let gone = session.rm(Select::Current, &path("/nothing"), Depth::Single);
    assert_eq!(gone.unwrap_err().kind(), ErrorKind::NotFound);
    place.write("/go", "");
    assert_eq!(changes(&running.end()), ["+/go", "+/up"]);
}

/// Steps by chance, with names so few that they meet.
fn steps(place: &PlainHome, seed: u64) {
    let mut dice = avfs_testkit::Dice::new(seed);
    let session = place.session();
    for number in 0..40 {
        let mut at = || path(["/a", "/a/b", "/a/c", "/d", "/d/e", "/d/e/f"][dice.roll(6) as usize]);
        let (one, other) = (at(), at());
        // Whatever cannot be done is refused in both places.
        let _ = match dice.roll(6) {
            0 => session.mkdir(Select::Current, &one, Parents::Make),
            1 => session.rm(Select::Current, &one, Depth::Recursive),
            2 => session.mv(Select::Current, &one, &other).map(drop),
            3 => session
                .chmod(
                    Select::Current,
                    &one,
                    &"750".parse().unwrap(),
                    Depth::Single,
                )
                .map(drop),
            _ => {
                let text = format!("{number}");
                let how = [WriteMode::Replace, WriteMode::Append][dice.roll(2) as usize];
                let options = WriteOptions {
                    how,
                    parents: Parents::Make,
                    ..WriteOptions::default()
                };
                let written = session.write(Select::Current, &one, &mut text.as_bytes(), &options);
                written.map(drop)
            }
        };
    }
}

/// Every path with its kind, mode and content.
fn everything(place: &PlainHome) -> Vec<(String, u32, Option<Vec<u8>>)> {
    let trees = place.runtime.inner.vaults.trees();
    let (nothing, head) = (trees.empty_root().unwrap(), place.vault().head);
    let all = trees.diff(nothing, head).unwrap().into_iter();
    let all = all.filter(|change| !["/up", "/go"].contains(&change.path.to_string().as_str()));
    all.map(|change| {
        let entry = change.after.unwrap();
        let content = (!entry.is_dir()).then(|| {
            let read = place
                .session()
                .cat(Select::Current, &change.path, &ReadOptions::default());
            read.unwrap().bytes
        });
        (change.path.to_string(), entry.meta.mode & 0o7777, content)
    })
    .collect()
}

#[test]
fn verbs_through_a_view_do_what_they_do_without_one() {
    for seed in 0..6 {
        let (alone, beside_one) = (PlainHome::new(), PlainHome::new());
        steps(&alone, seed);
        beside(&beside_one, "true", || steps(&beside_one, seed));
        assert_eq!(everything(&beside_one), everything(&alone), "seed {seed}");
    }
}
