//! Checking, repairing and rebuilding a home.

use super::journal::problem_text;
use super::{Ask, Reply};
use crate::wire::{
    DamageItem, Fsck, FsckFindings, RebuiltItem, RecoveredItem, RepairedItem, SightingItem,
};
use avfs_runtime::{
    Damage, JournalCheck, Rebuild, RecoveredVault, RepairReport, Repaired, Sighting,
};

pub(crate) fn fsck(ask: &Ask, request: Fsck) -> Reply<Fsck> {
    let rebuilt = match request.rebuild {
        true => Some(rebuilt(&ask.session.rebuild()?)),
        false => None,
    };
    let RepairReport {
        repaired,
        left: report,
        unsearched,
    } = match request.repair {
        true => ask.session.repair()?,
        false => RepairReport {
            repaired: Vec::new(),
            left: ask.session.fsck(),
            unsearched: Vec::new(),
        },
    };
    let journal_problem = match &report.journal {
        Some(JournalCheck::Intact { .. }) => None,
        Some(JournalCheck::Broken { seq, problem }) => Some(problem_text(*seq, *problem)),
        None => Some("it cannot be read".to_owned()),
    };
    Ok(FsckFindings {
        clean: report.is_clean(),
        objects: report.objects,
        bytes: report.bytes,
        roots: report.roots,
        downloads_removed: ask.session.check_downloads(),
        damaged: report.damaged.iter().map(damage).collect(),
        repaired: repaired.iter().map(repaired_item).collect(),
        unsearched,
        rebuilt,
        database: report.database,
        journal_valid: journal_problem.is_none(),
        journal_problem,
    })
}

pub(crate) fn damage(damage: &Damage) -> DamageItem {
    DamageItem {
        object: damage.object.to_string(),
        problem: damage.problem.clone(),
        seen: damage.seen.iter().map(sighting).collect(),
    }
}

fn repaired_item(repaired: &Repaired) -> RepairedItem {
    RepairedItem {
        object: repaired.object.to_string(),
        from: repaired.from.clone(),
        seen: repaired.seen.iter().map(sighting).collect(),
    }
}

fn sighting(sighting: &Sighting) -> SightingItem {
    SightingItem {
        vault: sighting.vault.to_string(),
        path: sighting.path.to_string(),
        states: sighting.states.clone(),
    }
}

fn rebuilt(rebuild: &Rebuild) -> RebuiltItem {
    let item = |vault: &RecoveredVault| RecoveredItem {
        vault: vault.name.to_string(),
        versions: vault.states,
    };
    let recovered = &rebuild.rebuilt.recovered;
    let put_aside = rebuild.put_aside.iter();
    RebuiltItem {
        database_lost: rebuild.database_lost,
        objects: rebuild.rebuilt.objects,
        recovered: recovered.whole.as_ref().map(item),
        recovered_in_part: recovered.in_part.as_ref().map(item),
        put_aside: put_aside.map(|path| path.display().to_string()).collect(),
    }
}
