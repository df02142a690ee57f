//! Trusted certificate authorities.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;

use super::TlsError;
use super::identity::{certificates, read};

/// Certificates of authorities; a self-signed certificate is its own authority.
#[derive(Clone, Debug)]
pub struct Roots {
    store: Arc<RootCertStore>,
    certificates: Vec<CertificateDer<'static>>,
    file: Option<PathBuf>,
}

impl Roots {
    /// Reads a file with one or more certificates in PEM, or one in DER. Credentials read it again when
    /// they are reloaded.
    ///
    /// # Errors
    /// [`TlsError::Read`] or [`TlsError::NoCertificate`] with the file's name; [`TlsError::Rustls`]
    /// for a certificate that cannot be an authority's.
    pub fn from_file(path: impl AsRef<Path>) -> Result<Self, TlsError> {
        let path = path.as_ref();
        let roots = Self::from_certificates(&certificates(&read(path)?, &path.display())?)?;
        Ok(Self {
            file: Some(path.to_owned()),
            ..roots
        })
    }

    /// Parses certificates in a PEM text.
    ///
    /// # Errors
    /// As [`Roots::from_file`].
    pub fn from_pem(text: &str) -> Result<Self, TlsError> {
        Self::from_certificates(&certificates(text.as_bytes(), &"the given text")?)
    }

    /// Uses certificates in DER.
    ///
    /// # Errors
    /// [`TlsError::Rustls`] for a certificate that cannot be an authority's.
    pub fn from_certificates(certificates: &[CertificateDer<'static>]) -> Result<Self, TlsError> {
        let mut store = RootCertStore::empty();
        for certificate in certificates {
            store.add(certificate.clone())?;
        }
        Ok(Self {
            store: Arc::new(store),
            certificates: certificates.to_vec(),
            file: None,
        })
    }

    pub(super) fn reread(&self) -> Result<Self, TlsError> {
        match &self.file {
            Some(file) => Self::from_file(file),
            None => Ok(self.clone()),
        }
    }

    pub(super) fn store(&self) -> Arc<RootCertStore> {
        self.store.clone()
    }

    pub(super) fn certificates(&self) -> &[CertificateDer<'static>] {
        &self.certificates
    }
}

impl PartialEq for Roots {
    /// Compares the certificates.
    fn eq(&self, other: &Self) -> bool {
        self.certificates == other.certificates
    }
}
