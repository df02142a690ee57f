//! A connection between the two ends of a flow, whatever carries it: one-way data, or requests and
//! responses.
//!
//! Over TCP, TLS and DCUDP everything follows on one stream; DCQUIC has a stream for each request, and one
//! for one-way data. What is sent is zeros, what is received is counted and forgotten.

use std::io;
use std::sync::Arc;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsStream;
use weir_net::dcudp::DcudpStream;

use super::meter::{Meter, Watch};
use super::payload::BLOCK;
use super::quic::QuicStreams;
use super::tcp::socket;
use crate::control::FlowFailure;

/// A connection. Dropping it before [`Link::close`] cuts it off, with what has not been sent yet.
#[derive(Debug)]
pub(super) struct Link {
    carrier: Carrier,
    meter: Arc<Meter>,
    closed: bool,
    /// Read from and forgotten.
    buffer: Vec<u8>,
    /// After the carrier: the counters are read last.
    _watch: Watch,
}

/// What carries it.
#[derive(Debug)]
pub(super) enum Carrier {
    Tcp(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
    Quic(QuicStreams),
    Dcudp(DcudpStream),
}

impl Link {
    pub(super) fn new(carrier: Carrier, meter: Arc<Meter>, watch: Watch) -> Self {
        Self {
            carrier,
            meter,
            closed: false,
            buffer: Vec::new(),
            _watch: watch,
        }
    }

    /// One-way data: `head`, then so many bytes.
    pub(super) async fn send(&mut self, head: &[u8], count: u64) -> Result<(), FlowFailure> {
        match &mut self.carrier {
            Carrier::Tcp(stream) => write(stream, head, count).await,
            Carrier::Tls(stream) => write(stream, head, count).await,
            Carrier::Dcudp(stream) => write(stream, head, count).await,
            Carrier::Quic(streams) => lost(SENDING, streams.send(head, count).await),
        }
    }

    /// After one-way data: waits until the peer has taken all of it.
    pub(super) async fn finish(mut self) -> Result<(), FlowFailure> {
        let end = match &mut self.carrier {
            Carrier::Tcp(stream) => finish(stream).await,
            Carrier::Tls(stream) => finish(stream).await,
            Carrier::Dcudp(stream) => finish(stream).await,
            Carrier::Quic(streams) => lost(SENDING, streams.finish().await),
        };
        self.closed = end.is_ok();
        end
    }

    /// The head of one-way data.
    pub(super) async fn receive_head<const LENGTH: usize>(
        &mut self,
    ) -> Result<[u8; LENGTH], FlowFailure> {
        let mut head = [0; LENGTH];
        let received = match &mut self.carrier {
            Carrier::Tcp(stream) => stream.read_exact(&mut head).await.map(drop),
            Carrier::Tls(stream) => stream.read_exact(&mut head).await.map(drop),
            Carrier::Dcudp(stream) => stream.read_exact(&mut head).await.map(drop),
            Carrier::Quic(streams) => streams.receive_exactly(&mut head).await,
        };
        lost(RECEIVING, received)?;
        self.meter.count_delivered(LENGTH as u64);
        Ok(head)
    }

    /// One-way data up to their end: how many bytes.
    pub(super) async fn receive_all(&mut self) -> Result<u64, FlowFailure> {
        self.room();
        let mut total = 0;
        loop {
            let received = match &mut self.carrier {
                Carrier::Tcp(stream) => stream.read(&mut self.buffer).await,
                Carrier::Tls(stream) => stream.read(&mut self.buffer).await,
                Carrier::Dcudp(stream) => stream.read(&mut self.buffer).await,
                Carrier::Quic(streams) => streams.receive().await,
            };
            match lost(RECEIVING, received)? {
                0 => return Ok(total),
                count => {
                    self.meter.count_delivered(count as u64);
                    total += count as u64;
                }
            }
        }
    }

    /// Sends a request and waits for all of the response.
    pub(super) async fn ask(&mut self, request: u64, response: u64) -> Result<(), FlowFailure> {
        match &mut self.carrier {
            Carrier::Quic(streams) => lost(ASKING, streams.request(request).await)?,
            _ => self.send(&[], request).await?,
        }
        match self.receive_message(response).await? {
            true => Ok(()),
            false => lost(ASKING, Err(io::ErrorKind::UnexpectedEof.into())),
        }
    }

    /// Waits for all of a request; `false` where the peer has closed the connection instead.
    pub(super) async fn hear(&mut self, request: u64) -> Result<bool, FlowFailure> {
        if let Carrier::Quic(streams) = &mut self.carrier
            && !lost(ANSWERING, streams.accept().await)?
        {
            return Ok(false);
        }
        let heard = self.receive_message(request).await?;
        self.closed = !heard;
        Ok(heard)
    }

    /// Answers the request that was heard last.
    pub(super) async fn respond(&mut self, response: u64) -> Result<(), FlowFailure> {
        match &mut self.carrier {
            Carrier::Quic(streams) => lost(ANSWERING, streams.respond(response).await),
            _ => self.send(&[], response).await,
        }
    }

    /// Ends the connection in peace: the peer hears that this was all.
    pub(super) async fn close(mut self) {
        let end = match &mut self.carrier {
            Carrier::Tcp(stream) => stream.shutdown().await,
            Carrier::Tls(stream) => stream.shutdown().await,
            Carrier::Dcudp(stream) => stream.shutdown().await,
            Carrier::Quic(streams) => {
                streams.close();
                Ok(())
            }
        };
        // A connection that the peer has cut off already is closed all the same.
        self.closed = end.is_ok();
    }

    /// Ends the connection after the last response has arrived. Over TCP the server closes first, so
    /// that the port that is not free for a while (TIME-WAIT) is not one of the client's.
    pub(super) async fn depart(mut self) {
        self.room();
        let end = match &mut self.carrier {
            Carrier::Tcp(stream) => stream.read(&mut self.buffer).await,
            Carrier::Tls(stream) => stream.read(&mut self.buffer).await,
            Carrier::Dcudp(stream) => {
                let end = stream.read(&mut self.buffer).await;
                stream.finish();
                end
            }
            Carrier::Quic(_) => return,
        };
        self.closed = matches!(end, Ok(0));
    }

    /// The other side of [`Link::depart`], after the last response has been handed over.
    pub(super) async fn release(self) {
        match &self.carrier {
            Carrier::Quic(streams) => streams.closed().await,
            Carrier::Tcp(_) | Carrier::Tls(_) | Carrier::Dcudp(_) => self.close().await,
        }
    }

    /// A message of this size; `false` where the stream ends before it begins.
    async fn receive_message(&mut self, size: u64) -> Result<bool, FlowFailure> {
        self.room();
        let mut left = size;
        while left > 0 {
            let most = self
                .buffer
                .len()
                .min(usize::try_from(left).unwrap_or(usize::MAX));
            let buffer = &mut self.buffer[..most];
            let received = match &mut self.carrier {
                Carrier::Tcp(stream) => stream.read(buffer).await,
                Carrier::Tls(stream) => stream.read(buffer).await,
                Carrier::Dcudp(stream) => stream.read(buffer).await,
                Carrier::Quic(streams) => streams.receive().await,
            };
            let count = lost(RECEIVING, received)?;
            if count == 0 && left == size {
                return Ok(false);
            }
            left = match left.checked_sub(count as u64) {
                Some(left) if count > 0 => left,
                _ => {
                    let problem = format!("a message of {size} bytes has another size");
                    return Err(FlowFailure::Protocol { problem });
                }
            };
            self.meter.count_delivered(count as u64);
        }
        match &mut self.carrier {
            Carrier::Quic(streams) => lost(RECEIVING, streams.end_message().await).map(|()| true),
            Carrier::Tcp(_) | Carrier::Tls(_) | Carrier::Dcudp(_) => Ok(true),
        }
    }

    fn room(&mut self) {
        if self.buffer.is_empty() {
            self.buffer = vec![0; BLOCK.len()];
        }
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        match &self.carrier {
            Carrier::Quic(streams) => streams.close(),
            _ if self.closed => {}
            Carrier::Tcp(stream) => socket::abort(stream),
            Carrier::Tls(stream) => socket::abort(stream.get_ref().0),
            Carrier::Dcudp(stream) => stream.abort(0),
        }
    }
}

const SENDING: &str = "sending";
const RECEIVING: &str = "receiving";
pub(super) const ASKING: &str = "waiting for an answer";
const ANSWERING: &str = "answering";

async fn write(
    stream: &mut (impl AsyncWrite + Unpin),
    head: &[u8],
    count: u64,
) -> Result<(), FlowFailure> {
    if !head.is_empty() {
        lost(SENDING, stream.write_all(head).await)?;
    }
    let mut left = count;
    while left > 0 {
        let most = BLOCK.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        let written = lost(SENDING, stream.write(&BLOCK[..most]).await)?;
        if written == 0 {
            return lost(SENDING, Err(io::ErrorKind::WriteZero.into()));
        }
        left -= written as u64;
    }
    lost(SENDING, stream.flush().await)
}

async fn finish(stream: &mut (impl AsyncRead + AsyncWrite + Unpin)) -> Result<(), FlowFailure> {
    lost(SENDING, stream.shutdown().await)?;
    match stream.read(&mut [0]).await {
        Ok(0) => Ok(()),
        Ok(_) => Err(FlowFailure::Protocol {
            problem: "one-way data are answered".to_owned(),
        }),
        Err(error) => lost(SENDING, Err(error)),
    }
}

fn lost<T>(doing: &str, result: io::Result<T>) -> Result<T, FlowFailure> {
    result.map_err(|error| FlowFailure::Lost {
        doing: doing.to_owned(),
        cause: error.to_string(),
    })
}
