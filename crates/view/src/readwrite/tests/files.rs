//! Open files: what is written is in the upper at once, whatever happens to the name meanwhile.

use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt, PermissionsExt};
use std::process::Command;

use rustix::fs::{FlockOperation, flock};
use rustix::mm::{MapFlags, ProtFlags};

use super::support::Scene;

fn scene() -> Scene {
    Scene::of(|base| {
        base.directory("/d")
            .file("/d/stored", "stored text")
            .file("/d/large", vec![7; 3 << 20]);
    })
}

fn both(scene: &Scene, path: &str) -> File {
    let mut options = File::options();
    options.read(true).write(true);
    options.open(scene.path(path)).unwrap()
}

/// A shared mapping of the first page of a file.
struct Mapping(*mut u8);

impl Mapping {
    fn of(file: &File) -> Mapping {
        let (access, kind) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED);
        // SAFETY: a new mapping at an address of the kernel's choice touches nothing that exists.
        let at = unsafe { rustix::mm::mmap(std::ptr::null_mut(), 4096, access, kind, file, 0) };
        Mapping(at.unwrap().cast())
    }

    fn set(&self, index: usize, byte: u8) {
        assert!(index < 4096);
        // SAFETY: the mapping is one page, lives as long as `self`, and the file is no shorter.
        unsafe { self.0.add(index).write_volatile(byte) }
    }

    fn get(&self, index: usize) -> u8 {
        assert!(index < 4096);
        // SAFETY: as in `set`.
        unsafe { self.0.add(index).read_volatile() }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: nobody else has the address.
        unsafe { rustix::mm::munmap(self.0.cast(), 4096) }.unwrap();
    }
}

#[test]
fn what_write_returned_for_is_in_the_upper() {
    let scene = scene();
    let mut file = both(&scene, "/d/stored");
    file.write_all(b"STORED").unwrap();
    assert_eq!(
        fs::read(scene.upper.join("d/stored")).unwrap(),
        b"STORED text"
    );
    let mut new = File::create(scene.path("/new")).unwrap();
    new.write_all(b"first").unwrap();
    assert_eq!(fs::read(scene.upper.join("new")).unwrap(), b"first");
    new.sync_all().unwrap();
    new.sync_data().unwrap();
    let top = File::open(&scene.top).unwrap();
    top.sync_all().unwrap();
}

#[test]
fn two_descriptors_of_a_file_are_one_file() {
    let scene = scene();
    let mut reader = File::open(scene.path("/d/stored")).unwrap();
    let mut text = String::new();
    reader.read_to_string(&mut text).unwrap();
    assert_eq!(text, "stored text");
    let writer = both(&scene, "/d/stored");
    writer.write_all_at(b"written", 0).unwrap();
    reader.rewind().unwrap();
    text.clear();
    reader.read_to_string(&mut text).unwrap();
    assert_eq!(
        text, "writtentext",
        "opened before the copy-up, and yet the same file"
    );
    drop(writer);
    fs::write(scene.path("/d/stored"), "again").unwrap();
    reader.rewind().unwrap();
    text.clear();
    reader.read_to_string(&mut text).unwrap();
    assert_eq!(
        text, "again",
        "the copy stays the reader's file when its first writer is gone"
    );
}

#[test]
fn appends_of_two_descriptors_follow_each_other() {
    let scene = scene();
    let open = || {
        File::options()
            .append(true)
            .open(scene.path("/d/stored"))
            .unwrap()
    };
    let (mut one, mut two) = (open(), open());
    one.write_all(b" one").unwrap();
    two.write_all(b" two").unwrap();
    one.write_all(b" three").unwrap();
    let text = fs::read_to_string(scene.path("/d/stored")).unwrap();
    assert_eq!(text, "stored text one two three");
}

#[test]
fn truncation_is_seen_by_all() {
    let scene = scene();
    let reader = File::open(scene.path("/d/large")).unwrap();
    let truncated = File::create(scene.path("/d/large")).unwrap();
    assert_eq!(reader.metadata().unwrap().len(), 0);
    truncated.write_all_at(b"x", 9).unwrap();
    assert_eq!(reader.metadata().unwrap().len(), 10);
    truncated.set_len(4).unwrap();
    assert_eq!(fs::read(scene.path("/d/large")).unwrap(), [0; 4]);
    // Only the beginning of a stored file is needed when the rest is cut off.
    both(&scene, "/d/stored").set_len(6).unwrap();
    assert_eq!(fs::read(scene.path("/d/stored")).unwrap(), b"stored");
}

#[test]
fn a_removed_file_goes_on_for_whoever_has_it_open() {
    let mut scene = scene();
    let writer = both(&scene, "/d/stored");
    let reader = File::open(scene.path("/d/large")).unwrap();
    fs::remove_file(scene.path("/d/stored")).unwrap();
    fs::remove_file(scene.path("/d/large")).unwrap();
    writer.write_all_at(b"UNSEEN", 0).unwrap();
    let mut bytes = [0; 11];
    writer.read_exact_at(&mut bytes, 0).unwrap();
    assert_eq!(&bytes, b"UNSEEN text");
    assert_eq!(nlink(&writer), 0);
    reader.read_exact_at(&mut bytes, 2 << 20).unwrap();
    assert_eq!(
        bytes, [7; 11],
        "read from what is stored, though the name is gone"
    );
    assert_eq!(nlink(&reader), 0);
    // A change of the mode of a removed, stored file needs a copy that has no name.
    reader
        .set_permissions(fs::Permissions::from_mode(0o600))
        .unwrap();
    assert_eq!(
        reader.metadata().unwrap().permissions().mode() & 0o777,
        0o600
    );
    reader.read_exact_at(&mut bytes, 1 << 20).unwrap();
    assert_eq!(bytes, [7; 11]);
    let again = File::open(format!("/proc/self/fd/{}", raw(&writer))).unwrap();
    again.read_exact_at(&mut bytes, 0).unwrap();
    assert_eq!(&bytes, b"UNSEEN text");
    let root = scene.commit().root;
    assert_eq!(scene.paths(root), ["/", "/d"]);
}

fn raw(file: &File) -> i32 {
    std::os::fd::AsRawFd::as_raw_fd(file)
}

fn nlink(file: &File) -> u64 {
    std::os::unix::fs::MetadataExt::nlink(&file.metadata().unwrap())
}

#[test]
fn a_file_that_is_renamed_over_goes_on_for_whoever_has_it_open() {
    let scene = scene();
    let old = both(&scene, "/d/stored");
    fs::write(scene.path("/d/new"), "new").unwrap();
    fs::rename(scene.path("/d/new"), scene.path("/d/stored")).unwrap();
    old.write_all_at(b"gone", 0).unwrap();
    let mut bytes = [0; 11];
    old.read_exact_at(&mut bytes, 0).unwrap();
    assert_eq!(&bytes, b"goneed text");
    assert_eq!(fs::read(scene.path("/d/stored")).unwrap(), b"new");
    // The name may change under an open file, too.
    let open = both(&scene, "/d/stored");
    fs::rename(scene.path("/d/stored"), scene.path("/moved")).unwrap();
    open.write_all_at(b"NEW", 0).unwrap();
    assert_eq!(fs::read(scene.path("/moved")).unwrap(), b"NEW");
}

#[test]
fn memory_shared_by_processes_is_the_file() {
    let scene = scene();
    fs::write(scene.path("/shared"), [b'.'; 8192]).unwrap();
    let (one, two) = (both(&scene, "/shared"), both(&scene, "/shared"));
    let (first, second) = (Mapping::of(&one), Mapping::of(&two));
    first.set(0, b'a');
    assert_eq!(second.get(0), b'a');
    let script = "import mmap,sys\n\
        f=open(sys.argv[1],'r+b'); m=mmap.mmap(f.fileno(),4096)\n\
        assert m[0:1]==b'a'; m[1:2]=b'b'; m.close()";
    let mut other = Command::new("python3");
    let status = other
        .args(["-c", script])
        .arg(scene.path("/shared"))
        .status();
    assert!(status.unwrap().success());
    assert_eq!(first.get(1), b'b', "written by another process");
    let mut bytes = [0; 2];
    one.read_exact_at(&mut bytes, 0).unwrap();
    assert_eq!(&bytes, b"ab");
}

#[test]
fn a_mapping_of_a_stored_file_follows_its_copy() {
    let scene = scene();
    let reader = File::open(scene.path("/d/large")).unwrap();
    let (access, kind) = (ProtFlags::READ, MapFlags::SHARED);
    // SAFETY: a new mapping at an address of the kernel's choice touches nothing that exists.
    let at = unsafe { rustix::mm::mmap(std::ptr::null_mut(), 4096, access, kind, &reader, 0) };
    let mapping = Mapping(at.unwrap().cast());
    assert_eq!(mapping.get(0), 7);
    both(&scene, "/d/large").write_all_at(&[8], 0).unwrap();
    assert_eq!(mapping.get(0), 8);
}

#[test]
fn a_commit_sees_what_was_written_through_memory() {
    let mut scene = scene();
    fs::write(scene.path("/mapped"), [b'.'; 4096]).unwrap();
    let file = both(&scene, "/mapped");
    let mapping = Mapping::of(&file);
    for round in 0..3 {
        mapping.set(round, b'x');
        let root = scene.commit().root;
        let text = scene.content(root, "/mapped");
        assert_eq!(&text[..round + 1], &b"xxx"[..round + 1]);
    }
    drop(file);
    mapping.set(3, b'y');
    let root = scene.commit().root;
    assert_eq!(
        &scene.content(root, "/mapped")[..4],
        b"xxxy",
        "closed, but still mapped"
    );
}

#[test]
fn modes_forbid_opening_but_not_what_is_open() {
    let mut scene = scene();
    // As git makes its objects.
    let mut options = File::options();
    let read_only = options.write(true).create_new(true).mode(0o444);
    let mut object = read_only.open(scene.path("/object")).unwrap();
    object.write_all(b"object").unwrap();
    let secret = both(&scene, "/d/stored");
    secret
        .set_permissions(fs::Permissions::from_mode(0o0))
        .unwrap();
    secret.write_all_at(b"SECRET", 0).unwrap();
    if !rustix::process::getuid().is_root() {
        let refused = File::open(scene.path("/d/stored")).unwrap_err();
        assert_eq!(refused.kind(), std::io::ErrorKind::PermissionDenied);
    }
    drop(secret);
    assert_eq!(scene.mode("/object"), 0o444);
    assert_eq!(scene.mode("/d/stored"), 0);
    if rustix::process::getuid().is_root() {
        let root = scene.commit().root;
        assert_eq!(scene.content(root, "/d/stored"), b"SECRET text");
    }
}

#[test]
fn locks_hold_between_descriptors() {
    let scene = scene();
    let (one, two) = (both(&scene, "/d/stored"), both(&scene, "/d/stored"));
    flock(&one, FlockOperation::LockExclusive).unwrap();
    let refused = flock(&two, FlockOperation::NonBlockingLockExclusive);
    assert_eq!(refused, Err(rustix::io::Errno::WOULDBLOCK));
    flock(&one, FlockOperation::Unlock).unwrap();
    flock(&two, FlockOperation::NonBlockingLockExclusive).unwrap();
    let script = "import fcntl,sys\n\
        f=open(sys.argv[1],'r+b'); fcntl.lockf(f,fcntl.LOCK_EX|fcntl.LOCK_NB)";
    let mut other = Command::new("python3");
    let status = other
        .args(["-c", script])
        .arg(scene.path("/d/stored"))
        .status();
    assert!(
        status.unwrap().success(),
        "the two kinds of locks do not meet"
    );
}

#[test]
fn reading_and_writing_at_any_place_keeps_the_rest() {
    let scene = scene();
    let mut file = both(&scene, "/d/large");
    file.seek(SeekFrom::Start((1 << 20) - 1)).unwrap();
    file.write_all(&[1, 2, 3]).unwrap();
    let bytes = fs::read(scene.path("/d/large")).unwrap();
    assert_eq!(bytes.len(), 3 << 20);
    assert_eq!(&bytes[(1 << 20) - 2..(1 << 20) + 3], [7, 1, 2, 3, 7]);
}

#[test]
fn a_program_that_runs_cannot_be_changed() {
    let sleep = fs::read("/bin/sleep").unwrap();
    let scene = Scene::of(|base| {
        let meta = avfs_vault::Meta::new(0o755, super::support::time(1));
        base.file_with("/stored", &sleep, meta);
    });
    fs::copy("/bin/sleep", scene.path("/copied")).unwrap();
    for path in ["/stored", "/copied"] {
        let path = scene.path(path);
        let mut running = Command::new(&path).arg("1000").spawn().unwrap();
        let mut truncating = File::options();
        // Not even when nothing but reading is asked for besides.
        truncating.read(true).custom_flags(libc::O_TRUNC);
        for refused in [File::create(&path), truncating.open(&path)] {
            let errno = refused.unwrap_err().raw_os_error();
            assert_eq!(errno, Some(libc::ETXTBSY));
        }
        assert!(running.try_wait().unwrap().is_none(), "it runs on");
        running.kill().unwrap();
        running.wait().unwrap();
        assert!(fs::read(&path).unwrap() == sleep, "and is whole");
    }
}

#[test]
fn opening_to_write_copies_nothing_until_something_is_written() {
    let scene = scene();
    let file = both(&scene, "/d/large");
    assert!(!scene.upper.join("d").exists());
    file.write_all_at(&[1], 5).unwrap();
    assert_eq!(
        fs::metadata(scene.upper.join("d/large")).unwrap().len(),
        3 << 20
    );
}

#[test]
fn very_many_files_can_be_open() {
    let scene = scene();
    let script = "import resource,sys\n\
        hard=resource.getrlimit(resource.RLIMIT_NOFILE)[1]\n\
        resource.setrlimit(resource.RLIMIT_NOFILE,(hard,hard))\n\
        count=min(2000,hard-100)\n\
        held=[open(f'{sys.argv[1]}/{n}','w') for n in range(count)]\n\
        [file.write('x') or file.flush() for file in held]\n\
        print(count)";
    let mut many = Command::new("python3");
    let output = many.args(["-c", script]).arg(&scene.top).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let count: usize = said.trim().parse().unwrap();
    let whole = fs::read_dir(&scene.upper).unwrap().filter(|item| {
        let metadata = item.as_ref().unwrap().metadata().unwrap();
        metadata.is_file() && metadata.len() == 1
    });
    assert_eq!(whole.count(), count);
}
