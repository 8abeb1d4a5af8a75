//! Why something is refused, where an error says so.

use std::fmt;

/// Which of a vault's limits.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum QuotaLimit {
    Bytes,
    Files,
    FileBytes,
}

impl QuotaLimit {
    pub const ALL: [QuotaLimit; 3] = [QuotaLimit::Bytes, QuotaLimit::Files, QuotaLimit::FileBytes];
}

impl fmt::Display for QuotaLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            QuotaLimit::Bytes => "bytes",
            QuotaLimit::Files => "files",
            QuotaLimit::FileBytes => "bytes in one file",
        })
    }
}

/// Why an approval cannot be used.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Unfit {
    Pending,
    Denied,
    Used,
    Expired,
    OtherVault,
    OtherRequest,
    VaultMoved,
    TriedOnOther,
}

impl Unfit {
    pub fn as_str(self) -> &'static str {
        match self {
            Unfit::Pending => "nobody has answered it yet",
            Unfit::Denied => "it was denied",
            Unfit::Used => "it was used already",
            Unfit::Expired => "it has expired",
            Unfit::OtherVault => "it is for another vault",
            Unfit::OtherRequest => {
                "it is for another command, directory, environment, network, limit or other option"
            }
            Unfit::VaultMoved => "the vault has changed since it was approved",
            Unfit::TriedOnOther => "the vault has changed since the command was tried",
        }
    }
}
