//! `avfs mcp`: an agent's MCP server, which is the daemon.

use crate::args::McpArgs;
use crate::environment;
use crate::error::{Error, Result};
use crate::session::Session;
use avfs_api::mcp::relay::{self, Ask};
use avfs_api::wire::{Class, Mounts};

/// Pumps lines between the client and the daemon until either ends.
pub fn run(args: McpArgs, vault: Option<String>) -> Result<()> {
    let place = environment::place()?;
    let name = match args.agent.as_deref().or(place.caller_name()) {
        None => None,
        Some(name) => Some(name.parse().map_err(|_| Error::Invalid {
            text: format!("{name:?} cannot be the name of an agent"),
            hint: Some("up to 64 letters, digits and . _ - @ / +".into()),
        })?),
    };
    // Whatever the client says later, it has no other class.
    let place = place.as_caller(Class::Agent, name);
    let mut session = Session::new(environment::starter(place.clone())?, vault.clone());
    // Brings a daemon of this version up.
    session.call(&Mounts {})?;
    let ask = Ask {
        toolset: args.toolset,
        vault,
        only_vaults: args.only,
        scopes: args.scopes,
    };
    let line = relay::connect(&place, &ask)?;
    let done = line.pump(std::io::stdin(), &mut std::io::stdout().lock());
    match done {
        // Nobody reads any more: as good an end as any.
        Err(avfs_api::Error::Output(_)) => Err(Error::OutputClosed),
        done => Ok(done?),
    }
}
