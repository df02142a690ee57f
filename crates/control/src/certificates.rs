//! Certificates for a controller and all of its peers, from an authority of their own.
//!
//! One directory holds them all: `authority.pem` and `authority.key`, and for each holder `NAME.pem`
//! and `NAME.key`. A holder needs its own two files and `authority.pem`. The authority's key stays in
//! the directory, to issue further certificates; the authority's own certificate does not expire.
//! `issued/NAME.SERIAL.pem` are all certificates that were issued, and `crl.pem` lists those of them that
//! have been revoked.
//!
//! Each file is replaced at once, with the owner of the one before, so that a holder that reads it again
//! finds the old or the new one.

mod file;
mod revocation;

use std::fs;
use std::io;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use rcgen::string::Ia5String;
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyPair, KeyUsagePurpose, PKCS_ECDSA_P256_SHA256, SanType, date_time_ymd,
};

use crate::role::Role;
use file::{PUBLIC, SECRET};
pub use revocation::Revocation;

/// Why certificates could not be made.
#[derive(Debug, thiserror::Error)]
pub enum CertificatesError {
    /// A file could not be read or written.
    #[error("{path}: {source}")]
    File {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// A key or a name is invalid.
    #[error("{what}: {source}")]
    Unusable {
        /// The key or the name.
        what: String,
        /// Why it is invalid.
        source: rcgen::Error,
    },
    /// A file has something else than what was written there.
    #[error("{path}: {problem}")]
    Malformed {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        problem: String,
    },
    /// There is nothing to revoke.
    #[error("no certificate of {name} was issued in {directory}")]
    NotIssued {
        /// The holder's name.
        name: String,
        /// The authority's directory.
        directory: PathBuf,
    },
}

/// The authority in a directory.
#[derive(Debug)]
pub struct Authority {
    directory: PathBuf,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    /// Opens the authority in a directory; creates its key, its certificate and an empty revocation list
    /// if they do not exist.
    ///
    /// # Errors
    /// [`CertificatesError`], with the file's name.
    pub fn open(directory: impl Into<PathBuf>) -> Result<Self, CertificatesError> {
        let directory = directory.into();
        fs::create_dir_all(&directory).map_err(|source| file_error(&directory, source))?;
        let authority = match Self::existing(&directory) {
            Err(CertificatesError::File { source, .. })
                if source.kind() == io::ErrorKind::NotFound =>
            {
                Self::create(directory)?
            }
            opened => opened?,
        };
        authority.ensure_revocation_list()?;
        Ok(authority)
    }

    /// Opens the authority in a directory.
    ///
    /// # Errors
    /// [`CertificatesError`], with the file's name.
    pub fn existing(directory: impl Into<PathBuf>) -> Result<Self, CertificatesError> {
        let directory = directory.into();
        let path = directory.join("authority.key");
        let text = fs::read_to_string(&path).map_err(|source| file_error(&path, source))?;
        let key = KeyPair::from_pem(&text).map_err(|source| unusable(&path, source))?;
        Ok(Self::new(directory, key))
    }

    fn create(directory: PathBuf) -> Result<Self, CertificatesError> {
        let key = new_key()?;
        let path = directory.join("authority.key");
        if directory.join("authority.pem").exists() {
            let problem =
                "it is not there, and authority.pem is: bring it back, or take a new directory";
            return Err(CertificatesError::Malformed {
                path,
                problem: problem.to_owned(),
            });
        }
        let certificate = authority_parameters().self_signed(&key);
        let certificate = certificate.map_err(|source| unusable(&path, source))?;
        file::replace(&path, &key.serialize_pem(), SECRET)?;
        file::replace(&directory.join("authority.pem"), &certificate.pem(), PUBLIC)?;
        Ok(Self::new(directory, key))
    }

    fn new(directory: PathBuf, key: KeyPair) -> Self {
        Self {
            directory,
            issuer: Issuer::new(authority_parameters(), key),
        }
    }

    /// Issues a holder's key and certificate, `NAME.key` and `NAME.pem`, with these roles and
    /// addresses, valid for this time from now on. Replaces existing files; a holder that reads them
    /// between the two finds that they do not belong together.
    ///
    /// # Errors
    /// [`CertificatesError`], with the file's name.
    pub fn issue(
        &self,
        name: &str,
        roles: &[Role],
        addresses: &[IpAddr],
        lifetime: Duration,
    ) -> Result<(), CertificatesError> {
        let key = new_key()?;
        let now = since_1970();
        let mut parameters = CertificateParams::default();
        parameters.not_before = date_time_ymd(1970, 1, 1) + now.saturating_sub(CLOCK_ERROR);
        parameters.not_after = date_time_ymd(1970, 1, 1) + now + lifetime;
        parameters.distinguished_name = named(name);
        for role in roles {
            let role = role.to_string();
            let host = Ia5String::try_from(role.clone());
            let host = host.map_err(|source| unusable(Path::new(&role), source))?;
            parameters.subject_alt_names.push(SanType::DnsName(host));
        }
        let addresses = addresses.iter().copied().map(SanType::IpAddress);
        parameters.subject_alt_names.extend(addresses);
        parameters.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        parameters.extended_key_usages = vec![
            ExtendedKeyUsagePurpose::ServerAuth,
            ExtendedKeyUsagePurpose::ClientAuth,
        ];
        let certificate = parameters.signed_by(&key, &self.issuer);
        let certificate = certificate.map_err(|source| unusable(Path::new(name), source))?;
        let path = |kind| self.directory.join(format!("{name}.{kind}"));
        self.note_issued(name, certificate.der(), &certificate.pem())?;
        file::replace(&path("key"), &key.serialize_pem(), SECRET)?;
        file::replace(&path("pem"), &certificate.pem(), PUBLIC)
    }
}

/// Certificates are valid from so long before they were issued on, as clocks differ.
const CLOCK_ERROR: Duration = Duration::from_secs(3600);

/// Returns the time since 1970.
fn since_1970() -> Duration {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    now.unwrap_or_default()
}

/// Constant: together with the key this is all that signing needs of the authority.
fn authority_parameters() -> CertificateParams {
    let mut parameters = CertificateParams::default();
    parameters.distinguished_name = named("Weir SED authority");
    parameters.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    parameters.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    parameters
}

fn named(name: &str) -> DistinguishedName {
    let mut distinguished = DistinguishedName::new();
    distinguished.push(DnType::CommonName, name);
    distinguished
}

fn new_key() -> Result<KeyPair, CertificatesError> {
    let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256);
    key.map_err(|source| unusable(Path::new("a new key"), source))
}

fn unusable(what: &Path, source: rcgen::Error) -> CertificatesError {
    let what = what.display().to_string();
    CertificatesError::Unusable { what, source }
}

fn file_error(path: &Path, source: io::Error) -> CertificatesError {
    let path = path.to_owned();
    CertificatesError::File { path, source }
}
