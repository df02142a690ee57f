//! Copies between a TCP connection and its carrier, in both directions, in one task.
//!
//! What is read from TCP goes to the carrier as it is, and what the carrier receives goes to TCP as it is:
//! neither is copied here. Nothing is read that cannot be passed on, so that each end holds the other one
//! back. A connection without traffic has no buffer.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes, BytesMut};
use socket2::SockRef;
use tokio::io::AsyncWrite;
use tokio::net::TcpStream;
use tokio_util::io::poll_read_buf;

use crate::carrier::{Broken, Carrier};
use crate::counters::ConnectionCounters;
use crate::refusal::Refusal;

/// How much is read from TCP at once: little for small requests, more while each read fills all of it.
const READ_SIZES: [usize; 3] = [1024, 16 * 1024, 256 * 1024];
/// How much is taken from the carrier at once.
const RECEIVE: usize = 256 * 1024;
/// The most chunks that one system call writes (IOV_MAX is 1024).
const CHUNKS: usize = 256;

/// How a relayed connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// Both directions to their end.
    Complete,
    /// By a reset of this side's TCP connection.
    TcpReset,
    /// By the peer, for this reason.
    ByPeer(Refusal),
    /// The connection to the peer was lost.
    CarrierLost,
}

/// The state of the direction from TCP to the carrier.
#[derive(Debug)]
enum Outbound {
    Reading,
    Sending(Bytes),
    Finishing,
    Done,
}

/// The state of the direction from the carrier to TCP.
#[derive(Debug)]
enum Inbound {
    /// Chunks that are written, and whether more may follow.
    Copying {
        more: bool,
    },
    ShuttingDown,
    Done,
}

struct Relay<'c, C> {
    tcp: TcpStream,
    carrier: C,
    counters: &'c ConnectionCounters,
    outbound: Outbound,
    /// An index of [`READ_SIZES`].
    level: usize,
    /// Room for the next read, behind what was read before.
    buffer: BytesMut,
    inbound: Inbound,
    chunks: VecDeque<Bytes>,
}

/// Copies until both directions have ended, or one was reset, which resets the other. `first` has been
/// received from the carrier already.
pub(crate) async fn relay<C: Carrier>(
    tcp: TcpStream,
    carrier: C,
    first: Bytes,
    counters: &ConnectionCounters,
) -> End {
    let mut relay = Relay {
        tcp,
        carrier,
        counters,
        outbound: Outbound::Reading,
        level: 0,
        buffer: BytesMut::new(),
        inbound: Inbound::Copying { more: true },
        chunks: [first]
            .into_iter()
            .filter(|first| !first.is_empty())
            .collect(),
    };
    let end = poll_fn(|cx| relay.poll(cx)).await;
    match end {
        End::Complete => {}
        End::TcpReset => relay.carrier.reset(Refusal::Reset),
        End::ByPeer(_) | End::CarrierLost => reset(&relay.tcp),
    }
    end
}

/// Has a socket reset its connection when it is dropped.
pub(crate) fn reset(tcp: &TcpStream) {
    // Where that fails the other end sees an orderly end.
    let _ = SockRef::from(tcp).set_linger(Some(std::time::Duration::ZERO));
}

impl<C: Carrier> Relay<'_, C> {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<End> {
        // What came from the carrier first: a reply that the application waits for.
        let inbound = self.poll_inbound(cx);
        if let Poll::Ready(Err(end)) = inbound {
            return Poll::Ready(end);
        }
        let outbound = self.poll_outbound(cx);
        if let Poll::Ready(Err(end)) = outbound {
            return Poll::Ready(end);
        }
        if inbound.is_ready() && outbound.is_ready() {
            return Poll::Ready(End::Complete);
        }
        Poll::Pending
    }

    fn poll_outbound(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), End>> {
        loop {
            match &mut self.outbound {
                Outbound::Reading => {
                    let Poll::Ready(read) = self.poll_read(cx) else {
                        self.buffer = BytesMut::new();
                        // All that TCP had was passed on: nothing more is worth waiting for.
                        ready!(self.carrier.poll_flush(cx)).map_err(End::of)?;
                        return Poll::Pending;
                    };
                    match read? {
                        0 => self.outbound = Outbound::Finishing,
                        _ => self.outbound = Outbound::Sending(self.buffer.split().freeze()),
                    }
                }
                Outbound::Sending(data) => {
                    let size = data.len() as u64;
                    let sent = self.carrier.poll_send(cx, data);
                    self.counters.sent(size - data.len() as u64);
                    ready!(sent).map_err(End::of)?;
                    self.outbound = Outbound::Reading;
                }
                Outbound::Finishing => {
                    ready!(self.carrier.poll_finish(cx)).map_err(End::of)?;
                    self.outbound = Outbound::Done;
                }
                Outbound::Done => return Poll::Ready(Ok(())),
            }
        }
    }

    /// Reads from TCP into the buffer; returns how much, zero at the end.
    fn poll_read(&mut self, cx: &mut Context<'_>) -> Poll<Result<usize, End>> {
        // Without anything to read there is no buffer.
        ready!(self.tcp.poll_read_ready(cx)).map_err(|_| End::TcpReset)?;
        let size = READ_SIZES[self.level];
        if self.buffer.capacity() < size.min(16 * 1024) {
            self.buffer = BytesMut::with_capacity(size);
        }
        let room = self.buffer.capacity();
        let read = ready!(poll_read_buf(Pin::new(&mut self.tcp), cx, &mut self.buffer));
        let count = read.map_err(|_| End::TcpReset)?;
        let is_full = count == room;
        if is_full {
            self.level = (self.level + 1).min(READ_SIZES.len() - 1);
        } else if self.level > 0 && count < READ_SIZES[self.level - 1] {
            self.level -= 1;
        }
        Poll::Ready(Ok(count))
    }

    fn poll_inbound(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), End>> {
        loop {
            match &mut self.inbound {
                Inbound::Copying { .. } if !self.chunks.is_empty() => {
                    ready!(self.poll_write(cx))?;
                }
                Inbound::Copying { more: false } => self.inbound = Inbound::ShuttingDown,
                Inbound::Copying { more } => {
                    let received = self.carrier.poll_receive(cx, RECEIVE, &mut self.chunks);
                    if received.is_pending() && self.chunks.capacity() > 16 {
                        self.chunks = VecDeque::new();
                    }
                    *more = ready!(received).map_err(End::of)?;
                }
                Inbound::ShuttingDown => {
                    let shut = ready!(Pin::new(&mut self.tcp).poll_shutdown(cx));
                    match shut {
                        Err(error) if error.kind() != io::ErrorKind::NotConnected => {
                            return Poll::Ready(Err(End::TcpReset));
                        }
                        _ => self.inbound = Inbound::Done,
                    }
                }
                Inbound::Done => return Poll::Ready(Ok(())),
            }
        }
    }

    /// Writes chunks to TCP, as many as it takes at once.
    fn poll_write(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), End>> {
        let written = if let [chunk] = self.chunks.make_contiguous() {
            ready!(Pin::new(&mut self.tcp).poll_write(cx, chunk))
        } else {
            let mut slices = [IoSlice::new(&[]); CHUNKS];
            let mut count = 0;
            for (slice, chunk) in slices.iter_mut().zip(&self.chunks) {
                *slice = IoSlice::new(chunk);
                count += 1;
            }
            ready!(Pin::new(&mut self.tcp).poll_write_vectored(cx, &slices[..count]))
        };
        let mut written = written.map_err(|_| End::TcpReset)?;
        self.counters.received(written as u64);
        while let Some(chunk) = self.chunks.front_mut() {
            if written < chunk.len() {
                chunk.advance(written);
                break;
            }
            written -= chunk.len();
            self.chunks.pop_front();
        }
        Poll::Ready(Ok(()))
    }
}

impl End {
    pub(crate) fn of(broken: Broken) -> Self {
        match broken {
            Broken::ByPeer(refusal) => Self::ByPeer(refusal),
            Broken::Lost => Self::CarrierLost,
        }
    }
}
