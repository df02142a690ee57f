//! A client whose connection without a handshake is refused, or seems to be: it begins a handshake, and
//! sends again what it may (`docs/known-peers.md`, sections 5 and 6).

use std::sync::Arc;

use weir_units::{Duration, Time};

use super::{Attempt, KnownRole, Stage};
use crate::connection::Connection;
use crate::connection::close::LifeCycle;
use crate::connection::handshake::{HandshakeProgress, check_not_reduced};
use crate::connection::ids::RemoteIds;
use crate::connection::keys::KeySet;
use crate::error::ConnectionError;
use crate::event::Event;
use crate::known_peers::{
    Abandonment, HandshakePermit, KNOWN_PEERS_VERSION, KnownServer, KnownSession, Refusal,
};
use crate::packet::Header;
use crate::transport_parameters::TransportParameters;
use crate::{ConnectionId, ConnectionIdLayout, Executed, Side, Space};

/// A client that gets no answer begins a full handshake after this many probe timeouts.
const SILENT_TIMEOUTS: u32 = 5;

/// The longest time between two questions of an attempt for its handshake, at first and at last.
const SHORTEST_PAUSE: Duration = Duration::from_millis(8);
const LONGEST_PAUSE: Duration = Duration::from_millis(100);

impl Connection {
    /// Handles a Control packet: the server refuses the connection, or somebody says so.
    pub(in crate::connection) fn on_refusal(&mut self, now: Time, header: &Header, packet: &[u8]) {
        let Stage::Unconfirmed(attempt) = &self.known.stage else {
            return;
        };
        let echoed = self.local_ids.contains(&header.destination)
            && header.source == self.original_destination;
        let content = packet.get(header.number_offset..header.end);
        let refusal = content.and_then(Refusal::decode).filter(|_| echoed);
        if let Some(refusal) = refusal {
            let is_proved = attempt.server.is_proved(&refusal, attempt.key_id);
            self.fall_back(now, is_proved);
        }
    }

    /// Handles a Version Negotiation packet to a client without a handshake; `false` if this is no
    /// such client.
    pub(in crate::connection) fn on_known_version_negotiation(
        &mut self,
        now: Time,
        offered: &[u32],
    ) -> bool {
        let Stage::Unconfirmed(attempt) = &mut self.known.stage else {
            return false;
        };
        if !offered.contains(&KNOWN_PEERS_VERSION) {
            attempt.is_denied = true;
            self.fall_back(now, false);
        }
        true
    }

    /// Begins a full handshake where the server does not answer, unless it has answered such connections
    /// lately: then it is overloaded, and a handshake would only add to its load.
    pub(in crate::connection) fn fall_back_after_silence(&mut self, now: Time) {
        let Stage::Unconfirmed(attempt) = &self.known.stage else {
            return;
        };
        let is_silent = self.recovery.probe_timeouts() >= SILENT_TIMEOUTS;
        if is_silent && !attempt.server.has_answered(now + self.known.epoch) {
            self.fall_back(now, false);
        }
    }

    /// Begins a full handshake instead of an attempt that the server would refuse, as it has said in the
    /// handshake of another connection that it has lost the secret. Nothing was sent.
    pub(super) fn begin_with_lost_secret(&mut self, now: Time, server: Arc<KnownServer>) {
        self.known.stage = Stage::Unconfirmed(Attempt {
            key_id: server.draw_key_id(),
            server,
            first_sent: now,
            asks_for_version: false,
            is_denied: false,
            has_sent_data: false,
        });
        self.abandon_attempt(now);
    }

    /// Begins a full handshake instead of the attempt without one. What was sent waits until the
    /// server has decided whether it may be sent again.
    fn fall_back(&mut self, now: Time, is_proved: bool) {
        if let KnownRole::Client(servers) = &self.known.role {
            servers.note_refusal(is_proved);
        }
        let has_sent_data = self.has_sent_data();
        if let Stage::Unconfirmed(attempt) = &mut self.known.stage {
            attempt.has_sent_data = has_sent_data;
        }
        self.abandon_attempt(now);
    }

    fn abandon_attempt(&mut self, now: Time) {
        if !matches!(self.state, LifeCycle::Open) {
            return;
        }
        let stage = std::mem::replace(&mut self.known.stage, Stage::Handshake);
        let Stage::Unconfirmed(attempt) = stage else {
            self.known.stage = stage;
            return;
        };
        self.keys = KeySet::default();
        self.handshake = HandshakeProgress {
            remembered: Some(std::mem::take(&mut self.peer)),
            ..Default::default()
        };
        self.peer_known = false;
        let (recovery, paths, mut fates) = self.recovery_parts();
        recovery.on_attempt_abandoned(&mut paths[0], &mut fates);
        self.crypto[Space::Data as usize] = Default::default();
        self.timers.restart(now);
        self.begin_handshake_instead(now, attempt);
    }

    /// Begins a handshake instead of an attempt, or waits until fewer are under way.
    fn begin_handshake_instead(&mut self, now: Time, attempt: Attempt) {
        if self.try_newer_secret(now, &attempt) {
            return;
        }
        if let KnownRole::Client(servers) = &self.known.role {
            self.known.permit = HandshakePermit::take(&attempt.server, servers);
        }
        if self.known.permit.is_none() {
            let until = now + self.pause_before_handshake(now, &attempt);
            self.known.stage = Stage::Waiting(attempt, until);
            return;
        }
        let is_denied = attempt.is_denied;
        self.known.stage = Stage::Abandoned(attempt);
        let destination = ConnectionIdLayout::new(ConnectionId::MAX_LENGTH).generate(&mut self.rng);
        self.forget_attempt(destination);
        if is_denied {
            // It has not made the token, and there are servers that answer no packet with such a one.
            self.validation.token = Vec::new();
        }
        self.start_session(now, self.version);
    }

    /// Returns how long an attempt waits before it asks again for its handshake, or for the secret of
    /// another's: longer and longer, as thousands may wait.
    fn pause_before_handshake(&mut self, now: Time, attempt: &Attempt) -> Duration {
        let so_far = now.since(attempt.first_sent).as_nanos() / 2;
        let longest = so_far.clamp(SHORTEST_PAUSE.as_nanos(), LONGEST_PAUSE.as_nanos());
        let part = u64::from(rand_core::Rng::next_u32(&mut self.rng) % 1024 + 1);
        Duration::from_nanos(longest * part / 1024)
    }

    /// Begins again without a handshake, if another connection has a newer secret, and knows that the
    /// server has executed nothing of this attempt. Returns whether it has begun.
    fn try_newer_secret(&mut self, now: Time, attempt: &Attempt) -> bool {
        let (KnownRole::Client(servers), Some(client)) =
            (&self.known.role, &self.validation.client)
        else {
            return false;
        };
        let epoch = self.known.epoch;
        let is_safe =
            !attempt.has_sent_data || attempt.server.was_lost_at(attempt.first_sent + epoch);
        let newer = servers.newer(&client.server_name, self.paths[0].remote, &attempt.server);
        let Some(server) = newer.filter(|_| is_safe) else {
            return false;
        };
        let Ok(peer) = TransportParameters::decode(Side::Server, &server.peer_parameters) else {
            return false;
        };
        let remembered = self.handshake.remembered.as_ref();
        if remembered.is_some_and(|before| check_not_reduced(before, &peer).is_err()) {
            return false;
        }
        let destination = ConnectionIdLayout::new(ConnectionId::MAX_LENGTH).generate(&mut self.rng);
        self.original_destination = destination;
        self.remote_ids = RemoteIds::new(destination);
        self.session = Box::new(KnownSession::with_server(server.clone()));
        self.handshake = HandshakeProgress {
            complete: true,
            ..HandshakeProgress::default()
        };
        self.probes = [0; 3];
        let own = self.own_parameters().to_remembered(self.side);
        self.known.is_remembered = own == server.own_parameters;
        self.known.stage = Stage::Undrawn(server);
        self.apply_peer_parameters(now, peer);
        self.events.push_back(Event::Connected);
        true
    }

    /// Handles the timers of known peers: a client with nothing to send sends a PING, or one whose secret
    /// was refused tries again to begin a handshake.
    pub(in crate::connection) fn handle_known_timeout(&mut self, now: Time) {
        if self.known_deadline().is_none_or(|deadline| now < deadline) {
            return;
        }
        match std::mem::replace(&mut self.known.stage, Stage::Handshake) {
            Stage::Waiting(attempt, _) => self.begin_handshake_instead(now, attempt),
            stage => {
                self.known.stage = stage;
                self.timers.ping_due = true;
            }
        }
    }

    /// Holds the server's parameters back where they decide whether something is sent again: anybody can
    /// write them until the handshake has authenticated the server. Returns them otherwise.
    pub(in crate::connection) fn hold_parameters(
        &mut self,
        peer: TransportParameters,
    ) -> Option<TransportParameters> {
        if !matches!(self.known.stage, Stage::Abandoned(_)) {
            return Some(peer);
        }
        self.known.held = Some(peer);
        None
    }

    /// Returns the parameters that were held back, of a server that is authenticated now.
    pub(in crate::connection) fn take_held_parameters(&mut self) -> Option<TransportParameters> {
        self.known.held.take()
    }

    /// Whether the connection may have sent stream data or datagrams.
    pub(in crate::connection) fn has_sent_data(&self) -> bool {
        self.table.used || self.datagrams.stats.sent > 0
    }

    /// Forgets the secret of an abandoned attempt, unless there is another one.
    pub(super) fn forget_abandoned(&self) {
        if let (Stage::Abandoned(attempt), KnownRole::Client(servers), Some(client)) =
            (&self.known.stage, &self.known.role, &self.validation.client)
        {
            servers.forget(&client.server_name, self.paths[0].remote, &attempt.server);
        }
    }

    /// Checks, with the authentic parameters of the server, whether what an abandoned attempt has sent
    /// may be sent again. Otherwise the connection ends.
    pub(in crate::connection) fn check_abandoned(
        &mut self,
        now: Time,
        peer: &TransportParameters,
    ) -> Result<(), ConnectionError> {
        let Stage::Abandoned(attempt) = &self.known.stage else {
            return Ok(());
        };
        // No known peers here: further connections begin with a handshake, however this one ends.
        if peer.abandoned_answer.is_none() {
            self.forget_abandoned();
            self.forget_tokens();
        }
        if let Some((Abandonment::Unknown, memory)) = peer.abandoned_answer {
            let now = now + self.known.epoch;
            let since = now.as_nanos().saturating_sub(memory.as_nanos());
            attempt.server.note_lost(Time::from_nanos(since));
        }
        let remembered = self.handshake.remembered.take();
        let has_sent_data = attempt.has_sent_data;
        let is_safe = match peer.abandoned_answer {
            _ if !has_sent_data => true,
            Some((Abandonment::Fresh, _)) => true,
            // An older process at this address was gone, and every secret that was removed was removed,
            // before the first datagram left.
            Some((Abandonment::Unknown, _)) => attempt
                .server
                .was_lost_at(attempt.first_sent + self.known.epoch),
            Some((Abandonment::Used, _)) | None => false,
        };
        if !is_safe {
            let executed = Executed::Maybe;
            return Err(ConnectionError::KnownPeerRefused { executed });
        }
        let is_reduced = remembered.is_some_and(|before| check_not_reduced(&before, peer).is_err());
        if is_reduced && (has_sent_data || self.streams.open_streams() > 0) {
            let executed = Executed::No;
            return Err(ConnectionError::KnownPeerRefused { executed });
        }
        if is_reduced {
            self.streams.reject_early_data();
        }
        Ok(())
    }
}
