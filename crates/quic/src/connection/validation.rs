//! Address validation: Retry packets and tokens on the client, NEW_TOKEN on the server (RFC 9000,
//! sections 8.1 and 17.2.5).

use std::sync::Arc;

use weir_units::{Duration, Time};

use super::Connection;
use super::ids::RemoteIds;
use super::packet_builder::SMALLEST_ROOM;
use crate::crypto::{ClientCrypto, ClientStart, Session, StartError};
use crate::interfaces::SMALLEST_MAX_UDP_PAYLOAD;
use crate::negotiation;
use crate::observe::DropReason;
use crate::packet::{Header, Retry};
use crate::secret::tokens_are_equal;
use crate::token::{Token, TokenStore};
use crate::transport_parameters::TransportParameters;
use crate::{ConnectionId, Side, Space, TransportError, Version, Versions};

/// The longest token of a Retry packet that is accepted. Each Initial packet repeats it (RFC 9000, section
/// 17.2.5.3) in a datagram of 1200 bytes; a longer one would leave no room for handshake data. The
/// rest of a long one leaves some 40 bytes of the ClientHello per packet.
const LONGEST_RETRY_TOKEN: usize = SMALLEST_MAX_UDP_PAYLOAD - SMALLEST_ROOM;

/// A client's inputs to start a handshake, and to restart it.
pub(crate) struct ClientSetup {
    pub(crate) crypto: Arc<dyn ClientCrypto>,
    pub(crate) server_name: Arc<str>,
    pub(crate) versions: Versions,
    pub(crate) tokens: Option<Arc<TokenStore>>,
}

impl ClientSetup {
    /// Starts a handshake in this version, with these transport parameters and this version
    /// information.
    pub(crate) fn start(
        &self,
        version: Version,
        mut parameters: TransportParameters,
        early_data: bool,
        grease: u64,
    ) -> Result<Box<dyn Session>, StartError> {
        parameters.version_information = Some(negotiation::information(version, self.versions));
        let mut encoded = Vec::with_capacity(256);
        parameters.encode(Side::Client, &mut encoded, Some(grease));
        self.crypto.clone().start(&ClientStart {
            version,
            version_may_change: self.versions.iter().count() > 1,
            server_name: &self.server_name,
            parameters: &encoded,
            early_data,
        })
    }
}

/// A server endpoint's knowledge of a client, and its settings.
pub(crate) struct ServerSetup {
    /// Whether the client's address is already validated.
    pub(crate) validated: bool,
    /// Whether the client receives a token for later.
    pub(crate) issues_tokens: bool,
    /// The wall-clock time at [`Time::ZERO`].
    pub(crate) epoch: Duration,
    /// The connection ID of the preferred address, if there is one.
    pub(crate) preferred_id: Option<ConnectionId>,
}

/// The state of address validation.
pub(super) struct Validation {
    /// A client's token, for its Initial packets.
    pub(super) token: Vec<u8>,
    /// The source ID of the Retry packet that a client received.
    pub(super) retry_source: Option<ConnectionId>,
    pub(super) client: Option<ClientSetup>,
    server: Option<ServerSetup>,
}

impl Validation {
    pub(super) fn new(client: Option<ClientSetup>, server: Option<ServerSetup>) -> Self {
        Self {
            token: Vec::new(),
            retry_source: None,
            client,
            server,
        }
    }
}

impl Connection {
    /// Takes a token for the connection from the client's store, if there is one.
    pub(super) fn take_token(&mut self) {
        let remote = self.path().remote;
        let Some(client) = &self.validation.client else {
            return;
        };
        let tokens = client.tokens.as_ref();
        self.validation.token = tokens
            .and_then(|tokens| tokens.take(&client.server_name, remote, self.version))
            .unwrap_or_default();
    }

    /// Forgets the tokens of another server at this address.
    pub(super) fn forget_tokens(&self) {
        if let Some(client) = &self.validation.client
            && let Some(tokens) = &client.tokens
        {
            tokens.forget(&client.server_name, self.path().remote);
        }
    }

    /// Handles a Retry packet (RFC 9000, section 17.2.5.2). A client accepts it only before any
    /// other packet from the server, and only once.
    pub(super) fn on_retry(&mut self, now: Time, header: &Header, packet: &[u8]) {
        let expected = self.side.is_client()
            && !self.counters.authenticated
            && self.validation.retry_source.is_none()
            && header.version == Some(self.version)
            && self.local_ids.contains(&header.destination)
            && header.source != self.original_destination;
        let retry = Retry::decode(packet, header).filter(|retry| {
            let tag =
                self.provider
                    .retry_tag(self.version, &self.original_destination, retry.signed);
            expected && tokens_are_equal(&tag, &retry.tag)
        });
        let Some(retry) = retry else {
            return self.drop_packet(now, packet.len(), DropReason::Malformed);
        };
        if retry.token.len() > LONGEST_RETRY_TOKEN {
            let length = retry.token.len();
            tracing::warn!(
                length,
                limit = LONGEST_RETRY_TOKEN,
                "a Retry packet is dropped: its token leaves no room for the handshake"
            );
            return self.drop_packet(now, packet.len(), DropReason::TokenTooLong);
        }
        self.validation.token = retry.token.to_vec();
        self.validation.retry_source = Some(header.source);
        self.remote_ids = RemoteIds::new(header.source);
        self.keys.initial = Some(self.initial_keys(self.version));
        // Everything is sent again, with the token and to the new ID; packet numbers continue.
        let (recovery, paths, mut fates) = self.recovery_parts();
        recovery.on_retry(&mut paths[0], &mut fates);
        self.probes = [0; 3];
    }

    /// The destination ID that the Initial keys are derived from (RFC 9001, section 5.2).
    pub(super) fn initial_key_id(&self) -> &ConnectionId {
        let retry_source = self.validation.retry_source.as_ref();
        retry_source.unwrap_or(&self.original_destination)
    }

    /// Stores a token for a later connection (RFC 9000, section 8.1.3).
    pub(super) fn on_new_token(&self, token: &[u8]) -> Result<(), TransportError> {
        let Some(client) = &self.validation.client else {
            return Err(super::receive::violation("NEW_TOKEN from a client"));
        };
        if let Some(tokens) = &client.tokens {
            let remote = self.path().remote;
            tokens.put(&client.server_name, remote, self.version, token);
        }
        Ok(())
    }

    /// Whether a client's address was validated before its connection started.
    pub(super) fn is_known(&self) -> bool {
        self.validation
            .server
            .as_ref()
            .is_some_and(|server| server.validated)
    }

    /// Issues a token for the client's next connection, once the handshake is complete.
    pub(super) fn issue_token(&mut self, now: Time) {
        let Some(server) = self
            .validation
            .server
            .take_if(|server| server.issues_tokens)
        else {
            return;
        };
        let ip = self.path().remote.ip();
        let token = Token::later(now + server.epoch, self.version, ip);
        let sealed = self.endpoint_keys.tokens.seal(&token, &mut self.rng);
        self.control.issue_token(sealed);
    }

    /// Discards the state of the first attempt before a client restarts.
    pub(super) fn forget_attempt(&mut self, destination: ConnectionId) {
        self.original_destination = destination;
        self.remote_ids = RemoteIds::new(destination);
        self.keys.initial = Some(self.initial_keys(self.version));
        self.recovery.discard(Space::Initial, &mut self.paths[0]);
        self.crypto[Space::Initial as usize] = Default::default();
        self.probes = [0; 3];
        self.take_token();
    }
}
