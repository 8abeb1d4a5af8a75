//! The numbers of `docs/limits.md` are those of the code.

use avfs_api::bounds::*;

const DOCUMENT: &str = include_str!("../../../../../docs/limits.md");

fn size(bytes: usize) -> String {
    match bytes {
        _ if bytes.is_multiple_of(1 << 20) => format!("{} MiB", bytes >> 20),
        _ if bytes.is_multiple_of(1 << 10) => format!("{} KiB", bytes >> 10),
        _ => format!("{bytes} bytes"),
    }
}

fn number(number: usize) -> String {
    match number {
        0..1000 => number.to_string(),
        _ => format!("{},{:03}", number / 1000, number % 1000),
    }
}

#[test]
fn the_numbers_are_those_of_the_code() {
    let seconds = |time: std::time::Duration| format!("{} s", time.as_secs());
    let mut rows = vec![
        ("a request in JSON", size(BODY_MAX)),
        ("a request that carries a command", size(COMMAND_BODY_MAX)),
        ("all requests above 32 KiB together", size(BODIES_MAX)),
        ("the head of a request", size(HEAD_MAX)),
        ("one message to a terminal", size(TERMINAL_MESSAGE_MAX)),
        (
            "messages of input that a command at a terminal has not read",
            number(TERMINAL_UNREAD_MAX),
        ),
        ("one message of an MCP client", size(MCP_LINE_MAX)),
        ("calls of one MCP client under way", number(MCP_CALLS_MAX)),
        (
            "messages that an MCP client has not read",
            number(MCP_UNSENT_MAX),
        ),
        (
            "one word or variable of a command, shell text",
            size(ARGUMENT_MAX),
        ),
        ("all words and variables of a command", size(COMMAND_MAX)),
        (
            "a command in the journal and in a job's record",
            size(COMMAND_KEPT_MAX),
        ),
        ("output in an envelope, each stream", size(OUTPUT_LIMIT_MAX)),
        ("output in all envelopes together", size(OUTPUT_HELD_MAX)),
        ("content in JSON", size(CONTENT_MAX as usize)),
        (
            "names, paths, changes, versions in one answer",
            number(LISTED_MAX),
        ),
        ("these names and paths together", size(LISTED_BYTES_MAX)),
        (
            "changes in an envelope, unless `--changes-limit` says how many",
            number(CHANGES_LISTED),
        ),
        ("these changes as JSON, about", size(CHANGES_BYTES)),
        ("entries of the journal in one answer", number(JOURNAL_MAX)),
        ("a patch", size(PATCH_MAX)),
        ("lines of one search", size(GREP_BYTES_MAX)),
        ("one line that is searched", size(LINE_MAX)),
        ("lines around a match", number(CONTEXT_MAX)),
        ("a file that `edit` changes", size(EDIT_MAX as usize)),
        ("unread answers above 32 KiB together", size(ANSWERS_MAX)),
        ("connections", number(CONNECTIONS_MAX)),
        ("connections of one process", number(CONNECTIONS_OF_ONE_MAX)),
        (
            "connections from the network",
            number(REMOTE_CONNECTIONS_MAX),
        ),
        (
            "connections from one address",
            number(REMOTE_CONNECTIONS_OF_ONE_MAX),
        ),
        (
            "requests of a key per second, unless it has its own rate",
            number(REQUESTS_PER_SECOND as usize),
        ),
        (
            "requests without a valid credential from one address per second",
            number(FAILURES_PER_SECOND as usize),
        ),
        ("headers of a request", number(HEADERS_MAX)),
        ("API keys", number(KEYS_MAX)),
        (
            "answers kept for idempotency keys",
            number(KEPT_ANSWERS_MAX),
        ),
        ("answers kept for one caller", number(KEPT_ANSWERS_OF_ONE)),
        (
            "a request's head, or an idle connection",
            seconds(HEAD_TIME),
        ),
        ("a request in JSON to arrive", seconds(BODY_TIME)),
        ("a pause within a stream", seconds(PAUSE_TIME)),
        (
            "listening to what was refused, so that its sender reads why",
            seconds(DRAIN_TIME),
        ),
        (
            "an answer left unread (events may wait)",
            seconds(UNREAD_TIME),
        ),
        ("waiting for a turn", seconds(TURN_TIME)),
    ];
    let lanes = LANES.map(|lane| format!("{} | {} | {}", lane.total, lane.agents, lane.one));
    rows.extend(LANES.iter().map(|lane| lane.name).zip(lanes));
    for (what, most) in rows {
        let row = format!("| {what} | {most} |");
        assert!(DOCUMENT.contains(&row), "docs/limits.md lacks: {row}");
    }
}
