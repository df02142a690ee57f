//! The application's data: each byte is a function of its offset.

use std::collections::BTreeSet;

use bytes::Bytes;
use weir_dcudp::{Connection, DataKind, ReadError, WriteError};

/// The application at one end.
pub(crate) struct Flow {
    kind: DataKind,
    /// Bytes or messages to send, and those sent so far.
    pub(crate) to_send: u64,
    pub(crate) sent: u64,
    /// Whether the data ends after them.
    pub(crate) finishes: bool,
    /// Whether it reads at all.
    pub(crate) reads: bool,
    /// Bytes or messages received, each verified.
    pub(crate) received: u64,
    /// Whether the peer's data has ended.
    pub(crate) ended: bool,
    /// Messages received out of order, and the next one in order.
    early: BTreeSet<u64>,
    next: u64,
    /// Number of messages received out of order.
    pub(crate) overtaken: u64,
    buffer: Vec<u8>,
}

/// Returns the byte at an offset of every stream.
fn byte_at(place: u64) -> u8 {
    (place ^ place >> 8 ^ place >> 16).wrapping_mul(0x9d) as u8
}

/// Returns the length of a message: from less than one packet to many.
fn length_of(message: u64) -> usize {
    8 + (message * 7919 % 4001) as usize
}

/// Every third message is unordered.
fn is_in_order(message: u64) -> bool {
    message % 3 != 1
}

impl Flow {
    pub(crate) fn new(kind: DataKind) -> Self {
        Self {
            kind,
            to_send: 0,
            sent: 0,
            finishes: false,
            reads: true,
            received: 0,
            ended: false,
            early: BTreeSet::new(),
            next: 0,
            overtaken: 0,
            buffer: vec![0; 16 * 1024],
        }
    }

    pub(crate) fn run(&mut self, connection: &mut Connection) {
        match self.kind {
            DataKind::Stream => self.write(connection),
            DataKind::Messages => self.write_messages(connection),
        }
        if self.finishes && self.sent == self.to_send {
            connection.finish();
        }
        if !self.reads {
            return;
        }
        let error = match self.kind {
            DataKind::Stream => self.read(connection),
            DataKind::Messages => self.read_messages(connection),
        };
        self.ended |= error == ReadError::Ended;
    }

    fn write(&mut self, connection: &mut Connection) {
        while self.sent < self.to_send {
            let most = self.buffer.len() as u64 - self.sent % 1000;
            let length = (self.to_send - self.sent).min(most) as usize;
            for (place, byte) in (self.sent..).zip(&mut self.buffer[..length]) {
                *byte = byte_at(place);
            }
            // Some data are copied, and some stay where they are.
            let written = match length % 3 {
                0 => connection.write(&self.buffer[..length]),
                _ => connection.write_bytes(&mut Bytes::copy_from_slice(&self.buffer[..length])),
            };
            match written {
                Ok(taken) => self.sent += taken as u64,
                Err(WriteError::Blocked | WriteError::Closed(_)) => return,
                Err(error) => panic!("{error}"),
            }
        }
    }

    fn read(&mut self, connection: &mut Connection) -> ReadError {
        let mut chunks = [const { Bytes::new() }; 4];
        loop {
            let most = 1 + self.received as usize % 5000;
            let length = if self.received.is_multiple_of(2) {
                connection.read(&mut self.buffer)
            } else {
                connection.read_chunks(&mut chunks, most).map(|count| {
                    let data = chunks[..count].concat();
                    assert!((1..=most).contains(&data.len()), "of {most}");
                    self.buffer[..data.len()].copy_from_slice(&data);
                    data.len()
                })
            };
            match length {
                Ok(length) => {
                    for (place, byte) in (self.received..).zip(&self.buffer[..length]) {
                        assert_eq!(*byte, byte_at(place), "at {place}");
                    }
                    self.received += length as u64;
                }
                Err(error) => return error,
            }
        }
    }

    fn write_messages(&mut self, connection: &mut Connection) {
        while self.sent < self.to_send {
            let mut message = vec![self.sent as u8; length_of(self.sent)];
            message[..8].copy_from_slice(&self.sent.to_be_bytes());
            match connection.write_message(&message, is_in_order(self.sent)) {
                Ok(()) => self.sent += 1,
                Err(WriteError::Blocked | WriteError::Closed(_)) => return,
                // Not before the handshake is complete.
                Err(WriteError::TooLarge { .. }) if !connection.is_established() => return,
                Err(error) => panic!("{error}"),
            }
        }
    }

    fn read_messages(&mut self, connection: &mut Connection) -> ReadError {
        loop {
            self.buffer.clear();
            match connection.read_message(&mut self.buffer) {
                Ok(length) => self.check_message(length),
                Err(error) => return error,
            }
        }
    }

    fn check_message(&mut self, length: usize) {
        let number = u64::from_be_bytes(*self.buffer.first_chunk().expect("a number"));
        assert_eq!(length, length_of(number), "message {number}");
        assert!(
            self.buffer[8..length]
                .iter()
                .all(|byte| *byte == number as u8)
        );
        assert!(
            number >= self.next && self.early.insert(number),
            "{number} again"
        );
        if number != self.next {
            assert!(!is_in_order(number), "{number} before its turn");
            self.overtaken += 1;
        }
        while self.early.remove(&self.next) {
            self.next += 1;
        }
        self.received += 1;
    }
}
