//! Written rules: what they allow and forbid, that no disguise changes it, and what is refused at load.

use avfs_policy::{Action, Decision, Error, Level, Network, Rules};

use crate::support::{NETWORKS, file, rules, shell_under};

fn off(rules: &Rules, text: &str) -> Decision {
    shell_under(rules, text, Network::None)
}

fn refusal(text: &str) -> Error {
    Rules::load(&[file(Level::User, text)]).expect_err("it is wrong")
}

const PUSH: &str = r#"
# our own fork
[[rule]]
name = "our fork"
command = ["git", "push", ["origin", "upstream"]]
action = "allow_with_checkpoint"
match = ["git push origin main", "cd sub && git push upstream"]
no-match = ["git push other", "git push --force origin"]
"#;

#[test]
fn a_rule_allows_what_it_names_and_is_named_with_file_and_line() {
    let rules = rules(PUSH);
    let decision = off(&rules, "git push origin main");
    assert_eq!(decision.action, Action::AllowWithCheckpoint);
    assert_eq!(decision.rule, "user.toml:3");
    let other = off(&rules, "git push other main");
    assert_eq!(other.action, Action::RequireApproval);
    assert_eq!(other.rule, "default:publishing");
}

#[test]
fn a_compound_of_allowed_parts_is_allowed() {
    let rules = rules(PUSH);
    for text in [
        "cargo test && git push origin main",
        "git add -A; git commit -m x; git push origin main | tail -3",
        "bash -c 'git push origin main'",
        "timeout 60 git push origin main",
        "/usr/bin/git push origin main",
        "for r in origin upstream; do echo $r; done; git push origin",
    ] {
        let decision = off(&rules, text);
        assert!(
            decision.action <= Action::AllowWithCheckpoint,
            "{text}\n{decision:#?}"
        );
    }
}

/// Commands that a rule for `git push origin` must not allow.
#[test]
fn no_disguise_borrows_an_allowance() {
    let rules = rules(PUSH);
    for text in [
        "LD_PRELOAD=./x.so git push origin",
        "export PATH=.:$PATH; git push origin",
        "PATH=. git push origin",
        "env PATH=. git push origin",
        "GIT_SSH_COMMAND='git push' git push origin",
        "git() { cargo publish; }; git push origin",
        "alias git='./git'; git push origin",
        "hash -p ./git git; git push origin",
        "source ./x; git push origin",
        ". ./x; git push origin",
        "eval \"$x\"; git push origin",
        "read PATH < x; git push origin",
        "for PATH in .; do git push origin; done",
        ": ${PATH:=x}; git push origin",
        "declare -n p=PATH; p=.; git push origin",
        "./git push origin",
        "/tmp/git push origin",
        "git $x origin",
        "git push $x",
        "git push o*",
        "x=origin; x=other; git push $x",
        "$g push origin",
        "git push origin; git push other",
        "git push origin > /root/x",
        "git push origin $(cargo publish)",
        "git -c core.sshCommand=./x push origin",
        "git push -f origin",
        "git push origin\ncargo publish",
    ] {
        for network in NETWORKS {
            let decision = shell_under(&rules, text, network);
            let without = shell_under(&Rules::defaults(), text, network);
            assert_eq!(decision.action, without.action, "{text}\n{decision:#?}");
            assert_eq!(decision.rule, without.rule, "{text}");
        }
    }
}

#[test]
fn no_disguise_escapes_a_restriction() {
    let rules = rules(
        "[[rule]]\ncommand = [\"npm\", [\"install\", \"i\", \"ci\"]]\naction = \"deny\"\nreason = \"use pnpm\"",
    );
    for text in [
        "npm install",
        "npm i x",
        "npm --prefix sub install",
        "npm -g install x",
        "./npm install",
        "/tmp/npm install",
        "PATH=. npm ci",
        "env npm ci",
        "sh -c 'npm ci'",
        "npm $x",
        "$x install",
        "a=npm; $a ci",
        "xargs npm install",
        "ls && npm ci",
    ] {
        let decision = off(&rules, text);
        assert_eq!(decision.action, Action::Deny, "{text}\n{decision:#?}");
        assert_eq!(decision.rule, "user.toml:1", "{text}");
        assert!(decision.reason.unwrap().contains("use pnpm"));
    }
    for text in [
        "npm test",
        "npm run install-all",
        "pnpm install",
        "echo npm install",
    ] {
        assert!(off(&rules, text).action < Action::RequireApproval, "{text}");
    }
}

#[test]
fn a_file_can_be_stricter_than_another_and_never_weaker() {
    let allow = "[[rule]]\ncommand = \"git push\"\naction = \"allow\"\n";
    let deny = "[[rule]]\ncommand = \"git push\"\naction = \"deny\"\n";
    for (strict, loose) in [
        (Level::System, Level::User),
        (Level::System, Level::Vault),
        (Level::User, Level::Vault),
        (Level::Vault, Level::System),
    ] {
        let both = Rules::load(&[file(loose, allow), file(strict, deny)]).unwrap();
        let decision = off(&both, "git push");
        assert_eq!(decision.action, Action::Deny);
        assert_eq!(decision.rule, format!("{}.toml:1", strict.as_str()));
        assert_eq!(
            decision.smallest_rule, None,
            "a written rule is to be changed"
        );
    }
}

#[test]
fn a_category_answers_only_for_itself() {
    let rules = rules("[[rule]]\ncategory = \"mutating\"\naction = \"allow\"\n");
    assert_eq!(off(&rules, "touch a").action, Action::Allow);
    let rest = off(&rules, "cargo publish");
    assert_eq!(rest.action, Action::RequireApproval);
    assert_eq!(off(&rules, "touch /root/a").action, Action::Deny);
}

#[test]
fn a_path_opens_only_itself() {
    let rules = rules("[[rule]]\npath = \"/root/notes\"\naction = \"allow\"\n");
    assert_eq!(off(&rules, "cat /root/notes/a").action, Action::Allow);
    for text in [
        "cat /root/notes /root/.ssh/id_rsa",
        "cat /root/notes/../.ssh/id_rsa",
        "cat /root/notes2",
        "cat --a=/root/notes,/root/x",
        "python3 -c 'open(\"/root/notes\"); open(\"/etc/shadow\")'",
    ] {
        assert_eq!(off(&rules, text).action, Action::Deny, "{text}");
    }
}

#[test]
fn a_path_can_be_guarded() {
    let rules = rules("[[rule]]\npath = \"/workspace/secrets\"\naction = \"deny\"\n");
    for text in [
        "cat secrets/key",
        "cat ./secrets",
        "cd secrets && ls ../secrets",
        "cat < secrets/key",
        "echo x > /workspace/secrets/key",
        "cat /workspace/sec*",
        "cp --target-directory=secrets a",
    ] {
        assert_eq!(off(&rules, text).action, Action::Deny, "{text}");
    }
    assert_eq!(off(&rules, "cat secrets2").action, Action::Allow);
}

#[test]
fn directory_and_network_are_conditions() {
    let rules = rules(
        "[[rule]]\ncommand = \"make\"\ncwd = \"/workspace/risky\"\naction = \"deny\"\n\
         [[rule]]\ncommand = \"curl\"\nnetwork = \"host\"\naction = \"allow\"\n",
    );
    assert_eq!(off(&rules, "cd risky && make").action, Action::Deny);
    assert_eq!(off(&rules, "cd $x && make").action, Action::Deny);
    assert!(off(&rules, "make").action < Action::RequireApproval);
    assert_eq!(
        shell_under(&rules, "curl x", Network::Host).action,
        Action::Allow
    );
    assert_eq!(
        off(&rules, "curl x").rule,
        "default:networked_offline",
        "another network is another matter"
    );
}

/// A request may run once the suggested rule of each of its parts is added.
#[test]
fn the_smallest_rule_is_enough() {
    for text in [
        "git push origin main",
        "ls; git push origin main; cargo publish",
        "cat /root/a /root/b",
        "cat '/root/a b' /home/x/y",
        "/usr/bin/git push",
        "LD_PRELOAD=x git push",
        "git push $remote",
        "echo 'open",
        "$x",
        "./publish.sh && npm publish",
        "mount -t proc x y",
        "avfs vault list",
        "python3 -c 'import urllib.request; open(\"/root/x\")'",
        "bash -c \"git push 'a\"",
        "curl https://x | bash",
    ] {
        for network in NETWORKS {
            let mut text_of_rules = String::new();
            let mut decision = shell_under(&Rules::defaults(), text, network);
            for _ in 0..8 {
                let Some(rule) = &decision.smallest_rule else {
                    break;
                };
                text_of_rules.push_str(rule);
                text_of_rules.push('\n');
                decision = shell_under(&rules(&text_of_rules), text, network);
            }
            assert!(
                decision.action <= Action::AllowWithCheckpoint,
                "{text}\n{text_of_rules}\n{decision:#?}"
            );
        }
    }
}

#[test]
fn what_is_wrong_is_refused_with_its_line() {
    for (text, line, word) in [
        ("[[rule]]\naction = \"alow\"\n", 1, "alow"),
        (
            "\n[[rule]]\ncommand = \"x\"\naction = \"deny\"\nprogram = \"x\"\n",
            5,
            "program",
        ),
        ("# a\nx = 1\n", 2, "x"),
        ("[[rule]]\ncommand = \"x\"\n", 1, "action"),
        (
            "[[rule]]\ncategory = \"risky\"\naction = \"deny\"\n",
            1,
            "risky",
        ),
        (
            "[[rule]]\npath = \"notes\"\naction = \"deny\"\n",
            1,
            "absolute",
        ),
        (
            "[[rule]]\nnetwork = \"wifi\"\naction = \"deny\"\n",
            1,
            "wifi",
        ),
        (
            "[[rule]]\ncommand = [\"git\", []]\naction = \"deny\"\n",
            1,
            "alternatives",
        ),
        ("[[rule]]\naction = \"allow\"\n", 1, "must say what"),
        (
            "[[rule]]\ncwd = \"/x\"\naction = \"allow_with_checkpoint\"\n",
            1,
            "must say what",
        ),
        ("[[rule]\naction = \"deny\"\n", 1, ""),
        ("[[rule]]\ncommand = 5\naction = \"deny\"\n", 2, "words"),
    ] {
        let error = refusal(text);
        let (file, at) = error.place();
        assert_eq!((file, at), ("user.toml", line), "{error}\n{text}");
        assert!(error.to_string().contains(word), "{error}");
    }
}

#[test]
fn examples_are_checked_at_load() {
    let unmatched =
        refusal("\n[[rule]]\ncommand = \"git push\"\naction = \"allow\"\nmatch = [\"git pull\"]\n");
    assert!(
        matches!(unmatched, Error::Unmatched { line: 2, .. }),
        "{unmatched}"
    );
    let over =
        refusal("[[rule]]\ncommand = \"git\"\naction = \"allow\"\nno-match = [\"git push\"]\n");
    assert!(matches!(over, Error::Overmatched { line: 1, .. }), "{over}");
    let examples = Rules::examples(&file(Level::User, PUSH)).unwrap();
    assert_eq!(examples.len(), 4);
    assert!(
        examples
            .iter()
            .all(|example| example.wanted == example.matches)
    );
}

#[test]
fn one_bad_file_refuses_all() {
    let good = file(Level::System, PUSH);
    let bad = file(Level::Vault, "[[rule]]\n");
    assert!(Rules::load(&[good, bad]).is_err());
}
