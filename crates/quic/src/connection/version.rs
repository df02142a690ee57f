//! The version of a connection, and how it changes (RFC 9368).

use weir_units::Time;

use super::Connection;
use crate::crypto::Keys;
use crate::error::ConnectionError;
use crate::negotiation::{self, NegotiationOutcome};
use crate::packet::{self, Header, Kind};
use crate::transport_parameters::TransportParameters;
use crate::{Code, ConnectionId, ConnectionIdLayout, Executed, Side, TransportError, Version};

impl Connection {
    /// Returns the QUIC version; it may change until the handshake is complete.
    pub fn version(&self) -> Version {
        self.version
    }

    pub(super) fn initial_keys(&self, version: Version) -> Keys {
        self.provider
            .initial_keys(version, self.initial_key_id(), self.side)
    }

    /// Switches a server to another version. Initial packets in the client's version keep arriving
    /// until the client knows (RFC 9369, section 4.1).
    pub(super) fn on_version_chosen(&mut self, version: Version) {
        let keys = self.initial_keys(version);
        self.version = version;
        self.keys.other_initial = self.keys.initial.replace(keys).map(|old| old.remote);
    }

    /// Prepares the Initial keys for the version of the server's first packet, if it is another one
    /// that the client accepts.
    pub(super) fn prepare_for_version(&mut self, header: &Header) {
        let Some(version) = header.version else {
            return;
        };
        let wanted = version != self.version
            && header.kind == Kind::Initial
            && !self.counters.authenticated
            && self.keys.other_initial.is_none()
            && self
                .validation
                .client
                .as_ref()
                .is_some_and(|client| client.versions.contains(version));
        if wanted {
            self.keys.other_initial = Some(self.initial_keys(version).remote);
        }
    }

    /// Handles an authentic packet in this version: a client adopts the server's version.
    pub(super) fn follow_version(&mut self, version: Version) {
        if self.side == Side::Client && version != self.version {
            self.keys.initial = Some(self.initial_keys(version));
            self.keys.other_initial = None;
            self.version = version;
            self.session.set_version(version);
        }
    }

    /// Checks that both sides would have chosen this version without an attacker.
    pub(super) fn check_version(&self, peer: &TransportParameters) -> Result<(), TransportError> {
        let Some(client) = &self.validation.client else {
            // A server checked it before it answered.
            return Ok(());
        };
        let course = NegotiationOutcome {
            versions: client.versions,
            begun: self.first_version,
            renegotiated: self.renegotiated,
        };
        negotiation::check_server(&course, self.version, peer.version_information.as_ref())
    }

    /// Handles a Version Negotiation packet. A client accepts it only before any other packet from
    /// the server (RFC 9000, section 6.2), and only if it does not list the client's own version.
    pub(super) fn on_version_negotiation(&mut self, now: Time, header: &Header, packet: &[u8]) {
        if self.validation.client.is_none() {
            return;
        }
        let premature = !self.counters.authenticated && self.validation.retry_source.is_none();
        // An echo of our connection IDs proves that this answers our packet.
        let echoed = self.local_ids.contains(&header.destination)
            && header.source == self.original_destination;
        let offered: Vec<_> = packet::supported_versions(packet, header).collect();
        if premature && echoed && self.on_known_version_negotiation(now, &offered) {
            return;
        }
        if !premature || !echoed || offered.contains(&self.version.as_u32()) {
            return;
        }
        let Some(client) = &self.validation.client else {
            return;
        };
        match client.versions.choose(&offered) {
            Some(version) if !self.renegotiated => self.restart_handshake(now, version),
            _ => {
                let ours = client.versions;
                // Nothing authenticates the packet: a server may have read what was sent without a
                // handshake, or as early data.
                let executed = if self.has_sent_data() {
                    Executed::Maybe
                } else {
                    Executed::No
                };
                let error = ConnectionError::NoCommonVersion {
                    ours,
                    offered,
                    executed,
                };
                self.abandon(now, error);
            }
        }
    }

    /// Restarts the handshake in another version (RFC 9368, section 2.1). Early data are bound to
    /// the version of their session and are lost.
    fn restart_handshake(&mut self, now: Time, version: Version) {
        self.version = version;
        self.first_version = version;
        self.renegotiated = true;
        let destination = ConnectionIdLayout::new(ConnectionId::MAX_LENGTH).generate(&mut self.rng);
        if self.keys.zero_rtt.is_some() {
            self.on_early_data(false);
        }
        self.forget_attempt(destination);
        self.start_session(now, version);
    }

    /// Starts another handshake of a client.
    pub(super) fn start_session(&mut self, now: Time, version: Version) {
        let grease = rand_core::Rng::next_u64(&mut self.rng);
        let parameters = self.own_parameters();
        let Some(client) = &self.validation.client else {
            return;
        };
        match client.start(version, parameters, false, grease) {
            Ok(session) => {
                self.session = session;
                self.drive_session(now);
            }
            Err(error) => {
                let error = TransportError::new(Code::INTERNAL_ERROR, error.to_string());
                self.abandon(now, ConnectionError::Transport(error));
            }
        }
    }
}
