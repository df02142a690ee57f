//! What carries the bytes of a TCP connection between client and server: a stream of a DCQUIC connection,
//! or a TLS connection of its own.

mod dcquic;
mod tls;

use std::collections::VecDeque;
use std::task::{Context, Poll};

use bytes::Bytes;
use serde::Serialize;
use weir_net::{RecvStream, SendStream};

use crate::refusal::Refusal;

pub(crate) use dcquic::DcquicStream;
pub(crate) use tls::TlsCarrier;

/// A byte stream in each direction, of which each ends by itself or by a reset.
pub(crate) trait Carrier: Send + Unpin {
    /// Whether the server says by a byte of its own whether there is a connection; otherwise a reset says
    /// that there is none.
    const ANSWERS: bool;
    /// What it is.
    const KIND: CarrierKind;

    /// Sends all of `data`, which it takes; pending while there is no room.
    fn poll_send(&mut self, cx: &mut Context<'_>, data: &mut Bytes) -> Poll<Result<(), Broken>>;

    /// Ends the sending direction after what was sent.
    fn poll_finish(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Broken>>;

    /// Sends what [`Carrier::poll_send`] may still hold back.
    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Broken>>;

    /// Appends received chunks, of about `enough` bytes together at most; returns whether more may come.
    fn poll_receive(
        &mut self,
        cx: &mut Context<'_>,
        enough: usize,
        chunks: &mut VecDeque<Bytes>,
    ) -> Poll<Result<bool, Broken>>;

    /// Returns the stream, where datagrams can be carried beside it; anything else stays as it is.
    fn into_flow(self) -> Result<(SendStream, RecvStream), Self>
    where
        Self: Sized;

    /// Ends both directions at once, and tells the peer why.
    fn reset(&mut self, refusal: Refusal);
}

/// Why a carrier ended before its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Broken {
    /// The peer ended it, for this reason.
    ByPeer(Refusal),
    /// The connection to the peer is lost.
    Lost,
}

/// The kind of a carrier.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CarrierKind {
    /// A stream of a DCQUIC connection.
    Dcquic,
    /// A connection of TLS over TCP.
    Tls,
}
