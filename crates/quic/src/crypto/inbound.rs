//! Reassembles handshake messages from CRYPTO frames, level by level.
//!
//! Every provider uses TLS's message framing: a type, a 24-bit length, a body (RFC 8446, section
//! 4). Whole messages, passed one at a time, show a session where a level ends.

use crate::{Code, Level, TransportError};

/// Type and length.
const HEADER_LENGTH: usize = 4;

/// The longest accepted message body. It bounds how much a peer can make us buffer; no handshake
/// message of a reasonable certificate chain is that long.
const MAX_BODY_LENGTH: usize = 0xffff;

/// One handshake message.
pub(crate) struct Message {
    /// Its type.
    pub(crate) kind: u8,
    /// The whole message, with type and length.
    pub(super) bytes: Vec<u8>,
}

impl Message {
    /// Returns the bytes after type and length, in the memory of the message.
    pub(crate) fn into_body(mut self) -> Vec<u8> {
        self.bytes.drain(..HEADER_LENGTH.min(self.bytes.len()));
        self.bytes
    }

    /// Returns the bytes after type and length.
    pub(crate) fn body(&self) -> &[u8] {
        self.bytes.get(HEADER_LENGTH..).unwrap_or_default()
    }
}

/// Received handshake bytes that do not form a whole message yet.
pub(crate) struct HandshakeBuffer {
    level: Level,
    buffer: Vec<u8>,
    consumed: usize,
}

impl HandshakeBuffer {
    /// Creates an empty buffer; messages are expected in Initial packets.
    pub(super) fn new() -> Self {
        Self::at(Level::Initial)
    }

    /// Creates an empty buffer; messages are expected in packets of this level.
    pub(crate) fn at(level: Level) -> Self {
        Self {
            level,
            buffer: Vec::new(),
            consumed: 0,
        }
    }

    /// Adds bytes received at `level`.
    ///
    /// # Errors
    /// PROTOCOL_VIOLATION if handshake data is not expected at that level: new data of an earlier
    /// level (RFC 9001, section 4.1.3), or any in 0-RTT packets (RFC 9000, section 12.5).
    pub(crate) fn push(&mut self, level: Level, data: &[u8]) -> Result<(), TransportError> {
        if level != self.level {
            return Err(violation("handshake data at the wrong encryption level"));
        }
        self.buffer.drain(..self.consumed);
        self.consumed = 0;
        self.buffer.extend_from_slice(data);
        Ok(())
    }

    /// Returns the next message, once it is complete.
    ///
    /// # Errors
    /// CRYPTO_BUFFER_EXCEEDED if a message announces more than 65,535 bytes.
    pub(crate) fn next_message(&mut self) -> Result<Option<Message>, TransportError> {
        let pending = self.buffer.get(self.consumed..).unwrap_or_default();
        let Some(&[kind, high, middle, low]) = pending.first_chunk::<HEADER_LENGTH>() else {
            return Ok(None);
        };
        let body_length = u32::from_be_bytes([0, high, middle, low]) as usize;
        if body_length > MAX_BODY_LENGTH {
            return Err(TransportError::new(
                Code::CRYPTO_BUFFER_EXCEEDED,
                "a handshake message is longer than 65,535 bytes",
            ));
        }
        let Some(bytes) = pending.get(..HEADER_LENGTH + body_length) else {
            return Ok(None);
        };
        let bytes = if bytes.len() == self.buffer.len() {
            // The only message.
            std::mem::take(&mut self.buffer)
        } else {
            self.consumed += bytes.len();
            bytes.to_vec()
        };
        Ok(Some(Message { kind, bytes }))
    }

    /// Expects messages at `level` from now on.
    ///
    /// # Errors
    /// PROTOCOL_VIOLATION if bytes of the earlier level are left (RFC 9001, section 4.1.3).
    pub(super) fn raise(&mut self, level: Level) -> Result<(), TransportError> {
        if self.consumed < self.buffer.len() {
            return Err(violation(
                "handshake data continue beyond the end of their encryption level",
            ));
        }
        self.level = level;
        Ok(())
    }
}

fn violation(reason: &'static str) -> TransportError {
    TransportError::new(Code::PROTOCOL_VIOLATION, reason)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn messages(inbound: &mut HandshakeBuffer) -> Vec<Vec<u8>> {
        let mut all = Vec::new();
        while let Some(message) = inbound.next_message().unwrap() {
            all.push(message.bytes);
        }
        all
    }

    proptest! {
        #[test]
        fn messages_are_independent_of_fragmentation(
            bodies in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 1..8),
            sizes in prop::collection::vec(1usize..60, 1..8),
        ) {
            let sent: Vec<Vec<u8>> = bodies
                .iter()
                .map(|body| [&[7, 0, 0, body.len() as u8], &body[..]].concat())
                .collect();
            let stream = sent.concat();
            let mut inbound = HandshakeBuffer::new();
            let mut received = Vec::new();
            let mut rest = &stream[..];
            for size in sizes.iter().cycle() {
                let (piece, later) = rest.split_at((*size).min(rest.len()));
                inbound.push(Level::Initial, piece).unwrap();
                received.extend(messages(&mut inbound));
                rest = later;
                if rest.is_empty() {
                    break;
                }
            }
            prop_assert_eq!(received, sent);
            prop_assert!(inbound.raise(Level::Handshake).is_ok());
        }
    }

    #[test]
    fn encryption_levels_do_not_mix() {
        let mut inbound = HandshakeBuffer::new();
        assert!(inbound.push(Level::ZeroRtt, &[1]).is_err());
        assert!(inbound.push(Level::Handshake, &[1]).is_err());
        inbound.push(Level::Initial, &[2, 0, 0, 0, 8]).unwrap();
        assert_eq!(messages(&mut inbound), [[2, 0, 0, 0]]);
        assert_eq!(
            inbound.raise(Level::Handshake).unwrap_err().code,
            Code::PROTOCOL_VIOLATION
        );
    }

    #[test]
    fn an_oversized_message_is_rejected() {
        let mut inbound = HandshakeBuffer::new();
        inbound.push(Level::Initial, &[1, 1, 0, 0]).unwrap();
        let error = inbound.next_message().map(|_| ()).unwrap_err();
        assert_eq!(error.code, Code::CRYPTO_BUFFER_EXCEEDED);
    }
}
