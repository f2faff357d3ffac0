//! Why a name has no addresses.

use std::io;
use std::path::PathBuf;

/// The reason, inside the [`io::Error`] that a lookup ends with.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    #[error("that cannot be the name of a host")]
    NotAName,
    #[error("the host name is unknown")]
    Unknown,
    #[error("this system has no name server; write a line such as \"nameserver 192.168.1.1\" into {}", .file.display())]
    NoServer { file: PathBuf },
    #[error("no name server could answer; check the network and {}", .file.display())]
    NoAnswer { file: PathBuf },
}

impl NameError {
    /// The reason in an error of a lookup, if it is one of ours.
    pub fn of(error: &io::Error) -> Option<&Self> {
        error.get_ref()?.downcast_ref()
    }
}

impl From<NameError> for io::Error {
    fn from(error: NameError) -> Self {
        let kind = match error {
            NameError::NotAName => io::ErrorKind::InvalidInput,
            NameError::Unknown => io::ErrorKind::NotFound,
            NameError::NoServer { .. } | NameError::NoAnswer { .. } => io::ErrorKind::Other,
        };
        Self::new(kind, error)
    }
}
