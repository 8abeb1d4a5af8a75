//! Rules for every tracked text: nothing of any one machine or package registry is in it.

use std::path::Path;

/// Split in two, so that this file does not contain what it looks for.
const FORBIDDEN: [(&str, &str); 6] = [
    ("/wor", "k/"),
    ("/tmp/", "wt"),
    ("/tmp/", "tgt"),
    ("index.crates", ".io"),
    ("files.python", "hosted"),
    ("registry.npm", "js"),
];

pub fn check(top: &Path, files: &[String]) -> Vec<String> {
    let mut complaints = Vec::new();
    for file in files {
        let Ok(text) = std::fs::read_to_string(top.join(file)) else {
            continue;
        };
        for (number, line) in text.lines().enumerate() {
            for (head, tail) in FORBIDDEN {
                let word = format!("{head}{tail}");
                // `/workspace/` is a path of every vault; a machine's is shorter.
                if line.replace("/workspace", "").contains(&word) {
                    complaints.push(format!("{file}:{}: mentions {word}", number + 1));
                }
            }
        }
    }
    complaints
}
