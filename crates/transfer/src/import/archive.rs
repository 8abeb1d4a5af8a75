//! A tar archive, plain or compressed, from a file or a stream.
//!
//! Archives are untrusted. One is read to its end mark and checked before any of it is put into a
//! tree. An invalid entry refuses the whole; kinds that a tree cannot hold are left out and listed.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::io::{self, Read};
use std::rc::Rc;

use avfs_vault::{Time, VaultPath, XattrMap};
use flate2::read::MultiGzDecoder;
use tar::{Archive, EntryType};

use super::bodies::Bodies;
use super::listing::{Listing, Node, NodeKind};
use super::sparse::{Found, Unsparse};
use super::{Importer, Incoming};
use crate::error::{Error, Result};
use crate::report::Skipped;

/// Enough to recognise the format.
const HEAD: u64 = 512;

/// Reads an archive; `name` is what errors call it.
pub(super) fn read_archive(
    importer: &Importer<'_>,
    source: &mut dyn Read,
    name: &str,
) -> Result<Incoming> {
    let mut counted = Counted {
        source,
        importer,
        cancelled: false,
    };
    let read = read_any(&mut counted);
    match read {
        _ if counted.cancelled => Err(Error::Cancelled),
        Ok(incoming) => Ok(incoming),
        Err(Refusal::Archive(reason)) => Err(Error::Archive {
            archive: name.to_owned(),
            reason,
        }),
        Err(Refusal::Other(error)) => Err(error),
    }
}

fn read_any(source: &mut Counted<'_>) -> Result<Incoming, Refusal> {
    let importer = source.importer;
    let mut head = Vec::new();
    (&mut *source).take(HEAD).read_to_end(&mut head)?;
    let form = Form::of(&head).map_err(|reason| Refusal::Archive(reason.into()))?;
    let whole = head.as_slice().chain(source);
    match form {
        Form::Plain => read(importer, whole),
        Form::Gzip => read(importer, MultiGzDecoder::new(whole)),
        Form::Zstd => read(importer, zstd::stream::read::Decoder::new(whole)?),
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Form {
    Plain,
    Gzip,
    Zstd,
}

impl Form {
    fn of(head: &[u8]) -> Result<Form, &'static str> {
        match head {
            [] => Err("it is empty"),
            [0x1f, 0x8b, ..] => Ok(Form::Gzip),
            [0x28, 0xb5, 0x2f, 0xfd, ..] => Ok(Form::Zstd),
            [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => {
                Err("it is compressed with xz; pipe it through `xz -dc` and import -")
            }
            [b'B', b'Z', b'h', ..] => {
                Err("it is compressed with bzip2; pipe it through `bzip2 -dc` and import -")
            }
            [b'P', b'K', 3, 4, ..] => Err("it is a zip archive; only tar archives are read"),
            head if is_header(head) => Ok(Form::Plain),
            _ => Err("it is no tar archive: its first block lacks the checksum of one"),
        }
    }
}

/// Whether a block is a tar header with a valid checksum, or the end mark of an empty archive.
fn is_header(block: &[u8]) -> bool {
    let Some(digits) = block.get(148..156).filter(|_| block.len() == HEAD as usize) else {
        return false;
    };
    let sum = |bytes: &[u8]| bytes.iter().map(|&byte| u64::from(byte)).sum::<u64>();
    let blank = sum(b"        ");
    let text = String::from_utf8_lossy(digits);
    let noted = text.trim_matches(|letter: char| letter == '\0' || letter.is_whitespace());
    let noted = u64::from_str_radix(noted, 8).ok();
    sum(block) == 0 || noted == Some(sum(block) - sum(digits) + blank)
}

/// Why reading ended early.
enum Refusal {
    /// The archive is invalid.
    Archive(String),
    Other(Error),
}

impl From<io::Error> for Refusal {
    fn from(error: io::Error) -> Refusal {
        let reason = match error.kind() {
            io::ErrorKind::UnexpectedEof => "it is cut short".to_owned(),
            _ => sober(&error.to_string()),
        };
        Refusal::Archive(reason)
    }
}

/// Makes an error's text printable: it may quote bytes of the archive.
fn sober(text: &str) -> String {
    let shown = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let plain = shown.chars().filter(|letter| !letter.is_control());
    plain.take(120).collect()
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Refusal {
        Refusal::Other(error)
    }
}

fn read(importer: &Importer<'_>, source: impl Read) -> Result<Incoming, Refusal> {
    let ended = Rc::new(Cell::new(false));
    let source = Watched {
        source,
        ended: ended.clone(),
    };
    let sparse = Found::default();
    let mut archive = Archive::new(Unsparse::new(source, sparse.clone()));
    let mut reading = Reading {
        importer,
        sparse,
        listing: Listing::new(Time::now()),
        left_out: BTreeMap::new(),
        skipped: Vec::new(),
    };
    let contents = Bodies::gather(importer.trees, |bodies| {
        for entry in archive.entries()? {
            reading.take_in(&mut entry?, bodies)?;
            importer.tally.add(1, 0)?;
        }
        if ended.get() {
            let reason = "it ends without its end mark, and may have been cut short";
            return Err(Refusal::Archive(reason.into()));
        }
        Ok(())
    })?;
    // Read on to the end of the stream: compression checks its checksum there, and a writer of a pipe
    // would get SIGPIPE otherwise.
    io::copy(&mut archive.into_inner(), &mut io::sink())?;
    let mut incoming = reading.listing.into_incoming(importer, &contents);
    let left_out = reading.left_out.into_iter().map(|(path, reason)| Skipped {
        path: path.as_bytes()[1..].to_vec(),
        reason,
    });
    incoming.skipped = reading.skipped.into_iter().chain(left_out).collect();
    Ok(incoming)
}

struct Reading<'a> {
    importer: &'a Importer<'a>,
    sparse: Found,
    listing: Listing,
    /// The topmost names that the filter refuses.
    left_out: BTreeMap<VaultPath, String>,
    skipped: Vec<Skipped>,
}

impl Reading<'_> {
    fn take_in<R: Read>(
        &mut self,
        entry: &mut tar::Entry<'_, R>,
        bodies: &Bodies<'_>,
    ) -> Result<(), Refusal> {
        let name = entry.path_bytes().into_owned();
        let refuse = |reason: String| {
            let name = String::from_utf8_lossy(&name);
            Refusal::Archive(format!("entry {name}: {reason}"))
        };
        let kind = entry.header().entry_type();
        if kind == EntryType::XGlobalHeader {
            return Ok(());
        }
        let path = place(&name).map_err(&refuse)?;
        let is_dir = kind.is_dir() || (is_file(kind) && name.ends_with(b"/"));
        if let Some((top, reason)) = self.importer.exclusions.refuses_beneath(&path, is_dir) {
            self.left_out.insert(top, reason);
            return Ok(());
        }
        let Extras { mtime, xattrs } = extras(entry).map_err(|reason| refuse(reason.into()))?;
        let mode = entry.header().mode()? & 0o7777;
        let mtime = match mtime {
            Some(mtime) => mtime,
            None => Time {
                secs: i64::try_from(entry.header().mtime()?).unwrap_or(0),
                nanos: 0,
            },
        };
        let mut meta = self.importer.plain_meta(mode, mtime);
        meta.xattrs = xattrs;
        let kind = match kind {
            _ if is_dir => NodeKind::Directory,
            kind if is_file(kind) => {
                let map = self.sparse.take();
                let size = map.as_ref().map_or(entry.size(), |map| map.size);
                let at = self.importer.place(&path);
                let admitted = (self.importer.admits)(&at, size).map_err(Error::from);
                admitted?;
                NodeKind::File(bodies.take(entry, map).map_err(lost(&refuse))?)
            }
            EntryType::Symlink => {
                let target = entry.link_name_bytes().filter(|target| !target.is_empty());
                let target = target.ok_or_else(|| refuse("it is a symlink to nowhere".into()))?;
                meta.mode = 0o777;
                NodeKind::Symlink(target.into_owned())
            }
            EntryType::Link => return self.link(entry, &path, refuse),
            EntryType::Fifo => NodeKind::Fifo,
            other => {
                let reason = match other {
                    EntryType::Char | EntryType::Block => "it is a device".to_owned(),
                    other => format!("its kind ({:?}) is not known", char::from(other.as_byte())),
                };
                let path = path.as_bytes()[1..].to_vec();
                self.skipped.push(Skipped { path, reason });
                return Ok(());
            }
        };
        self.listing.add(path, Node { kind, meta }).map_err(refuse)
    }

    /// One more name for a file that came earlier in the archive.
    fn link<R: Read>(
        &mut self,
        entry: &tar::Entry<'_, R>,
        path: &VaultPath,
        refuse: impl Fn(String) -> Refusal,
    ) -> Result<(), Refusal> {
        let target = entry.link_name_bytes().unwrap_or_default().into_owned();
        let shown = String::from_utf8_lossy(&target).into_owned();
        let outside = |_| refuse(format!("it is a hard link to {shown}, outside the archive"));
        let first = place(&target).map_err(outside)?;
        if let Some((_, reason)) = self.importer.exclusions.refuses_beneath(&first, false) {
            let reason = format!("it is a hard link to {shown}, which is {reason}");
            let path = path.as_bytes()[1..].to_vec();
            self.skipped.push(Skipped { path, reason });
            return Ok(());
        }
        self.listing.link(path.clone(), &first).map_err(refuse)
    }
}

fn is_file(kind: EntryType) -> bool {
    matches!(kind, EntryType::Regular | EntryType::Continuous)
}

fn lost(refuse: impl Fn(String) -> Refusal) -> impl FnOnce(Refusal) -> Refusal {
    move |error| match error {
        Refusal::Archive(reason) => refuse(reason),
        other => other,
    }
}

/// Where an entry goes, from the top of the archive.
fn place(name: &[u8]) -> Result<VaultPath, String> {
    if name.starts_with(b"/") {
        return Err("its name is absolute".into());
    }
    if name.is_empty() {
        return Err("its name is empty".into());
    }
    VaultPath::parse(&[b"/", name].concat()).map_err(|error| match error {
        avfs_vault::Error::InvalidPath { reason, .. } => reason.to_owned(),
        other => other.to_string(),
    })
}

/// What is taken from an extended header.
#[derive(Default)]
struct Extras {
    mtime: Option<Time>,
    xattrs: XattrMap,
}

fn extras<R: Read>(entry: &mut tar::Entry<'_, R>) -> Result<Extras, &'static str> {
    let mut extras = Extras::default();
    let malformed = |_| "its extended header makes no sense";
    let Some(records) = entry.pax_extensions().map_err(malformed)? else {
        return Ok(extras);
    };
    let mut xattrs = Vec::new();
    for record in records {
        let record = record.map_err(malformed)?;
        let (key, value) = (record.key_bytes(), record.value_bytes());
        if key.starts_with(b"GNU.sparse.") {
            return Err("it is stored as a sparse file in a way that is not read");
        }
        if key == b"mtime" {
            extras.mtime = std::str::from_utf8(value).ok().and_then(parse_time);
        }
        if let Some(name) = key.strip_prefix(b"SCHILY.xattr.")
            && name.starts_with(b"user.")
            && !name.starts_with(b"user.overlay.")
        {
            xattrs.push((name.to_vec(), value.to_vec()));
        }
    }
    extras.xattrs = xattrs.into_iter().collect();
    Ok(extras)
}

/// `SECONDS[.FRACTION]`, perhaps before the epoch.
fn parse_time(text: &str) -> Option<Time> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let secs: i64 = whole.parse().ok()?;
    let digits: String = fraction
        .chars()
        .chain("000000000".chars())
        .take(9)
        .collect();
    let nanos: u32 = digits.parse().ok()?;
    if text.starts_with('-') && nanos > 0 {
        return Some(Time {
            secs: secs.checked_sub(1)?,
            nanos: 1_000_000_000 - nanos,
        });
    }
    Some(Time { secs, nanos })
}

/// Counts the bytes read, and fails once the import is cancelled.
struct Counted<'a> {
    source: &'a mut dyn Read,
    importer: &'a Importer<'a>,
    cancelled: bool,
}

impl Read for Counted<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.source.read(buffer)?;
        if self.importer.tally.add(0, read as u64).is_err() {
            self.cancelled = true;
            return Err(io::Error::other("cancelled"));
        }
        Ok(read)
    }
}

/// Notes whether the source has ended.
struct Watched<R> {
    source: R,
    ended: Rc<Cell<bool>>,
}

impl<R: Read> Read for Watched<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.source.read(buffer)?;
        if read == 0 && !buffer.is_empty() {
            self.ended.set(true);
        }
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_may_have_fractions_and_lie_before_the_epoch() {
        let time = |secs, nanos| Some(Time { secs, nanos });
        assert_eq!(parse_time("12"), time(12, 0));
        assert_eq!(parse_time("12.5"), time(12, 500_000_000));
        assert_eq!(parse_time("12.0000000019"), time(12, 1));
        assert_eq!(parse_time("-1.25"), time(-2, 750_000_000));
        assert_eq!(parse_time("x"), None);
        assert_eq!(parse_time("1.x"), None);
    }

    #[test]
    fn forms_are_told_by_their_first_bytes() {
        assert_eq!(Form::of(&[0x1f, 0x8b, 8]), Ok(Form::Gzip));
        assert_eq!(Form::of(&[0x28, 0xb5, 0x2f, 0xfd]), Ok(Form::Zstd));
        assert_eq!(Form::of(&[0; 512]), Ok(Form::Plain));
        for bad in [&b""[..], b"hello", b"PK\x03\x04", b"BZh9", b"\xfd7zXZ\0"] {
            assert!(Form::of(bad).is_err(), "{bad:?}");
        }
    }
}
