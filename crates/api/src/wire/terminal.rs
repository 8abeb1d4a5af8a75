//! Terminals over WebSocket: the messages of a connection. Binary messages are bytes of the terminal, typed by the client
//! or written by the command. Text messages are the JSON of the types here.

use super::{CallId, Envelope, JobItem, Problem};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Opens a terminal for a new command. The first message is the command, as text: the fields of [`super::Exec`].
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TerminalOpen {}

/// Attaches to the terminal of a job. The job continues when the client disconnects.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TerminalAttach {
    /// The id of the job.
    pub job_id: u64,
    /// From this byte of its output on.
    #[serde(default)]
    pub offset: u64,
}

/// A text message of a client.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
pub enum TerminalControl {
    /// Resizes the terminal.
    Resize {
        /// Lines of the terminal.
        rows: u16,
        /// Characters in a line.
        columns: u16,
    },
    /// Sends a signal to every process of the command.
    Signal {
        /// Its number.
        signal: i32,
    },
}

/// A text message of the daemon. `result`, `end` and `error` are the last one of a connection.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum TerminalMessage {
    /// The command was taken.
    Started {
        /// The handle for [`super::ExecCancel`].
        call: CallId,
    },
    /// The command waits for approval.
    Waiting {
        /// The request for approval.
        approval_id: String,
    },
    /// A message of the client had no effect.
    Refused {
        /// Why.
        problem: Problem,
    },
    /// The command has ended, and all of its output was sent.
    Result {
        /// What became of it.
        envelope: Box<Envelope>,
    },
    /// The job has ended, and all of its output was sent.
    End {
        /// What became of it.
        job: Box<JobItem>,
    },
    /// The daemon cannot go on.
    Error {
        /// Why.
        problem: Problem,
    },
}

impl TerminalMessage {
    /// Whether nothing follows.
    pub fn is_last(&self) -> bool {
        match self {
            TerminalMessage::Started { .. }
            | TerminalMessage::Waiting { .. }
            | TerminalMessage::Refused { .. } => false,
            TerminalMessage::Result { .. }
            | TerminalMessage::End { .. }
            | TerminalMessage::Error { .. } => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_control_message_is_one_of_two() {
        let read = |text: &str| serde_json::from_str::<TerminalControl>(text);
        assert!(read(r#"{"type":"resize","rows":24,"columns":80}"#).is_ok());
        assert!(read(r#"{"type":"signal","signal":2}"#).is_ok());
        for wrong in [
            r#"{"type":"resize","rows":24}"#,
            r#"{"type":"resize","rows":-1,"columns":80}"#,
            r#"{"type":"resize","rows":70000,"columns":80}"#,
            r#"{"type":"resize","rows":24,"columns":80,"more":1}"#,
            r#"{"type":"signal"}"#,
            r#"{"type":"stop"}"#,
            r#"{"signal":2}"#,
            "2",
            "",
        ] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }
}
