//! `approval approve --always`: the owner sees the rule before it is added, and it is the smallest.

use super::{DEPLOY, PASSPHRASE, asks, guarded, home, homes, set_up, text, with_approval};
use avfs_testkit::{Home, Person};

const PUSH: [&str; 5] = ["--", "git", "push", "origin", "main"];

fn with_approver(home: &Home) {
    home.ok(&["vault", "create", "v"]);
    set_up(home);
}

fn status(home: &Home, words: &[&str]) -> String {
    let words = [&["proxy", "exec"], words].concat();
    text(&home.json(&words)["result"], "status").to_owned()
}

#[test]
fn a_confirmed_rule_makes_the_question_needless() {
    for home in homes() {
        with_approver(&home);
        let id = asks(&home, &PUSH);
        let mut owner = Person::start(home.command(&["approval", "approve", &id, "--always"]));
        owner.wait_for("to be added to the rules of vault v");
        owner.wait_for(r#"    | command = ["git", "push", "origin", "main"]"#);
        owner.answer("Add it? [y = yes] ", "y");
        owner.answer("Passphrase to let it run once: ", PASSPHRASE);
        let (ended, said) = owner.end();
        assert!(ended.success(), "{said}");
        assert_eq!(
            status(&home, &PUSH),
            "exited",
            "it runs, and fails by itself"
        );
        let other = ["--", "git", "push", "origin", "other"];
        assert_eq!(
            status(&home, &other),
            "needs_approval",
            "it is for this command alone"
        );
        let rules = home.ok(&["policy", "list", "--sources"]);
        assert!(
            rules.contains(r#"command = ["git", "push", "origin", "main"]"#),
            "{rules}"
        );
        // A second rule goes behind the first.
        let id = asks(&home, &other);
        let words = ["approval", "approve", &id, "--always", "--yes"];
        let mut owner = Person::start(home.command(&words));
        owner.wait_for("to be added to the rules");
        owner.answer("Passphrase to let it run once: ", PASSPHRASE);
        assert!(owner.end().0.success());
        assert_eq!(status(&home, &other), "exited");
        assert_eq!(status(&home, &PUSH), "exited");
    }
}

#[test]
fn without_a_yes_or_the_passphrase_nothing_is_written() {
    let home = home();
    with_approver(&home);
    let id = asks(&home, &PUSH);
    let mut owner = Person::start(home.command(&["approval", "approve", &id, "--always"]));
    owner.answer("Add it? [y = yes] ", "");
    let (ended, said) = owner.end();
    assert!(
        !ended.success() && said.contains("nothing was approved"),
        "{said}"
    );
    let words = ["approval", "approve", &id, "--always", "--yes"];
    let mut owner = Person::start(home.command(&words));
    owner.answer("Passphrase to let it run once: ", "wrong");
    assert!(!owner.end().0.success());
    assert_eq!(home.json(&["approval", "show", &id])["state"], "pending");
    assert_eq!(status(&home, &PUSH), "needs_approval");
    let rules = home.ok(&["policy", "list", "--sources"]);
    assert!(!rules.contains("origin"), "{rules}");
}

#[test]
fn what_a_written_rule_stops_no_other_rule_allows() {
    let home = home();
    guarded(&home);
    let id = asks(&home, &DEPLOY);
    let (kind, refused) = home.refused(&["approval", "approve", &id, "--always"]);
    assert_eq!(kind, "Invalid", "{refused}");
    assert!(
        text(&refused, "message").contains("no rule would allow it"),
        "{refused}"
    );
    // Without --always it can be approved as before.
    super::approves(&home, &id, &[]);
    assert_eq!(with_approval(&home, &id, &DEPLOY)["result"]["exit_code"], 0);
}

#[test]
fn a_rule_for_a_whole_category_is_not_added_unseen() {
    let home = home();
    with_approver(&home);
    let id = asks(&home, &["--network", "host", "--shell", "$(cat /f) x"]);
    let rule = home.json(&["approval", "show", &id]);
    let rule = text(&rule, "smallest_rule").to_owned();
    assert!(
        rule.contains("category") && !rule.contains("command ="),
        "{rule}"
    );
    let words = ["approval", "approve", &id, "--always", "--yes"];
    let (_, refused) = home.refused(&words);
    assert!(
        text(&refused, "message").contains("every command of a category"),
        "{refused}"
    );
}

#[test]
fn stale_requests_are_marked_and_the_refusal_shows_the_rule() {
    let home = home();
    guarded(&home);
    let id = asks(&home, &DEPLOY);
    assert_eq!(home.json(&["approval", "show", &id])["stale"], false);
    home.ok(&["write", "/workspace/other", "x"]);
    let listed = home.json(&["approval", "list"]);
    assert_eq!(listed["approvals"][0]["stale"], true, "{listed:#}");
    assert!(home.ok(&["approval", "list"]).contains("pending, stale"));
    let said = home.avfs(&["exec", "--", "git", "push", "origin", "main"]);
    let said = String::from_utf8_lossy(&said.stderr).into_owned();
    assert!(
        said.contains("the smallest rule that would allow it"),
        "{said}"
    );
    assert!(
        said.contains(r#"    | command = ["git", "push", "origin", "main"]"#),
        "{said}"
    );
}

#[test]
fn the_newest_request_is_asked_about_first() {
    let home = home();
    guarded(&home);
    asks(&home, &["--", "sh", "older"]);
    asks(&home, &["--", "sh", "newer"]);
    let mut owner = Person::start(home.command(&["approval", "watch"]));
    owner.answer("Passphrase: ", PASSPHRASE);
    let shown = owner.wait_for("Let it run once?").to_owned();
    assert!(
        shown.contains("| newer") && !shown.contains("| older"),
        "{shown}"
    );
    owner.answer(" ", "");
    owner.wait_for("| older");
    owner.leave();
}
