//! Which version a project wants: the files of version managers in the working directory and above it.
//!
//! Read inside the sandbox, by a process that has the rights of the command. What the files say is a stranger's.

use std::fs::File;
use std::io::Read;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;

use rustix::fs::{CWD, FileType, Mode, OFlags, fstat, openat};
use rustix::io::Errno;

use crate::toolchain::Family;
use crate::toolchain::version::{Number, Wanted};

/// The largest file that is read.
const LARGEST: u64 = 64 << 10;
/// How far up it is looked for; no path of a vault has more parts.
const HIGHEST: usize = 4_096;
/// How many versions one file may name.
const MOST: usize = 16;

/// What a file wants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Pin {
    /// The file, for people.
    pub file: String,
    /// The first that is there is taken.
    pub wanted: Vec<Wanted>,
}

/// A file that says something that is no version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Unreadable {
    pub file: String,
    pub reason: String,
}

/// What a file says about one family.
enum Said {
    Nothing,
    /// Nothing, and files further up are about something else.
    NothingAtAll,
    Versions(Vec<Wanted>),
}

type Parse = fn(Family, &str) -> Result<Said, String>;

/// The files of a family, the first one first.
fn files_of(family: Family) -> &'static [(&'static str, Parse)] {
    match family {
        Family::Rust => &[
            ("rust-toolchain", rust_toolchain),
            ("rust-toolchain.toml", rust_toolchain),
            (".tool-versions", tool_versions),
        ],
        Family::Node => &[
            (".nvmrc", first_line),
            (".node-version", first_line),
            (".tool-versions", tool_versions),
        ],
        Family::Python => &[
            (".python-version", lines),
            (".tool-versions", tool_versions),
        ],
        Family::Go => &[(".tool-versions", tool_versions), ("go.mod", go_mod)],
    }
}

/// What the nearest file at or above the working directory wants.
pub(crate) fn pin_of(family: Family) -> Result<Option<Pin>, Unreadable> {
    let mut shown = std::env::current_dir().ok();
    // A directory that is gone, or may not be entered, pins nothing.
    let Ok(mut here) = directory(CWD, ".") else {
        return Ok(None);
    };
    for _ in 0..HIGHEST {
        for (name, parse) in files_of(family) {
            let file = match &shown {
                Some(dir) => dir.join(name).display().to_string(),
                None => (*name).to_owned(),
            };
            let unreadable = |reason| Unreadable {
                file: file.clone(),
                reason,
            };
            let Some(text) = text_of(here.as_fd(), name).map_err(unreadable)? else {
                continue;
            };
            match parse(family, &text).map_err(unreadable)? {
                Said::Nothing => {}
                Said::NothingAtAll => return Ok(None),
                Said::Versions(wanted) => return Ok(Some(Pin { file, wanted })),
            }
        }
        let Ok(above) = directory(here.as_fd(), "..") else {
            return Ok(None);
        };
        if is_same(&above, &here) {
            return Ok(None);
        }
        here = above;
        shown = shown.and_then(|path| path.parent().map(PathBuf::from));
    }
    Ok(None)
}

fn directory(at: BorrowedFd<'_>, name: &str) -> Result<OwnedFd, Errno> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    openat(at, name, flags, Mode::empty())
}

fn is_same(one: &OwnedFd, other: &OwnedFd) -> bool {
    match (fstat(one), fstat(other)) {
        (Ok(one), Ok(other)) => (one.st_dev, one.st_ino) == (other.st_dev, other.st_ino),
        _ => true,
    }
}

/// The text of a file; none if there is no file, or something that is not one.
fn text_of(dir: BorrowedFd<'_>, name: &str) -> Result<Option<String>, String> {
    // A FIFO is not waited for.
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = match openat(dir, name, flags, Mode::empty()) {
        Ok(file) => file,
        Err(Errno::ACCESS) => return Err("it cannot be read".into()),
        Err(_) => return Ok(None),
    };
    let is_file = fstat(&file)
        .is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile);
    if !is_file {
        return Ok(None);
    }
    let mut bytes = Vec::new();
    let read = File::from(file).take(LARGEST + 1).read_to_end(&mut bytes);
    read.map_err(|error| format!("it cannot be read: {error}"))?;
    if bytes.len() as u64 > LARGEST {
        return Err(format!("it is longer than {LARGEST} bytes"));
    }
    let text = String::from_utf8(bytes);
    text.map(Some).map_err(|_| "it is not text".into())
}

/// A version from its text, or why it is none. The text is shown without anything that a terminal would obey.
fn wanted(family: Family, text: &str) -> Result<Wanted, String> {
    Wanted::parse(family, text).ok_or_else(|| {
        let shown: String = text.chars().take(60).collect();
        format!(
            "{shown:?} is no version of {} that is known here",
            family.as_str()
        )
    })
}

/// The lines that say something.
fn said(text: &str) -> impl Iterator<Item = &str> {
    let lines = text.trim_start_matches('\u{feff}').lines();
    let lines = lines.map(|line| line.split('#').next().unwrap_or_default().trim());
    lines.filter(|line| !line.is_empty())
}

fn first_line(family: Family, text: &str) -> Result<Said, String> {
    match said(text).next() {
        None => Ok(Said::Nothing),
        Some(line) => Ok(Said::Versions(vec![wanted(family, line)?])),
    }
}

fn lines(family: Family, text: &str) -> Result<Said, String> {
    let all: Result<Vec<_>, _> = said(text)
        .take(MOST)
        .map(|line| wanted(family, line))
        .collect();
    Ok(match all? {
        none if none.is_empty() => Said::Nothing,
        all => Said::Versions(all),
    })
}

/// Lines of a tool and its versions, the first that is there being meant.
fn tool_versions(family: Family, text: &str) -> Result<Said, String> {
    for line in said(text) {
        let mut words = line.split_whitespace();
        if words.next().and_then(Family::of_tool) == Some(family) {
            let all: Result<Vec<_>, _> = words.take(MOST).map(|it| wanted(family, it)).collect();
            let all = all?;
            if !all.is_empty() {
                return Ok(Said::Versions(all));
            }
        }
    }
    Ok(Said::Nothing)
}

/// A channel on a line by itself, or TOML with `toolchain.channel`.
fn rust_toolchain(family: Family, text: &str) -> Result<Said, String> {
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    if let (Some(line), None) = (lines.next(), lines.next())
        && !line.contains(['[', '=', '#'])
    {
        return Ok(Said::Versions(vec![wanted(family, line)?]));
    }
    let table: toml::Table = text
        .parse()
        .map_err(|error: toml::de::Error| format!("it is not TOML: {}", error.message()))?;
    let toolchain = table.get("toolchain").and_then(toml::Value::as_table);
    let Some(toolchain) = toolchain else {
        return Ok(Said::Nothing);
    };
    if toolchain.contains_key("path") {
        return Err("toolchain.path is not supported: only toolchains of the host are used".into());
    }
    match toolchain.get("channel") {
        None => Ok(Said::Nothing),
        Some(toml::Value::String(channel)) => {
            Ok(Said::Versions(vec![wanted(family, channel.trim())?]))
        }
        Some(_) => Err("toolchain.channel is not text".into()),
    }
}

/// The line `toolchain go1.22.3`, which means that version or a later one.
fn go_mod(_: Family, text: &str) -> Result<Said, String> {
    for line in text.lines() {
        let line = line.split("//").next().unwrap_or_default();
        let mut words = line.split_whitespace();
        if words.next() != Some("toolchain") {
            continue;
        }
        let name = words.next().unwrap_or_default();
        if name == "default" {
            return Ok(Said::NothingAtAll);
        }
        let number = name.strip_prefix("go").and_then(Number::at_start);
        let shown: String = name.chars().take(60).collect();
        let number = number.ok_or_else(|| format!("{shown:?} is no toolchain of Go"))?;
        return Ok(Said::Versions(vec![Wanted::AtLeast(number)]));
    }
    // The nearest module is the one that is built.
    Ok(Said::NothingAtAll)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(parse: Parse, family: Family, text: &str) -> Result<Vec<String>, String> {
        Ok(match parse(family, text)? {
            Said::Nothing | Said::NothingAtAll => Vec::new(),
            Said::Versions(all) => all.iter().map(ToString::to_string).collect(),
        })
    }

    #[test]
    fn files_are_read_as_their_managers_read_them() {
        let rust = |text| read(rust_toolchain, Family::Rust, text).unwrap();
        assert_eq!(rust("nightly\n"), ["nightly"]);
        assert_eq!(
            rust("[toolchain]\nchannel = \"1.70\"\ncomponents = [\"rustfmt\"]\n"),
            ["1.70"]
        );
        assert!(rust("[toolchain]\nprofile = \"minimal\"\n").is_empty());
        let python = |text| read(lines, Family::Python, text).unwrap();
        assert_eq!(python("# both\n3.12.1\n\n3.11 # old\n"), ["3.12.1", "3.11"]);
        let node = |text| read(first_line, Family::Node, text).unwrap();
        assert_eq!(node("v18.17.0\r\n"), ["18.17.0"]);
        assert!(node("\n# none\n").is_empty());
        let asdf = "# tools\nruby 3.3.0\nnodejs 20.1.0 system\ngolang 1.22\n";
        let tools = |family| read(tool_versions, family, asdf).unwrap();
        assert_eq!(tools(Family::Node), ["20.1.0", "system"]);
        assert_eq!(tools(Family::Go), ["1.22"]);
        assert!(tools(Family::Rust).is_empty());
        let go = |text| read(go_mod, Family::Go, text).unwrap();
        assert_eq!(
            go("module a\n\ngo 1.21\ntoolchain go1.22.3 // why\n"),
            ["1.22.3"]
        );
        assert!(go("module toolchain\n\ngo 1.21\n").is_empty());
        assert!(go("toolchain default\n").is_empty());
    }

    #[test]
    fn hostile_files_are_refused_and_never_shown_raw() {
        let cases: [(Parse, Family, &str); 9] = [
            (rust_toolchain, Family::Rust, "../../../root/x"),
            (
                rust_toolchain,
                Family::Rust,
                "[toolchain]\nchannel = \"/etc\"\n",
            ),
            (rust_toolchain, Family::Rust, "[toolchain]\nchannel = [1]\n"),
            (
                rust_toolchain,
                Family::Rust,
                "[toolchain]\npath = \"/root/evil\"\n",
            ),
            (rust_toolchain, Family::Rust, "[toolchain\nchannel = 1\n"),
            (first_line, Family::Node, "\u{1b}[2J18"),
            (lines, Family::Python, "3.12\n../../bin\n"),
            (tool_versions, Family::Python, "python path:/root/evil\n"),
            (go_mod, Family::Go, "toolchain ../go\n"),
        ];
        for (parse, family, text) in cases {
            let reason = read(parse, family, text).unwrap_err();
            assert!(!reason.contains(['\u{1b}', '\n']), "{reason:?}");
        }
    }
}
