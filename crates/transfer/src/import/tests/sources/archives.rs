//! Archives: what is honest comes in, what is not is refused whole.

use std::io::Write;

use avfs_vault::Kind;
use tar::{Builder, EntryType, Header};

use super::{From, Scene};
use crate::{Error, ImportCache, ImportFilter, Unwatched};

/// One entry with a name exactly as given, which no honest writer would produce.
fn raw(builder: &mut Builder<Vec<u8>>, kind: EntryType, name: &[u8], target: &str, body: &[u8]) {
    let mut header = Header::new_gnu();
    header.as_old_mut().name[..name.len()].copy_from_slice(name);
    if !target.is_empty() {
        header.as_old_mut().linkname[..target.len()].copy_from_slice(target.as_bytes());
    }
    header.set_entry_type(kind);
    header.set_mode(0o640);
    header.set_mtime(1_600_000_000);
    header.set_size(body.len() as u64);
    header.set_cksum();
    builder.append(&header, body).unwrap();
}

type Line<'a> = (EntryType, &'a str, &'a str, &'a str);

fn tar_of(lines: &[Line<'_>]) -> Vec<u8> {
    let mut builder = Builder::new(Vec::new());
    for (kind, name, target, body) in lines {
        raw(
            &mut builder,
            *kind,
            name.as_bytes(),
            target,
            body.as_bytes(),
        );
    }
    builder.into_inner().unwrap()
}

const FILE: EntryType = EntryType::Regular;
const DIR: EntryType = EntryType::Directory;
const LINK: EntryType = EntryType::Link;
const SYMLINK: EntryType = EntryType::Symlink;

pub(super) fn honest() -> Vec<u8> {
    let mut builder = Builder::new(Vec::new());
    raw(&mut builder, DIR, b"./", "", b"");
    raw(&mut builder, DIR, b"./d/", "", b"");
    raw(&mut builder, FILE, b"./d/f", "", b"first");
    raw(&mut builder, FILE, b"implied/above/g", "", b"");
    raw(&mut builder, LINK, b"twin", "./d/f", b"");
    raw(&mut builder, SYMLINK, b"out", "/etc/passwd", b"");
    raw(&mut builder, EntryType::Fifo, b"pipe", "", b"");
    raw(&mut builder, EntryType::Char, b"null", "", b"");
    raw(&mut builder, FILE, b"d/f", "", b"second");
    let pairs = [
        ("mtime", &b"12.5"[..]),
        ("SCHILY.xattr.user.k", b"v"),
        ("SCHILY.xattr.security.k", b"no"),
    ];
    builder.append_pax_extensions(pairs).unwrap();
    raw(&mut builder, FILE, b"attributed", "", b"x");
    let long = "long/".repeat(40) + "name";
    let mut header = Header::new_gnu();
    header.set_size(2);
    header.set_mode(0o755);
    builder.append_data(&mut header, &long, &b"ok"[..]).unwrap();
    let large: Vec<u8> = (0..3_000_000_u32).map(|n| (n >> 3) as u8).collect();
    raw(&mut builder, FILE, b"large", "", &large);
    builder.into_inner().unwrap()
}

#[test]
fn an_honest_archive_comes_in() {
    let mut scene = Scene::new();
    let report = scene.archive(&honest()).unwrap();
    assert_eq!(report.files, 8, "{report:?}");
    let skipped: Vec<_> = report
        .skipped
        .iter()
        .map(|s| (&s.path[..], &s.reason[..]))
        .collect();
    assert_eq!(skipped, [(&b"null"[..], "it is a device")]);
    assert_eq!(scene.text("/w/d/f"), "second", "the last one counts");
    assert_eq!(scene.text("/w/twin"), "first");
    assert_eq!(scene.text("/w/implied/above/g"), "");
    assert_eq!(scene.kind("/w/pipe"), Some(Kind::Fifo));
    let target = b"/etc/passwd".to_vec();
    assert_eq!(scene.kind("/w/out"), Some(Kind::Symlink { target }));
    assert_eq!(scene.text(&format!("/w/{}name", "long/".repeat(40))), "ok");
    let Some(Kind::File { size, .. }) = scene.kind("/w/large") else {
        panic!("a file")
    };
    assert_eq!(size, 3_000_000);
    let entry = scene
        .trees
        .entry(scene.root, &"/w/attributed".parse().unwrap())
        .unwrap()
        .unwrap();
    assert_eq!(
        (entry.meta.mtime.secs, entry.meta.mtime.nanos),
        (12, 500_000_000)
    );
    assert_eq!(entry.meta.xattrs.len(), 1);
    assert_eq!((entry.meta.mode, entry.meta.uid), (0o640, 1000));
}

#[test]
fn compressed_archives_are_the_same() {
    let plain = honest();
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(&plain).unwrap();
    let gzip = gzip.finish().unwrap();
    let zstd = zstd::stream::encode_all(&plain[..], 1).unwrap();
    let mut roots = Vec::new();
    for bytes in [&plain, &gzip, &zstd] {
        let mut scene = Scene::new();
        scene.archive(bytes).unwrap();
        // Implied directories are as old as the import.
        roots.push((
            scene.text("/w/d/f"),
            scene.kind("/w/large"),
            scene.kind("/w/d"),
        ));
    }
    assert!(roots.iter().all(|root| *root == roots[0]));
    let mut scene = Scene::new();
    for whole in [&gzip, &zstd] {
        scene.refused(&whole[..whole.len() - 3], "");
    }
}

#[test]
fn what_is_not_honest_is_refused() {
    let mut scene = Scene::new();
    let through = [(SYMLINK, "a", "/tmp", ""), (FILE, "a/evil", "", "x")];
    for (lines, why) in [
        (&[(FILE, "/etc/passwd", "", "x")][..], "absolute"),
        (&[(FILE, "../x", "", "x")], "'.' and '..' are not names"),
        (
            &[(FILE, "a/../../x", "", "x")],
            "'.' and '..' are not names",
        ),
        (
            &[(FILE, "ok", "", "x"), (DIR, "a/..", "", "")],
            "'.' and '..' are not names",
        ),
        (&through, "it goes through /a, which is a symlink"),
        (
            &[(FILE, "a", "", "x"), (FILE, "a/b", "", "x")],
            "it goes through /a, which is a file",
        ),
        (&[(LINK, "a", "/etc/passwd", "")], "outside the archive"),
        (&[(LINK, "a", "../x", "")], "outside the archive"),
        (&[(LINK, "a", "never", "")], "not in the archive"),
        (
            &[(DIR, "d", "", ""), (LINK, "a", "d", "")],
            "which is a directory",
        ),
        (
            &[(FILE, "d/f", "", ""), (SYMLINK, "d", "/", "")],
            "a directory that has content",
        ),
        (&[(SYMLINK, "s", "", "")], "a symlink to nowhere"),
        (&[(SYMLINK, ".", "/", "")], "it makes the top a symlink"),
    ] {
        scene.refused(&tar_of(lines), why);
    }
    let name = "n".repeat(256);
    let mut builder = Builder::new(Vec::new());
    let mut header = Header::new_gnu();
    header.set_size(0);
    builder.append_data(&mut header, &name, &b""[..]).unwrap();
    scene.refused(&builder.into_inner().unwrap(), "longer than 255 bytes");
}

#[test]
fn an_archive_that_is_cut_short_is_refused_wherever_it_is_cut() {
    let whole = tar_of(&[
        (DIR, "d", "", ""),
        (FILE, "d/f", "", &"x".repeat(700)),
        (FILE, "zeros", "", &"\0".repeat(1024)),
    ]);
    let mut scene = Scene::new();
    scene.archive(&whole).unwrap();
    // Behind the first block of the end mark everything is there.
    let end = whole.len() - 1024;
    for length in (0..=end).step_by(64).chain([1, 511, 513, end - 1]) {
        let error = scene.archive(&whole[..length]).expect_err("cut");
        assert!(
            matches!(error, Error::Archive { .. }),
            "at {length}: {error}"
        );
    }
    let mut damaged = whole.clone();
    damaged[0] ^= 1;
    scene.refused(&damaged, "checksum");
    scene.refused(b"this is no archive", "no tar archive");
    scene.refused(&b"root:x:0:0:root:/root\n".repeat(50), "no tar archive");
    scene.refused(b"", "empty");
}

#[test]
fn filters_hold_for_archives_too() {
    let mut scene = Scene::new();
    let bytes = tar_of(&[
        (FILE, "a/node_modules/x/y", "", "y"),
        (FILE, "a/node_modules/z", "", "z"),
        (FILE, "a/b.o", "", "o"),
        (LINK, "a/link", "a/b.o", ""),
        (FILE, "a/b.c", "", "c"),
    ]);
    let filter = ImportFilter {
        exclude: vec!["node_modules".into(), "*.o".into()],
        ..ImportFilter::default()
    };
    let report = scene
        .import(
            From::Archive(&bytes),
            &filter,
            &ImportCache::empty(),
            &Unwatched,
        )
        .unwrap();
    let told: Vec<String> = report
        .skipped
        .iter()
        .map(|s| format!("{}: {}", String::from_utf8_lossy(&s.path), s.reason))
        .collect();
    assert_eq!(
        told,
        [
            "a/b.o: excluded by *.o",
            "a/link: it is a hard link to a/b.o, which is excluded by *.o",
            "a/node_modules: excluded by node_modules",
        ]
    );
    assert_eq!(report.files, 1);
}
