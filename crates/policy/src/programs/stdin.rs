//! What a command reads.

/// What a command reads from its standard input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Stdin {
    Inherited,
    Piped,
    /// A file by its name.
    File,
    /// A here-document, a here-string, or the output of an `echo`.
    Text(String),
}
