//! What an approval is for, as one hash: the command, where and with what it runs. Together with the vault's root, which
//! is compared beside it, this is all that the command can depend on and somebody in the vault could change:
//!
//! - Whatever is in the vault, the home directory included, is in its root.
//! - An approved command has a sandbox of its own, made on exactly that root, with nothing in its layer. `/tmp`,
//!   `/var/tmp`, `/run`, `/dev/shm`, shared memory, message queues and the private network are new and empty in it, and no
//!   process is there but its own (`live/alone.rs`). So they need not be bound.
//! - Until it ends, nothing else runs in the vault, changes it or mounts it.
//! - It has no input and no terminal.
//!
//! Who might lie, and what each could forge:
//!
//! - *The agent, with files*: a script that it changes after it asked, after it was shown, after it was approved, or while
//!   it runs. The state is taken when it is shown, compared when it is approved, compared again under the vault's lock
//!   when it starts, and cannot change until it ends.
//! - *The agent, with other places*: a file in `/tmp`, a segment of shared memory, a socket in `/run`, a process that still
//!   runs. The sandbox is new.
//! - *The agent, with options*: the same words with another directory, variable, network, driver, limit or fork. All of
//!   them are in the hash, and so is the vault's name, which commands see.
//! - *The agent, with words*: text that looks like our own lines, or like other text. See `shown.rs`.
//! - *A client in the middle*: it shows the owner one request and approves another. An approval names the fingerprint of
//!   what was shown, which covers the request, this hash and the state (`Shown`).
//! - *Whoever guesses the passphrase*: guesses are counted before they are looked at. See `proof.rs`.
//!
//! Not bound: what the host lends read-only (its programs and libraries), the time, and chance. With `--driver process` or
//! `--network host` a command also sees what no hash could hold; the approver is shown that.

use crate::command::call::{Call, ExecCommand};
use crate::command::options::Stdin;
use crate::{Error, Result};

/// The hash of the request as it would run now.
pub(crate) fn binding(call: &Call) -> Result<[u8; 32]> {
    let unbound = |why: &str| Error::CannotBind {
        why: why.to_owned(),
    };
    if !matches!(call.request.stdin, Stdin::Empty) {
        return Err(unbound(
            "it reads standard input, which nobody can look at beforehand",
        ));
    }
    if call.request.terminal.is_some() {
        return Err(unbound(
            "it has a terminal, and nobody knows what will be typed there",
        ));
    }
    let inner = &call.runtime.inner;
    let name = inner.vaults.by_id(call.vault.id)?.name;
    let mut hash = Fields::new(b"agentvfs approval 3");
    hash.add(call.vault.id.as_bytes());
    hash.add(name.as_str().as_bytes());
    match &call.request.command {
        ExecCommand::Argv(argv) => {
            hash.add(b"argv");
            hash.count(argv.len());
            argv.iter().for_each(|word| hash.add(word));
        }
        ExecCommand::Shell(text) => {
            hash.add(b"shell");
            hash.add(text.as_bytes());
        }
    }
    hash.add(call.cwd.as_bytes());
    let mut env = inner.host.environment(&name, &call.env);
    env.sort();
    hash.count(env.len());
    for (name, value) in &env {
        hash.add(name);
        hash.add(value);
    }
    let options = &call.request.options;
    let chosen = (
        &call.network,
        &call.inspection,
        call.network_limits,
        options.driver,
        options.access,
        options.branch,
        &options.checkpoint,
    );
    hash.add(format!("{chosen:?}").as_bytes());
    let terms = (call.terms.timeout, call.terms.limits, call.terms.profile);
    hash.add(format!("{terms:?}").as_bytes());
    Ok(hash.finish())
}

/// Fields of a hash, each with its length, so that none can pass for two.
pub(super) struct Fields(blake3::Hasher);

impl Fields {
    pub fn new(purpose: &[u8]) -> Fields {
        let mut fields = Fields(blake3::Hasher::new());
        fields.add(purpose);
        fields
    }

    pub fn add(&mut self, bytes: &[u8]) {
        self.count(bytes.len());
        self.0.update(bytes);
    }

    pub fn count(&mut self, count: usize) {
        self.0.update(&(count as u64).to_le_bytes());
    }

    pub fn finish(self) -> [u8; 32] {
        *self.0.finalize().as_bytes()
    }
}
