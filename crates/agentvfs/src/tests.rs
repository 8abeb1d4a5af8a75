//! Every operation of the table is asked for by a method of the library: by its name here, so that none is missing
//! without anybody noticing.

#[path = "../tests/library/common.rs"]
mod common;

use crate::face::ASKED;
use crate::types::{
    Gc, KeyCreate, KeyRotate, LifetimeWord, Maintain, Prune, SecretSet, StatusWord, StreamWord,
    TypeWord,
};
use crate::{Avfs, ErrorKind, JobOptions, Vault, WriteOptions};
use avfs_api::table::OPERATIONS;
use common::{Home, on_both};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Cursor;
use std::ops::ControlFlow;
use std::time::Duration;

const SETTLED: &str = "a passphrase for tests";

#[test]
fn every_operation_has_a_method() {
    on_both(|avfs, home| {
        let vault = avfs.create_vault("project").unwrap();
        files(&vault);
        labels(&vault);
        history(avfs, &vault);
        vaults(avfs, &vault);
        transfers(avfs, &vault, home);
        mounts(avfs, &vault, home);
        ports(avfs, &vault);
        commands(avfs, &vault);
        repositories(&vault);
        jobs(avfs, &vault);
        rules(avfs, &vault);
        approvals(avfs, &vault);
        keys(avfs);
        secrets(avfs);
        networks(&vault);
        whole_home(avfs);
    });
    let asked = ASKED.lock().unwrap().clone();
    let all: BTreeSet<&str> = OPERATIONS.iter().map(|row| row.name).collect();
    let missing: Vec<_> = all.difference(&asked).collect();
    assert!(missing.is_empty(), "no method asks for {missing:?}");
}

fn files(vault: &Vault) {
    vault.write("/a", "one\ntwo\n").unwrap();
    vault.append("/a", "three\n").unwrap();
    assert_eq!(vault.read_text("/a").unwrap(), "one\ntwo\nthree\n");
    assert_eq!(vault.read_part("/a", 4, Some(3)).unwrap().content, "two");
    let large = vec![0xff; 1 << 20];
    let parents = WriteOptions {
        parents: true,
        mode: Some("600".into()),
        ..WriteOptions::default()
    };
    vault
        .write_with("/deep/er/large", &large, &parents)
        .unwrap();
    assert_eq!(vault.read("/deep/er/large").unwrap(), large);
    assert_eq!(
        vault.stat("/deep/er/large").unwrap().attributes.mode,
        "0600"
    );
    vault
        .write_from("/b", Cursor::new("b"), &WriteOptions::default())
        .unwrap();
    vault.edit("/a", "two", "2").unwrap();
    vault.edit_all("/a", "e", "E").unwrap();
    assert_eq!(vault.read_text("/a").unwrap(), "onE\n2\nthrEE\n");
    vault.mkdir("/dir").unwrap();
    vault.mkdir_all("/dir/x/y").unwrap();
    vault.cp("/a", "/copy").unwrap();
    vault.mv("/copy", "/moved").unwrap();
    vault.hard_link("/moved", "/second").unwrap();
    vault.symlink("a", "/link").unwrap();
    assert_eq!(
        vault.stat("/link").unwrap().attributes.kind,
        TypeWord::Symlink
    );
    assert_eq!(vault.stat("/moved").unwrap().nlink, 2);
    vault.chmod("/a", "u+x").unwrap();
    vault.touch("/new").unwrap();
    vault.rm("/new").unwrap();
    assert!(!vault.exists("/new").unwrap());
    assert!(vault.rm_all("/dir").unwrap() && !vault.rm_all("/dir").unwrap());
    let names: Vec<String> = vault
        .list("/")
        .unwrap()
        .into_iter()
        .map(|it| it.name)
        .collect();
    for name in ["a", "b", "deep", "link", "moved", "second"] {
        assert!(names.contains(&name.to_owned()), "{name} in {names:?}");
    }
    assert!(vault.tree("/deep", None).unwrap().entries.len() > 2);
    assert_eq!(vault.grep("thr").unwrap()[0].path, "/a");
    assert_eq!(vault.find("larg*").unwrap()[0].path, "/deep/er/large");
    assert_eq!(vault.search("thrEE").unwrap()[0].path, "/a");
}

fn labels(vault: &Vault) {
    vault.tag("/a", "red").unwrap();
    vault.tag("/b", "red").unwrap();
    assert_eq!(vault.tags("/a").unwrap(), ["red"]);
    assert_eq!(vault.rename_tag("red", "blue").unwrap(), 2);
    vault.untag("/b", "blue").unwrap();
    assert_eq!(vault.all_tags().unwrap()[0].file_count, 1);
    assert_eq!(vault.delete_tag("blue").unwrap(), 1);
    vault.meta_set("/a", "owner", "me").unwrap();
    assert_eq!(vault.meta_get("/a", "owner").unwrap(), "me");
    let more = BTreeMap::from([("stage".to_owned(), "draft".to_owned())]);
    assert_eq!(vault.meta_import("/a", more).unwrap(), 1);
    vault.meta_delete("/a", "owner").unwrap();
    assert_eq!(vault.meta("/a").unwrap().len(), 1);
}

fn history(avfs: &Avfs, vault: &Vault) {
    vault.write("/h", "1").unwrap();
    let first = vault.log(1).unwrap()[0].version;
    vault.checkpoint("one").unwrap();
    vault.write("/h", "2").unwrap();
    assert_eq!(vault.diff_between("one", "HEAD").unwrap().changes.len(), 1);
    assert_eq!(vault.read_at_version("/h", first).unwrap(), b"1");
    assert_eq!(vault.path_log("/h", 9).unwrap().len(), 2);
    vault.revert("/h").unwrap();
    vault.checkout("/h", first + 1).unwrap();
    assert_eq!(vault.read_text("/h").unwrap(), "2");
    vault.restore("one").unwrap();
    assert_eq!(vault.read_text("/h").unwrap(), "1");
    vault.undo_restore().unwrap();
    assert_eq!(vault.read_text("/h").unwrap(), "2");
    assert!(vault.checkpoint_info("one").unwrap().version.is_some());
    let forked = vault.fork_at_checkpoint("from-one", "one").unwrap();
    assert_eq!(forked.read_text("/h").unwrap(), "1");
    assert!(forked.diff().unwrap().identical);
    let versioned = vault.fork_at_version("from-first", first).unwrap();
    assert_eq!(versioned.read_text("/h").unwrap(), "1");
    vault.delete_checkpoint("one").unwrap();
    assert!(
        vault
            .checkpoints()
            .unwrap()
            .iter()
            .all(|it| it.name != "one")
    );
    assert_eq!(vault.commit().unwrap().version, None);
    let prune = Prune {
        keep: Some(5),
        dry_run: true,
        ..Prune::default()
    };
    assert!(vault.prune(&prune).unwrap().dry_run);
    assert!(!vault.journal(5).unwrap().is_empty());
    assert!(!avfs.journal(5).unwrap().is_empty());
    assert!(avfs.verify_journal().unwrap().valid);
    let changes = avfs.changes(Some(0), Duration::ZERO).unwrap();
    assert_eq!(changes.entries[0].operation, "vault.create");
    let end = avfs.journal(1).unwrap()[0].id;
    let none = avfs.changes(Some(end), Duration::from_millis(1)).unwrap();
    assert!(none.entries.is_empty() && none.after == end && !none.more);
}

fn vaults(avfs: &Avfs, vault: &Vault) {
    vault.make_current().unwrap();
    assert_eq!(avfs.current_vault().unwrap().name(), vault.name());
    let fork = vault.fork("fork").unwrap().rename("spoon").unwrap();
    assert_eq!(avfs.vault("fork").unwrap_err().kind(), ErrorKind::NotFound);
    fork.delete().unwrap();
    assert_eq!(avfs.deleted_vaults().unwrap()[0].name, "spoon");
    let back = avfs.undelete_vault("spoon").unwrap();
    back.force_delete().unwrap();
    assert_eq!(
        avfs.undelete_vault_as("spoon", "knife").unwrap().name(),
        "knife"
    );
    assert!(avfs.vaults().unwrap().len() >= 2);
    let set = vault.set([("env.COLOUR", "red"), ("pids", "500")]).unwrap();
    assert_eq!(set, vault.settings().unwrap());
    assert_eq!(vault.unset(["pids"]).unwrap().len(), 1);
    vault.set_quota("max_files", Some(1000)).unwrap();
    assert_eq!(vault.quota().unwrap().max_files, Some(1000));
    avfs.set_defaults([("pids", Some("400".to_owned()))])
        .unwrap();
    assert_eq!(avfs.defaults().unwrap().len(), 1);
    avfs.set_defaults([("pids", None)]).unwrap();
}

fn transfers(avfs: &Avfs, vault: &Vault, home: &Home) {
    let host = home.path().join("host");
    fs::create_dir(&host).unwrap();
    fs::write(host.join("file"), "from the host").unwrap();
    assert_eq!(vault.import(&host, "/in").unwrap().files_imported, 1);
    vault.write("/in/file", "changed").unwrap();
    assert_eq!(vault.export_changes(&host).unwrap().files_exported, 1);
    assert_eq!(fs::read_to_string(host.join("file")).unwrap(), "changed");
    vault.export("/in", home.path().join("out")).unwrap();
    vault
        .export_archive("/in", home.path().join("out.tar"))
        .unwrap();
    let mut archive = Vec::new();
    let size = vault.read_archive("/in", &mut archive).unwrap();
    assert_eq!(size, archive.len() as u64);
    vault
        .write_archive("/unpacked", Cursor::new(archive))
        .unwrap();
    assert_eq!(vault.read_text("/unpacked/file").unwrap(), "changed");
    assert!(avfs.transfer_dir().unwrap().dir.is_none());
    avfs.set_transfer_dir(Some(&host)).unwrap();
    vault.transfer_out("/in", "given").unwrap();
    assert_eq!(
        fs::read_to_string(host.join("given/file")).unwrap(),
        "changed"
    );
    vault.transfer_in("given", "/taken").unwrap();
    avfs.set_transfer_dir(None).unwrap();
}

fn mounts(avfs: &Avfs, vault: &Vault, home: &Home) {
    let dir = home.path().join("mnt");
    fs::create_dir(&dir).unwrap();
    match vault.mount(&dir) {
        Ok(mounted) => {
            assert_eq!(mounted.vault, vault.name());
            fs::write(dir.join("by-hand"), "x").unwrap();
            assert_eq!(avfs.mounts().unwrap().len(), 1);
            assert_eq!(avfs.unmount(&dir).unwrap().len(), 1);
            assert_eq!(vault.read_text("/by-hand").unwrap(), "x");
            vault.mount_read_only(&dir).unwrap();
            assert!(fs::write(dir.join("by-hand"), "y").is_err());
            assert_eq!(vault.unmount().unwrap().len(), 1);
        }
        // A host without FUSE.
        Err(error) => assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}"),
    }
}

fn ports(avfs: &Avfs, vault: &Vault) {
    let opened = vault.forward_port("3000", None).unwrap();
    assert_eq!((opened.guest.as_str(), opened.connections), ("3000", 0));
    let taken = vault.forward_port("/run/app.sock", Some(opened.host_port));
    assert_eq!(taken.unwrap_err().kind(), ErrorKind::Conflict);
    for listing in [avfs.ports().unwrap(), vault.ports().unwrap()] {
        assert_eq!(listing.forwards.as_slice(), std::slice::from_ref(&opened));
    }
    assert_eq!(vault.remove_port("3000").unwrap(), [opened]);
    assert_eq!(vault.remove_ports().unwrap(), []);
}

fn repositories(vault: &Vault) {
    let setup = "git init -q -b main /repo && cd /repo && git config user.name a \
        && git config user.email a@example.org && echo one > f";
    assert_eq!(vault.shell(setup).run().unwrap().exit_code, 0);
    let state = vault.git_status("/repo").unwrap();
    assert_eq!(state.entries[0].path, "f");
    let done = vault.git_commit_all("/repo", "first").unwrap();
    assert!(done.committed);
    vault.write("/repo/f", "two\n").unwrap();
    assert!(vault.git_diff("/repo").unwrap().diff.contains("+two"));
    assert_eq!(
        vault.git_branches("/repo").unwrap().branches[0].name,
        "main"
    );
    assert_eq!(vault.git_log("/repo", 5).unwrap()[0].subject, "first");
    let cloned = vault.git_clone("/repo", "/clone").unwrap();
    assert_eq!(cloned.commit, done.commit);
}

fn commands(avfs: &Avfs, vault: &Vault) {
    let text = "head -c 3000 /dev/zero | tr '\\0' x; stty size 2>/dev/null";
    let result = vault.shell(text).output_limit(1000).run().unwrap();
    assert!(result.output.stdout.truncated);
    let part = avfs.output(&result.exec, StreamWord::Stdout, 2990).unwrap();
    assert!(part.data.starts_with("xxxxxxxxxx"), "{part:?}");
    let result = vault.shell("echo > /changed").run().unwrap();
    let changes = avfs.exec_changes(&result.exec, false).unwrap();
    assert_eq!(changes.changes[0].path, "/changed");
    // It waits for the size that it is given.
    let text =
        "until [ \"$(stty size)\" = '33 99' ]; do sleep 0.05; done; echo resized; sleep 1000";
    let mut running = vault.shell(text).tty(24, 80).stdin_piped().spawn().unwrap();
    assert!(running.next().is_some());
    let handle = running.handle();
    let resized = avfs_testkit::wait_for(std::time::Duration::from_secs(30), || {
        handle.resize(33, 99).is_ok()
    });
    assert!(resized);
    for event in running.by_ref() {
        if matches!(&event, crate::Event::Stdout(bytes) if bytes.starts_with(b"resized")) {
            handle.cancel().unwrap();
        }
    }
    let result = running.wait().unwrap();
    assert_eq!(
        (result.status, result.exit_code),
        (StatusWord::Cancelled, 130)
    );
}

fn jobs(avfs: &Avfs, vault: &Vault) {
    let options = JobOptions {
        lifetime: LifetimeWord::Detached,
        lease: None,
    };
    let text = "read line; echo got $line; read rest; echo $rest >&2";
    let command = vault.shell(text).stdin_piped();
    let job = command.start_with(&options).unwrap().job().unwrap();
    assert!(job.status().unwrap().running);
    assert_eq!(job.write_stdin("this\n").unwrap(), 5);
    job.write_stdin_from(Cursor::new("that")).unwrap();
    job.close_stdin().unwrap();
    let mut heard = Vec::new();
    let over = job.follow(|stream, bytes| {
        if stream == StreamWord::Stdout {
            heard.extend_from_slice(bytes);
        }
        ControlFlow::Continue(())
    });
    assert!(!over.unwrap().unwrap().running);
    assert_eq!(heard, b"got this\n");
    let result = avfs.job(job.id()).wait().unwrap();
    assert_eq!((result.exit_code, result.stderr.as_str()), (0, "that\n"));
    assert_eq!(job.poll(4, 0).unwrap().stdout, "this\n");
    let job = vault.command("sleep").arg("1000").tty(24, 80).start();
    let job = job.unwrap().job().unwrap();
    job.resize(30, 90).unwrap();
    job.signal(28).unwrap();
    job.kill().unwrap();
    assert!(!job.wait().unwrap().success());
    assert_eq!(vault.jobs().unwrap().len(), 2);
    assert_eq!(avfs.jobs().unwrap().len(), 2);
}

fn rules(avfs: &Avfs, vault: &Vault) {
    let decision = vault.command("git").args(["push", "--force"]).explain();
    assert_eq!(decision.unwrap().action, "require_approval");
    let text = "[[rule]]\naction = \"deny\"\ncommand = [\"touch\"]\n";
    let tested = avfs.validate_policy("vault", text);
    let text = match tested {
        Ok(_) => text,
        Err(error) => panic!("{error}: {:?}", error.hint()),
    };
    vault.set_policy(None, Some(text)).unwrap();
    assert_eq!(vault.test_policy().unwrap().failed, 0);
    let refused = vault.command("touch").arg("/never").run().unwrap();
    assert!(refused.was_refused() && refused.exit_code == 126);
    let refused = vault.command("touch").arg("/never").start().unwrap();
    assert_eq!(refused.job().unwrap_err().kind(), ErrorKind::Denied);
    assert!(vault.policy().unwrap().rules.len() > 1);
    vault.set_policy(Some(text), None).unwrap();
    // The user's real rules stay as they are: nobody has seen this.
    let conflict = avfs.write_policy("user", Some("what nobody wrote"), "");
    assert_eq!(conflict.unwrap_err().kind(), ErrorKind::Conflict);
}

fn approvals(avfs: &Avfs, vault: &Vault) {
    avfs.setup_approvals(SETTLED, None).unwrap();
    let push = || vault.command("git").args(["push", "--force"]);
    let asked = push().speculate().run().unwrap();
    let id = asked.approval_id.clone().unwrap();
    assert!(asked.was_refused());
    assert_eq!(avfs.approvals().unwrap().approvals[0].id, id);
    let shown = avfs.approval(&id).unwrap();
    // Without a terminal no passphrase counts; `examples/approval.rs` is run at one.
    let wrong = avfs.approve(&shown, "something else", None).unwrap_err();
    assert_eq!(wrong.kind(), ErrorKind::Denied);
    let unanswered = push().approval(&id).run();
    assert!(unanswered.is_err() || unanswered.is_ok_and(|it| it.was_refused()));
    let asked = vault.command("git").args(["push", "--force", "x"]).run();
    let id = asked.unwrap().approval_id.clone().unwrap();
    assert_eq!(avfs.deny(&id).unwrap().state, "denied");
}

fn networks(vault: &Vault) {
    assert!(vault.network().unwrap().hosts.is_empty());
    vault.set_network(["example.test"]).unwrap();
    vault.allow_host("*.example.test:8080").unwrap();
    let left = vault.deny_host("example.test").unwrap();
    assert_eq!(left.hosts, ["*.example.test:8080"]);
    let seen = vault
        .inspect_host("code.test", ["GET /", "POST /x"])
        .unwrap();
    assert_eq!(seen.requests[0].allow, ["GET /", "POST /x"]);
    vault.set_network([""; 0]).unwrap();
    let asked = vault.command("getent").args(["hosts", "example.test"]);
    assert!(!asked.run().unwrap().success());
    assert_eq!(
        vault.network_log().unwrap()[0].used.denied[0].host,
        "example.test"
    );
}

fn keys(avfs: &Avfs) {
    let made = avfs
        .create_key(&KeyCreate {
            name: "ci".into(),
            scopes: vec!["read".into()],
            vaults: Vec::new(),
            expires_s: None,
            rate: None,
            asks_user: false,
            passphrase: None,
        })
        .unwrap();
    let other = avfs
        .rotate_key(&KeyRotate {
            name: "ci".into(),
            expires_s: Some(60),
            forever: false,
            passphrase: None,
        })
        .unwrap();
    assert_ne!(made.key, other.key);
    assert_eq!(avfs.revoke_key("ci").unwrap().state, "revoked");
    assert_eq!(avfs.keys().unwrap()[0].name, "ci");
}

fn secrets(avfs: &Avfs) {
    let secret = SecretSet {
        name: "TOKEN".into(),
        value: "canary-of-the-library".to_owned().into(),
        hosts: vec!["*".into()],
        header: None,
        basic: None,
        allow_plain_http: false,
        vaults: vec!["project".into()],
    };
    // The key of the user who runs this stays as it is: nothing is set.
    let refused = avfs.set_secret(&secret).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Invalid);
    assert!(!format!("{secret:?} {refused:?}").contains("canary"));
    assert!(avfs.secrets().unwrap().is_empty());
    let missing = avfs.remove_secret("TOKEN").unwrap_err();
    assert_eq!(missing.kind(), ErrorKind::NotFound);
}

fn whole_home(avfs: &Avfs) {
    assert!(avfs.metrics(false).unwrap().contains("# TYPE"));
    let kept = avfs.downloads().unwrap();
    assert_eq!(avfs.clear_downloads().unwrap(), kept);
    let dry = Gc {
        dry_run: true,
        grace: None,
    };
    assert!(avfs.ask(&dry).unwrap().dry_run);
    avfs.gc().unwrap();
    assert!(avfs.fsck().unwrap().clean);
    assert!(avfs.stats().unwrap().files > 0);
    avfs.maintain(&Maintain::default()).unwrap();
    let state = avfs.daemon().unwrap();
    match state.pid == std::process::id() {
        true => {
            let refused = avfs.stop_daemon(false).unwrap_err();
            assert_eq!(refused.kind(), ErrorKind::Invalid);
        }
        false => {
            avfs.stop_daemon(false).unwrap();
            assert_ne!(
                avfs.daemon().unwrap().pid,
                state.pid,
                "another one was started"
            );
        }
    }
}
