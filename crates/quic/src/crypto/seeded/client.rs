//! The client's side of the toy handshake.

use std::sync::Arc;

use super::messages::{
    CERTIFICATE, CERTIFICATE_VERIFY, ClientHello, ENCRYPTED_EXTENSIONS, EncryptedExtensions,
    FINISHED, NEW_SESSION_TICKET, NewSessionTicket, SERVER_HELLO, ServerHello, Ticket,
};
use super::schedule::{ILLEGAL_PARAMETER, Schedule, alert, decode_error, unexpected_message};
use super::{Remembered, SeededClient, SeededFault};
use crate::crypto::inbound::Message;
use crate::crypto::{ClientStart, Identity, Session, SessionEvent};
use crate::{Level, Side, TransportError, Version};

/// The next expected message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Awaiting {
    ServerHello,
    EncryptedExtensions,
    Certificate,
    CertificateVerify,
    Finished,
    Tickets,
}

pub(super) struct SeededClientSession {
    client: Arc<SeededClient>,
    schedule: Schedule,
    awaiting: Awaiting,
    server_name: String,
    /// The ticket that was offered.
    ticket: Option<Ticket>,
    early_data: bool,
    resumed: bool,
    server_parameters: Vec<u8>,
    certificate: Option<Vec<u8>>,
}

impl SeededClientSession {
    pub(super) fn new(client: Arc<SeededClient>, nonce: u64, start: &ClientStart<'_>) -> Self {
        let ClientStart {
            version,
            server_name,
            parameters,
            early_data,
            ..
        } = *start;
        let remembered = client.tickets().get(server_name).cloned();
        // A ticket is valid only for the version that it was issued in (RFC 9369, section 5).
        let remembered = remembered.filter(|remembered| remembered.version == version);
        let ticket = remembered.as_ref().map(|remembered| remembered.ticket);
        let early = remembered.filter(|remembered| early_data && remembered.early_data);
        let hello = ClientHello {
            nonce,
            early_data: early.is_some(),
            ticket,
            server_name: server_name.to_owned(),
            parameters: parameters.to_vec(),
        }
        .encode(client.hello_length);
        let mut schedule = Schedule::new(Side::Client, version);
        schedule.note(&hello);
        schedule.send(Level::Initial, hello);
        let early_data = early.is_some();
        if let Some(early) = early {
            schedule.peer_parameters(early.parameters, true);
            schedule.install_early(&early.ticket);
        }
        Self {
            client,
            schedule,
            awaiting: Awaiting::ServerHello,
            server_name: server_name.to_owned(),
            ticket,
            early_data,
            resumed: false,
            server_parameters: Vec::new(),
            certificate: None,
        }
    }

    fn on_message(&mut self, message: &Message) -> Result<(), TransportError> {
        match (self.awaiting, message.kind) {
            (Awaiting::ServerHello, SERVER_HELLO) => self.on_server_hello(message),
            (Awaiting::EncryptedExtensions, ENCRYPTED_EXTENSIONS) => {
                self.on_encrypted_extensions(message)
            }
            (Awaiting::Certificate, CERTIFICATE) => self.on_certificate(message),
            (Awaiting::CertificateVerify, CERTIFICATE_VERIFY) => {
                self.schedule.note(&message.bytes);
                self.awaiting = Awaiting::Finished;
                Ok(())
            }
            (Awaiting::Finished, FINISHED) => self.on_finished(message),
            (Awaiting::Tickets, NEW_SESSION_TICKET) => self.on_ticket(message),
            _ => Err(unexpected_message()),
        }
    }

    fn on_server_hello(&mut self, message: &Message) -> Result<(), TransportError> {
        let hello = ServerHello::decode(message.body()).ok_or_else(decode_error)?;
        self.resumed = hello.resumed;
        if !self.resumed {
            self.ticket = None;
        } else if self.ticket.is_none() {
            return Err(alert(
                ILLEGAL_PARAMETER,
                "the server resumes a session that was not offered",
            ));
        }
        self.schedule.note(&message.bytes);
        self.awaiting = Awaiting::EncryptedExtensions;
        self.schedule.install_handshake(self.ticket.as_ref())
    }

    fn on_encrypted_extensions(&mut self, message: &Message) -> Result<(), TransportError> {
        let extensions = EncryptedExtensions::decode(message.body()).ok_or_else(decode_error)?;
        let accepted = extensions.early_data;
        if accepted && !(self.early_data && self.resumed) {
            return Err(alert(
                ILLEGAL_PARAMETER,
                "the server accepts early data that were not offered",
            ));
        }
        self.schedule.note(&message.bytes);
        if self.early_data {
            self.schedule
                .events
                .push_back(SessionEvent::EarlyData { accepted });
        }
        self.server_parameters.clone_from(&extensions.parameters);
        self.schedule.peer_parameters(extensions.parameters, false);
        self.awaiting = if self.resumed {
            Awaiting::Finished
        } else {
            Awaiting::Certificate
        };
        Ok(())
    }

    fn on_certificate(&mut self, message: &Message) -> Result<(), TransportError> {
        if let Some(SeededFault::Refuse { alert: code }) = self.client.fault {
            return Err(alert(code, "the client refuses the certificate"));
        }
        self.schedule.note(&message.bytes);
        self.certificate = Some(message.body().to_vec());
        self.awaiting = Awaiting::CertificateVerify;
        Ok(())
    }

    fn on_finished(&mut self, message: &Message) -> Result<(), TransportError> {
        self.schedule.check_finished(message.body())?;
        self.schedule.note(&message.bytes);
        let secret = self.schedule.fix_application();
        let wrong = self.client.fault == Some(SeededFault::WrongFinished);
        let finished = self.schedule.finished(wrong);
        self.schedule.note(&finished);
        self.schedule.send(Level::Handshake, finished);
        self.schedule.install_application(secret);
        self.awaiting = Awaiting::Tickets;
        self.schedule.complete()
    }

    fn on_ticket(&mut self, message: &Message) -> Result<(), TransportError> {
        let ticket = NewSessionTicket::decode(message.body()).ok_or_else(decode_error)?;
        self.client.tickets().insert(
            self.server_name.clone(),
            Remembered {
                ticket: ticket.ticket,
                early_data: ticket.early_data,
                version: self.schedule.version,
                parameters: self.server_parameters.clone(),
            },
        );
        Ok(())
    }
}

impl Session for SeededClientSession {
    fn read(&mut self, level: Level, data: &[u8]) -> Result<(), TransportError> {
        self.schedule.inbound.push(level, data)?;
        while let Some(message) = self.schedule.inbound.next_message()? {
            self.on_message(&message)?;
        }
        Ok(())
    }

    fn set_version(&mut self, version: Version) {
        self.schedule.version = version;
    }

    fn poll(&mut self) -> Option<SessionEvent> {
        self.schedule.events.pop_front()
    }

    fn identity(&self) -> Identity {
        Identity {
            peer_certificates: self.certificate.iter().cloned().collect(),
            application_protocol: None,
            server_name: Some(self.server_name.clone()),
            resumed: self.resumed,
            expires: None,
        }
    }

    fn export(&self, output: &mut [u8], label: &[u8], context: &[u8]) -> bool {
        self.schedule.export(output, label, context)
    }
}
