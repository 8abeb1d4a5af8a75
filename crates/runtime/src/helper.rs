//! The programs that a runtime runs beside itself: the keeper, the scanner and the shims of tools, which are the program of
//! [`crate::Config::binary`] with a word of ours as its first argument.

use std::ffi::OsStr;
use std::process::ExitCode;

use avfs_sandbox::toolchain::{SHIM_ROLE, tool_main};

/// Lives the life of a helper, if the first argument of this process says so; none if it is no helper. To be asked before
/// anything else: a helper has one thread and nothing loaded.
pub fn helper_main(first: Option<&OsStr>) -> Option<ExitCode> {
    match first?.to_str()? {
        "__keeper" => Some(avfs_sandbox::keeper_main()),
        "__scanner" => Some(avfs_view::scanner_main()),
        // Inside a sandbox, by the shim of a tool.
        SHIM_ROLE => Some(tool_main()),
        _ => None,
    }
}
