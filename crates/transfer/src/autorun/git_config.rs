//! A configuration file of git, read as git reads it, for what in it could make git run or read something.
//!
//! Settings known to be harmless are listed; all others count as unsafe. A file that git rejects, or that uses syntax not
//! known here, is unreadable as a whole.

use std::collections::BTreeSet;

/// A setting: its name in full, and its value as it is written.
pub type Setting = (Vec<u8>, Vec<u8>);

/// Sections of which every key is harmless.
const SECTIONS: [&str; 14] = [
    "user",
    "author",
    "committer",
    "color",
    "advice",
    "gc",
    "pack",
    "index",
    "status",
    "rerere",
    "feature",
    "push",
    "pull",
    "fetch",
];

/// Keys that are harmless; with a `*` in a section that has a name of its own, whatever it is.
const KEYS: [&str; 56] = [
    "core.repositoryformatversion",
    "core.filemode",
    "core.bare",
    "core.logallrefupdates",
    "core.ignorecase",
    "core.precomposeunicode",
    "core.symlinks",
    "core.autocrlf",
    "core.eol",
    "core.safecrlf",
    "core.quotepath",
    "core.compression",
    "core.loosecompression",
    "core.abbrev",
    "core.checkstat",
    "core.trustctime",
    "core.untrackedcache",
    "core.splitindex",
    "core.sparsecheckout",
    "core.sparsecheckoutcone",
    "core.commentchar",
    "core.whitespace",
    "core.bigfilethreshold",
    "core.preloadindex",
    "core.longpaths",
    "core.protecthfs",
    "core.protectntfs",
    "core.sharedrepository",
    "core.multipackindex",
    "core.commitgraph",
    "commit.gpgsign",
    "commit.verbose",
    "commit.cleanup",
    "commit.status",
    "tag.gpgsign",
    "tag.sort",
    "merge.ff",
    "merge.conflictstyle",
    "merge.renamelimit",
    "merge.log",
    "diff.algorithm",
    "diff.renames",
    "diff.renamelimit",
    "log.date",
    "log.decorate",
    "init.defaultbranch",
    "extensions.objectformat",
    "extensions.refstorage",
    "extensions.partialclone",
    "remote.*.fetch",
    "remote.*.tagopt",
    "remote.*.prune",
    "branch.*.remote",
    "branch.*.merge",
    "branch.*.rebase",
    "submodule.*.active",
];

/// Keys whose value is an address.
const ADDRESSES: [&str; 3] = ["remote.*.url", "remote.*.pushurl", "submodule.*.url"];

/// Every setting that is not known to be harmless; none if the file cannot be read.
pub fn unsafe_settings(bytes: &[u8]) -> Option<BTreeSet<Setting>> {
    let mut reader = Reader {
        rest: bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes),
        section: Vec::new(),
        subsection: None,
    };
    let mut found = BTreeSet::new();
    while let Some(read) = reader.read().ok()? {
        if !is_harmless(&read.pattern, &read.value) {
            found.insert((read.name, read.value));
        }
    }
    Some(found)
}

fn is_harmless(pattern: &str, value: &[u8]) -> bool {
    let section = pattern.split('.').next().unwrap_or_default();
    let plain = !pattern.contains('*');
    if plain && SECTIONS.contains(&section) || KEYS.contains(&pattern) {
        return true;
    }
    if ADDRESSES.contains(&pattern) {
        // It must be no option, and no `program::address`, which makes git run a program.
        return !value.starts_with(b"-") && !value.windows(2).any(|pair| pair == b"::");
    }
    let boolean = [
        &b"true"[..],
        b"false",
        b"yes",
        b"no",
        b"on",
        b"off",
        b"1",
        b"0",
    ];
    pattern == "core.fsmonitor" && boolean.contains(&value)
}

struct Reader<'a> {
    rest: &'a [u8],
    section: Vec<u8>,
    subsection: Option<Vec<u8>>,
}

struct Read {
    /// In small letters, with `*` for the section's own name.
    pattern: String,
    name: Vec<u8>,
    value: Vec<u8>,
}

/// What is no configuration of git.
struct Unreadable;

impl Reader<'_> {
    /// The next setting, none at the end.
    fn read(&mut self) -> Result<Option<Read>, Unreadable> {
        loop {
            match self.take() {
                None => return Ok(None),
                Some(b' ' | b'\t' | b'\n' | b'\r') => {}
                Some(b'#' | b';') => while !matches!(self.take(), None | Some(b'\n')) {},
                Some(b'[') => self.read_section()?,
                Some(byte) if byte.is_ascii_alphabetic() => {
                    return self.read_setting(byte).map(Some);
                }
                Some(_) => return Err(Unreadable),
            }
        }
    }

    fn take(&mut self) -> Option<u8> {
        let (first, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(*first)
    }

    /// What is between the brackets.
    fn read_section(&mut self) -> Result<(), Unreadable> {
        (self.section, self.subsection) = (Vec::new(), None);
        loop {
            match self.take().ok_or(Unreadable)? {
                b']' => break,
                b' ' | b'\t' => {
                    self.subsection = Some(self.read_subsection()?);
                    break;
                }
                byte if byte.is_ascii_alphanumeric() || b"-.".contains(&byte) => {
                    self.section.push(byte.to_ascii_lowercase());
                }
                _ => return Err(Unreadable),
            }
        }
        // `[section.name]`, the old syntax of `[section "name"]`.
        let dot = self.section.iter().position(|byte| *byte == b'.');
        if let (Some(dot), None) = (dot, &self.subsection) {
            let name = self.section.split_off(dot);
            self.subsection = Some(name[1..].to_vec());
        }
        Ok(())
    }

    fn read_subsection(&mut self) -> Result<Vec<u8>, Unreadable> {
        let mut name = Vec::new();
        loop {
            match self.take().ok_or(Unreadable)? {
                b' ' | b'\t' => {}
                b'"' => break,
                _ => return Err(Unreadable),
            }
        }
        loop {
            match self.take().ok_or(Unreadable)? {
                b'"' => break,
                b'\n' => return Err(Unreadable),
                b'\\' => name.push(
                    self.take()
                        .filter(|byte| *byte != b'\n')
                        .ok_or(Unreadable)?,
                ),
                byte => name.push(byte),
            }
        }
        match self.take() {
            Some(b']') => Ok(name),
            _ => Err(Unreadable),
        }
    }

    fn read_setting(&mut self, first: u8) -> Result<Read, Unreadable> {
        let mut key = vec![first.to_ascii_lowercase()];
        let mut next = self.take();
        while let Some(byte) = next.filter(|byte| byte.is_ascii_alphanumeric() || *byte == b'-') {
            key.push(byte.to_ascii_lowercase());
            next = self.take();
        }
        while let Some(b' ' | b'\t') = next {
            next = self.take();
        }
        let value = match next {
            // A key without a value is true.
            None | Some(b'\n') => b"true".to_vec(),
            Some(b'\r') if matches!(self.take(), None | Some(b'\n')) => b"true".to_vec(),
            Some(b'=') => self.read_value()?,
            Some(_) => return Err(Unreadable),
        };
        let star = if self.subsection.is_some() { ".*" } else { "" };
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let pattern = format!("{}{star}.{}", text(&self.section), text(&key));
        let own = self.subsection.as_deref().unwrap_or_default();
        let name = [&self.section[..], b".", own, b".", &key].concat();
        Ok(Read {
            pattern,
            name,
            value,
        })
    }

    fn read_value(&mut self) -> Result<Vec<u8>, Unreadable> {
        let (mut value, mut quoted) = (Vec::new(), false);
        loop {
            match self.take() {
                None | Some(b'\n') if quoted => return Err(Unreadable),
                None | Some(b'\n') => break,
                Some(b'#' | b';') if !quoted => {
                    while !matches!(self.take(), None | Some(b'\n')) {}
                    break;
                }
                Some(b'"') => quoted = !quoted,
                Some(b'\\') => match self.take().ok_or(Unreadable)? {
                    // The value continues on the next line.
                    b'\n' => {}
                    b'\r' if self.rest.first() == Some(&b'\n') => drop(self.take()),
                    b'n' => value.push(b'\n'),
                    b't' => value.push(b'\t'),
                    b'b' => value.push(8),
                    byte @ (b'"' | b'\\') => value.push(byte),
                    _ => return Err(Unreadable),
                },
                Some(0) => return Err(Unreadable),
                Some(byte) => value.push(byte),
            }
        }
        Ok(value.trim_ascii().to_vec())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(text: &str) -> Option<Vec<String>> {
        let found = unsafe_settings(text.as_bytes())?;
        let names = found
            .into_iter()
            .map(|(name, _)| String::from_utf8(name).unwrap());
        Some(names.collect())
    }

    #[test]
    fn what_git_writes_itself_is_harmless() {
        let text = "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = false\n\
            \tlogallrefupdates = true\n[remote \"origin\"]\n\turl = git@host:a/b.git\n\
            \tfetch = +refs/heads/*:refs/remotes/origin/*\n[branch \"main\"]\n\tremote = origin\n\
            \tmerge = refs/heads/main ; c\n[user]\n\tname = A \"B\" C\n\temail = a@b\n";
        assert_eq!(names(text), Some(vec![]));
        assert_eq!(names(&text.replace('\n', "\r\n")), Some(vec![]));
        assert_eq!(names(""), Some(vec![]));
    }

    #[test]
    fn what_runs_something_is_found_however_it_is_written() {
        for (text, found) in [
            ("[core]\nhooksPath = x", "core..hookspath"),
            ("[CORE] HooksPath=x", "core..hookspath"),
            ("\u{feff}[core]\n\thooksPath = x", "core..hookspath"),
            ("[core]\nfsmonitor = ./x", "core..fsmonitor"),
            ("[core]\nsshCommand\t=\tx", "core..sshcommand"),
            ("[core]\nbare = a \\\n b\neditor = x", "core..editor"),
            ("[core]\nbare = a # \\\neditor = x", "core..editor"),
            ("[core]\nbare = \"a # \\\n\"\neditor = x", "core..editor"),
            ("[user]\nname = x\n[core]# c\npager=x", "core..pager"),
            ("[filter \"a\\\"]b\"]\nclean = x", "filter.a\"]b.clean"),
            ("[filter.lfs]\nsmudge = x", "filter.lfs.smudge"),
            ("[include]\npath = ../x", "include..path"),
            (
                "[includeIf \"gitdir:/\"]\npath = x",
                "includeif.gitdir:/.path",
            ),
            ("[alias]\nst = !x", "alias..st"),
            ("[credential]\nhelper = x", "credential..helper"),
            (
                "[credential \"https://x\"]\nhelper = x",
                "credential.https://x.helper",
            ),
            ("[remote \"o\"]\nurl = ext::sh -c x", "remote.o.url"),
            ("[remote \"o\"]\nurl = --upload-pack=x", "remote.o.url"),
            ("[remote \"o\"]\nuploadpack = x", "remote.o.uploadpack"),
            ("[submodule \"s\"]\nupdate = !x", "submodule.s.update"),
            ("[pull \"x\"]\ny = z", "pull.x.y"),
            ("[gpg]\nprogram = x", "gpg..program"),
            ("[diff \"x\"]\ntextconv = x", "diff.x.textconv"),
        ] {
            assert_eq!(names(text), Some(vec![found.to_owned()]), "{text:?}");
        }
    }

    #[test]
    fn what_git_would_not_read_is_unreadable() {
        for text in [
            "[core\nhooksPath = x",
            "[core] x y",
            "[core]\nx # c",
            "[co/re]\nx = y",
            "[core \"a\" b]\n",
            "= x",
            "[core]\nx = \"y\nz = a",
            "[core]\nx = \\q",
            "[core]\nx = \0",
            "[core]\n\u{b}x = y",
        ] {
            assert_eq!(names(text), None, "{text:?}");
        }
    }
}
