//! Cookies: stateless validation of a client's address by a server.
//!
//! A cookie is a keyed hash of the client's address, of its request, and of the time in steps of
//! the cookie lifetime. It is valid in the step in which it was made and in the next one.

use std::net::{IpAddr, SocketAddr};

use siphasher::sip::SipHasher24;
use weir_units::{Duration, Time};

use crate::packet::Handshake;

pub(crate) struct Cookies {
    key: SipHasher24,
    lifetime: Duration,
}

impl Cookies {
    pub(crate) const fn new(key: SipHasher24, lifetime: Duration) -> Self {
        Self { key, lifetime }
    }

    /// Returns the cookie for this request from `remote`.
    pub(crate) fn create(&self, now: Time, remote: SocketAddr, request: &Handshake) -> u64 {
        self.at_step(self.step(now), remote, request)
    }

    /// Returns whether the request carries a valid cookie.
    pub(crate) fn is_good(&self, now: Time, remote: SocketAddr, request: &Handshake) -> bool {
        let step = self.step(now);
        let steps = [Some(step), step.checked_sub(1)];
        let mut steps = steps.into_iter().flatten();
        steps.any(|step| self.at_step(step, remote, request) == request.cookie)
    }

    fn step(&self, now: Time) -> u64 {
        now.as_nanos() / self.lifetime.as_nanos().max(1)
    }

    fn at_step(&self, step: u64, remote: SocketAddr, request: &Handshake) -> u64 {
        let mut input = Vec::with_capacity(64);
        input.extend_from_slice(&step.to_be_bytes());
        match remote.ip() {
            IpAddr::V4(address) => input.extend_from_slice(&address.octets()),
            IpAddr::V6(address) => input.extend_from_slice(&address.octets()),
        }
        input.extend_from_slice(&remote.port().to_be_bytes());
        input.extend_from_slice(&request.socket.0.to_be_bytes());
        input.extend_from_slice(&request.initial_sequence.value().to_be_bytes());
        input.extend_from_slice(&request.random);
        // Zero means no cookie.
        self.key.hash(&input).max(1)
    }
}
