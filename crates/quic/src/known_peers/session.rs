//! The session of a connection without a handshake: its peer is known, and only transport parameters
//! that differ from the remembered ones are exchanged.

use std::sync::Arc;

use super::{KeyId, KnownClient, KnownServer, PathSecret};
use crate::crypto::{HandshakeBuffer, Identity, Session, SessionEvent};
use crate::{Code, Level, TransportError, Version};

/// A message with all transport parameters of its sender.
pub(crate) const PARAMETERS_ALL: u8 = 1;
/// A message with the transport parameters that only this connection has.
pub(crate) const PARAMETERS_ADDED: u8 = 2;

/// Appends the message of this kind with the transport parameters that `encode` appends; nothing if it
/// appends none. They are far shorter than the 65,535 bytes that a message may have.
pub(crate) fn write_parameters_message(
    out: &mut Vec<u8>,
    kind: u8,
    encode: impl FnOnce(&mut Vec<u8>),
) {
    let start = out.len();
    out.extend_from_slice(&[kind, 0, 0, 0]);
    let body = out.len();
    encode(out);
    if out.len() == body {
        out.truncate(start);
        return;
    }
    let length = u32::try_from(out.len() - body).unwrap_or(u32::MAX);
    out[start + 1..body].copy_from_slice(&length.to_be_bytes()[1..]);
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
    /// The peer's parameters, until the connection takes them.
    parameters: Option<SessionEvent>,
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
            parameters: None,
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
            self.parameters = Some(SessionEvent::KnownParameters {
                encoded: message.into_body(),
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
        self.parameters.take()
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
