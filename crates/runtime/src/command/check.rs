//! Refuses commands that no kernel would start, or no report could hold.

use crate::bounds::{ARGUMENT_MAX, COMMAND_MAX, LISTED_MAX, OUTPUT_LIMIT_MAX, PER_STRING};
use crate::command::call::ExecCommand;
use crate::command::options::ExecOptions;
use crate::{Error, Result};

/// Refuses a command that no kernel would start, before anything is made of it.
pub(crate) fn check_command(command: &ExecCommand, env: &[(Vec<u8>, Vec<u8>)]) -> Result<()> {
    check_strings(command, env)?;
    let words: Vec<usize> = match command {
        ExecCommand::Argv(argv) => argv.iter().map(Vec::len).collect(),
        ExecCommand::Shell(text) => vec![text.len()],
    };
    let variables = env.iter().map(|(name, value)| name.len() + 1 + value.len());
    let mut total = 0;
    for length in words.into_iter().chain(variables) {
        if length > ARGUMENT_MAX {
            return Err(Error::Invalid {
                what: "command",
                reason: format!(
                    "one of its words or variables has {length} bytes, and {ARGUMENT_MAX} are the most"
                ),
            });
        }
        total += length + PER_STRING;
    }
    match total > COMMAND_MAX {
        true => Err(Error::Invalid {
            what: "command",
            reason: format!(
                "it has {total} bytes with its variables, and {COMMAND_MAX} are the most"
            ),
        }),
        false => Ok(()),
    }
}

/// Refuses what no program can be given: strings end at their first NUL, names of variables at `=`.
fn check_strings(command: &ExecCommand, env: &[(Vec<u8>, Vec<u8>)]) -> Result<()> {
    let holds_nul = match command {
        ExecCommand::Argv(argv) => argv.iter().any(|word| word.contains(&0)),
        ExecCommand::Shell(text) => text.contains('\0'),
    };
    if holds_nul {
        return Err(Error::Invalid {
            what: "command",
            reason: "it cannot hold a NUL byte".into(),
        });
    }
    let is_wrong = |(name, value): &&(Vec<u8>, Vec<u8>)| {
        name.is_empty() || name.iter().any(|byte| b"=\0".contains(byte)) || value.contains(&0)
    };
    match env.iter().find(is_wrong) {
        None => Ok(()),
        Some((name, _)) => Err(Error::Invalid {
            what: "environment",
            reason: format!("{:?} cannot be a variable", String::from_utf8_lossy(name)),
        }),
    }
}

/// Refuses a list of changes that no report can hold.
pub(crate) fn check_changes_limit(options: &ExecOptions) -> Result<()> {
    match options.detail.changes_limit {
        Some(limit) if limit > LISTED_MAX => Err(Error::Invalid {
            what: "limit of changes",
            reason: format!(
                "{limit} paths, and {LISTED_MAX} are the most; `avfs changes` lists all of them"
            ),
        }),
        _ => Ok(()),
    }
}

/// Refuses an output limit that no report can hold.
pub(crate) fn check_output_limit(options: &ExecOptions) -> Result<()> {
    match options.output_limit {
        Some(limit) if limit > OUTPUT_LIMIT_MAX => Err(Error::Invalid {
            what: "output limit",
            reason: format!(
                "{limit} bytes, and {OUTPUT_LIMIT_MAX} are the most; `avfs output` reads what is above it"
            ),
        }),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_bounded_by_its_words_and_by_their_sum() {
        let argv = |words: Vec<Vec<u8>>| check_command(&ExecCommand::Argv(words), &[]);
        assert!(argv(vec![vec![b'a'; ARGUMENT_MAX]]).is_ok());
        assert!(argv(vec![vec![b'a'; ARGUMENT_MAX + 1]]).is_err());
        let shell = ExecCommand::Shell("a".repeat(ARGUMENT_MAX + 1));
        assert!(check_command(&shell, &[]).is_err());
        let fits = COMMAND_MAX / PER_STRING;
        assert!(argv(vec![Vec::new(); fits]).is_ok());
        assert!(
            argv(vec![Vec::new(); fits + 1]).is_err(),
            "empty words count"
        );
        let variable = (b"A".to_vec(), vec![b'a'; ARGUMENT_MAX - 1]);
        let plain = ExecCommand::Shell("true".into());
        assert!(check_command(&plain, &[variable]).is_err());
    }

    #[test]
    fn no_program_is_given_what_it_cannot_be_given() {
        let argv = ExecCommand::Argv(vec![b"a\0b".to_vec()]);
        let shell = ExecCommand::Shell("a\0b".into());
        for command in [argv, shell] {
            let error = check_command(&command, &[]).unwrap_err().to_string();
            assert!(error.contains("NUL"), "{error}");
        }
        let plain = ExecCommand::Shell("true".into());
        let with =
            |name: &[u8], value: &[u8]| check_command(&plain, &[(name.to_vec(), value.to_vec())]);
        assert!(with(b"A", b"b=c").is_ok());
        for (name, value) in [
            (&b"A=B"[..], &b"c"[..]),
            (b"", b"c"),
            (b"A\0", b"c"),
            (b"A", b"c\0"),
        ] {
            assert!(with(name, value).is_err(), "{name:?}={value:?}");
        }
        let error = with(b"A=B", b"").unwrap_err().to_string();
        assert!(error.contains("A=B"), "{error}");
    }
}
