//! How to get at a home when the defaults will not do.

use crate::avfs::Avfs;
use crate::binary;
use crate::daemon::Daemon;
use crate::error::Result;
use crate::face::Face;
use avfs_api::wire::Class;
use avfs_api::{DaemonPaths, Embedded, EmbeddedConfig, environment};
use std::path::{Path, PathBuf};

/// Says which home, which program and in whose name; made by [`Avfs::builder`].
///
/// ```standalone_crate
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # agentvfs::init();
/// # let dir = std::env::temp_dir().join(format!("agentvfs-builder-{}", std::process::id()));
/// let owner = agentvfs::Avfs::embedded(&dir)?;
/// owner.create_vault("demo")?;
/// drop(owner); // a home has one opener at a time
///
/// let agent = agentvfs::Avfs::builder().home(&dir).agent("reviewer").embedded()?;
/// let vault = agent.vault("demo")?;
/// vault.write("/note", "seen")?;
/// assert_eq!(vault.log(1)?[0].by, "agent:reviewer");
/// // Quotas are the owner's.
/// let refused = vault.set_quota("max_files", Some(10)).unwrap_err();
/// assert_eq!(refused.kind(), agentvfs::ErrorKind::Denied);
/// # drop((agent, vault));
/// # std::fs::remove_dir_all(&dir)?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default)]
pub struct Builder {
    home: Option<PathBuf>,
    runtime_dir: Option<PathBuf>,
    binary: Option<PathBuf>,
    layers: Option<PathBuf>,
    is_agent: bool,
    agent: Option<String>,
}

impl Builder {
    /// The directory that holds the vaults. Left out: `AVFS_HOME`, else `agentvfs` among the user's data. It is made, with
    /// mode 0700, if it is missing.
    pub fn home(mut self, dir: impl Into<PathBuf>) -> Builder {
        self.home = Some(dir.into());
        self
    }

    /// The directory beneath which sockets and locks are. Left out: `XDG_RUNTIME_DIR`, else a private directory.
    pub fn runtime_dir(mut self, dir: impl Into<PathBuf>) -> Builder {
        self.runtime_dir = Some(dir.into());
        self
    }

    /// The `avfs` program: it is the daemon, and the helper of an embedded home. Left out: `AGENTVFS_BIN`, else this
    /// program for an embedded home if it called [`crate::init`], else `avfs` in `PATH`.
    pub fn binary(mut self, file: impl Into<PathBuf>) -> Builder {
        self.binary = Some(file.into());
        self
    }

    /// Where an embedded home keeps what commands write until it is committed. Left out: `AVFS_LAYERS`, else the home. A
    /// daemon is told so when it is started, with `AVFS_LAYERS` or `avfs serve --layers`.
    pub fn layers(mut self, dir: impl Into<PathBuf>) -> Builder {
        self.layers = Some(dir.into());
        self
    }

    /// Asks as an agent of this name: the owner's rights are given up, and the journal has the name.
    pub fn agent(mut self, name: impl Into<String>) -> Builder {
        self.is_agent = true;
        self.agent = Some(name.into());
        self
    }

    /// Asks as an agent without a name.
    pub fn anonymous_agent(mut self) -> Builder {
        self.is_agent = true;
        self
    }

    /// Connects to the daemon of the home, which is started if there is none.
    pub fn connect(self) -> Result<Avfs> {
        let place = self.place()?;
        let daemon = Daemon::connect(place, self.binary, self.runtime_dir)?;
        Ok(Avfs::new(Face::Daemon(Box::new(daemon))))
    }

    /// Opens the home in this process. It fails while a daemon or another program has it open.
    pub fn embedded(self) -> Result<Avfs> {
        let binary = binary::helper(self.binary.as_deref())?;
        let home = Embedded::open(EmbeddedConfig {
            place: self.place()?,
            binary,
            host: environment::host_facts(),
            layers: environment::layers(self.layers)?,
        })?;
        Ok(Avfs::new(Face::Embedded(Box::new(home))))
    }

    fn place(&self) -> Result<DaemonPaths> {
        let home = match &self.home {
            Some(home) => home.clone(),
            None => environment::home()?,
        };
        let base = self.runtime_dir.clone().or_else(environment::runtime_base);
        let place = DaemonPaths::new(&home, base.as_deref().map(Path::new))?;
        let (mut class, mut name) = environment::caller()?;
        if self.is_agent {
            class = Class::Agent;
        }
        if let Some(agent) = &self.agent {
            name = Some(environment::agent_name("the agent", agent)?);
        }
        Ok(place.as_caller(class, name))
    }
}
