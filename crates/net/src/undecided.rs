//! Clients that the application decides about before their handshake.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;

use weir_quic::crypto::ClientNames;
use weir_quic::{Decision, IncomingInfo, Route, TransportConfig};
use weir_units::Time;
use weir_wire::{BatchContents, Ecn, Transmit};

use crate::connecting::Connecting;
use crate::dcquic::{Shared, SharedDcquicConnection};
use crate::handle::Handle;
use crate::incoming::Incoming as AcceptQueue;
use crate::sockets::SendSocket;
use crate::tls::ServerCredentials;

/// The clients that no task has taken yet, of all engines of an endpoint.
pub(crate) type UndecidedQueue = AcceptQueue<Undecided>;

/// A client that waits for a decision at its engine. Dropping it refuses the client.
pub(crate) struct Undecided {
    shared: Arc<Shared>,
    info: IncomingInfo,
    is_decided: bool,
}

/// A client that would like to connect. Nothing of its handshake has been processed, and no
/// cryptography spent on it. Dropping it refuses the client.
///
/// While it waits, the endpoint keeps what the client sends, at most 16 datagrams and 32 KiB, and the
/// client sends its first packets again: decide soon.
#[must_use = "dropping it refuses the client"]
pub struct Incoming {
    undecided: Undecided,
}

/// Why a client that was accepted has no connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum IncomingError {
    /// Its first packet was not authentic, it had become too old while it waited, or the endpoint is
    /// shutting down.
    #[error("no connection with {remote} began: its first packet cannot be used any more")]
    Gone {
        /// The client's address.
        remote: SocketAddr,
    },
}

/// A client that need not validate its address: it has done so, or it is a known peer, whose packet
/// proves that it has the secret.
#[derive(Debug, thiserror::Error)]
#[error("{} cannot be asked to validate its address again", .0.remote_address())]
pub struct RetryError(Incoming);

impl RetryError {
    /// Returns the client, for another decision.
    pub fn into_incoming(self) -> Incoming {
        self.0
    }
}

impl Undecided {
    pub(crate) fn new(shared: Arc<Shared>, info: IncomingInfo) -> Self {
        Self {
            shared,
            info,
            is_decided: false,
        }
    }

    /// Passes a decision to the engine; returns the connection that begins by it.
    fn decide(&mut self, decision: Decision) -> Option<Arc<SharedDcquicConnection>> {
        self.is_decided = true;
        let shared = &self.shared;
        let now = shared.clock.now();
        let mut routing = shared.routing();
        match routing.engine.decide(now, self.info.id, decision) {
            Route::New(handle, engine) => {
                let connection = SharedDcquicConnection::new(handle.0, shared.clone(), engine);
                let connection = routing.insert(handle.0, connection);
                let open = routing.open;
                drop(routing);
                shared.sockets.make_room(open);
                self.begin(now, &connection);
                Some(connection)
            }
            Route::Reply(reply) => {
                drop(routing);
                self.reply(&reply);
                None
            }
            _ => None,
        }
    }

    fn begin(&self, now: Time, connection: &Arc<SharedDcquicConnection>) {
        let mut locked = connection.lock_at(Some(now));
        locked.end_batch();
        // The answer leaves once this task yields, together with what it writes.
        locked.queue();
    }

    fn reply(&self, reply: &[u8]) {
        let transmit = Transmit {
            remote: self.info.remote,
            local: self.info.local,
            ecn: Ecn::NotEct,
            size: reply.len(),
            segment_size: None,
        };
        let sent = SendSocket::default().send(
            &self.shared.sockets,
            &transmit,
            &BatchContents::Whole(reply),
        );
        if sent.is_err() {
            tracing::debug!(remote = %self.info.remote, "a stateless reply could not be sent");
        }
    }
}

impl Drop for Undecided {
    fn drop(&mut self) {
        if !self.is_decided {
            self.decide(Decision::Refuse);
        }
    }
}

impl Incoming {
    pub(crate) fn new(undecided: Undecided) -> Self {
        Self { undecided }
    }

    /// Returns the client's address, which may be spoofed unless [`Self::is_validated`].
    pub fn remote_address(&self) -> SocketAddr {
        self.undecided.info.remote
    }

    /// Returns the address of this endpoint that the client sent to, where that is known.
    pub fn local_address(&self) -> Option<SocketAddr> {
        self.undecided.info.local
    }

    /// Whether the client has shown that it receives packets at its address: by a Retry packet, by a
    /// token, or in an earlier connection.
    pub fn is_validated(&self) -> bool {
        self.undecided.info.validated
    }

    /// Whether the client names a secret that it shares with this server, so that its connection will
    /// have no handshake (`docs/known-peers.md`). Its packet is not authenticated yet.
    pub fn is_known_peer(&self) -> bool {
        self.undecided.info.known_peer
    }

    /// Returns the server name (SNI) and the application protocols (ALPN) that the client asks for,
    /// unauthenticated; of a known peer, those of its handshake. `None` while packets of its ClientHello
    /// are missing. Unlike the other questions, this one costs some decryption, each time.
    pub fn names(&self) -> Option<ClientNames> {
        let routing = self.undecided.shared.routing();
        routing.engine.incoming_names(self.undecided.info.id)
    }

    /// Whether [`Self::retry`] is possible.
    pub fn may_retry(&self) -> bool {
        self.undecided.info.may_retry
    }

    /// Accepts the client, with the endpoint's configuration.
    ///
    /// # Errors
    /// [`IncomingError`] where no connection begins.
    pub fn accept(self) -> Result<Connecting, IncomingError> {
        self.begin(Decision::Accept)
    }

    /// Accepts the client with other credentials; `None` uses the endpoint's transport.
    ///
    /// Path secrets are offered where both the endpoint's credentials and these offer them, with the
    /// limits of the endpoint's. A known peer that was promised more than `transport` allows is
    /// refused, and comes again with a handshake.
    ///
    /// # Errors
    /// As [`Self::accept`].
    pub fn accept_with(
        self,
        credentials: &ServerCredentials,
        transport: Option<Arc<TransportConfig>>,
    ) -> Result<Connecting, IncomingError> {
        let shared = &self.undecided.shared;
        let transport = transport.unwrap_or_else(|| shared.settings.transport.clone());
        self.begin(Decision::AcceptWith {
            crypto: credentials.crypto.clone(),
            transport,
            known_peers: credentials.known_peers.is_some(),
        })
    }

    fn begin(mut self, decision: Decision) -> Result<Connecting, IncomingError> {
        let remote = self.remote_address();
        let connection = self.undecided.decide(decision);
        let connection = connection.ok_or(IncomingError::Gone { remote })?;
        Ok(Connecting::new(Handle::new(connection)))
    }

    /// Refuses the client: CONNECTION_REFUSED. A known peer learns that its request was not executed.
    pub fn refuse(mut self) {
        self.undecided.decide(Decision::Refuse);
    }

    /// Asks the client to validate its address by a Retry packet (RFC 9000, section 8.1.2). When it
    /// has done so, it is incoming again.
    ///
    /// # Errors
    /// [`RetryError`], with the client, where that is not possible ([`Self::may_retry`]).
    pub fn retry(mut self) -> Result<(), RetryError> {
        if !self.may_retry() {
            return Err(RetryError(self));
        }
        self.undecided.decide(Decision::Retry);
        Ok(())
    }

    /// Gives the client no answer. Its next packets make it incoming again.
    pub fn ignore(mut self) {
        self.undecided.decide(Decision::Ignore);
    }
}

impl fmt::Debug for Incoming {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Incoming")
            .field("remote", &self.remote_address())
            .field("validated", &self.is_validated())
            .field("known_peer", &self.is_known_peer())
            .finish_non_exhaustive()
    }
}
