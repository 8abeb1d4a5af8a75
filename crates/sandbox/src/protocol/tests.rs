//! Frames, descriptors and sealed bodies between two ends of a link.

use super::*;
use crate::plan::{Command, Event, ExitStatus, Usage};

fn exited() -> Event {
    let status = ExitStatus::Signal(9);
    Event::Exited {
        status,
        usage: Usage::default(),
        leftovers: 3,
        cause: None,
    }
}

fn raw(bytes: &[u8]) -> Result<Received<Event>, LinkError> {
    let (ours, theirs) = Link::pair().unwrap();
    rustix::io::write(&theirs, bytes).unwrap();
    ours.receive(Wait::No)
}

#[test]
fn frames_arrive_as_they_were_sent() {
    let (ours, theirs) = Link::pair().unwrap();
    assert!(matches!(
        ours.receive::<Event>(Wait::No),
        Ok(Received::Nothing)
    ));
    theirs.send(&exited(), &[]).unwrap();
    let Ok(Received::Frame(event, _)) = ours.receive::<Event>(Wait::No) else {
        panic!()
    };
    assert_eq!(event, exited());
    drop(theirs);
    assert!(matches!(
        ours.receive::<Event>(Wait::No),
        Ok(Received::Closed)
    ));
    assert!(matches!(ours.send(&exited(), &[]), Err(LinkError::Closed)));
}

#[test]
fn malformed_frames_are_refused() {
    let good = postcard::to_stdvec(&exited()).unwrap();
    assert!(matches!(raw(&good), Ok(Received::Frame(..))));
    let trailing = [&good[..], b"x"].concat();
    for bytes in [
        &trailing[..],
        &good[..good.len() - 1],
        b"\xff",
        &[0; FRAME_MAX + 1],
    ] {
        assert!(
            matches!(raw(bytes), Err(LinkError::Malformed(_))),
            "{} bytes",
            bytes.len()
        );
    }
}

#[test]
fn unexpected_descriptors_never_arrive() {
    let (ours, theirs) = Link::pair().unwrap();
    let (watched, sent) = Link::pair().unwrap();
    theirs.send(&exited(), &[sent.as_fd()]).unwrap();
    drop(sent);
    assert!(
        matches!(ours.receive::<Event>(Wait::No), Ok(Received::Frame(_, fds)) if fds.is_empty())
    );
    // The other end is closed.
    assert!(matches!(
        watched.receive::<Event>(Wait::No),
        Ok(Received::Closed)
    ));
}

#[test]
fn bodies_are_sealed() {
    let command = Command {
        argv: vec![vec![b'x'; 300_000]],
        env: vec![(b"A".to_vec(), b"B".to_vec())],
        cwd: b"/".to_vec(),
        ..Command::default()
    };
    let file = seal(&command).unwrap();
    assert_eq!(unseal::<Command>(file.as_fd()).unwrap(), command);
    assert!(
        rustix::io::pwrite(&file, b"y", 5).is_err(),
        "it cannot be changed"
    );
    let open = memfd_create("open", MemfdFlags::ALLOW_SEALING).unwrap();
    assert!(
        unseal::<Command>(open.as_fd()).is_err(),
        "it must be sealed"
    );
}

#[test]
fn answers_must_come_in_time() {
    let (ours, _theirs) = Link::pair().unwrap();
    let answer = ours.answer::<Event>(Duration::from_millis(10));
    assert!(matches!(answer, Err(LinkError::TimedOut)));
}
