//! What is lent of a home, and what is not.

use super::*;

fn home() -> (tempfile::TempDir, PathBuf) {
    let home = tempfile::tempdir().unwrap();
    let path = fs::canonicalize(home.path()).unwrap();
    (home, path)
}

fn make_version(home: &Path, path: &str) -> PathBuf {
    let version = home.join(path);
    fs::create_dir_all(version.join("bin")).unwrap();
    version
}

fn found(home: &Path, path: &[&str]) -> Survey {
    let path = std::env::join_paths(path.iter().map(|dir| home.join(dir))).unwrap();
    survey(Some(home), &path)
}

fn lent(home: &Path, path: &[&str]) -> Vec<PathBuf> {
    let found = found(home, path).lent.into_iter();
    found
        .map(|lent| {
            assert_eq!(lent.host, lent.inside);
            lent.host
        })
        .collect()
}

#[test]
fn all_versions_are_lent_and_the_default_is_used() {
    let (_home, home) = home();
    make_version(&home, ".rustup/toolchains/nightly");
    let stable = make_version(&home, ".rustup/toolchains/stable");
    std::os::unix::fs::symlink(&stable, home.join(".rustup/toolchains/mine")).unwrap();
    let elsewhere = make_version(&home, "src/rust/build");
    std::os::unix::fs::symlink(&elsewhere, home.join(".rustup/toolchains/own")).unwrap();
    let settings = home.join(".rustup/settings.toml");
    fs::write(settings, "default_toolchain = \"mine\"\n").unwrap();
    let found = found(&home, &[".cargo/bin"]);
    let lent: Vec<_> = found.lent.iter().map(|lent| lent.host.clone()).collect();
    assert_eq!(lent, [home.join(".rustup/toolchains"), elsewhere]);
    assert_eq!(found.bins, [stable.join("bin")]);
    let names = found.catalogue.installed();
    let names = names
        .iter()
        .filter(|version| version.family == Family::Rust);
    let names: Vec<_> = names.map(|version| version.name.as_str()).collect();
    assert_eq!(names, ["mine", "nightly", "own", "stable"]);
}

#[test]
fn versions_on_path_and_those_of_settings_are_used() {
    let (_home, home) = home();
    let node = make_version(&home, ".nvm/versions/node/v20.0.0");
    make_version(&home, ".nvm/versions/node/v22.0.0");
    make_version(&home, ".pyenv/versions/3.11.1");
    let python = make_version(&home, ".pyenv/versions/3.12.1");
    fs::write(
        home.join(".pyenv/version"),
        "3.12.1\nsystem\n../../secret\n",
    )
    .unwrap();
    fs::create_dir_all(home.join("secret/bin")).unwrap();
    let found = found(&home, &[".nvm/versions/node/v20.0.0/bin", ".pyenv/shims"]);
    assert_eq!(found.bins, [node.join("bin"), python.join("bin")]);
    let go = make_version(&home, "sdk/go1.22.3");
    fs::write(go.join("bin/go"), "").unwrap();
    make_version(&home, "sdk/android");
    let lent = lent(&home, &[]);
    assert!(
        lent.contains(&go) && !lent.contains(&home.join("sdk")),
        "{lent:?}"
    );
}

#[test]
fn nothing_else_of_a_home_is_lent() {
    let (_home, home) = home();
    for dir in ["bin", ".cargo/bin", ".local/bin", ".nvm/bin", ".config/bin"] {
        fs::create_dir_all(home.join(dir)).unwrap();
    }
    let path = [
        "bin",
        ".",
        ".cargo/bin",
        ".local/bin",
        ".nvm/bin",
        ".config/bin",
    ];
    assert_eq!(lent(&home, &path), Vec::<PathBuf>::new());
    // A version that is really the home, or above it.
    let toolchains = home.join(".rustup/toolchains");
    fs::create_dir_all(&toolchains).unwrap();
    std::os::unix::fs::symlink(&home, toolchains.join("all")).unwrap();
    std::os::unix::fs::symlink("/", toolchains.join("more")).unwrap();
    assert_eq!(lent(&home, &path), [toolchains]);
    // A manager's directory that is one.
    fs::create_dir(home.join(".pyenv")).unwrap();
    std::os::unix::fs::symlink(&home, home.join(".pyenv/versions")).unwrap();
    std::os::unix::fs::symlink("/", home.join(".rbenv")).unwrap();
    assert_eq!(lent(&home, &path).len(), 1);
}

#[test]
fn what_the_system_has_is_left_to_it() {
    let (_home, home) = home();
    let python = make_version(&home, ".pyenv/versions/conda");
    for program in ["sh", "python3.99", "its-own", "python3"] {
        fs::write(python.join("bin").join(program), "").unwrap();
    }
    let shims = found(&home, &[]).shims;
    for program in ["python", "python3", "python3.99", "its-own"] {
        assert!(shims.contains(program), "{program}: {shims:?}");
    }
    assert!(!shims.contains("sh"), "{shims:?}");
}
