//! When a verdict on hidden commands is as strict as that on the plain ones, and the exceptions from it.

use std::sync::LazyLock;

use avfs_policy::{
    Action, CommandForm, Decision, Level, Network, Request, RuleFile, Rules, decide,
};

fn rules(text: &str) -> Rules {
    let file = RuleFile {
        level: Level::User,
        name: "rules".into(),
        text: text.into(),
    };
    Rules::load(&[file]).expect("they are right")
}

/// Rules that forbid whatever is known only when it runs.
static NOTHING_DYNAMIC: LazyLock<Rules> =
    LazyLock::new(|| rules("[[rule]]\ncategory = \"dynamic_command\"\naction = \"deny\"\n"));

fn asked(rules: &Rules, text: &str, network: Network) -> Decision {
    let request = Request {
        command: CommandForm::Shell(text),
        cwd: b"/workspace",
        network,
        env: &[],
    };
    decide(rules, &request)
}

fn plain(rules: &Rules, argv: &[&str], network: Network) -> Decision {
    let argv: Vec<Vec<u8>> = argv.iter().map(|word| word.as_bytes().to_vec()).collect();
    let request = Request {
        command: CommandForm::Argv(&argv),
        cwd: b"/workspace",
        network,
        env: &[],
    };
    decide(rules, &request)
}

/// Whether the text is known to run commands that nobody can see before.
pub fn is_dynamic(text: &str) -> bool {
    let decision = asked(&NOTHING_DYNAMIC, text, Network::None);
    decision.parts.iter().any(|part| part.rule == "rules:1")
}

/// Why the verdict on a text is too mild, given a command that it runs; `None` when it is not.
///
/// There are two exceptions, which docs/policy.md names:
/// - what is known only when it runs asks where there is a network, and gets a checkpoint where there is none;
/// - what is known only when it runs, or cannot be parsed, is not taken for a reach for the host.
pub fn milder(text: &str, argv: &[&str], network: Network) -> Option<String> {
    let defaults = Rules::defaults();
    let open = plain(&defaults, argv, network);
    let hidden = asked(&defaults, text, network);
    let unseen = match network {
        Network::None => Action::AllowWithCheckpoint,
        Network::Host => Action::RequireApproval,
    };
    let excused =
        hidden.rule == "default:unparseable" || hidden.action >= unseen && is_dynamic(text);
    let fewer = !open.categories.is_subset(hidden.categories);
    ((hidden.action < open.action || fewer) && !excused).then(|| {
        let parts: Vec<_> = hidden
            .parts
            .iter()
            .map(|part| (&part.text, &part.rule))
            .collect();
        format!(
            "{text}\n  {argv:?} with network {network:?}: {} against {}, {parts:?}",
            hidden.action, open.action
        )
    })
}

/// Whether a rule that denies this program, or this command, is passed by a text that runs it.
pub fn passes_rule(text: &str, command: &[&str]) -> bool {
    let rules = rules(&format!(
        "[[rule]]\ncommand = {command:?}\naction = \"deny\"\n"
    ));
    let decision = asked(&rules, text, Network::None);
    decision.action != Action::Deny && decision.rule != "default:unparseable"
}
