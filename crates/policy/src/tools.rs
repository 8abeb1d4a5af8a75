//! Tools with subcommands: package managers, forges, clouds, containers.

use crate::Category::{self, *};
use crate::commands::Known;
use crate::word::Word;

/// A tool, and what its subcommands are; the rest of them are `otherwise`.
struct Tool {
    names: &'static [&'static str],
    publishing: &'static [&'static str],
    networked: &'static [&'static str],
    reading: &'static [&'static str],
    otherwise: &'static [Category],
}

/// All names of `TOOLS`.
pub(crate) const NAMES: &[&str] = &[
    "aws",
    "bun",
    "bundle",
    "cargo",
    "conda",
    "docker",
    "firebase",
    "flit",
    "fly",
    "flyctl",
    "gem",
    "gh",
    "glab",
    "go",
    "goreleaser",
    "gradle",
    "hatch",
    "helm",
    "heroku",
    "hg",
    "jj",
    "kubectl",
    "lerna",
    "mamba",
    "mvn",
    "netlify",
    "npm",
    "nuget",
    "nvm",
    "pip",
    "pip3",
    "pipenv",
    "pipx",
    "pnpm",
    "podman",
    "poetry",
    "rustup",
    "semantic-release",
    "svn",
    "terraform",
    "tofu",
    "twine",
    "uv",
    "vercel",
    "wrangler",
    "yarn",
];

const TOOLS: &[Tool] = &[
    Tool {
        names: &["cargo"],
        publishing: &[
            "publish", "yank", "owner", "login", "logout", "release", "dist",
        ],
        networked: &[
            "add", "fetch", "install", "search", "update", "vendor", "binstall", "audit",
        ],
        reading: &["--list", "locate-project", "pkgid", "help"],
        otherwise: &[Mutating],
    },
    Tool {
        names: &["npm", "pnpm", "yarn", "bun"],
        publishing: &[
            "access",
            "adduser",
            "deprecate",
            "dist-tag",
            "login",
            "owner",
            "publish",
            "team",
            "token",
            "unpublish",
        ],
        networked: &[
            "add", "audit", "ci", "create", "dedupe", "dlx", "exec", "i", "in", "info", "init",
            "install", "it", "outdated", "ping", "search", "update", "up", "upgrade", "view", "x",
        ],
        reading: &["bin", "help", "list", "ls", "prefix", "root", "why"],
        otherwise: &[Mutating],
    },
    Tool {
        names: &["pip", "pip3", "pipx", "pipenv", "conda", "mamba"],
        publishing: &["upload"],
        networked: &[
            "create", "download", "index", "install", "lock", "run-pip", "search", "sync",
            "update", "upgrade", "wheel",
        ],
        reading: &[
            "check", "debug", "freeze", "help", "inspect", "list", "show",
        ],
        otherwise: &[Mutating],
    },
    Tool {
        names: &["uv", "poetry", "hatch", "flit", "bundle"],
        publishing: &["publish", "self-publish"],
        networked: &[
            "add", "install", "lock", "pip", "python", "self", "sync", "tool", "update",
        ],
        reading: &["check", "help", "show", "tree"],
        otherwise: &[Mutating],
    },
    Tool {
        names: &["go"],
        publishing: &[],
        networked: &["get", "install", "mod"],
        reading: &["doc", "env", "help", "list", "version"],
        otherwise: &[Mutating],
    },
    Tool {
        names: &["rustup", "nvm"],
        publishing: &[],
        networked: &[
            "component",
            "install",
            "self",
            "target",
            "toolchain",
            "update",
        ],
        reading: &["show", "which", "current", "ls", "help"],
        otherwise: &[Mutating],
    },
    Tool {
        names: &[
            "gem",
            "nuget",
            "twine",
            "goreleaser",
            "lerna",
            "semantic-release",
            "helm",
        ],
        publishing: &[
            "push", "yank", "upload", "release", "publish", "", "owner", "register",
        ],
        networked: &[
            "install", "update", "fetch", "pull", "repo", "upgrade", "version",
        ],
        reading: &["list", "check", "help", "environment", "lint", "template"],
        otherwise: &[Mutating],
    },
    Tool {
        names: &["mvn", "gradle"],
        publishing: &["deploy", "publish", "uploadArchives", "release:perform"],
        networked: &[],
        reading: &[],
        otherwise: &[Mutating],
    },
    Tool {
        names: &["docker", "podman"],
        publishing: &["push", "login"],
        networked: &["pull", "build", "buildx", "search", "compose", "run"],
        reading: &[],
        otherwise: &[Unknown],
    },
    Tool {
        names: &["hg", "jj", "svn"],
        publishing: &["push", "ci", "phase"],
        networked: &[
            "checkout", "clone", "co", "in", "incoming", "out", "outgoing", "pull", "up",
        ],
        reading: &[
            "annotate", "blame", "cat", "diff", "info", "log", "st", "status",
        ],
        otherwise: &[Mutating],
    },
    Tool {
        names: &["kubectl", "terraform", "tofu", "aws", "heroku"],
        publishing: &[
            "apply", "create", "delete", "destroy", "drain", "patch", "push", "replace", "rollout",
            "scale",
        ],
        networked: &[],
        reading: &["help", "version", "fmt", "validate"],
        otherwise: &[Networked],
    },
    Tool {
        names: &["fly", "flyctl", "vercel", "netlify", "wrangler", "firebase"],
        publishing: &[
            "", "deploy", "publish", "launch", "promote", "alias", "rollback",
        ],
        networked: &[],
        reading: &["help", "version"],
        otherwise: &[Networked],
    },
];

/// Subcommands of the forges' tools that only look.
const LOOKS: &[&str] = &[
    "list", "view", "status", "diff", "checks", "watch", "search",
];

/// Classifies a tool by its subcommand; `None` for every other program.
pub(crate) fn classify(name: &str, args: &[Word]) -> Option<Known> {
    if name == "gh" || name == "glab" {
        return Some(forge(args));
    }
    let tool = TOOLS.iter().find(|tool| tool.names.contains(&name))?;
    let Some(subcommand) = subcommand(args) else {
        return Some(Known::is(&[Unknown, Networked]));
    };
    // `yarn` alone installs, `cargo` alone prints help.
    let subcommand = if subcommand.is_empty() && name == "yarn" {
        "install"
    } else {
        subcommand
    };
    let remote_commit = name == "svn" && subcommand == "commit";
    Some(if remote_commit || tool.publishing.contains(&subcommand) {
        Known::is(&[Publishing, Networked])
    } else if tool.networked.contains(&subcommand) {
        Known::is(&[Networked, Mutating])
    } else if tool.reading.contains(&subcommand) || args.is_empty() {
        Known::is(&[ReadOnly])
    } else if args
        .iter()
        .any(|w| w.text == "--publish" || tool_goal(tool, &w.text))
    {
        Known::is(&[Publishing, Networked])
    } else {
        Known::is(tool.otherwise)
    })
}

/// Build tools take several goals: `mvn clean deploy`.
fn tool_goal(tool: &Tool, word: &str) -> bool {
    tool.names.contains(&"mvn") && tool.publishing.contains(&word)
}

/// The first argument that is not an option; `None` when it is known only at run time.
fn subcommand(args: &[Word]) -> Option<&str> {
    for word in args {
        if word.starts_unknown() {
            return None;
        }
        // `cargo +nightly build`; `aws s3` and its kin name the service first.
        if !word.text.starts_with(['-', '+']) || word.text == "--list" {
            return Some(&word.text);
        }
    }
    Some("")
}

/// `gh` and `glab`: looking is networked, the rest publishes.
fn forge(args: &[Word]) -> Known {
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
        [] | ["help" | "version" | "completion", ..] => Known::is(&[ReadOnly]),
        _ if looks => Known::is(&[Networked]),
        _ => Known::is(&[Publishing, Networked]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_tool_is_among_the_names() {
        for name in TOOLS.iter().flat_map(|tool| tool.names) {
            assert!(NAMES.contains(name), "{name}");
        }
        assert!(NAMES.is_sorted());
    }
}
