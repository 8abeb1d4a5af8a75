//! Maintenance of a home.

use super::failure::Failure;
use super::fsck::damage;
use super::items;
use super::{Ask, Reply};
use crate::wire::{
    Collected, DamagedVaultItem, Gc, Maintain, Maintained, Prune, PruneFindings, QuotaChanged,
    QuotaItem, QuotaSet, QuotaShow, RecoverableItem, RootItem, Stats, StatsItem, VaultStatsItem,
    human_size,
};
use avfs_runtime::{
    GRACE, GcReport, HomeUsage, Keep, MaintainOptions, PruneScope, QuotaLimit, QuotaState, Run,
    Select, Time,
};
use std::time::Duration;

const MB: u64 = 1 << 20;
const DAY: u64 = 24 * 3600;

/// The names of limits, what they limit, and in what unit.
const LIMITS: [(&str, QuotaLimit, u64); 3] = [
    ("max_size_mb", QuotaLimit::Bytes, MB),
    ("max_files", QuotaLimit::Files, 1),
    ("max_file_size_mb", QuotaLimit::FileBytes, MB),
];

pub(crate) fn gc(ask: &Ask, request: Gc) -> Reply<Gc> {
    let grace = request.grace.map_or(GRACE, Duration::from_secs);
    let report = ask.session.gc(grace, run(request.dry_run))?;
    Ok(collected(&report, request.dry_run))
}

fn run(dry: bool) -> Run {
    if dry { Run::Dry } else { Run::Real }
}

fn collected(report: &GcReport, dry_run: bool) -> Collected {
    let freed = if dry_run { report.dead } else { report.swept };
    let roots = report.roots;
    let forgotten = report.forgotten.iter();
    let recoverable = report.recoverable.iter();
    Collected {
        orphans_found: report.dead.objects,
        orphans_deleted: report.swept.objects,
        bytes_freed: freed.bytes,
        bytes_freed_human: human_size(freed.bytes),
        dry_run,
        live_objects: report.live,
        roots: RootItem {
            heads: roots.heads,
            versions: roots.versions,
            checkpoints: roots.checkpoints,
            fork_points: roots.beginnings,
            imports: roots.imports,
            deleted_vaults: roots.deleted,
            held: roots.held,
        },
        vaults_forgotten: forgotten.map(|it| it.vault.name.to_string()).collect(),
        vaults_recoverable: recoverable
            .map(|it| RecoverableItem {
                name: it.vault.name.to_string(),
                deleted_at: items::time(it.deleted),
            })
            .collect(),
        packs_rewritten: report.compacted.packs,
        pack_bytes_freed: report.compacted.bytes,
        packs_waiting: report.compacted.waiting,
        held_back: report.held_back.iter().map(damage).collect(),
    }
}

pub(crate) fn quota(ask: &Ask, vault: Select, _: QuotaShow) -> Reply<QuotaShow> {
    Ok(quota_item(&ask.session.quota(vault)?))
}

pub(crate) fn set_quota(ask: &Ask, vault: Select, request: QuotaSet) -> Reply<QuotaSet> {
    let known = LIMITS.iter().find(|(key, _, _)| *key == request.key);
    let Some((key, limit, unit)) = known else {
        let keys: Vec<_> = LIMITS.iter().map(|(key, _, _)| *key).collect();
        let problem = format!("{:?} is not a limit", request.key);
        return Err(Failure::invalid(problem).hint(format!("one of {}", keys.join(", "))));
    };
    let value = request.value.map(|value| value.saturating_mul(*unit));
    ask.session.set_quota(vault, *limit, value)?;
    let action = if value.is_some() { "set" } else { "clear" };
    Ok(QuotaChanged {
        action: action.into(),
        key: (*key).into(),
        value: request.value,
    })
}

fn quota_item(state: &QuotaState) -> QuotaItem {
    let percent = |used: u64, limit: Option<u64>| {
        let share = |limit: u64| used as f64 * 100.0 / limit.max(1) as f64;
        limit.map(|limit| (share(limit) * 10.0).round() / 10.0)
    };
    let quota = state.quota;
    QuotaItem {
        vault: state.vault.to_string(),
        current_size_bytes: state.bytes,
        current_size_human: human_size(state.bytes),
        current_files: state.files,
        max_size_mb: quota.bytes.map(|bytes| bytes / MB),
        max_files: quota.files,
        max_file_size_mb: quota.file_bytes.map(|bytes| bytes / MB),
        size_usage_percent: percent(state.bytes, quota.bytes),
        files_usage_percent: percent(state.files, quota.files),
    }
}

/// Which versions stay, by number or by age.
fn keep(
    keep: Option<u64>,
    days: Option<u64>,
    seconds: Option<u64>,
) -> Result<Option<Keep>, Failure> {
    let days = days.map(|days| days.saturating_mul(DAY));
    if days.is_some() && seconds.is_some() {
        return Err(Failure::invalid(
            "an age is in days or in seconds, not both",
        ));
    }
    match (keep, days.or(seconds)) {
        (Some(_), Some(_)) => Err(Failure::invalid(
            "versions are kept by number or by age, not both",
        )),
        (Some(0), None) => Err(Failure::invalid(
            "the newest version always stays: keep 1 or more",
        )),
        (Some(newest), None) => Ok(Some(Keep::Newest(newest))),
        (None, Some(seconds)) => {
            let now = Time::now();
            let age = i64::try_from(seconds).unwrap_or(i64::MAX);
            let secs = now.secs.saturating_sub(age);
            Ok(Some(Keep::Since(Time { secs, ..now })))
        }
        (None, None) => Ok(None),
    }
}

pub(crate) fn prune(ask: &Ask, vault: Select, request: Prune) -> Reply<Prune> {
    let Some(keep) = keep(request.keep, request.older_than_days, request.older_than_s)? else {
        let hint = "for example --keep 50, or --older-than 30d";
        return Err(Failure::invalid("the request does not say which versions to keep").hint(hint));
    };
    let scope = match request.all {
        true => PruneScope::All,
        false => PruneScope::One(vault),
    };
    let report = ask.session.prune(&scope, keep, run(request.dry_run))?;
    let damaged = report.damaged.into_iter();
    let damaged = damaged.map(|(vault, damage)| DamagedVaultItem {
        vault: vault.to_string(),
        damage,
    });
    Ok(PruneFindings {
        files_processed: report.files,
        vaults_processed: report.vaults,
        versions_deleted: report.pruned.versions,
        checkpoints_deleted: report.pruned.checkpoints,
        dry_run: request.dry_run,
        damaged: damaged.collect(),
    })
}

pub(crate) fn stats(ask: &Ask, _: Stats) -> Reply<Stats> {
    let usage = ask.session.stats()?;
    let (total, stored) = (usage.logical_bytes(), usage.store.bytes_stored);
    let ratio = total as f64 / stored.max(1) as f64;
    Ok(StatsItem {
        files: usage.vaults.iter().map(|vault| vault.files).sum(),
        directories: usage.vaults.iter().map(|vault| vault.directories).sum(),
        total_versions: versions(&usage),
        content_blobs: usage.store.objects,
        total_size_bytes: total,
        total_size_human: human_size(total),
        stored_bytes: stored,
        stored_human: human_size(stored),
        dedup_ratio: (ratio * 100.0).round() / 100.0,
        orphaned_blobs: usage.dead.objects,
        orphaned_bytes: usage.dead.bytes,
        orphaned_human: human_size(usage.dead.bytes),
        packs: usage.disk.packs,
        pack_bytes: usage.disk.pack_bytes,
        large_objects: usage.disk.loose,
        large_object_bytes: usage.disk.loose_bytes,
        disk_bytes: usage.on_disk(),
        download_bytes: ask.session.downloads().bytes,
        db_size_bytes: usage.disk.database_bytes,
        db_size_human: human_size(usage.disk.database_bytes),
        free_bytes: ask.session.room().bytes,
        reserve_missing_bytes: ask.session.reserve_missing(),
        held_back: usage.held_back.iter().map(damage).collect(),
        vaults: usage.vaults.iter().map(vault_item).collect(),
    })
}

fn vault_item(usage: &avfs_runtime::VaultUsage) -> VaultStatsItem {
    VaultStatsItem {
        name: usage.vault.name.to_string(),
        files: usage.files,
        directories: usage.directories,
        size: usage.bytes,
        versions: usage.versions,
        checkpoints: usage.checkpoints,
        damaged: usage.damaged.is_some(),
        damage: usage.damaged.clone(),
    }
}

fn versions(usage: &HomeUsage) -> u64 {
    usage.vaults.iter().map(|vault| vault.versions).sum()
}

fn files(usage: &HomeUsage) -> u64 {
    usage.vaults.iter().map(|vault| vault.files).sum()
}

pub(crate) fn maintain(ask: &Ask, request: Maintain) -> Reply<Maintain> {
    let report = ask.session.maintain(MaintainOptions {
        keep: keep(request.keep, request.older_than_days, request.older_than_s)?,
        gc: !request.skip_gc,
        compact: !request.skip_compact,
    })?;
    let gc = report.gc.unwrap_or_default();
    let swept = gc.swept;
    let (before, after) = (&report.before, &report.after);
    Ok(Maintained {
        initial_files: files(before),
        initial_versions: versions(before),
        initial_blobs: before.store.objects,
        initial_size_bytes: before.on_disk(),
        versions_pruned: report.pruned.versions,
        orphans_deleted: swept.objects,
        bytes_freed_gc: swept.bytes,
        bytes_freed_compact: report.compacted,
        final_files: files(after),
        final_versions: versions(after),
        final_blobs: after.store.objects,
        final_size_bytes: after.on_disk(),
        held_back: gc.held_back.iter().map(damage).collect(),
    })
}
