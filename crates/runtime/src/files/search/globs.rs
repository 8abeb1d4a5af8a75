//! Patterns of names, as shells write them.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use avfs_vault::VaultPath;
use globset::{GlobBuilder, GlobSet, GlobSetBuilder};

use crate::{Error, Result};

/// Which paths are meant: all, unless patterns say otherwise.
pub(super) struct Globs {
    include: Option<GlobSet>,
    exclude: GlobSet,
}

impl Globs {
    /// A pattern without `/` is of a name anywhere, one that begins with `/` is of a whole path,
    /// any other of the end of a path. `!` in front leaves out what matches.
    pub fn new(patterns: &[String]) -> Result<Globs> {
        let (mut include, mut exclude) = (GlobSetBuilder::new(), GlobSetBuilder::new());
        let mut has_include = false;
        for pattern in patterns {
            let (set, text) = match pattern.strip_prefix('!') {
                Some(text) => (&mut exclude, text),
                None => {
                    has_include = true;
                    (&mut include, pattern.as_str())
                }
            };
            let whole = match text.strip_prefix('/') {
                Some(from_top) => from_top.to_owned(),
                None => format!("**/{text}"),
            };
            let whole = match whole.strip_suffix('/') {
                Some(directory) => format!("{directory}/**"),
                None => whole,
            };
            let mut glob = GlobBuilder::new(&whole);
            let glob = glob.literal_separator(true).build();
            set.add(glob.map_err(|error| invalid(pattern, &error))?);
        }
        let build = |set: GlobSetBuilder| set.build().map_err(|error| invalid("", &error));
        Ok(Globs {
            include: match has_include {
                true => Some(build(include)?),
                false => None,
            },
            exclude: build(exclude)?,
        })
    }

    pub fn matches(&self, path: &VaultPath) -> bool {
        let path = as_path(&path.as_bytes()[1..]);
        self.include.as_ref().is_none_or(|set| set.is_match(path)) && !self.exclude.is_match(path)
    }
}

/// One pattern of a file's name.
pub(super) struct NameGlob(globset::GlobMatcher);

impl NameGlob {
    pub fn new(pattern: &str, ignore_case: bool) -> Result<NameGlob> {
        let mut glob = GlobBuilder::new(pattern);
        let glob = glob.case_insensitive(ignore_case).build();
        let glob = glob.map_err(|error| invalid(pattern, &error))?;
        Ok(NameGlob(glob.compile_matcher()))
    }

    pub fn matches(&self, path: &VaultPath) -> bool {
        self.0.is_match(as_path(path.file_name().unwrap_or(b"/")))
    }
}

fn as_path(bytes: &[u8]) -> &Path {
    Path::new(OsStr::from_bytes(bytes))
}

fn invalid(pattern: &str, error: &globset::Error) -> Error {
    Error::Invalid {
        what: "glob",
        reason: format!("{pattern:?}: {}", error.kind()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matching(patterns: &[&str], path: &str) -> bool {
        let patterns: Vec<String> = patterns.iter().map(ToString::to_string).collect();
        let globs = Globs::new(&patterns).unwrap();
        globs.matches(&path.parse().unwrap())
    }

    #[test]
    fn patterns_are_of_names_ends_or_whole_paths() {
        assert!(matching(&[], "/a/b.rs"));
        assert!(matching(&["*.rs"], "/a/b.rs"));
        assert!(matching(&["*.rs"], "/b.rs"));
        assert!(!matching(&["*.rs"], "/b.rs/c"));
        assert!(matching(&["a/*.rs"], "/x/a/b.rs"));
        assert!(!matching(&["a/*.rs"], "/a/x/b.rs"));
        assert!(matching(&["/a/**"], "/a/x/b.rs"));
        assert!(!matching(&["/a/*"], "/x/a/b"));
        assert!(matching(&["*.{rs,py}"], "/b.py"));
        assert!(!matching(&["!target/"], "/x/target/b.rs"));
        assert!(matching(&["*.rs", "!b.rs"], "/a.rs"));
        assert!(!matching(&["*.rs", "!b.rs"], "/b.rs"));
        assert!(Globs::new(&["[".to_owned()]).is_err());
        assert!(NameGlob::new("{a", false).is_err());
    }
}
