//! Changes beneath the top of a view, and paths that would lead out of it.

use super::*;
use std::io::Write;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;

fn top(path: &Path) -> OwnedFd {
    let flags = OFlags::PATH | OFlags::DIRECTORY;
    rustix::fs::open(path, flags, Mode::empty()).unwrap()
}

fn done(view: &Path, change: ViewOp) -> io::Result<Option<OwnedFd>> {
    apply(top(view).as_fd(), &change, None)
}

fn opened(view: &Path, path: &str, how: Opening) -> io::Result<std::fs::File> {
    let path = path.as_bytes().to_vec();
    let descriptor = done(view, ViewOp::Open { path, how })?;
    Ok(descriptor.expect("a descriptor").into())
}

fn make(view: &Path, path: &str, over: Over) -> io::Result<()> {
    let mut made = opened(view, path, Opening::Unnamed)?;
    made.write_all(b"x")?;
    let meta = NewMeta::default();
    name_file(
        top(view).as_fd(),
        &made.into(),
        path.as_bytes(),
        &meta,
        over,
    )
}

#[test]
fn no_link_and_no_dots_lead_out() {
    let place = tempfile::tempdir().unwrap();
    let view = place.path().join("view");
    std::fs::create_dir(&view).unwrap();
    std::fs::write(place.path().join("secret"), "s").unwrap();
    symlink("..", view.join("up")).unwrap();
    symlink("../secret", view.join("link")).unwrap();
    for path in ["up/secret", "link", "../secret", "/etc/passwd"] {
        assert!(opened(&view, path, Opening::Empty).is_err(), "{path}");
        assert!(opened(&view, path, Opening::Append).is_err(), "{path}");
        let path = path.as_bytes().to_vec();
        let meta = NewMeta {
            mode: Some(0),
            ..NewMeta::default()
        };
        // Does not follow a link.
        let _ = done(&view, ViewOp::Meta { path, meta });
    }
    assert!(opened(&view, "up/new", Opening::Unnamed).is_err());
    let removed = ViewOp::Remove {
        path: b"up/secret".to_vec(),
    };
    assert!(done(&view, removed).is_err());
    let secret = std::fs::metadata(place.path().join("secret")).unwrap();
    assert_eq!((secret.len(), secret.mode() & 0o777 != 0), (1, true));
}

#[test]
fn a_file_is_emptied_only_if_it_is_the_known_one() {
    let view = tempfile::tempdir().unwrap();
    let file = view.path().join("f");
    std::fs::write(&file, "abc").unwrap();
    let stat = std::fs::metadata(&file).unwrap();
    let mtime = (stat.mtime(), stat.mtime_nsec() as u32);
    let stale = Opening::EmptyIf { size: 4, mtime };
    let error = opened(view.path(), "f", stale).unwrap_err();
    assert_eq!(error.raw_os_error(), Some(libc::ESTALE));
    assert_eq!(std::fs::read(&file).unwrap(), b"abc");
    let known = Opening::EmptyIf { size: 3, mtime };
    let mut known = opened(view.path(), "f", known).unwrap();
    // A process appends before the new content is written: both are kept.
    let mut other = std::fs::File::options().append(true).open(&file).unwrap();
    other.write_all(b"other").unwrap();
    known.write_all(b"new").unwrap();
    assert_eq!(std::fs::read(&file).unwrap(), b"othernew");
}

#[test]
fn names_are_made_moved_and_removed() {
    let view = tempfile::tempdir().unwrap();
    let path = |text: &str| text.as_bytes().to_vec();
    let at = |text: &str| view.path().join(text);
    done(view.path(), ViewOp::Directory { path: path("d") }).unwrap();
    make(view.path(), "d/f", Over::Nothing).unwrap();
    assert_eq!(
        std::fs::read_dir(at("d")).unwrap().count(),
        1,
        "and no other"
    );
    let taken = make(view.path(), "d/f", Over::Nothing).unwrap_err();
    assert_eq!(taken.kind(), io::ErrorKind::AlreadyExists);
    make(view.path(), "d/f", Over::Existing).unwrap();
    assert_eq!(std::fs::read_dir(at("d")).unwrap().count(), 1);
    let (from, to) = (path("d/f"), path("d/g"));
    done(view.path(), ViewOp::Link { from, to }).unwrap();
    let (from, to, over) = (path("d/g"), path("d/f"), Over::Nothing);
    let taken = done(view.path(), ViewOp::Rename { from, to, over });
    assert_eq!(taken.unwrap_err().kind(), io::ErrorKind::AlreadyExists);
    let target = path("nowhere");
    done(
        view.path(),
        ViewOp::Symlink {
            path: path("d/s"),
            target,
        },
    )
    .unwrap();
    done(view.path(), ViewOp::Fifo { path: path("d/p") }).unwrap();
    let meta = NewMeta {
        mode: Some(0o640),
        mtime: Some((1_000, 7)),
        xattrs: None,
    };
    let path_of = path("d/f");
    done(
        view.path(),
        ViewOp::Meta {
            path: path_of,
            meta,
        },
    )
    .unwrap();
    let stat = std::fs::metadata(at("d/g")).unwrap();
    assert_eq!(
        (stat.mode() & 0o7777, stat.mtime(), stat.nlink()),
        (0o640, 1_000, 2)
    );
    std::fs::create_dir(at("d/deep")).unwrap();
    std::fs::write(at("d/deep/f"), "").unwrap();
    std::fs::set_permissions(at("d/g"), std::fs::Permissions::from_mode(0o000)).unwrap();
    done(view.path(), ViewOp::Remove { path: path("d") }).unwrap();
    assert_eq!(std::fs::read_dir(view.path()).unwrap().count(), 0);
}
