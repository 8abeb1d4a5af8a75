//! A failing disk: a library that is preloaded into a child process.

use std::path::{Path, PathBuf};
use std::process::Command;

/// What happens to one call.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The call fails with EIO; writes go on failing for a while.
    Eio,
    /// The call fails with ENOSPC; writes go on failing for a while.
    Enospc,
    /// The call fails with EDQUOT; writes go on failing for a while.
    Edquot,
    /// A short write.
    Short,
    /// Half is written, and the process ends.
    Torn,
    /// The call reports success, and writes nothing.
    Dropped,
    /// The process ends before the call.
    End,
}

impl Fault {
    fn word(self) -> &'static str {
        match self {
            Fault::Eio => "eio",
            Fault::Enospc => "enospc",
            Fault::Edquot => "edquot",
            Fault::Short => "short",
            Fault::Torn => "torn",
            Fault::Dropped => "dropped",
            Fault::End => "end",
        }
    }
}

/// Which calls are counted.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Calls {
    Writes,
    Syncs,
    All,
}

/// The library, compiled in `place`.
pub struct FaultyDisk {
    library: PathBuf,
}

impl FaultyDisk {
    pub fn compile(place: &Path) -> FaultyDisk {
        let (source, library) = (place.join("preload.c"), place.join("preload.so"));
        std::fs::write(&source, include_str!("preload.c")).expect("a directory for it");
        let mut compiler = Command::new("cc");
        compiler.args(["-shared", "-fPIC", "-O1", "-o"]);
        let output = compiler.arg(&library).arg(&source).arg("-ldl").output();
        let output = output.expect("a C compiler");
        assert!(output.status.success(), "{output:?}");
        FaultyDisk { library }
    }

    /// Lets the call `number` of `command` (from 1) on files below `directory` fail with `fault`; with 0 none fails. If the command
    /// exits normally, `count` has the number of calls.
    pub fn under(
        &self,
        command: &mut Command,
        directory: &Path,
        (calls, number, fault): (Calls, u64, Fault),
        count: &Path,
    ) {
        let calls = match calls {
            Calls::Writes => "write",
            Calls::Syncs => "sync",
            Calls::All => "any",
        };
        let number = if number == 0 { u64::MAX >> 1 } else { number };
        let directory = directory.display();
        let fault = format!("{directory}:{calls}:{number}:{}", fault.word());
        command
            .env("LD_PRELOAD", &self.library)
            .env("AVFS_FAULT", fault)
            .env("AVFS_FAULT_COUNT", count);
    }
}
