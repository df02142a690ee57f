//! The data that the application of a flow sends and receives on a connection's stream.

use bytes::Bytes;
use weir_dcudp::{Connection, WriteError};
use weir_units::ByteSize;

/// The content of all messages: no application reads it.
static NOTHING: [u8; 65_536] = [0; 65_536];

/// The data of one end of a connection.
#[derive(Debug, Default)]
pub(super) struct Stream {
    /// Bytes that the connection has not taken yet; the largest number means endless.
    left: u64,
    /// Whether the application sends no more.
    ends: bool,
    /// Whether the connection's stream is finished.
    has_ended: bool,
    /// Whether the connection had no room when it was last written to.
    is_blocked: bool,
    /// Bytes delivered to the application, in order.
    pub(super) delivered: u64,
}

impl Stream {
    /// Adds data to send.
    pub(super) fn send(&mut self, size: ByteSize) {
        self.left = self.left.saturating_add(size.bytes());
    }

    /// Ends the stream after the data so far.
    pub(super) fn finish(&mut self) {
        self.ends = true;
    }

    /// Records that the connection has room again.
    pub(super) fn on_writable(&mut self) {
        self.is_blocked = false;
    }

    /// Reads all available data from the connection.
    pub(super) fn read(&mut self, connection: &mut Connection) {
        let mut chunks = [const { Bytes::new() }; 16];
        while let Ok(count) = connection.read_chunks(&mut chunks, usize::MAX) {
            let lengths = chunks.iter().take(count).map(|chunk| chunk.len() as u64);
            self.delivered += lengths.sum::<u64>();
        }
    }

    /// Writes as much as the connection takes.
    pub(super) fn write(&mut self, connection: &mut Connection) {
        while self.left > 0 && !self.is_blocked {
            let length = self.left.min(NOTHING.len() as u64) as usize;
            match connection.write(&NOTHING[..length]) {
                Ok(written) if self.left < u64::MAX => self.left -= written as u64,
                Ok(_) => {}
                Err(WriteError::Blocked) => self.is_blocked = true,
                // The connection has ended, and its data are discarded.
                Err(_) => self.left = 0,
            }
        }
        if self.left == 0 && self.ends && !self.has_ended {
            self.has_ended = true;
            connection.finish();
        }
    }
}
