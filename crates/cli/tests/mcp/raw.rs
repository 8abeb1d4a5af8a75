//! A client that shares no code with any SDK: lines out, lines in.

use avfs_testkit::Home;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

pub struct Raw {
    pub child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    number: u64,
    /// Notifications that came while an answer was waited for.
    pub told: Vec<Value>,
}

impl Raw {
    /// A client of the handshake era.
    pub fn start(home: &Home, words: &[&str]) -> Raw {
        Raw::able(home, words, &json!({}))
    }

    /// A client of the handshake era that says what it can do.
    pub fn able(home: &Home, words: &[&str], capabilities: &Value) -> Raw {
        let mut raw = Raw::silent(home, words);
        let hello = raw.request(
            "initialize",
            json!({
                "protocolVersion": "2025-06-18",
                "capabilities": capabilities,
                "clientInfo": {"name": "raw", "version": "1"},
            }),
        );
        assert_eq!(hello["result"]["protocolVersion"], "2025-06-18", "{hello}");
        raw.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        raw
    }

    /// A client that has not said a word.
    pub fn silent(home: &Home, words: &[&str]) -> Raw {
        let words: Vec<&str> = ["mcp"].iter().chain(words).copied().collect();
        let mut command = home.command(&words);
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        Raw {
            input: child.stdin.take(),
            output: BufReader::new(child.stdout.take().unwrap()),
            child,
            number: 0,
            told: Vec::new(),
        }
    }

    /// Its input, for somebody else to write to.
    pub fn take_input(&mut self) -> ChildStdin {
        self.input.take().unwrap()
    }

    pub fn give_input(&mut self, input: ChildStdin) {
        self.input = Some(input);
    }

    pub fn send_line(&mut self, line: &[u8]) {
        let input = self.input.as_mut().unwrap();
        input.write_all(line).unwrap();
        input.write_all(b"\n").unwrap();
        input.flush().unwrap();
    }

    pub fn send(&mut self, message: &Value) {
        self.send_line(message.to_string().as_bytes());
    }

    /// Asks without waiting; gives the id.
    pub fn ask(&mut self, method: &str, params: Value) -> u64 {
        self.number += 1;
        let id = self.number;
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        id
    }

    /// The next message, whatever it is; none at the end.
    pub fn next(&mut self) -> Option<Value> {
        let mut line = String::new();
        let length = self.output.read_line(&mut line).unwrap();
        (length > 0).then(|| serde_json::from_str(&line).unwrap_or_else(|_| panic!("{line}")))
    }

    /// The answer to a request.
    pub fn answer(&mut self, id: u64) -> Value {
        loop {
            let message = self.next().expect("an answer");
            if message["id"] == id && message.get("method").is_none() {
                return message;
            }
            self.told.push(message);
        }
    }

    pub fn request(&mut self, method: &str, params: Value) -> Value {
        let id = self.ask(method, params);
        self.answer(id)
    }

    pub fn ask_tool(&mut self, name: &str, arguments: Value) -> u64 {
        self.ask("tools/call", json!({"name": name, "arguments": arguments}))
    }

    /// Calls a tool, which must do what it was asked for; gives the structured content.
    pub fn call(&mut self, name: &str, arguments: Value) -> Value {
        let id = self.ask_tool(name, arguments);
        let answer = self.answer(id);
        assert_ne!(answer["result"]["isError"], true, "{name}: {answer}");
        answer["result"]["structuredContent"].clone()
    }

    /// Calls a tool, which must refuse; gives what it says.
    pub fn refused(&mut self, name: &str, arguments: Value) -> Value {
        let id = self.ask_tool(name, arguments);
        let answer = self.answer(id);
        assert_eq!(answer["result"]["isError"], true, "{name}: {answer}");
        let text = answer["result"]["content"][0]["text"].as_str();
        serde_json::from_str(text.expect("a text")).unwrap()
    }

    /// Ends the input and waits for the program.
    pub fn close(mut self) -> i32 {
        drop(self.input.take());
        while self.next().is_some() {}
        self.child.wait().unwrap().code().unwrap_or(-1)
    }
}

impl Drop for Raw {
    fn drop(&mut self) {
        // It may be gone already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
