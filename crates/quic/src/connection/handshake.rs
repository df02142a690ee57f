//! Drives the handshake: handshake bytes, keys, the peer's parameters (RFC 9000, section 7; RFC
//! 9001, section 4).

use weir_units::Time;

use super::{Connection, ids};
use crate::crypto::{KeyChange, SessionEvent};
use crate::event::{EndpointEvent, Event};
use crate::frame::NewConnectionId;
use crate::observe::Observation;
use crate::streams::PeerLimits;
use crate::transport_parameters::TransportParameters;
use crate::{Code, ConnectionId, Level, Space, TransportError};

/// The most handshake bytes in Initial packets. The sender is not authenticated yet, so this bounds
/// the memory of a half-open handshake; a ClientHello with post-quantum keys has 2 KB.
const MAX_INITIAL: u64 = 16 * 1024;

/// Connections with more packets than this get spare connection IDs.
pub(super) const FEW_PACKETS: u64 = 128;

/// The progress of the handshake.
#[derive(Debug, Default)]
pub(super) struct HandshakeProgress {
    /// The session is complete on our side.
    pub(super) complete: bool,
    /// The peer's side is complete too (RFC 9001, section 4.1.2).
    pub(super) confirmed: bool,
    /// The source ID of the peer's first Initial packet, to be checked against its parameters.
    pub(super) peer_source: Option<ConnectionId>,
    /// The server's limits from the resumed session, or of the known peer, to compare with its
    /// limits now.
    pub(super) remembered: Option<TransportParameters>,
}

impl Connection {
    /// Handles handshake bytes of a level.
    pub(super) fn on_crypto(
        &mut self,
        now: Time,
        level: Level,
        offset: u64,
        data: &[u8],
    ) -> Result<(), TransportError> {
        if level == Level::Initial && offset.saturating_add(data.len() as u64) > MAX_INITIAL {
            let reason = "more handshake data in Initial packets than any handshake has";
            return Err(TransportError::new(Code::CRYPTO_BUFFER_EXCEEDED, reason));
        }
        let session = &mut self.session;
        let read = self.crypto[level.space() as usize]
            .receive(offset, data, |data| session.read(level, data));
        // Keys that arrived before an error are needed to report it to the peer.
        let driven = self.try_drive_session(now);
        read.and(driven)
    }

    /// Advances the session; closes the connection on failure.
    pub(super) fn drive_session(&mut self, now: Time) {
        if let Err(error) = self.try_drive_session(now) {
            self.close_with(now, error);
        }
    }

    fn try_drive_session(&mut self, now: Time) -> Result<(), TransportError> {
        while let Some(event) = self.session.poll() {
            match event {
                SessionEvent::Send(level, data) => {
                    self.crypto[level.space() as usize].write(&data);
                }
                SessionEvent::Keys(change) => self.on_keys(change),
                SessionEvent::PeerParameters {
                    encoded,
                    remembered,
                } => {
                    self.on_peer_parameters(now, &encoded, remembered)?;
                }
                SessionEvent::KnownParameters { encoded, added } => {
                    self.on_known_parameters(now, &encoded, added)?;
                }
                SessionEvent::Version(version) => self.on_version_chosen(version),
                SessionEvent::EarlyData { accepted } => self.on_early_data(accepted),
                SessionEvent::Complete => self.on_complete(now)?,
            }
        }
        Ok(())
    }

    fn on_keys(&mut self, change: KeyChange) {
        let one_rtt = matches!(change, KeyChange::OneRtt(..));
        self.install_keys(change);
        if one_rtt && self.side.is_client() {
            // RFC 9001, section 4.9.3.
            self.keys.zero_rtt = None;
        }
    }

    fn on_peer_parameters(
        &mut self,
        now: Time,
        encoded: &[u8],
        remembered: bool,
    ) -> Result<(), TransportError> {
        let peer = TransportParameters::decode(self.side.other(), encoded)?;
        if remembered {
            self.streams.set_peer_limits(&stream_limits(&peer));
            self.handshake.remembered = Some(peer);
            return Ok(());
        }
        self.check_ids(&peer)?;
        self.check_version(&peer)?;
        match self.hold_parameters(peer) {
            Some(peer) => self.adopt_parameters(now, peer),
            None => Ok(()),
        }
    }

    /// Adopts the peer's parameters of a handshake, which were checked.
    fn adopt_parameters(
        &mut self,
        now: Time,
        peer: TransportParameters,
    ) -> Result<(), TransportError> {
        if let Some(token) = peer.stateless_reset_token {
            self.remote_ids.set_handshake_reset_token(token);
        }
        if let Some(remembered) = self.handshake.remembered.take() {
            check_not_reduced(&remembered, &peer)?;
        }
        if let Some(preferred) = &peer.preferred_address {
            self.remote_ids.on_new(NewConnectionId {
                sequence: 1,
                retire_prior_to: 0,
                id: preferred.connection_id,
                reset_token: preferred.reset_token,
            })?;
        }
        self.apply_peer_parameters(now, peer);
        Ok(())
    }

    /// Applies the peer's parameters, which were checked.
    pub(super) fn apply_peer_parameters(&mut self, now: Time, peer: TransportParameters) {
        self.streams.set_peer_limits(&stream_limits(&peer));
        self.recovery
            .set_peer_max_ack_delay(peer.longest_ack_delay(), peer.ack_delay_bound());
        self.received[Space::Data as usize].sender_asks = peer.is_weir();
        self.note_ack_frequency_support(&peer);
        self.timers.set_peer_idle_timeout(peer.max_idle_timeout);
        for path in &mut self.paths {
            path.set_receive_buffer(peer.receive_burst);
        }
        let by = self.side.other();
        let parameters = &peer;
        self.report(now, &Observation::ParametersSet { by, parameters });
        self.peer = peer;
        self.peer_known = true;
        self.announce_go_away();
        self.begin_mtu_discovery(now);
    }

    /// Checks the connection IDs that the parameters authenticate (RFC 9000, 7.3).
    fn check_ids(&self, peer: &TransportParameters) -> Result<(), TransportError> {
        let mismatch = |reason| Err(TransportError::new(Code::TRANSPORT_PARAMETER_ERROR, reason));
        if peer.initial_source_connection_id != self.handshake.peer_source {
            return mismatch("initial_source_connection_id does not match the packets");
        }
        if self.side.is_client() {
            if peer.original_destination_connection_id != Some(self.original_destination) {
                return mismatch("original_destination_connection_id does not match the packets");
            }
            if peer.retry_source_connection_id != self.validation.retry_source {
                return mismatch("retry_source_connection_id does not match the Retry packet");
            }
        }
        Ok(())
    }

    pub(super) fn on_early_data(&mut self, accepted: bool) {
        if accepted {
            return;
        }
        self.keys.zero_rtt = None;
        let (recovery, paths, mut fates) = self.recovery_parts();
        recovery.on_early_data_rejected(&mut paths[0], &mut fates);
        self.streams.reject_early_data();
        if self.peer_known {
            self.streams.set_peer_limits(&stream_limits(&self.peer));
        }
        self.handshake.remembered = None;
        self.events.push_back(Event::EarlyDataRejected);
    }

    fn on_complete(&mut self, now: Time) -> Result<(), TransportError> {
        if let Some(peer) = self.take_held_parameters() {
            if let Err(error) = self.check_abandoned(now, &peer) {
                self.abandon(now, error);
                return Ok(());
            }
            self.adopt_parameters(now, peer)?;
        }
        self.handshake.complete = true;
        self.counters.handshake = Some(now.since(self.counters.started));
        self.events.push_back(Event::Connected);
        self.on_handshake_over(now);
        if !self.side.is_client() {
            self.control.handshake_done = true;
            self.issue_token(now);
            self.on_confirmed(now);
        }
        // Other stacks do not answer on a client's new address without a new ID for it.
        self.spare_ids_wanted |= !self.peer.is_weir();
        if self.spare_ids_wanted {
            self.issue_ids();
        }
        Ok(())
    }

    /// Handles the confirmation of the handshake: handshake keys are no longer needed (RFC 9001,
    /// 4.9.2).
    pub(super) fn on_confirmed(&mut self, now: Time) {
        if self.handshake.confirmed {
            return;
        }
        self.handshake.confirmed = true;
        self.discard(Space::Handshake);
        if self.side.is_client() {
            self.keys.zero_rtt = None;
            self.on_handshake_confirmed();
            self.try_preferred_address(now);
            self.open_standby_paths(now);
        }
    }

    /// Discards the keys of a space (RFC 9001, section 4.9).
    pub(super) fn discard(&mut self, space: Space) {
        let had_keys = match space {
            Space::Initial => {
                self.keys.other_initial = None;
                self.keys.initial.take().is_some()
            }
            Space::Handshake => self.keys.handshake.take().is_some(),
            Space::Data => false,
        };
        if had_keys {
            self.recovery.discard(space, &mut self.paths[0]);
            self.crypto[space as usize] = Default::default();
            self.probes[space as usize] = 0;
            self.timers.handshake_waits = None;
        }
    }

    /// Issues spare connection IDs to a Weir peer once the handshake is complete. Many connections
    /// carry one call and never move: these need none. Called for a second stream, after
    /// [`FEW_PACKETS`], for a standby path of ours, and at any sign of one of the peer.
    pub(super) fn want_spare_ids(&mut self) {
        if !std::mem::replace(&mut self.spare_ids_wanted, true) && self.handshake.complete {
            self.issue_ids();
        }
    }

    /// Issues spare connection IDs, up to the peer's limit.
    pub(super) fn issue_ids(&mut self) {
        let Self {
            local_ids,
            endpoint_keys,
            rng,
            control,
            endpoint_events,
            peer,
            ..
        } = self;
        if local_ids.iter().all(|id| id.is_empty()) {
            return;
        }
        local_ids.issue(
            peer.active_connection_id_limit.min(ids::ACTIVE_ID_LIMIT),
            endpoint_keys,
            rng,
            |frame| {
                endpoint_events.push_back(EndpointEvent::IdIssued(frame.id));
                control.issue_id(frame);
            },
        );
    }
}

fn stream_limits(peer: &TransportParameters) -> PeerLimits {
    PeerLimits {
        max_data: peer.initial_max_data,
        stream_data_bidi_local: peer.initial_max_stream_data_bidi_local,
        stream_data_bidi_remote: peer.initial_max_stream_data_bidi_remote,
        stream_data_uni: peer.initial_max_stream_data_uni,
        max_streams_bidi: peer.initial_max_streams_bidi,
        max_streams_uni: peer.initial_max_streams_uni,
    }
}

/// A server that accepts early data must not reduce its remembered limits (RFC 9000, 7.4.1).
pub(super) fn check_not_reduced(
    remembered: &TransportParameters,
    now: &TransportParameters,
) -> Result<(), TransportError> {
    let values = |peer: &TransportParameters| {
        [
            peer.initial_max_data,
            peer.initial_max_stream_data_bidi_local,
            peer.initial_max_stream_data_bidi_remote,
            peer.initial_max_stream_data_uni,
            peer.initial_max_streams_bidi,
            peer.initial_max_streams_uni,
            peer.active_connection_id_limit,
            peer.max_datagram_frame_size,
        ]
    };
    if values(remembered)
        .iter()
        .zip(values(now))
        .any(|(before, now)| now < *before)
    {
        return Err(TransportError::new(
            Code::PROTOCOL_VIOLATION,
            "the server accepted early data and reduced the limits under which they were sent",
        ));
    }
    Ok(())
}
