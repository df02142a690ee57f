//! Builds GSO batches from a connection's packets.

use std::io;
use std::net::SocketAddr;

use quiche::Connection;

use crate::settings::LARGEST_BATCH;

/// The buffer for batches.
pub(super) struct SendBatch {
    memory: Vec<u8>,
    /// A packet behind the newest batch that belongs to another path.
    next_path_packet: Option<Built>,
}

/// A batch in the buffer.
pub(super) struct Built {
    pub(super) from: SocketAddr,
    pub(super) to: SocketAddr,
    start: usize,
    length: usize,
    /// The size of each of its packets; the last one may be shorter.
    pub(super) segment: usize,
}

impl SendBatch {
    pub(super) fn new() -> Self {
        Self {
            memory: vec![0; LARGEST_BATCH],
            next_path_packet: None,
        }
    }

    /// Returns the bytes of a batch; valid until the next batch is built.
    pub(super) fn contents(&self, built: &Built) -> &[u8] {
        let bytes = self.memory.get(built.start..).unwrap_or_default();
        bytes.get(..built.length).unwrap_or_default()
    }

    /// Fills the buffer with packets of one size and one path; `None` if there are none.
    pub(super) fn build(&mut self, connection: &mut Connection) -> io::Result<Option<Built>> {
        if let Some(next_path_packet) = self.next_path_packet.take() {
            return Ok(Some(next_path_packet));
        }
        let mut batch: Option<Built> = None;
        loop {
            let largest = connection.max_send_udp_payload_size();
            let used = batch.as_ref().map_or(0, |batch| batch.length);
            let Some(space) = self
                .memory
                .get_mut(used..used + largest)
                .filter(|_| used + largest <= LARGEST_BATCH)
            else {
                return Ok(batch);
            };
            let (length, info) = match connection.send(space) {
                Ok(sent) => sent,
                Err(quiche::Error::Done) => return Ok(batch),
                Err(error) => return Err(io::Error::other(error)),
            };
            let built = batch.get_or_insert(Built {
                from: info.from,
                to: info.to,
                start: 0,
                length: 0,
                segment: length,
            });
            // Requesting the packets of one path only would cost more per packet.
            if info.from != built.from || info.to != built.to {
                self.next_path_packet = Some(Built {
                    from: info.from,
                    to: info.to,
                    start: used,
                    length,
                    segment: length,
                });
                return Ok(batch);
            }
            built.length += length;
            // A shorter packet ends a batch. A longer one cannot follow: the first packet of a batch is
            // the longest unless the path MTU has just grown, which ends the batch too.
            if length < built.segment || largest > built.segment {
                return Ok(batch);
            }
        }
    }
}
