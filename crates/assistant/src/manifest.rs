//! The permissions that this edition declares. The foss edition may read SMS and notifications and draft SMS and
//! replies, for which nothing more is needed; the store edition declares none, and their names are not even in its
//! binary.

/// An edition and the permissions it declares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Manifest {
    pub edition: &'static str,
    pub permissions: &'static [&'static str],
}

/// The manifest of the edition that was built.
pub const MANIFEST: Manifest = Manifest {
    edition: if cfg!(any(feature = "sms", feature = "notifications")) { "foss" } else { "store" },
    permissions: &[
        #[cfg(feature = "sms")]
        "READ_SMS",
        #[cfg(feature = "sms")]
        "SEND_SMS",
        #[cfg(feature = "notifications")]
        "BIND_NOTIFICATION_LISTENER_SERVICE",
    ],
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_foss_edition_declares_anything() {
        let foss = cfg!(any(feature = "sms", feature = "notifications"));
        assert_eq!(MANIFEST.edition == "foss", foss);
        assert_eq!(MANIFEST.permissions.is_empty(), !foss);
    }
}
