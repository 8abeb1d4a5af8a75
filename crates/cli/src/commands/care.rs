//! `avfs stats`, `quota`, `gc`, `prune`, `maintain` and `compact`.

use super::fsck::damage_text;
use crate::args::{GcArgs, MaintainArgs, PruneArgs, QuotaArgs, QuotaVerb, Time};
use crate::error::Result;
use crate::output::Output;
use crate::output::changes::printable_line;
use crate::output::style;
use crate::output::table::{align_right, count, size, table, time};
use crate::session::Session;
use avfs_api::wire::{
    Collected, DamageItem, Gc, Maintain, Prune, QuotaItem, QuotaSet, QuotaShow, RootItem, Stats,
    StatsItem,
};

pub fn stats(session: &mut Session, output: Output) -> Result<()> {
    let stats = session.call(&Stats {})?;
    output.answer(&stats, stats_text)
}

fn free_text(stats: &StatsItem) -> String {
    let free = size(stats.free_bytes);
    match stats.reserve_missing_bytes {
        0 => free,
        missing => format!("{free}; the reserve lacks {}", size(missing)),
    }
}

fn stats_text(stats: &StatsItem) -> String {
    let rows = [
        ("vaults", stats.vaults.len().to_string()),
        (
            "files",
            format!("{}, {}", stats.files, stats.total_size_human),
        ),
        ("directories", stats.directories.to_string()),
        ("versions", stats.total_versions.to_string()),
        (
            "objects",
            format!("{}, {} stored", stats.content_blobs, stats.stored_human),
        ),
        (
            "shared",
            format!("{:.2} times what is stored", stats.dedup_ratio),
        ),
        (
            "dead",
            format!("{}, {}", stats.orphaned_blobs, stats.orphaned_human),
        ),
        (
            "packs",
            format!("{}, {}", stats.packs, size(stats.pack_bytes)),
        ),
        ("database", stats.db_size_human.clone()),
        ("on disk", size(stats.disk_bytes)),
        ("downloads", size(stats.download_bytes)),
        ("free", free_text(stats)),
    ];
    let rows = rows
        .into_iter()
        .map(|(name, value)| vec![name.into(), value]);
    let mut text = table(&[], rows.collect()).trim_fmt();
    if stats.vaults.is_empty() {
        return text;
    }
    let row = |vault: &avfs_api::wire::VaultStatsItem| {
        vec![
            vault.name.clone(),
            vault.files.to_string(),
            vault.directories.to_string(),
            size(vault.size),
            vault.versions.to_string(),
            vault.checkpoints.to_string(),
        ]
    };
    let headings = [
        "VAULT",
        "FILES",
        "DIRECTORIES",
        "SIZE",
        "VERSIONS",
        "CHECKPOINTS",
    ];
    let mut vaults = table(&headings, stats.vaults.iter().map(row).collect());
    (1..headings.len()).for_each(|column| align_right(&mut vaults, column));
    text += "\n\n";
    text += &vaults.trim_fmt();
    for vault in &stats.vaults {
        text += &damaged_line(&vault.name, vault.damage.as_deref());
    }
    if !stats.held_back.is_empty() {
        let unreadable = count(stats.held_back.len() as u64, "object");
        text += &format!(
            "\n{unreadable} cannot be read; objects that count as unreachable may belong to them"
        );
    }
    text
}

/// A line below a list, for a damaged vault.
pub fn damaged_line(vault: &str, damage: Option<&str>) -> String {
    let Some(damage) = damage else {
        return String::new();
    };
    let (warning, damage) = (style::bad("damaged:"), printable_line(damage));
    format!("\n{warning} vault {vault}: {damage}")
}

/// Why nothing was deleted, and what to do.
fn held_back_text(held_back: &[DamageItem]) -> String {
    if held_back.is_empty() {
        return String::new();
    }
    let mut text = format!(
        "\n{} gc deletes nothing while these cannot be read, because it cannot know what they refer to:",
        style::bad("held back:")
    );
    for damage in held_back {
        text += &damage_text(damage);
    }
    text + "\n`avfs fsck --repair` searches other copies; or delete these states (`avfs vault delete`, \
        `avfs prune`, then `avfs gc --grace 0`)"
}

pub fn quota(args: QuotaArgs, session: &mut Session, output: Output) -> Result<()> {
    let (key, value) = match args.verb {
        None => {
            let quota = session.call(&QuotaShow {})?;
            return output.answer(&quota, quota_text);
        }
        Some(QuotaVerb::Set { key, value }) => (key, Some(value)),
        Some(QuotaVerb::Clear { key }) => (key, None),
    };
    let key = key.word().to_owned();
    let changed = session.call(&QuotaSet { key, value })?;
    output.answer(&changed, |changed| match changed.value {
        Some(value) => format!("{} is {value} now", changed.key),
        None => format!("{} is lifted", changed.key),
    })
}

fn quota_text(quota: &QuotaItem) -> String {
    let line = |used: String, limit: Option<String>, percent: Option<f64>| match limit {
        None => format!("{used}, no limit"),
        Some(limit) => match percent {
            Some(percent) => format!("{used} of {limit} ({percent}%)"),
            None => limit,
        },
    };
    let mib = |mb: Option<u64>| mb.map(|mb| format!("{mb} MiB"));
    let used = quota.current_size_human.clone();
    let files = quota.current_files.to_string();
    let most = quota.max_files.map(|most| most.to_string());
    let rows = [
        ("vault", quota.vault.clone()),
        (
            "size",
            line(used, mib(quota.max_size_mb), quota.size_usage_percent),
        ),
        ("files", line(files, most, quota.files_usage_percent)),
        (
            "any one file",
            mib(quota.max_file_size_mb).unwrap_or("no limit".into()),
        ),
    ];
    let rows = rows
        .into_iter()
        .map(|(name, value)| vec![name.into(), value]);
    table(&[], rows.collect()).trim_fmt()
}

pub fn gc(args: GcArgs, session: &mut Session, output: Output) -> Result<()> {
    let collected = session.call(&Gc {
        dry_run: args.dry_run,
        grace: args.grace.map(Time::seconds),
    })?;
    output.answer(&collected, |collected| {
        let mut text = gc_text(collected);
        if args.explain {
            text += "\n";
            text += &explain_text(collected);
        }
        text
    })
}

fn gc_text(collected: &Collected) -> String {
    let freed = &collected.bytes_freed_human;
    let mut text = if collected.dry_run {
        let found = count(collected.orphans_found, "object");
        format!("{found}, {freed}, would be deleted")
    } else {
        let gone = count(collected.orphans_deleted, "object");
        format!("{gone} deleted, {freed}")
    };
    if collected.packs_rewritten > 0 {
        let packs = count(collected.packs_rewritten, "pack");
        text += &format!("; {packs} compacted, {}", size(collected.pack_bytes_freed));
    }
    if collected.packs_waiting > 0 {
        let packs = count(collected.packs_waiting, "pack");
        text += &format!(
            "\n{packs} could only be freed in part; run gc again when there is more space"
        );
    }
    text += &held_back_text(&collected.held_back);
    if !collected.vaults_forgotten.is_empty() {
        let names = collected.vaults_forgotten.join(", ");
        let how = if collected.dry_run { "would be" } else { "are" };
        text += &format!("\ndeleted vaults that {how} removed for good: {names}");
    }
    if !collected.vaults_recoverable.is_empty() {
        let vaults = count(collected.vaults_recoverable.len() as u64, "deleted vault");
        text +=
            &format!("\n{vaults} can still be restored; `avfs gc --grace 0` removes them for good");
    }
    text
}

fn explain_text(collected: &Collected) -> String {
    let RootItem {
        heads,
        versions,
        checkpoints,
        fork_points,
        imports,
        deleted_vaults,
        held,
    } = collected.roots;
    let rows = [
        ("heads of vaults", heads),
        ("versions (`avfs prune` deletes old ones)", versions),
        ("checkpoints", checkpoints),
        ("fork points", fork_points),
        ("imported states", imports),
        ("states of deleted vaults", deleted_vaults),
        ("states in use by running operations", held),
    ];
    let rows = rows
        .into_iter()
        .filter(|(_, number)| *number > 0)
        .map(|(name, number)| vec![format!("  {number}"), name.to_owned()]);
    let mut table = table(&[], rows.collect());
    align_right(&mut table, 0);
    let holds_back = !collected.held_back.is_empty();
    let young = collected.orphans_found - collected.orphans_deleted.min(collected.orphans_found);
    let mut text = format!(
        "{} are kept by:\n{}",
        count(collected.live_objects, "object"),
        table.trim_fmt()
    );
    for vault in &collected.vaults_recoverable {
        let (name, when) = (&vault.name, time(&vault.deleted_at));
        text += &format!("\n  deleted vault {name}, since {when}");
    }
    if young > 0 && !collected.dry_run && !holds_back {
        let objects = count(young, "object");
        text += &format!("\n{objects} of running operations are kept for now");
    }
    text
}

pub fn prune(args: PruneArgs, session: &mut Session, output: Output) -> Result<()> {
    let pruned = session.call(&Prune {
        keep: args.keep,
        older_than_days: None,
        older_than_s: args.older_than.map(Time::seconds),
        all: args.all,
        dry_run: args.dry_run,
    })?;
    output.answer(&pruned, |pruned| {
        let versions = count(pruned.versions_deleted, "version");
        let checkpoints = count(pruned.checkpoints_deleted, "checkpoint");
        let how = if pruned.dry_run {
            "would be deleted"
        } else {
            "deleted"
        };
        let mut text = format!("{versions} and {checkpoints} {how}");
        for vault in &pruned.damaged {
            text += &damaged_line(&vault.vault, Some(&vault.damage));
        }
        text
    })
}

pub fn maintain(args: MaintainArgs, session: &mut Session, output: Output) -> Result<()> {
    let done = session.call(&Maintain {
        keep: args.keep,
        older_than_days: None,
        older_than_s: args.older_than.map(Time::seconds),
        skip_gc: args.skip_gc,
        skip_compact: args.skip_compact,
    })?;
    output.answer(&done, |done| {
        let text = format!(
            "{} pruned, {} deleted; {} on disk, {} before",
            count(done.versions_pruned, "version"),
            count(done.orphans_deleted, "object"),
            size(done.final_size_bytes),
            size(done.initial_size_bytes),
        );
        text + &held_back_text(&done.held_back)
    })
}

/// The answer of `avfs compact`.
#[derive(serde::Serialize)]
struct Compacted {
    size_before: u64,
    size_before_human: String,
    size_after: u64,
    size_after_human: String,
    bytes_freed: u64,
    bytes_freed_human: String,
}

pub fn compact(session: &mut Session, output: Output) -> Result<()> {
    let done = session.call(&Maintain {
        keep: None,
        older_than_days: None,
        older_than_s: None,
        skip_gc: true,
        skip_compact: false,
    })?;
    let (before, after) = (done.initial_size_bytes, done.final_size_bytes);
    let freed = done.bytes_freed_compact;
    let compacted = Compacted {
        size_before: before,
        size_before_human: size(before),
        size_after: after,
        size_after_human: size(after),
        bytes_freed: freed,
        bytes_freed_human: size(freed),
    };
    output.answer(&compacted, |compacted| {
        format!(
            "{} freed; {} on disk, {} before",
            compacted.bytes_freed_human, compacted.size_after_human, compacted.size_before_human,
        )
    })
}
