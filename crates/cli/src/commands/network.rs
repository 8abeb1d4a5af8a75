//! `avfs network`: which hosts the commands of a vault may reach, and what they tried to reach.

use crate::args::{HostsArgs, NetworkLogArgs, NetworkVerb};
use crate::error::Result;
use crate::output::Output;
use crate::output::exec::address;
use crate::output::table::table;
use crate::session::Session;
use avfs_api::wire::{
    InspectHow, NetworkAllow, NetworkDeny, NetworkInspect, NetworkLimitsItem, NetworkLog,
    NetworkLogged, NetworkSet, NetworkShow, NetworkState, NetworkWord, RequestsItem,
};

pub fn run(verb: NetworkVerb, session: &mut Session, output: Output) -> Result<()> {
    let state = match verb {
        NetworkVerb::Show => session.call(&NetworkShow {})?,
        NetworkVerb::Set { network } => session.call(&NetworkSet {
            network: Some(network.name),
            hosts: network.hosts,
        })?,
        NetworkVerb::Allow(HostsArgs { hosts }) => session.call(&NetworkAllow { hosts })?,
        NetworkVerb::Deny(HostsArgs { hosts }) => session.call(&NetworkDeny { hosts })?,
        NetworkVerb::Inspect(args) => session.call(&NetworkInspect {
            host: args.host,
            rules: args.rules,
            how: match (args.add, args.off) {
                (_, true) => InspectHow::Off,
                (true, false) => InspectHow::Add,
                (false, false) => InspectHow::Set,
            },
        })?,
        NetworkVerb::Log(args) => return log(args, session, output),
    };
    output.answer(&state, state_text)
}

fn log(args: NetworkLogArgs, session: &mut Session, output: Output) -> Result<()> {
    let logged = session.call(&NetworkLog {
        exec: args.exec,
        denied: args.denied,
        limit: Some(args.limit),
    })?;
    output.answer(&logged, log_text)
}

fn state_text(state: &NetworkState) -> String {
    let mut text = reached_text(state);
    for RequestsItem { host, allow } in &state.requests {
        text += &format!(
            "\nrequests to {host} are seen; allowed are:\n  {}",
            allow.join("\n  ")
        );
    }
    if let Some(limits) = state.limits {
        text += &limits_text(limits);
    }
    text
}

fn limits_text(limits: NetworkLimitsItem) -> String {
    let connections = limits.connections;
    let rate = limits.bytes_per_second;
    let lines = [
        connections.map(|it| format!("\nat most {it} connections at once, all commands together")),
        rate.map(|it| format!("\nat most {it} bytes a second, all commands together")),
        limits
            .bytes
            .map(|it| format!("\nat most {it} bytes for each command")),
    ];
    lines.into_iter().flatten().collect()
}

fn reached_text(state: &NetworkState) -> String {
    let vault = &state.vault;
    match state.network {
        NetworkWord::None => format!("commands in {vault} have no network"),
        NetworkWord::Host => format!("commands in {vault} have the host's network"),
        NetworkWord::Listed | NetworkWord::Observe => format!(
            "commands in {vault} may reach:\n  {}",
            state.hosts.join("\n  ")
        ),
    }
}

fn log_text(logged: &NetworkLogged) -> String {
    if logged.execs.is_empty() {
        return "no command tried to reach anything".into();
    }
    let mut rows = Vec::new();
    for exec in &logged.execs {
        let used = [
            ("denied", &exec.used.denied),
            ("allowed", &exec.used.allowed),
        ];
        for (verdict, attempts) in used {
            rows.extend(attempts.iter().map(|attempt| {
                vec![
                    exec.exec.clone(),
                    verdict.to_owned(),
                    address(attempt),
                    attempt.count.to_string(),
                    attempt.sent.to_string(),
                    attempt.received.to_string(),
                    attempt.rule.clone(),
                ]
            }));
        }
    }
    let titles = ["EXEC", "", "HOST", "COUNT", "SENT", "RECEIVED", "RULE"];
    table(&titles, rows).to_string()
}
