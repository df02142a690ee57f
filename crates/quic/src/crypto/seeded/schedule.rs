//! The common part of both sides of a toy handshake: the transcript, a key schedule shaped like TLS
//! 1.3's (RFC 8446, section 7.1), and the events.

use std::collections::VecDeque;

use super::keys::{SeededKeyUpdates, direction_keys, in_version, level_keys};
use super::messages::{Proof, Ticket, finished};
use super::mixing::Secret;
use crate::crypto::inbound::HandshakeBuffer;
use crate::crypto::{KeyChange, SessionEvent};
use crate::{Code, Level, Side, TransportError, Version};

const HANDSHAKE: u64 = 1;
const EARLY: u64 = 2;
const APPLICATION: u64 = 3;
const FINISHED: u64 = 4;
const EXPORT: u64 = 6;

/// TLS alerts (RFC 8446, section 6).
pub(super) const UNEXPECTED_MESSAGE: u8 = 10;
pub(super) const ILLEGAL_PARAMETER: u8 = 47;
pub(super) const DECODE_ERROR: u8 = 50;
pub(super) const DECRYPT_ERROR: u8 = 51;

/// Converts a TLS alert to an error.
pub(super) fn alert(alert: u8, reason: &'static str) -> TransportError {
    TransportError::new(Code::crypto(alert), reason)
}

pub(super) fn unexpected_message() -> TransportError {
    alert(UNEXPECTED_MESSAGE, "a handshake message out of order")
}

pub(super) fn decode_error() -> TransportError {
    alert(DECODE_ERROR, "a handshake message cannot be read")
}

/// The state that both sides keep identically.
pub(super) struct Schedule {
    side: Side,
    /// The version that the keys are for.
    pub(super) version: Version,
    pub(super) inbound: HandshakeBuffer,
    pub(super) events: VecDeque<SessionEvent>,
    transcript: Secret,
    /// The secret of the handshake keys, once both nonces are known.
    handshake: Secret,
    /// The secret of the 1-RTT keys, once the server's Finished is known.
    application: Option<Secret>,
    complete: bool,
}

impl Schedule {
    pub(super) fn new(side: Side, version: Version) -> Self {
        Self {
            side,
            version,
            inbound: HandshakeBuffer::new(),
            events: VecDeque::new(),
            transcript: Secret::new(0, 2),
            handshake: Secret::new(0, 3),
            application: None,
            complete: false,
        }
    }

    /// Adds a message of either side to the transcript.
    pub(super) fn note(&mut self, message: &[u8]) {
        self.transcript = self.transcript.absorb(message);
    }

    /// Sends our messages.
    pub(super) fn send(&mut self, level: Level, messages: Vec<u8>) {
        self.events.push_back(SessionEvent::Send(level, messages));
    }

    pub(super) fn peer_parameters(&mut self, encoded: Vec<u8>, remembered: bool) {
        self.events.push_back(SessionEvent::PeerParameters {
            encoded,
            remembered,
        });
    }

    /// Installs the keys of early data; the transcript ends with the ClientHello.
    pub(super) fn install_early(&mut self, ticket: &Ticket) {
        let secret = ticket.secret().derive(EARLY).join(self.transcript);
        let secret = in_version(secret, self.version);
        self.keys(KeyChange::ZeroRtt(direction_keys(secret, Side::Client)));
    }

    /// Installs the handshake keys; the transcript ends with the ServerHello. From here on the
    /// peer's messages arrive at the handshake level.
    pub(super) fn install_handshake(
        &mut self,
        ticket: Option<&Ticket>,
    ) -> Result<(), TransportError> {
        let resumed = ticket.map_or(Secret::new(0, 4), Ticket::secret);
        self.handshake = resumed.derive(HANDSHAKE).join(self.transcript);
        let secret = in_version(self.handshake, self.version);
        self.keys(KeyChange::Handshake(level_keys(secret, self.side)));
        self.inbound.raise(Level::Handshake)
    }

    /// Derives the 1-RTT secret; the transcript ends with the server's Finished.
    pub(super) fn fix_application(&mut self) -> Secret {
        let secret = self.handshake.derive(APPLICATION).join(self.transcript);
        self.application = Some(secret);
        secret
    }

    /// Installs the 1-RTT keys.
    pub(super) fn install_application(&mut self, secret: Secret) {
        let side = self.side;
        let secret = in_version(secret, self.version);
        self.keys(KeyChange::OneRtt(
            level_keys(secret, side),
            Box::new(SeededKeyUpdates { secret, side }),
        ));
    }

    fn keys(&mut self, change: KeyChange) {
        self.events.push_back(SessionEvent::Keys(change));
    }

    /// Returns the expected content of `sender`'s Finished at this point of the transcript.
    pub(super) fn proof(&self, sender: Side) -> Proof {
        let mut proof = Proof::default();
        self.handshake
            .derive(FINISHED + sender as u64)
            .join(self.transcript)
            .expand(&mut proof);
        proof
    }

    /// Returns our Finished, with a wrong proof if `wrong`.
    pub(super) fn finished(&self, wrong: bool) -> Vec<u8> {
        let mut proof = self.proof(self.side);
        proof[0] ^= u8::from(wrong);
        finished(proof)
    }

    /// Checks the peer's Finished.
    pub(super) fn check_finished(&self, body: &[u8]) -> Result<(), TransportError> {
        if body == self.proof(self.side.other()) {
            Ok(())
        } else {
            Err(alert(DECRYPT_ERROR, "the Finished message is wrong"))
        }
    }

    /// Completes the handshake; from here on messages arrive at the 1-RTT level.
    pub(super) fn complete(&mut self) -> Result<(), TransportError> {
        self.inbound.raise(Level::OneRtt)?;
        self.complete = true;
        self.events.push_back(SessionEvent::Complete);
        Ok(())
    }

    pub(super) fn export(&self, output: &mut [u8], label: &[u8], context: &[u8]) -> bool {
        let Some(secret) = self.application.filter(|_| self.complete) else {
            return false;
        };
        secret
            .derive(EXPORT)
            .absorb(label)
            .absorb(context)
            .expand(output);
        true
    }
}
