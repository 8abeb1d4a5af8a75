//! The network of a vault's commands.

use super::exec_options::{hosts, network_word};
use super::failure::Failure;
use super::{Ask, Reply, items, parse};
use crate::wire::{
    AttemptItem, DownloadsItem, InspectHow, NetworkAllow, NetworkCache, NetworkCacheClear,
    NetworkDeny, NetworkInspect, NetworkLimitsItem, NetworkLog, NetworkLogItem, NetworkLogged,
    NetworkName, NetworkSet, NetworkShow, NetworkState, NetworkUse, NetworkWord, RegistriesItem,
    RegistryItem, RegistryProblemItem, RequestsItem,
};
use avfs_runtime::{
    Attempt, Attempts, CacheUsage, Error, ExecNetwork, HostList, HostPattern, InspectChange,
    NetworkLimits, NetworkRecord, RegistryHost, RegistryProblem, RequestRule, RequestRules, Select,
    Vault, VaultNetwork,
};

/// Execs in a listing when nobody says.
const LISTED: usize = 100;

pub(crate) fn show(ask: &Ask, vault: Select, _: NetworkShow) -> Reply<NetworkShow> {
    let (vault, network) = ask.session.network(&vault)?;
    let looks = match &network {
        VaultNetwork::Listed(hosts) => hosts.has_registries(),
        VaultNetwork::Host => false,
    };
    let registries = looks.then(|| registries(ask));
    Ok(NetworkState {
        registries,
        ..state(ask, (vault, network))?
    })
}

fn registries(ask: &Ask) -> RegistriesItem {
    let (hosts, problems) = ask.session.network_registries();
    let host = |host: &RegistryHost| RegistryItem {
        host: host.rule.to_string(),
        tool: host.tool.as_str().to_owned(),
        from: host.origin.as_str().to_owned(),
        credentials: host.credentials,
    };
    let problem = |problem: RegistryProblem| RegistryProblemItem {
        tool: problem.tool.as_str().to_owned(),
        problem: problem.text,
    };
    RegistriesItem {
        hosts: hosts.iter().map(host).collect(),
        problems: problems.into_iter().map(problem).collect(),
    }
}

pub(crate) fn set(ask: &Ask, vault: Select, request: NetworkSet) -> Reply<NetworkSet> {
    let network = match request.network {
        None | Some(NetworkName::None) => VaultNetwork::Listed(hosts(&request.hosts)?),
        Some(NetworkName::Host) if request.hosts.is_empty() => VaultNetwork::Host,
        Some(NetworkName::Host) => {
            let what = "the host's network reaches every host, so no list goes with it";
            return Err(Failure::invalid(what));
        }
        Some(NetworkName::Observe) => {
            let what = "observing is for one command, not for all of a vault";
            return Err(Failure::invalid(what).hint("run it with `avfs exec --network observe`"));
        }
    };
    state(ask, ask.session.network_set(&vault, network)?)
}

pub(crate) fn allow(ask: &Ask, vault: Select, request: NetworkAllow) -> Reply<NetworkAllow> {
    let hosts = some_hosts(&request.hosts)?;
    state(ask, ask.session.network_allow(&vault, &hosts)?)
}

pub(crate) fn deny(ask: &Ask, vault: Select, request: NetworkDeny) -> Reply<NetworkDeny> {
    let hosts = some_hosts(&request.hosts)?;
    state(ask, ask.session.network_deny(&vault, &hosts)?)
}

pub(crate) fn inspect(ask: &Ask, vault: Select, request: NetworkInspect) -> Reply<NetworkInspect> {
    let host: HostPattern = request.host.parse().map_err(Error::from)?;
    let rules = || {
        let parsed: Result<Vec<RequestRule>, _> =
            request.rules.iter().map(|it| it.parse()).collect();
        parsed.and_then(RequestRules::new).map_err(Error::from)
    };
    let change = match request.how {
        InspectHow::Set => InspectChange::Set(rules()?),
        InspectHow::Add => InspectChange::Add(rules()?),
        InspectHow::Off if request.rules.is_empty() => InspectChange::Off,
        InspectHow::Off => return Err(Failure::invalid("no rules go with `off`")),
    };
    state(ask, ask.session.network_inspect(&vault, host, &change)?)
}

pub(crate) fn log(ask: &Ask, vault: Select, request: NetworkLog) -> Reply<NetworkLog> {
    let exec = request.exec.as_deref().map(parse).transpose()?;
    let limit = request.limit.unwrap_or(LISTED);
    let records = ask.session.network_log(&vault, exec, limit)?;
    let mut execs: Vec<NetworkLogItem> = records.into_iter().map(logged).collect();
    if request.denied {
        execs.iter_mut().for_each(|item| item.used.allowed.clear());
        execs.retain(|item| !item.used.denied.is_empty());
    }
    Ok(NetworkLogged { execs })
}

pub(crate) fn cache(ask: &Ask, _: NetworkCache) -> Reply<NetworkCache> {
    Ok(downloads(ask.session.downloads()))
}

pub(crate) fn cache_clear(ask: &Ask, _: NetworkCacheClear) -> Reply<NetworkCacheClear> {
    Ok(downloads(ask.session.clear_downloads()?))
}

fn downloads(usage: CacheUsage) -> DownloadsItem {
    DownloadsItem {
        answers: usage.answers,
        bytes: usage.bytes,
        max_bytes: usage.max_bytes,
    }
}

fn some_hosts(texts: &[String]) -> Result<HostList, Failure> {
    match texts.is_empty() {
        true => Err(Failure::invalid("at least one host is needed")),
        false => hosts(texts),
    }
}

fn state(ask: &Ask, (vault, network): (Vault, VaultNetwork)) -> Result<NetworkState, Failure> {
    let (inspection, limits) = ask.session.network_terms(&vault)?;
    let requests = inspection.iter().map(|(host, rules)| RequestsItem {
        host: host.to_string(),
        allow: rules.rules().iter().map(ToString::to_string).collect(),
    });
    let (word, hosts) = match network {
        VaultNetwork::Host => (NetworkWord::Host, Vec::new()),
        VaultNetwork::Listed(hosts) => {
            let texts = hosts.rules().iter().map(ToString::to_string).collect();
            (network_word(&ExecNetwork::Listed(hosts)), texts)
        }
    };
    Ok(NetworkState {
        vault: vault.name.to_string(),
        network: word,
        hosts,
        requests: requests.collect(),
        limits: limits_item(limits),
        registries: None,
    })
}

/// None where the vault says nothing.
pub(super) fn limits_item(limits: NetworkLimits) -> Option<NetworkLimitsItem> {
    (!limits.is_empty()).then(|| NetworkLimitsItem {
        connections: limits.connections.map(|it| it.get()),
        bytes_per_second: limits.bandwidth.map(|it| it.bytes_per_second()),
        bytes: limits.traffic.map(|it| it.bytes()),
    })
}

fn logged(record: NetworkRecord) -> NetworkLogItem {
    NetworkLogItem {
        exec: record.exec.to_string(),
        at: items::time(record.entry.time),
        by: record.entry.principal.to_string(),
        used: used(
            &ExecNetwork::default(),
            &record.attempts,
            NetworkLimits::default(),
        ),
    }
}

/// What a command reached, and what it needs if it was run to find out.
pub(super) fn used(
    network: &ExecNetwork,
    attempts: &Attempts,
    limits: NetworkLimits,
) -> NetworkUse {
    let observed = *network == ExecNetwork::Observe;
    NetworkUse {
        allowed: attempts.allowed.iter().map(item).collect(),
        denied: attempts.denied.iter().map(item).collect(),
        more: attempts.more,
        limits: limits_item(limits),
        needs: observed.then(|| attempts.needs().iter().map(ToString::to_string).collect()),
    }
}

fn item(attempt: &Attempt) -> AttemptItem {
    AttemptItem {
        host: attempt.host.clone(),
        port: attempt.port,
        rule: attempt.rule.clone(),
        count: attempt.count,
        sent: attempt.sent,
        received: attempt.received,
        cached: attempt.cached,
        or_by: attempt.or_by.iter().map(ToString::to_string).collect(),
    }
}
