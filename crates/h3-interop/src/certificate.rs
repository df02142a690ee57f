//! A server's certificate and key, as files that every program reads.

use std::path::{Path, PathBuf};

use rcgen::{CertificateParams, KeyPair};
use tempfile::TempDir;

use crate::SERVER_NAME;
use crate::program::Failed;

/// A certificate that signs itself, and its key, in a folder that is deleted with this value.
pub struct CertificateFiles {
    _folder: TempDir,
    certificate: PathBuf,
    key: PathBuf,
}

impl CertificateFiles {
    /// Makes a certificate for [`SERVER_NAME`].
    ///
    /// # Errors
    /// [`Failed`] where files cannot be written.
    pub fn new() -> Result<Self, Failed> {
        let key = KeyPair::generate().map_err(Failed::new)?;
        let params = CertificateParams::new([SERVER_NAME.to_owned()]).map_err(Failed::new)?;
        let certificate = params.self_signed(&key).map_err(Failed::new)?;
        let folder = TempDir::new().map_err(Failed::new)?;
        let write = |name: &str, text: String| {
            let path = folder.path().join(name);
            std::fs::write(&path, text).map_err(Failed::new)?;
            Ok(path)
        };
        Ok(Self {
            certificate: write("certificate.pem", certificate.pem())?,
            key: write("key.pem", key.serialize_pem())?,
            _folder: folder,
        })
    }

    /// Returns the file of the certificate.
    pub fn certificate(&self) -> &Path {
        &self.certificate
    }

    /// Returns the file of the key.
    pub fn key(&self) -> &Path {
        &self.key
    }
}
