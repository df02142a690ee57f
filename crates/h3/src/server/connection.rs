//! One connection: accepts requests, and refuses them once the server shuts down.

use std::future::poll_fn;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;

use bytes::Bytes;
use h3::frame::FrameStream;
use h3::stream::BufRecvStream;
use tokio::sync::Notify;
use weir_net::Connection;

use super::stats::Counters;
use super::{Shared, control, request};
use crate::APPLICATION_PROTOCOL;
use crate::error::{Error, ErrorCode};
use crate::quic::{PeerState, Quic};
use crate::service::HttpService;

/// `h3`'s part of a connection.
pub(super) type Http = Arc<Mutex<h3::server::Connection<Quic, Bytes>>>;

/// The IDs of streams that carry requests are this far apart.
const STEP: u64 = 4;
/// After so many requests `h3` may forget those that have ended.
const FORGETTING: u64 = 256;

/// Which requests are served.
#[derive(Debug, Default)]
pub(super) struct Served {
    /// The ID of the first stream that was not accepted.
    next: u64,
    /// Our GOAWAY: streams from here on are refused.
    limit: Option<u64>,
}

impl Served {
    /// Whether a stream is served.
    fn accept(&mut self, id: u64) -> bool {
        if self.limit.is_some_and(|limit| id >= limit) {
            return false;
        }
        self.next = self.next.max(id + STEP);
        true
    }

    /// Accepts no stream any more that was not; returns the limit.
    pub(super) fn end(&mut self) -> u64 {
        *self.limit.get_or_insert(self.next)
    }
}

/// Answers a connection's requests until it ends; returns the reason.
pub(super) async fn serve(
    shared: &Arc<Shared>,
    connection: &Connection,
    service: impl HttpService,
) -> Error {
    let protocol = connection.peer_identity().application_protocol;
    if protocol.as_deref() != Some(APPLICATION_PROTOCOL) {
        connection.close(ErrorCode::NO_ERROR.0, b"this server speaks HTTP/3 only");
        return connection.closed().await.into();
    }
    connection.set_drain_codes(ErrorCode::REQUEST_REJECTED.0, ErrorCode::NO_ERROR.0);
    let leaving = shared.leaving.subscribe();
    // A field of a header counts 32 bytes more than its name and value, and Huffman codes have at most
    // 30 bits for a byte.
    let max_headers = shared.settings.max_header_size.saturating_mul(4);
    let quic = Quic::new(
        connection.clone(),
        max_headers,
        Arc::new(PeerState::default()),
    );
    let opener = h3::quic::Connection::opener(&quic);
    let mut builder = h3::server::builder();
    builder.max_field_section_size(shared.settings.max_header_size);
    builder.send_grease(false);
    let http = match builder.build(quic).await {
        Ok(http) => Arc::new(Mutex::new(http)),
        Err(error) => return Error::of_connection(error, connection),
    };
    let served = Arc::new(Mutex::new(Served::default()));
    let ended = Arc::new(Notify::new());
    let control = control::run(
        http.clone(),
        connection.clone(),
        served.clone(),
        ended.clone(),
        leaving,
    );
    let control = tokio::spawn(control);
    let error = loop {
        let (mut send, mut recv) = match connection.accept_bi().await {
            Ok(stream) => stream,
            Err(error) => break error,
        };
        let id = send.id().as_u64();
        if id % (FORGETTING * STEP) == 0 {
            ended.notify_one();
        }
        if !lock(&served).accept(id) {
            Counters::add(&shared.counters.refused);
            recv.stop(ErrorCode::REQUEST_REJECTED.0);
            let _ = send.reset(ErrorCode::REQUEST_REJECTED.0);
            continue;
        }
        let notice = send.stop_notice();
        let (stream, exchange) = opener.request_stream((send, recv));
        exchange.set_awaited(true);
        let stream = FrameStream::new(BufRecvStream::new(stream));
        let resolver = lock(&http).create_resolver(stream);
        let mut call = request::Arriving {
            shared: shared.clone(),
            connection: connection.clone(),
            resolver,
            exchange,
            notice,
        };
        // Most headers have arrived in full by now.
        match poll_fn(|cx| Poll::Ready(call.poll_header(cx))).await {
            Poll::Ready(header) => request::spawn(call.answer(header, service.clone())),
            Poll::Pending => request::spawn(call.receive(service.clone())),
        }
    };
    control.abort();
    error.into()
}

/// Locks what no panic leaves half done.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_accepted_is_served() {
        let mut served = Served::default();
        assert!(served.accept(8));
        assert_eq!(served.end(), 12);
        // It arrives late, but the GOAWAY says that it is served.
        assert!(served.accept(4));
        assert!(!served.accept(12));
        assert_eq!(served.end(), 12);
    }
}
