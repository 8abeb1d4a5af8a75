//! Tools with subcommands: package managers, forges, clouds, containers.

use std::sync::LazyLock;

use super::category::Category::{self, *};
use super::commands::Effects;
use super::git::may_mean;
use super::vocabulary::{Names, listed};
use crate::shell::Word;

/// Tools with the categories of their subcommands. A subcommand in no list is of the categories `otherwise`.
struct Tool {
    names: &'static str,
    /// Subcommands. `-` stands for no subcommand.
    publishing: &'static str,
    networked: &'static str,
    reading: &'static str,
    otherwise: &'static [Category],
}

/// All names of `TOOLS`.
pub(crate) const NAMES: &str = "\
    aws bun bundle cargo conda docker firebase flit fly flyctl gem gh glab go goreleaser \
    gradle hatch helm heroku hg jj kubectl lerna mamba mvn netlify npm nuget nvm pip pip3 \
    pipenv pipx pnpm podman poetry rustup semantic-release svn terraform tofu twine uv \
    vercel wrangler yarn";

const TOOLS: &[Tool] = &[
    Tool {
        names: "cargo",
        publishing: "dist login logout owner publish release yank",
        networked: "add audit binstall fetch install search update vendor",
        reading: "--list help locate-project pkgid",
        otherwise: &[Mutating],
    },
    Tool {
        names: "bun npm pnpm yarn",
        publishing: "access adduser deprecate dist-tag login owner publish team token unpublish",
        networked: "\
            add audit ci create dedupe dlx exec i in info init install it outdated ping \
            search up update upgrade view x",
        reading: "bin help list ls prefix root why",
        otherwise: &[Mutating],
    },
    Tool {
        names: "conda mamba pip pip3 pipenv pipx",
        publishing: "upload",
        networked: "create download index install lock run-pip search sync update upgrade wheel",
        reading: "check debug freeze help inspect list show",
        otherwise: &[Mutating],
    },
    Tool {
        names: "bundle flit hatch poetry uv",
        publishing: "publish self-publish",
        networked: "add install lock pip python self sync tool update",
        reading: "check help show tree",
        otherwise: &[Mutating],
    },
    Tool {
        names: "go",
        publishing: "",
        networked: "get install mod",
        reading: "doc env help list version",
        otherwise: &[Mutating],
    },
    Tool {
        names: "nvm rustup",
        publishing: "",
        networked: "component install self target toolchain update",
        reading: "current help ls show which",
        otherwise: &[Mutating],
    },
    Tool {
        names: "gem goreleaser helm lerna nuget semantic-release twine",
        publishing: "- owner publish push register release upload yank",
        networked: "fetch install pull repo update upgrade version",
        reading: "check environment help lint list template",
        otherwise: &[Mutating],
    },
    Tool {
        names: "gradle mvn",
        publishing: "deploy publish release:perform uploadArchives",
        networked: "",
        reading: "",
        otherwise: &[Mutating],
    },
    Tool {
        names: "docker podman",
        publishing: "login push",
        networked: "build buildx compose pull run search",
        reading: "",
        otherwise: &[Unknown],
    },
    Tool {
        names: "hg jj svn",
        publishing: "ci phase push",
        networked: "checkout clone co in incoming out outgoing pull up",
        reading: "annotate blame cat diff info log st status",
        otherwise: &[Mutating],
    },
    Tool {
        names: "aws heroku kubectl terraform tofu",
        publishing: "apply create delete destroy drain patch push replace rollout scale",
        networked: "",
        reading: "fmt help validate version",
        otherwise: &[Networked],
    },
    Tool {
        names: "firebase fly flyctl netlify vercel wrangler",
        publishing: "- alias deploy launch promote publish rollback",
        networked: "",
        reading: "help version",
        otherwise: &[Networked],
    },
];

/// Subcommands of `gh` and `glab` that only read.
const LOOKS: &[&str] = &[
    "list", "view", "status", "diff", "checks", "watch", "search",
];

/// Classifies a tool by its subcommand. `None` for other programs.
pub(crate) fn classify(name: &str, args: &[Word]) -> Option<Effects> {
    if name == "gh" || name == "glab" {
        return Some(forge(args));
    }
    static BY_NAME: LazyLock<Names<&Tool>> = LazyLock::new(|| {
        let names = |tool: &'static Tool| {
            let names = tool.names.split_ascii_whitespace();
            names.map(move |name| (name, tool))
        };
        TOOLS.iter().flat_map(names).collect()
    });
    let tool = *BY_NAME.get(name)?;
    let Some(subcommand) = subcommand(args) else {
        return Some(Effects {
            unknown_subcommand: true,
            ..Effects::of(&[Unknown, Networked])
        });
    };
    // `yarn` alone installs, `cargo` alone prints help.
    let subcommand = if subcommand == "-" && name == "yarn" {
        "install"
    } else {
        subcommand
    };
    let remote_commit = name == "svn" && subcommand == "commit"
        || name == "jj" && subcommand == "git" && args.iter().any(|w| w.text == "push");
    let unknown_subcommand = |word: &Word| {
        let mut publishing = tool.publishing.split_ascii_whitespace();
        word.text == subcommand && publishing.any(|meant| may_mean(word, meant))
    };
    Some(
        if remote_commit
            || listed(tool.publishing, subcommand)
            || possible_subcommands(args).any(|word| listed(tool.publishing, word))
            || args.iter().any(unknown_subcommand)
        {
            Effects::of(&[Publishing, Networked])
        } else if listed(tool.networked, subcommand) {
            Effects::of(&[Networked, Mutating])
        } else if listed(tool.reading, subcommand) || args.is_empty() {
            Effects::of(&[ReadOnly])
        } else if args
            .iter()
            .any(|w| w.text == "--publish" || tool_goal(tool, &w.text))
        {
            Effects::of(&[Publishing, Networked])
        } else {
            Effects::of(tool.otherwise)
        },
    )
}

/// Whether a word is a publishing goal of a build tool, which takes several: `mvn clean deploy`.
fn tool_goal(tool: &Tool, word: &str) -> bool {
    listed(tool.names, "mvn") && listed(tool.publishing, word)
}

/// The first argument that is not an option; `None` when it is known only at run time.
fn subcommand(args: &[Word]) -> Option<&str> {
    for word in args {
        if word.starts_unknown() {
            return None;
        }
        // `cargo +nightly build`. `aws s3` names the service first.
        if !word.text.starts_with(['-', '+']) || word.text == "--list" {
            return Some(&word.text);
        }
    }
    Some("-")
}

/// The words that may be the subcommand: an option before it may take the next word as its value.
fn possible_subcommands(args: &[Word]) -> impl Iterator<Item = &str> {
    let is_option = |word: &Word| word.text.starts_with(['-', '+']);
    let last = (0..args.len()).find(|&at| {
        let follows_option = at > 0 && args[at - 1].text.starts_with('-');
        !is_option(&args[at]) && !follows_option
    });
    let until = last.map_or(args.len(), |last| last + 1);
    let words = args[..until].iter().filter(move |word| !is_option(word));
    words.map(|word| word.text.as_str())
}

/// `gh` and `glab`: reading is networked, everything else publishes.
fn forge(args: &[Word]) -> Effects {
    let words: Vec<&str> = args
        .iter()
        .map(|w| w.text.as_str())
        .filter(|w| !w.starts_with('-'))
        .collect();
    let looks = match words.as_slice() {
        ["search" | "status" | "browse", ..] => true,
        ["repo", "clone" | "view" | "list", ..] => true,
        ["pr" | "mr", "checkout", ..] => true,
        [_, verb, ..] => LOOKS.contains(verb),
        _ => false,
    };
    match words.as_slice() {
        [] | ["help" | "version" | "completion", ..] => Effects::of(&[ReadOnly]),
        _ if looks => Effects::of(&[Networked]),
        _ => Effects::of(&[Publishing, Networked]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_tool_is_among_the_names() {
        for name in TOOLS
            .iter()
            .flat_map(|tool| tool.names.split_ascii_whitespace())
        {
            assert!(listed(NAMES, name), "{name}");
        }
        assert!(NAMES.split_ascii_whitespace().is_sorted());
    }
}
