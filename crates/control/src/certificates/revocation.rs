//! Revoked certificates (RFC 5280, section 5).

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rcgen::{
    CertificateRevocationListParams, KeyIdMethod, RevokedCertParams, SerialNumber, date_time_ymd,
};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, CertificateRevocationListDer};
use webpki::{BorrowedCertRevocationList, EndEntityCert};

use super::file::{PUBLIC, replace};
use super::{Authority, CertificatesError, file_error, since_1970, unusable};

/// Until when a list says that the next one will be there: each holds until another replaces it.
const NEXT_UPDATE: Duration = Duration::from_secs(10 * 365 * 24 * 3600);

/// What a revocation has changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Revocation {
    /// The list.
    pub file: PathBuf,
    /// The certificates that it has beside those of before.
    pub added: usize,
}

/// A revoked certificate.
struct Revoked {
    serial: Vec<u8>,
    /// Since 1970.
    at: Duration,
}

impl Authority {
    /// Adds all certificates that were issued to a holder, also those that others have replaced, to the
    /// revocation list `crl.pem`. Certificates that are issued to it later are valid.
    ///
    /// # Errors
    /// [`CertificatesError`]: none was issued, or a file, with its name.
    pub fn revoke(&self, name: &str) -> Result<Revocation, CertificatesError> {
        let issued = self.issued(name)?;
        if issued.is_empty() {
            return Err(CertificatesError::NotIssued {
                name: name.to_owned(),
                directory: self.directory.clone(),
            });
        }
        let mut revoked = self.revoked()?;
        let before = revoked.len();
        let at = since_1970();
        for serial in issued {
            if revoked.iter().all(|other| other.serial != serial) {
                revoked.push(Revoked { serial, at });
            }
        }
        self.write_revocation_list(&revoked)?;
        Ok(Revocation {
            file: self.revocation_list(),
            added: revoked.len() - before,
        })
    }

    /// Writes a list without certificates if there is none, so that holders can be told of it before there
    /// is anything to revoke.
    pub(super) fn ensure_revocation_list(&self) -> Result<(), CertificatesError> {
        if self.revocation_list().exists() {
            Ok(())
        } else {
            self.write_revocation_list(&[])
        }
    }

    /// Keeps a certificate, so that it can be revoked when another has replaced it.
    pub(super) fn note_issued(
        &self,
        name: &str,
        certificate: &CertificateDer<'_>,
        pem: &str,
    ) -> Result<(), CertificatesError> {
        let directory = self.issued_directory();
        fs::create_dir_all(&directory).map_err(|source| file_error(&directory, source))?;
        let serial = serial(certificate).map_err(|error| malformed(Path::new(name), error))?;
        let serial = serial.iter().map(|byte| format!("{byte:02x}"));
        let file = format!("{name}.{}.pem", serial.collect::<String>());
        replace(&directory.join(file), pem, PUBLIC)
    }

    fn issued_directory(&self) -> PathBuf {
        self.directory.join("issued")
    }

    fn revocation_list(&self) -> PathBuf {
        self.directory.join("crl.pem")
    }

    /// Returns the serial numbers of all certificates of a holder.
    fn issued(&self, name: &str) -> Result<Vec<Vec<u8>>, CertificatesError> {
        let mut serials = Vec::new();
        let own = self.directory.join(format!("{name}.pem"));
        if own.exists() {
            serials.push(read_serial(&own)?);
        }
        let directory = self.issued_directory();
        let entries = match fs::read_dir(&directory) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(serials),
            Err(source) => return Err(file_error(&directory, source)),
        };
        for entry in entries {
            let entry = entry.map_err(|source| file_error(&directory, source))?;
            let is_its = is_of(name, &entry.file_name().to_string_lossy());
            if is_its {
                serials.push(read_serial(&entry.path())?);
            }
        }
        Ok(serials)
    }

    /// Returns the certificates that the list has.
    fn revoked(&self) -> Result<Vec<Revoked>, CertificatesError> {
        let path = self.revocation_list();
        let text = match fs::read(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(source) => return Err(file_error(&path, source)),
        };
        let list = CertificateRevocationListDer::from_pem_slice(&text);
        let list = list.map_err(|error| malformed(&path, error))?;
        let list = BorrowedCertRevocationList::from_der(&list);
        let list = list.map_err(|error| malformed(&path, error))?;
        let revoked = list.into_iter().map(|revoked| {
            let revoked = revoked.map_err(|error| malformed(&path, error))?;
            Ok(Revoked {
                serial: revoked.serial_number.to_vec(),
                at: Duration::from_secs(revoked.revocation_date.as_secs()),
            })
        });
        revoked.collect()
    }

    fn write_revocation_list(&self, revoked: &[Revoked]) -> Result<(), CertificatesError> {
        let now = since_1970();
        let revoked = revoked.iter().map(|revoked| RevokedCertParams {
            serial_number: SerialNumber::from_slice(&revoked.serial),
            revocation_time: date_time_ymd(1970, 1, 1) + revoked.at,
            reason_code: None,
            invalidity_date: None,
        });
        let parameters = CertificateRevocationListParams {
            this_update: date_time_ymd(1970, 1, 1) + now,
            next_update: date_time_ymd(1970, 1, 1) + now + NEXT_UPDATE,
            // It only has to increase.
            crl_number: SerialNumber::from_slice(&now.as_millis().to_be_bytes()[8..]),
            issuing_distribution_point: None,
            revoked_certs: revoked.collect(),
            key_identifier_method: KeyIdMethod::Sha256,
        };
        let path = self.revocation_list();
        let list = parameters.signed_by(&self.issuer);
        let pem = list.and_then(|list| list.pem());
        replace(
            &path,
            &pem.map_err(|source| unusable(&path, source))?,
            PUBLIC,
        )
    }
}

/// Whether a file of issued certificates has one of this holder: `NAME.SERIAL.pem`.
fn is_of(name: &str, file: &str) -> bool {
    let rest = file
        .strip_suffix(".pem")
        .and_then(|rest| rest.rsplit_once('.'));
    rest.is_some_and(|(holder, _)| holder == name)
}

fn read_serial(path: &Path) -> Result<Vec<u8>, CertificatesError> {
    let text = fs::read(path).map_err(|source| file_error(path, source))?;
    let certificate = CertificateDer::from_pem_slice(&text);
    let certificate = certificate.map_err(|error| malformed(path, error))?;
    serial(&certificate).map_err(|error| malformed(path, error))
}

fn serial(certificate: &CertificateDer<'_>) -> Result<Vec<u8>, webpki::Error> {
    Ok(EndEntityCert::try_from(certificate)?.serial().to_vec())
}

fn malformed(path: &Path, error: impl std::fmt::Display) -> CertificatesError {
    CertificatesError::Malformed {
        path: path.to_owned(),
        problem: error.to_string(),
    }
}
