//! Variables from a file with one `NAME=VALUE` per line, like `.env`.

use crate::error::{Error, Result};
use avfs_api::wire::Exec;
use std::path::{Path, PathBuf};

/// Adds the variables of files; `--env` and earlier files take precedence.
pub fn add(request: &mut Exec, files: &[PathBuf]) -> Result<()> {
    for file in files {
        let text = std::fs::read_to_string(file).map_err(|error| Error::Invalid {
            text: format!("{} cannot be read: {error}", file.display()),
            hint: None,
        })?;
        for (name, value) in parse(&text, file)? {
            if !request.env_b64.contains_key(&name) {
                request.env.entry(name).or_insert(value);
            }
        }
    }
    Ok(())
}

fn parse(text: &str, file: &Path) -> Result<Vec<(String, String)>> {
    let mut variables = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let line = line.trim();
        let line = line.strip_prefix("export ").unwrap_or(line);
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let pair = line.split_once('=');
        let pair = pair.map(|(name, value)| (name.trim(), unquoted(value.trim())));
        match pair.filter(|(name, _)| !name.is_empty()) {
            // Of two lines for one name the later one wins, as in a shell.
            Some((name, value)) => {
                variables.retain(|(earlier, _)| earlier != name);
                variables.push((name.to_owned(), value.to_owned()));
            }
            None => {
                return Err(Error::Invalid {
                    text: format!("{}:{}: not NAME=VALUE", file.display(), number + 1),
                    hint: Some("lines that begin with # are ignored".into()),
                });
            }
        }
    }
    Ok(variables)
}

/// Removes quotes around a value.
fn unquoted(value: &str) -> &str {
    let within = |quote: char| value.strip_prefix(quote)?.strip_suffix(quote);
    within('"').or_else(|| within('\'')).unwrap_or(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_variables() {
        let text = "# about\nA=1\n\nexport B = \"two words\"\nC='x=y'\nA=2\nD=\n";
        let found = parse(text, Path::new("f")).unwrap();
        let found: Vec<_> = found.iter().map(|(k, v)| format!("{k}={v}")).collect();
        assert_eq!(found, ["B=two words", "C=x=y", "A=2", "D="]);
        let wrong = parse("A=1\nnonsense\n", Path::new("f")).unwrap_err();
        assert!(wrong.to_string().contains("f:2"), "{wrong}");
    }
}
