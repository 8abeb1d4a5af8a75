//! What is asked.

/// What is asked: a command, where it would run, and what it would be given.
#[derive(Debug, Clone)]
pub struct Request<'a> {
    pub command: CommandForm<'a>,
    pub cwd: &'a [u8],
    pub network: Network,
    /// The variables the caller asked for, not the whole environment that is built.
    pub env: &'a [(Vec<u8>, Vec<u8>)],
}

/// The two ways to state a command.
#[derive(Debug, Clone, Copy)]
pub enum CommandForm<'a> {
    Argv(&'a [Vec<u8>]),
    Shell(&'a str),
}

/// The network the command would have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Network {
    None,
    Host,
}

impl Network {
    pub const ALL: [Network; 2] = [Network::None, Network::Host];

    pub fn as_str(self) -> &'static str {
        match self {
            Network::None => "none",
            Network::Host => "host",
        }
    }
}
