//! The client's side of a measurement: the timed loops.

use std::rc::Rc;
use std::time::Instant;

use weir_units::Duration;

use crate::calls::driver::{Phase, RequestClient, RequestConnection};
use crate::calls::error::Error;
use crate::calls::message::{Answer, Command};
use crate::calls::mix;
use crate::calls::payload::{Body, Library, Request};
use crate::processor::processor_time;
use crate::transport::Start;

/// A client that executes [`Command`]s.
pub struct CommandRunner {
    /// Opens connections with full handshakes.
    full: Rc<dyn RequestClient>,
    /// Keeps tickets and resumes, if the transport supports it.
    resuming: Option<Box<dyn RequestClient>>,
    library: Library,
    /// The connection that [`Command::Open`] opened, for [`Command::Download`].
    open: Option<Box<dyn RequestConnection>>,
}

impl CommandRunner {
    /// Returns a meter of these clients.
    #[must_use]
    pub fn new(full: Box<dyn RequestClient>, resuming: Option<Box<dyn RequestClient>>) -> Self {
        Self {
            full: full.into(),
            resuming,
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
                let samples = match phase {
                    Phase::Handshake => run.handshakes(&*self.full).await,
                    Phase::Fresh => run.fresh(&*self.full).await,
                    Phase::Resumed => run.resumed(self.resuming.as_deref()).await,
                    Phase::Established => run.established(&*self.full).await,
                };
                Ok(Answer::Samples(samples?))
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

    fn samples(&self) -> Vec<u64> {
        Vec::with_capacity(self.iterations as usize)
    }

    async fn handshakes(&self, client: &dyn RequestClient) -> Result<Vec<u64>, Error> {
        let mut samples = self.samples();
        for (counts, _) in self.bodies() {
            let begin = Instant::now();
            let connection = client.open(Start::Full, None).await?;
            let elapsed = nanoseconds_since(begin);
            connection.close().await?;
            if counts {
                samples.push(elapsed);
            }
        }
        Ok(samples)
    }

    async fn fresh(&self, client: &dyn RequestClient) -> Result<Vec<u64>, Error> {
        self.connections(client, Start::Full).await
    }

    async fn resumed(&self, client: Option<&dyn RequestClient>) -> Result<Vec<u64>, Error> {
        let client = client.ok_or(Error::Unsupported {
            transport: "this transport",
            what: "resume".to_owned(),
        })?;
        // The first connection gets the ticket that the second uses, and so on.
        let mut body = Body::comparing(self.request, self.library);
        let first = Some((self.request, &mut body));
        client.open(Start::Full, first).await?.close().await?;
        self.connections(client, Start::Resumed).await
    }

    async fn connections(
        &self,
        client: &dyn RequestClient,
        start: Start,
    ) -> Result<Vec<u64>, Error> {
        let mut samples = self.samples();
        for (counts, mut body) in self.bodies() {
            let begin = Instant::now();
            let connection = client.open(start, Some((self.request, &mut body))).await?;
            let elapsed = nanoseconds_since(begin);
            body.verify()?;
            connection.close().await?;
            if counts {
                samples.push(elapsed);
            }
        }
        Ok(samples)
    }

    async fn established(&self, client: &dyn RequestClient) -> Result<Vec<u64>, Error> {
        let mut samples = self.samples();
        let mut connection = client.open(Start::Full, None).await?;
        for (counts, mut body) in self.bodies() {
            let begin = Instant::now();
            connection.call(self.request, &mut body).await?;
            let elapsed = nanoseconds_since(begin);
            body.verify()?;
            if counts {
                samples.push(elapsed);
            }
        }
        connection.close().await?;
        Ok(samples)
    }
}

fn nanoseconds_since(begin: Instant) -> u64 {
    u64::try_from(begin.elapsed().as_nanos()).unwrap_or(u64::MAX)
}
