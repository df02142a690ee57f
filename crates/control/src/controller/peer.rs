//! A peer, by its address and its certificate.

use std::net::IpAddr;
use std::sync::Arc;

use rustls::pki_types::CertificateDer;
use tonic::Request;
use weir_sed::FlowPattern;

use super::refusal::Refusal;
use crate::role::{Role, has_address};

/// A peer and its certificate, whose signatures TLS has verified.
#[derive(Clone, Debug)]
pub(crate) struct Peer {
    pub(crate) address: IpAddr,
    chain: Arc<[CertificateDer<'static>]>,
}

impl Peer {
    /// Creates a peer with its chain of certificates, of which the first one is its own; `None` if there is none.
    pub(super) fn new(address: IpAddr, chain: Arc<[CertificateDer<'static>]>) -> Option<Self> {
        (!chain.is_empty()).then_some(Self { address, chain })
    }

    /// Returns its own certificate.
    pub(crate) fn certificate(&self) -> &CertificateDer<'static> {
        &self.chain[0]
    }

    pub(crate) fn of<T>(request: &Request<T>) -> Result<Self, Refusal> {
        let peer = request.extensions().get::<Self>().cloned();
        peer.ok_or_else(|| Refusal::Role("anybody".to_owned()))
    }

    pub(super) fn require(&self, role: &Role) -> Result<(), Refusal> {
        if role.is_held(self.certificate()) {
            Ok(())
        } else {
            Err(Refusal::Role(role.to_string()))
        }
    }

    /// Returns the address that makes a flow the peer's own: the one it connects from, or one in its
    /// certificate. If neither end matches, it is the former, which the logic refuses.
    pub(super) fn client(&self, flows: &FlowPattern) -> IpAddr {
        let own = |address: &IpAddr| {
            *address == self.address || has_address(self.certificate(), *address)
        };
        let ends = [flows.source, flows.destination];
        ends.into_iter().find(own).unwrap_or(self.address)
    }
}
