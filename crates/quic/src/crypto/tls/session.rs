//! A TLS handshake: a rustls connection, with its output in the order that the engine needs.

use std::collections::VecDeque;

use std::sync::Arc;

use rustls::quic::{ClientConnection, Connection, KeyChange as TlsKeyChange};
use rustls::{AlertDescription, CommonState, HandshakeKind};

use super::compatible::{Secrets, Stage};
use super::keys::TlsKeyUpdates;
use super::{TlsServer, client_hello, expiry};
use crate::crypto::inbound::{HandshakeBuffer, Message};
use crate::crypto::{Answerer, Identity, KeyChange, KeyUpdates, Keys, Session, SessionEvent};
use crate::{Code, Level, TransportError, Version};

/// The messages after which the peer's transport parameters are known (RFC 8446, section 4).
const CLIENT_HELLO: u8 = 1;
const NEW_SESSION_TICKET: u8 = 4;
const ENCRYPTED_EXTENSIONS: u8 = 8;

/// A TLS handshake in progress, and the session after it.
pub(super) struct TlsSession {
    /// `None` on a server that waits for a ClientHello: before it the version is unknown, and the
    /// memory of a rustls connection is not spent.
    connection: Option<Connection>,
    /// The start parameters of such a server.
    waiting: Option<Waiting>,
    /// The secrets of a client whose server may answer in another version.
    secrets: Option<Arc<Secrets>>,
    /// The version of the server's answer, if it is not the one of the rustls connection.
    other_version: Option<Version>,
    /// The server name that a client requested.
    asked_for: Option<String>,
    inbound: HandshakeBuffer,
    /// The send level of rustls's next bytes.
    write_level: Level,
    events: VecDeque<SessionEvent>,
    /// Whether a client may send early data.
    early_data: bool,
    complete: bool,
}

/// A server that waits for a ClientHello.
struct Waiting {
    server: Arc<TlsServer>,
    version: Version,
    answer: Answerer,
}

impl TlsSession {
    /// Creates a client session; the ClientHello is ready to be sent.
    pub(super) fn client(
        connection: ClientConnection,
        server_name: &str,
        secrets: Option<Arc<Secrets>>,
    ) -> Self {
        let mut session = Self::new(Some(connection.into()), None);
        session.secrets = secrets;
        session.asked_for = Some(server_name.to_owned());
        session.take_messages();
        session.offer_early_data();
        session
    }

    /// Creates a server session, which waits for a ClientHello.
    pub(super) fn server(server: Arc<TlsServer>, version: Version, answer: Answerer) -> Self {
        let waiting = Waiting {
            server,
            version,
            answer,
        };
        Self::new(None, Some(waiting))
    }

    fn new(connection: Option<Connection>, waiting: Option<Waiting>) -> Self {
        Self {
            connection,
            waiting,
            secrets: None,
            other_version: None,
            asked_for: None,
            inbound: HandshakeBuffer::new(),
            write_level: Level::Initial,
            events: VecDeque::new(),
            early_data: false,
            complete: false,
        }
    }

    /// Offers early data: a client that resumes has keys for it before the server answers. Until
    /// then rustls returns the transport parameters of the resumed session.
    fn offer_early_data(&mut self) {
        let Some(connection) = &self.connection else {
            return;
        };
        let Some(keys) = connection.zero_rtt_keys() else {
            return;
        };
        let remembered = connection.quic_transport_parameters();
        self.events.push_back(SessionEvent::PeerParameters {
            encoded: remembered.unwrap_or_default().to_vec(),
            remembered: true,
        });
        self.events
            .push_back(SessionEvent::Keys(KeyChange::ZeroRtt(keys.into())));
        self.early_data = true;
    }

    /// Handles a ClientHello: chooses the version and creates the rustls connection.
    fn answer(&mut self, waiting: Waiting, message: &Message) -> Result<(), TransportError> {
        let answer = (waiting.answer)(&client_hello::offer(message.body()))?;
        if answer.version != waiting.version {
            let change = SessionEvent::Version(answer.version);
            self.events.push_back(change);
        }
        let connection = waiting
            .server
            .connection(answer.version, answer.parameters)
            .map_err(|error| TransportError::new(Code::INTERNAL_ERROR, error.to_string()))?;
        self.connection = Some(connection.into());
        Ok(())
    }

    fn on_message(&mut self, message: &Message) -> Result<(), TransportError> {
        if let Some(waiting) = self.waiting.take_if(|_| message.kind == CLIENT_HELLO) {
            self.answer(waiting, message)?;
        }
        let Some(connection) = &mut self.connection else {
            let alert = Code::crypto(AlertDescription::UnexpectedMessage.into());
            return Err(TransportError::new(alert, "a ClientHello was expected"));
        };
        if self.other_version.is_some() && message.kind == NEW_SESSION_TICKET {
            // The ticket belongs to this version (RFC 9369, section 5), and rustls would store it
            // for the other one.
            return Ok(());
        }
        if let Err(error) = connection.read_hs(&message.bytes) {
            return Err(transport_error(&error, connection.alert()));
        }
        self.after_message(message.kind)
    }

    /// Handles a message of this type that rustls has accepted.
    fn after_message(&mut self, kind: u8) -> Result<(), TransportError> {
        match (&self.connection, kind) {
            (Some(Connection::Client(client)), ENCRYPTED_EXTENSIONS) => {
                if self.early_data {
                    let accepted = client.is_early_data_accepted();
                    self.events.push_back(SessionEvent::EarlyData { accepted });
                }
                self.report_parameters();
            }
            (Some(Connection::Server(server)), CLIENT_HELLO) => {
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
        let is_handshaking = self
            .connection
            .as_ref()
            .is_none_or(|tls| tls.is_handshaking());
        if !self.complete && !is_handshaking {
            self.complete = true;
            self.inbound.raise(Level::OneRtt)?;
            self.events.push_back(SessionEvent::Complete);
        }
        Ok(())
    }

    /// Reports the peer's parameters from its handshake message. There are none yet after a
    /// ClientHello that rustls answers with a HelloRetryRequest.
    fn report_parameters(&mut self) {
        let connection = self.connection.as_ref();
        if let Some(encoded) = connection.and_then(Connection::quic_transport_parameters) {
            self.events.push_back(SessionEvent::PeerParameters {
                encoded: encoded.to_vec(),
                remembered: false,
            });
        }
    }

    /// Takes rustls's output and the keys that follow it. Returns whether the handshake keys were
    /// included.
    fn take_messages(&mut self) -> bool {
        let mut handshake_keys = false;
        loop {
            let Some(connection) = &mut self.connection else {
                return handshake_keys;
            };
            let mut bytes = Vec::new();
            let change = connection.write_hs(&mut bytes);
            if !bytes.is_empty() {
                self.events
                    .push_back(SessionEvent::Send(self.write_level, bytes));
            }
            let keys = match change {
                Some(TlsKeyChange::Handshake { keys }) => {
                    handshake_keys = true;
                    self.write_level = Level::Handshake;
                    let other = self.other_keys(Stage::Handshake);
                    KeyChange::Handshake(other.map_or_else(|| keys.into(), |(keys, _)| keys))
                }
                Some(TlsKeyChange::OneRtt { keys, next }) => {
                    self.write_level = Level::OneRtt;
                    let (keys, updates) = self
                        .other_keys(Stage::OneRtt)
                        .unwrap_or_else(|| (keys.into(), Box::new(TlsKeyUpdates(next))));
                    KeyChange::OneRtt(keys, updates)
                }
                None => return handshake_keys,
            };
            self.events.push_back(SessionEvent::Keys(keys));
        }
    }

    /// Returns the keys of this stage if the server's version is not the one of the rustls
    /// connection.
    fn other_keys(&self, stage: Stage) -> Option<(Keys, Box<dyn KeyUpdates>)> {
        let version = self.other_version?;
        let suite = self.connection.as_ref()?.negotiated_cipher_suite()?;
        self.secrets.as_ref()?.keys(stage, suite.suite(), version)
    }
}

impl Session for TlsSession {
    fn read(&mut self, level: Level, data: &[u8]) -> Result<(), TransportError> {
        self.inbound.push(level, data)?;
        while let Some(message) = self.inbound.next_message()? {
            self.on_message(&message)?;
        }
        Ok(())
    }

    fn set_version(&mut self, version: Version) {
        self.other_version = Some(version);
    }

    fn poll(&mut self) -> Option<SessionEvent> {
        self.events.pop_front()
    }

    fn identity(&self) -> Identity {
        let Some(connection) = &self.connection else {
            return Identity::default();
        };
        let server_name = match connection {
            Connection::Client(_) => self.asked_for.clone(),
            Connection::Server(server) => server.server_name().map(str::to_owned),
        };
        identity(connection, server_name)
    }

    fn export(&self, output: &mut [u8], label: &[u8], context: &[u8]) -> bool {
        let Some(connection) = self.connection.as_ref().filter(|_| self.complete) else {
            return false;
        };
        connection
            .export_keying_material(output, label, Some(context))
            .is_ok()
    }
}

/// What the peer has shown in a handshake.
fn identity(connection: &CommonState, server_name: Option<String>) -> Identity {
    let certificates = connection.peer_certificates().unwrap_or_default();
    Identity {
        peer_certificates: certificates.iter().map(|der| der.to_vec()).collect(),
        application_protocol: connection.alpn_protocol().map(<[u8]>::to_vec),
        server_name,
        expires: certificates.first().and_then(|own| expiry::of(own)),
        resumed: connection.handshake_kind() == Some(HandshakeKind::Resumed),
    }
}

/// The client of a connection by TLS over TCP, as a server has it beside QUIC.
impl From<&rustls::ServerConnection> for Identity {
    fn from(connection: &rustls::ServerConnection) -> Self {
        identity(connection, connection.server_name().map(str::to_owned))
    }
}

/// Converts rustls's alert to a transport error (RFC 9001, section 4.8), with its text as the
/// reason. rustls has no alert for some errors; RFC 8446, section 6.2, determines it.
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
