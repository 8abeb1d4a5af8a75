//! Which crate may depend on which: dependencies point down only.

use std::path::Path;

/// Every crate with the crates of ours that its product code may depend on.
const ARROWS: [(&str, &[&str]); 15] = [
    ("crates/store", &[]),
    ("crates/vault", &["avfs-store"]),
    ("crates/policy", &[]),
    ("crates/transfer", &["avfs-store", "avfs-vault"]),
    ("crates/fuse", &[]),
    ("crates/view", &["avfs-fuse", "avfs-vault"]),
    ("crates/sandbox", &[]),
    ("crates/net", &["avfs-policy"]),
    (
        "crates/runtime",
        &[
            "avfs-net",
            "avfs-policy",
            "avfs-sandbox",
            "avfs-store",
            "avfs-transfer",
            "avfs-vault",
            "avfs-view",
        ],
    ),
    ("crates/api", &["avfs-runtime"]),
    ("crates/agentvfs", &["avfs-api", "avfs-runtime"]),
    // `doctor` looks at the sandbox itself.
    ("crates/cli", &["avfs-api", "avfs-runtime", "avfs-sandbox"]),
    ("crates/testkit", &[]),
    ("benches", &["avfs-api", "avfs-policy", "avfs-runtime"]),
    ("xtask", &[]),
];

pub fn check(top: &Path) -> Vec<String> {
    let mut complaints = Vec::new();
    let architecture = std::fs::read_to_string(top.join("ARCHITECTURE.md")).unwrap_or_default();
    let workspace = manifest(top);
    let members = workspace["workspace"]["members"]
        .as_array()
        .cloned()
        .unwrap_or_default();
    for member in members.iter().filter_map(toml::Value::as_str) {
        let Some((_, allowed)) = ARROWS.iter().find(|(room, _)| *room == member) else {
            complaints.push(format!(
                "{member}: a crate without a line in xtask/src/tidy/arrows.rs"
            ));
            continue;
        };
        let room = member.rsplit('/').next().unwrap_or(member);
        if !architecture.contains(room) {
            complaints.push(format!("{member}: not in ARCHITECTURE.md"));
        }
        let manifest = manifest(&top.join(member));
        let Some(dependencies) = manifest.get("dependencies").and_then(toml::Value::as_table)
        else {
            continue;
        };
        for name in dependencies.keys().filter(|name| name.starts_with("avfs-")) {
            if !allowed.contains(&name.as_str()) {
                complaints.push(format!(
                    "{member}: depends on {name}, which xtask/src/tidy/arrows.rs does not allow"
                ));
            }
        }
    }
    complaints
}

fn manifest(directory: &Path) -> toml::Value {
    let path = directory.join("Cargo.toml");
    let text = std::fs::read_to_string(&path)
        .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    toml::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}
