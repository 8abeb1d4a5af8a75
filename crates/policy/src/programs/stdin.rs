//! The standard input of a command.

/// Where a command's standard input comes from, as far as it is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Stdin {
    Inherited,
    Piped,
    /// A file that is named.
    File,
    /// Known text: a here-document, a here-string, or the output of an `echo`.
    Text(String),
}
