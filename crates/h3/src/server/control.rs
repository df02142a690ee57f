//! The control streams of a connection, and GOAWAY.

use std::future::{pending, poll_fn};
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use h3::proto::varint::VarInt;
use h3::quic::StreamId;
use tokio::sync::watch;
use tokio::time::sleep;
use weir_net::Connection;

use super::connection::{Http, Served, lock};

/// Follows what the client says, and tells it when the server, or the endpoint, shuts down. Ends with
/// the connection.
pub(super) async fn run(
    http: Http,
    connection: Connection,
    served: Arc<Mutex<Served>>,
    mut leaving: watch::Receiver<bool>,
) {
    let following = follow(&http);
    let mut following = pin!(following);
    tokio::select! {
        () = following.as_mut() => return,
        _ = leaving.wait_for(|leaving| *leaving) => {}
        () = connection.draining_here() => {}
    }
    let limit = lock(&served).end();
    say_go_away(&http, limit);
    if !connection.peer_takes_go_away() {
        // Its requests of this moment should not arrive at a closed connection.
        sleep(round_trips(&connection)).await;
    }
    drop(leaving);
    connection.drain();
    following.await;
}

/// Follows the client's control stream.
async fn follow(http: &Http) {
    let poll = |cx: &mut Context<'_>| match lock(http).poll_accept_request_stream(cx) {
        // A connection that is over ends its requests, too.
        Poll::Ready(Err(_)) => Poll::Ready(true),
        // The client opens no more requests; no control frame matters any more.
        Poll::Ready(Ok(None)) => Poll::Ready(false),
        Poll::Ready(Ok(Some(_))) | Poll::Pending => Poll::Pending,
    };
    let is_over = poll_fn(poll).await;
    if !is_over {
        pending::<()>().await;
    }
}

/// Sends GOAWAY (RFC 9114, section 5.2). A client that gives the control stream no credit for its few
/// bytes learns from the refusals.
fn say_go_away(http: &Http, limit: u64) {
    let limit = StreamId::from(VarInt::from_u64(limit).unwrap_or(VarInt::MAX));
    let mut http = lock(http);
    let mut sent = None;
    let saying = pin!(http.inner.shutdown(&mut sent, limit));
    let _ = saying.poll(&mut Context::from_waker(std::task::Waker::noop()));
}

/// The time in which a GOAWAY arrives, and requests that were sent before.
fn round_trips(connection: &Connection) -> Duration {
    let paths = connection.stats().paths;
    let longest = paths.iter().map(|path| path.smoothed_rtt).max();
    let longest: Duration = longest.unwrap_or_default().into();
    longest * 2 + Duration::from_millis(1)
}
