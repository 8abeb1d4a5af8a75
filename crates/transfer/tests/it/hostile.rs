//! Archives, directories and notes that mean no good: nothing is read, written or removed outside.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};

use avfs_testkit::{Dice, scan};
use avfs_transfer::{
    Apply, Error, Hooks, ImportFilter, Standing, TransferDirectory, Unwatched, finish_interrupted,
};
use avfs_vault::{Entry, Meta, Time, VaultPath};
use rustix::fs::{CWD, Mode};
use tar::{Builder, EntryType, Header};

use super::{Scene, path};

/// An archive of entries that the library which writes it would not check.
fn archive(entries: &[(EntryType, &str, &str)]) -> Vec<u8> {
    let mut builder = Builder::new(Vec::new());
    for (kind, name, target) in entries {
        let mut header = Header::new_gnu();
        header.as_old_mut().name[..name.len()].copy_from_slice(name.as_bytes());
        header.as_old_mut().linkname[..target.len()].copy_from_slice(target.as_bytes());
        header.set_entry_type(*kind);
        header.set_mode(0o644);
        header.set_size(0);
        header.set_cksum();
        builder.append(&header, &b""[..]).unwrap();
    }
    builder.into_inner().unwrap()
}

#[test]
fn an_archive_that_leads_out_is_refused_whole() {
    use EntryType::{Directory, Link, Regular, Symlink};
    let mut scene = Scene::new();
    let before = scene.root;
    for entries in [
        &[(Regular, "/etc/passwd", "")][..],
        &[(Regular, "ok", ""), (Regular, "../out", "")],
        &[(Regular, "a/../../out", "")],
        &[(Symlink, "a", "/tmp"), (Regular, "a/out", "")],
        &[
            (Symlink, "a", ".."),
            (Directory, "a/", ""),
            (Symlink, "a", "/"),
        ],
        &[(Link, "a", "/etc/passwd")],
        &[(Link, "a", "../out")],
        &[(Link, "a", "not-there")],
        &[(Regular, "", "")],
    ] {
        let refused = scene.import_archive(&archive(entries));
        match entries.len() {
            // A directory may take the place of a symlink, and a symlink that of an empty directory.
            3 => drop(refused.unwrap()),
            _ => assert!(
                matches!(refused, Err(Error::Archive { .. })),
                "{entries:?}: {refused:?}"
            ),
        }
    }
    scene.root = before;
    assert!(scan(&scene.host("")).nodes.len() == 1);
}

#[test]
fn a_damaged_archive_is_refused_or_taken_but_never_leads_out() {
    let mut scene = Scene::new();
    fs::create_dir_all(scene.host("d/e")).unwrap();
    for name in ["d/one", "d/e/two", "three"] {
        fs::write(scene.host(name), name.repeat(40)).unwrap();
    }
    symlink("d/one", scene.host("link")).unwrap();
    fs::hard_link(scene.host("three"), scene.host("d/three")).unwrap();
    scene.import_directory(&scene.host("")).unwrap();
    let file = scene.beside("honest.tar");
    scene.export(|exporter| exporter.to_archive(&file)).unwrap();
    let honest = fs::read(&file).unwrap();
    let outside = scan(&scene.host(""));

    let empty = scene.trees.empty_root().unwrap();
    let mut dice = Dice::new(14);
    let mut refused = 0;
    for _ in 0..400 {
        let mut bytes = honest.clone();
        for _ in 0..=dice.roll(3) {
            let at = dice.roll(bytes.len() as u64) as usize;
            bytes[at] = dice.roll(256) as u8;
        }
        bytes.truncate(bytes.len() - dice.roll(2) as usize * dice.roll(2048) as usize);
        scene.root = empty;
        match scene.import_archive(&bytes) {
            Err(Error::Archive { .. }) => refused += 1,
            Err(error) => panic!("{error}"),
            Ok(_) => {}
        }
    }
    assert!(refused > 100, "{refused}");
    assert_eq!(scan(&scene.host("")), outside);
}

#[test]
fn a_directory_gives_only_what_is_in_it() {
    let mut scene = Scene::new();
    fs::write(scene.beside("secret"), "secret").unwrap();
    symlink(scene.beside("secret"), scene.host("link")).unwrap();
    symlink(scene.dir.path(), scene.host("up")).unwrap();
    symlink("loop", scene.host("loop")).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(scene.host("socket")).unwrap();
    rustix::fs::mkfifoat(CWD, scene.host("pipe"), Mode::RUSR).unwrap();
    let report = scene.import_directory(&scene.host("")).unwrap();
    let skipped: Vec<_> = report.skipped.iter().map(|it| &it.path[..]).collect();
    assert_eq!(skipped, [b"socket"]);
    assert_eq!((report.files, report.directories, report.bytes), (4, 0, 0));
    let link = scene.trees.entry(scene.root, &path("/link")).unwrap();
    let target = scene.beside("secret").as_os_str().as_bytes().to_vec();
    assert_eq!(link.unwrap().kind, avfs_vault::Kind::Symlink { target });
}

#[test]
fn what_is_too_large_is_refused_before_it_is_read() {
    let scene = Scene::new();
    fs::File::create(scene.host("huge"))
        .unwrap()
        .set_len(1 << 40)
        .unwrap();
    let refuse = |path: &VaultPath, size: u64| match size > 100 {
        true => Err(avfs_vault::Error::NotAFile { path: path.clone() }),
        false => Ok(()),
    };
    let read = scene.with_importer(&ImportFilter::default(), &refuse, |importer| {
        importer.read_directory(&scene.host(""))
    });
    let read = read.err();
    assert!(
        matches!(&read, Some(Error::Vault(avfs_vault::Error::NotAFile { path })) if path.to_string() == "/huge"),
        "{read:?}"
    );
}

#[test]
fn a_panic_while_reading_is_no_hang() {
    let scene = Scene::new();
    for n in 0..20 {
        fs::create_dir(scene.host(&format!("d{n}"))).unwrap();
        fs::write(scene.host(&format!("d{n}/f")), "f").unwrap();
    }
    let (filter, admits) = (ImportFilter::default(), |_: &VaultPath, _: u64| {
        panic!("on purpose")
    });
    let read = || {
        scene.with_importer(&filter, &admits, |importer| {
            importer.read_directory(&scene.host(""))
        })
    };
    assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(read)).is_err());
}

#[test]
fn no_name_leads_out_of_the_transfer_directory() {
    let mut scene = Scene::new();
    fs::create_dir(scene.host("in")).unwrap();
    fs::write(scene.host("in/own"), "own").unwrap();
    fs::write(scene.beside("secret"), "secret").unwrap();
    fs::hard_link(scene.beside("secret"), scene.host("in/stolen")).unwrap();
    fs::hard_link(scene.beside("secret"), scene.host("stolen.tar")).unwrap();
    symlink(scene.dir.path(), scene.host("up")).unwrap();
    rustix::fs::mkfifoat(CWD, scene.host("pipe"), Mode::RUSR).unwrap();
    for name in [
        "..",
        "../secret",
        "in/../../secret",
        "up",
        "up/secret",
        "/etc/passwd",
        "stolen.tar",
    ] {
        let refused = scene.import_transfer(name.as_bytes());
        assert!(
            matches!(refused, Err(Error::NotBeneath { .. })),
            "{name}: {refused:?}"
        );
    }
    let pipe = scene.import_transfer(b"pipe");
    assert!(matches!(pipe, Err(Error::NotASource { .. })), "{pipe:?}");
    let report = scene.import_transfer(b"in").unwrap();
    assert_eq!(report.files, 1);
    let skipped: Vec<_> = report.skipped.iter().map(|it| &it.path[..]).collect();
    assert_eq!(skipped, [b"stolen"], "another name of it is outside");

    let directory = TransferDirectory::open(scene.real_host()).unwrap();
    for name in ["", ".", "..", "a/b", "../out", "/out", "nul\0"] {
        let refused = scene.export(|exporter| directory.export(exporter, name.as_bytes()));
        assert!(
            matches!(refused, Err(Error::NotBeneath { .. })),
            "{name}: {refused:?}"
        );
    }
    for name in ["in", "up", "pipe"] {
        let refused = scene.export(|exporter| directory.export(exporter, name.as_bytes()));
        assert!(matches!(refused, Err(Error::Exists { .. })), "{name}");
    }
    scene
        .export(|exporter| directory.export(exporter, b"out"))
        .unwrap();
    assert_eq!(fs::read(scene.host("out/own")).unwrap(), b"own");
    symlink(scene.real_host(), scene.beside("alias")).unwrap();
    let alias = TransferDirectory::open(scene.beside("alias")).err();
    assert!(matches!(alias, Some(Error::Host { .. })), "{alias:?}");
}

#[test]
fn an_export_follows_no_link_and_writes_no_hook() {
    let mut scene = Scene::new();
    fs::create_dir_all(scene.host(".git/hooks")).unwrap();
    for name in ["HEAD", "objects", "refs", "hooks/post-checkout"] {
        fs::write(scene.host(".git").join(name), "x").unwrap();
    }
    scene.import_directory(&scene.host("")).unwrap();
    let out = scene.beside("out");
    let refused = scene.export_directory(&out);
    assert!(
        matches!(refused, Err(Error::RunsByItself { .. })),
        "{refused:?}"
    );
    assert!(!out.exists());
    let mut edit = scene.trees.edit(scene.root).unwrap();
    edit.remove(&path("/.git/hooks")).unwrap();
    edit.put(&path("/d"), Entry::directory(0o755, Time::EPOCH))
        .unwrap();
    let (content, size) = scene.trees.write_bytes(b"new").unwrap();
    let entry = Entry::file(content, size, Meta::new(0o4777, Time::EPOCH));
    edit.put(&path("/d/f"), entry).unwrap();
    scene.root = edit.finish().unwrap();

    // What is a link where a directory goes refuses the whole; a link where a file goes is replaced itself.
    fs::create_dir(&out).unwrap();
    fs::create_dir(scene.beside("elsewhere")).unwrap();
    fs::write(scene.beside("elsewhere/f"), "old").unwrap();
    symlink(scene.beside("elsewhere"), out.join("d")).unwrap();
    let overwrite =
        |scene: &Scene| scene.export(|exporter| exporter.to_directory(&out, Standing::Replaced));
    let refused = overwrite(&scene);
    assert!(matches!(refused, Err(Error::Exists { .. })), "{refused:?}");
    fs::remove_file(out.join("d")).unwrap();
    fs::create_dir(out.join("d")).unwrap();
    symlink(scene.beside("elsewhere/f"), out.join("d/f")).unwrap();
    overwrite(&scene).unwrap();
    assert_eq!(fs::read(out.join("d/f")).unwrap(), b"new");
    assert_eq!(fs::read(scene.beside("elsewhere/f")).unwrap(), b"old");
    let mode = out.join("d/f").symlink_metadata().unwrap().permissions();
    assert_eq!(mode.mode() & 0o7777, 0o777, "setuid stays inside");
    assert!(scene.is_settled());
}

#[test]
fn changes_are_not_applied_to_a_host_that_moved_on() {
    let mut scene = Scene::new();
    fs::create_dir(scene.host("d")).unwrap();
    fs::write(scene.host("d/f"), "old").unwrap();
    fs::create_dir(scene.beside("elsewhere")).unwrap();
    fs::write(scene.beside("elsewhere/f"), "old").unwrap();
    scene.import_directory(&scene.host("")).unwrap();
    let base = scene.root;
    let mut edit = scene.trees.edit(base).unwrap();
    let mut entry = edit.get(&path("/d/f")).unwrap().unwrap();
    let (content, size) = scene.trees.write_bytes(b"new").unwrap();
    entry.kind = Entry::file(content, size, entry.meta.clone()).kind;
    edit.put(&path("/d/f"), entry).unwrap();
    scene.root = edit.finish().unwrap();
    let roots = (base, scene.root);
    let host = scene.real_host();
    let plan = || Apply::plan(&scene.trees, roots, &path("/"), &host, &Unwatched);

    // The directory becomes a link once the plan is made.
    let planned = plan().unwrap();
    fs::rename(scene.host("d"), scene.beside("away")).unwrap();
    symlink(scene.beside("elsewhere"), scene.host("d")).unwrap();
    let applied = planned.write(Hooks::Refuse, &scene.notes());
    assert!(
        matches!(applied, Err(Error::HostChanged { .. })),
        "{applied:?}"
    );
    let planned = plan().err();
    assert!(
        matches!(planned, Some(Error::HostChanged { .. })),
        "{planned:?}"
    );
    assert_eq!(fs::read(scene.beside("elsewhere/f")).unwrap(), b"old");
    assert!(scene.is_settled());
}

#[test]
fn a_forged_note_removes_nothing() {
    let scene = Scene::new();
    fs::create_dir(scene.notes()).unwrap();
    fs::create_dir(scene.beside("victim")).unwrap();
    fs::write(scene.beside("victim/f"), "stays").unwrap();
    let stat = rustix::fs::stat(scene.beside("victim")).unwrap();
    let parent = scene.host("").as_os_str().as_bytes().to_vec();
    // A note is its parent, its name, and that it was made with this inode.
    let forged = |name: &str| {
        (
            parent.clone(),
            name.to_owned(),
            (1_u32, stat.st_dev, stat.st_ino),
        )
    };
    for (number, name) in ["../victim", "victim", ".avfs-export-/../../victim", ""]
        .into_iter()
        .enumerate()
    {
        let bytes = postcard::to_stdvec(&forged(name)).unwrap();
        fs::write(scene.notes().join(format!("{number}.aside")), bytes).unwrap();
    }
    let record = (parent.clone(), "../victim", Vec::<u8>::new());
    let bytes = postcard::to_stdvec(&record).unwrap();
    fs::write(scene.notes().join("forged"), &bytes).unwrap();
    fs::write(scene.notes().join("forged.done"), &bytes).unwrap();
    finish_interrupted(&scene.notes());
    assert_eq!(fs::read(scene.beside("victim/f")).unwrap(), b"stays");

    // One that is right in all of this is heeded: the test would not see it otherwise.
    let own = scene.host(".avfs-export-1");
    fs::create_dir(&own).unwrap();
    fs::write(own.join("f"), "goes").unwrap();
    let stat = rustix::fs::stat(&own).unwrap();
    let note = (&parent, ".avfs-export-1", (1_u32, stat.st_dev, stat.st_ino));
    let bytes = postcard::to_stdvec(&note).unwrap();
    fs::write(scene.notes().join(".avfs-export-1.aside"), bytes).unwrap();
    finish_interrupted(&scene.notes());
    assert!(!own.exists());
}
