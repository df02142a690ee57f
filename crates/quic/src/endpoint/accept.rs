//! Handles a datagram that may start a connection: by dropping it, a stateless reply, or a
//! connection (RFC 9000, sections 6, 8.1 and 17.2.5).

use std::iter;
use std::net::SocketAddr;

use rand_core::Rng;
use weir_units::{Duration, Time};
use weir_wire::Ecn;

use super::clients::{ClientPlace, ClientRoom};
use super::{Endpoint, Route, SHORTEST_INITIAL_DESTINATION, Slot};
use crate::config::{RetryPolicy, ServerConfig};
use crate::connection::{Connection, KnownStart, ServerSetup, Setup};
use crate::crypto::Keys;
use crate::frame::{self, Close};
use crate::interfaces::SMALLEST_MAX_UDP_PAYLOAD;
use crate::negotiation;
use crate::observe::Subject;
use crate::packet::{self, Header, Invariants, Kind, LongFields, LongKind};
use crate::token::{Token, TokenCheck, TokenHolder};
use crate::transport_parameters::PreferredAddress;
use crate::{Code, ConnectionId, Side, Version};

/// A datagram that starts with a client's first packet.
pub(super) struct Arrival<'a> {
    pub(super) now: Time,
    pub(super) remote: SocketAddr,
    pub(super) local: Option<SocketAddr>,
    pub(super) ecn: Ecn,
    pub(super) datagram: &'a mut [u8],
}

/// The result of checking the client's token, or its absence.
pub(super) struct Admission {
    /// The address is validated.
    pub(super) validated: bool,
    /// The connection IDs of the Retry packet that the client answers: the destination of its first
    /// packet and the source of the Retry packet.
    retried: Option<(ConnectionId, ConnectionId)>,
    /// The client's place among those of its address, where these are limited.
    place: Option<ClientPlace>,
}

impl Endpoint {
    /// Returns the number of handshakes whose client has not shown yet that it receives our
    /// packets.
    pub fn half_open(&self) -> usize {
        self.initials.len() + self.undecided.handshakes()
    }

    /// Answers a client of another version with our versions and a reserved one (RFC 9368, section
    /// 2.1; RFC 9000, section 15).
    pub(super) fn negotiate_version(
        &mut self,
        server: &ServerConfig,
        client: &Invariants<'_>,
    ) -> Route {
        self.counters.version_negotiations += 1;
        let mut versions = server.versions.numbers();
        versions.push(packet::reserved_version(self.rng.next_u32()));
        let mut reply = Vec::new();
        packet::write_version_negotiation(
            &mut reply,
            client.source,
            client.destination,
            &versions,
            self.rng.next_u32() as u8,
        );
        Route::Reply(reply)
    }

    /// Handles a datagram for no existing connection, which may start one.
    pub(super) fn accept(&mut self, server: ServerConfig, arrival: Arrival<'_>) -> Route {
        let decoded = Header::decode(arrival.datagram, self.config.connection_ids.length());
        let Ok(header) = decoded else {
            return Route::Drop;
        };
        let Some(version) = header.version else {
            return Route::Drop;
        };
        // A client may know from an earlier connection that we accept packets without the bit.
        let bit_ok = header.fixed_bit || server.transport.grease_quic_bit;
        if header.kind != Kind::Initial
            || header.destination.len() < SHORTEST_INITIAL_DESTINATION
            || !bit_ok
        {
            return Route::Drop;
        }
        let initial_keys = || {
            server
                .crypto
                .initial_keys(version, &header.destination, Side::Server)
        };
        let room = self.client_room(&server, arrival.remote);
        let has_room = !self.refuses_connection(&server);
        if !has_room || room == ClientRoom::Exhausted {
            self.counters.refusals += 1;
            self.counters.client_limit_refusals += u64::from(has_room);
            let code = Code::CONNECTION_REFUSED;
            return Route::Reply(refusal(&header, version, &initial_keys(), code));
        }
        let bearer = TokenHolder {
            remote: arrival.remote,
            version,
            destination: header.destination,
        };
        let token = &arrival.datagram[header.token.clone()];
        let Some(mut admission) = self.admit(arrival.now, server.token_lifetime, token, &bearer)
        else {
            self.counters.refusals += 1;
            let code = Code::INVALID_TOKEN;
            return Route::Reply(refusal(&header, version, &initial_keys(), code));
        };
        let is_retried = server.retry.applies(self.half_open())
            || (room == ClientRoom::ForValidated && server.retry != RetryPolicy::Never);
        if !admission.validated && is_retried {
            return Route::Reply(self.retry(arrival.now, &server, &header, &bearer));
        }
        admission.place = self.client_place(&server, arrival.remote);
        if server.max_undecided == 0 {
            return self.begin_or_refuse(&server, &header, version, admission, arrival);
        }
        let held = self.hold_handshake(&server, &header, version, admission, &arrival);
        held.unwrap_or_else(|| {
            self.counters.refusals += 1;
            let code = Code::CONNECTION_REFUSED;
            Route::Reply(refusal(&header, version, &initial_keys(), code))
        })
    }

    /// Starts a connection, or refuses it where the configuration does not allow it.
    pub(super) fn begin_or_refuse(
        &mut self,
        server: &ServerConfig,
        header: &Header,
        version: Version,
        admission: Admission,
        arrival: Arrival<'_>,
    ) -> Route {
        match self.begin(server, header, version, admission, arrival) {
            Some(route) => route,
            None => {
                self.counters.refusals += 1;
                let destination = &header.destination;
                let keys = (server.crypto).initial_keys(version, destination, Side::Server);
                Route::Reply(refusal(header, version, &keys, Code::INTERNAL_ERROR))
            }
        }
    }

    /// Returns the room that a client has for a further connection.
    pub(super) fn client_room(&self, server: &ServerConfig, remote: SocketAddr) -> ClientRoom {
        let clients = server.clients.as_ref();
        clients.map_or(ClientRoom::Ample, |clients| clients.room(remote.ip()))
    }

    /// Counts a further connection of a client.
    pub(super) fn client_place(
        &self,
        server: &ServerConfig,
        remote: SocketAddr,
    ) -> Option<ClientPlace> {
        let clients = server.clients.as_ref();
        clients.map(|clients| clients.enter(remote.ip()))
    }

    /// Checks a token; `None` if the client must be notified that it is invalid.
    fn admit(
        &mut self,
        now: Time,
        lifetime: Duration,
        token: &[u8],
        bearer: &TokenHolder,
    ) -> Option<Admission> {
        let mut admission = Admission {
            validated: false,
            retried: None,
            place: None,
        };
        if token.is_empty() {
            return Some(admission);
        }
        let now = now + self.config.epoch;
        match self.keys.tokens.check(token, bearer, now, lifetime) {
            TokenCheck::Nothing => {}
            TokenCheck::InvalidRetry => return None,
            TokenCheck::Retried {
                original_destination,
                retry_source,
            } => {
                admission.validated = true;
                admission.retried = Some((original_destination, retry_source));
            }
            TokenCheck::Known { issued, id } => {
                let oldest = now.as_nanos().saturating_sub(lifetime.as_nanos());
                let oldest = Time::from_nanos(oldest);
                admission.validated = self.used_tokens.use_up(issued, id, oldest);
            }
        }
        Some(admission)
    }

    /// Asks the client to validate its address. No state is stored.
    pub(super) fn retry(
        &mut self,
        now: Time,
        server: &ServerConfig,
        header: &Header,
        bearer: &TokenHolder,
    ) -> Vec<u8> {
        self.counters.retries += 1;
        let source = self.config.connection_ids.generate(&mut self.rng);
        let token = Token::retry(now + self.config.epoch, bearer, source);
        let token = self.keys.tokens.seal(&token, &mut self.rng);
        let mut reply = Vec::with_capacity(256);
        packet::write_retry(
            &mut reply,
            bearer.version,
            &header.source,
            &source,
            &token,
            self.rng.next_u32() as u8,
        );
        let tag = server
            .crypto
            .retry_tag(bearer.version, &header.destination, &reply);
        reply.extend_from_slice(&tag);
        reply
    }

    /// Starts a connection; `None` if the configuration does not allow it.
    fn begin(
        &mut self,
        server: &ServerConfig,
        header: &Header,
        version: Version,
        admission: Admission,
        arrival: Arrival<'_>,
    ) -> Option<Route> {
        let Arrival {
            now,
            remote,
            local,
            ecn,
            datagram,
        } = arrival;
        let local_id = self.config.connection_ids.generate(&mut self.rng);
        let (original, retry_source) = match admission.retried {
            Some((original, retry_source)) => (original, Some(retry_source)),
            None => (header.destination, None),
        };
        let preferred = server.preferred.iter().map(Some);
        let accepted = self.accepted(
            &server.transport,
            remote,
            iter::once(local).chain(preferred),
        );
        let precision = self.precision(&server.transport);
        let mut parameters = Connection::parameters(
            &server.transport,
            accepted,
            &precision,
            local_id,
            Some(original),
        );
        parameters.retry_source_connection_id = retry_source;
        parameters.stateless_reset_token = Some(self.keys.reset_token(&local_id));
        let preferred_id = server.preferred.is_some().then(|| {
            let id = self.config.connection_ids.generate(&mut self.rng);
            parameters.preferred_address = Some(PreferredAddress {
                ipv4: server.preferred.ipv4,
                ipv6: server.preferred.ipv6,
                connection_id: id,
                reset_token: self.keys.reset_token(&id),
            });
            id
        });
        let subject = Subject {
            side: Side::Server,
            original_destination: original,
            local_id,
            local,
            remote,
        };
        parameters.known_peers = server.known_clients.is_some();
        parameters.receive_burst = self.receive_share();
        let reporter = self
            .observers
            .is_some()
            .then(|| self.reporter(subject, parameters.clone()));
        let grease = self.rng.next_u64();
        let since_1970 = now + self.config.epoch;
        // A client that is offered no secret may have abandoned the key of an earlier one.
        let all_clients = || self.server.as_ref()?.known_clients.clone();
        let known_clients = server.known_clients.clone().or_else(all_clients);
        let known_clients = known_clients.map(|clients| (clients, since_1970));
        let answer =
            negotiation::answerer(version, server.versions, parameters, known_clients, grease);
        let session = match server.crypto.clone().start(version, answer) {
            Ok(session) => session,
            Err(error) => {
                tracing::error!(%error, "a connection was refused");
                return None;
            }
        };
        let setup = Setup {
            config: server.transport.clone(),
            seed: self.connection_seed(),
            remote,
            local,
            original_destination: header.destination,
            id_layout: self.config.connection_ids,
            local_id,
            remote_id: header.source,
            version,
            accepted,
            interfaces: self.interfaces.clone(),
            precision,
            found_size: self.found_sizes.of(now, remote.ip()),
            keys: self.keys.clone(),
            provider: server.crypto.clone(),
            reporter: reporter.flatten(),
            client: None,
            server: Some(ServerSetup {
                validated: admission.validated,
                issues_tokens: !server.token_lifetime.is_zero(),
                epoch: self.config.epoch,
                preferred_id,
            }),
            known: self.known_setup(server, KnownStart::Handshake),
        };
        let mut connection = Box::new(Connection::new(now, setup, session));
        connection.handle_datagram(now, remote, local, ecn, datagram);
        if !connection.is_authenticated() {
            return Some(Route::Drop);
        }
        let initial = (remote, header.destination);
        let handle = self.insert(Slot {
            initial: Some(initial),
            _place: admission.place,
            ..Slot::default()
        });
        self.initials.insert(initial, handle);
        self.add_id(handle, local_id);
        if let Some(id) = preferred_id {
            self.add_id(handle, id);
        }
        Some(Route::New(handle, connection))
    }
}

/// Builds an Initial packet that refuses a connection. It stores no state.
pub(super) fn refusal(header: &Header, version: Version, keys: &Keys, code: Code) -> Vec<u8> {
    /// Room for the sample of header protection.
    const SMALLEST_PAYLOAD: usize = 4;
    let mut reply = Vec::with_capacity(128);
    let fields = LongFields {
        version,
        kind: LongKind::Initial { token: &[] },
        destination: header.source,
        source: header.destination,
        number: 0,
        number_length: 1,
        size_limit: SMALLEST_MAX_UDP_PAYLOAD,
    };
    let written = packet::write_long_header(&mut reply, &fields);
    let payload_start = reply.len();
    let close = Close::Transport {
        code,
        frame_type: 0,
        reason: b"",
    };
    frame::write::close(&mut reply, &close, payload_start + 64);
    let end = reply.len().max(payload_start + SMALLEST_PAYLOAD) + keys.local.packet.tag_length();
    reply.resize(end, 0);
    written.finish(&mut reply, end);
    keys.local.packet.seal(0, payload_start, &mut reply);
    keys.local.header.protect(written.number_offset, &mut reply);
    reply
}
