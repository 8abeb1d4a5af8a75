//! The toolchains of a host: which versions its version managers have, which one a project pins, and the program that
//! stands for each tool inside a sandbox and runs the version that is wanted.

mod catalogue;
mod choose;
mod pins;
mod shim;
mod survey;
mod version;

use serde::{Deserialize, Serialize};

pub use catalogue::{Catalogue, Installed};
pub use shim::{SHIM_ROLE, tool_main};
pub use survey::{Survey, survey};

/// Below `/etc` of a sandbox: the directory of shims, and the program that they run.
pub const SHIMS: &str = "agentvfs-tools/bin";
/// The file in the directory of shims that says where versions are. Its name is no program's.
pub const CATALOGUE: &str = ".catalogue";
/// The program of the shims, below `/etc`.
pub const SHIM_PROGRAM: &str = "agentvfs-tools/program";

/// Where a host has programs that no version manager manages.
pub const SYSTEM_BINS: [&str; 6] = [
    "/usr/local/sbin",
    "/usr/local/bin",
    "/usr/sbin",
    "/usr/bin",
    "/sbin",
    "/bin",
];

/// A language whose version a project can pin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Family {
    /// Rust.
    Rust,
    /// Node.js.
    Node,
    /// Python.
    Python,
    /// Go.
    Go,
}

impl Family {
    /// All of them.
    pub const ALL: [Family; 4] = [Family::Rust, Family::Node, Family::Python, Family::Go];

    /// Its name in words of ours.
    pub fn as_str(self) -> &'static str {
        match self {
            Family::Rust => "rust",
            Family::Node => "node",
            Family::Python => "python",
            Family::Go => "go",
        }
    }

    /// The family of a tool as asdf and mise call it.
    fn of_tool(name: &str) -> Option<Family> {
        Some(match name {
            "rust" => Family::Rust,
            "node" | "nodejs" => Family::Node,
            "python" => Family::Python,
            "go" | "golang" => Family::Go,
            _ => return None,
        })
    }

    /// Programs that every version has, as far as it knows them.
    fn programs(self) -> &'static [&'static str] {
        match self {
            Family::Rust => &[
                "cargo",
                "cargo-clippy",
                "cargo-fmt",
                "cargo-miri",
                "clippy-driver",
                "rust-analyzer",
                "rust-gdb",
                "rust-lldb",
                "rustc",
                "rustdoc",
                "rustfmt",
            ],
            Family::Node => &["corepack", "node", "npm", "npx"],
            Family::Python => &["pip", "pip3", "python", "python3"],
            Family::Go => &["go", "gofmt"],
        }
    }

    /// The program that says its version, and with which word.
    fn asked(self) -> (&'static str, &'static str) {
        match self {
            Family::Rust => ("rustc", "--version"),
            Family::Node => ("node", "--version"),
            Family::Python => ("python3", "--version"),
            Family::Go => ("go", "version"),
        }
    }

    /// The variable that names a version and goes before every file. A shim sets it for what it runs, so that the
    /// outermost call decides: a dependency that is built has files of its own.
    fn variable(self) -> &'static str {
        match self {
            Family::Rust => "RUSTUP_TOOLCHAIN",
            Family::Node => "AVFS_NODE",
            Family::Python => "PYENV_VERSION",
            Family::Go => "AVFS_GO",
        }
    }

    /// How a version is installed on the host.
    fn how_to_install(self, wanted: &str) -> String {
        match self {
            Family::Rust => format!("rustup toolchain install {wanted}"),
            Family::Node => format!("nvm install {wanted}"),
            Family::Python => format!("pyenv install {wanted}"),
            Family::Go => {
                format!("go install golang.org/dl/go{wanted}@latest && go{wanted} download")
            }
        }
    }
}

/// Another name of a program, by which a version may have it.
fn twin(program: &str) -> Option<&'static str> {
    Some(match program {
        "python" => "python3",
        "python3" => "python",
        "pip" => "pip3",
        "pip3" => "pip",
        _ => return None,
    })
}
