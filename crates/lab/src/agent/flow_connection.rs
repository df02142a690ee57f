//! A connection between the two ends of a flow over any transport. It carries one-way data, or requests
//! and responses.
//!
//! It sends zeros. It counts received bytes and discards them.

use std::io;
use std::sync::Arc;

use bytes::Bytes;
use weir_traffic::transport::{Connection, StreamKind, receive_exactly, send_all};

use super::meter::{FlowMeter, ProbeGuard};
use super::payload::BLOCK;
use crate::control::FlowFailure;

/// A connection. Dropping it before [`FlowConnection::close`] aborts it, with unsent data.
#[derive(Debug)]
pub(super) struct FlowConnection<C: Connection> {
    connection: C,
    meter: Arc<FlowMeter>,
    closed: bool,
    /// Dropped after the connection, so that its counters are read last.
    _watch: ProbeGuard,
}

impl<C: Connection> FlowConnection<C> {
    /// Wraps a connection and starts to count its traffic.
    pub(super) fn new(connection: C, meter: &Arc<FlowMeter>) -> Result<Self, FlowFailure> {
        let probe = connection.probe().map_err(|error| FlowFailure::Order {
            problem: format!("no descriptor is left: {error}"),
        })?;
        meter.update_outcome(|outcome| outcome.congestion = connection.congestion());
        let watch = meter.watch(probe, connection.is_without_handshake());
        Ok(Self {
            connection,
            meter: meter.clone(),
            closed: false,
            _watch: watch,
        })
    }

    /// Opens one-way data as the sender.
    pub(super) async fn open_one_way(&mut self) -> Result<(), FlowFailure> {
        lost(SENDING, self.connection.open(StreamKind::OneWay).await)
    }

    /// Sends one-way data: `head`, then `count` bytes, and flushes.
    pub(super) async fn send(&mut self, head: &[u8], count: u64) -> Result<(), FlowFailure> {
        // One write: a small segment of its own would use up a segment of the initial window.
        let beside = block(count);
        let first: Bytes = [head, &beside].concat().into();
        lost(SENDING, send_all(&mut self.connection, first).await)?;
        self.send_zeros(count - beside.len() as u64).await?;
        lost(SENDING, self.connection.flush().await)
    }

    /// Finishes one-way data: waits until the peer has received all of it.
    pub(super) async fn finish(mut self) -> Result<(), FlowFailure> {
        lost(SENDING, self.connection.finish().await)?;
        self.closed = lost(SENDING, self.connection.closed_by_peer().await)?;
        if self.closed {
            return Ok(());
        }
        Err(FlowFailure::Protocol {
            problem: "one-way data are answered".to_owned(),
        })
    }

    /// Accepts one-way data as the receiver.
    pub(super) async fn accept_one_way(&mut self) -> Result<(), FlowFailure> {
        let accepted = self.connection.accept(StreamKind::OneWay).await;
        if lost(RECEIVING, accepted)? {
            Ok(())
        } else {
            lost(RECEIVING, Err(io::ErrorKind::UnexpectedEof.into()))
        }
    }

    /// Receives the head of one-way data.
    pub(super) async fn receive_head<const LENGTH: usize>(
        &mut self,
    ) -> Result<[u8; LENGTH], FlowFailure> {
        let mut head = [0; LENGTH];
        let received = receive_exactly(&mut self.connection, &mut head).await;
        if !lost(RECEIVING, received)? {
            return lost(RECEIVING, Err(io::ErrorKind::UnexpectedEof.into()));
        }
        self.meter.count_delivered(LENGTH as u64);
        Ok(head)
    }

    /// Receives one-way data up to the end; returns the number of bytes.
    pub(super) async fn receive_all(&mut self) -> Result<u64, FlowFailure> {
        let mut total = 0;
        loop {
            match self.receive(BLOCK.len()).await? {
                0 => return Ok(total),
                count => total += count,
            }
        }
    }

    /// Sends a request and waits for the complete response.
    pub(super) async fn request(&mut self, request: u64, response: u64) -> Result<(), FlowFailure> {
        lost(ASKING, self.connection.open(StreamKind::TwoWay).await)?;
        self.send_message(request).await?;
        if self.receive_message(response).await? {
            Ok(())
        } else {
            lost(ASKING, Err(io::ErrorKind::UnexpectedEof.into()))
        }
    }

    /// Receives a complete request; returns `false` if the peer has closed the connection instead.
    pub(super) async fn receive_request(&mut self, request: u64) -> Result<bool, FlowFailure> {
        let accepted = self.connection.accept(StreamKind::TwoWay).await;
        let heard = lost(ANSWERING, accepted)? && self.receive_message(request).await?;
        self.closed = !heard;
        Ok(heard)
    }

    /// Answers the request that was received last.
    pub(super) async fn respond(&mut self, response: u64) -> Result<(), FlowFailure> {
        self.send_message(response).await
    }

    /// Closes the connection gracefully: the peer receives the end of data.
    pub(super) async fn close(mut self) {
        // Closing also succeeds if the peer has aborted the connection already.
        self.closed = self.connection.close().await.is_ok();
    }

    /// Closes the connection as its client, after the last response has arrived.
    pub(super) async fn close_as_client(mut self) {
        self.closed = self.connection.close_as_client().await.is_ok();
    }

    /// The server's side of [`FlowConnection::close_as_client`], after the last response has been handed over.
    pub(super) async fn close_as_server(mut self) {
        self.closed = self.connection.close_as_server().await.is_ok();
    }

    /// Receives and counts up to `most` bytes. Returns their number, 0 at the stream's end.
    async fn receive(&mut self, most: usize) -> Result<u64, FlowFailure> {
        let received = self.connection.receive(most, &mut |_| {}).await;
        let count = lost(RECEIVING, received)? as u64;
        self.meter.count_delivered(count);
        Ok(count)
    }

    /// Receives a message of `size` bytes; returns `false` if the stream ends before it begins.
    async fn receive_message(&mut self, size: u64) -> Result<bool, FlowFailure> {
        let mut left = size;
        while left > 0 {
            let most = usize::try_from(left).unwrap_or(usize::MAX);
            match self.receive(most.min(BLOCK.len())).await? {
                0 if left == size => return Ok(false),
                0 => {
                    let problem = format!("a message of {size} bytes has another size");
                    return Err(FlowFailure::Protocol { problem });
                }
                count => left = left.saturating_sub(count),
            }
        }
        let ended = self.connection.message_ended().await;
        lost(RECEIVING, ended).map(|()| true)
    }

    async fn send_message(&mut self, size: u64) -> Result<(), FlowFailure> {
        let last = size % BLOCK.len() as u64;
        self.send_zeros(size - last).await?;
        lost(SENDING, self.connection.end_message(block(last)).await)
    }

    async fn send_zeros(&mut self, count: u64) -> Result<(), FlowFailure> {
        let mut left = count;
        while left > 0 {
            let sent = self.connection.send(block(left)).await;
            match lost(SENDING, sent)? {
                0 => return lost(SENDING, Err(io::ErrorKind::WriteZero.into())),
                sent => left -= sent as u64,
            }
        }
        Ok(())
    }
}

impl<C: Connection> Drop for FlowConnection<C> {
    fn drop(&mut self) {
        if !self.closed {
            self.connection.abort();
        }
    }
}

const SENDING: &str = "sending";
const RECEIVING: &str = "receiving";
pub(super) const ASKING: &str = "waiting for an answer";
const ANSWERING: &str = "answering";

/// Returns a block of at most `count` bytes.
fn block(count: u64) -> Bytes {
    let most = BLOCK
        .len()
        .min(usize::try_from(count).unwrap_or(usize::MAX));
    Bytes::from_static(&BLOCK[..most])
}

fn lost<T>(doing: &str, result: io::Result<T>) -> Result<T, FlowFailure> {
    result.map_err(|error| FlowFailure::Lost {
        doing: doing.to_owned(),
        cause: error.to_string(),
    })
}
