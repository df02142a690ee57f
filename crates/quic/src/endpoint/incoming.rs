//! Clients that wait for the application's decision: accept, refuse, retry or ignore.
//!
//! They have passed every check that costs no cryptography: version, limits, token. What they have sent
//! is kept, within limits, and processed when they are accepted.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;

use rustc_hash::FxHashMap;
use weir_units::Time;
use weir_wire::Ecn;

use super::accept::{Admission, Arrival, refusal};
use super::clients::ClientPlace;
use super::known::FirstPacket;
use super::{Endpoint, Route};
use crate::config::{ServerConfig, TransportConfig};
use crate::crypto::{Keys, ServerCrypto};
use crate::known_peers::{CredentialId, KeyId, KnownClient};
use crate::packet::Header;
use crate::token::TokenHolder;
use crate::{Code, ConnectionId, Side, Version};

/// The most datagrams that are kept of a client: a first flight with early data. Further ones are
/// dropped, and sent again by the client.
const MOST_DATAGRAMS: usize = 16;
/// The most bytes that are kept of a client beyond its first datagram.
const MOST_BYTES: usize = 32 * 1024;

/// The name of a client that waits for a decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct IncomingId(u64);

/// A client that waits for a decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IncomingInfo {
    /// Its name, for [`Endpoint::decide`].
    pub id: IncomingId,
    /// Its address.
    pub remote: SocketAddr,
    /// The address that it sent to, where that is known.
    pub local: Option<SocketAddr>,
    /// Whether it has shown, by a token or in an earlier connection, that it receives packets at its
    /// address.
    pub validated: bool,
    /// Whether it shares a secret with this server, which its packet names: its connection will have
    /// no handshake. The packet is not authenticated yet.
    pub known_peer: bool,
    /// Whether [`Decision::Retry`] is possible: not after a Retry packet, or with a token.
    pub may_retry: bool,
}

/// What becomes of a client.
pub enum Decision {
    /// Its connection begins, with the server's configuration.
    Accept,
    /// Its connection begins with these settings.
    AcceptWith {
        /// The source of keys. A known peer's connection has keys already.
        crypto: Arc<dyn ServerCrypto>,
        /// The transport. A known peer that was promised more than it allows is refused, and may come
        /// again with a handshake.
        transport: Arc<TransportConfig>,
        /// Whether the client gets a path secret, where the server offers them.
        known_peers: bool,
    },
    /// It is told that the server refuses it.
    Refuse,
    /// It has to validate its address first; if it does, it waits for a decision again. Where that is
    /// not possible it is refused.
    Retry,
    /// It gets no answer. Its next packets make it wait again.
    Ignore,
}

/// The clients that wait for a decision.
#[derive(Default)]
pub(super) struct Undecided {
    waiting: BTreeMap<IncomingId, Attempt>,
    /// Clients with a handshake, by address and first destination ID. Ordered, as clients choose them.
    by_initial: BTreeMap<(SocketAddr, ConnectionId), IncomingId>,
    by_credential: FxHashMap<(CredentialId, KeyId), IncomingId>,
    next: u64,
}

/// What a client has sent, and what the checks have shown.
pub(super) struct Attempt {
    server: ServerConfig,
    remote: SocketAddr,
    local: Option<SocketAddr>,
    header: Header,
    kind: AttemptKind,
    /// The first one, with its ECN codepoint, and those that followed.
    datagrams: Vec<(Ecn, Vec<u8>)>,
    bytes: usize,
}

enum AttemptKind {
    Handshake {
        version: Version,
        admission: Admission,
    },
    Known {
        client: Arc<KnownClient>,
        key_id: KeyId,
        place: Option<ClientPlace>,
    },
}

impl Attempt {
    fn key(&self) -> (SocketAddr, ConnectionId) {
        (self.remote, self.header.destination)
    }

    pub(super) fn known_client(&self) -> Option<&KnownClient> {
        match &self.kind {
            AttemptKind::Known { client, .. } => Some(client),
            AttemptKind::Handshake { .. } => None,
        }
    }

    pub(super) fn crypto(&self) -> &dyn ServerCrypto {
        &*self.server.crypto
    }

    /// Returns the keys of Initial packets, and the datagrams so far.
    pub(super) fn initial_packets(&self) -> Option<(Keys, impl Iterator<Item = &[u8]>)> {
        let AttemptKind::Handshake { version, .. } = &self.kind else {
            return None;
        };
        let destination = &self.header.destination;
        let keys = self
            .server
            .crypto
            .initial_keys(*version, destination, Side::Server);
        let datagrams = self.datagrams.iter();
        Some((keys, datagrams.map(|(_, datagram)| &datagram[..])))
    }

    fn info(&self, id: IncomingId) -> IncomingInfo {
        let (validated, known_peer, may_retry) = match &self.kind {
            AttemptKind::Handshake { admission, .. } => {
                (admission.validated, false, !admission.validated)
            }
            AttemptKind::Known { client, .. } => (client.is_at(self.remote.ip()), true, false),
        };
        IncomingInfo {
            id,
            remote: self.remote,
            local: self.local,
            validated,
            known_peer,
            may_retry,
        }
    }
}

impl Undecided {
    pub(super) fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Returns the number of clients whose address is not known to be theirs.
    pub(super) fn handshakes(&self) -> usize {
        self.by_initial.len()
    }

    pub(super) fn get(&self, id: IncomingId) -> Option<&Attempt> {
        self.waiting.get(&id)
    }

    fn add(&mut self, attempt: Attempt) -> IncomingInfo {
        let id = IncomingId(self.next);
        self.next += 1;
        match &attempt.kind {
            AttemptKind::Handshake { .. } => {
                self.by_initial.insert(attempt.key(), id);
            }
            AttemptKind::Known { client, key_id, .. } => {
                let key = (client.secret.id(), *key_id);
                self.by_credential.insert(key, id);
            }
        }
        let info = attempt.info(id);
        self.waiting.insert(id, attempt);
        info
    }

    fn remove(&mut self, id: IncomingId) -> Option<Attempt> {
        let attempt = self.waiting.remove(&id)?;
        match &attempt.kind {
            AttemptKind::Handshake { .. } => {
                self.by_initial.remove(&attempt.key());
            }
            AttemptKind::Known { client, key_id, .. } => {
                self.by_credential.remove(&(client.secret.id(), *key_id));
            }
        }
        Some(attempt)
    }

    /// Keeps a datagram of a client that waits; `false` if none does with this address and ID.
    pub(super) fn keep_initial(
        &mut self,
        remote: SocketAddr,
        destination: ConnectionId,
        ecn: Ecn,
        datagram: &[u8],
    ) -> bool {
        let id = self.by_initial.get(&(remote, destination)).copied();
        id.is_some_and(|id| self.keep(id, ecn, datagram))
    }

    /// Keeps a datagram of a known peer that waits; `false` if none does with this key ID.
    pub(super) fn keep_known(
        &mut self,
        key: &(CredentialId, KeyId),
        remote: SocketAddr,
        ecn: Ecn,
        datagram: &[u8],
    ) -> bool {
        let Some(id) = self.by_credential.get(key).copied() else {
            return false;
        };
        // A copy from elsewhere gets nothing: the client sends what is lost again.
        let is_same = (self.waiting.get(&id)).is_some_and(|attempt| attempt.remote == remote);
        if is_same {
            self.keep(id, ecn, datagram);
        }
        true
    }

    fn keep(&mut self, id: IncomingId, ecn: Ecn, datagram: &[u8]) -> bool {
        let Some(attempt) = self.waiting.get_mut(&id) else {
            return false;
        };
        let has_room = attempt.datagrams.len() < MOST_DATAGRAMS
            && attempt.bytes + datagram.len() <= MOST_BYTES;
        if has_room {
            attempt.bytes += datagram.len();
            attempt.datagrams.push((ecn, datagram.to_vec()));
        }
        true
    }
}

impl Endpoint {
    /// Returns the clients that wait for a decision.
    pub fn undecided(&self) -> usize {
        self.undecided.len()
    }

    /// Lets a client with a handshake wait; `None` if no more may.
    pub(super) fn hold_handshake(
        &mut self,
        server: &ServerConfig,
        header: &Header,
        version: Version,
        admission: Admission,
        arrival: &Arrival<'_>,
    ) -> Option<Route> {
        let kind = AttemptKind::Handshake { version, admission };
        let Arrival {
            remote, local, ecn, ..
        } = *arrival;
        self.hold(server, header, kind, (remote, local, ecn), arrival.datagram)
    }

    /// Lets a known peer wait; `None` if no more may.
    pub(super) fn hold_known(
        &mut self,
        server: &ServerConfig,
        client: &Arc<KnownClient>,
        key_id: KeyId,
        place: Option<ClientPlace>,
        packet: &FirstPacket<'_>,
    ) -> Option<Route> {
        let kind = AttemptKind::Known {
            client: client.clone(),
            key_id,
            place,
        };
        let from = (packet.remote, packet.local, packet.ecn);
        self.hold(server, &packet.header, kind, from, packet.datagram)
    }

    fn hold(
        &mut self,
        server: &ServerConfig,
        header: &Header,
        kind: AttemptKind,
        (remote, local, ecn): (SocketAddr, Option<SocketAddr>, Ecn),
        datagram: &[u8],
    ) -> Option<Route> {
        if self.undecided.len() >= server.max_undecided {
            return None;
        }
        let attempt = Attempt {
            server: server.clone(),
            remote,
            local,
            header: header.clone(),
            kind,
            datagrams: vec![(ecn, datagram.to_vec())],
            bytes: 0,
        };
        Some(Route::Incoming(self.undecided.add(attempt)))
    }

    /// Decides about a client: returns its connection, which has processed what the client sent so
    /// far, or the answer to send to it. It is [`Route::Drop`] where nothing is to be done: also for a
    /// client that was accepted but whose packet was not authentic.
    pub fn decide(&mut self, now: Time, id: IncomingId, decision: Decision) -> Route {
        let Some(attempt) = self.undecided.remove(id) else {
            return Route::Drop;
        };
        // The server may have stopped since.
        let is_serving = self.server.is_some() && !self.refuses_new;
        match decision {
            Decision::Accept if is_serving => self.begin_attempt(now, attempt),
            Decision::AcceptWith {
                crypto,
                transport,
                known_peers,
            } if is_serving => {
                let mut attempt = attempt;
                let known_clients = attempt.server.known_clients.take();
                attempt.server = ServerConfig {
                    crypto,
                    transport,
                    known_clients: known_clients.filter(|_| known_peers),
                    ..attempt.server
                };
                self.begin_attempt(now, attempt)
            }
            Decision::Retry => self.retry_attempt(now, attempt),
            Decision::Ignore => Route::Drop,
            Decision::Refuse | Decision::Accept | Decision::AcceptWith { .. } => {
                self.refuse_attempt(now, attempt)
            }
        }
    }

    fn begin_attempt(&mut self, now: Time, attempt: Attempt) -> Route {
        let Attempt {
            server,
            remote,
            local,
            header,
            kind,
            datagrams,
            ..
        } = attempt;
        let mut datagrams = datagrams.into_iter();
        let Some((ecn, mut first)) = datagrams.next() else {
            return Route::Drop;
        };
        let route = match kind {
            AttemptKind::Handshake { version, admission } => {
                let arrival = Arrival {
                    now,
                    remote,
                    local,
                    ecn,
                    datagram: &mut first,
                };
                self.begin_or_refuse(&server, &header, version, admission, arrival)
            }
            AttemptKind::Known {
                client,
                key_id,
                place,
            } => {
                let packet = FirstPacket {
                    now,
                    remote,
                    local,
                    ecn,
                    header,
                    datagram: &mut first,
                };
                self.begin_known(&server, client, key_id, place, packet)
            }
        };
        match route {
            Route::New(handle, mut connection) => {
                for (ecn, mut datagram) in datagrams {
                    connection.handle_datagram(now, remote, local, ecn, &mut datagram);
                }
                Route::New(handle, connection)
            }
            other => other,
        }
    }

    fn retry_attempt(&mut self, now: Time, attempt: Attempt) -> Route {
        match &attempt.kind {
            AttemptKind::Handshake { version, admission } if !admission.validated => {
                let bearer = TokenHolder {
                    remote: attempt.remote,
                    version: *version,
                    destination: attempt.header.destination,
                };
                Route::Reply(self.retry(now, &attempt.server, &attempt.header, &bearer))
            }
            _ => self.refuse_attempt(now, attempt),
        }
    }

    fn refuse_attempt(&mut self, now: Time, attempt: Attempt) -> Route {
        let Attempt {
            server,
            remote,
            local,
            header,
            kind,
            datagrams,
            ..
        } = attempt;
        match kind {
            AttemptKind::Handshake { version, .. } => {
                self.counters.refusals += 1;
                let keys = server
                    .crypto
                    .initial_keys(version, &header.destination, Side::Server);
                Route::Reply(refusal(&header, version, &keys, Code::CONNECTION_REFUSED))
            }
            AttemptKind::Known { client, key_id, .. } => {
                let Some((ecn, mut first)) = datagrams.into_iter().next() else {
                    return Route::Drop;
                };
                let packet = FirstPacket {
                    now,
                    remote,
                    local,
                    ecn,
                    header,
                    datagram: &mut first,
                };
                self.refuse_known(&server, client, key_id, packet)
            }
        }
    }
}

impl std::fmt::Debug for Decision {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Accept => "Accept",
            Self::AcceptWith { .. } => "AcceptWith",
            Self::Refuse => "Refuse",
            Self::Retry => "Retry",
            Self::Ignore => "Ignore",
        })
    }
}
