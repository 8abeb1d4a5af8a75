//! What the tests of a project said, without times and places: two runs with the same results give the same.

use super::catalogue::Tally;

impl Tally {
    /// The results in what was printed, in order.
    pub fn of(self, printed: &str) -> Vec<String> {
        let lines = printed.lines().map(str::trim_end);
        match self {
            Tally::Cargo => lines.filter_map(cargo_line).collect(),
            Tally::Pytest => sorted(lines.filter_map(pytest_line).collect()),
            Tally::Node => lines.filter_map(node_line).collect(),
            Tally::Lines(begins) => {
                let counts = |line: &&str| begins.iter().any(|begin| line.starts_with(begin));
                sorted(lines.filter(counts).map(without_times).collect())
            }
        }
    }
}

/// Tests that run side by side end in any order.
fn sorted(mut lines: Vec<String>) -> Vec<String> {
    lines.sort();
    lines
}

/// `test result: ok. 5 passed; …; finished in 0.01s`, and `test NAME ... FAILED`.
fn cargo_line(line: &str) -> Option<String> {
    if let Some(result) = line.strip_prefix("test result:") {
        let (counts, _) = result.split_once("; finished in").unwrap_or((result, ""));
        return Some(counts.trim().to_owned());
    }
    let failed = line.starts_with("test ") && line.ends_with("FAILED");
    failed.then(|| line.to_owned())
}

/// `3 failed, 490 passed in 4.31s`, and `FAILED tests/x.py::y - why`.
fn pytest_line(line: &str) -> Option<String> {
    if line.starts_with("FAILED ") || line.starts_with("ERROR ") {
        let (test, _) = line.split_once(" - ").unwrap_or((line, ""));
        return Some(test.to_owned());
    }
    let (counts, time) = line.rsplit_once(" in ")?;
    let is_summary = counts.contains(" passed") || counts.contains(" failed");
    (is_summary && time.contains('s')).then(|| counts.trim_matches([' ', '=']).to_owned())
}

/// `# pass 3` and `not ok 2 - name`; `# duration_ms` differs each time.
fn node_line(line: &str) -> Option<String> {
    let counts = ["# tests", "# pass", "# fail", "# skipped", "not ok"];
    let is_result = counts.iter().any(|begin| line.starts_with(begin));
    is_result.then(|| line.to_owned())
}

/// Without words such as `1.5s`, `(34ms)` and `34 ms`.
fn without_times(line: &str) -> String {
    let words: Vec<&str> = line.split_whitespace().collect();
    let number = |word: &str| word.parse::<f64>().is_ok();
    let is_time = |at: usize| {
        let word = words[at].trim_matches(['(', ')', ',']);
        let digits = word.strip_suffix("ms").or(word.strip_suffix('s'));
        let is_unit = at > 0 && word == "ms" && number(words[at - 1]);
        let has_unit = words.get(at + 1) == Some(&"ms") && number(word);
        is_unit || has_unit || digits.is_some_and(number)
    };
    let kept = (0..words.len()).filter(|at| !is_time(*at));
    let kept: Vec<&str> = kept.map(|at| words[at]).collect();
    kept.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_do_not_count_and_failures_do() {
        let cargo = "test a ... ok\ntest b ... FAILED\ntest result: FAILED. 1 passed; 1 failed; finished in 0.25s\n";
        assert_eq!(
            Tally::Cargo.of(cargo),
            ["test b ... FAILED", "FAILED. 1 passed; 1 failed"]
        );
        let pytest =
            "..F\nFAILED tests/x.py::y - AssertionError: in 3s\n1 failed, 2 passed in 1.20s\n";
        assert_eq!(
            Tally::Pytest.of(pytest),
            ["1 failed, 2 passed", "FAILED tests/x.py::y"]
        );
        let node = "ok 1 - a\nnot ok 2 - b\n# tests 2\n# pass 1\n# fail 1\n# duration_ms 81.2\n";
        assert_eq!(
            Tally::Node.of(node),
            ["not ok 2 - b", "# tests 2", "# pass 1", "# fail 1"]
        );
        let others = Tally::Lines(&["not ok", "!"]);
        assert_eq!(
            others.of("ok 1 x 12 ms\nnot ok 2 y 34 ms\n! failed (1.5s)\n"),
            ["! failed", "not ok 2 y"]
        );
    }
}
