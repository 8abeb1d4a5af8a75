//! Names that the owner gives addresses to, in a file in the form of `/etc/hosts`.

use std::fs::File;
use std::io::{self, Read};
use std::net::IpAddr;
use std::path::PathBuf;

use avfs_policy::HostName;

use crate::resolve::{HostResolver, Resolve};

/// A file is read whole at each look-up, so it is small.
const MAX_BYTES: u64 = 64 << 10;

/// Resolves names by a file, and those that are not in it by the host's own resolver. A change of the file holds from
/// the next look-up on.
#[derive(Debug, Clone)]
pub struct HostsFile {
    path: PathBuf,
}

impl HostsFile {
    /// The file need not exist.
    pub fn new(path: PathBuf) -> HostsFile {
        HostsFile { path }
    }

    fn read(&self) -> io::Result<String> {
        let file = match File::open(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(String::new()),
            opened => opened?,
        };
        let mut text = String::new();
        file.take(MAX_BYTES + 1).read_to_string(&mut text)?;
        match text.len() as u64 > MAX_BYTES {
            true => Err(wrong(&format!("it has more than {MAX_BYTES} bytes"))),
            false => Ok(text),
        }
    }
}

impl Resolve for HostsFile {
    fn resolve(&self, name: &HostName) -> io::Result<Vec<IpAddr>> {
        let own = find(&self.read()?, name)?;
        match own.is_empty() {
            true => HostResolver.resolve(name),
            false => Ok(own),
        }
    }
}

/// The addresses of a name. A line that cannot be read makes the whole file unusable: the name may have been in it, and the
/// host's resolver would then give another address than the owner meant.
fn find(text: &str, name: &HostName) -> io::Result<Vec<IpAddr>> {
    let mut found = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let said = line.split('#').next().unwrap_or_default();
        let mut words = said.split_ascii_whitespace();
        let Some(address) = words.next() else {
            continue;
        };
        let unread = |what: &str| wrong(&format!("line {number}: {what}"));
        let address: IpAddr = address.parse().map_err(|_| unread("no address"))?;
        for word in words {
            let own = HostName::parse(word).map_err(|error| unread(&error.to_string()))?;
            if own == *name {
                found.push(address);
            }
        }
    }
    Ok(found)
}

/// The path is not said: the sandbox sees this text.
fn wrong(why: &str) -> io::Error {
    io::Error::new(
        io::ErrorKind::InvalidData,
        format!("the owner's hosts file cannot be used: {why}"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str, name: &str) -> io::Result<Vec<String>> {
        let found = find(text, &HostName::parse(name).unwrap())?;
        Ok(found.iter().map(IpAddr::to_string).collect())
    }

    #[test]
    fn names_have_the_addresses_of_their_lines() {
        let text = "# own\n10.0.0.5 db.test DB2.test. # the database\n\n\t::1\tdb.test\n";
        assert_eq!(found(text, "db.test").unwrap(), ["10.0.0.5", "::1"]);
        assert_eq!(found(text, "db2.test").unwrap(), ["10.0.0.5"]);
        assert!(found(text, "x.db.test").unwrap().is_empty());
    }

    #[test]
    fn a_file_that_cannot_be_read_resolves_nothing() {
        for text in [
            "db.test 10.0.0.5",
            "10.1 db.test",
            "::1 a b..c",
            "1.2.3.4 %",
        ] {
            let error = found(&format!("::1 a.test\n{text}\n"), "a.test").unwrap_err();
            assert!(error.to_string().contains("line 2"), "{text}: {error}");
        }
        let place = std::env::temp_dir().join(format!("avfs-hosts-{}", std::process::id()));
        let file = HostsFile::new(place.clone());
        assert_eq!(file.read().unwrap(), "");
        std::fs::write(&place, vec![b'\n'; 1 + MAX_BYTES as usize]).unwrap();
        let large = file.read().unwrap_err().to_string();
        std::fs::remove_file(&place).unwrap();
        assert!(large.contains("more than"), "{large}");
    }
}
