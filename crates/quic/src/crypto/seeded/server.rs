//! The server's side of the toy handshake.

use std::sync::Arc;

use super::messages::{
    CLIENT_HELLO, ClientHello, EncryptedExtensions, FINISHED, NewSessionTicket, ServerHello,
    Ticket, certificate, certificate_verify,
};
use super::schedule::{Schedule, alert, decode_error, unexpected_message};
use super::{SeededEarlyData, SeededFault, SeededServer, check_answer};
use crate::crypto::inbound::Message;
use crate::crypto::{Answerer, ClientOffer, Identity, Session, SessionEvent};
use crate::{Level, Side, TransportError, Version};

/// The next expected message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Awaiting {
    ClientHello,
    Finished,
    Nothing,
}

pub(super) struct SeededServerSession {
    server: Arc<SeededServer>,
    schedule: Schedule,
    awaiting: Awaiting,
    nonce: u64,
    /// Present until the client's first message arrives.
    answer: Option<Answerer>,
    parameters: Vec<u8>,
    server_name: Option<String>,
    resumed: bool,
}

impl SeededServerSession {
    pub(super) fn new(
        server: Arc<SeededServer>,
        version: Version,
        nonce: u64,
        answer: Answerer,
    ) -> Self {
        Self {
            server,
            schedule: Schedule::new(Side::Server, version),
            awaiting: Awaiting::ClientHello,
            nonce,
            answer: Some(answer),
            parameters: Vec::new(),
            server_name: None,
            resumed: false,
        }
    }

    fn on_message(&mut self, message: &Message) -> Result<(), TransportError> {
        match (self.awaiting, message.kind) {
            (Awaiting::ClientHello, CLIENT_HELLO) => self.on_client_hello(message),
            (Awaiting::Finished, FINISHED) => self.on_finished(message),
            _ => Err(unexpected_message()),
        }
    }

    fn on_client_hello(&mut self, message: &Message) -> Result<(), TransportError> {
        if let Some(SeededFault::Refuse { alert: code }) = self.server.fault {
            return Err(alert(code, "the server refuses the handshake"));
        }
        let hello = ClientHello::decode(message.body()).ok_or_else(decode_error)?;
        self.answer(&hello)?;
        let version = self.schedule.version;
        let ticket = hello
            .ticket
            .filter(|ticket| ticket.is_of(self.server.seed, version));
        let early_data = ticket
            .filter(|_| hello.early_data && self.server.early_data == SeededEarlyData::Accept);
        self.resumed = ticket.is_some();
        self.server_name = Some(hello.server_name);

        let schedule = &mut self.schedule;
        schedule.note(&message.bytes);
        schedule.peer_parameters(hello.parameters, false);
        if let Some(ticket) = &early_data {
            schedule.install_early(ticket);
        }
        let server_hello = ServerHello {
            nonce: self.nonce,
            resumed: self.resumed,
        }
        .encode();
        schedule.note(&server_hello);
        schedule.send(Level::Initial, server_hello);
        schedule.install_handshake(ticket.as_ref())?;
        self.send_flight(early_data.is_some());
        self.awaiting = Awaiting::Finished;
        Ok(())
    }

    /// Chooses version and parameters.
    fn answer(&mut self, hello: &ClientHello) -> Result<(), TransportError> {
        let answer = self.answer.take().ok_or_else(unexpected_message)?;
        let answer = answer(&ClientOffer {
            parameters: &hello.parameters,
            early_data: hello.early_data,
        })?;
        check_answer(&answer.parameters)?;
        self.parameters = answer.parameters;
        if answer.version != self.schedule.version {
            self.schedule.version = answer.version;
            let change = SessionEvent::Version(answer.version);
            self.schedule.events.push_back(change);
        }
        Ok(())
    }

    /// Sends EncryptedExtensions to Finished, and installs the 1-RTT keys.
    fn send_flight(&mut self, early_data: bool) {
        let schedule = &mut self.schedule;
        let mut flight = EncryptedExtensions {
            early_data,
            parameters: self.parameters.clone(),
        }
        .encode();
        schedule.note(&flight);
        if !self.resumed {
            for message in [
                certificate(self.server.certificate_length),
                certificate_verify(),
            ] {
                schedule.note(&message);
                flight.extend_from_slice(&message);
            }
        }
        let finished = schedule.finished(self.server.fault == Some(SeededFault::WrongFinished));
        schedule.note(&finished);
        flight.extend_from_slice(&finished);
        schedule.send(Level::Handshake, flight);
        let secret = schedule.fix_application();
        schedule.install_application(secret);
    }

    fn on_finished(&mut self, message: &Message) -> Result<(), TransportError> {
        self.schedule.check_finished(message.body())?;
        let ticket = NewSessionTicket {
            ticket: Ticket::issue(self.server.seed, self.schedule.version, self.nonce),
            early_data: self.server.early_data != SeededEarlyData::Never,
        };
        self.schedule.send(Level::OneRtt, ticket.encode());
        self.awaiting = Awaiting::Nothing;
        self.schedule.complete()
    }
}

impl Session for SeededServerSession {
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
            server_name: self.server_name.clone(),
            resumed: self.resumed,
            ..Identity::default()
        }
    }

    fn export(&self, output: &mut [u8], label: &[u8], context: &[u8]) -> bool {
        self.schedule.export(output, label, context)
    }
}
