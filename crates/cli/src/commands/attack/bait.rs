//! Targets on the host for the attacks: secrets, sockets, files.

use crate::commands::demo::stage::Stage;
use crate::error::{Error, Result};
use avfs_sandbox::attack::Targets;
use std::fs;
use std::net::TcpListener;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

/// What attackers look for in a home directory.
const COVETED: [&str; 14] = [
    ".ssh/id_rsa",
    ".ssh/id_ed25519",
    ".ssh/config",
    ".cargo/credentials.toml",
    ".npmrc",
    ".config/pip/pip.conf",
    ".netrc",
    ".git-credentials",
    ".gitconfig",
    ".aws/credentials",
    ".docker/config.json",
    ".config/gh/hosts.yml",
    ".bash_history",
    ".gnupg/pubring.kbx",
];

/// All targets; removed when dropped.
pub struct Bait {
    pub targets: Targets,
    _listeners: (TcpListener, UnixListener, UnixListener),
    /// A process of the host that has the secret in its environment.
    bearer: Child,
    shared: PathBuf,
}

impl Bait {
    pub fn lay(stage: &Stage) -> Result<Bait> {
        let failed = || Error::io("cannot lay the bait".to_owned());
        let token = format!("avfs-canary-{:x}", unguessable(stage));
        let dir = stage.dir();
        let canary = dir.join("canary");
        fs::write(&canary, &token).map_err(failed())?;
        // Shared memory of the host, if there is any.
        let shared = PathBuf::from(format!("/dev/shm/avfs-canary-{}", std::process::id()));
        let _ = fs::write(&shared, &token);
        let tcp = TcpListener::bind("127.0.0.1:0").map_err(failed())?;
        let socket = dir.join("socket");
        let unix = UnixListener::bind(&socket).map_err(failed())?;
        let name = format!("avfs-bait-{}", std::process::id());
        let abstracted = SocketAddr::from_abstract_name(&name)
            .and_then(|address| UnixListener::bind_addr(&address))
            .map_err(failed())?;
        let bearer = Command::new("sleep")
            .arg("600")
            .env("AVFS_CANARY", &token)
            .stdin(Stdio::null())
            .spawn()
            .map_err(failed())?;
        let home = std::env::var_os("HOME").map(PathBuf::from);
        let coveted = COVETED
            .iter()
            .filter_map(|name| Some(home.as_ref()?.join(name)));
        let files = coveted.chain([canary, stage.place().home().join("store.db")]);
        let files = files.filter(|path| path.exists());
        Ok(Bait {
            targets: Targets {
                token,
                tcp: tcp.local_addr().map_err(failed())?.port(),
                unix: socket.to_string_lossy().into_owned(),
                abstracted: name,
                daemon: stage.place().socket().to_string_lossy().into_owned(),
                home: dir.to_string_lossy().into_owned(),
                files: files
                    .map(|path| path.to_string_lossy().into_owned())
                    .collect(),
            },
            _listeners: (tcp, unix, abstracted),
            bearer,
            shared,
        })
    }
}

/// A random number that cannot be guessed inside the sandbox.
fn unguessable(stage: &Stage) -> u64 {
    use std::hash::{BuildHasher, RandomState};
    RandomState::new().hash_one(stage.dir())
}

impl Drop for Bait {
    fn drop(&mut self) {
        let _ = self.bearer.kill();
        let _ = self.bearer.wait();
        let _ = fs::remove_file(&self.shared);
    }
}
