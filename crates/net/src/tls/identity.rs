//! A certificate chain and its private key.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;
use weir_quic::crypto::tls::provider;

use super::{Fingerprint, TlsError};

/// The identity of a server, or of a client with mutual TLS: a certificate chain and its key.
pub struct Identity {
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
    /// The files that they were read from.
    files: Option<(PathBuf, PathBuf)>,
}

impl Identity {
    /// Generates a P-256 key and a self-signed certificate for these DNS names and IP addresses:
    /// for development, with clients that pin its [`Identity::fingerprint`].
    ///
    /// # Errors
    /// [`TlsError::SelfSigned`] where a name is invalid.
    #[cfg(feature = "self-signed")]
    pub fn self_signed<Name: Into<String>>(
        names: impl IntoIterator<Item = Name>,
    ) -> Result<Self, TlsError> {
        use rcgen::{CertificateParams, KeyPair, PKCS_ECDSA_P256_SHA256};

        let names: Vec<String> = names.into_iter().map(Into::into).collect();
        let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256)?;
        let certificate = CertificateParams::new(names)?.self_signed(&key)?;
        Ok(Self {
            chain: vec![certificate.into()],
            key: PrivateKeyDer::Pkcs8(key.serialize_der().into()),
            files: None,
        })
    }

    /// Reads the chain, own certificate first, and the key from files, each in PEM or DER. Credentials
    /// read them again when they are reloaded.
    ///
    /// # Errors
    /// [`TlsError::Read`], [`TlsError::NoCertificate`] or [`TlsError::NoPrivateKey`], with the
    /// file's name.
    pub fn from_files(chain: impl AsRef<Path>, key: impl AsRef<Path>) -> Result<Self, TlsError> {
        let (chain, key) = (chain.as_ref(), key.as_ref());
        Ok(Self {
            chain: certificates(&read(chain)?, &chain.display())?,
            key: private_key(&read(key)?, &key.display())?,
            files: Some((chain.to_owned(), key.to_owned())),
        })
    }

    /// Parses a PEM text for the chain, own certificate first, and one for the key.
    ///
    /// # Errors
    /// [`TlsError::NoCertificate`] or [`TlsError::NoPrivateKey`].
    pub fn from_pem(chain: &str, key: &str) -> Result<Self, TlsError> {
        Ok(Self {
            chain: certificates(chain.as_bytes(), &"the given text")?,
            key: private_key(key.as_bytes(), &"the given text")?,
            files: None,
        })
    }

    /// Wraps rustls's types, own certificate first.
    pub fn from_der(chain: Vec<CertificateDer<'static>>, key: PrivateKeyDer<'static>) -> Self {
        Self {
            chain,
            key,
            files: None,
        }
    }

    /// Returns the own certificate's fingerprint, for clients to pin.
    pub fn fingerprint(&self) -> Fingerprint {
        Fingerprint::of(self.chain.first().map_or(&[], |own| own.as_ref()))
    }

    /// Returns the certificates in DER, own certificate first.
    pub fn chain(&self) -> &[CertificateDer<'static>] {
        &self.chain
    }

    /// Returns the private key in DER.
    pub fn private_key(&self) -> &PrivateKeyDer<'static> {
        &self.key
    }

    pub(super) fn reread(&self) -> Result<Self, TlsError> {
        match &self.files {
            Some((chain, key)) => Self::from_files(chain, key),
            None => Ok(self.clone()),
        }
    }

    /// Returns the chain with its key, which must belong together.
    pub(super) fn certified_key(&self) -> Result<Arc<CertifiedKey>, TlsError> {
        let (chain, key) = self.clone().into_parts();
        Ok(Arc::new(CertifiedKey::from_der(chain, key, &provider())?))
    }

    pub(super) fn into_parts(self) -> (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>) {
        (self.chain, self.key)
    }
}

impl Clone for Identity {
    fn clone(&self) -> Self {
        Self {
            chain: self.chain.clone(),
            key: self.key.clone_key(),
            files: self.files.clone(),
        }
    }
}

impl PartialEq for Identity {
    /// Compares certificates and keys.
    fn eq(&self, other: &Self) -> bool {
        self.chain == other.chain && self.key == other.key
    }
}

impl fmt::Debug for Identity {
    /// Omits the key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Identity")
            .field("fingerprint", &self.fingerprint())
            .finish_non_exhaustive()
    }
}

pub(super) fn read(path: &Path) -> Result<Vec<u8>, TlsError> {
    std::fs::read(path).map_err(|source| TlsError::Read {
        path: path.to_owned(),
        source,
    })
}

/// Returns all certificates in a PEM text, or the one of a DER file.
pub(super) fn certificates(
    bytes: &[u8],
    origin: &dyn fmt::Display,
) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let missing = || TlsError::NoCertificate {
        origin: origin.to_string(),
    };
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(bytes).collect();
    match found {
        Ok(found) if !found.is_empty() => Ok(found),
        Ok(_) if is_der(bytes) => Ok(vec![bytes.to_vec().into()]),
        _ => Err(missing()),
    }
}

fn private_key(
    bytes: &[u8],
    origin: &dyn fmt::Display,
) -> Result<PrivateKeyDer<'static>, TlsError> {
    PrivateKeyDer::from_pem_slice(bytes)
        .ok()
        .or_else(|| PrivateKeyDer::try_from(bytes.to_vec()).ok())
        .ok_or_else(|| TlsError::NoPrivateKey {
            origin: origin.to_string(),
        })
}

/// Whether the bytes begin as every certificate in DER does: a SEQUENCE with a long length.
fn is_der(bytes: &[u8]) -> bool {
    bytes.starts_with(&[0x30, 0x81]) || bytes.starts_with(&[0x30, 0x82])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_in_pem_and_der_give_the_same_identity() {
        let made = Identity::self_signed(["localhost", "127.0.0.1"]).unwrap();
        let directory = std::env::temp_dir().join(format!("weir-identity-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        let (chain, key) = (directory.join("chain.der"), directory.join("key.der"));
        std::fs::write(&chain, &made.chain[0]).unwrap();
        std::fs::write(&key, made.key.secret_der()).unwrap();
        let read = Identity::from_files(&chain, &key).unwrap();
        assert_eq!(read.fingerprint(), made.fingerprint());
        let swapped = Identity::from_files(&key, &key);
        let absent = Identity::from_files(directory.join("absent"), &key).unwrap_err();
        std::fs::remove_dir_all(&directory).unwrap();
        assert!(absent.to_string().contains("absent"));
        // DER is not checked here; rustls rejects a key in place of a certificate later.
        assert!(swapped.is_ok());
    }

    #[test]
    fn a_missing_certificate_is_named() {
        let error = Identity::from_pem("nothing", "nothing").unwrap_err();
        assert!(
            error
                .to_string()
                .contains("no certificate found in the given text")
        );
    }
}
