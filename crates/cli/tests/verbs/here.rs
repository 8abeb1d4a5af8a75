//! The vault of a directory: chosen by the owner, kept in the home, and nowhere else.

use crate::AVFS;
use avfs_testkit::{Home, with_vault};
use std::fs;
use std::path::Path;

fn in_directory(home: &Home, dir: &Path, words: &[&str]) -> (bool, String) {
    let said = home.command(words).current_dir(dir).output().unwrap();
    let text = [said.stdout, said.stderr].concat();
    (
        said.status.success(),
        String::from_utf8_lossy(&text).into_owned(),
    )
}

fn directory(home: &Home, name: &str) -> std::path::PathBuf {
    let dir = home.path().join(name);
    fs::create_dir_all(&dir).unwrap();
    home.give(&dir);
    dir
}

#[test]
fn a_directory_has_a_vault_of_its_own() {
    with_vault(AVFS, |home| {
        home.ok(&["vault", "create", "w"]);
        home.ok(&["vault", "create", "x"]);
        let (project, deep) = (directory(home, "project"), directory(home, "project/a/b"));
        let name = |dir: &Path| {
            let (ok, text) = in_directory(home, dir, &["--json", "vault", "info"]);
            assert!(ok, "{text}");
            let info: serde_json::Value = serde_json::from_str(&text).unwrap();
            info["name"].as_str().unwrap().to_owned()
        };
        let (ok, said) = in_directory(home, &project, &["vault", "use", "w", "--here"]);
        assert!(ok && said.contains("w is now the vault"), "{said}");
        assert_eq!(
            (name(&project), name(&deep), name(home.path())),
            ("w".into(), "w".into(), "v".into())
        );
        assert_eq!(
            fs::read_dir(&project).unwrap().count(),
            1,
            "nothing is written into the project"
        );
        // The nearest one counts, then what is said for the terminal, then the option.
        in_directory(home, &deep, &["vault", "use", "x", "--here"]);
        assert_eq!((name(&project), name(&deep)), ("w".into(), "x".into()));
        let mut said = home.command(&["--json", "vault", "info"]);
        let said = said
            .current_dir(&deep)
            .env("AVFS_VAULT", "v")
            .output()
            .unwrap();
        assert!(
            String::from_utf8_lossy(&said.stdout).contains("\"name\": \"v\""),
            "{said:?}"
        );
        // It stays with its vault when that is renamed.
        home.ok(&["vault", "rename", "w", "renamed"]);
        assert_eq!(name(&project), "renamed");
        let (ok, said) = in_directory(home, &deep, &["vault", "use", "--here"]);
        assert!(ok, "{said}");
        assert_eq!(name(&deep), "renamed");
        home.ok(&["vault", "delete", "renamed"]);
        let (ok, said) = in_directory(home, &project, &["ls"]);
        assert!(!ok && said.contains("there is no vault"), "{said}");
    });
}

/// What is in a directory may be an agent's work: it cannot say which vault the owner means.
#[test]
fn nothing_in_a_directory_or_of_an_agent_chooses() {
    with_vault(AVFS, |home| {
        home.ok(&["vault", "create", "w"]);
        let project = directory(home, "project");
        for name in ["directories.json", ".avfs", ".avfs.json", ".env"] {
            fs::write(
                project.join(name),
                format!("{{\"{}\": \"w\"}}", project.display()),
            )
            .unwrap();
        }
        let (ok, said) = in_directory(home, &project, &["--json", "vault", "info"]);
        assert!(ok && said.contains("\"name\": \"v\""), "{said}");
        let mut agent = home.command(&["vault", "use", "w", "--here"]);
        let refused = agent
            .current_dir(&project)
            .env("AVFS_CLASS", "agent")
            .output()
            .unwrap();
        assert!(!refused.status.success(), "{refused:?}");
        let (ok, said) = in_directory(home, &project, &["vault", "use", "nope", "--here"]);
        assert!(!ok && said.contains("nope"), "{said}");
        assert!(!home.avfs_home().join("directories.json").exists());
    });
}
