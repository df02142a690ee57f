//! Sending what a connection has to send, in GSO batches.

use std::io;

use quiche::Connection;

use crate::settings::LARGEST_BATCH;
use crate::udp::Udp;

/// The buffer in which batches are built.
pub(super) struct Outgoing {
    memory: Vec<u8>,
}

impl Outgoing {
    pub(super) fn new() -> Self {
        Self {
            memory: vec![0; LARGEST_BATCH],
        }
    }

    /// Sends all that the connection allows.
    pub(super) async fn flush(&mut self, udp: &Udp, connection: &mut Connection) -> io::Result<()> {
        loop {
            let Some(batch) = self.build(connection)? else {
                return Ok(());
            };
            let contents = self.memory.get(..batch.length).unwrap_or_default();
            udp.send(batch.destination, contents, batch.segment).await?;
        }
    }

    /// Fills the buffer with packets of one size, the last one possibly shorter.
    fn build(&mut self, connection: &mut Connection) -> io::Result<Option<Built>> {
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
                destination: info.to,
                length: 0,
                segment: length,
            });
            built.length += length;
            // A shorter packet ends a batch. A longer one cannot follow: the first of a batch is
            // the longest unless the path's size has just grown, which ends the batch too.
            if length < built.segment || largest > built.segment {
                return Ok(batch);
            }
        }
    }
}

/// A batch in the buffer.
struct Built {
    destination: std::net::SocketAddr,
    length: usize,
    segment: usize,
}
