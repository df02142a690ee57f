//! **No security at all**: a deterministic stand-in for TLS, for simulations and tests only.
//!
//! Never use it on a network. Anyone who reads the handshake can compute every key, the cipher is a
//! mixing function without cryptographic claims, and no peer is authenticated.
//!
//! It preserves everything that affects an engine: TLS 1.3's messages, levels, sizes and order of
//! events, keys that differ by level, direction and key phase, packets that fail to open after a
//! bit change, resumption and 0-RTT. In addition, the same seeds and the same calls produce the
//! same bytes, and it is fast. Application protocols are not negotiated.

mod cipher;
mod client;
mod keys;
mod messages;
mod mixing;
mod schedule;
mod server;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::{
    Answerer, ClientCrypto, ClientStart, Keys, Provider, ServerCrypto, Session, StartError,
};
use crate::{ConnectionId, Side, TransportError, Version};
use messages::Ticket;
use mixing::mix;

/// The longest DNS name (RFC 1035, section 2.3.4).
const MAX_NAME_LENGTH: usize = 253;

/// A fault that makes a handshake fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SeededFault {
    /// A server refuses every ClientHello, and a client every server certificate (a resumed session
    /// has none), with this TLS alert.
    Refuse {
        /// The alert (RFC 8446, section 6).
        alert: u8,
    },
    /// The Finished message is wrong; the peer must refuse it.
    WrongFinished,
}

/// The policy of a [`SeededServer`] for early data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SeededEarlyData {
    /// Tickets allow it, and it is accepted.
    #[default]
    Accept,
    /// Tickets allow it, and it is always rejected.
    Reject,
    /// Tickets do not allow it.
    Never,
}

/// A client without any security; see [the module](self).
///
/// It stores the newest ticket of every server, together with the server's transport parameters.
#[derive(Debug)]
pub struct SeededClient {
    seed: u64,
    hello_length: usize,
    fault: Option<SeededFault>,
    started: AtomicU64,
    remembered: Mutex<BTreeMap<String, Remembered>>,
}

/// A session that a client may resume.
#[derive(Clone, Debug)]
struct Remembered {
    ticket: Ticket,
    early_data: bool,
    version: Version,
    parameters: Vec<u8>,
}

impl SeededClient {
    /// Creates a client whose nonces are derived from `seed`.
    pub fn new(seed: u64) -> Self {
        Self {
            seed,
            hello_length: 280,
            fault: None,
            started: AtomicU64::new(0),
            remembered: Mutex::default(),
        }
    }

    /// Pads the ClientHello to this many bytes, 65,539 at most; the default is 280. A post-quantum
    /// one has about 1,500.
    pub fn with_hello_length(mut self, length: usize) -> Self {
        self.hello_length = length;
        self
    }

    /// Makes every handshake fail.
    pub fn with_fault(mut self, fault: SeededFault) -> Self {
        self.fault = Some(fault);
        self
    }

    /// Drops all tickets; the next handshakes are full ones.
    pub fn forget_tickets(&self) {
        self.tickets().clear();
    }

    fn tickets(&self) -> MutexGuard<'_, BTreeMap<String, Remembered>> {
        // The map is consistent after every operation, so a panic in another thread does not
        // matter.
        self.remembered
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

impl ClientCrypto for SeededClient {
    fn start(self: Arc<Self>, start: &ClientStart<'_>) -> Result<Box<dyn Session>, StartError> {
        let name = start.server_name;
        if name.is_empty() || name.len() > MAX_NAME_LENGTH {
            return Err(StartError::InvalidServerName(name.to_owned()));
        }
        check_parameters(start.parameters)?;
        let nonce = next_nonce(self.seed, Side::Client, &self.started);
        Ok(Box::new(client::SeededClientSession::new(
            self, nonce, start,
        )))
    }
}

/// A server without any security; see [the module](self).
///
/// Its tickets are stateless and valid for every server with the same seed, any number of times.
#[derive(Debug)]
pub struct SeededServer {
    seed: u64,
    certificate_length: usize,
    early_data: SeededEarlyData,
    fault: Option<SeededFault>,
    started: AtomicU64,
}

impl SeededServer {
    /// Creates a server whose nonces and tickets are derived from `seed`.
    pub fn new(seed: u64) -> Self {
        Self {
            seed,
            certificate_length: 1000,
            early_data: SeededEarlyData::default(),
            fault: None,
            started: AtomicU64::new(0),
        }
    }

    /// Sets the length of the Certificate message's body in bytes, up to 65,535; the default is
    /// 1,000, which makes the whole flight about 1.3 KB long. A longer one is cut to that length.
    pub fn with_certificate_length(mut self, length: usize) -> Self {
        self.certificate_length = length.min(usize::from(u16::MAX));
        self
    }

    /// Sets the policy for early data.
    pub fn with_early_data(mut self, early_data: SeededEarlyData) -> Self {
        self.early_data = early_data;
        self
    }

    /// Makes every handshake fail.
    pub fn with_fault(mut self, fault: SeededFault) -> Self {
        self.fault = Some(fault);
        self
    }
}

impl ServerCrypto for SeededServer {
    fn start(
        self: Arc<Self>,
        version: Version,
        answer: Answerer,
    ) -> Result<Box<dyn Session>, StartError> {
        let nonce = next_nonce(self.seed, Side::Server, &self.started);
        Ok(Box::new(server::SeededServerSession::new(
            self, version, nonce, answer,
        )))
    }
}

impl Provider for SeededClient {
    fn initial_keys(
        &self,
        version: Version,
        client_destination: &ConnectionId,
        side: Side,
    ) -> Keys {
        keys::initial(version, client_destination, side)
    }

    fn retry_tag(
        &self,
        version: Version,
        original_destination: &ConnectionId,
        packet: &[u8],
    ) -> [u8; 16] {
        keys::retry_tag(version, original_destination, packet)
    }
}

impl Provider for SeededServer {
    fn initial_keys(
        &self,
        version: Version,
        client_destination: &ConnectionId,
        side: Side,
    ) -> Keys {
        keys::initial(version, client_destination, side)
    }

    fn retry_tag(
        &self,
        version: Version,
        original_destination: &ConnectionId,
        packet: &[u8],
    ) -> [u8; 16] {
        keys::retry_tag(version, original_destination, packet)
    }
}

/// Checks a server's parameters, which are known when it answers.
fn check_answer(parameters: &[u8]) -> Result<(), TransportError> {
    check_parameters(parameters)
        .map_err(|error| TransportError::new(crate::Code::INTERNAL_ERROR, error.to_string()))
}

/// Checks the length: a handshake message has a 16-bit length field, as a TLS extension does.
fn check_parameters(parameters: &[u8]) -> Result<(), StartError> {
    if parameters.len() > usize::from(u16::MAX) / 2 {
        return Err(StartError::Configuration(
            "the transport parameters are longer than 32,767 bytes".to_owned(),
        ));
    }
    Ok(())
}

/// Returns a nonce that no other handshake of this client or server has.
fn next_nonce(seed: u64, side: Side, started: &AtomicU64) -> u64 {
    let index = started.fetch_add(1, Ordering::Relaxed);
    mix(mix(seed ^ (side as u64) << 63) ^ index)
}
