//! What is typed or piped in.

use std::io::{self, IsTerminal, Read};

/// Does a person sit at the keyboard, who could be asked? Never at that of a test.
pub(crate) fn has_person() -> bool {
    !cfg!(test) && io::stdin().is_terminal()
}

/// Is something piped or redirected into us? A terminal, or the socket of a remote shell, is not.
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

/// What is piped in.
#[cfg(not(test))]
pub(crate) fn piped() -> impl Read {
    io::stdin()
}

#[cfg(test)]
pub(crate) fn piped() -> impl Read {
    super::stage::piped()
}
