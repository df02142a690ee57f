//! The session of a connection without a handshake: its peer is known, and only transport parameters
//! that differ from the remembered ones are exchanged.

use std::collections::VecDeque;
use std::sync::Arc;

use super::{KeyId, KnownClient, KnownServer, PathSecret};
use crate::crypto::{HandshakeBuffer, Identity, Session, SessionEvent};
use crate::{Code, Level, TransportError, Version};

/// A message with all transport parameters of its sender.
pub(crate) const PARAMETERS_ALL: u8 = 1;
/// A message with the transport parameters that only this connection has.
pub(crate) const PARAMETERS_ADDED: u8 = 2;

/// Returns the message of this kind with encoded transport parameters. They are far shorter than
/// the 65,535 bytes that a message may have.
pub(crate) fn parameters_message(kind: u8, encoded: &[u8]) -> Vec<u8> {
    let length = u32::try_from(encoded.len())
        .unwrap_or(u32::MAX)
        .to_be_bytes();
    let mut message = Vec::with_capacity(4 + encoded.len());
    message.push(kind);
    message.extend_from_slice(&length[1..]);
    message.extend_from_slice(encoded);
    message
}

/// The peer of the connection.
enum Peer {
    Server(Arc<KnownServer>),
    Client(Arc<KnownClient>),
}

/// A session without a handshake.
pub(crate) struct KnownSession {
    peer: Peer,
    /// `None` until a client draws it.
    key_id: Option<KeyId>,
    inbound: HandshakeBuffer,
    events: VecDeque<SessionEvent>,
    has_parameters: bool,
}

impl KnownSession {
    /// The session of a client.
    pub(crate) fn with_server(server: Arc<KnownServer>) -> Self {
        Self::new(Peer::Server(server), None)
    }

    /// The session of a server.
    pub(crate) fn with_client(client: Arc<KnownClient>, key_id: KeyId) -> Self {
        Self::new(Peer::Client(client), Some(key_id))
    }

    fn new(peer: Peer, key_id: Option<KeyId>) -> Self {
        Self {
            peer,
            key_id,
            inbound: HandshakeBuffer::at(Level::OneRtt),
            events: VecDeque::new(),
            has_parameters: false,
        }
    }

    fn secret(&self) -> &PathSecret {
        match &self.peer {
            Peer::Server(server) => &server.secret,
            Peer::Client(client) => &client.secret,
        }
    }
}

impl Session for KnownSession {
    fn read(&mut self, level: Level, data: &[u8]) -> Result<(), TransportError> {
        self.inbound.push(level, data)?;
        while let Some(message) = self.inbound.next_message()? {
            let added = match message.kind {
                PARAMETERS_ALL => false,
                PARAMETERS_ADDED => true,
                _ => return Err(violation("an unknown message about a known peer")),
            };
            if std::mem::replace(&mut self.has_parameters, true) {
                return Err(violation("transport parameters twice"));
            }
            self.events.push_back(SessionEvent::KnownParameters {
                encoded: message.body().to_vec(),
                added,
            });
        }
        Ok(())
    }

    fn set_version(&mut self, _: Version) {}

    fn set_key_id(&mut self, key_id: KeyId) {
        self.key_id = Some(key_id);
    }

    fn poll(&mut self) -> Option<SessionEvent> {
        self.events.pop_front()
    }

    fn identity(&self) -> Identity {
        match &self.peer {
            Peer::Server(server) => server.identity.clone(),
            Peer::Client(client) => client.identity.clone(),
        }
    }

    fn export(&self, output: &mut [u8], label: &[u8], context: &[u8]) -> bool {
        self.key_id
            .is_some_and(|key_id| self.secret().export(key_id, output, label, context))
    }
}

fn violation(reason: &'static str) -> TransportError {
    TransportError::new(Code::PROTOCOL_VIOLATION, reason)
}
