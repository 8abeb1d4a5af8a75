//! Sessions from the first message to the end of the mount.

use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use zerocopy::{FromBytes, IntoBytes};

use super::{Echo, message, read_as};
use crate::wire::{self, InitIn, InitOut, OutHeader, opcode};
use crate::{Features, Session, Settings};

const SETTINGS: Settings = Settings {
    features: Features::ASYNC_READ.union(Features::READDIRPLUS),
    max_write: 64 << 10,
    max_background: 16,
    threads: 2,
    name: "tested",
};

/// The kernel's side of a session.
struct Kernel(OwnedFd);

impl Kernel {
    /// A device that has a first question.
    fn with_init(init: InitIn) -> (Kernel, OwnedFd) {
        let (kernel, fuse) = Kernel::unasked();
        kernel.say(&message(opcode::INIT, 0, &[init.as_bytes(), &[0; 48]]));
        (kernel, fuse)
    }

    fn unasked() -> (Kernel, OwnedFd) {
        let flags = SocketFlags::CLOEXEC;
        let pair = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None);
        let (kernel, fuse) = pair.unwrap();
        (Kernel(kernel), fuse)
    }

    fn say(&self, message: &[u8]) {
        assert_eq!(rustix::io::write(&self.0, message), Ok(message.len()));
    }

    fn hear(&self) -> (OutHeader, Vec<u8>) {
        let mut bytes = vec![0; 1 << 17];
        let length = rustix::io::read(&self.0, &mut bytes).unwrap();
        bytes.truncate(length);
        let (header, rest) = OutHeader::read_from_prefix(&bytes).unwrap();
        assert_eq!(header.len as usize, length);
        (header, rest.to_vec())
    }
}

fn init(major: u32, minor: u32) -> InitIn {
    InitIn {
        major,
        minor,
        max_readahead: 128 << 10,
        flags: Features::READDIRPLUS.bits() as u32 | 1 << 30,
    }
}

#[test]
fn only_what_both_sides_know_is_agreed_on() {
    let (kernel, fuse) = Kernel::with_init(init(7, 34));
    let session = Session::serve(fuse, Echo::default(), SETTINGS).unwrap();
    let (header, terms) = kernel.hear();
    assert_eq!((header.error, header.unique), (0, 42));
    let terms: InitOut = read_as(&terms);
    assert_eq!((terms.major, terms.minor), (7, 34));
    assert_eq!(u64::from(terms.flags), Features::READDIRPLUS.bits());
    assert_eq!(terms.flags2, 0);
    assert_eq!(
        (terms.max_readahead, terms.max_write),
        (128 << 10, 64 << 10)
    );
    assert!(session.is_alive());
}

#[test]
fn the_second_half_of_the_features_counts_only_with_its_flag() {
    const EXTENDED: u32 = 1 << 30;
    let settings = Settings {
        features: SETTINGS.features.union(Features::ALLOW_IDMAP),
        ..SETTINGS
    };
    let second = (Features::ALLOW_IDMAP.bits() >> 32) as u32;
    for (flags, more, agreed) in [
        (EXTENDED, &[second][..], second),
        (EXTENDED, &[!second], 0),
        (0, &[second], 0),
        // Kernels before the second half.
        (EXTENDED, &[], 0),
    ] {
        let more: Vec<u8> = more.iter().flat_map(|half| half.to_ne_bytes()).collect();
        let asked = InitIn {
            flags,
            ..init(7, 40)
        };
        let (kernel, fuse) = Kernel::unasked();
        kernel.say(&message(opcode::INIT, 0, &[asked.as_bytes(), &more]));
        Session::serve(fuse, Echo::default(), settings).unwrap();
        let terms: InitOut = read_as(&kernel.hear().1);
        assert_eq!(terms.flags2, agreed);
        assert_eq!(terms.flags & EXTENDED != 0, agreed != 0);
    }
}

#[test]
fn a_newer_kernel_is_asked_to_say_it_in_our_words_and_a_far_older_one_refused() {
    let (kernel, fuse) = Kernel::with_init(init(8, 1));
    kernel.say(&message(opcode::INIT, 0, &[init(7, 99).as_bytes()]));
    Session::serve(fuse, Echo::default(), SETTINGS).unwrap();
    assert_eq!(read_as::<InitOut>(&kernel.hear().1).major, 7);
    assert_eq!(read_as::<InitOut>(&kernel.hear().1).minor, wire::MINOR);

    let (kernel, fuse) = Kernel::with_init(init(7, 12));
    let refused = Session::serve(fuse, Echo::default(), SETTINGS).unwrap_err();
    assert!(refused.to_string().contains("7.12"), "{refused}");
    assert_eq!(kernel.hear().0.error, -Errno::PROTO.raw_os_error());
}

#[test]
fn a_mount_that_is_gone_or_served_already_is_told_apart() {
    let (kernel, fuse) = Kernel::with_init(init(7, 40));
    let mut message = [0; 256];
    rustix::io::read(&fuse, &mut message).unwrap();
    drop(kernel);
    let refused = Session::serve(fuse, Echo::default(), SETTINGS).unwrap_err();
    assert_eq!(refused.kind(), std::io::ErrorKind::NotConnected);
}

#[test]
fn a_fault_in_one_answer_is_an_error_to_whoever_asked_and_the_rest_goes_on() {
    let (kernel, fuse) = Kernel::with_init(init(7, 40));
    let session = Session::serve(fuse, Echo::default(), SETTINGS).unwrap();
    kernel.hear();
    for _ in 0..5 {
        kernel.say(&message(opcode::LOOKUP, 1, &[b"panic\0"]));
        assert_eq!(kernel.hear().0.error, -Errno::IO.raw_os_error());
    }
    kernel.say(&message(opcode::GETATTR, 9, &[&[0; 16]]));
    let (header, answered) = kernel.hear();
    assert_eq!(header.error, 0);
    assert_eq!(read_as::<wire::AttrOut>(&answered).attr.number, 9);
    assert!(session.is_alive());
}

#[test]
fn what_changed_is_told_and_the_end_of_the_mount_ends_the_threads() {
    let (kernel, fuse) = Kernel::with_init(init(7, 40));
    let session = Session::serve(fuse, Echo::default(), SETTINGS).unwrap();
    kernel.hear();
    let notifier = session.notifier();
    notifier.forget_name(5, b"name");
    let (header, said) = kernel.hear();
    assert_eq!((header.unique, header.error), (0, 3));
    assert_eq!(
        said,
        [&5u64.to_ne_bytes()[..], &4u64.to_ne_bytes(), b"name\0"].concat()
    );
    notifier.forget_attributes(6);
    let (header, said) = kernel.hear();
    assert_eq!((header.unique, header.error), (0, 2));
    assert_eq!(read_as::<wire::ForgetInode>(&said).offset, -1);
    notifier.forget_data(6);
    assert_eq!(read_as::<wire::ForgetInode>(&kernel.hear().1).offset, 0);
    // Messages without a header are nobody's.
    kernel.say(b"short");
    drop(kernel);
    let patience = Instant::now() + Duration::from_secs(20);
    while session.is_alive() {
        assert!(Instant::now() < patience, "a thread did not end");
        std::thread::sleep(Duration::from_millis(2));
    }
    notifier.forget_data(6);
}
