//! Prompts: the ways of working that pay, ready to be used.

use rmcp::model::{Prompt, PromptArgument, PromptMessage, Role};

/// One way of working.
struct Pattern {
    name: &'static str,
    about: &'static str,
    text: &'static str,
}

const PATTERNS: &[Pattern] = &[
    Pattern {
        name: "try-safely",
        about: "Try something that may break things, in a fork",
        text: "Work on this in a fork: {task}\n\n1. vault {\"action\":\"fork\",\"name\":\"try-…\"} makes one.\n\
            2. Give \"vault\":\"try-…\" with every call from then on.\n\
            3. checkpoint {\"action\":\"diff\",\"vault\":\"try-…\",\"patch\":true} shows what came of it.\n\
            4. Tell me the result and what changed; delete the fork if it is of no use.",
    },
    Pattern {
        name: "checkpoint-loop",
        about: "Change, test, and go back when it got worse",
        text: "Work on this in small steps: {task}\n\nBefore each step checkpoint {\"action\":\"save\",\"name\":\"step-N\"}; \
            then change, then run the tests with exec. Where a step made it worse, checkpoint \
            {\"action\":\"restore\",\"name\":\"step-N\"} and try something else. Say at the end which steps were kept.",
    },
    Pattern {
        name: "hypotheses",
        about: "Try several ideas at once, each in its own fork",
        text: "Try at least three different ideas for this, each in a fork of its own: {task}\n\nFork once for each, run them as \
            background jobs (exec with \"background\":true), wait for all, compare exit codes and diffs, and tell me which one \
            to keep and why. Delete the other forks.",
    },
    Pattern {
        name: "background-build",
        about: "Start something long and go on meanwhile",
        text: "Run this in the background and go on meanwhile: {task}\n\nexec with \"background\":true gives a job_id; job \
            {\"action\":\"poll\"} shows its output from the offsets that the last answer gave. The job goes on when this client ends.",
    },
];

pub(crate) fn listed() -> Vec<Prompt> {
    let task = || {
        let task = PromptArgument::new("task").with_description("what is to be done");
        vec![task.with_required(true)]
    };
    let prompts = PATTERNS.iter();
    prompts
        .map(|pattern| Prompt::new(pattern.name, Some(pattern.about), Some(task())))
        .collect()
}

/// The prompt of that name for a task; none where there is no such prompt.
pub(crate) fn get(name: &str, task: &str) -> Option<(String, PromptMessage)> {
    let pattern = PATTERNS.iter().find(|pattern| pattern.name == name)?;
    let text = pattern.text.replace("{task}", task);
    let message = PromptMessage::new_text(Role::User, text);
    Some((pattern.about.to_owned(), message))
}
