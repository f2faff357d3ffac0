//! Encrypts data with a passphrase, above all the store key. Argon2id makes guessing expensive, and ChaCha20-Poly1305
//! detects a wrong guess.

use argon2::{Algorithm, Argon2, Params, Version};
use chacha20poly1305::aead::{Aead, KeyInit};
use chacha20poly1305::{ChaCha20Poly1305, Key, Nonce};
use serde::{Deserialize, Serialize};
use zeroize::{Zeroize, ZeroizeOnDrop, Zeroizing};

use super::{KeyError, StoreKey};
use crate::hex;

/// A passphrase that the user typed.
#[derive(Clone, Zeroize, ZeroizeOnDrop)]
pub struct Passphrase(String);

impl Passphrase {
    /// Removes final line breaks, which come from the terminal and not from the user.
    pub fn new(mut typed: String) -> Self {
        let meant = typed.trim_end_matches(['\n', '\r']).len();
        typed.truncate(meant);
        Self(typed)
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether it is so short that someone with the disk could try all passphrases of that length.
    pub fn is_short(&self) -> bool {
        self.0.chars().count() < 12
    }

    pub fn same_as(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

/// Encrypted data, with all parameters needed to try a passphrase.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sealed {
    memory_kib: u32,
    passes: u32,
    salt: String,
    nonce: String,
    content: String,
}

/// Memory for Argon2id. OWASP's first choice is 46 MiB; we can afford a little more, even on a phone.
const MEMORY_KIB: u32 = 64 * 1024;
const PASSES: u32 = 3;
/// The most memory we spend on a file that someone else may have written.
const MEMORY_LIMIT_KIB: u32 = 1024 * 1024;
const PASSES_LIMIT: u32 = 64;

impl Sealed {
    /// Encrypts `plain` with a new random salt and nonce.
    pub fn seal(plain: &[u8], passphrase: &Passphrase) -> Result<Self, KeyError> {
        let (mut salt, mut nonce) = ([0; 16], [0; 12]);
        getrandom::fill(&mut salt)
            .and_then(|()| getrandom::fill(&mut nonce))
            .map_err(|e| KeyError::NoRandomness(e.to_string()))?;
        let cipher = cipher(passphrase, &salt, MEMORY_KIB, PASSES).ok_or_else(broken)?;
        let sealed = cipher.encrypt(&Nonce::from(nonce), plain).map_err(|_| broken())?;
        Ok(Self {
            memory_kib: MEMORY_KIB,
            passes: PASSES,
            salt: hex::encode(&salt),
            nonce: hex::encode(&nonce),
            content: hex::encode(&sealed),
        })
    }

    /// Decrypts the content. A wrong passphrase returns [`KeyError::WrongPassphrase`].
    pub fn open(&self, passphrase: &Passphrase) -> Result<Zeroizing<Vec<u8>>, KeyError> {
        let salt = hex::decode(&self.salt).ok_or_else(broken)?;
        let nonce: [u8; 12] = hex::decode(&self.nonce).and_then(|n| n.try_into().ok()).ok_or_else(broken)?;
        let sealed = hex::decode(&self.content).ok_or_else(broken)?;
        let cipher = cipher(passphrase, &salt, self.memory_kib, self.passes).ok_or_else(broken)?;
        let opened = cipher.decrypt(&Nonce::from(nonce), sealed.as_slice());
        opened.map(Zeroizing::new).map_err(|_| KeyError::WrongPassphrase)
    }
}

fn broken() -> KeyError {
    KeyError::Unreadable("kai.key".into())
}

pub(super) fn wrap(key: &StoreKey, passphrase: &Passphrase) -> Result<Sealed, KeyError> {
    Sealed::seal(key.bytes(), passphrase)
}

pub(super) fn unwrap(wrapped: &Sealed, passphrase: &Passphrase) -> Result<StoreKey, KeyError> {
    let opened = wrapped.open(passphrase)?;
    Ok(StoreKey::from_bytes(opened.as_slice().try_into().map_err(|_| broken())?))
}

fn cipher(passphrase: &Passphrase, salt: &[u8], memory_kib: u32, passes: u32) -> Option<ChaCha20Poly1305> {
    if memory_kib > MEMORY_LIMIT_KIB || passes > PASSES_LIMIT {
        return None;
    }
    let params = Params::new(memory_kib, passes, 1, Some(32)).ok()?;
    let mut derived = Zeroizing::new([0; 32]);
    Argon2::new(Algorithm::Argon2id, Version::V0x13, params)
        .hash_password_into(passphrase.0.as_bytes(), salt, derived.as_mut_slice())
        .ok()?;
    Some(ChaCha20Poly1305::new(&Key::from(*derived)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_right_passphrase_opens() {
        let key = StoreKey::random().unwrap();
        let wrapped = wrap(&key, &Passphrase::new("open sésame\n".to_owned())).unwrap();
        assert!(unwrap(&wrapped, &Passphrase::new("open sésame".to_owned())).unwrap() == key);
        let wrong = unwrap(&wrapped, &Passphrase::new("open sesame".to_owned()));
        assert!(matches!(wrong, Err(KeyError::WrongPassphrase)));
    }

    #[test]
    fn a_key_file_cannot_make_us_spend_without_end() {
        let key = StoreKey::random().unwrap();
        let words = Passphrase::new("x".to_owned());
        let greedy = Sealed { memory_kib: u32::MAX, ..wrap(&key, &words).unwrap() };
        assert!(matches!(unwrap(&greedy, &words), Err(KeyError::Unreadable(_))));
    }
}
