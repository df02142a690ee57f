//! The client's side of a measurement: the timed loops.
//!
//! The time of a new connection ends with its reply. What follows is its teardown: closing it, and a few
//! turns for the other tasks and, on the same core, for the server, which has work with a closed
//! connection too. Without these turns that work would fall into the next connection's time. The teardown
//! is measured apart, alike for all transports.

use std::rc::Rc;
use std::time::Instant;

use rustix::thread::sched_yield;
use serde::{Deserialize, Serialize};
use weir_units::Duration;

use crate::calls::driver::{Phase, RequestClient, RequestConnection};
use crate::calls::error::Error;
use crate::calls::message::{Answer, Command};
use crate::calls::mix::{self, open::OpenLoop};
use crate::calls::payload::{Body, Library, Request};
use crate::processor::processor_time;
use crate::transport::Start;

/// The times of one block of iterations.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Times {
    /// The time of each measured iteration, in nanoseconds.
    pub calls_ns: Vec<u64>,
    /// The time of each measured connection's teardown, in nanoseconds; empty for calls on an open
    /// connection.
    pub teardowns_ns: Vec<u64>,
}

/// The turns that a client gives away after it has closed a connection.
const TURNS: u32 = 8;

/// A client that executes [`Command`]s.
pub struct CommandRunner {
    /// Opens connections with full handshakes.
    full: Rc<dyn RequestClient>,
    /// Keeps tickets and resumes, if the transport supports it.
    resuming: Option<Box<dyn RequestClient>>,
    /// Keeps the secrets of known peers, if the transport has them.
    remembering: Option<Box<dyn RequestClient>>,
    library: Library,
    /// The connection that [`Command::Open`] opened, for [`Command::Download`].
    open: Option<Box<dyn RequestConnection>>,
}

impl CommandRunner {
    /// Returns a meter of these clients.
    #[must_use]
    pub fn new(
        full: Box<dyn RequestClient>,
        resuming: Option<Box<dyn RequestClient>>,
        remembering: Option<Box<dyn RequestClient>>,
    ) -> Self {
        Self {
            full: full.into(),
            resuming,
            remembering,
            library: Library::default(),
            open: None,
        }
    }

    /// Executes a command.
    ///
    /// # Errors
    /// The error of the command.
    pub async fn execute(&mut self, command: Command) -> Result<Answer, Error> {
        match command {
            Command::Measure {
                phase,
                size_bytes,
                warm_up,
                iterations,
            } => {
                let run = Run {
                    request: Request { size: size_bytes },
                    warm_up,
                    iterations,
                    library: &self.library,
                };
                let times = match phase {
                    Phase::Handshake => run.handshakes(&*self.full).await,
                    Phase::Fresh => run.fresh(&*self.full).await,
                    Phase::Resumed => {
                        let client = self.resuming.as_deref();
                        run.remembered(client, Start::Resumed, "resume").await
                    }
                    Phase::Known => {
                        let client = self.remembering.as_deref();
                        run.remembered(client, Start::Known, "know peers").await
                    }
                    Phase::Established => run.established(&*self.full).await,
                };
                Ok(Answer::Samples(times?))
            }
            Command::Open { warm_up_bytes } => {
                let request = Request {
                    size: warm_up_bytes,
                };
                let mut body = Body::comparing(request, &self.library);
                let first = Some((request, &mut body));
                self.open = Some(self.full.open(Start::Full, first).await?);
                body.verify()?;
                Ok(Answer::Done)
            }
            Command::Download { size_bytes } => self.download(size_bytes).await,
            Command::Mix {
                connections,
                calls,
                sizes_bytes,
                stall_ns,
            } => {
                let client = Rc::clone(&self.full);
                let stall = Duration::from_nanos(stall_ns);
                let times = mix::run(client, connections, calls, sizes_bytes.into(), stall).await;
                Ok(Answer::Mix(times))
            }
            Command::OpenMix {
                connections,
                calls,
                sizes_bytes,
                rate_per_s,
                seed,
                stall_ns,
            } => {
                let plan = OpenLoop {
                    connections,
                    calls,
                    sizes: sizes_bytes,
                    rate_per_s,
                    seed,
                    stall: Duration::from_nanos(stall_ns),
                };
                let times = mix::open::run(Rc::clone(&self.full), &plan).await;
                Ok(Answer::Mix(times))
            }
            Command::ProcessorTime => Ok(Answer::ProcessorTime(processor_time().as_nanos())),
        }
    }

    async fn download(&mut self, size_bytes: u64) -> Result<Answer, Error> {
        let mut connection = self.open.take().ok_or(Error::Unsupported {
            transport: "the worker",
            what: "download without an open connection".to_owned(),
        })?;
        let request = Request { size: size_bytes };
        let mut body = Body::counting(request);
        let (begin, processor) = (Instant::now(), processor_time());
        connection.call(request, &mut body).await?;
        let elapsed_ns = nanoseconds_since(begin);
        let processor_ns = (processor_time() - processor).as_nanos();
        body.verify()?;
        connection.close().await?;
        Ok(Answer::Downloaded {
            elapsed_ns,
            processor_ns,
        })
    }
}

/// One block of iterations.
struct Run<'a> {
    request: Request,
    warm_up: u32,
    iterations: u32,
    library: &'a Library,
}

impl Run<'_> {
    /// Returns for each iteration whether it is measured, and the body to fill.
    fn bodies(&self) -> impl Iterator<Item = (bool, Body)> {
        let warm_up =
            (0..self.warm_up).map(|_| (false, Body::comparing(self.request, self.library)));
        let counted = (0..self.iterations).map(|_| (true, Body::counting(self.request)));
        warm_up.chain(counted)
    }

    fn times(&self) -> Times {
        Times {
            calls_ns: Vec::with_capacity(self.iterations as usize),
            teardowns_ns: Vec::with_capacity(self.iterations as usize),
        }
    }

    async fn handshakes(&self, client: &dyn RequestClient) -> Result<Times, Error> {
        let mut times = self.times();
        for (counts, _) in self.bodies() {
            let begin = Instant::now();
            let connection = client.open(Start::Full, None).await?;
            let elapsed = nanoseconds_since(begin);
            let teardown = tear_down(connection).await?;
            if counts {
                times.calls_ns.push(elapsed);
                times.teardowns_ns.push(teardown);
            }
        }
        Ok(times)
    }

    async fn fresh(&self, client: &dyn RequestClient) -> Result<Times, Error> {
        self.connections(client, Start::Full).await
    }

    async fn remembered(
        &self,
        client: Option<&dyn RequestClient>,
        start: Start,
        what: &str,
    ) -> Result<Times, Error> {
        let client = client.ok_or(Error::Unsupported {
            transport: "this transport",
            what: what.to_owned(),
        })?;
        // The first connection gets the ticket or the secret that the second uses, and so on.
        let mut body = Body::comparing(self.request, self.library);
        let first = Some((self.request, &mut body));
        tear_down(client.open(Start::Full, first).await?).await?;
        self.connections(client, start).await
    }

    async fn connections(&self, client: &dyn RequestClient, start: Start) -> Result<Times, Error> {
        let mut times = self.times();
        for (counts, mut body) in self.bodies() {
            let begin = Instant::now();
            let connection = client.open(start, Some((self.request, &mut body))).await?;
            let elapsed = nanoseconds_since(begin);
            body.verify()?;
            let teardown = tear_down(connection).await?;
            if counts {
                times.calls_ns.push(elapsed);
                times.teardowns_ns.push(teardown);
            }
        }
        Ok(times)
    }

    async fn established(&self, client: &dyn RequestClient) -> Result<Times, Error> {
        let mut times = self.times();
        let mut connection = client.open(Start::Full, None).await?;
        for (counts, mut body) in self.bodies() {
            let begin = Instant::now();
            connection.call(self.request, &mut body).await?;
            let elapsed = nanoseconds_since(begin);
            body.verify()?;
            if counts {
                times.calls_ns.push(elapsed);
            }
        }
        tear_down(connection).await?;
        Ok(times)
    }
}

/// Closes a connection and gives turns to the work that this leaves. Returns the time of both, in
/// nanoseconds.
async fn tear_down(connection: Box<dyn RequestConnection>) -> Result<u64, Error> {
    let begin = Instant::now();
    connection.close().await?;
    for _ in 0..TURNS {
        tokio::task::yield_now().await;
        sched_yield();
    }
    Ok(nanoseconds_since(begin))
}

fn nanoseconds_since(begin: Instant) -> u64 {
    u64::try_from(begin.elapsed().as_nanos()).unwrap_or(u64::MAX)
}
