//! The network of a vault's commands.

use super::exec_options::{hosts, network_word};
use super::failure::Failure;
use super::{Ask, Reply, items, parse};
use crate::wire::{
    AttemptItem, DownloadsItem, NetworkAllow, NetworkCache, NetworkCacheClear, NetworkDeny,
    NetworkLog, NetworkLogItem, NetworkLogged, NetworkName, NetworkSet, NetworkShow, NetworkState,
    NetworkUse, NetworkWord, RegistriesItem, RegistryItem, RegistryProblemItem,
};
use avfs_runtime::{
    Attempt, Attempts, CacheUsage, ExecNetwork, HostList, NetworkRecord, RegistryHost,
    RegistryProblem, Select, Vault, VaultNetwork,
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
        ..state((vault, network))
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
    Ok(state(ask.session.network_set(&vault, network)?))
}

pub(crate) fn allow(ask: &Ask, vault: Select, request: NetworkAllow) -> Reply<NetworkAllow> {
    let hosts = some_hosts(&request.hosts)?;
    Ok(state(ask.session.network_allow(&vault, &hosts)?))
}

pub(crate) fn deny(ask: &Ask, vault: Select, request: NetworkDeny) -> Reply<NetworkDeny> {
    let hosts = some_hosts(&request.hosts)?;
    Ok(state(ask.session.network_deny(&vault, &hosts)?))
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

fn state((vault, network): (Vault, VaultNetwork)) -> NetworkState {
    let (word, hosts) = match network {
        VaultNetwork::Host => (NetworkWord::Host, Vec::new()),
        VaultNetwork::Listed(hosts) => {
            let texts = hosts.rules().iter().map(ToString::to_string).collect();
            (network_word(&ExecNetwork::Listed(hosts)), texts)
        }
    };
    NetworkState {
        vault: vault.name.to_string(),
        network: word,
        hosts,
        registries: None,
    }
}

fn logged(record: NetworkRecord) -> NetworkLogItem {
    NetworkLogItem {
        exec: record.exec.to_string(),
        at: items::time(record.entry.time),
        by: record.entry.principal.to_string(),
        used: used(&ExecNetwork::default(), &record.attempts),
    }
}

/// What a command reached, and what it needs if it was run to find out.
pub(super) fn used(network: &ExecNetwork, attempts: &Attempts) -> NetworkUse {
    let observed = *network == ExecNetwork::Observe;
    NetworkUse {
        allowed: attempts.allowed.iter().map(item).collect(),
        denied: attempts.denied.iter().map(item).collect(),
        more: attempts.more,
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
