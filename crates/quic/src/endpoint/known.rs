//! Known peers at an endpoint: connections without a handshake, and refusals
//! (`docs/known-peers.md`, sections 4 and 5).

use std::iter;
use std::net::SocketAddr;
use std::sync::Arc;

use weir_units::{Duration, Time};
use weir_wire::Ecn;

use super::clients::{ClientPlace, ClientRoom};
use super::{Endpoint, Route, Slot};
use crate::Side;
use crate::config::{ClientConfig, ServerConfig};
use crate::connection::{
    Accepted, Connection, KnownRole, KnownSetup, KnownStart, ServerSetup, Setup, known_session,
};
use crate::known_peers::{
    CredentialId, KeyId, KnownClient, KnownClients, Refusal, RefusalKind, Verdict, refusal_token,
};
use crate::observe::Subject;
use crate::packet::{Header, Kind};
use crate::rate_limit::RateLimit;
use crate::recovery::Precision;
use crate::transport_parameters::TransportParameters;

/// A server with 10,000 clients that restarts can notify them all at once.
const BURST: u64 = 10_000;
const INTERVAL: Duration = Duration::from_micros(100);

/// The limit of refusals.
pub(super) struct Refusals(RateLimit);

impl Refusals {
    pub(super) fn new() -> Self {
        Self(RateLimit::new(BURST, INTERVAL))
    }
}

/// What becomes of a known peer's connection.
enum Answer {
    /// It begins, and takes this place among those of its address.
    Begin(Option<ClientPlace>),
    /// It is refused, and the client learns that nothing was executed.
    Refuse,
}

/// A First packet that may begin a connection.
pub(super) struct FirstPacket<'a> {
    pub(super) now: Time,
    pub(super) remote: SocketAddr,
    pub(super) local: Option<SocketAddr>,
    pub(super) ecn: Ecn,
    pub(super) header: Header,
    pub(super) datagram: &'a mut [u8],
}

impl Endpoint {
    /// Returns how a client begins a connection to this server.
    pub(super) fn known_start(
        &mut self,
        now: Time,
        client: &ClientConfig,
        (remote, server_name): (SocketAddr, &Arc<str>),
        accepted: Accepted,
        precision: &Precision,
    ) -> KnownSetup {
        let epoch = self.config.epoch;
        let Some(servers) = &client.known_servers else {
            return KnownSetup {
                epoch,
                ..KnownSetup::default()
            };
        };
        let role = KnownRole::Client(servers.clone());
        let known = servers
            .find(now + epoch, server_name, remote)
            .and_then(|server| {
                let peer = &server.peer_parameters;
                let remembered = self.servers_parameters.decode(Side::Server, peer)?.clone();
                Some((server, remembered))
            });
        let Some((server, remembered)) = known else {
            return KnownSetup {
                role,
                epoch,
                ..KnownSetup::default()
            };
        };
        let own = &mut self.own_parameters[Side::Client as usize];
        let config = &client.transport;
        KnownSetup {
            role,
            is_remembered: own.are(
                &server.own_parameters,
                Side::Client,
                config,
                accepted,
                precision,
                true,
            ),
            start: KnownStart::Server(server),
            remembered: Some(remembered),
            epoch,
        }
    }

    /// Returns the part of a server in known peers, for a connection that begins in this way.
    pub(super) fn known_setup(&self, server: &ServerConfig, start: KnownStart) -> KnownSetup {
        let role = server.known_clients.clone();
        KnownSetup {
            role: role.map_or(KnownRole::None, KnownRole::Server),
            start,
            epoch: self.config.epoch,
            ..KnownSetup::default()
        }
    }

    /// Routes a packet in the version of known peers; `None` if this endpoint does not have it.
    pub(super) fn route_known(
        &mut self,
        now: Time,
        remote: SocketAddr,
        local: Option<SocketAddr>,
        ecn: Ecn,
        datagram: &mut [u8],
    ) -> Option<Route> {
        let decoded = Header::decode(datagram, self.config.connection_ids.length());
        let header = decoded.ok();
        let credential = header.and_then(|header| Some((header.credential(datagram)?, header)));
        // Its connection goes on where no further ones are accepted.
        if let Some((key, _)) = &credential
            && let Some(handle) = self.known.get(key)
        {
            return Some(Route::Connection(*handle));
        }
        if let Some((key, _)) = &credential
            && self.undecided.keep_known(key, remote, ecn, datagram)
        {
            return Some(Route::Kept);
        }
        let server = self.server.clone()?;
        let clients = server.known_clients.clone()?;
        let Some(((credential, key_id), header)) = credential else {
            return Some(Route::Drop);
        };
        let bit_ok = header.fixed_bit || server.transport.grease_quic_bit;
        if remote.port() == 0 || header.kind != Kind::KnownFirst || !bit_ok {
            return Some(Route::Drop);
        }
        let client = clients.find(now + self.config.epoch, &credential);
        let packet = FirstPacket {
            now,
            remote,
            local,
            ecn,
            header,
            datagram,
        };
        let Some(client) = client.filter(|client| self.keeps_promises(client, &server)) else {
            return Some(self.refuse_unknown(&packet, &credential));
        };
        Some(self.accept_known(&server, &clients, client, key_id, packet))
    }

    /// Begins the connection of a known peer, lets it wait for a decision, or refuses it.
    fn accept_known(
        &mut self,
        server: &ServerConfig,
        clients: &KnownClients,
        client: Arc<KnownClient>,
        key_id: KeyId,
        packet: FirstPacket<'_>,
    ) -> Route {
        let verdict = client.judge(key_id);
        if verdict != Verdict::Fresh {
            clients.note_replay();
            return self.refuse_key(&packet, &client, key_id, verdict);
        }
        let has_room = !self.refuses_connection(server);
        let is_exhausted = self.client_room(server, packet.remote) == ClientRoom::Exhausted;
        if !has_room || is_exhausted {
            self.counters.client_limit_refusals += u64::from(has_room);
            return self.refuse_known(server, client, key_id, packet);
        }
        let place = self.client_place(server, packet.remote);
        if server.max_undecided == 0 {
            return self.begin_known(server, client, key_id, place, packet);
        }
        match self.hold_known(server, &client, key_id, place, &packet) {
            Some(held) => held,
            None => self.refuse_known(server, client, key_id, packet),
        }
    }

    /// Begins the connection of a known peer whose key ID is fresh, unless it was faster elsewhere.
    pub(super) fn begin_known(
        &mut self,
        server: &ServerConfig,
        client: Arc<KnownClient>,
        key_id: KeyId,
        place: Option<ClientPlace>,
        packet: FirstPacket<'_>,
    ) -> Route {
        self.answer_known(server, client, key_id, Answer::Begin(place), packet)
    }

    /// Refuses the connection of a known peer, which learns that nothing was executed.
    pub(super) fn refuse_known(
        &mut self,
        server: &ServerConfig,
        client: Arc<KnownClient>,
        key_id: KeyId,
        packet: FirstPacket<'_>,
    ) -> Route {
        self.answer_known(server, client, key_id, Answer::Refuse, packet)
    }

    fn answer_known(
        &mut self,
        server: &ServerConfig,
        client: Arc<KnownClient>,
        key_id: KeyId,
        answer: Answer,
        packet: FirstPacket<'_>,
    ) -> Route {
        let clients = self
            .server
            .as_ref()
            .and_then(|server| server.known_clients.clone());
        let now = packet.now + self.config.epoch;
        // A decision may have taken long, or may promise less.
        let clients = clients.filter(|clients| clients.has(now, &client));
        let Some(clients) = clients.filter(|_| self.keeps_promises(&client, server)) else {
            return self.refuse_unknown(&packet, &client.secret.id());
        };
        let is_refused = matches!(answer, Answer::Refuse);
        let (local_id, setup) =
            self.known_connection(server, &client, key_id, &packet, !is_refused);
        let Some(session) = known_session(&setup.known.start) else {
            return Route::Drop;
        };
        let mut connection = Box::new(Connection::new(packet.now, setup, Box::new(session)));
        let FirstPacket {
            now,
            remote,
            local,
            ecn,
            ..
        } = packet;
        connection.handle_datagram(now, remote, local, ecn, &mut *packet.datagram);
        if !connection.is_authenticated() {
            return Route::Drop;
        }
        // Another engine may have been faster.
        let verdict = clients.use_up(&client, key_id);
        if verdict != Verdict::Fresh {
            return self.refuse_key(&packet, &client, key_id, verdict);
        }
        let Answer::Begin(place) = answer else {
            self.counters.refusals += 1;
            return refusal(now, connection);
        };
        let known = (client.secret.id(), key_id);
        let handle = self.insert(Slot {
            known: Some(known),
            _place: place,
            ..Slot::default()
        });
        self.known.insert(known, handle);
        self.add_id(handle, local_id);
        Route::New(handle, connection)
    }

    /// Returns our connection ID and the settings of a known peer's connection.
    fn known_connection(
        &mut self,
        server: &ServerConfig,
        client: &Arc<KnownClient>,
        key_id: KeyId,
        packet: &FirstPacket<'_>,
        is_observed: bool,
    ) -> (crate::ConnectionId, Setup) {
        let FirstPacket {
            now, remote, local, ..
        } = *packet;
        let local_id = self.config.connection_ids.generate(&mut self.rng);
        let preferred = server.preferred.iter().map(Some);
        let addresses = iter::once(local).chain(preferred);
        let accepted = self.accepted(&server.transport, remote, addresses);
        let precision = self.precision(&server.transport);
        let reporter = (is_observed && self.observers.is_some()).then(|| {
            let subject = Subject {
                side: Side::Server,
                original_destination: packet.header.destination,
                local_id,
                local,
                remote,
            };
            let parameters =
                Connection::parameters(&server.transport, accepted, &precision, local_id, None);
            self.reporter(subject, parameters)
        });
        let own = &mut self.own_parameters[Side::Server as usize];
        let config = &server.transport;
        let known = KnownSetup {
            is_remembered: own.are(
                &client.own_parameters,
                Side::Server,
                config,
                accepted,
                &precision,
                server.known_clients.is_some(),
            ),
            remembered: self
                .clients_parameters
                .decode(Side::Client, &client.peer_parameters)
                .cloned(),
            ..self.known_setup(server, KnownStart::Client(client.clone(), key_id))
        };
        let setup = Setup {
            config: server.transport.clone(),
            seed: self.connection_seed(),
            remote,
            local,
            original_destination: packet.header.destination,
            id_layout: self.config.connection_ids,
            local_id,
            remote_id: packet.header.source,
            version: crate::Version::V1,
            accepted,
            interfaces: self.interfaces.clone(),
            precision,
            found_size: self.found_sizes.of(now, remote.ip()),
            keys: self.keys.clone(),
            provider: server.crypto.clone(),
            reporter: reporter.flatten(),
            client: None,
            server: Some(ServerSetup {
                validated: client.is_at(remote.ip()),
                issues_tokens: false,
                epoch: self.config.epoch,
                preferred_id: None,
            }),
            known,
        };
        (local_id, setup)
    }

    /// Whether this server promises at least what it promised the client: a client may send at once what
    /// it remembers (RFC 9000, section 7.4.1).
    fn keeps_promises(&mut self, client: &KnownClient, server: &ServerConfig) -> bool {
        let promised = &mut self.promised_parameters;
        let promised = promised.decode(Side::Server, &client.own_parameters);
        promised.is_some_and(|promised| holds(promised, server))
    }

    fn refuse_key(
        &mut self,
        packet: &FirstPacket<'_>,
        client: &KnownClient,
        key_id: KeyId,
        verdict: Verdict,
    ) -> Route {
        let kind = match verdict {
            Verdict::TooOld => RefusalKind::TooOld,
            Verdict::Used | Verdict::Fresh => RefusalKind::Used,
        };
        let tag = client.secret.refusal_tag(kind, key_id);
        self.refuse(packet, Refusal { kind, tag })
    }

    /// Refuses a client whose secret does not count here; it has a handshake then.
    fn refuse_unknown(&mut self, packet: &FirstPacket<'_>, credential: &CredentialId) -> Route {
        let tag = refusal_token(&self.keys.refusals, credential);
        let kind = RefusalKind::Unknown;
        self.refuse(packet, Refusal { kind, tag })
    }

    fn refuse(&mut self, packet: &FirstPacket<'_>, refusal: Refusal) -> Route {
        if !self.refusals.0.allow(packet.now) {
            return Route::Drop;
        }
        let destination = packet.header.source.as_bytes();
        let source = packet.header.destination.as_bytes();
        match refusal.answer(destination, source, packet.datagram.len()) {
            Some(reply) => {
                self.counters.known_peer_refusals += 1;
                Route::Reply(reply)
            }
            None => Route::Drop,
        }
    }
}

/// Refuses the connection of a known peer whose key ID is used up now; its state is not kept. If this
/// answer is lost, the client learns in a handshake that it is refused, but not that nothing was executed.
fn refusal(now: Time, mut connection: Box<Connection>) -> Route {
    connection.refuse(now);
    let mut reply = Vec::new();
    match connection.poll_transmit(now, &mut reply, 1) {
        Some(_) => Route::Reply(reply),
        None => Route::Drop,
    }
}

/// Whether a server promises at least this.
fn holds(promised: &TransportParameters, server: &ServerConfig) -> bool {
    let now = &server.transport;
    let stream_window = now.stream_window.bytes();
    let datagrams = now
        .datagrams
        .map_or(0, |datagrams| datagrams.max_frame_size.bytes());
    promised.initial_max_data <= now.connection_window.bytes()
        && promised.initial_max_stream_data_bidi_local <= stream_window
        && promised.initial_max_stream_data_bidi_remote <= stream_window
        && promised.initial_max_stream_data_uni <= stream_window
        && promised.initial_max_streams_bidi <= now.max_bidirectional_streams
        && promised.initial_max_streams_uni <= now.max_unidirectional_streams
        && promised.max_datagram_frame_size <= datagrams
        && (now.go_away || !promised.go_away)
}
