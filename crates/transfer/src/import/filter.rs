//! What an import leaves out because it was asked to: globs, and `.gitignore` files.

use std::ffi::OsStr;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use avfs_vault::VaultPath;
use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};
use rustix::fs::{Mode, OFlags, Stat};

use crate::aside::{self, Asides};
use crate::error::{Error, Result};

/// The rest of a longer file is not read.
const GITIGNORE_MAX: u64 = 1 << 20;

/// Whether `.gitignore` files are heeded.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Gitignores {
    #[default]
    Taken,
    Heeded,
}

/// Which names an import leaves out.
#[derive(Debug, Clone, Default)]
pub struct ImportFilter {
    /// In the language of `.gitignore`, from the top of what is imported.
    pub exclude: Vec<String>,
    pub gitignores: Gitignores,
    /// How many names deep it goes; all the way when none.
    pub max_depth: Option<usize>,
}

/// The filter, ready for use.
pub(super) struct Exclusions {
    exclude: Gitignore,
    gitignores: Gitignores,
    max_depth: Option<usize>,
    /// The notes of what exports have made beside their targets and not yet removed.
    notes: PathBuf,
}

/// The rules of one `.gitignore`, and those further up.
pub(super) struct Rules {
    own: Gitignore,
    above: Option<Arc<Rules>>,
}

impl Rules {
    /// Why these rules or those above ignore `path`; none if they do not. The repository itself is never ignored.
    pub fn ignores(self: &Arc<Rules>, path: &VaultPath, is_dir: bool) -> Option<String> {
        if path.components().next_back() == Some(b".git") {
            return None;
        }
        let path = Path::new(OsStr::from_bytes(path.as_bytes()));
        let mut rules = Some(self);
        while let Some(these) = rules {
            match these.own.matched(path, is_dir) {
                Match::Ignore(glob) => {
                    return Some(format!("ignored by .gitignore ({})", glob.original()));
                }
                Match::Whitelist(_) => return None,
                Match::None => rules = these.above.as_ref(),
            }
        }
        None
    }
}

impl Drop for Rules {
    /// Iterates, since the chain is as long as the directories are deep.
    fn drop(&mut self) {
        let mut next = self.above.take();
        while let Some(rules) = next {
            next = Arc::into_inner(rules).and_then(|mut rules| rules.above.take());
        }
    }
}

impl Exclusions {
    /// Also leaves out what exports noted in the directory `notes`.
    pub fn new(filter: &ImportFilter, notes: &Path) -> Result<Exclusions> {
        let mut builder = GitignoreBuilder::new("/");
        for glob in &filter.exclude {
            let refuse = |reason: String| Error::Pattern {
                pattern: glob.clone(),
                reason,
            };
            if glob.trim().is_empty() || glob.contains('\n') {
                return Err(refuse("it is empty".into()));
            }
            // A pattern given as an option is never a comment.
            let line = match glob.strip_prefix('#') {
                Some(rest) => format!("\\#{rest}"),
                None => glob.clone(),
            };
            builder
                .add_line(None, &line)
                .map_err(|error| refuse(error.to_string()))?;
        }
        let exclude = builder.build().map_err(|error| Error::Pattern {
            pattern: filter.exclude.join(" "),
            reason: error.to_string(),
        })?;
        Ok(Exclusions {
            exclude,
            gitignores: filter.gitignores,
            max_depth: filter.max_depth,
            notes: notes.to_owned(),
        })
    }

    /// Refuses to heed `.gitignore` files where there are none to be read: in archives and revisions.
    pub fn check_without_gitignores(&self) -> Result<()> {
        match self.gitignores {
            Gitignores::Taken => Ok(()),
            Gitignores::Heeded => Err(Error::NoGitignores),
        }
    }

    /// Whether a listed name is that of an unfinished export; `stat` looks at what has the name.
    pub fn is_aside<E>(
        &self,
        name: &[u8],
        stat: impl FnOnce() -> std::result::Result<Stat, E>,
    ) -> std::result::Result<bool, E> {
        if !name.starts_with(aside::PREFIX.as_bytes()) {
            return Ok(false);
        }
        // An export may have begun after the import did. It notes the name before it makes it, so the notes of now name
        // all that was listed. They are read before the stat: an export that ended between has taken the name away.
        let asides = Asides::noted(&self.notes);
        Ok(asides.contain(name, &stat()?))
    }

    /// Whether `.gitignore` files are heeded.
    pub fn heeds_gitignores(&self) -> bool {
        self.gitignores == Gitignores::Heeded
    }

    /// Why `path`, counted from the top of what is imported, was asked to be left out; none if it was not.
    pub fn refuses(&self, path: &VaultPath, is_dir: bool) -> Option<String> {
        if let Some(deep) = self
            .max_depth
            .filter(|&deep| path.components().count() > deep)
        {
            return Some(format!("it is more than {deep} levels deep"));
        }
        let path = Path::new(OsStr::from_bytes(path.as_bytes()));
        match self.exclude.matched(path, is_dir) {
            Match::Ignore(glob) => Some(format!("excluded by {}", glob.original())),
            Match::Whitelist(_) | Match::None => None,
        }
    }

    /// `refuses` for lists that are not walked: also looks at the names above, and gives the
    /// topmost name that is left out.
    pub fn refuses_beneath(&self, path: &VaultPath, is_dir: bool) -> Option<(VaultPath, String)> {
        if self.exclude.is_empty() && self.max_depth.is_none() {
            return None;
        }
        let mut above = VaultPath::root();
        let mut names = path.components().peekable();
        while let Some(name) = names.next() {
            above = above.join(name).ok()?;
            let last = names.peek().is_none();
            if let Some(reason) = self.refuses(&above, is_dir || !last) {
                return Some((above, reason));
            }
        }
        None
    }

    /// The rules that hold in the directory `dir`, which is `path` from the top.
    pub fn rules_in(
        &self,
        dir: &OwnedFd,
        path: &VaultPath,
        above: Option<Arc<Rules>>,
    ) -> Option<Arc<Rules>> {
        // A repository's own files are no part of its work tree.
        if !self.heeds_gitignores() || path.components().any(|name| name == b".git") {
            return None;
        }
        let mut builder = GitignoreBuilder::new(Path::new(OsStr::from_bytes(path.as_bytes())));
        let mut lines = 0;
        for name in [".git/info/exclude", ".gitignore"] {
            // The first exists only at the top of a repository; both may be missing.
            for line in read(dir, name).unwrap_or_default().lines() {
                // git ignores invalid lines.
                lines += usize::from(builder.add_line(None, line).is_ok());
            }
        }
        match builder.build() {
            Ok(own) if lines > 0 => Some(Arc::new(Rules { own, above })),
            _ => above,
        }
    }
}

fn read(dir: &OwnedFd, name: &str) -> Option<String> {
    use std::io::Read;
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let fd = rustix::fs::openat(dir, name, flags, Mode::empty()).ok()?;
    let file = std::fs::File::from(fd);
    if !file.metadata().ok()?.is_file() {
        return None;
    }
    let mut bytes = Vec::new();
    file.take(GITIGNORE_MAX).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::aside::{Aside, AsideKind};

    fn exclusions(globs: &[&str]) -> Exclusions {
        let filter = ImportFilter {
            exclude: globs.iter().map(|glob| (*glob).to_owned()).collect(),
            gitignores: Gitignores::Taken,
            max_depth: None,
        };
        Exclusions::new(&filter, Path::new("/nowhere")).unwrap()
    }

    fn left_out(exclusions: &Exclusions, path: &str, is_dir: bool) -> bool {
        exclusions.refuses(&path.parse().unwrap(), is_dir).is_some()
    }

    #[test]
    fn globs_are_those_of_gitignore() {
        let exclusions = exclusions(&["*.o", "/target", "doc/", "!keep.o", "#x"]);
        for (path, is_dir, expected) in [
            ("/a.o", false, true),
            ("/a/b.o", false, true),
            ("/a/keep.o", false, false),
            ("/target", true, true),
            ("/a/target", true, false),
            ("/a/doc", true, true),
            ("/a/doc", false, false),
            ("/#x", false, true),
        ] {
            assert_eq!(left_out(&exclusions, path, is_dir), expected, "{path}");
        }
        let beneath = "/a/doc/b/c.txt".parse().unwrap();
        let (top, _) = exclusions.refuses_beneath(&beneath, false).unwrap();
        assert_eq!(top.to_string(), "/a/doc");
        assert!(exclusions.refuses(&beneath, false).is_none());
    }

    #[test]
    fn an_export_that_began_after_the_import_is_left_out() {
        let dir = tempfile::tempdir().unwrap();
        let notes = dir.path().join("notes");
        let exclusions = Exclusions::new(&ImportFilter::default(), &notes).unwrap();
        let is_aside = |name: &str| {
            let stat = || rustix::fs::lstat(dir.path().join(name));
            exclusions.is_aside(name.as_bytes(), stat)
        };
        let made = Aside::make(&notes, dir.path(), AsideKind::File).unwrap();
        assert_eq!(is_aside(&made.name), Ok(true));
        let alike = format!("{}mine", aside::PREFIX);
        std::fs::write(dir.path().join(&alike), "mine").unwrap();
        assert_eq!(is_aside(&alike), Ok(false));
        let name = made.name.clone();
        drop(made);
        assert_eq!(is_aside(&name), Err(rustix::io::Errno::NOENT));
    }

    #[test]
    fn rules_of_any_depth_are_dropped_on_a_small_stack() {
        let dropped = || {
            let mut above = None;
            for _ in 0..50_000 {
                let own = Gitignore::empty();
                above = Some(Arc::new(Rules { own, above }));
            }
        };
        let thread = std::thread::Builder::new().stack_size(128 << 10);
        thread.spawn(dropped).unwrap().join().unwrap();
    }

    #[test]
    fn a_bad_glob_is_refused() {
        for glob in ["", "a{b", "[z-a]"] {
            let filter = ImportFilter {
                exclude: vec![glob.into()],
                ..ImportFilter::default()
            };
            assert!(
                matches!(
                    Exclusions::new(&filter, Path::new("/nowhere")),
                    Err(Error::Pattern { .. })
                ),
                "{glob:?}"
            );
        }
    }
}
