//! A client that writes and reads.

use std::sync::Arc;
use std::time::Instant;

use clap::Args;
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::JoinSet;
use weir_grpc::Channel;
use weir_grpc::weir_h3;
use weir_net::{Duration, Endpoint};

use super::generated::store_client::StoreClient;
use super::generated::{All, Key, Pair};
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
    let channel = weir_h3::Channel::to_addresses(options.place.addresses)
        .server_name(files::SERVER_NAME)
        .connect(&endpoint)?;
    let channel = Channel::from(channel).timeout(options.deadline);
    let mut client = StoreClient::new(channel.clone());
    let outcome = Arc::new(Outcome::default());
    let mut workers = JoinSet::new();
    for worker in 0..options.concurrency {
        workers.spawn(work(client.clone(), outcome.clone(), worker));
    }
    tokio::select! {
        () = tokio::time::sleep(options.time.into()) => {}
        _ = terminated.recv() => {}
        _ = interrupted.recv() => {}
    }
    outcome.stop();
    let latencies = workers.join_all().await.concat();
    let mut responses = client.keys(All {}).await?.into_inner();
    let mut keys = 0;
    while responses.message().await?.is_some() {
        keys += 1;
    }
    let channel = format!("{} connections", channel.http().stats().connections);
    let result = outcome.report(&channel, latencies, keys);
    // Tells the servers, which would otherwise wait for an acknowledgment of their last answer.
    endpoint.shutdown(Duration::from_secs(1)).await?;
    result
}

/// Writes a key and reads it again, until the end. Returns the calls' latencies.
async fn work(
    mut client: StoreClient<Channel>,
    outcome: Arc<Outcome>,
    worker: u64,
) -> Vec<Duration> {
    let mut latencies = Vec::new();
    let mut number = 0;
    while !outcome.is_stopped() {
        let key = format!("key-{worker}-{}", number % 10);
        let value = format!("value {number}");
        number += 1;
        let pair = Pair {
            key: key.clone(),
            value: value.clone(),
        };
        let start = Instant::now();
        let put = client.put(pair).await;
        latencies.push(start.elapsed().into());
        if let Err(status) = put {
            outcome.add_failure(&status);
            tokio::time::sleep(AFTER_FAILURE.into()).await;
            continue;
        }
        let start = Instant::now();
        let get = client.get(Key { key }).await;
        latencies.push(start.elapsed().into());
        match get {
            Ok(response) if response.get_ref().value == value => {}
            Ok(_) => outcome.add_wrong_answer(),
            Err(status) => outcome.add_failure(&status),
        }
    }
    latencies
}
