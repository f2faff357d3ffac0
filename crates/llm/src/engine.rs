//! What can go wrong with a model that runs inside Kai.

/// Why a model that runs inside Kai gave no reply.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EngineTrouble {
    #[error("its file is gone: download it again, or remove the model")]
    NoFile,
    #[error("its file cannot be used ({0}): download it again, or choose another model")]
    BadFile(String),
    #[error(
        "it needs about {needs_mib} MB of memory and this computer has {free_mib} MB free: close other programs, or choose a smaller model"
    )]
    NoMemory { needs_mib: u64, free_mib: u64 },
    #[error(
        "the system ended it, most likely because memory ran out: close other programs, or choose a smaller model"
    )]
    Killed,
    #[error("it broke down ({0}): try again, and choose another model if this keeps happening")]
    Crashed(String),
    #[error("it stopped responding, so Kai ended it: try again")]
    Hung,
    #[error("this computer's processor is too old for it (it lacks {0}): use a model on a server instead")]
    OldProcessor(String),
    #[error(
        "this Kai was built without its own engine: install a build that has it, or choose another model"
    )]
    NotBuiltIn,
}
