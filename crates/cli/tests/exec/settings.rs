//! What a vault says about its commands.

use crate::AVFS;
use crate::{exec, text};
use avfs_testkit::with_vault;
use serde_json::json;

#[test]
fn settings_hold_for_every_command_until_unset() {
    with_vault(AVFS, |home| {
        let words = [
            "vault",
            "set",
            "env.WHO=vault",
            "env.SECRET=hush-5150",
            "memory=64m",
            "timeout=90s",
        ];
        let answer = home.json(&words);
        let said = json!({"env.WHO": "vault", "env.SECRET": "hush-5150", "memory": "67108864",
            "timeout": "90000ms"});
        assert_eq!(answer["settings"], said);
        assert_eq!(home.json(&["vault", "info"])["settings"], said);
        let envelope = home.json(&["exec", "--shell", "echo $WHO"]);
        assert_eq!(envelope["result"]["stdout"], "vault\n");
        assert_eq!(envelope["request"]["timeout"], json!({"millis": 90_000}));
        assert_eq!(envelope["result"]["limits"][0]["limit"], "memory");
        let over = exec(home, &["--env", "WHO=caller", "--shell", "echo $WHO"]);
        assert_eq!(text(&over), "caller\n");
        home.ok(&["vault", "fork", "v", "f"]);
        let forked = home.json(&["vault", "info", "f"]);
        assert_eq!(forked["settings"], said, "a fork says the same");
        home.ok(&["daemon", "stop"]);
        assert_eq!(
            home.json(&["vault", "info"])["settings"],
            said,
            "it is kept"
        );
        home.ok(&["vault", "unset", "memory", "env.WHO", "env.SECRET"]);
        assert_eq!(
            home.json(&["vault", "info"])["settings"],
            json!({"timeout": "90000ms"})
        );
        assert_eq!(text(&exec(home, &["--shell", "echo $WHO"])), "\n");
        let journal = home.json(&["audit", "--limit", "50"]).to_string();
        assert!(journal.contains("env.SECRET"), "{journal}");
        assert!(
            !journal.contains("hush-5150"),
            "values of variables stay out of the journal"
        );
    });
}

#[test]
fn nonsense_changes_nothing() {
    with_vault(AVFS, |home| {
        for wrong in [
            "color=red",
            "memory=lots",
            "cpus=nan",
            "profile=lax",
            "env.=x",
            "timeout=0",
        ] {
            let answer = home.json(&["vault", "set", "env.GOOD=1", wrong]);
            assert_eq!(answer["error"], "Invalid", "{wrong}: {answer}");
        }
        assert_eq!(home.json(&["vault", "set", "novalue"])["error"], "Invalid");
        assert_eq!(home.json(&["vault", "info"])["settings"], json!({}));
    });
}
