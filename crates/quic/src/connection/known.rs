//! Known peers: a connection that begins without a handshake, falls back to one, or agrees on the
//! secret of later ones (`docs/known-peers.md`).

use std::sync::Arc;

use weir_units::{Duration, Time};

use super::Connection;
use super::control_frames::PathKey;
use super::handshake::check_not_reduced;
use super::receive::violation;
use super::renewal::Renewal;
use crate::crypto::{Identity, KeyChange};
use crate::error::ConnectionError;
use crate::event::Event;
use crate::frame;
use crate::known_peers::{
    Abandonment, CredentialId, EXPORTER_LABEL, HandshakePermit, KNOWN_PEERS_VERSION, KeyId,
    KnownClient, KnownClientRecord, KnownClients, KnownServer, KnownServers, KnownSession,
    PARAMETERS_ADDED, PARAMETERS_ALL, PathSecret, Refusal, parameters_message, refusal_token,
    renewal,
};
use crate::packet::{Header, Kind, LongKind};
use crate::transport_parameters::TransportParameters;
use crate::{ConnectionId, ConnectionIdLayout, Executed, Side, Space, TransportError};

/// A client that has nothing to send says hello to the server after this time.
const HELLO_AFTER: Duration = Duration::from_millis(1);
/// A client that gets no answer begins a full handshake after this many probe timeouts.
const SILENT_TIMEOUTS: u32 = 3;

/// The part of an endpoint in known peers.
#[derive(Clone, Default)]
pub(crate) enum KnownRole {
    /// Neither offers nor uses secrets.
    #[default]
    None,
    /// Uses those of this store.
    Client(Arc<KnownServers>),
    /// Offers those of this table.
    Server(Arc<KnownClients>),
}

/// How a connection begins.
#[derive(Default)]
pub(crate) enum KnownStart {
    /// With a handshake.
    #[default]
    Handshake,
    /// With the secret of this server.
    Server(Arc<KnownServer>),
    /// With the secret and the key ID of this client.
    Client(Arc<KnownClient>, KeyId),
}

/// The endpoint's settings for a new connection.
#[derive(Default)]
pub(crate) struct KnownSetup {
    pub(crate) role: KnownRole,
    pub(crate) start: KnownStart,
    /// The time since 1970 at [`Time::ZERO`].
    pub(crate) epoch: Duration,
}

/// The progress of a connection with a known peer.
enum Stage {
    /// It has, or had, a handshake.
    Handshake,
    /// A client that has sent nothing yet.
    Undrawn(Arc<KnownServer>),
    /// A client that waits for the server's first packet.
    Unconfirmed(Attempt),
    /// A server that has received no packet to its own connection ID.
    Answering(Arc<KnownClient>),
    /// Both sides know each other's connection IDs.
    Established,
    /// A client whose attempt was refused, until it may begin a handshake.
    Waiting(Attempt, Time),
    /// A client with a handshake instead of the abandoned attempt.
    Abandoned(Attempt),
}

/// A client's attempt without a handshake.
struct Attempt {
    server: Arc<KnownServer>,
    key_id: KeyId,
    /// When its first datagram was sent.
    first_sent: Time,
}

/// The state of known peers in a connection.
pub(super) struct KnownPeerState {
    role: KnownRole,
    stage: Stage,
    /// Of a client whose attempt was refused, until its handshake is over.
    permit: Option<HandshakePermit>,
    pub(super) renewal: Renewal,
    /// The secret that a server has offered on this connection.
    offered: Option<CredentialId>,
    epoch: Duration,
}

impl KnownPeerState {
    pub(super) fn new(setup: KnownSetup) -> Self {
        let stage = match setup.start {
            KnownStart::Handshake => Stage::Handshake,
            KnownStart::Server(server) => Stage::Undrawn(server),
            KnownStart::Client(client, _) => Stage::Answering(client),
        };
        Self {
            role: setup.role,
            stage,
            permit: None,
            renewal: Renewal::default(),
            offered: None,
            epoch: setup.epoch,
        }
    }

    /// Returns the type of the long header that 1-RTT packets have now.
    pub(super) fn long_header(&self) -> Option<LongKind<'static>> {
        match &self.stage {
            Stage::Unconfirmed(attempt) => Some(LongKind::KnownFirst {
                credential: attempt.server.secret.id(),
                key_id: attempt.key_id,
            }),
            Stage::Answering(_) => Some(LongKind::KnownAnswer),
            _ => None,
        }
    }

    /// Whether the server has not answered yet.
    pub(super) fn is_unconfirmed(&self) -> bool {
        matches!(self.stage, Stage::Undrawn(_) | Stage::Unconfirmed(_))
    }

    /// Whether the connection has begun without a handshake.
    fn began_without_handshake(&self) -> bool {
        !matches!(
            self.stage,
            Stage::Handshake | Stage::Waiting(..) | Stage::Abandoned(_)
        )
    }

    /// Returns the key that a client has abandoned.
    fn abandoned_key(&self) -> Option<(CredentialId, KeyId)> {
        match &self.stage {
            Stage::Abandoned(attempt) => Some((attempt.server.secret.id(), attempt.key_id)),
            _ => None,
        }
    }
}

/// The session of a connection that begins in this way; `None` if it has a handshake.
pub(crate) fn session(start: &KnownStart) -> Option<KnownSession> {
    match start {
        KnownStart::Handshake => None,
        KnownStart::Server(server) => Some(KnownSession::with_server(server.clone())),
        KnownStart::Client(client, key_id) => {
            Some(KnownSession::with_client(client.clone(), *key_id))
        }
    }
}

impl Connection {
    /// Returns our transport parameters in a new handshake.
    pub(super) fn own_parameters(&self) -> TransportParameters {
        let mut parameters = Self::parameters(
            &self.config,
            self.accepted,
            &self.recovery.precision,
            self.local_ids.handshake,
            None,
        );
        parameters.known_peers = !matches!(self.known.role, KnownRole::None);
        parameters.abandoned_key = self.known.abandoned_key();
        parameters
    }

    /// Whether the connection began without a handshake.
    pub fn is_known_peer(&self) -> bool {
        self.known.began_without_handshake()
    }

    /// Begins without a handshake.
    ///
    /// # Errors
    /// The remembered parameters are not valid, which this endpoint has checked before.
    pub(super) fn begin_known(
        &mut self,
        now: Time,
        key_id: Option<KeyId>,
    ) -> Result<(), TransportError> {
        match (&self.known.stage, key_id) {
            (Stage::Undrawn(server), _) => {
                let peer = TransportParameters::decode(Side::Server, &server.peer_parameters)?;
                let due = Time::ZERO + server.replaced_at.since(Time::ZERO + self.known.epoch);
                self.known.renewal.due = Some(due.max(now));
                self.apply_peer_parameters(now, peer);
            }
            (Stage::Answering(client), Some(key_id)) => {
                let client = client.clone();
                self.known.offered = Some(client.secret.id());
                let (keys, updates) = client.secret.keys(key_id, Side::Server);
                self.install_keys(KeyChange::OneRtt(keys, updates));
                let peer = TransportParameters::decode(Side::Client, &client.peer_parameters)?;
                self.apply_peer_parameters(now, peer);
                let mut own = self.own_parameters();
                own.stateless_reset_token =
                    Some(self.endpoint_keys.reset_token(&self.local_ids.handshake));
                self.write_parameters(&own, &client.own_parameters);
                self.on_confirmed(now);
            }
            _ => return Ok(()),
        }
        self.handshake.complete = true;
        self.counters.handshake = Some(Duration::ZERO);
        self.events.push_back(Event::Connected);
        Ok(())
    }

    /// Writes our parameters for the peer as far as it does not remember them.
    fn write_parameters(&mut self, own: &TransportParameters, remembered: &[u8]) {
        let mut encoded = Vec::with_capacity(128);
        let kind = if *own.to_remembered(self.side) == *remembered {
            own.of_connection().encode(self.side, &mut encoded, None);
            PARAMETERS_ADDED
        } else {
            let own = own.without_connection().with_connection(own);
            own.encode(self.side, &mut encoded, None);
            PARAMETERS_ALL
        };
        if !encoded.is_empty() {
            let message = parameters_message(kind, &encoded);
            self.crypto[Space::Data as usize].write(&message);
        }
    }

    /// Handles parameters of a known peer that it does not expect us to remember.
    pub(super) fn on_known_parameters(
        &mut self,
        now: Time,
        encoded: &[u8],
        added: bool,
    ) -> Result<(), TransportError> {
        let peer = TransportParameters::decode(self.side.other(), encoded)?;
        let peer = if added {
            self.peer.clone().with_connection(&peer)
        } else {
            peer
        };
        if let Some(token) = peer.stateless_reset_token {
            self.remote_ids.set_handshake_reset_token(token);
        }
        if added {
            self.peer = peer;
        } else {
            self.apply_peer_parameters(now, peer);
        }
        Ok(())
    }

    /// Draws the key ID of a client's first datagram. Returns `false` while there is nothing to send.
    pub(super) fn draw_key_id(&mut self, now: Time) -> bool {
        let Stage::Undrawn(server) = &self.known.stage else {
            return true;
        };
        let has_data = self.streams.wants_to_send()
            || self.datagrams.wants_to_send()
            || self.control.are_due(&self.remote_ids)
            || self.timers.ping_due;
        if !has_data {
            return false;
        }
        let server = server.clone();
        let key_id = server.draw_key_id();
        let (keys, updates) = server.secret.keys(key_id, Side::Client);
        self.session.set_key_id(key_id);
        self.install_keys(KeyChange::OneRtt(keys, updates));
        let own = self.own_parameters();
        self.write_parameters(&own, &server.own_parameters);
        self.known.stage = Stage::Unconfirmed(Attempt {
            server,
            key_id,
            first_sent: now,
        });
        true
    }

    /// Returns when a client that has nothing to send says hello, or tries again to begin a handshake.
    pub(super) fn known_deadline(&self) -> Option<Time> {
        match self.known.stage {
            Stage::Undrawn(_) if !self.timers.ping_due => Some(self.counters.started + HELLO_AFTER),
            Stage::Waiting(_, until) => Some(until),
            _ => None,
        }
    }

    /// Handles an authentic packet on the path with this index, before its frames.
    pub(super) fn on_known_packet(&mut self, now: Time, header: &Header, path: usize) {
        match (&self.known.stage, header.kind) {
            (Stage::Unconfirmed(_), Kind::KnownAnswer) => {
                self.known.stage = Stage::Established;
                self.handshake.peer_source = Some(header.source);
                self.remote_ids.set_handshake_id(header.source);
                self.on_confirmed(now);
            }
            (Stage::Answering(client), Kind::OneRtt) => {
                client.note_address(self.paths[path].remote.ip());
                self.paths[path].validated = true;
                self.known.stage = Stage::Established;
            }
            _ => {}
        }
    }

    /// Handles a Control packet: the server refuses the connection, or somebody says so.
    pub(super) fn on_refusal(&mut self, now: Time, header: &Header, packet: &[u8]) {
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
    pub(super) fn on_known_version_negotiation(&mut self, now: Time, offered: &[u32]) -> bool {
        if !matches!(self.known.stage, Stage::Unconfirmed(_)) {
            return false;
        }
        if !offered.contains(&KNOWN_PEERS_VERSION) {
            self.fall_back(now, false);
        }
        true
    }

    /// Begins a full handshake where the server does not answer.
    pub(super) fn fall_back_after_silence(&mut self, now: Time) {
        let is_silent = matches!(self.known.stage, Stage::Unconfirmed(_))
            && self.recovery.probe_timeouts() >= SILENT_TIMEOUTS;
        if is_silent {
            self.fall_back(now, false);
        }
    }

    /// Begins a full handshake instead of the attempt without one. What was sent waits until the
    /// server has decided whether it may be sent again.
    fn fall_back(&mut self, now: Time, is_proved: bool) {
        let stage = std::mem::replace(&mut self.known.stage, Stage::Handshake);
        let Stage::Unconfirmed(attempt) = stage else {
            self.known.stage = stage;
            return;
        };
        if let KnownRole::Client(servers) = &self.known.role {
            servers.note_refusal(is_proved);
        }
        self.keys = super::keys::KeySet::default();
        self.handshake = super::handshake::HandshakeProgress {
            remembered: Some(std::mem::take(&mut self.peer)),
            ..Default::default()
        };
        self.peer_known = false;
        let (recovery, paths, mut fates) = self.recovery_parts();
        recovery.on_attempt_abandoned(&mut paths[0], &mut fates);
        self.crypto[Space::Data as usize] = Default::default();
        self.timers.restart(now);
        self.begin_replacement(now, attempt);
    }

    /// Begins the handshake that replaces an attempt, or waits until fewer are under way.
    fn begin_replacement(&mut self, now: Time, attempt: Attempt) {
        if let KnownRole::Client(servers) = &self.known.role {
            self.known.permit = HandshakePermit::take(servers);
        }
        if self.known.permit.is_none() {
            let spread = rand_core::Rng::next_u32(&mut self.rng) % 8 + 1;
            let until = now + Duration::from_millis(spread.into());
            self.known.stage = Stage::Waiting(attempt, until);
            return;
        }
        self.known.stage = Stage::Abandoned(attempt);
        let destination = ConnectionIdLayout::new(ConnectionId::MAX_LENGTH).generate(&mut self.rng);
        self.forget_attempt(destination);
        self.start_session(now, self.version);
    }

    /// Handles the timers of known peers: a client says hello, or tries to begin a handshake again.
    pub(super) fn handle_known_timeout(&mut self, now: Time) {
        if self.known_deadline().is_none_or(|deadline| now < deadline) {
            return;
        }
        match std::mem::replace(&mut self.known.stage, Stage::Handshake) {
            Stage::Waiting(attempt, _) => self.begin_replacement(now, attempt),
            stage => {
                self.known.stage = stage;
                self.timers.ping_due = true;
            }
        }
    }

    /// Checks, with the server's parameters, whether what an abandoned attempt has sent may be sent
    /// again. Otherwise the connection ends.
    pub(super) fn check_abandoned(
        &mut self,
        now: Time,
        peer: &TransportParameters,
    ) -> Result<(), ConnectionError> {
        let Stage::Abandoned(attempt) = &self.known.stage else {
            return Ok(());
        };
        let remembered = self.handshake.remembered.take();
        let has_sent_data = self.table.used || self.datagrams.stats.sent > 0;
        let is_safe = match peer.abandoned_answer {
            _ if !has_sent_data => true,
            Some((Abandonment::Fresh, _)) => true,
            // An older process at this address was gone before the first datagram left.
            Some((Abandonment::Unknown, age)) => attempt.first_sent + age > now,
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

    /// Handles the end of a handshake: a server offers a secret, a client gives up the one that did
    /// not work.
    pub(super) fn on_handshake_over(&mut self, now: Time) {
        self.known.permit = None;
        if let (Stage::Abandoned(attempt), KnownRole::Client(servers), Some(client)) =
            (&self.known.stage, &self.known.role, &self.validation.client)
        {
            servers.forget(&client.server_name, self.paths[0].remote, &attempt.server);
        }
        if !matches!(self.known.role, KnownRole::Server(_)) {
            return;
        }
        let mut exported = [0; 32];
        if !self.peer.known_peers || !self.session.export(&mut exported, EXPORTER_LABEL, b"") {
            return;
        }
        let secret = PathSecret::from_exported(&exported);
        if let Some(offer) = self.offer(now, secret) {
            self.control.offer_secret(offer);
        }
    }

    /// Stores a secret of this connection's client; returns the offer to it.
    fn offer(&mut self, now: Time, secret: PathSecret) -> Option<frame::PathSecret> {
        let KnownRole::Server(clients) = &self.known.role else {
            return None;
        };
        let now = now + self.known.epoch;
        let id = secret.id();
        let record = KnownClientRecord {
            secret,
            identity: self.session.identity(),
            peer_parameters: self.peer.to_remembered(Side::Client),
            own_parameters: self.own_parameters().to_remembered(Side::Server),
            address: self.paths[0].remote.ip(),
        };
        let lifetime = clients.add(now, record)?;
        if let Some(old) = self.known.offered.replace(id) {
            clients.replace(now, &old);
        }
        Some(frame::PathSecret {
            lifetime: lifetime.as_nanos() / 1_000_000_000,
            refusal_token: refusal_token(&self.endpoint_keys.refusals, &id),
        })
    }

    /// Claims the renewal of the secret for this connection; otherwise returns when to try again.
    pub(super) fn claim_renewal(&self, now: Time) -> Option<Time> {
        let (KnownRole::Client(servers), Some(client)) =
            (&self.known.role, &self.validation.client)
        else {
            return None;
        };
        let epoch = self.known.epoch;
        let remote = self.paths[0].remote;
        let later = servers.claim_renewal(now + epoch, &client.server_name, remote)?;
        Some(Time::ZERO + later.since(Time::ZERO + epoch))
    }

    /// Handles a PATH_KEY frame: the client renews the secret.
    pub(super) fn on_path_key(&mut self, now: Time, key: &[u8; 32]) -> Result<(), TransportError> {
        if !matches!(self.known.role, KnownRole::Server(_)) || !self.peer.known_peers {
            return Err(violation("PATH_KEY without known peers"));
        }
        if let Some((public, secret)) = self.answer_key(now, key)?
            && let Some(offer) = self.offer(now, secret)
        {
            self.control.send_key(PathKey::Answer(public, offer));
        }
        Ok(())
    }

    /// Handles a PATH_KEY_ANSWER frame.
    pub(super) fn on_path_key_answer(
        &mut self,
        now: Time,
        key: &[u8; 32],
        offer: &frame::PathSecret,
    ) -> Result<(), TransportError> {
        if let Some(secret) = self.take_answered_key(key)? {
            self.keep_secret(now, secret, offer);
        }
        Ok(())
    }

    /// Handles a PATH_SECRET frame: the server remembers this client.
    pub(super) fn on_path_secret(
        &mut self,
        now: Time,
        offer: &frame::PathSecret,
    ) -> Result<(), TransportError> {
        if !matches!(self.known.role, KnownRole::Client(_)) {
            return Err(violation("PATH_SECRET to an endpoint without known peers"));
        }
        let mut exported = [0; 32];
        if self.known.began_without_handshake()
            || !self.session.export(&mut exported, EXPORTER_LABEL, b"")
        {
            return Err(violation("PATH_SECRET without a handshake"));
        }
        self.keep_secret(now, PathSecret::from_exported(&exported), offer);
        Ok(())
    }

    /// Keeps a secret for later connections to this server.
    fn keep_secret(&mut self, now: Time, secret: PathSecret, offer: &frame::PathSecret) {
        let (KnownRole::Client(servers), Some(client)) =
            (&self.known.role, &self.validation.client)
        else {
            return;
        };
        let interval = servers.renewal_interval();
        let random = rand_core::Rng::next_u32(&mut self.rng);
        let spread = renewal(now, interval, random);
        self.known.renewal.due = (!interval.is_zero()).then_some(spread);
        let now = now + self.known.epoch;
        let lifetime = Duration::from_secs(offer.lifetime.min(MAX_LIFETIME));
        let identity = Identity {
            resumed: true,
            ..self.session.identity()
        };
        let mut renewed_at = renewal(now, lifetime, random);
        if let Some(expires) = identity.expires {
            renewed_at = renewed_at.min(expires);
        }
        let parameters = (
            self.peer.to_remembered(Side::Server),
            self.own_parameters().to_remembered(Side::Client),
        );
        let server = KnownServer::new(
            secret,
            identity,
            parameters,
            offer.refusal_token,
            renewed_at,
        );
        let server = server.replaced_at(spread + self.known.epoch);
        servers.put(now, &client.server_name, self.paths[0].remote, server);
    }
}

/// A longer lifetime counts as this one: a year.
const MAX_LIFETIME: u64 = 366 * 24 * 3600;
