//! Certificate revocation lists (RFC 5280, section 5).

use std::path::{Path, PathBuf};

use rustls::pki_types::CertificateRevocationListDer;
use rustls::pki_types::pem::PemObject;

use super::TlsError;
use super::identity::read;

/// Lists of revoked certificates. Every certificate of a chain but the authority's own must be covered by
/// a list of its issuer, or it is refused; lists whose `nextUpdate` has passed are still used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Crls {
    lists: Vec<CertificateRevocationListDer<'static>>,
    files: Vec<PathBuf>,
}

impl Crls {
    /// Reads files with one or more lists in PEM, or one in DER each. Credentials read them again
    /// when they are reloaded.
    ///
    /// # Errors
    /// [`TlsError::Read`] or [`TlsError::NoCrl`] with the file's name.
    pub fn from_files<File: AsRef<Path>>(
        files: impl IntoIterator<Item = File>,
    ) -> Result<Self, TlsError> {
        let files: Vec<PathBuf> = files.into_iter().map(|file| file.as_ref().into()).collect();
        let mut lists = Vec::new();
        for file in &files {
            lists.append(&mut parse(&read(file)?, &file.display())?);
        }
        Ok(Self { lists, files })
    }

    /// Parses the lists in a PEM text.
    ///
    /// # Errors
    /// [`TlsError::NoCrl`].
    pub fn from_pem(text: &str) -> Result<Self, TlsError> {
        Ok(Self {
            lists: parse(text.as_bytes(), &"the given text")?,
            files: Vec::new(),
        })
    }

    pub(super) fn reread(&self) -> Result<Self, TlsError> {
        match self.files[..] {
            [] => Ok(self.clone()),
            _ => Self::from_files(&self.files),
        }
    }

    pub(super) fn lists(&self) -> &[CertificateRevocationListDer<'static>] {
        &self.lists
    }
}

/// Returns all lists in a PEM text, or the one of a DER file.
fn parse(
    bytes: &[u8],
    origin: &dyn std::fmt::Display,
) -> Result<Vec<CertificateRevocationListDer<'static>>, TlsError> {
    let missing = || TlsError::NoCrl {
        origin: origin.to_string(),
    };
    let found: Result<Vec<_>, _> = CertificateRevocationListDer::pem_slice_iter(bytes).collect();
    match found {
        Ok(found) if !found.is_empty() => Ok(found),
        // A SEQUENCE; what is in it is checked with the rest of the configuration.
        Ok(_) if bytes.first() == Some(&0x30) => Ok(vec![bytes.to_vec().into()]),
        _ => Err(missing()),
    }
}
