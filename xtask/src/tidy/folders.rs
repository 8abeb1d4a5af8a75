//! Which folder of a crate may use which: inside a crate, too, dependencies point one way only.

mod paths;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use paths::{Reference, imports, references};

/// A top-level module of a crate (a folder, or a file beside `lib.rs`) with the others that its product code may use.
type Row = (&'static str, &'static [&'static str]);

/// The crates whose folders are held apart. A module may only use modules that have their row above its own, so no
/// cycle can be written down. A crate without an entry is not checked.
const FOLDERS: &[(&str, &[Row])] = &[
    (
        "crates/store",
        &[
            ("id", &[]),
            ("room", &[]),
            ("fresh", &[]),
            ("error", &["id", "room"]),
            ("engine", &["id", "error"]),
            ("ledger", &["id", "room", "error", "engine"]),
            ("words", &["id", "error"]),
            (
                "objects",
                &["id", "room", "fresh", "error", "engine", "ledger"],
            ),
        ],
    ),
    (
        "crates/vault",
        &[
            ("terms", &[]),
            ("tree", &["terms"]),
            ("ledger", &["terms", "tree"]),
        ],
    ),
    (
        "crates/policy",
        &[
            ("hosts", &[]),
            ("shell", &[]),
            ("programs", &["shell"]),
            ("judge", &["shell", "programs"]),
            ("rules", &["shell", "programs", "judge"]),
        ],
    ),
    (
        "crates/net",
        &[
            ("error", &[]),
            ("exec_key", &[]),
            ("names", &[]),
            ("resolve", &[]),
            ("hosts_file", &["resolve"]),
            ("authority", &["error"]),
            ("mask", &["error"]),
            ("requests", &["error"]),
            ("terms", &["requests"]),
            ("trust", &["authority"]),
            ("upstream", &["error"]),
            ("cache", &[]),
            ("config", &["cache", "resolve", "trust", "upstream"]),
            ("attempts", &["exec_key"]),
            ("sandbox", &["exec_key", "attempts"]),
            ("meter", &["terms"]),
            ("refusal", &["attempts"]),
            (
                "execs",
                &[
                    "error", "exec_key", "requests", "terms", "config", "attempts", "sandbox",
                    "meter", "refusal",
                ],
            ),
            (
                "service",
                &[
                    "error",
                    "names",
                    "authority",
                    "terms",
                    "trust",
                    "config",
                    "sandbox",
                    "execs",
                ],
            ),
            (
                "dial",
                &["upstream", "meter", "refusal", "execs", "service"],
            ),
            ("relay", &["meter", "execs", "dial"]),
            (
                "doors",
                &[
                    "error", "names", "terms", "cache", "upstream", "attempts", "sandbox", "meter",
                    "refusal", "execs", "service", "dial", "relay",
                ],
            ),
            (
                "served",
                &["error", "exec_key", "terms", "attempts", "service", "doors"],
            ),
            (
                "net",
                &[
                    "error",
                    "authority",
                    "trust",
                    "config",
                    "sandbox",
                    "execs",
                    "service",
                    "served",
                ],
            ),
            ("fetch", &["error", "refusal", "service", "dial", "net"]),
            (
                "forwards",
                &[
                    "error", "config", "meter", "service", "dial", "relay", "doors", "net",
                ],
            ),
        ],
    ),
    (
        "crates/transfer",
        &[
            ("error", &[]),
            ("bounds", &[]),
            ("report", &[]),
            ("progress", &["error"]),
            ("damage", &["error"]),
            ("aside", &["error"]),
            ("host_tree", &["error"]),
            ("autorun", &["error", "damage"]),
            (
                "import",
                &["error", "bounds", "report", "progress", "aside"],
            ),
            (
                "export",
                &[
                    "error",
                    "bounds",
                    "report",
                    "progress",
                    "damage",
                    "aside",
                    "host_tree",
                    "autorun",
                ],
            ),
            (
                "apply",
                &[
                    "error",
                    "report",
                    "progress",
                    "damage",
                    "aside",
                    "host_tree",
                    "autorun",
                    "export",
                ],
            ),
            ("directory", &["error", "import", "export"]),
        ],
    ),
    (
        "crates/runtime",
        &[
            ("bounds", &[]),
            ("common", &[]),
            ("helper", &[]),
            ("home", &[]),
            ("memory", &[]),
            ("owners", &[]),
            ("retried", &[]),
            ("error", &["common"]),
            ("runtime", &["error", "memory", "owners"]),
            ("session", &["runtime"]),
            ("gate", &["error", "runtime", "session"]),
            ("pattern", &["error"]),
            ("point", &["error", "gate", "session"]),
            ("credentials", &["error", "gate", "session"]),
            ("read_only", &["error", "runtime"]),
            ("repair", &["error", "runtime", "session"]),
            (
                "live",
                &[
                    "bounds", "common", "error", "gate", "home", "owners", "point", "retried",
                    "runtime", "session",
                ],
            ),
            ("registry", &["error", "runtime", "live"]),
            (
                "secret",
                &[
                    "error", "gate", "pattern", "runtime", "session", "live", "registry",
                ],
            ),
            (
                "files",
                &[
                    "bounds", "common", "error", "gate", "home", "owners", "point", "retried",
                    "runtime", "session", "live",
                ],
            ),
            (
                "history",
                &[
                    "bounds", "common", "error", "gate", "home", "owners", "point", "retried",
                    "runtime", "session", "live", "files",
                ],
            ),
            (
                "command",
                &[
                    "bounds", "common", "error", "gate", "home", "owners", "point", "retried",
                    "runtime", "session", "live", "files", "history", "registry", "secret",
                ],
            ),
            (
                "job",
                &[
                    "bounds", "common", "error", "gate", "home", "owners", "point", "retried",
                    "runtime", "session", "live", "files", "history", "command",
                ],
            ),
            (
                "transfer",
                &[
                    "error", "gate", "owners", "runtime", "session", "live", "history",
                ],
            ),
        ],
    ),
];

/// The one module of a crate that owns the state of all others, and what it may name of modules below its own row: the
/// types of its fields, and what they begin with. All may use it, so whatever else it named would close a cycle.
type Hub = (&'static str, &'static [&'static str]);

const HUBS: &[(&str, Hub)] = &[(
    "crates/runtime",
    (
        "runtime",
        &[
            "read_only::Work",
            "read_only::may_not_write",
            "repair::Rebuild",
            "repair::open_vaults",
            "live::admission::LAST_COMMITS",
            "live::engine::Engine",
            "live::engine::Unremoved",
            "live::host::Host",
            "live::host::HostFacts",
            "live::layers_place::LayersPlace",
            "live::mounts::Window",
            "live::mounts::heal",
            "live::network::Networks",
            "live::ports::Forwards",
            "live::slot::Slot",
            "files::search::Indexes",
            "command::observer::Observers",
            "command::policy::PolicyFiles",
            "command::spill::Spills",
            "job::Jobs",
            "registry::KnownRegistries",
            "secret::Secrets",
        ],
    ),
)];

pub fn check(top: &Path, files: &[String]) -> Vec<String> {
    let mut complaints = Vec::new();
    for (room, rows) in FOLDERS {
        let source = format!("{room}/src/");
        let sources: Vec<(&str, String)> = files
            .iter()
            .filter(|file| file.starts_with(&source) && file.ends_with(".rs"))
            .map(|file| {
                let text = std::fs::read_to_string(top.join(file)).unwrap_or_default();
                (file.as_str(), text)
            })
            .collect();
        let hub = HUBS.iter().find(|(name, _)| name == room);
        complaints.extend(check_crate(room, rows, hub.map(|(_, hub)| hub), &sources));
    }
    complaints
}

/// Holds the sources of one crate, `(path, text)` each, against its rows.
fn check_crate(
    room: &str,
    rows: &[Row],
    hub: Option<&Hub>,
    sources: &[(&str, String)],
) -> Vec<String> {
    let mut complaints = check_rows(room, rows);
    let mut named = BTreeSet::new();
    let root = Root::of(room, sources);
    // What a module of tests uses is nobody's dependency.
    for module in root.modules.iter().filter(|module| *module != "tests") {
        if !rows.iter().any(|(name, _)| name == module) {
            complaints.push(format!(
                "{room}: module {module} has no row in xtask/src/tidy/folders.rs"
            ));
        }
    }
    for (file, text) in sources {
        let module = module_of(room, file);
        let Some(own) = module.first().filter(|_| !is_test(file)) else {
            continue;
        };
        let allowed = rows.iter().find(|(name, _)| name == own);
        let allowed = allowed.map_or(&[] as &[&str], |(_, allowed)| allowed);
        for reference in references(text, &module) {
            if let Some(name) = hub.and_then(|hub| in_hub(hub, own, &reference)) {
                named.insert(name);
                continue;
            }
            if let Some(reason) = root.objection(&reference, own, allowed) {
                complaints.push(format!("{file}:{}: {reason}", reference.line));
            }
        }
    }
    let unnamed = hub.into_iter().flat_map(|(_, names)| names.iter());
    for name in unnamed.filter(|name| !named.contains(*name)) {
        complaints.push(format!(
            "{room}: its hub does not name {name}: take it from the list in xtask/src/tidy/folders.rs"
        ));
    }
    complaints
}

/// The name in the hub's list that a reference in the hub is.
fn in_hub((module, names): &Hub, own: &str, reference: &Reference) -> Option<&'static str> {
    let path = reference.path.join("::");
    let names = names.iter().filter(|_| own == *module);
    names.copied().find(|name| *name == path)
}

/// A row that allows a module below it, or none that exists, is wrong itself.
fn check_rows(room: &str, rows: &[Row]) -> Vec<String> {
    let mut complaints = Vec::new();
    let mut above = BTreeSet::new();
    for (name, allowed) in rows {
        for other in allowed.iter().filter(|other| !above.contains(*other)) {
            complaints.push(format!(
                "{room}: {name} may not use {other}, which has no row above it in xtask/src/tidy/folders.rs"
            ));
        }
        above.insert(name);
    }
    complaints
}

fn is_test(file: &str) -> bool {
    file.ends_with("/tests.rs") || file.ends_with("_tests.rs") || file.contains("/tests/")
}

/// The path of the module that a file is, without the crate's own name.
fn module_of(room: &str, file: &str) -> Vec<String> {
    let inside = file
        .strip_prefix(room)
        .and_then(|rest| rest.strip_prefix("/src/"))
        .and_then(|rest| rest.strip_suffix(".rs"))
        .unwrap_or_default();
    let mut module: Vec<String> = inside.split('/').map(str::to_owned).collect();
    let last = module.last().map(String::as_str);
    if matches!(last, Some("mod" | "lib" | "main")) {
        module.pop();
    }
    module
}

/// What stands at the root of a crate.
struct Root {
    modules: BTreeSet<String>,
    /// Names that the root imports, and the top-level module that each comes from.
    imports: BTreeMap<String, String>,
}

impl Root {
    fn of(room: &str, sources: &[(&str, String)]) -> Root {
        let modules: BTreeSet<String> = sources
            .iter()
            .filter_map(|(file, _)| module_of(room, file).into_iter().next())
            // Programs of their own.
            .filter(|module| module != "bin")
            .collect();
        let roots = ["lib", "main"].map(|name| format!("{room}/src/{name}.rs"));
        let texts = sources
            .iter()
            .filter(|(file, _)| roots.iter().any(|root| root == file));
        let imports = texts.flat_map(|(_, text)| imports(text)).collect();
        Root { modules, imports }
    }

    /// Why a module may not have this reference; `None` when it may.
    fn objection(&self, reference: &Reference, own: &str, allowed: &[&str]) -> Option<String> {
        let Some(first) = reference.path.first().filter(|first| *first != "*") else {
            return Some(format!(
                "{own} takes the root of its crate as a whole: name the module that is meant"
            ));
        };
        let target = match self.modules.contains(first) {
            true => Some(first),
            false => self.imports.get(first),
        };
        let Some(target) = target else {
            return Some(format!(
                "{own} uses crate::{first}, which is in no module that has a row: move it into one"
            ));
        };
        let fits = target == own || allowed.contains(&target.as_str());
        (!fits).then(|| {
            format!(
                "{own} uses {target}, which its row in xtask/src/tidy/folders.rs does not allow"
            )
        })
    }
}
