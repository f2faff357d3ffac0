//! Certificates: ours, which is made once and kept, and what is read from another device's. Pure.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair, date_time_ymd};
use x509_parser::prelude::{FromDer, X509Certificate};
use zeroize::Zeroizing;

use super::identity::DeviceId;

/// How many years a certificate of ours is valid.
const YEARS: i32 = 10;

/// A certificate and its private key. Paired devices know us by them, so they must be kept.
#[derive(Clone)]
pub struct Credentials {
    certificate: Vec<u8>,
    key: Zeroizing<Vec<u8>>,
}

/// No certificate could be made, or what was kept is not one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadCredentials(pub String);

impl Credentials {
    /// Makes a certificate for the device with this id.
    pub fn make(id: &DeviceId, now: Timestamp) -> Result<Self, BadCredentials> {
        let failed = |error: rcgen::Error| BadCredentials(error.to_string());
        let mut params = CertificateParams::new(Vec::new()).map_err(failed)?;
        let mut name = DistinguishedName::new();
        name.push(DnType::CommonName, id.as_str());
        name.push(DnType::OrganizationName, "KDE");
        name.push(DnType::OrganizationalUnitName, "KDE Connect");
        params.distinguished_name = name;
        let year = i32::from(now.to_zoned(TimeZone::UTC).year());
        // From the year before, because the other device's clock may be slow.
        params.not_before = date_time_ymd(year - 1, 1, 1);
        params.not_after = date_time_ymd(year + YEARS, 1, 1);
        let key = KeyPair::generate().map_err(failed)?;
        let certificate = params.self_signed(&key).map_err(failed)?;
        Ok(Self { certificate: certificate.der().to_vec(), key: Zeroizing::new(key.serialize_der()) })
    }

    /// Takes what was kept: the certificate, and the private key as PKCS #8.
    pub fn from_der(certificate: Vec<u8>, key: Zeroizing<Vec<u8>>) -> Result<Self, BadCredentials> {
        let readable = Peer::read(&certificate).is_some();
        readable
            .then_some(Self { certificate, key })
            .ok_or_else(|| BadCredentials("the certificate cannot be read".to_owned()))
    }

    /// The certificate, to be kept.
    pub fn certificate(&self) -> &[u8] {
        &self.certificate
    }

    /// The private key, to be kept where nobody else can read it.
    pub fn key(&self) -> &[u8] {
        &self.key
    }
}

/// What a certificate says about its device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Peer {
    /// Its name, if it is a valid id.
    pub(super) id: Option<DeviceId>,
    /// Its public key with the algorithm, as bytes.
    pub(super) public_key: Vec<u8>,
}

impl Peer {
    /// `None` if the bytes are not one certificate.
    pub(super) fn read(der: &[u8]) -> Option<Self> {
        let (rest, certificate) = X509Certificate::from_der(der).ok()?;
        if !rest.is_empty() {
            return None;
        }
        let mut names = certificate.subject().iter_common_name();
        let only = names.next().filter(|_| names.next().is_none());
        let id = only.and_then(|name| name.as_str().ok()).and_then(DeviceId::parse);
        Some(Self { id, public_key: certificate.public_key().raw.to_vec() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_certificate_carries_the_id_and_can_be_kept() {
        let id = DeviceId::from_random([9; 16]);
        let made = Credentials::make(&id, Timestamp::UNIX_EPOCH).unwrap();
        let kept =
            Credentials::from_der(made.certificate().to_vec(), Zeroizing::new(made.key().to_vec())).unwrap();
        let peer = Peer::read(kept.certificate()).unwrap();
        assert_eq!(peer.id, Some(id.clone()));
        let other = Credentials::make(&id, Timestamp::UNIX_EPOCH).unwrap();
        assert_ne!(Peer::read(other.certificate()).unwrap().public_key, peer.public_key);
        for spoiled in [&b""[..], b"\x30", &made.certificate()[1..], &[made.certificate(), b"x"].concat()] {
            assert_eq!(Peer::read(spoiled), None);
            assert!(Credentials::from_der(spoiled.to_vec(), Zeroizing::new(vec![])).is_err());
        }
    }
}
