//! Brings a project's files into a directory, by the ordinary package managers.

use std::fs;
use std::path::{Path, PathBuf};

use super::catalogue::{Project, Source};
use super::shell::{Outcome, bash};

/// Where the project lies when it is whole. What was fetched before is used again.
pub fn fetch(project: &Project, cache: &Path) -> Outcome<PathBuf> {
    let tree = cache.join(project.name);
    if tree.join(".whole").exists() {
        return Ok(tree);
    }
    let _ = fs::remove_dir_all(&tree);
    fs::create_dir_all(&tree).map_err(|error| format!("{}: {error}", tree.display()))?;
    match project.source {
        Source::Crate(name) => bash(&tree, &crate_script(name))?,
        Source::Sdist(name) => bash(&tree, &sdist_script(name))?,
        Source::Debian(name) => bash(&tree, &debian_script(name))?,
        Source::Files(files) => {
            for (name, text) in files {
                fs::write(tree.join(name), text).map_err(|error| format!("{name}: {error}"))?;
            }
        }
    }
    bash(&tree, project.prepare)?;
    fs::write(tree.join(".whole"), "").map_err(|error| error.to_string())?;
    Ok(tree)
}

/// A package that has only a program is a dependency to `cargo vendor` all the same.
fn crate_script(name: &str) -> String {
    format!(
        "mkdir -p .get/src && touch .get/src/lib.rs && cd .get
         printf '[package]\\nname = \"get\"\\nversion = \"0.0.0\"\\nedition = \"2021\"\\n[workspace]\\n[dependencies]\\n{name} = \"*\"\\n' > Cargo.toml
         cargo vendor --quiet > /dev/null && cp -r vendor/{name}/. .. && cd .. && rm -rf .get"
    )
}

fn sdist_script(name: &str) -> String {
    format!(
        "python3 -m pip download --quiet --no-deps --no-binary :all: --dest .get {name}
         tar -xzf .get/*.tar.gz --strip-components=1 && rm -rf .get"
    )
}

/// Lists of sources beside those of the system, which has none as a rule. The newest version may be on its way to a
/// mirror: then that of the release is taken.
fn debian_script(name: &str) -> String {
    format!(
        "mkdir -p .get/lists/partial .get/cache/archives/partial .get/parts && cd .get
         sed 's/^Types:.*/Types: deb-src/' /etc/apt/sources.list.d/debian.sources > parts/debian.sources
         own=\"-o Dir::Etc::sourcelist=/dev/null -o Dir::Etc::sourceparts=$PWD/parts -o Dir::State::lists=$PWD/lists -o Dir::Cache=$PWD/cache\"
         apt-get $own -q update
         . /etc/os-release
         apt-get $own -q source --download-only {name} || apt-get $own -q source --download-only {name}/$VERSION_CODENAME
         cd .. && tar -xf .get/{name}_*.orig.tar.* --strip-components=1 && rm -rf .get"
    )
}
