//! The paper's mixes: many concurrent connections, with calls of mixed sizes.
//!
//! In a closed loop ([`run`]) every connection makes its next call as soon as the last one has ended:
//! the load is what the transport can carry. In an open loop ([`open`]) calls arrive by themselves, at a
//! rate that is the same for all transports.

pub mod open;
pub(crate) mod poisson;
mod saturation;

use std::rc::Rc;
use std::time::Instant;

use serde::{Deserialize, Serialize};
use tokio::task::LocalSet;
use tokio::time::timeout;
use weir_units::{ByteSize, Duration};

use crate::calls::driver::RequestClient;
use crate::calls::error::Error;
use crate::calls::payload::{Body, Library, Request};
use crate::processor::processor_time;
use crate::transport::Start;

use saturation::Saturation;

/// A mix of reply sizes (paper 000, section 4.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Workload {
    /// 100 B and 10 KB, half and half.
    WebSearch,
    /// 0.5, 1 and 2 MB, a third each.
    DataMining,
}

impl Workload {
    /// Returns its name in reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::WebSearch => "web search",
            Self::DataMining => "data mining",
        }
    }

    /// Returns the sizes, used in turn.
    #[must_use]
    pub fn sizes(self) -> Vec<ByteSize> {
        let bytes: &[u64] = match self {
            Self::WebSearch => &[100, 10_000],
            Self::DataMining => &[500_000, 1_000_000, 2_000_000],
        };
        bytes.iter().copied().map(ByteSize::from_bytes).collect()
    }
}

/// The results of a mix.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MixTimes {
    /// Completion times of the calls that succeeded, in nanoseconds.
    pub completed_ns: Vec<u64>,
    /// Time from the first connection's start to the last call's end, in nanoseconds.
    pub elapsed_ns: u64,
    /// Processor time of the client in that time, in nanoseconds.
    pub processor_ns: u64,
    /// Calls that succeeded after all connections were open, in a closed loop.
    pub saturated_calls: u64,
    /// The time that these calls took together, in nanoseconds.
    pub saturated_ns: u64,
    /// Bytes received by calls that succeeded.
    pub bytes: u64,
    /// Connections that could not be opened and calls that failed.
    pub errors: u64,
    /// Connections and calls that did not finish in time.
    pub stalls: u64,
    /// The first error.
    pub first_error: Option<String>,
}

impl MixTimes {
    /// Returns the calls per second: in a closed loop those that all connections together carry, once
    /// they are open.
    #[must_use]
    pub fn calls_per_s(&self) -> f64 {
        let (calls, ns) = match self.saturated_calls {
            0 => (self.completed_ns.len() as u64, self.elapsed_ns),
            calls => (calls, self.saturated_ns),
        };
        calls as f64 * 1e9 / ns.max(1) as f64
    }

    /// Returns the part of the time in which the client's processor worked for it, from 0 to 1.
    #[must_use]
    pub fn client_busy(&self) -> f64 {
        self.processor_ns as f64 / self.elapsed_ns.max(1) as f64
    }

    /// Adds the results of one connection or of another round.
    pub(crate) fn add(&mut self, part: Self) {
        self.completed_ns.extend(part.completed_ns);
        self.elapsed_ns += part.elapsed_ns;
        self.processor_ns += part.processor_ns;
        self.saturated_calls += part.saturated_calls;
        self.saturated_ns += part.saturated_ns;
        self.bytes += part.bytes;
        self.errors += part.errors;
        self.stalls += part.stalls;
        if self.first_error.is_none() {
            self.first_error = part.first_error;
        }
    }

    fn record(&mut self, error: &Error) {
        match error {
            Error::Stalled { .. } => self.stalls += 1,
            _ => self.errors += 1,
        }
        self.first_error.get_or_insert_with(|| error.to_string());
    }
}

/// Opens `connections` at once and makes `calls` on each, one after the other, with sizes in turn.
/// A connection or call that exceeds `stall` is abandoned together with its connection.
pub async fn run(
    client: Rc<dyn RequestClient>,
    connections: u32,
    calls: u32,
    sizes: Rc<[u64]>,
    stall: Duration,
) -> MixTimes {
    let library = Rc::new(Library::default());
    let (begin, processor) = (Instant::now(), processor_time());
    let saturation = Rc::new(Saturation::new(connections));
    let tasks = LocalSet::new();
    let handles: Vec<_> = (0..connections)
        .map(|index| {
            let work = Work {
                client: Rc::clone(&client),
                library: Rc::clone(&library),
                saturation: Rc::clone(&saturation),
                sizes: sizes
                    .iter()
                    .copied()
                    .cycle()
                    .skip(index as usize % sizes.len().max(1))
                    .take(calls as usize)
                    .collect(),
                stall,
            };
            tasks.spawn_local(work.run())
        })
        .collect();
    tasks.await;
    let mut all = MixTimes {
        elapsed_ns: nanoseconds(begin.elapsed()),
        processor_ns: (processor_time() - processor).as_nanos(),
        saturated_calls: saturation.calls(),
        saturated_ns: nanoseconds(saturation.elapsed()),
        ..MixTimes::default()
    };
    for handle in handles {
        match handle.await {
            Ok(part) => all.add(part),
            Err(error) => all.record(&Error::transport("running a connection's task", error)),
        }
    }
    all
}

/// The work of one connection.
struct Work {
    client: Rc<dyn RequestClient>,
    library: Rc<Library>,
    saturation: Rc<Saturation>,
    sizes: Vec<u64>,
    stall: Duration,
}

impl Work {
    async fn run(self) -> MixTimes {
        let mut times = MixTimes::default();
        if let Err(error) = self.calls(&mut times).await {
            times.record(&error);
        }
        times
    }

    async fn calls(&self, times: &mut MixTimes) -> Result<(), Error> {
        let opening = self.client.open(Start::Full, None);
        let mut connection = within(self.stall, "opening a connection", opening).await?;
        self.saturation.opened();
        for size in &self.sizes {
            let request = Request { size: *size };
            let mut body = Body::comparing(request, &self.library);
            let begin = Instant::now();
            within(self.stall, "a call", connection.call(request, &mut body)).await?;
            let elapsed = nanoseconds(begin.elapsed());
            body.verify()?;
            self.saturation.called();
            times.completed_ns.push(elapsed);
            times.bytes += size;
        }
        within(self.stall, "closing", connection.close()).await
    }
}

/// Waits for a step, but no longer than `limit`.
async fn within<T>(
    limit: Duration,
    what: &str,
    step: impl Future<Output = Result<T, Error>>,
) -> Result<T, Error> {
    timeout(limit.into(), step).await.unwrap_or_else(|_| {
        Err(Error::Stalled {
            what: what.to_owned(),
            limit,
        })
    })
}

fn nanoseconds(time: std::time::Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
