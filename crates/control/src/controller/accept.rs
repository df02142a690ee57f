//! Accepts TCP connections.

use std::convert::Infallible;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::sleep;
use weir_net::RepeatedWarning;

use super::admission::Admission;
use super::client_connection::ClientConnection;

/// TLS handshakes at once.
const HANDSHAKES: usize = 1024;
/// The wait after a failure such as too many open files.
const PAUSE: Duration = Duration::from_millis(50);

/// Accepts connections and passes those of accepted clients on, until nobody takes them any more.
pub(super) async fn run(
    listener: TcpListener,
    admission: Arc<Admission>,
    accepted: mpsc::Sender<Result<ClientConnection, Infallible>>,
) {
    let mut handshakes = JoinSet::new();
    let mut warning = RepeatedWarning::new(Instant::now());
    while !accepted.is_closed() {
        let connection = tokio::select! {
            connection = listener.accept(), if handshakes.len() < HANDSHAKES => connection,
            Some(_) = handshakes.join_next() => continue,
        };
        match connection {
            Ok((stream, address)) => {
                let (admission, accepted) = (admission.clone(), accepted.clone());
                handshakes.spawn(async move {
                    if let Some(connection) = admission.admit(stream, address).await {
                        // Nobody takes it if the server has ended.
                        let _ = accepted.send(Ok(connection)).await;
                    }
                });
            }
            Err(error) if is_of_connection(&error) => {}
            Err(error) => {
                if let Some(left_out) = warning.take(Instant::now(), &error.to_string()) {
                    tracing::warn!(%error, left_out, "no connection can be accepted");
                }
                sleep(PAUSE).await;
            }
        }
    }
}

/// Whether an error concerns only the connection that was to be accepted.
fn is_of_connection(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(
        error.kind(),
        ConnectionAborted | ConnectionRefused | ConnectionReset
    )
}
