//! The choice among a server's identities by the name that the client asks for (SNI, RFC 6066, section
//! 3).

use std::sync::Arc;

use rustls::client::verify_server_name;
use rustls::pki_types::ServerName;
use rustls::server::{ClientHello, ParsedCertificate, ResolvesServerCert};
use rustls::sign::CertifiedKey;

use super::{Identity, TlsError};

/// Chooses the first identity whose certificate has the name, or else the first of all.
#[derive(Debug)]
pub(super) struct IdentityResolver(Vec<Arc<CertifiedKey>>);

impl IdentityResolver {
    pub(super) fn new(identities: &[Identity]) -> Result<Self, TlsError> {
        let keys = identities.iter().map(Identity::certified_key);
        Ok(Self(keys.collect::<Result<_, _>>()?))
    }
}

impl ResolvesServerCert for IdentityResolver {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let named = match (&self.0[..], hello.server_name()) {
            ([_, _, ..], Some(name)) => self.0.iter().find(|identity| has_name(identity, name)),
            _ => None,
        };
        named.or(self.0.first()).cloned()
    }
}

fn has_name(identity: &CertifiedKey, name: &str) -> bool {
    let certificate = identity.cert.first().map(ParsedCertificate::try_from);
    match (certificate, ServerName::try_from(name)) {
        (Some(Ok(certificate)), Ok(name)) => verify_server_name(&certificate, &name).is_ok(),
        _ => false,
    }
}
