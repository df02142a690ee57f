//! Calls, many at once, and what they cost.

use std::fmt;
use std::time::{Duration, Instant};

use tokio::runtime::Runtime;
use tokio::task::JoinSet;
use tonic::Status;
use weir_grpc_testing::proto::test_service_client::TestServiceClient;
use weir_grpc_testing::proto::{Payload, SimpleRequest};

use crate::Failure;
use crate::contestant::{Channel, Contestant, Identity, credentials};
use crate::server::{Server, cpu_of};

/// Calls before those that count.
const WARM_UP: Duration = Duration::from_millis(300);
/// The largest message.
const MAX_MESSAGE: usize = 1 << 24;

/// What a round measured.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sample {
    pub(crate) median: Duration,
    pub(crate) p99: Duration,
    /// CPU time of both processes for a call.
    pub(crate) cpu: Duration,
    pub(crate) per_second: f64,
}

/// Whether the server knows the client of a new channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Peer {
    Unknown,
    Known,
}

impl fmt::Display for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Unknown => "unknown",
            Self::Known => "known",
        })
    }
}

/// Returns a runtime with one worker.
pub(crate) fn runtime() -> Result<Runtime, Failure> {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    Ok(builder.worker_threads(1).enable_all().build()?)
}

/// Callers on one channel.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Load {
    /// The payload of a call, both ways, in bytes.
    pub(crate) size: usize,
    pub(crate) callers: usize,
    /// The time between two calls of a caller, from begin to begin; without it a call follows the last
    /// one.
    pub(crate) interval: Option<Duration>,
}

/// Makes calls for a while.
pub(crate) fn run(
    runtime: &Runtime,
    channel: &Channel,
    load: Load,
    time: Duration,
    server_cpu: impl Fn() -> Duration,
) -> Result<Sample, Failure> {
    runtime.block_on(calls(channel, load, WARM_UP))?;
    let cpu = || server_cpu() + cpu_of("self");
    let (before, begin) = (cpu(), Instant::now());
    let latencies = runtime.block_on(calls(channel, load, time))?;
    Ok(sample(latencies, begin.elapsed(), cpu() - before))
}

async fn calls(channel: &Channel, load: Load, time: Duration) -> Result<Vec<Duration>, Failure> {
    let begin = Instant::now();
    let mut callers = JoinSet::new();
    for caller in 0..load.callers {
        let channel = channel.clone();
        callers.spawn(async move {
            let mut latencies = Vec::new();
            // They do not all begin at once.
            let mut due = begin + share(load, caller);
            while due < begin + time {
                let mut begin = due;
                if due > Instant::now() {
                    tokio::time::sleep_until(due.into()).await;
                    // The runtime's timers have steps of a millisecond.
                    begin = Instant::now();
                }
                call(&channel, load.size).await?;
                latencies.push(begin.elapsed());
                due = load
                    .interval
                    .map_or_else(Instant::now, |interval| due + interval);
            }
            Ok::<_, Status>(latencies)
        });
    }
    let mut latencies = Vec::new();
    while let Some(caller) = callers.join_next().await {
        latencies.extend(caller??);
    }
    Ok(latencies)
}

/// Returns a caller's part of the interval between calls.
fn share(load: Load, caller: usize) -> Duration {
    let part = caller as f64 / load.callers as f64;
    load.interval.unwrap_or_default().mul_f64(part)
}

/// Makes a call whose payload has this size both ways.
pub(crate) async fn call(channel: &Channel, size: usize) -> Result<(), Status> {
    let mut client = TestServiceClient::new(channel.clone())
        .max_decoding_message_size(MAX_MESSAGE)
        .max_encoding_message_size(MAX_MESSAGE);
    let request = SimpleRequest {
        response_size: i32::try_from(size).unwrap_or(i32::MAX),
        payload: Some(Payload {
            body: vec![0; size],
            ..Payload::default()
        }),
        ..SimpleRequest::default()
    };
    let response = client.unary_call(request).await?.into_inner();
    let received = response.payload.map_or(0, |payload| payload.body.len());
    if received == size {
        Ok(())
    } else {
        Err(Status::data_loss(format!(
            "{received} bytes instead of {size}"
        )))
    }
}

/// Opens channels, one after the other, and makes a call on each.
pub(crate) fn new_channels(
    contestant: Contestant,
    identity: &Identity,
    server: &Server,
    size: usize,
    peer: Peer,
    time: Duration,
) -> Result<Sample, Failure> {
    let runtime = runtime()?;
    let cpu = || server.cpu() + cpu_of("self");
    runtime.block_on(async {
        let endpoint = match contestant {
            Contestant::Http2 => None,
            Contestant::Dcquic => {
                let mut credentials = credentials(identity)?;
                if peer == Peer::Unknown {
                    credentials = credentials.without_known_peers();
                }
                let any = "127.0.0.1:0".parse()?;
                Some(
                    weir_net::Endpoint::builder()
                        .client(credentials)
                        .bind(any)?,
                )
            }
        };
        let once = async || {
            let channel = match &endpoint {
                None => contestant.channel(identity, server.address).await?,
                Some(endpoint) => Channel::dcquic(endpoint, server.address)?,
            };
            call(&channel, size).await?;
            Ok::<_, Failure>(channel)
        };
        // The secret of a known peer comes after the first call.
        let first = once().await?;
        tokio::time::sleep(WARM_UP).await;
        drop(first);
        for _ in 0..20 {
            once().await?;
        }
        let (before, begin) = (cpu(), Instant::now());
        let mut latencies = Vec::new();
        while begin.elapsed() < time {
            let begin = Instant::now();
            let channel = once().await?;
            latencies.push(begin.elapsed());
            drop(channel);
        }
        Ok(sample(latencies, begin.elapsed(), cpu() - before))
    })
}

fn sample(mut latencies: Vec<Duration>, elapsed: Duration, cpu: Duration) -> Sample {
    latencies.sort_unstable();
    let count = latencies.len();
    let quantile = |parts: usize| latencies.get(count * parts / 100).copied();
    let calls = u32::try_from(count).unwrap_or(u32::MAX).max(1);
    Sample {
        median: quantile(50).unwrap_or_default(),
        p99: quantile(99).unwrap_or_default(),
        cpu: cpu / calls,
        per_second: count as f64 / elapsed.as_secs_f64(),
    }
}
