//! What exactly is wrong, inside a [`ModelError`](crate::ModelError).

/// One of our own phrases, so that the user's language can be spoken above, or what a server or the system said. What
/// is boxed is boxed to keep errors small.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Detail {
    /// What somebody else said.
    #[error("{0}")]
    Told(String),
    #[error("the connection was closed without an answer")]
    Closed,
    #[error("the host name is unknown")]
    UnknownHost,
    #[error("this system has no name server; write a line such as \"nameserver 192.168.1.1\" into {0}")]
    NoNameServer(Box<str>),
    #[error("no name server could answer; check the network and {0}")]
    NameServersSilent(Box<str>),
    #[error("nothing is listening there")]
    NothingListens,
    #[error("the connection was cut")]
    Cut,
    #[error("the connection ended too early")]
    EndedEarly,
    #[error("it cannot be reached")]
    Unreachable,
    #[error("it shows none")]
    NoCertificate,
    #[error("it has expired")]
    Expired,
    #[error("it is not valid yet; is this machine's clock right?")]
    NotYetValid,
    #[error("no issuer that this system trusts has signed it")]
    UnknownIssuer,
    #[error("it belongs to another name")]
    OtherName,
    #[error("it does not speak TLS")]
    NoTls,
    #[error("it does not answer in HTTP")]
    NoHttp,
    #[error("it answered with a web page")]
    WebPage,
    #[error("its answer is neither JSON nor a stream of events")]
    NeitherJsonNorEvents,
    #[error("it answered with content of the type {0}")]
    ContentType(Box<str>),
    #[error("it redirects to {0}, which Kai does not follow, because your key and messages would go there")]
    Redirects(Box<str>),
    #[error("it answered {} with status {}", .0.path, .0.status)]
    Status(Box<Unexpected>),
    #[error("it answered {} with status {} and a web page", .0.path, .0.status)]
    StatusAndPage(Box<Unexpected>),
    #[error("it is empty")]
    Empty,
    #[error("there is no answer in it")]
    NoAnswer,
    #[error("it breaks off before its end")]
    BreaksOff,
    #[error("it calls more than {0} tools at once")]
    TooManyCalls(usize),
    #[error("its JSON breaks off")]
    JsonBreaksOff,
    #[error("it is not the expected JSON")]
    OtherJson,
    #[error("no model is named")]
    NoModelNamed,
    #[error("its key is empty")]
    KeyEmpty,
    #[error("its key contains a line break")]
    KeyLineBreak,
    #[error("its key contains a space or an unusual character")]
    KeyUnusual,
    #[error("its base URL is not a web address")]
    NoAddress,
    #[error("its base URL does not begin with http:// or https://")]
    OtherScheme,
    #[error("its base URL contains a user name or password")]
    HasPassword,
    #[error("its base URL contains a ? or #")]
    HasQuery,
    #[error("no secure connection can be made here: {0}")]
    NoSecureConnection(Box<str>),
}

/// A status that no API answers with, and where it came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unexpected {
    pub path: String,
    pub status: u16,
}

/// What the user can do about it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Hint {
    /// What a script or a test suggests.
    #[error("{0}")]
    Told(String),
    #[error("try http:// instead of https://.")]
    TryHttp,
    #[error("check the base URL; perhaps it needs https://.")]
    MaybeHttps,
    #[error("the base URL probably lacks /v1; try {base}/v1.")]
    LacksVersion { base: Box<str> },
    #[error("check the base URL and the format set for this model.")]
    CheckFormat,
    #[error("if you trust that address, set it as the base URL.")]
    TrustRedirect,
    #[error("use a model on this machine over http://.")]
    UseLocal,
    #[error("copy the key again, without anything before or after it.")]
    CopyKey,
    #[error("write it like https://example.org/v1.")]
    WriteAddress,
    #[error("set a key instead.")]
    SetKey,
    #[error("choose one that the service lists.")]
    ChooseListed,
}

impl From<String> for Detail {
    fn from(told: String) -> Self {
        Self::Told(told)
    }
}
