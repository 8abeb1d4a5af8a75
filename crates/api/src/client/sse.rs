//! Server-sent events, read as they arrive in pieces of any size.

/// One event.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(crate) struct Message {
    pub event: String,
    pub data: String,
}

/// The received part of an incomplete event.
#[derive(Default)]
pub(crate) struct Parser {
    line: Vec<u8>,
    message: Message,
}

impl Parser {
    /// Takes more bytes and returns the events that they complete.
    pub fn push(&mut self, bytes: &[u8]) -> Vec<Message> {
        let mut messages = Vec::new();
        let mut rest = bytes;
        while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
            self.line.extend_from_slice(&rest[..end]);
            rest = &rest[end + 1..];
            let line = std::mem::take(&mut self.line);
            if let Some(message) = self.take_line(&line) {
                messages.push(message);
            }
        }
        self.line.extend_from_slice(rest);
        messages
    }

    fn take_line(&mut self, line: &[u8]) -> Option<Message> {
        let line = String::from_utf8_lossy(line);
        let line = line.strip_suffix('\r').unwrap_or(&line);
        if line.is_empty() {
            let message = std::mem::take(&mut self.message);
            return (message != Message::default()).then_some(message);
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "event" => self.message.event = value.to_owned(),
            "data" => {
                if !self.message.data.is_empty() {
                    self.message.data.push('\n');
                }
                self.message.data.push_str(value);
            }
            // Comments keep a connection alive, and other fields are not used here.
            _ => {}
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STREAM: &str =
        ": hello\n\nevent: stdout\ndata: {\"a\":1}\n\nevent: two\r\ndata: x\r\ndata:y\r\n\r\n";

    fn expected() -> Vec<Message> {
        vec![
            Message {
                event: "stdout".into(),
                data: "{\"a\":1}".into(),
            },
            Message {
                event: "two".into(),
                data: "x\ny".into(),
            },
        ]
    }

    #[test]
    fn events_come_whole_however_they_are_cut() {
        for size in 1..STREAM.len() {
            let mut parser = Parser::default();
            let messages: Vec<_> = STREAM
                .as_bytes()
                .chunks(size)
                .flat_map(|piece| parser.push(piece))
                .collect();
            assert_eq!(messages, expected(), "in pieces of {size}");
        }
    }

    #[test]
    fn an_unfinished_event_is_not_told() {
        assert_eq!(Parser::default().push(b"event: x\ndata: y\n"), vec![]);
    }
}
