//! Which clients a server accepts by their certificates.

use std::sync::Arc;

use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::ClientCertVerifier;
use weir_quic::crypto::tls::provider;

use super::pin::PinnedClients;
use super::spiffe::SpiffeClients;
use super::{Crls, Fingerprint, Roots, SpiffeId, TlsError};
use crate::PeerIdentity;

/// The authorities of clients, and what else their certificates must fulfil.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct ClientAuth {
    pub(super) roots: Option<Roots>,
    pub(super) crls: Option<Crls>,
    pub(super) spiffe: Vec<SpiffeId>,
    /// Without authorities: exactly these certificates.
    pub(super) pinned: Vec<Fingerprint>,
    pub(super) is_optional: bool,
}

impl ClientAuth {
    /// Returns the verifier; `None` where clients need no certificate.
    pub(super) fn verifier(&self) -> Result<Option<Arc<dyn ClientCertVerifier>>, TlsError> {
        let Some(roots) = &self.roots else {
            self.check_unused()?;
            return Ok(self.pinned());
        };
        if !self.pinned.is_empty() {
            return Err(TlsError::ClientRootsAndFingerprints);
        }
        let lists = self.crls.as_ref().map_or(&[][..], Crls::lists);
        let builder = WebPkiClientVerifier::builder_with_provider(roots.store(), provider())
            .with_crls(lists.iter().cloned());
        let builder = if self.is_optional {
            builder.allow_unauthenticated()
        } else {
            builder
        };
        let chain = builder.build()?;
        Ok(Some(match self.spiffe[..] {
            [] => chain,
            _ => Arc::new(SpiffeClients {
                chain,
                expected: self.spiffe.clone(),
            }),
        }))
    }

    fn pinned(&self) -> Option<Arc<dyn ClientCertVerifier>> {
        if self.pinned.is_empty() {
            return None;
        }
        Some(Arc::new(PinnedClients::new(&self.pinned, &provider())))
    }

    fn check_unused(&self) -> Result<(), TlsError> {
        let settings = [
            ("client_crls", self.crls.is_some()),
            ("client_spiffe_ids", !self.spiffe.is_empty()),
            ("client_auth_optional", self.is_optional),
        ];
        match settings.into_iter().find(|(_, is_set)| *is_set) {
            Some((setting, _)) => Err(TlsError::WithoutClientRoots { setting }),
            None => Ok(()),
        }
    }

    pub(super) fn reread(&self) -> Result<Self, TlsError> {
        Ok(Self {
            roots: self.roots.as_ref().map(Roots::reread).transpose()?,
            crls: self.crls.as_ref().map(Crls::reread).transpose()?,
            ..self.clone()
        })
    }

    /// Returns a value that is the same on servers that accept the same clients.
    pub(super) fn digest(&self) -> Fingerprint {
        let mut bytes = vec![u8::from(self.is_optional)];
        let mut add = |part: &[u8]| {
            bytes.extend_from_slice(&(part.len() as u64).to_be_bytes());
            bytes.extend_from_slice(part);
        };
        let roots = self.roots.as_ref().map_or(&[][..], Roots::certificates);
        roots.iter().for_each(|certificate| add(certificate));
        add(b"revoked");
        let lists = self.crls.as_ref().map_or(&[][..], Crls::lists);
        lists.iter().for_each(|list| add(list));
        add(b"workloads");
        let ids = self.spiffe.iter().map(SpiffeId::to_string);
        ids.for_each(|id| add(id.as_bytes()));
        add(b"pinned");
        self.pinned.iter().for_each(|pin| add(&pin.bytes()));
        Fingerprint::of(&bytes)
    }
}

/// Whether a verifier accepts a client that was accepted before. Clients without a certificate had none
/// to show then either.
pub(super) fn still_accepts(verifier: &dyn ClientCertVerifier, client: &PeerIdentity) -> bool {
    let chain = client.peer_certificates.iter();
    let chain: Vec<_> = chain.map(|der| CertificateDer::from(&der[..])).collect();
    let Some((end_entity, intermediates)) = chain.split_first() else {
        return !verifier.client_auth_mandatory();
    };
    let now = UnixTime::now();
    verifier
        .verify_client_cert(end_entity, intermediates, now)
        .is_ok()
}
