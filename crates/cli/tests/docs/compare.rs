//! Compares what a command printed with what its page says.

/// Stands for any text within a line, and for any lines where it is a line by itself.
const ANYTHING: &str = "…";

/// Whether the lines printed are those of the page.
pub fn fits(wanted: &[String], printed: &[&str]) -> bool {
    match (wanted.split_first(), printed.split_first()) {
        (None, None) => true,
        (Some((first, rest)), _) if first.trim() == ANYTHING => {
            fits(rest, printed) || !printed.is_empty() && fits(wanted, &printed[1..])
        }
        (Some((first, rest)), Some((line, others))) => line_fits(first, line) && fits(rest, others),
        _ => false,
    }
}

fn line_fits(wanted: &str, printed: &str) -> bool {
    let Some((before, after)) = wanted.split_once(ANYTHING) else {
        return wanted == printed;
    };
    let Some(rest) = printed.strip_prefix(before) else {
        return false;
    };
    let starts = rest.char_indices().map(|(at, _)| at).chain([rest.len()]);
    starts.into_iter().any(|at| line_fits(after, &rest[at..]))
}

#[test]
fn only_marked_parts_may_differ() {
    let fit = |wanted: &str, printed: &str| {
        let wanted: Vec<String> = wanted.lines().map(str::to_owned).collect();
        let printed: Vec<&str> = printed.lines().collect();
        fits(&wanted, &printed)
    };
    assert!(fit("", ""));
    assert!(fit("a\nb", "a\nb"));
    assert!(fit("a … c\n…\nz", "a 12 c\nx\ny\nz"));
    assert!(fit("…", ""));
    assert!(fit("took … ms, …", "took 3 ms, 1 file"));
    assert!(!fit("a", ""));
    assert!(!fit("", "a"));
    assert!(!fit("a\nb", "a"));
    assert!(!fit("a … c", "a 12 d"));
    assert!(!fit("…\nz", "a\nb"));
}
