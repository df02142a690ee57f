//! A TCP connection: its handshake, and how it ends.

use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::sync::Arc;

use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use socket2::{SockRef, TcpKeepalive};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use weir_net::Duration;

use super::Inner;
use super::accept::Places;
use super::drain::Follower;
use super::exchange::Exchange;
use super::tls::HTTP_2;
use crate::peer::Peer;
use crate::server::stats::Counters;
use crate::service::HttpService;

/// How long a connection without requests goes on when it is to end: for HTTP/1.1, a request may be on
/// its way; for HTTP/2, the client has to acknowledge the GOAWAY.
const LAST: Duration = Duration::from_secs(1);
/// When a client that says nothing is asked whether it is still there.
const KEEP_ALIVE: Duration = Duration::from_secs(20);

/// Serves a connection until it ends.
pub(super) async fn run(
    inner: Arc<Inner>,
    stream: TcpStream,
    remote: SocketAddr,
    places: Places,
    mut follower: Follower,
    service: impl HttpService,
) {
    let Places {
        connection: _connection,
        handshake,
    } = places;
    // A connection mapped from IPv4 has the notation that QUIC's have.
    let remote = SocketAddr::new(remote.ip().to_canonical(), remote.port());
    let ending = follower.clone();
    let serving = async {
        let Some(stream) = shake_hands(&inner, stream, remote).await else {
            return;
        };
        drop(handshake);
        serve(&inner, stream, remote, ending, service).await;
    };
    tokio::select! {
        () = serving => {}
        () = follower.ending() => {}
    }
}

async fn shake_hands(
    inner: &Inner,
    stream: TcpStream,
    remote: SocketAddr,
) -> Option<TlsStream<TcpStream>> {
    set_options(&stream);
    let accepting = TlsAcceptor::from(inner.tls.current()).accept(stream);
    let error = match timeout(inner.settings.handshake_timeout.into(), accepting).await {
        Ok(Ok(stream)) => return Some(stream),
        Ok(Err(error)) => error.to_string(),
        Err(_) => "it took too long".to_owned(),
    };
    Counters::add(&inner.counters.failed_handshakes);
    tracing::debug!(%remote, %error, "no TLS handshake");
    None
}

/// Small packets leave at once, and a client that is gone is noticed.
fn set_options(stream: &TcpStream) {
    let socket = SockRef::from(stream);
    let keep_alive = TcpKeepalive::new()
        .with_time(KEEP_ALIVE.into())
        .with_interval(KEEP_ALIVE.into());
    let set = socket.set_tcp_nodelay(true);
    if let Err(error) = set.and_then(|()| socket.set_tcp_keepalive(&keep_alive)) {
        tracing::debug!(%error, "a TCP connection is as it is");
    }
}

async fn serve(
    inner: &Arc<Inner>,
    stream: TlsStream<TcpStream>,
    remote: SocketAddr,
    follower: Follower,
    service: impl HttpService,
) {
    let tls = stream.get_ref().1;
    let is_http2 = tls.alpn_protocol() == Some(HTTP_2);
    let peer = Peer::of_tcp(remote, tls.into());
    let running = watch::Sender::new(0);
    let life = Life {
        inner,
        remote,
        running: running.subscribe(),
        follower: follower.clone(),
        is_http2,
    };
    let exchange = Exchange::new(inner, service, peer, running, follower);
    let answer = service_fn(move |request| exchange.clone().answer(request));
    let max_header = u32::try_from(inner.http3.shared.settings.max_header_size);
    let max_header = max_header.unwrap_or(u32::MAX);
    let stream = TokioIo::new(stream);
    if is_http2 {
        let mut builder = http2::Builder::new(TokioExecutor::new());
        builder
            .timer(TokioTimer::new())
            .keep_alive_interval(Some(KEEP_ALIVE.into()))
            .keep_alive_timeout(KEEP_ALIVE.into())
            .max_header_list_size(max_header);
        let connection = pin!(builder.serve_connection(stream, answer));
        life.end(connection, http2::Connection::graceful_shutdown)
            .await;
    } else {
        let mut builder = http1::Builder::new();
        builder
            .timer(TokioTimer::new())
            .header_read_timeout(None)
            .max_header_size(max_header as usize);
        let connection = pin!(builder.serve_connection(stream, answer));
        life.end(connection, http1::Connection::graceful_shutdown)
            .await;
    }
}

/// How long a connection goes on.
struct Life<'a> {
    inner: &'a Inner,
    remote: SocketAddr,
    /// How many requests run.
    running: watch::Receiver<usize>,
    follower: Follower,
    is_http2: bool,
}

impl Life<'_> {
    /// Drives a connection until it ends by itself, or has no request for too long, or the server
    /// shuts down and it has none left.
    async fn end<C>(mut self, mut connection: Pin<&mut C>, begin_to_end: fn(Pin<&mut C>))
    where
        C: Future<Output = hyper::Result<()>>,
    {
        let first = self.inner.http3.shared.settings.header_timeout;
        let idle = idle(
            self.running.clone(),
            first,
            self.inner.settings.idle_timeout,
        );
        let draining = async {
            self.follower.draining().await;
            if !self.is_http2 {
                sleep(LAST.into()).await;
            }
        };
        let ended = tokio::select! {
            result = connection.as_mut() => Some(result),
            () = idle => {
                Counters::add(&self.inner.counters.idle);
                None
            }
            () = draining => None,
        };
        let ended = match ended {
            Some(result) => result,
            None => {
                begin_to_end(connection.as_mut());
                tokio::select! {
                    result = connection => result,
                    () = self::idle(self.running, LAST, LAST) => Ok(()),
                }
            }
        };
        if let Err(error) = ended {
            tracing::debug!(remote = %self.remote, %error, "a TCP connection broke off");
        }
    }
}

/// Waits until a connection has had no request for a time: at its beginning, or after a request.
async fn idle(mut running: watch::Receiver<usize>, first: Duration, later: Duration) {
    let mut limit = first;
    loop {
        let is_idle = *running.borrow_and_update() == 0;
        let changed = running.changed();
        let changed = if is_idle {
            timeout(limit.into(), changed).await
        } else {
            Ok(changed.await)
        };
        // What counts the requests ends with the connection.
        let Ok(Ok(())) = changed else {
            return;
        };
        limit = later;
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::Instant;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_connection_is_idle_while_nothing_runs() {
        let running = watch::Sender::new(0);
        let (first, later) = (Duration::from_secs(1), Duration::from_secs(10));
        let start = Instant::now();
        idle(running.subscribe(), first, later).await;
        assert_eq!(Duration::from(start.elapsed()), first);
        let waiting = tokio::spawn(idle(running.subscribe(), first, later));
        tokio::task::yield_now().await;
        running.send_replace(1);
        sleep(Duration::from_secs(100).into()).await;
        assert!(!waiting.is_finished());
        running.send_replace(0);
        let start = Instant::now();
        waiting.await.unwrap();
        assert_eq!(Duration::from(start.elapsed()), later);
    }
}
