//! Options on a command line.

use crate::shell::Word;

/// Whether the word is one of the options, in any spelling: `-o`, `-ofile`, `-no`, `--output=x`, `--outp`.
pub(crate) fn is_option(word: &Word, options: &[&str]) -> bool {
    let text = word.text.as_str();
    if let Some(long) = text.strip_prefix("--") {
        let name = long.split('=').next().unwrap_or_default();
        let abbreviates = |option: &&str| {
            option
                .strip_prefix("--")
                .is_some_and(|o| o == name || name.len() > 2 && o.starts_with(name))
        };
        return options.iter().any(abbreviates);
    }
    let Some(cluster) = text.strip_prefix('-').filter(|c| !c.is_empty()) else {
        return false;
    };
    options
        .iter()
        .filter_map(|o| o.strip_prefix('-'))
        .any(|option| {
            let mut letters = option.chars();
            match (letters.next(), letters.next()) {
                (Some(letter), None) if letter != '-' => cluster.contains(letter),
                _ => cluster == option,
            }
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_seen_in_clusters_and_abbreviations_only() {
        let is = |text: &str, options: &[&str]| is_option(&Word::fixed(text), options);
        assert!(is("-rf", &["-r"]));
        assert!(is("-oout", &["-o"]));
        assert!(is("--output=x", &["--output"]));
        assert!(is("--outp", &["--output"]));
        assert!(!is("my-report.txt", &["-r"]));
        assert!(!is("--", &["--output"]));
        assert!(!is("-", &["-o"]));
    }
}
