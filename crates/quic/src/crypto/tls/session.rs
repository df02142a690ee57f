//! A TLS handshake: rustls's connection, its output put into the order that the engine needs.

use std::collections::VecDeque;

use rustls::quic::{ClientConnection, Connection, KeyChange as TlsKeyChange, ServerConnection};
use rustls::{AlertDescription, HandshakeKind};

use super::keys::TlsKeyUpdates;
use crate::crypto::inbound::Inbound;
use crate::crypto::{Identity, KeyChange, Session, SessionEvent};
use crate::{Code, Level, TransportError};

/// The messages after which a peer's transport parameters are known (RFC 8446, section 4).
const CLIENT_HELLO: u8 = 1;
const ENCRYPTED_EXTENSIONS: u8 = 8;

/// A TLS handshake in progress, and what follows it.
pub(super) struct TlsSession {
    connection: Connection,
    /// Whom a client asked for.
    asked_for: Option<String>,
    inbound: Inbound,
    /// The level at which rustls's next bytes are to be sent.
    write_level: Level,
    events: VecDeque<SessionEvent>,
    /// Whether a client may send early data.
    early_data: bool,
    complete: bool,
}

impl TlsSession {
    /// A client's; the ClientHello is ready to be sent.
    pub(super) fn client(connection: ClientConnection, server_name: &str) -> Self {
        let mut session = Self::new(connection.into());
        session.asked_for = Some(server_name.to_owned());
        session.take_messages();
        session.offer_early_data();
        session
    }

    /// A server's, which waits for a ClientHello.
    pub(super) fn server(connection: ServerConnection) -> Self {
        Self::new(connection.into())
    }

    fn new(connection: Connection) -> Self {
        Self {
            connection,
            asked_for: None,
            inbound: Inbound::new(),
            write_level: Level::Initial,
            events: VecDeque::new(),
            early_data: false,
            complete: false,
        }
    }

    /// A client that resumes has keys for early data before the server says anything. Until then
    /// rustls shows the transport parameters of the session that is resumed.
    fn offer_early_data(&mut self) {
        let Some(keys) = self.connection.zero_rtt_keys() else {
            return;
        };
        let remembered = self.connection.quic_transport_parameters();
        self.events.push_back(SessionEvent::PeerParameters {
            encoded: remembered.unwrap_or_default().to_vec(),
            remembered: true,
        });
        self.events
            .push_back(SessionEvent::Keys(KeyChange::ZeroRtt(keys.into())));
        self.early_data = true;
    }

    /// rustls has accepted a message of this type.
    fn after_message(&mut self, kind: u8) -> Result<(), TransportError> {
        match (&self.connection, kind) {
            (Connection::Client(client), ENCRYPTED_EXTENSIONS) => {
                if self.early_data {
                    let accepted = client.is_early_data_accepted();
                    self.events.push_back(SessionEvent::EarlyData { accepted });
                }
                self.report_parameters();
            }
            (Connection::Server(server), CLIENT_HELLO) => {
                let keys = server.zero_rtt_keys();
                self.report_parameters();
                if let Some(keys) = keys {
                    self.events
                        .push_back(SessionEvent::Keys(KeyChange::ZeroRtt(keys.into())));
                }
            }
            _ => {}
        }
        if self.take_messages() {
            self.inbound.raise(Level::Handshake)?;
        }
        if !self.complete && !self.connection.is_handshaking() {
            self.complete = true;
            self.inbound.raise(Level::OneRtt)?;
            self.events.push_back(SessionEvent::Complete);
        }
        Ok(())
    }

    /// The peer's parameters as they stand in its handshake message. There are none yet after a
    /// ClientHello that rustls answers with a HelloRetryRequest.
    fn report_parameters(&mut self) {
        if let Some(encoded) = self.connection.quic_transport_parameters() {
            self.events.push_back(SessionEvent::PeerParameters {
                encoded: encoded.to_vec(),
                remembered: false,
            });
        }
    }

    /// Takes what rustls wants sent and the keys that follow it. Gives whether the handshake keys
    /// were among them.
    fn take_messages(&mut self) -> bool {
        let mut handshake_keys = false;
        loop {
            let mut bytes = Vec::new();
            let change = self.connection.write_hs(&mut bytes);
            if !bytes.is_empty() {
                self.events
                    .push_back(SessionEvent::Send(self.write_level, bytes));
            }
            let keys = match change {
                Some(TlsKeyChange::Handshake { keys }) => {
                    handshake_keys = true;
                    self.write_level = Level::Handshake;
                    KeyChange::Handshake(keys.into())
                }
                Some(TlsKeyChange::OneRtt { keys, next }) => {
                    self.write_level = Level::OneRtt;
                    KeyChange::OneRtt(keys.into(), Box::new(TlsKeyUpdates(next)))
                }
                None => return handshake_keys,
            };
            self.events.push_back(SessionEvent::Keys(keys));
        }
    }
}

impl Session for TlsSession {
    fn read(&mut self, level: Level, data: &[u8]) -> Result<(), TransportError> {
        self.inbound.push(level, data)?;
        while let Some(message) = self.inbound.next_message()? {
            if let Err(error) = self.connection.read_hs(&message.bytes) {
                return Err(transport_error(&error, self.connection.alert()));
            }
            self.after_message(message.kind)?;
        }
        Ok(())
    }

    fn poll(&mut self) -> Option<SessionEvent> {
        self.events.pop_front()
    }

    fn identity(&self) -> Identity {
        let server_name = match &self.connection {
            Connection::Client(_) => self.asked_for.clone(),
            Connection::Server(server) => server.server_name().map(str::to_owned),
        };
        let certificates = self.connection.peer_certificates().unwrap_or_default();
        Identity {
            peer_certificates: certificates.iter().map(|der| der.to_vec()).collect(),
            application_protocol: self.connection.alpn_protocol().map(<[u8]>::to_vec),
            server_name,
            resumed: self.connection.handshake_kind() == Some(HandshakeKind::Resumed),
        }
    }

    fn export(&self, output: &mut [u8], label: &[u8], context: &[u8]) -> bool {
        self.complete
            && self
                .connection
                .export_keying_material(output, label, Some(context))
                .is_ok()
    }
}

/// rustls's alert as a transport error (RFC 9001, section 4.8), with its text as the reason. For
/// some errors rustls names no alert; RFC 8446, section 6.2, says which one fits.
fn transport_error(error: &rustls::Error, alert: Option<AlertDescription>) -> TransportError {
    use rustls::Error;
    let alert = alert.unwrap_or(match error {
        Error::InappropriateMessage { .. } | Error::InappropriateHandshakeMessage { .. } => {
            AlertDescription::UnexpectedMessage
        }
        Error::InvalidMessage(_) => AlertDescription::DecodeError,
        Error::PeerMisbehaved(_) => AlertDescription::IllegalParameter,
        Error::PeerIncompatible(_) => AlertDescription::HandshakeFailure,
        _ => AlertDescription::InternalError,
    });
    TransportError::new(Code::crypto(alert.into()), error.to_string())
}
