//! A mix in an open loop: calls arrive as a Poisson process, whether or not earlier ones have ended.
//!
//! A call takes the connection that has been idle longest, or waits for the next idle one. Its time runs
//! from its arrival by the process, not from when this client came to serve it: a client that is late
//! does not hide it. The client polls between arrivals, alike for all transports: a timer's interrupt and
//! the wake-up would cost more than most calls, and the load would be that of the timer.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;
use std::time::Instant;

use futures_util::future::join_all;
use tokio::sync::Semaphore;
use tokio::task::LocalSet;
use weir_units::Duration;

use super::poisson::Poisson;
use super::{MixTimes, nanoseconds, within};
use crate::calls::driver::{RequestClient, RequestConnection};
use crate::calls::error::Error;
use crate::calls::payload::{Body, Library, Request};
use crate::transport::Start;

/// The time between the last connection's opening and the process of arrivals, for what is left to do on
/// both sides.
const SETTLE: Duration = Duration::from_millis(20);
/// The calls of each connection that are not measured, and the size of their replies in bytes.
const FIRST_CALLS: u32 = 5;
const FIRST_SIZE: u64 = 100;

/// The parameters of an open loop.
#[derive(Clone, Debug, PartialEq)]
pub struct OpenLoop {
    /// Connections, all open before the first call arrives.
    pub connections: u32,
    /// Calls in all.
    pub calls: u32,
    /// Reply sizes in bytes, used in turn.
    pub sizes: Vec<u64>,
    /// The mean rate of arrivals per second; positive.
    pub rate_per_s: f64,
    /// The seed of the arrivals.
    pub seed: u64,
    /// The time after which a call on a connection is abandoned, together with the connection.
    pub stall: Duration,
}

/// Opens all connections, lets the calls arrive, and returns when all have ended. Failures of connections
/// and calls are counted.
pub async fn run(client: Rc<dyn RequestClient>, plan: &OpenLoop) -> MixTimes {
    let mut all = MixTimes::default();
    let (queue, library) = (Rc::new(Queue::default()), Rc::new(Library::default()));
    for size in &plan.sizes {
        // The library makes each reply's document once: now, not during the first calls.
        drop(library.reply(Request { size: *size }));
    }
    let connections = open(&*client, plan, &library, &mut all).await;
    let tasks = LocalSet::new();
    let handles: Vec<_> = connections
        .into_iter()
        .map(|connection| {
            let work = Work {
                queue: Rc::clone(&queue),
                library: Rc::clone(&library),
                stall: plan.stall,
            };
            tasks.spawn_local(work.run(connection))
        })
        .collect();
    let begin = Instant::now() + std::time::Duration::from(SETTLE);
    tasks.run_until(arrive(&queue, plan, begin)).await;
    queue.end(handles.len());
    tasks.await;
    all.elapsed_ns = nanoseconds(begin.elapsed());
    for handle in handles {
        match handle.await {
            Ok(part) => all.add(part),
            Err(error) => all.record(&Error::transport("running a connection's task", error)),
        }
    }
    // Without a connection left, calls are not served.
    all.errors += queue.waiting();
    all
}

/// Opens all connections at once; counts those that cannot be opened. Each makes some small calls that are
/// not measured: the end of a handshake at the server, and what stacks put off until a connection is used
/// again, such as spare connection IDs, would delay the first arrivals of 200 connections by milliseconds.
async fn open(
    client: &dyn RequestClient,
    plan: &OpenLoop,
    library: &Library,
    all: &mut MixTimes,
) -> Vec<Box<dyn RequestConnection>> {
    let request = Request { size: FIRST_SIZE };
    let open = async || {
        let mut opened = client.open(Start::Full, None).await?;
        for _ in 0..FIRST_CALLS {
            let mut body = Body::comparing(request, library);
            opened.call(request, &mut body).await?;
            body.verify()?;
        }
        Ok(opened)
    };
    let opening = (0..plan.connections).map(|_| within(plan.stall, "opening a connection", open()));
    let mut connections = Vec::new();
    for opened in join_all(opening).await {
        match opened {
            Ok(connection) => connections.push(connection),
            Err(error) => all.record(&error),
        }
    }
    connections
}

/// Queues the calls as they arrive.
async fn arrive(queue: &Queue, plan: &OpenLoop, begin: Instant) {
    let times = Poisson::new(plan.seed, plan.rate_per_s).take(plan.calls as usize);
    for (time, size) in times.zip(plan.sizes.iter().copied().cycle()) {
        let arrival = begin + std::time::Duration::from(time);
        while Instant::now() < arrival {
            tokio::task::yield_now().await;
        }
        queue.push(Call { arrival, size });
    }
}

/// A call that has arrived.
#[derive(Clone, Copy, Debug)]
struct Call {
    /// The time of its arrival.
    arrival: Instant,
    size: u64,
}

/// The calls that wait for a connection, and the idle connections, which wait for a call: both in the
/// order in which they came.
#[derive(Debug)]
struct Queue {
    calls: RefCell<VecDeque<Call>>,
    /// A permit per call, and one per connection at the end.
    permits: Semaphore,
}

impl Default for Queue {
    fn default() -> Self {
        Self {
            calls: RefCell::default(),
            permits: Semaphore::new(0),
        }
    }
}

impl Queue {
    fn push(&self, call: Call) {
        self.calls.borrow_mut().push_back(call);
        self.permits.add_permits(1);
    }

    /// Lets each of the connections end once no call waits.
    fn end(&self, connections: usize) {
        self.permits.add_permits(connections);
    }

    /// Waits for a call; `None` at the end.
    async fn next(&self) -> Option<Call> {
        self.permits.acquire().await.ok()?.forget();
        self.calls.borrow_mut().pop_front()
    }

    fn waiting(&self) -> u64 {
        self.calls.borrow().len() as u64
    }
}

/// The work of one connection.
struct Work {
    queue: Rc<Queue>,
    library: Rc<Library>,
    stall: Duration,
}

impl Work {
    async fn run(self, connection: Box<dyn RequestConnection>) -> MixTimes {
        let mut times = MixTimes::default();
        if let Err(error) = self.calls(connection, &mut times).await {
            times.record(&error);
        }
        times
    }

    async fn calls(
        &self,
        mut connection: Box<dyn RequestConnection>,
        times: &mut MixTimes,
    ) -> Result<(), Error> {
        while let Some(Call { arrival, size }) = self.queue.next().await {
            let request = Request { size };
            let mut body = Body::comparing(request, &self.library);
            within(self.stall, "a call", connection.call(request, &mut body)).await?;
            let elapsed = nanoseconds(arrival.elapsed());
            body.verify()?;
            times.completed_ns.push(elapsed);
            times.bytes += size;
        }
        within(self.stall, "closing", connection.close()).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calls::driver::{FirstCall, LocalFuture};

    /// A client whose connections answer at once; the first `refused` are refused.
    struct Fake {
        refused: RefCell<u32>,
    }

    struct FakeConnection;

    impl RequestClient for Fake {
        fn open<'a>(
            &'a self,
            _: Start,
            first: FirstCall<'a>,
        ) -> LocalFuture<'a, Result<Box<dyn RequestConnection>, Error>> {
            let mut refused = self.refused.borrow_mut();
            let is_refused = *refused > 0;
            *refused = refused.saturating_sub(1);
            Box::pin(async move {
                if is_refused {
                    return Err(Error::MalformedRequest);
                }
                if let Some((request, body)) = first {
                    FakeConnection.call(request, body).await?;
                }
                Ok(Box::new(FakeConnection) as Box<dyn RequestConnection>)
            })
        }
    }

    impl RequestConnection for FakeConnection {
        fn call<'a>(
            &'a mut self,
            request: Request,
            body: &'a mut Body,
        ) -> LocalFuture<'a, Result<(), Error>> {
            Box::pin(async move {
                for chunk in Library::default().reply(request) {
                    body.take(&chunk);
                }
                Ok(())
            })
        }

        fn close(self: Box<Self>) -> LocalFuture<'static, Result<(), Error>> {
            Box::pin(async { Ok(()) })
        }
    }

    fn times(refused: u32) -> MixTimes {
        let plan = OpenLoop {
            connections: 3,
            calls: 500,
            sizes: vec![100, 300],
            rate_per_s: 20_000.0,
            seed: 1,
            stall: Duration::from_secs(20),
        };
        let client = Rc::new(Fake {
            refused: RefCell::new(refused),
        });
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(run(client, &plan))
    }

    #[test]
    fn all_calls_are_made() {
        let times = times(0);
        assert_eq!((times.completed_ns.len(), times.bytes), (500, 100_000));
        assert_eq!((times.errors, times.stalls), (0, 0));
        // The last call arrives after about 25 ms.
        assert!(times.elapsed_ns > 10_000_000);
    }

    #[test]
    fn other_connections_serve_for_those_that_fail() {
        let some = times(2);
        assert_eq!((some.completed_ns.len(), some.errors), (500, 2));
        let none = times(3);
        assert_eq!((none.completed_ns.len(), none.errors), (0, 503));
        assert!(none.first_error.is_some());
    }
}
