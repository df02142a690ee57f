//! Known peers: a connection that begins without a handshake, falls back to one, or agrees on the
//! secret of later ones (`docs/known-peers.md`).

mod refused;
mod renewal;
mod secrets;

use std::sync::Arc;

use weir_units::{Duration, Time};

use super::Connection;
use crate::crypto::KeyChange;
use crate::event::Event;
use crate::known_peers::{
    CredentialId, HandshakePermit, KeyId, KnownClient, KnownClients, KnownServer, KnownServers,
    KnownSession, PARAMETERS_ADDED, PARAMETERS_ALL, write_parameters_message,
};
use crate::packet::{Header, Kind, LongKind};
use crate::secret::ResetToken;
use crate::transport_parameters::TransportParameters;
use crate::{Side, Space, TransportError};
use renewal::Renewal;

/// A client that has nothing to send sends a PING after this time, so that the server learns of the
/// connection.
const PING_AFTER: Duration = Duration::from_millis(1);

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
    /// The peer's parameters as remembered, where the connection begins without a handshake.
    pub(crate) remembered: Option<TransportParameters>,
    /// Whether the peer remembers ours as they are now.
    pub(crate) is_remembered: bool,
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
    /// Whether its datagrams are so large that a server without the version answers them.
    asks_for_version: bool,
    /// Whether a Version Negotiation packet says that the server has no known peers.
    is_denied: bool,
    /// Whether it has sent stream data or datagrams; known when it is given up.
    has_sent_data: bool,
}

/// The state of known peers in a connection.
pub(super) struct KnownPeerState {
    role: KnownRole,
    stage: Stage,
    /// Of a client whose attempt was refused, until its handshake is over.
    permit: Option<HandshakePermit>,
    /// The server's parameters in a handshake instead of an abandoned attempt, until the handshake has
    /// authenticated them.
    held: Option<TransportParameters>,
    renewal: Renewal,
    /// Whether the peer remembers our parameters.
    is_remembered: bool,
    /// Whether a client has kept the secret of the handshake. The same offer may come again, in another
    /// packet; it must not begin the secret's key IDs again, which would use keys twice.
    has_kept: bool,
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
            held: None,
            renewal: Renewal::default(),
            is_remembered: setup.is_remembered,
            has_kept: false,
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

    /// Whether a datagram is to be so large that a server without the version answers it: a probe, or
    /// where the server has not been heard of lately.
    pub(super) fn asks_for_version(&self, is_probe: bool) -> bool {
        match &self.stage {
            Stage::Unconfirmed(attempt) => is_probe || attempt.asks_for_version,
            Stage::Undrawn(_) => is_probe,
            _ => false,
        }
    }

    /// Whether the connection has begun without a handshake.
    fn began_without_handshake(&self) -> bool {
        !matches!(
            self.stage,
            Stage::Handshake | Stage::Waiting(..) | Stage::Abandoned(_)
        )
    }

    /// Converts a time since 1970 to the connection's; earlier ones are [`Time::ZERO`].
    fn in_connection_time(&self, time: Time) -> Time {
        Time::ZERO + time.since(Time::ZERO + self.epoch)
    }

    /// Handles the end of the connection, whose state may stay for long: another one may begin its
    /// handshake.
    pub(super) fn on_end(&mut self) {
        self.permit = None;
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

    /// Begins without a handshake, with the peer's remembered parameters.
    pub(super) fn begin_known(
        &mut self,
        now: Time,
        key_id: Option<KeyId>,
        peer: TransportParameters,
    ) {
        match (&self.known.stage, key_id) {
            (Stage::Undrawn(server), _) => {
                let due = server
                    .renewal_due
                    .map(|at| self.known.in_connection_time(at));
                self.known.renewal.due = due.map(|due| due.max(now));
                self.apply_peer_parameters(now, peer);
            }
            (Stage::Answering(client), Some(key_id)) => {
                let client = client.clone();
                self.known.offered = Some(client.secret.id());
                let (keys, updates) = client.secret.keys(key_id, Side::Server);
                self.install_keys(KeyChange::OneRtt(keys, updates));
                self.apply_peer_parameters(now, peer);
                let token = self.endpoint_keys.reset_token(&self.local_ids.handshake);
                self.write_parameters(Some(token));
                self.on_confirmed(now);
            }
            _ => return,
        }
        self.handshake.complete = true;
        self.counters.handshake = Some(Duration::ZERO);
        self.events.push_back(Event::Connected);
    }

    /// Writes our parameters for the peer as far as it does not remember them, and a server's reset token.
    fn write_parameters(&mut self, reset_token: Option<ResetToken>) {
        let side = self.side;
        let (kind, mut own) = if self.known.is_remembered {
            (PARAMETERS_ADDED, TransportParameters::default())
        } else {
            (PARAMETERS_ALL, self.own_parameters().without_connection())
        };
        own.stateless_reset_token = reset_token;
        if kind == PARAMETERS_ADDED && reset_token.is_none() {
            return;
        }
        self.crypto[Space::Data as usize].write_with(|out| {
            write_parameters_message(out, kind, |out| own.encode(side, out, None));
        });
    }

    /// Handles the parameters of a known peer that we do not remember.
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
        if server.was_lost_at(now + self.known.epoch) {
            self.begin_with_lost_secret(now, server);
            return true;
        }
        let key_id = server.draw_key_id();
        let (keys, updates) = server.secret.keys(key_id, Side::Client);
        self.session.set_key_id(key_id);
        self.install_keys(KeyChange::OneRtt(keys, updates));
        self.write_parameters(None);
        self.known.stage = Stage::Unconfirmed(Attempt {
            asks_for_version: server.is_to_be_asked(now + self.known.epoch),
            server,
            key_id,
            first_sent: now,
            is_denied: false,
            has_sent_data: false,
        });
        true
    }

    /// Returns when a client that has nothing to send sends a PING, or when one whose secret was refused
    /// tries again to begin a handshake.
    pub(super) fn known_deadline(&self) -> Option<Time> {
        match self.known.stage {
            Stage::Undrawn(_) if !self.timers.ping_due => Some(self.counters.started + PING_AFTER),
            Stage::Waiting(_, until) => Some(until),
            _ => None,
        }
    }

    /// Handles an authentic packet on the path with this index, before its frames.
    pub(super) fn on_known_packet(&mut self, now: Time, header: &Header, path: usize) {
        match (&self.known.stage, header.kind) {
            (Stage::Unconfirmed(attempt), Kind::KnownAnswer) => {
                attempt.server.note_answer(now + self.known.epoch);
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
}
