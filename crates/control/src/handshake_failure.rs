//! Why a TLS handshake has failed, in the words of the files that `weir sed certificates` makes.

use std::io;

use rustls::{AlertDescription, CertificateError, Error};

/// Says what an error of a TLS connection means for the certificates of both ends.
pub(crate) fn reason(error: &io::Error) -> String {
    let inner = error
        .get_ref()
        .and_then(|inner| inner.downcast_ref::<Error>());
    inner.map_or_else(|| error.to_string(), of_tls)
}

/// The same for an error of rustls.
pub(crate) fn of_tls(error: &Error) -> String {
    let reason = match error {
        Error::InvalidCertificate(error) => of_certificate(error),
        Error::NoCertificatesPresented => Some("it has shown no certificate"),
        Error::InvalidCertRevocationList(_) => {
            Some("the revocation list here is not one of the authority in authority.pem")
        }
        Error::AlertReceived(alert) => of_alert(*alert),
        _ => None,
    };
    reason.map_or_else(|| error.to_string(), ToOwned::to_owned)
}

/// Whether the other end has refused this end's certificate.
pub(crate) fn is_refusal(error: &io::Error) -> bool {
    let inner = error
        .get_ref()
        .and_then(|inner| inner.downcast_ref::<Error>());
    matches!(inner, Some(Error::AlertReceived(_)))
}

/// All authorities that are made here have one name. So a certificate of a foreign one has an issuer of
/// the right name, and a signature by the wrong key.
fn of_certificate(error: &CertificateError) -> Option<&'static str> {
    Some(match error {
        CertificateError::UnknownIssuer | CertificateError::BadSignature => {
            "foreign authority: the authority in authority.pem here has not signed its certificate"
        }
        CertificateError::Revoked => "its certificate is revoked",
        CertificateError::UnknownRevocationStatus => {
            "the revocation list here is not one of the authority that has signed its certificate"
        }
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
            "its certificate has expired"
        }
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            "its certificate is not valid yet: compare the clocks"
        }
        _ => return None,
    })
}

fn of_alert(alert: AlertDescription) -> Option<&'static str> {
    Some(match alert {
        AlertDescription::UnknownCA | AlertDescription::DecryptError => {
            "foreign authority: the authority in the other end's authority.pem has not signed the certificate of this \
             end"
        }
        AlertDescription::CertificateRevoked => {
            "the other end says that the certificate of this end is revoked"
        }
        AlertDescription::CertificateExpired => {
            "the other end says that the certificate of this end has expired, or is not valid yet"
        }
        AlertDescription::CertificateRequired => "the other end asks for a certificate",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_foreign_authority_is_called_so_at_both_ends() {
        for error in [
            Error::InvalidCertificate(CertificateError::BadSignature),
            Error::InvalidCertificate(CertificateError::UnknownIssuer),
            Error::AlertReceived(AlertDescription::DecryptError),
            Error::AlertReceived(AlertDescription::UnknownCA),
        ] {
            let error = io::Error::new(io::ErrorKind::InvalidData, error);
            let reason = reason(&error);
            assert!(reason.starts_with("foreign authority: "), "{reason}");
        }
    }

    #[test]
    fn other_errors_keep_their_words() {
        let error = io::Error::from(io::ErrorKind::UnexpectedEof);
        assert_eq!(reason(&error), error.to_string());
        assert!(!is_refusal(&error));
        let error = Error::InvalidCertificate(CertificateError::BadEncoding);
        assert_eq!(of_tls(&error), error.to_string());
    }
}
