//! `avfs fsck`: check a home, and list what is damaged.

use crate::args::FsckArgs;
use crate::error::Result;
use crate::exit;
use crate::output::Output;
use crate::output::changes::printable;
use crate::output::table::{count, size};
use crate::session::Session;
use avfs_api::wire::{DamageItem, Fsck, FsckFindings, RebuiltItem, RecoveredItem, SightingItem};

/// How many places of one damage are printed; the rest is counted.
const SEEN_MAX: usize = 10;

pub fn run(args: FsckArgs, session: &mut Session, output: Output) -> Result<u8> {
    let FsckArgs { repair, rebuild } = args;
    if rebuild {
        session.rebuilds();
    }
    let findings = session.call(&Fsck { repair, rebuild })?;
    output.answer(&findings, fsck_text)?;
    Ok(if findings.clean { exit::OK } else { 1 })
}

fn fsck_text(findings: &FsckFindings) -> String {
    let mut text = String::new();
    if let Some(rebuilt) = &findings.rebuilt {
        text += &rebuilt_text(rebuilt);
        text += "\n";
    }
    for item in &findings.repaired {
        let from = printable(&item.from);
        text += &format!("repaired: object {}, from {from}", item.object);
        text += &places_text(&item.seen);
        text += "\n";
    }
    text += &found_text(findings);
    if findings.downloads_removed > 0 {
        let answers = count(findings.downloads_removed, "damaged answer");
        text += &format!("\nremoved {answers} of package registries; downloaded again when needed");
    }
    for place in &findings.unsearched {
        text += &format!("\nnot searched: {}", printable(place));
    }
    text
}

fn rebuilt_text(rebuilt: &RebuiltItem) -> String {
    let objects = count(rebuilt.objects, "object");
    let mut text = match rebuilt.database_lost {
        true => format!(
            "the database was lost; a new one was made from {objects}\n\
             names of vaults, checkpoints, settings, rules and the journal were in the old one, and are lost"
        ),
        false if rebuilt.objects == 0 => "there are no packs unknown to the database".into(),
        false => format!("added {objects} from packs unknown to the database"),
    };
    let recovered = [
        (&rebuilt.recovered, "completely"),
        (&rebuilt.recovered_in_part, "in part"),
    ];
    for (item, how) in recovered {
        if let Some(RecoveredItem { vault, versions }) = item {
            let states = count(*versions, "state");
            text += &format!(
                "\n{states} recovered {how}, as versions of vault {vault}: `avfs vault log {vault}`"
            );
        }
    }
    for path in &rebuilt.put_aside {
        let path = printable(path);
        text += &format!("\nkept: {path}, with uncommitted writes");
    }
    text
}

fn found_text(findings: &FsckFindings) -> String {
    let looked = format!(
        "{}, {}, in {}",
        count(findings.objects, "object"),
        size(findings.bytes),
        count(findings.roots, "state"),
    );
    if findings.clean {
        return format!("clean: {looked}, and the journal");
    }
    let mut text = format!("damaged: {looked}");
    for problem in &findings.database {
        text += &format!("\ndatabase: {}", printable(problem));
    }
    if let Some(problem) = &findings.journal_problem {
        text += &format!("\njournal: {problem}");
    }
    for damage in &findings.damaged {
        text += &damage_text(damage);
    }
    text
}

pub fn damage_text(damage: &DamageItem) -> String {
    let mut text = format!("\nobject {}: {}", damage.object, damage.problem);
    text += &places_text(&damage.seen);
    text
}

fn places_text(seen: &[SightingItem]) -> String {
    if seen.is_empty() {
        return "\n  nothing refers to it".into();
    }
    let mut text = String::new();
    for place in seen.iter().take(SEEN_MAX) {
        let (vault, path) = (&place.vault, printable(&place.path));
        text += &format!("\n  vault {vault}, {path} ({})", place.states.join(", "));
    }
    if seen.len() > SEEN_MAX {
        text += &format!("\n  and {} more", seen.len() - SEEN_MAX);
    }
    text
}
