//! What a decision is asked about.

/// A command, its directory, its network and its variables.
#[derive(Debug, Clone)]
pub struct Request<'a> {
    pub command: CommandForm<'a>,
    pub cwd: &'a [u8],
    pub network: Network,
    /// The variables that the caller or the vault sets. The rest of the environment is generated.
    pub env: &'a [(Vec<u8>, Vec<u8>)],
}

/// A command as a list of words or as shell text.
#[derive(Debug, Clone, Copy)]
pub enum CommandForm<'a> {
    Argv(&'a [Vec<u8>]),
    Shell(&'a str),
}

/// The network that the command gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Network {
    None,
    /// Only the hosts on a list.
    Listed,
    Host,
}

impl Network {
    pub const ALL: [Network; 3] = [Network::None, Network::Listed, Network::Host];

    pub fn as_str(self) -> &'static str {
        match self {
            Network::None => "none",
            Network::Listed => "listed",
            Network::Host => "host",
        }
    }
}
