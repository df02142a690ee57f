//! SPIFFE identities: X.509 certificates (SVIDs) that name a workload by the URI in them, not by a DNS name
//! (SPIFFE-ID and X509-SVID specifications).
//!
//! Certificate, key and bundle are files, as spiffe-helper writes them.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{WebPkiSupportedAlgorithms, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{
    CertificateError, DigitallySignedStruct, DistinguishedName, Error, OtherError, RootCertStore,
    SignatureScheme,
};
use webpki::{
    CertRevocationList, EndEntityCert, KeyUsage, OwnedCertRevocationList, RevocationOptionsBuilder,
};

use super::{Crls, TlsError};

/// The name of a workload, `spiffe://trust-domain/path`, or of a whole trust domain,
/// `spiffe://trust-domain`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SpiffeId {
    trust_domain: String,
    /// Empty, or with a slash in front.
    path: String,
}

/// Text or a certificate that names no workload.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SpiffeError {
    /// The text is no SPIFFE ID.
    #[error("`{0}` is no SPIFFE ID: spiffe://trust-domain/path is expected")]
    NoId(String),
    /// The certificate cannot be read.
    #[error("the certificate cannot be read")]
    Certificate,
    /// The certificate has no URI, or several.
    #[error("the certificate has {0} URIs: an SVID has exactly one")]
    Uris(usize),
    /// The certificate is of another workload.
    #[error("the certificate is of {0}, which is none of those expected")]
    Unexpected(SpiffeId),
}

impl SpiffeId {
    /// Returns the name in a peer's own certificate, in DER: the first of
    /// [`PeerIdentity::peer_certificates`](crate::PeerIdentity::peer_certificates).
    ///
    /// # Errors
    /// [`SpiffeError`] where it is no SVID.
    pub fn of_certificate(certificate: &[u8]) -> Result<Self, SpiffeError> {
        let certificate = CertificateDer::from(certificate);
        let certificate =
            EndEntityCert::try_from(&certificate).map_err(|_| SpiffeError::Certificate)?;
        let mut uris = certificate.valid_uri_names();
        match (uris.next(), uris.count()) {
            (Some(uri), 0) => uri.parse(),
            (None, _) => Err(SpiffeError::Uris(0)),
            (Some(_), more) => Err(SpiffeError::Uris(1 + more)),
        }
    }

    /// Returns the trust domain.
    pub fn trust_domain(&self) -> &str {
        &self.trust_domain
    }

    /// Returns the path, with a slash in front; empty for a whole trust domain.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Whether this names `other`, or the trust domain that it belongs to.
    pub fn covers(&self, other: &Self) -> bool {
        self.trust_domain == other.trust_domain && (self.path.is_empty() || self.path == other.path)
    }
}

impl FromStr for SpiffeId {
    type Err = SpiffeError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let wrong = || SpiffeError::NoId(text.to_owned());
        let rest = text.strip_prefix("spiffe://").ok_or_else(wrong)?;
        let (trust_domain, path) = match rest.find('/') {
            Some(slash) => rest.split_at(slash),
            None => (rest, ""),
        };
        let is_domain_byte =
            |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b".-_".contains(&byte);
        let is_path_byte = |byte: u8| byte.is_ascii_alphanumeric() || b".-_".contains(&byte);
        let segments_are_valid = path.split('/').skip(1).all(|segment| {
            !matches!(segment, "" | "." | "..") && segment.bytes().all(is_path_byte)
        });
        let is_valid = (1..=255).contains(&trust_domain.len())
            && trust_domain.bytes().all(is_domain_byte)
            && segments_are_valid
            && text.len() <= 2048;
        is_valid
            .then(|| Self {
                trust_domain: trust_domain.to_owned(),
                path: path.to_owned(),
            })
            .ok_or_else(wrong)
    }
}

impl fmt::Display for SpiffeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "spiffe://{}{}", self.trust_domain, self.path)
    }
}

/// Checks that a certificate is of one of the workloads.
fn check(expected: &[SpiffeId], certificate: &CertificateDer<'_>) -> Result<(), Error> {
    let refused =
        |error| Error::InvalidCertificate(CertificateError::Other(OtherError(Arc::new(error))));
    let id = SpiffeId::of_certificate(certificate).map_err(refused)?;
    // The name of a whole trust domain is that of no workload.
    let is_expected = !id.path.is_empty() && expected.iter().any(|other| other.covers(&id));
    is_expected
        .then_some(())
        .ok_or_else(|| refused(SpiffeError::Unexpected(id)))
}

/// Accepts servers with the certificate of one of the workloads, signed by the authorities of their
/// trust domain.
#[derive(Debug)]
pub(super) struct SpiffeServers {
    roots: Arc<RootCertStore>,
    lists: Vec<CertRevocationList<'static>>,
    expected: Vec<SpiffeId>,
    algorithms: WebPkiSupportedAlgorithms,
}

impl SpiffeServers {
    pub(super) fn new(
        roots: Arc<RootCertStore>,
        crls: Option<&Crls>,
        expected: Vec<SpiffeId>,
        algorithms: WebPkiSupportedAlgorithms,
    ) -> Result<Self, TlsError> {
        let lists = crls.map_or(&[][..], Crls::lists).iter();
        let lists: Result<Vec<_>, _> = lists
            .map(|list| OwnedCertRevocationList::from_der(list).map(CertRevocationList::from))
            .collect();
        Ok(Self {
            roots,
            lists: lists.map_err(|error| TlsError::Rustls(invalid(error)))?,
            expected,
            algorithms,
        })
    }
}

fn invalid(error: webpki::Error) -> Error {
    let reason = match error {
        webpki::Error::CertExpired { .. } => CertificateError::Expired,
        webpki::Error::CertNotValidYet { .. } => CertificateError::NotValidYet,
        webpki::Error::CertRevoked => CertificateError::Revoked,
        webpki::Error::UnknownRevocationStatus => CertificateError::UnknownRevocationStatus,
        webpki::Error::UnknownIssuer => CertificateError::UnknownIssuer,
        other => CertificateError::Other(OtherError(Arc::new(other))),
    };
    Error::InvalidCertificate(reason)
}

impl ServerCertVerifier for SpiffeServers {
    /// The name that the client asked for plays no role: the URI in the certificate does.
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let certificate = EndEntityCert::try_from(end_entity).map_err(invalid)?;
        let lists: Vec<_> = self.lists.iter().collect();
        // Without lists nothing is revoked.
        let revocation = RevocationOptionsBuilder::new(&lists).ok();
        certificate
            .verify_for_usage(
                self.algorithms.all,
                &self.roots.roots,
                intermediates,
                now,
                KeyUsage::server_auth(),
                revocation.map(|options| options.build()),
                None,
            )
            .map_err(invalid)?;
        check(&self.expected, end_entity)?;
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, certificate, signature, &self.algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, certificate, signature, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}

/// Accepts clients that another verifier accepts, and whose certificate is of one of the workloads.
#[derive(Debug)]
pub(super) struct SpiffeClients {
    pub(super) chain: Arc<dyn ClientCertVerifier>,
    pub(super) expected: Vec<SpiffeId>,
}

impl ClientCertVerifier for SpiffeClients {
    fn offer_client_auth(&self) -> bool {
        self.chain.offer_client_auth()
    }

    fn client_auth_mandatory(&self) -> bool {
        self.chain.client_auth_mandatory()
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        self.chain.root_hint_subjects()
    }

    fn verify_client_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        let verified = (self.chain).verify_client_cert(end_entity, intermediates, now)?;
        check(&self.expected, end_entity)?;
        Ok(verified)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        (self.chain).verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        (self.chain).verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.chain.supported_verify_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(text: &str) -> SpiffeId {
        text.parse().unwrap()
    }

    #[test]
    fn ids_are_read_strictly() {
        for valid in [
            "spiffe://example.org",
            "spiffe://example.org/service",
            "spiffe://a_b-c.1/ns/default/sa/Web_1",
        ] {
            assert_eq!(id(valid).to_string(), valid);
        }
        for wrong in [
            "",
            "https://example.org/service",
            "spiffe://",
            "spiffe:///service",
            "spiffe://Example.org/service",
            "spiffe://example.org:8080/service",
            "spiffe://user@example.org/service",
            "spiffe://example.org/",
            "spiffe://example.org//service",
            "spiffe://example.org/./service",
            "spiffe://example.org/../service",
            "spiffe://example.org/service?query",
            "spiffe://example.org/service%20",
        ] {
            let error = wrong.parse::<SpiffeId>().unwrap_err();
            assert_eq!(error, SpiffeError::NoId(wrong.to_owned()));
        }
    }

    #[test]
    fn a_trust_domain_covers_its_workloads_only() {
        let (domain, web) = (id("spiffe://example.org"), id("spiffe://example.org/web"));
        assert!(domain.covers(&web) && web.covers(&web));
        assert!(!web.covers(&domain));
        assert!(!web.covers(&id("spiffe://example.org/web/2")));
        assert!(!domain.covers(&id("spiffe://example.org.evil/web")));
    }

    #[test]
    fn only_certificates_with_one_uri_are_svids() {
        let with = |uris: &[&str]| {
            let mut params = rcgen::CertificateParams::default();
            let name = |uri: &&str| rcgen::SanType::URI((*uri).try_into().unwrap());
            params.subject_alt_names = uris.iter().map(name).collect();
            let key = rcgen::KeyPair::generate().unwrap();
            SpiffeId::of_certificate(params.self_signed(&key).unwrap().der())
        };
        assert_eq!(with(&["spiffe://a/b"]), Ok(id("spiffe://a/b")));
        assert_eq!(with(&[]), Err(SpiffeError::Uris(0)));
        assert_eq!(
            with(&["spiffe://a/b", "spiffe://a/c"]),
            Err(SpiffeError::Uris(2))
        );
        assert!(matches!(with(&["https://a/b"]), Err(SpiffeError::NoId(_))));
        assert_eq!(
            SpiffeId::of_certificate(b"x"),
            Err(SpiffeError::Certificate)
        );
    }
}
