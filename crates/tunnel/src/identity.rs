//! Who a client has proved to be.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use weir_net::Connection;
use weir_net::tls::{Fingerprint, SpiffeId};
use weir_policy::AccessRequest;

use crate::destination::{Destination, Host};

/// A client of the server: its address and what its certificate shows. Clones share it.
#[derive(Clone, Debug)]
pub(crate) struct ClientIdentity(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    address: SocketAddr,
    names: Vec<String>,
}

impl ClientIdentity {
    /// A client with this certificate, in DER, if it has one.
    pub(crate) fn new(address: SocketAddr, certificate: Option<&[u8]>) -> Self {
        let mut names = Vec::new();
        if let Some(certificate) = certificate {
            names.push(Fingerprint::of(certificate).to_string());
            // A certificate need not be an SVID.
            names.extend(SpiffeId::of_certificate(certificate).map(|id| id.to_string()));
        }
        Self(Arc::new(Inner { address, names }))
    }

    /// The client at the other end of a connection whose handshake is complete.
    pub(crate) fn of(connection: &Connection) -> Self {
        let identity = connection.peer_identity();
        let certificate = identity.peer_certificates.first();
        Self::new(connection.remote_address(), certificate.map(AsRef::as_ref))
    }

    /// Returns the client's address.
    pub(crate) fn address(&self) -> SocketAddr {
        self.0.address
    }

    /// Returns the best name for logs: the SPIFFE ID, else the certificate's SHA-256, else "anonymous".
    pub(crate) fn name(&self) -> &str {
        self.0.names.last().map_or("anonymous", String::as_str)
    }

    /// Returns what the policy decides about: a connection to a destination, at an address if that is known.
    pub(crate) fn request<'n>(
        &'n self,
        destination: &'n Destination,
        address: Option<IpAddr>,
    ) -> AccessRequest<'n> {
        let (host, known) = match destination.host() {
            Host::Name(name) => (Some(name.as_str()), None),
            Host::Address(address) => (None, Some(*address)),
        };
        AccessRequest {
            client: &self.0.names,
            from: self.0.address.ip().to_canonical(),
            host,
            to: address.or(known),
            to_port: destination.port(),
        }
    }
}
