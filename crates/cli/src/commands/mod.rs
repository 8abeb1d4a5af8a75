//! One file per verb, and the function that dispatches to them.

mod aliases;
mod approval;
mod attach;
pub mod attack;
mod audit;
mod care;
mod cat;
mod checkout;
mod checkpoint;
mod chmod;
mod commit;
mod completions;
mod cp;
mod daemon;
mod demo;
mod diff;
pub mod docs;
mod doctor;
mod edit;
mod env_file;
mod exec;
mod export;
mod find;
mod fsck;
mod git;
mod grep;
mod import;
mod job;
mod key;
mod labels;
mod ln;
mod log;
mod ls;
mod mcp;
mod mkdir;
mod mount;
mod mv;
mod network;
mod one_file;
mod output;
pub mod paths;
mod policy;
mod port;
mod rm;
mod search;
mod secret;
mod serve;
mod service;
mod shell;
mod stat;
mod touch;
mod transfer;
mod tree;
mod vault;
mod write;

use crate::args::{Cli, JobVerb, ProxyVerb, Verb};
use crate::environment;
use crate::error::{Error, Result};
use crate::exit::{self, Owner};
use crate::here;
use crate::output::Output;
use crate::session::Session;

/// Runs the verb; returns the exit code.
pub fn run(cli: Cli) -> u8 {
    let output = Output::new(cli.global.json);
    let owner = match &cli.verb {
        Verb::Exec(_) | Verb::Proxy(ProxyVerb::Exec(_)) => Owner::Command,
        Verb::Attach(_) | Verb::Job(JobVerb::Start(_) | JobVerb::Wait(_)) => Owner::Command,
        _ => Owner::Verb,
    };
    let code = match dispatch(cli, output) {
        Ok(code) => code,
        Err(Error::OutputClosed) => exit::OUTPUT_CLOSED,
        Err(Error::Api(avfs_api::Error::Interrupted)) => exit::INTERRUPTED,
        Err(error) => {
            output.error(&error);
            exit::of_error(error.kind(), owner)
        }
    };
    tell_retried();
    code
}

/// Reports retried helpers on standard error, unless the answer had a field for it.
fn tell_retried() {
    use crate::output::{note, retried_line, take_retried};
    if let Some(line) = retried_line(take_retried()) {
        // If the note cannot be written, continue.
        let _ = note(&format!("note: {line}"));
    }
}

fn dispatch(cli: Cli, output: Output) -> Result<u8> {
    let vault = match cli.global.vault {
        Some(vault) => Some(vault),
        None => vault_here()?,
    };
    let done = match cli.verb {
        // These need no daemon, or choose one themselves.
        Verb::Serve(args) => serve::run(args, output),
        Verb::Service(verb) => service::run(verb, output),
        Verb::Mcp(args) => mcp::run(args, vault),
        Verb::Completions { shell } => completions::run(shell, output),
        Verb::Aliases(args) => aliases::run(args, output),
        Verb::Man { dir } => docs::man(&dir, output),
        // A vault has no current directory: paths start at the top.
        Verb::Pwd => output.answer(&serde_json::json!({ "path": "/" }), |_| "/"),
        Verb::Doctor(args) if args.attack => return attack::run(output),
        Verb::Doctor(args) => return doctor::run(args, output),
        Verb::Demo => return demo::run(output),
        Verb::Daemon(verb) => return daemon::run(verb, output),
        Verb::Proxy(ProxyVerb::Exec(args)) => {
            let session = &mut Session::from_environment(vault)?;
            return exec::run(args, session, output);
        }
        Verb::Shell => return shell::run(Session::from_environment(vault)?, output),
        verb => return with_session(verb, &mut Session::from_environment(vault)?, output),
    };
    done.map(|()| exit::OK)
}

/// The vault of the working directory.
fn vault_here() -> Result<Option<String>> {
    match environment::home() {
        Ok(home) => here::chosen(&home),
        // Whatever needs a home says what is wrong with it.
        Err(_) => Ok(None),
    }
}

/// Runs a verb that works on a vault or a home.
fn with_session(verb: Verb, session: &mut Session, output: Output) -> Result<u8> {
    let done = match verb {
        Verb::Vault(verb) => vault::run(verb, session, output),
        Verb::Ls(args) => ls::run(args, session, output),
        Verb::Cat(args) => cat::run(args, session, output),
        Verb::Write(args) => write::run(args, session, output),
        Verb::Mkdir(args) => mkdir::run(args, session, output),
        Verb::Rm(args) => rm::run(args, session, output),
        Verb::Mv(args) => mv::run(args, session, output),
        Verb::Cp(args) => cp::run(args, session, output),
        Verb::Ln(args) => ln::run(args, session, output),
        Verb::Chmod(args) => chmod::run(args, session, output),
        Verb::Touch(args) => touch::run(args, session, output),
        Verb::Edit(args) => edit::run(args, session, output),
        Verb::Stat(args) => stat::run(args, session, output),
        Verb::Tree(args) => tree::run(args, session, output),
        Verb::Import(args) => import::run(args, session, output),
        Verb::Export(args) => return export::run(args, session, output),
        Verb::Transfer(verb) => transfer::run(verb, session, output),
        Verb::Checkpoint(verb) => checkpoint::run(verb, session, output),
        Verb::Grep(args) => grep::run(args, session, output),
        Verb::Find(args) => find::run(args, session, output),
        Verb::Search(args) => search::run(args, session, output),
        Verb::Tag(args) => labels::tag(args, session, output),
        Verb::Untag(args) => labels::untag(args, session, output),
        Verb::Meta(args) => labels::meta(args, session, output),
        Verb::Log(args) => log::run(args, session, output),
        Verb::Checkout(args) => checkout::run(args, session, output),
        Verb::Revert(args) => checkout::revert(args, session, output),
        Verb::Mount(args) => mount::run(args, session, output),
        Verb::Unmount(args) => mount::unmount(args, session, output),
        Verb::Mounts => mount::list(session, output),
        Verb::Commit => commit::run(session, output),
        Verb::Diff(args) => diff::run(args, session, output),
        Verb::Output(args) => output::run(args, session, output),
        Verb::Git(verb) => git::run(verb, session, output),
        Verb::Key(verb) => key::run(verb, session, output),
        Verb::Secret(verb) => secret::run(verb, session, output),
        Verb::Network(verb) => network::run(verb, session, output),
        Verb::Port(verb) => port::run(verb, session, output),
        Verb::Approval(verb) => approval::run(verb, session, output),
        Verb::Policy(verb) => return policy::run(verb, session, output),
        Verb::Audit(args) => return audit::run(args, session, output),
        Verb::Stats => care::stats(session, output),
        Verb::Quota(args) => care::quota(args, session, output),
        Verb::Gc(args) => care::gc(args, session, output),
        Verb::Prune(args) => care::prune(args, session, output),
        Verb::Maintain(args) => care::maintain(args, session, output),
        Verb::Compact => care::compact(session, output),
        Verb::Fsck(args) => return fsck::run(args, session, output),
        Verb::Job(verb) => return job::run(verb, session, output),
        Verb::Attach(args) => return attach::run(args, session, output),
        Verb::Exec(args) => return exec::run(args, session, output),
        Verb::Serve(_)
        | Verb::Proxy(_)
        | Verb::Service(_)
        | Verb::Mcp(_)
        | Verb::Pwd
        | Verb::Completions { .. }
        | Verb::Aliases(_)
        | Verb::Man { .. }
        | Verb::Shell
        | Verb::Doctor(_)
        | Verb::Demo
        | Verb::Daemon(_) => unreachable!("answered before a session is opened"),
    };
    done.map(|()| exit::OK)
}
