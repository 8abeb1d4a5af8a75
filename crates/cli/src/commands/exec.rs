//! `avfs proxy exec`: run a command in the vault's sandbox and report what it changed.

use super::paths;
use crate::args::ExecArgs;
use crate::error::{Error, Result};
use crate::exit;
use crate::output::{self, Output, note};
use crate::session::Session;
use avfs_api::wire::{Base64, Exec, ExecEvent, to_text};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::Write;
use std::ops::ControlFlow;
use std::os::unix::ffi::{OsStrExt, OsStringExt};

pub fn run(args: ExecArgs, session: &mut Session, output: Output) -> Result<u8> {
    let request = request(args)?;
    let mut output_closed = false;
    let envelope = session.exec(&request, &mut |event| {
        if output.is_json() || pass_on(&event).is_ok() {
            return ControlFlow::Continue(());
        }
        output_closed = true;
        ControlFlow::Break(())
    });
    if output_closed {
        return Err(Error::OutputClosed);
    }
    let envelope = envelope?;
    if output.is_json() {
        output.value(&envelope)?;
    } else {
        note(&output::exec::report(&envelope))?;
    }
    Ok(exit::of_envelope(&envelope))
}

/// Gives the command's output to whoever started us, as it comes.
fn pass_on(event: &ExecEvent) -> std::io::Result<()> {
    match event {
        ExecEvent::Started(_) => Ok(()),
        ExecEvent::Stdout(chunk) => {
            let mut out = std::io::stdout().lock();
            out.write_all(chunk.bytes()).and_then(|()| out.flush())
        }
        ExecEvent::Stderr(chunk) => std::io::stderr().lock().write_all(chunk.bytes()),
    }
}

fn request(args: ExecArgs) -> Result<Exec> {
    let (cwd, cwd_b64) = match &args.cwd {
        Some(cwd) => {
            let (text, exact) = paths::in_vault(cwd);
            (Some(text), exact)
        }
        None => (None, None),
    };
    let (env, env_b64) = environment(&args.env)?;
    let all_text = args.command.iter().all(|word| word.to_str().is_some());
    let exact = || {
        args.command
            .iter()
            .map(|word| Base64(word.as_bytes().to_vec()))
            .collect::<Vec<_>>()
    };
    Ok(Exec {
        argv_b64: (!all_text).then(exact),
        argv: args
            .command
            .into_iter()
            .map(|word| to_text(word.into_vec()).0)
            .collect(),
        shell: args.shell,
        cwd,
        cwd_b64,
        env,
        env_b64,
        timeout_ms: Some(args.timeout),
        output_limit: args.output_limit,
    })
}

type Variables = (BTreeMap<String, String>, BTreeMap<String, Base64>);

fn environment(pairs: &[OsString]) -> Result<Variables> {
    let (mut env, mut env_b64) = (BTreeMap::new(), BTreeMap::new());
    for pair in pairs {
        let bytes = pair.as_bytes();
        let cut = bytes.iter().position(|byte| *byte == b'=');
        let name = cut.and_then(|cut| std::str::from_utf8(&bytes[..cut]).ok());
        let (Some(cut), Some(name)) = (cut, name) else {
            return Err(Error::Invalid {
                text: format!("{pair:?} is not NAME=VALUE"),
                hint: Some("for example --env CI=1".into()),
            });
        };
        match to_text(bytes[cut + 1..].to_vec()) {
            (value, None) => drop(env.insert(name.to_owned(), value)),
            (_, Some(exact)) => drop(env_b64.insert(name.to_owned(), exact)),
        }
    }
    Ok((env, env_b64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_split_at_the_first_sign() {
        let (env, _) = environment(&["A=b=c".into(), "D=".into()]).unwrap();
        assert_eq!(env["A"], "b=c");
        assert_eq!(env["D"], "");
        assert!(environment(&["novalue".into()]).is_err());
        let (_, exact) = environment(&[OsString::from_vec(b"X=\xff".to_vec())]).unwrap();
        assert_eq!(exact["X"], Base64(vec![0xff]));
    }
}
