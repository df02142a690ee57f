//! A Go server that says GOAWAY under load: its calls are made at another one.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use tokio::task::JoinSet;
use weir_grpc_testing::cases;

use super::go;
use super::weir::{self, Certificate};

/// Calls under way at once.
const WORKERS: usize = 4;

pub(crate) async fn a_server_drains() -> Result<(), String> {
    let certificate = Arc::new(Certificate::new());
    let [first, second] = [(); 2].map(|()| go::Server::with(certificate.clone()));
    let addresses = [first.address(), second.address()];
    let channel = weir::channel(addresses, certificate.fingerprint);
    let (calls, stopped) = (
        Arc::new(AtomicUsize::new(0)),
        Arc::new(AtomicBool::new(false)),
    );
    let mut workers = JoinSet::new();
    for _ in 0..WORKERS {
        let (channel, calls, stopped) = (channel.clone(), calls.clone(), stopped.clone());
        workers.spawn(async move {
            while !stopped.load(Ordering::SeqCst) {
                cases::ping_pong(channel.clone()).await?;
                calls.fetch_add(1, Ordering::SeqCst);
            }
            Ok(())
        });
    }
    // Both servers have some of them.
    more(&calls).await;
    first.drain().await;
    more(&calls).await;
    stopped.store(true, Ordering::SeqCst);
    let ended: Result<Vec<()>, weir_grpc_testing::Failure> =
        workers.join_all().await.into_iter().collect();
    ended.map(|_| ()).map_err(|failure| failure.to_string())
}

/// Waits for further calls; the timeout of the test ends the wait.
async fn more(calls: &AtomicUsize) {
    let before = calls.load(Ordering::SeqCst);
    while calls.load(Ordering::SeqCst) < before + 50 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}
