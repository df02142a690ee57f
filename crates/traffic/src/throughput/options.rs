//! A test as a client asks for it, and a server as it is set up.

use std::net::SocketAddr;
use std::sync::Arc;

use weir_net::dcudp::PreSharedKey;
use weir_net::tls::{Fingerprint, Identity};
use weir_net::{Policy, Registry};
use weir_units::Duration;

use super::parameters::Parameters;

/// A test as a client asks for it.
#[derive(Clone, Debug)]
pub struct ClientOptions {
    /// The server's name or address.
    pub host: String,
    /// The server's port.
    pub port: u16,
    /// The fingerprint of the server's certificate; needed where the transport shows one.
    pub pin: Option<Fingerprint>,
    /// DCUDP: the key that the server has too, where [`Parameters::keyed`] says that there is one.
    pub key: Option<Arc<PreSharedKey>>,
    /// DCQUIC: which congestion control connections get, by where they lead.
    pub policy: Option<Policy>,
    /// The test.
    pub parameters: Parameters,
    /// The time between two interval reports; zero for none but the last.
    pub interval: Duration,
    /// How long anything may take that the test's parameters do not bound: connecting, an answer,
    /// a pause in the data.
    pub timeout: Duration,
}

/// How a server is set up.
#[derive(Clone, Debug)]
pub struct ServerOptions {
    /// Where to listen; port 0 takes any free port.
    pub bind: SocketAddr,
    /// The certificate that transports show which have one.
    pub identity: Identity,
    /// How long anything may take that a test's parameters do not bound: a greeting, an answer, a
    /// pause in the data.
    pub timeout: Duration,
    /// The time between two intervals of a test's report; zero for none but the last.
    pub interval: Duration,
    /// Where DCQUIC's metrics are counted, over all tests.
    pub metrics: Option<Registry>,
    /// DCUDP: the key that clients must have too.
    pub key: Option<Arc<PreSharedKey>>,
    /// DCQUIC: which congestion control connections get, by where they lead; before what a client asks for.
    pub policy: Option<Policy>,
}
