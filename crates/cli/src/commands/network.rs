//! `avfs network`: which hosts the commands of a vault may reach, and what they tried to reach.

use crate::args::{CacheVerb, HostsArgs, NetworkLogArgs, NetworkVerb};
use crate::error::Result;
use crate::output::Output;
use crate::output::exec::address;
use crate::output::table::{count, size, table};
use crate::session::Session;
use avfs_api::wire::{
    DownloadsItem, InspectHow, NetworkAllow, NetworkCache, NetworkCacheClear, NetworkDeny,
    NetworkInspect, NetworkLimitsItem, NetworkLog, NetworkLogged, NetworkSet, NetworkShow,
    NetworkState, NetworkWord, RegistriesItem, RequestsItem,
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
        NetworkVerb::Cache(verb) => return cache(&verb, session, output),
    };
    output.answer(&state, state_text)
}

fn cache(verb: &CacheVerb, session: &mut Session, output: Output) -> Result<()> {
    let what = |kept: &DownloadsItem| {
        let answers = count(kept.answers, "answer");
        format!("{answers} of package registries, {}", size(kept.bytes))
    };
    match verb {
        CacheVerb::Show => output.answer(&session.call(&NetworkCache {})?, |kept| {
            format!("{} of at most {}", what(kept), size(kept.max_bytes))
        }),
        CacheVerb::Clear => output.answer(&session.call(&NetworkCacheClear {})?, |kept| {
            format!("removed {}", what(kept))
        }),
    }
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
        NetworkWord::Listed | NetworkWord::Observe => {
            let hosts = state.hosts.join("\n  ");
            let mut text = format!("commands in {vault} may reach:\n  {hosts}");
            if state.hosts.iter().any(|host| is_loopback(host)) {
                text.push_str(
                    "\nby a proxy only: the host's loopback, since inside it is the sandbox's own",
                );
            }
            if let Some(registries) = &state.registries {
                text.push_str(&registries_text(registries));
            }
            text
        }
    }
}

/// Whether an entry of a list names the host's loopback, by an address or a range.
fn is_loopback(entry: &str) -> bool {
    entry.starts_with("127.") || entry.starts_with("[::1]") || entry.starts_with("::1")
}

fn registries_text(registries: &RegistriesItem) -> String {
    let mut text = match registries.hosts.is_empty() {
        true => "\nno registry of this host is known".to_owned(),
        false => "\nregistries are at present, for reading:".to_owned(),
    };
    for item in &registries.hosts {
        let (host, tool) = (&item.host, &item.tool);
        let from = match item.from.as_str() {
            "default" => format!("the default of {tool}"),
            "index" => format!("files of an index of {tool}"),
            _ => format!("in the configuration of {tool}"),
        };
        let with = match item.credentials {
            true => format!(", with the credentials of {tool}"),
            false => String::new(),
        };
        text.push_str(&format!("\n  {host} ({from}{with})"));
    }
    for item in &registries.problems {
        text.push_str(&format!("\nnot used: {}: {}", item.tool, item.problem));
    }
    text
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
