//! Whether a hidden command is judged as strictly as the plain command.

use std::sync::LazyLock;

use avfs_policy::{Action, Network, Rules};

use crate::support::{NETWORKS, argv as plain, rules, shell, shell_under};

/// Rules that deny commands that are known only when they run.
static NOTHING_DYNAMIC: LazyLock<Rules> =
    LazyLock::new(|| rules("[[rule]]\ncategory = \"dynamic_command\"\naction = \"deny\"\n"));

/// Whether the text is a dynamic command: it runs commands that are known only when they run.
pub fn is_dynamic(text: &str) -> bool {
    let decision = shell_under(&NOTHING_DYNAMIC, text, Network::None);
    decision.parts.iter().any(|part| part.rule == "user.toml:1")
}

/// Why the verdict on a text is too mild, given a command that it runs. `None` when it is not.
///
/// There are two exceptions, as docs/policy.md says. A dynamic command needs approval if there is a network, and only
/// a checkpoint if there is none. A dynamic command, and text that cannot be parsed, is not of the category
/// `host_escape_risk`.
pub fn milder(text: &str, argv: &[&str], network: Network) -> Option<String> {
    let open = plain(argv, network);
    let hidden = shell(text, network);
    let unseen = match network {
        Network::None => Action::AllowWithCheckpoint,
        Network::Listed | Network::Host => Action::RequireApproval,
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

/// Whether a text avoids a rule that denies the program or command that it runs.
pub fn passes_rule(text: &str, command: &[&str]) -> bool {
    let rules = rules(&format!(
        "[[rule]]\ncommand = {command:?}\naction = \"deny\"\n"
    ));
    let decision = shell_under(&rules, text, Network::None);
    decision.action != Action::Deny && decision.rule != "default:unparseable"
}

/// Everything that is too mild about the verdict on a text, given a command that it runs.
pub fn complaints(text: &str, argv: &[&str]) -> Vec<String> {
    let milder = NETWORKS
        .into_iter()
        .filter_map(|network| milder(text, argv, network));
    let passes = passes_rule(text, &argv[..1])
        .then(|| format!("{text}\n  passes a rule that denies {}", argv[0]));
    milder.chain(passes).collect()
}

/// The texts, made of templates with a command for `CMD`, whose verdict is weaker than that on the command. The only
/// exception is text that cannot be parsed, which has no categories to compare.
pub fn weaker(templates: &[&str], command: &str) -> Vec<String> {
    let mut weaker = Vec::new();
    for network in NETWORKS {
        let open = shell(command, network);
        for template in templates {
            let text = template.replace("CMD", command);
            let hidden = shell(&text, network);
            let fewer = hidden.rule != "default:unparseable"
                && !open.categories.is_subset(hidden.categories);
            if hidden.action < open.action || fewer {
                let (action, categories) = (hidden.action, hidden.categories);
                weaker.push(format!("{text:?}, {network:?}: {action}, {categories:?}"));
            }
        }
    }
    weaker
}
