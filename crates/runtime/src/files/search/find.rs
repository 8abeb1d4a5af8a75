//! Paths by what they are: name, kind, size, age, labels.

use std::cmp::Ordering;
use std::str::FromStr;

use avfs_vault::{Entry, Kind, Step, Time, VaultPath, Visit};

use super::globs::NameGlob;
use crate::bounds::{LISTED_MAX, ListRoom};
use crate::files::labels::{LabelName, Labels};
use crate::gate::Verb;
use crate::runtime::Select;
use crate::session::Session;
use crate::{Error, Result};

/// What a path must be to be found; what is left out does not matter.
#[derive(Debug, Clone, Default)]
pub struct FindRequest {
    pub path: VaultPath,
    pub name: Option<String>,
    pub ignore_case: bool,
    /// Any of these.
    pub kinds: Vec<KindTest>,
    /// All of these, and of all lists below.
    pub sizes: Vec<SizeTest>,
    pub ages: Vec<AgeTest>,
    pub tags: Vec<LabelName>,
    pub metadata: Vec<LabelTest>,
    /// How many levels to go down.
    pub depth: Option<usize>,
    /// At most so many paths; [`LISTED_MAX`] when left out, and at most.
    pub limit: Option<usize>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KindTest {
    File,
    Directory,
    Symlink,
    Fifo,
}

/// A number of bytes, and on which side of it a size must be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SizeTest {
    side: Ordering,
    bytes: u64,
}

/// A number of units of time, and whether a change must be longer ago, less long, or just that.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AgeTest {
    side: Ordering,
    number: u64,
    unit: u64,
}

/// A key, and the value it must have if any.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LabelTest {
    pub key: LabelName,
    pub value: Option<String>,
}

#[derive(Debug)]
pub struct Found {
    pub paths: Vec<FoundPath>,
    /// Whether there are more than were asked for.
    pub truncated: bool,
    pub version: u64,
}

#[derive(Debug)]
pub struct FoundPath {
    pub path: VaultPath,
    pub entry: Entry,
}

impl Session {
    /// The paths at and beneath a path that are as asked for, in order.
    pub fn find(&self, vault: Select, request: &FindRequest) -> Result<Found> {
        let name = match &request.name {
            Some(pattern) => Some(NameGlob::new(pattern, request.ignore_case)?),
            None => None,
        };
        let vault = self.vault(&vault, Verb::Read)?;
        self.check_kept(&request.path)?;
        let vault = self.up_to_date(&vault)?;
        let trees = self.inner.vaults.trees();
        let (top, _) = trees.resolve(vault.head, &request.path)?;
        let limit = request.limit.unwrap_or(LISTED_MAX).min(LISTED_MAX);
        let by_label = !request.tags.is_empty() || !request.metadata.is_empty();
        let now = Time::now();
        let (mut paths, mut room) = (Vec::new(), ListRoom::default());
        let mut truncated = false;
        trees.walk::<Error>(vault.head, &top, &mut |visit| {
            // Whole directories without any label are not even read.
            if truncated || by_label && !visit.has_xattrs {
                return Ok(Step::Past);
            }
            let named = name.as_ref().is_none_or(|glob| glob.matches(visit.path));
            if named && request.accepts(&visit, now) {
                truncated = paths.len() == limit || !room.take(visit.path.as_bytes());
                if !truncated {
                    let (path, entry) = (visit.path.clone(), visit.entry.clone());
                    paths.push(FoundPath { path, entry });
                }
            }
            Ok(match request.depth {
                Some(depth) if visit.depth >= depth => Step::Past,
                _ => Step::Into,
            })
        })?;
        Ok(Found {
            paths,
            truncated,
            version: vault.version,
        })
    }
}

impl FindRequest {
    fn accepts(&self, visit: &Visit<'_>, now: Time) -> bool {
        let entry = visit.entry;
        let kind = match entry.kind {
            Kind::File { .. } => KindTest::File,
            Kind::Directory { .. } => KindTest::Directory,
            Kind::Symlink { .. } => KindTest::Symlink,
            Kind::Fifo => KindTest::Fifo,
        };
        (self.kinds.is_empty() || self.kinds.contains(&kind))
            && self.sizes.iter().all(|test| test.accepts(entry))
            && self
                .ages
                .iter()
                .all(|test| test.accepts(entry.meta.mtime, now))
            && self.accepts_labels(entry)
    }

    fn accepts_labels(&self, entry: &Entry) -> bool {
        if self.tags.is_empty() && self.metadata.is_empty() {
            return true;
        }
        let labels = Labels::of(entry);
        let has_tag = |tag: &LabelName| labels.tags.iter().any(|it| it == tag.as_str());
        let has_value = |test: &LabelTest| match labels.metadata.get(test.key.as_str()) {
            None => false,
            Some(value) => test.value.as_ref().is_none_or(|wanted| wanted == value),
        };
        self.tags.iter().all(has_tag) && self.metadata.iter().all(has_value)
    }
}

impl SizeTest {
    pub fn at_least(bytes: u64) -> Option<SizeTest> {
        let bytes = bytes.checked_sub(1)?;
        let side = Ordering::Greater;
        Some(SizeTest { side, bytes })
    }

    pub fn at_most(bytes: u64) -> SizeTest {
        SizeTest {
            side: Ordering::Less,
            bytes: bytes.saturating_add(1),
        }
    }

    /// Only files have a size to speak of.
    fn accepts(&self, entry: &Entry) -> bool {
        entry.is_file() && entry.size().cmp(&self.bytes) == self.side
    }
}

impl AgeTest {
    fn accepts(&self, time: Time, now: Time) -> bool {
        // What lies in the future is brand new.
        let age = u64::try_from(now.secs - time.secs).unwrap_or(0);
        let (from, to) = (
            self.number.saturating_mul(self.unit),
            self.number.saturating_add(1).saturating_mul(self.unit),
        );
        match self.side {
            Ordering::Less => age < from,
            Ordering::Equal => from <= age && age < to,
            Ordering::Greater => age >= from,
        }
    }
}

impl FromStr for KindTest {
    type Err = Error;

    fn from_str(text: &str) -> Result<KindTest> {
        Ok(match text {
            "f" | "file" => KindTest::File,
            "d" | "directory" => KindTest::Directory,
            "l" | "symlink" => KindTest::Symlink,
            "p" | "fifo" => KindTest::Fifo,
            _ => {
                return Err(Error::Invalid {
                    what: "type",
                    reason: format!("{text:?} is none of f, d, l, p"),
                });
            }
        })
    }
}

impl FromStr for SizeTest {
    type Err = Error;

    fn from_str(text: &str) -> Result<SizeTest> {
        let units = [("c", 1), ("k", 1 << 10), ("M", 1 << 20), ("G", 1 << 30)];
        let (side, number, unit) = measure(text, &units, 1).ok_or_else(|| Error::Invalid {
            what: "size",
            reason: format!("{text:?}; write it as 100, +10k, -2M or 1G"),
        })?;
        Ok(SizeTest {
            side,
            bytes: number.saturating_mul(unit),
        })
    }
}

impl FromStr for AgeTest {
    type Err = Error;

    fn from_str(text: &str) -> Result<AgeTest> {
        const DAY: u64 = 24 * 3600;
        let units = [("s", 1), ("m", 60), ("h", 3600), ("d", DAY), ("w", 7 * DAY)];
        let (side, number, unit) = measure(text, &units, DAY).ok_or_else(|| Error::Invalid {
            what: "age",
            reason: format!("{text:?}; write it as -1 (day), +2w, -30m or -10s"),
        })?;
        Ok(AgeTest { side, number, unit })
    }
}

impl FromStr for LabelTest {
    type Err = Error;

    fn from_str(text: &str) -> Result<LabelTest> {
        let (key, value) = match text.split_once('=') {
            Some((key, value)) => (key, Some(value.to_owned())),
            None => (text, None),
        };
        Ok(LabelTest {
            key: key.parse()?,
            value,
        })
    }
}

/// `[+-]NUMBER[UNIT]`
fn measure(text: &str, units: &[(&str, u64)], plain: u64) -> Option<(Ordering, u64, u64)> {
    let (side, rest) = match text.strip_prefix('+') {
        Some(rest) => (Ordering::Greater, rest),
        None => match text.strip_prefix('-') {
            Some(rest) => (Ordering::Less, rest),
            None => (Ordering::Equal, text),
        },
    };
    let unit = units.iter().find(|(name, _)| rest.ends_with(name));
    let (digits, unit) = match unit {
        Some((name, unit)) => (&rest[..rest.len() - name.len()], *unit),
        None => (rest, plain),
    };
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    let number = digits.parse().ok().filter(|_| is_number)?;
    Some((side, number, unit))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_are_counted_in_whole_units() {
        let now = Time {
            secs: 1_000_000,
            nanos: 0,
        };
        let ago = |secs: i64| Time {
            secs: now.secs - secs,
            nanos: 0,
        };
        let accepts = |test: &str, secs| {
            let test: AgeTest = test.parse().unwrap();
            test.accepts(ago(secs), now)
        };
        assert!(accepts("-1", 86_399) && !accepts("-1", 86_400));
        assert!(accepts("+1", 86_400) && !accepts("+1", 86_399));
        assert!(accepts("1", 86_400) && !accepts("1", 86_399) && !accepts("1", 172_800));
        assert!(accepts("-2h", 7_199) && !accepts("-30m", 1_800));
        assert!(accepts("-1s", -50));
    }

    #[test]
    fn what_is_no_measure_is_refused() {
        for text in [
            "",
            "+",
            "x",
            "1x",
            "+-1",
            "1.5k",
            "-k",
            "99999999999999999999",
        ] {
            assert!(text.parse::<SizeTest>().is_err(), "{text}");
        }
        for text in ["", "-", "d", "1y", "++1"] {
            assert!(text.parse::<AgeTest>().is_err(), "{text}");
        }
        assert!("x".parse::<KindTest>().is_err());
        assert!("=v".parse::<LabelTest>().is_err());
        assert_eq!(SizeTest::at_least(0), None);
        assert_eq!(SizeTest::at_least(5).unwrap(), "+4".parse().unwrap());
        assert_eq!(SizeTest::at_most(5), "-6".parse().unwrap());
    }
}
