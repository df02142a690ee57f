//! The control streams of a connection, and GOAWAY.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use h3::proto::varint::VarInt;
use h3::quic::StreamId;
use tokio::sync::{Notify, watch};
use tokio::time::sleep;
use weir_net::Connection;

use super::connection::{Http, Served, lock};

/// Follows what the client says, and tells it when the server, or the endpoint, shuts down. Ends with
/// the connection.
pub(super) async fn run(
    http: Http,
    connection: Connection,
    served: Arc<Mutex<Served>>,
    ended: Arc<Notify>,
    mut leaving: watch::Receiver<bool>,
) {
    let following = follow(&http, &ended);
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

/// Follows the client's control stream until the connection is over.
///
/// `h3` wakes whoever polls it for requests at the end of each one, and keeps a note of it until then. That
/// it is asked for the control stream alone, and for the notes only now and then, saves a task's turn per
/// request.
async fn follow(http: &Http, ended: &Notify) {
    loop {
        tokio::select! {
            () = poll_fn(|cx| poll_control(http, cx)) => return,
            () = ended.notified() => {}
        }
        // The next look at the control stream, with this task's waker, is at once.
        let mut unwoken = Context::from_waker(Waker::noop());
        let noted = lock(http).poll_accept_request_stream(&mut unwoken);
        if let Poll::Ready(Err(_)) = noted {
            return;
        }
    }
}

/// Ready where the connection is over. `h3` has acted on SETTINGS, and a server on no other frame; those that
/// break a rule do not pass [`Frames`](crate::frames::Frames).
fn poll_control(http: &Http, cx: &mut Context<'_>) -> Poll<()> {
    let mut http = lock(http);
    while let Poll::Ready(frame) = http.inner.poll_control(cx) {
        if frame.is_err() {
            return Poll::Ready(());
        }
    }
    Poll::Pending
}

/// Sends GOAWAY (RFC 9114, section 5.2). A client that gives the control stream no credit for its few
/// bytes learns from the refusals.
fn say_go_away(http: &Http, limit: u64) {
    let limit = StreamId::from(VarInt::from_u64(limit).unwrap_or(VarInt::MAX));
    let mut http = lock(http);
    let mut sent = None;
    let saying = pin!(http.inner.shutdown(&mut sent, limit));
    let _ = saying.poll(&mut Context::from_waker(Waker::noop()));
}

/// The time in which a GOAWAY arrives, and requests that were sent before.
fn round_trips(connection: &Connection) -> Duration {
    let paths = connection.stats().paths;
    let longest = paths.iter().map(|path| path.smoothed_rtt).max();
    let longest: Duration = longest.unwrap_or_default().into();
    longest * 2 + Duration::from_millis(1)
}
