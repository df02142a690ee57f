//! A client that writes and reads.

use std::sync::Arc;
use std::time::Instant;

use clap::Args;
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::JoinSet;
use weir_net::{Duration, Endpoint};
use weir_rpc::Channel;

use super::outcome::Outcome;
use super::{Failure, Place, files};

/// How long a worker waits after a failed call, so that it does not fill a terminal, or a disk.
const AFTER_FAILURE: Duration = Duration::from_millis(10);

#[derive(Args)]
pub(crate) struct Options {
    #[command(flatten)]
    place: Place,
    /// Calls under way at once
    #[arg(long, default_value_t = 8)]
    concurrency: u64,
    /// Ends after this time, at Ctrl-C, or at SIGTERM
    #[arg(long = "for", default_value = "10s")]
    time: Duration,
    /// Marks writes as idempotent too, so that they survive a server that is killed
    #[arg(long)]
    idempotent: bool,
    /// The deadline of a call
    #[arg(long, default_value = "5s")]
    deadline: Duration,
}

pub(crate) async fn run(options: Options) -> Result<(), Failure> {
    let mut terminated = signal(SignalKind::terminate())?;
    let mut interrupted = signal(SignalKind::interrupt())?;
    let endpoint = Endpoint::builder()
        .client(files::client(&options.place.directory)?)
        .bind("127.0.0.1:0".parse()?)?;
    let channel = Channel::to_addresses(options.place.addresses)
        .server_name(files::SERVER_NAME)
        .deadline(options.deadline)
        .connect(&endpoint)?;
    let outcome = Arc::new(Outcome::default());
    let mut workers = JoinSet::new();
    for worker in 0..options.concurrency {
        let work = work(channel.clone(), outcome.clone(), worker, options.idempotent);
        workers.spawn(work);
    }
    tokio::select! {
        () = tokio::time::sleep(options.time.into()) => {}
        _ = terminated.recv() => {}
        _ = interrupted.recv() => {}
    }
    outcome.stop();
    let latencies = workers.join_all().await.concat();
    let mut responses = channel.call("kv.Keys").server_streaming("").await?;
    let mut keys = 0;
    while responses.next().await?.is_some() {
        keys += 1;
    }
    let stats = channel.stats();
    let channel = format!(
        "{} made again, {} connections",
        stats.retries, stats.connections
    );
    let result = outcome.report(&channel, latencies, keys);
    // Tells the servers, which would otherwise wait for an acknowledgment of their last answer.
    endpoint.shutdown(Duration::from_secs(1)).await?;
    result
}

/// Writes a key and reads it again, until the end. Returns the calls' latencies.
async fn work(
    channel: Channel,
    outcome: Arc<Outcome>,
    worker: u64,
    idempotent: bool,
) -> Vec<Duration> {
    let mut latencies = Vec::new();
    let mut number = 0;
    while !outcome.is_stopped() {
        let key = format!("key-{worker}-{}", number % 10);
        let value = format!("value {number}");
        number += 1;
        let start = Instant::now();
        let put = channel.call("kv.Put");
        let put = if idempotent { put.idempotent() } else { put };
        let put = put.unary(format!("{key}={value}")).await;
        latencies.push(start.elapsed().into());
        if let Err(error) = put {
            outcome.add_failure(&error);
            tokio::time::sleep(AFTER_FAILURE.into()).await;
            continue;
        }
        let start = Instant::now();
        let get = channel.call("kv.Get").idempotent().unary(key).await;
        latencies.push(start.elapsed().into());
        match get {
            Ok(response) if response.body == value => {}
            Ok(_) => outcome.add_wrong_answer(),
            Err(error) => outcome.add_failure(&error),
        }
    }
    latencies
}
