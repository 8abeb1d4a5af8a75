//! A directory of a tree as a tar archive: ustar, with extended headers only where they are needed.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufWriter, Read, Write};
use std::path::Path;

use avfs_vault::{
    Content, Entry, Kind, LinkId, Piece, Pieces, Readable, Time, TreeId, Trees, VaultPath,
};
use flate2::write::GzEncoder;
use rustix::fs::CWD;
use tar::{Builder, EntryType, Header};

use super::sparse::{Map, Shape};
use super::{ExportReport, Exporter, FILE_MODE, PIECE, missing};
use crate::aside::{Aside, AsideKind};
use crate::damage::{OnDamage, readable};
use crate::error::{Error, Result};
use crate::host_tree::rename_new;
use crate::progress::Tally;
use crate::report::Skipped;

/// Limits of the ustar header.
const NAME_MAX: usize = 100;
const NUMBER_MAX: u64 = 0o77_777_777_777;

impl Exporter<'_> {
    /// Writes the directory as a tar archive to a new file; its ending says how it is compressed. What tools
    /// would run is listed but not refused: nothing runs out of an archive.
    pub fn to_archive(&self, host_file: &Path) -> Result<ExportReport> {
        let runs_by_itself = self.runs_by_itself(Path::new("/"))?;
        if host_file.symlink_metadata().is_ok() {
            let path = host_file.to_owned();
            return Err(Error::Exists { path });
        }
        let beside = host_file.parent().unwrap_or(Path::new("/"));
        let aside = Aside::make(self.notes, beside, AsideKind::File)?;
        let file = aside.fd.try_clone();
        let file = File::from(file.map_err(Error::host("make", host_file))?);
        let report = self.compress(file, host_file)?;
        let renamed = rename_new(CWD, &aside.path, CWD, host_file);
        renamed.map_err(Error::host("make", host_file))?;
        Ok(ExportReport {
            runs_by_itself,
            ..report
        })
    }

    /// Writes the archive to `file`, which is to become `host_file`.
    fn compress(&self, file: File, host_file: &Path) -> Result<ExportReport> {
        let out = BufWriter::with_capacity(PIECE, file);
        let name = host_file.to_string_lossy();
        let (report, out) = if name.ends_with(".gz") || name.ends_with(".tgz") {
            let mut out = GzEncoder::new(out, flate2::Compression::default());
            let report = self.write_archive(&mut out)?;
            (report, out.finish())
        } else if name.ends_with(".zst") || name.ends_with(".tzst") {
            let out = zstd::stream::write::Encoder::new(out, 0);
            let mut out = out.map_err(Error::host("write", host_file))?;
            let report = self.write_archive(&mut out)?;
            (report, out.finish())
        } else {
            let mut out = out;
            let report = self.write_archive(&mut out)?;
            (report, Ok(out))
        };
        let file = out.and_then(|out| out.into_inner().map_err(io::IntoInnerError::into_error));
        let synced = file.and_then(|file| file.sync_all());
        synced.map_err(Error::host("write", host_file))?;
        Ok(report)
    }

    /// Writes the directory as a tar archive without compression.
    pub fn write_archive(&self, out: &mut dyn Write) -> Result<ExportReport> {
        let (tree, meta, tally) = self.top()?;
        let mut writing = Writing {
            trees: self.trees,
            builder: Builder::new(out),
            links: HashMap::new(),
            tally,
            report: ExportReport::default(),
            on_damage: self.on_damage,
        };
        let mut top = Entry::directory(0, Time::EPOCH);
        top.meta = meta;
        writing.add(b"./", &top)?;
        writing.directory(tree, &VaultPath::root())?;
        writing.builder.finish().map_err(lost)?;
        writing.builder.get_mut().flush().map_err(lost)?;
        Ok(writing.report)
    }
}

struct Writing<'a> {
    trees: &'a Trees,
    builder: Builder<&'a mut dyn Write>,
    /// The first name of each hard-linked file.
    links: HashMap<LinkId, Vec<u8>>,
    tally: Tally<'a>,
    report: ExportReport,
    on_damage: OnDamage,
}

impl Writing<'_> {
    /// What is in a directory; `path` is counted from the top of the archive.
    fn directory(&mut self, tree: TreeId, path: &VaultPath) -> Result<()> {
        let mut ahead = vec![(path.clone(), tree)];
        while let Some((path, tree)) = ahead.pop() {
            let mut below = Vec::new();
            let Readable { entries, problems } = readable(self.trees, tree, self.on_damage)?;
            let lost = problems.into_iter().map(|problem| missing(&path, problem));
            self.report.missing.extend(lost);
            for (name, entry) in entries {
                let path = path.join(&name)?;
                if let Some(problem) = self.problem_of(&entry)? {
                    self.report.missing.push(missing(&path, problem));
                    continue;
                }
                let mut shown = path.as_bytes()[1..].to_vec();
                if let Kind::Directory { tree, .. } = entry.kind {
                    shown.push(b'/');
                    self.report.directories += 1;
                    below.push((path, tree));
                } else {
                    self.report.files += 1;
                    self.tally.add(1, 0)?;
                }
                self.add(&shown, &entry)?;
            }
            below.reverse();
            ahead.extend(below);
        }
        Ok(())
    }

    /// Why a file has to be left out. Content is checked before its header is written: a stream cannot be rewound.
    fn problem_of(&self, entry: &Entry) -> Result<Option<String>> {
        let Kind::File {
            content,
            size,
            link,
        } = entry.kind
        else {
            return Ok(None);
        };
        let is_there = link.is_some_and(|link| self.links.contains_key(&link));
        if self.on_damage == OnDamage::Stop || is_there {
            return Ok(None);
        }
        match self.trees.check_content(content, size) {
            Ok(()) => Ok(None),
            Err(error) if error.is_damage() => Ok(Some(error.to_string())),
            Err(error) => Err(error.into()),
        }
    }

    fn add(&mut self, name: &[u8], entry: &Entry) -> Result<()> {
        let mut link_name: &[u8] = b"";
        let mut size = 0;
        let linked = entry.link().and_then(|link| self.links.get(&link).cloned());
        let content = match entry.kind {
            Kind::File { content, .. } if linked.is_none() => content,
            _ => Content::EMPTY,
        };
        let map = match Shape::of(self.trees, content, entry.size())? {
            Shape::Plain => None,
            Shape::Sparse(map) => Some(map),
            Shape::TooManyPieces => {
                self.report.skipped.push(Skipped {
                    path: name.to_vec(),
                    reason: "it has more holes than an archive can tell of".into(),
                });
                return Ok(());
            }
        };
        let kind = match (&entry.kind, &linked) {
            (_, Some(first)) => {
                link_name = first;
                EntryType::Link
            }
            (Kind::File { size: bytes, .. }, None) => {
                size = *bytes;
                EntryType::Regular
            }
            (Kind::Directory { .. }, None) => EntryType::Directory,
            (Kind::Symlink { target }, None) => {
                link_name = target;
                EntryType::Symlink
            }
            (Kind::Fifo, None) => EntryType::Fifo,
        };
        if let Some(link) = entry.link().filter(|_| linked.is_none()) {
            self.links.insert(link, name.to_vec());
        }
        let stored = map.as_ref().map_or(size, Map::stored);
        let mut header = match map {
            Some(_) => Header::new_gnu(),
            None => Header::new_ustar(),
        };
        // The GNU header of a sparse file stores sizes of any length.
        let told = if map.is_some() { 0 } else { size };
        let extended = self.extended(name, link_name, told, entry);
        if !extended.is_empty() {
            let pairs = extended.iter().map(|(key, value)| (&key[..], &value[..]));
            self.builder.append_pax_extensions(pairs).map_err(lost)?;
        }
        fill(&mut header.as_old_mut().name, name);
        fill(&mut header.as_old_mut().linkname, link_name);
        header.set_entry_type(kind);
        header.set_mode(match kind {
            EntryType::Directory => entry.meta.mode & 0o7777,
            _ => entry.meta.mode & FILE_MODE,
        });
        header.set_uid(entry.meta.uid.into());
        header.set_gid(entry.meta.gid.into());
        let secs = u64::try_from(entry.meta.mtime.secs).unwrap_or(0);
        header.set_mtime(secs.min(NUMBER_MAX));
        header.set_size(match map {
            Some(_) => stored,
            None => stored.min(NUMBER_MAX),
        });
        let more = map.map_or_else(Vec::new, |map| map.write(&mut header));
        header.set_cksum();
        self.append(&header, &more, content, size)
    }

    /// Writes a header, the rest of its sparse map, and the data of the file.
    fn append(&mut self, header: &Header, more: &[u8], content: Content, size: u64) -> Result<()> {
        let mut body = Body {
            pieces: self.trees.pieces(content, size),
            piece: Vec::new(),
            taken: 0,
            tally: &self.tally,
            failed: None,
        };
        let appended = self.builder.append(header, more.chain(&mut body));
        match body.failed {
            Some(error) => Err(error),
            None => {
                self.report.bytes = self.report.bytes.saturating_add(size);
                appended.map_err(lost)
            }
        }
    }

    /// What does not fit into the ustar header, as records of an extended header.
    fn extended(
        &mut self,
        name: &[u8],
        link_name: &[u8],
        size: u64,
        entry: &Entry,
    ) -> Vec<(String, Vec<u8>)> {
        let mut pairs = Vec::new();
        let is_text = std::str::from_utf8(name).is_ok() && std::str::from_utf8(link_name).is_ok();
        if !is_text && (name.len() > NAME_MAX || link_name.len() > NAME_MAX) {
            pairs.push(("hdrcharset".to_owned(), b"BINARY".to_vec()));
        }
        if name.len() > NAME_MAX {
            pairs.push(("path".to_owned(), name.to_vec()));
        }
        if link_name.len() > NAME_MAX {
            pairs.push(("linkpath".to_owned(), link_name.to_vec()));
        }
        if size > NUMBER_MAX {
            pairs.push(("size".to_owned(), size.to_string().into_bytes()));
        }
        let (secs, nanos) = (entry.meta.mtime.secs, entry.meta.mtime.nanos);
        if nanos > 0 || !(0..=NUMBER_MAX as i64).contains(&secs) {
            pairs.push(("mtime".to_owned(), time_text(secs, nanos).into_bytes()));
        }
        for (key, value) in &entry.meta.xattrs {
            match std::str::from_utf8(key) {
                Ok(key) if !key.contains('=') => {
                    pairs.push((format!("SCHILY.xattr.{key}"), value.to_vec()));
                }
                _ => self.report.skipped.push(Skipped {
                    path: name.to_vec(),
                    reason: "an archive cannot hold the name of one of its attributes".into(),
                }),
            }
        }
        pairs
    }
}

fn fill(field: &mut [u8], bytes: &[u8]) {
    let length = field.len().min(bytes.len());
    field[..length].copy_from_slice(&bytes[..length]);
}

/// Decimal seconds, negative before the epoch.
fn time_text(secs: i64, nanos: u32) -> String {
    match (secs < 0 && nanos > 0, nanos) {
        (_, 0) => secs.to_string(),
        (false, nanos) => format!("{secs}.{nanos:09}"),
        (true, nanos) => format!("-{}.{:09}", -(secs + 1), 1_000_000_000 - nanos),
    }
}

fn lost(source: io::Error) -> Error {
    Error::Host {
        action: "write",
        path: "the archive".into(),
        source,
    }
}

/// The data of a file, piece by piece.
struct Body<'a> {
    pieces: Pieces,
    piece: Vec<u8>,
    /// How much of the piece has been handed on.
    taken: usize,
    tally: &'a Tally<'a>,
    failed: Option<Error>,
}

impl Body<'_> {
    /// Empty at the end.
    fn next_piece(&mut self) -> Result<()> {
        (self.piece, self.taken) = (Vec::new(), 0);
        for piece in self.pieces.by_ref() {
            let piece = piece?;
            self.tally.add(0, piece.length())?;
            if let Piece::Data(bytes) = piece {
                self.piece = bytes;
                break;
            }
        }
        Ok(())
    }
}

impl Read for Body<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.taken == self.piece.len()
            && let Err(error) = self.next_piece()
        {
            let told = io::Error::other(error.to_string());
            self.failed = Some(error);
            return Err(told);
        }
        let ahead = &self.piece[self.taken..];
        let length = buffer.len().min(ahead.len());
        buffer[..length].copy_from_slice(&ahead[..length]);
        self.taken += length;
        Ok(length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_before_the_epoch_count_backwards() {
        assert_eq!(time_text(12, 0), "12");
        assert_eq!(time_text(12, 5), "12.000000005");
        assert_eq!(time_text(-2, 750_000_000), "-1.250000000");
        assert_eq!(time_text(-1, 500_000_000), "-0.500000000");
    }
}
