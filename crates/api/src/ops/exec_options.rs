//! Options of an exec, between the types of the API and of the runtime.

use super::failure::Failure;
use super::parse;
use crate::wire::{
    CheckpointAsk, DriverWord, Exec, ForkWord, LimitHit, LimitItem, LimitsAsk, NetworkName,
    NetworkWord, ProfileWord, UsageItem,
};
use avfs_runtime::{
    Access, Approving, Branch, CheckpointMode, Defaults, Driver, Enforced, Error, ExecDetail,
    ExecNetwork, ExecOptions, ExecReport, HostError, HostList, HostRule, Isolation, Limit, Limits,
    NetworkAsk, Profile, SaidBy, Timeout, Usage,
};
use serde_json::{Value, json};
use std::time::Duration;

/// The unit of disk usage.
const BLOCK: u64 = 512;

pub(crate) fn options(exec: &Exec) -> Result<ExecOptions, Failure> {
    let checkpoint = match &exec.checkpoint {
        None | Some(CheckpointAsk::Auto) => CheckpointMode::Auto,
        Some(CheckpointAsk::Named(name)) => CheckpointMode::Named(parse(name)?),
        Some(CheckpointAsk::Never) => CheckpointMode::Never,
    };
    let approving = match (&exec.approval, exec.wait, exec.speculate) {
        (None, false, false) => Approving::Ask,
        (None, true, false) => Approving::Wait,
        (None, false, true) => Approving::Speculate,
        (Some(id), false, false) => Approving::Use(parse(id)?),
        _ => {
            return Err(Failure::invalid(
                "using an approval, waiting for one, and speculating exclude each other",
            ));
        }
    };
    let other = exec.network.is_some_and(|name| name != NetworkName::Host);
    if exec.driver == Some(DriverWord::Process) && (other || !exec.allow.is_empty()) {
        let what = "the process driver runs the command on the host, with the host's network";
        return Err(Failure::invalid(what).hint("leave out `--network` and `--allow`"));
    }
    Ok(ExecOptions {
        approving,
        timeout: match exec.timeout_ms {
            None => Timeout::Unsaid,
            Some(0) => Timeout::Never,
            Some(millis) => Timeout::After(Duration::from_millis(millis)),
        },
        output_limit: exec.output_limit,
        access: if exec.readonly {
            Access::ReadOnly
        } else {
            Access::ReadWrite
        },
        checkpoint,
        branch: match exec.fork {
            None => Branch::Here,
            Some(ForkWord::Discard) => Branch::Throwaway,
            Some(ForkWord::KeepOnSuccess) => Branch::KeepOnSuccess,
        },
        limits: Limits {
            memory: exec.limits.memory,
            cpus: exec.limits.cpus,
            pids: exec.limits.pids,
            disk: exec.limits.disk,
        },
        profile: exec.profile.map(|word| match word {
            ProfileWord::Restrictive => Profile::Restrictive,
            ProfileWord::Moderate => Profile::Moderate,
            ProfileWord::Permissive => Profile::Permissive,
        }),
        driver: match exec.driver.unwrap_or_default() {
            DriverWord::Namespace => Driver::Namespace,
            DriverWord::Process => Driver::Process,
        },
        network: match exec.network {
            None => NetworkAsk::Unsaid,
            Some(NetworkName::None) => NetworkAsk::Listed(HostList::default()),
            Some(NetworkName::Host) => NetworkAsk::Host,
            Some(NetworkName::Observe) => NetworkAsk::Observe,
        },
        allow: hosts(&exec.allow)?,
        detail: ExecDetail {
            patch: exec.patch,
            home: exec.list_home_changes,
            changes_limit: exec.changes_limit,
        },
    })
}

pub(crate) fn checkpoint_mode(mode: &CheckpointMode) -> &'static str {
    match mode {
        CheckpointMode::Auto => "auto",
        CheckpointMode::Named(_) => "named",
        CheckpointMode::Never => "never",
    }
}

pub(crate) fn driver_word(driver: Driver) -> DriverWord {
    match driver {
        Driver::Namespace => DriverWord::Namespace,
        Driver::Process => DriverWord::Process,
    }
}

/// A list of hosts.
pub(crate) fn hosts(texts: &[String]) -> Result<HostList, Failure> {
    let rules: Result<Vec<HostRule>, HostError> = texts.iter().map(|text| text.parse()).collect();
    let list = rules.and_then(HostList::new);
    list.map_err(|error| Error::from(error).into())
}

pub(crate) fn network_word(network: &ExecNetwork) -> NetworkWord {
    match network {
        ExecNetwork::Listed(hosts) if hosts.is_empty() => NetworkWord::None,
        ExecNetwork::Listed(_) => NetworkWord::Listed,
        ExecNetwork::Host => NetworkWord::Host,
        ExecNetwork::Observe => NetworkWord::Observe,
    }
}

pub(crate) fn network_hosts(network: &ExecNetwork) -> Vec<String> {
    network.hosts().iter().map(ToString::to_string).collect()
}

pub(crate) fn profile_word(profile: Profile) -> ProfileWord {
    match profile {
        Profile::Restrictive => ProfileWord::Restrictive,
        Profile::Moderate => ProfileWord::Moderate,
        Profile::Permissive => ProfileWord::Permissive,
    }
}

pub(crate) fn fork_word(branch: Branch) -> Option<ForkWord> {
    match branch {
        Branch::Here => None,
        Branch::Throwaway => Some(ForkWord::Discard),
        Branch::KeepOnSuccess => Some(ForkWord::KeepOnSuccess),
    }
}

/// A setting; a removed limit is `None`.
pub(crate) fn limits_item(limits: Limits) -> LimitsAsk {
    let lifted = Limits::LIFTED;
    LimitsAsk {
        memory: limits.memory.filter(|_| limits.memory != lifted.memory),
        cpus: limits.cpus,
        pids: limits.pids.filter(|_| limits.pids != lifted.pids),
        disk: limits.disk.filter(|_| limits.disk != lifted.disk),
    }
}

/// The isolation of the command, or `"none"`.
pub(crate) fn isolation(driver: Driver, isolation: Option<Isolation>) -> Option<Value> {
    match (driver, isolation) {
        (_, None) => None,
        (Driver::Process, Some(_)) => Some(json!("none")),
        (Driver::Namespace, Some(isolation)) => serde_json::to_value(isolation).ok(),
    }
}

/// The limits in force, with their values and sources.
pub(crate) fn limits_in_force(report: &ExecReport) -> Vec<LimitItem> {
    let bytes = |bytes: u64| bytes as f64;
    let value_in = |said: &Limits, limit: Limit| match limit {
        Limit::Memory => said.memory.map(bytes),
        Limit::Cpus => said.cpus,
        Limit::Pids => said.pids.map(f64::from),
        Limit::Disk => said.disk.map(bytes),
        Limit::OpenFiles | Limit::FileSize | Limit::DiskReserve => None,
    };
    let terms = &report.terms;
    let value = |limit: Limit| match limit {
        Limit::OpenFiles => terms.nofile.map(f64::from),
        limit => value_in(&terms.limits, limit),
    };
    let defaults = Defaults::of_this_host();
    let default = |limit: Limit| match limit {
        Limit::Memory => Some(bytes(defaults.memory_bytes)),
        Limit::Pids => Some(f64::from(defaults.pids)),
        Limit::OpenFiles => Some(f64::from(defaults.nofile)),
        Limit::DiskReserve => report.disk_reserve.map(bytes),
        Limit::Cpus | Limit::Disk | Limit::FileSize => None,
    };
    let item = |held: &Enforced, value: f64, by: SaidBy| LimitItem {
        limit: held.limit.name().into(),
        value,
        enforced_by: held.by.name().into(),
        source: by.as_str().into(),
    };
    let given = report.limits.iter().filter_map(|held| {
        let by = match value_in(&terms.asked, held.limit) {
            Some(_) => SaidBy::Request,
            None => SaidBy::Vault,
        };
        Some(item(held, value(held.limit)?, by))
    });
    let standing = report.default_limits.iter();
    let standing =
        standing.filter_map(|held| Some(item(held, default(held.limit)?, SaidBy::Default)));
    given.chain(standing).collect()
}

pub(crate) fn limit_hit(held: Enforced) -> LimitHit {
    LimitHit {
        limit: held.limit.name().into(),
        enforced_by: held.by.name().into(),
    }
}

pub(crate) fn usage(usage: Usage) -> UsageItem {
    UsageItem {
        user_us: usage.user_us,
        system_us: usage.system_us,
        max_rss_kib: usage.max_rss_kib,
        read_bytes: usage.read_blocks * BLOCK,
        written_bytes: usage.write_blocks * BLOCK,
    }
}
