//! Directories that the owner lends to a vault: read, never written, and only those that may be lent.

use crate::{AVFS, text};
use avfs_testkit::Home;
use serde_json::Value;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;

/// A directory of the owner's with a file in it. As root it is not below `/tmp`, so that it needs a mount point in the vault.
struct Data {
    dir: PathBuf,
    _own: Option<tempfile::TempDir>,
}

impl Data {
    fn of(home: &Home) -> Data {
        let own = home.is_root().then(|| {
            let own = tempfile::Builder::new()
                .prefix("avfs-lent-")
                .tempdir_in("/srv");
            own.unwrap()
        });
        let above = own.as_ref().map_or(home.user_home(), |own| own.path());
        let dir = above.join("data");
        fs::create_dir(&dir).unwrap();
        fs::write(dir.join("f"), "lent\n").unwrap();
        Data { dir, _own: own }
    }

    fn text(&self) -> &str {
        self.dir.to_str().unwrap()
    }
}

fn lend(home: &Home, what: &str) -> String {
    home.ok(&["vault", "set", &format!("lend={what}")])
}

/// What `vault info` says is lent as a directory.
fn lent(home: &Home) -> Vec<String> {
    let info = home.json(&["vault", "info"]);
    let items = info["lent"].as_array().unwrap().iter();
    let items = items.filter(|item| item["kind"] == "directory");
    items
        .map(|item| item["path"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn a_lent_directory_is_read_and_not_written() {
    for home in Home::of_every_user_with_vault(AVFS) {
        let data = Data::of(&home);
        let dir = data.text();
        let before = home.shell(&format!("cat {dir}/f"));
        assert_eq!(before["result"]["exit_code"], 1, "{before:#}");
        assert!(lend(&home, &format!("{dir}:ro")).contains(dir));
        let tried = format!(
            "cat {dir}/f; echo x > {dir}/f; touch {dir}/g; rm {dir}/f; rmdir {dir}; mv {dir} {dir}2"
        );
        let tried = home.shell(&tried);
        assert_eq!(text(&tried["result"]), "lent\n", "{tried:#}");
        assert_eq!(tried["result"]["changes_total"], 0, "{tried:#}");
        assert_eq!(fs::read_to_string(data.dir.join("f")).unwrap(), "lent\n");
        assert!(!data.dir.join("g").exists());
        // What the owner writes later is seen.
        fs::write(data.dir.join("new"), "new\n").unwrap();
        assert_eq!(
            text(&home.shell(&format!("cat {dir}/new"))["result"]),
            "new\n"
        );
        // It is told, without what it is recognised by; it is journaled; a fork has it.
        assert_eq!(lent(&home), [dir]);
        let info = home.json(&["vault", "info"]);
        assert_eq!(info["settings"]["lend"], format!("{dir}:ro"));
        assert!(home.ok(&["vault", "info"]).contains(dir));
        assert!(home.json(&["audit"]).to_string().contains(dir));
        home.ok(&["vault", "fork", "v", "w", "--use"]);
        assert_eq!(
            text(&home.shell(&format!("cat {dir}/f"))["result"]),
            "lent\n"
        );
        home.ok(&["vault", "unset", "lend"]);
        assert_eq!(
            home.shell(&format!("cat {dir}/f"))["result"]["exit_code"],
            1
        );
        assert_eq!(lent(&home), Vec::<String>::new());
        // Another daemon leaves nothing of it in a vault that lends something else.
        home.ok(&["daemon", "stop"]);
        let other = data.dir.with_file_name("other");
        fs::create_dir(&other).unwrap();
        lend(&home, other.to_str().unwrap());
        let there = home.shell(&format!("ls -d {} {dir}", other.display()));
        if home.is_root() {
            let only = format!("{}\n", other.display());
            assert_eq!(text(&there["result"]), only, "{there:#}");
        }
    }
}

#[test]
fn what_takes_the_place_of_a_lent_directory_is_refused() {
    for home in Home::of_every_user_with_vault(AVFS) {
        let data = Data::of(&home);
        let (dir, aside) = (data.dir.clone(), data.dir.with_file_name("aside"));
        let secret = home.user_home().join(".ssh");
        fs::create_dir(&secret).unwrap();
        fs::write(secret.join("f"), "secret\n").unwrap();
        lend(&home, data.text());
        fs::rename(&dir, &aside).unwrap();
        let places: [&dyn Fn(); 3] = [
            &|| symlink(&secret, &dir).unwrap(),
            &|| fs::create_dir(&dir).unwrap(),
            &|| fs::write(&dir, "a file").unwrap(),
        ];
        for place in places {
            place();
            let refused = home.refused(&["exec", "--", "cat", &format!("{}/f", data.text())]);
            assert_eq!(refused.0, "Denied", "{refused:?}");
            let gone = fs::remove_file(&dir).or_else(|_| fs::remove_dir(&dir));
            gone.unwrap();
        }
        fs::rename(&aside, &dir).unwrap();
        let result = home.shell(&format!("cat {}/f", data.text()));
        assert_eq!(text(&result["result"]), "lent\n");
        // It became something that everybody writes.
        fs::set_permissions(&dir, fs::Permissions::from_mode(0o777)).unwrap();
        home.ok(&["daemon", "stop"]);
        assert_eq!(home.refused(&["exec", "--", "true"]).0, "Denied");
    }
}

#[test]
fn what_may_not_be_lent_is_refused() {
    for home in Home::of_every_user_with_vault(AVFS) {
        let user = home.user_home().to_owned();
        for dir in [
            ".ssh/in",
            ".aws",
            ".config/gcloud/x",
            "open",
            "a/b",
            ".cargo",
        ] {
            fs::create_dir_all(user.join(dir)).unwrap();
        }
        fs::write(user.join("file"), "").unwrap();
        fs::set_permissions(user.join("open"), fs::Permissions::from_mode(0o777)).unwrap();
        symlink(user.join(".ssh"), user.join("link")).unwrap();
        symlink("/", user.join("root")).unwrap();
        let own = home.avfs_home();
        let at = |name: &str| user.join(name).to_str().unwrap().to_owned();
        let mut cases = vec![
            at(""),
            at(".ssh"),
            at(".ssh/in"),
            at(".aws"),
            at(".config"),
            at(".config/gcloud/x"),
            at(".cargo"),
            at("open"),
            at("file"),
            at("link"),
            at("root"),
            at("none"),
            at("a/../a"),
            format!("{}:rw", at("a")),
            format!("{},{}", at("a"), at("a/b")),
            home.path().to_str().unwrap().to_owned(),
            own.to_str().unwrap().to_owned(),
            own.join("layers").to_str().unwrap().to_owned(),
            home.runtime_base().to_str().unwrap().to_owned(),
        ];
        let system = [
            "/",
            "/proc",
            "/proc/self",
            "/sys",
            "/dev",
            "/run",
            "/etc",
            "/etc/ssl",
            "/tmp",
            "/home",
            "/usr",
            "",
            "a",
            "/a\nb",
            "/workspace",
        ];
        cases.extend(system.map(str::to_owned));
        cases.push(vec![at("a"); 17].join(","));
        for case in cases {
            let refused = home.refused(&["vault", "set", &format!("lend={case}")]);
            assert_eq!(refused.0, "Invalid", "{case:?}: {refused:?}");
        }
        assert_eq!(lent(&home), Vec::<String>::new());
        let setting = format!("lend={}", at("a"));
        assert_eq!(
            home.refused(&["vault", "set", "--default", &setting]).0,
            "Invalid"
        );
        let agent = home
            .command(&["--json", "vault", "set", &setting])
            .env("AVFS_CLASS", "agent")
            .output();
        let agent: Value = serde_json::from_slice(&agent.unwrap().stdout).unwrap();
        assert!(agent.to_string().contains("Denied"), "{agent}");
        home.ok(&["vault", "set", &setting]);
    }
}
