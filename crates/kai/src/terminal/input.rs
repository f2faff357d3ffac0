//! Standard input: whether a person is at the keyboard, and what is piped in.

use std::io::{self, IsTerminal, Read};

/// Whether standard input is a terminal, so that a person can be asked. Always false in tests.
pub(crate) fn has_person() -> bool {
    !cfg!(test) && io::stdin().is_terminal()
}

/// Whether standard input is a pipe or a file. A terminal or the socket of a remote shell does not count.
#[cfg(not(test))]
pub(crate) fn is_piped() -> bool {
    use rustix::fs::{FileType, fstat};
    let kind = fstat(io::stdin()).map(|stat| FileType::from_raw_mode(stat.st_mode));
    matches!(kind, Ok(FileType::Fifo | FileType::RegularFile))
}

#[cfg(test)]
pub(crate) fn is_piped() -> bool {
    super::stage::is_piped()
}

/// A reader for what is piped in.
#[cfg(not(test))]
pub(crate) fn piped() -> impl Read {
    io::stdin()
}

#[cfg(test)]
pub(crate) fn piped() -> impl Read {
    super::stage::piped()
}
