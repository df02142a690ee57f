//! Certificates for a controller and all of its peers, from an authority of their own.
//!
//! One directory holds them all: `authority.pem` and `authority.key`, and for each holder `NAME.pem`
//! and `NAME.key`. A holder needs its own two files and `authority.pem`. The authority's key stays in
//! the directory, to issue further certificates.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::net::IpAddr;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rcgen::string::Ia5String;
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyPair, KeyUsagePurpose, PKCS_ECDSA_P256_SHA256, SanType,
};

use crate::role::Role;

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
}

/// The authority in a directory.
#[derive(Debug)]
pub struct Authority {
    directory: PathBuf,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    /// Opens the authority in a directory; creates its key and certificate if they do not exist.
    ///
    /// # Errors
    /// [`CertificatesError`], with the file's name.
    pub fn open(directory: impl Into<PathBuf>) -> Result<Self, CertificatesError> {
        let directory = directory.into();
        fs::create_dir_all(&directory).map_err(|source| file_error(&directory, source))?;
        let key_path = directory.join("authority.key");
        let key = match fs::read_to_string(&key_path) {
            Ok(text) => KeyPair::from_pem(&text).map_err(|source| unusable(&key_path, source))?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let key = new_key()?;
                let certificate = authority_parameters().self_signed(&key);
                let certificate = certificate.map_err(|source| unusable(&key_path, source))?;
                write(&key_path, &key.serialize_pem(), SECRET)?;
                write(&directory.join("authority.pem"), &certificate.pem(), PUBLIC)?;
                key
            }
            Err(source) => return Err(file_error(&key_path, source)),
        };
        Ok(Self {
            directory,
            issuer: Issuer::new(authority_parameters(), key),
        })
    }

    /// Issues a holder's key and certificate, `NAME.key` and `NAME.pem`, with these roles and
    /// addresses. Replaces existing files.
    ///
    /// # Errors
    /// [`CertificatesError`], with the file's name.
    pub fn issue(
        &self,
        name: &str,
        roles: &[Role],
        addresses: &[IpAddr],
    ) -> Result<(), CertificatesError> {
        let key = new_key()?;
        let mut parameters = CertificateParams::default();
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
        write(&path("key"), &key.serialize_pem(), SECRET)?;
        write(&path("pem"), &certificate.pem(), PUBLIC)
    }
}

const SECRET: u32 = 0o600;
const PUBLIC: u32 = 0o644;

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

/// Writes a file with this mode from its creation on, so that other users can never read a secret.
fn write(path: &Path, text: &str, mode: u32) -> Result<(), CertificatesError> {
    let failed = |source| file_error(path, source);
    let _ = fs::remove_file(path);
    let mut options = OpenOptions::new();
    let options = options.write(true).create_new(true).mode(mode);
    let mut file = options.open(path).map_err(failed)?;
    file.write_all(text.as_bytes()).map_err(failed)
}
