//! The options of a client and of a server.

use std::net::SocketAddr;
use std::sync::Arc;

use weir_net::dcudp::PreSharedKey;
use weir_net::tls::{Fingerprint, Identity};
use weir_net::{PolicySource, Registry};
use weir_units::Duration;

use super::parameters::Parameters;

/// The options of a client.
#[derive(Clone, Debug)]
pub struct ClientOptions {
    /// The server's name or address.
    pub host: String,
    /// The server's port.
    pub port: u16,
    /// The fingerprint of the server's certificate; required if the transport has one.
    pub pin: Option<Fingerprint>,
    /// DCUDP: the key shared with the server, if [`Parameters::keyed`] is set.
    pub key: Option<Arc<PreSharedKey>>,
    /// DCQUIC: the policy that selects the congestion control of connections by destination.
    pub policy: Option<Arc<dyn PolicySource>>,
    /// The test.
    pub parameters: Parameters,
    /// The time between two interval reports; zero if only the last one is reported.
    pub interval: Duration,
    /// The time limit of everything that the test's parameters do not bound: connecting, an answer,
    /// a pause in the data.
    pub timeout: Duration,
}

/// The options of a server.
#[derive(Clone, Debug)]
pub struct ServerOptions {
    /// The listening address; port 0 selects any free port.
    pub bind: SocketAddr,
    /// The certificate of transports that have one.
    pub identity: Identity,
    /// The time limit of everything that a test's parameters do not bound: a greeting, an answer, a
    /// pause in the data.
    pub timeout: Duration,
    /// The time between two intervals of a test's report; zero if only the last one is reported.
    pub interval: Duration,
    /// The registry of DCQUIC's metrics, over all tests.
    pub metrics: Option<Registry>,
    /// DCUDP: the key that clients must have.
    pub key: Option<Arc<PreSharedKey>>,
    /// DCQUIC: the policy that selects the congestion control of connections by destination; it
    /// overrides the client's choice.
    pub policy: Option<Arc<dyn PolicySource>>,
}
