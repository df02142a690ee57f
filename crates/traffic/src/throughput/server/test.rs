//! One test, from the client's request to the exchange of results.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::SystemTime;

use tokio::net::TcpStream;
use tokio::sync::mpsc;

use super::ServerEvent;
use crate::throughput::acceptor::Acceptor;
use crate::throughput::control::Control;
use crate::throughput::error::Error;
use crate::throughput::measurement::{Measurement, Start};
use crate::throughput::options::ServerOptions;
use crate::throughput::parameters::{Parameters, Side};
use crate::throughput::protocol::{FromClient, FromServer, Outcome, Token};
use crate::throughput::transfer::{SamplingOptions, Transfer};

type ServerControl = Control<FromServer, FromClient>;

/// A test before the client's request.
pub(super) struct Test {
    pub(super) options: Arc<ServerOptions>,
    /// The server's address.
    pub(super) address: SocketAddr,
    pub(super) client: SocketAddr,
    /// The token of its data connections.
    pub(super) token: Token,
    /// The TCP connections that sent the token.
    pub(super) streams: mpsc::Receiver<TcpStream>,
    pub(super) news: mpsc::Sender<ServerEvent>,
}

impl Test {
    /// Reads the client's request and runs the test.
    pub(super) async fn run(mut self, stream: TcpStream) -> Result<Measurement, Error> {
        let limit = self.options.timeout;
        let mut control = ServerControl::new(stream, limit);
        let doing = "waiting for the client's request";
        let test = match control.next_within(limit, doing).await? {
            FromClient::Begin(test) => test,
            other => return Err(unexpected(other)),
        };
        let acceptor = match self.prepare(&test).await {
            Ok(acceptor) => acceptor,
            Err(error) => {
                control
                    .send(&FromServer::Refused(error.to_string()))
                    .await?;
                return Err(error);
            }
        };
        control.send(&FromServer::Accepted(self.token)).await?;
        let began = ServerEvent::Began {
            client: self.client,
            parameters: test.clone(),
        };
        // The receiver is gone if the server is being dropped.
        let _ = self.news.send(began).await;
        let result = self.run_accepted(&mut control, &test, &acceptor).await;
        if let Err(error) = &result {
            // The client may be gone; it detects the closed connection then.
            let _ = control.send(&FromServer::Failed(error.to_string())).await;
        }
        result
    }

    async fn prepare(&self, test: &Parameters) -> Result<Acceptor, Error> {
        test.validate()?;
        Acceptor::new(test, &self.options, self.address, self.token).await
    }

    async fn run_accepted(
        &mut self,
        control: &mut ServerControl,
        test: &Parameters,
        acceptor: &Acceptor,
    ) -> Result<Measurement, Error> {
        let limit = self.options.timeout;
        let lanes = tokio::select! {
            opened = acceptor.accept_all(&mut self.streams, limit) => opened?,
            message = control.next("its data connections were awaited") => {
                return Err(unexpected(message?));
            }
        };
        control.send(&FromServer::Ready).await?;
        match control
            .next_within(limit, "waiting for the client to begin")
            .await?
        {
            FromClient::Start => {}
            other => return Err(unexpected(other)),
        }

        let start = Start {
            side: Side::Server,
            host: self.client.ip().to_canonical().to_string(),
            port: self.client.port(),
            time: SystemTime::now(),
            parameters: test.clone(),
            interval: self.options.interval,
            connections: lanes.iter().map(|lane| lane.ends).collect(),
        };
        let mut intervals = Vec::new();
        let mut note = |interval| intervals.push(interval);
        let mut transfer = Transfer::begin(lanes, test.extent, Side::Server.sends(test));
        let watch = SamplingOptions {
            interval: self.options.interval,
            stall: limit,
        };
        let (ours, theirs) = exchange(transfer.run(watch, &mut note), control).await?;
        let theirs = match theirs {
            Some(theirs) => theirs,
            None => finished(
                control
                    .next_within(limit, "waiting for the client's results")
                    .await?,
            )?,
        };
        let measurement = Measurement::new(start, intervals, ours, theirs)?;
        let ours = FromServer::Results(measurement.ours.clone());
        control.send(&ours).await?;
        Ok(measurement)
    }
}

/// Runs the transfer to its end. A client that has sent everything reports its outcome before all
/// of it has arrived: an outcome that arrives in the meantime is returned with ours.
async fn exchange(
    transfer: impl Future<Output = Result<Outcome, Error>>,
    control: &mut ServerControl,
) -> Result<(Outcome, Option<Outcome>), Error> {
    let mut theirs = None;
    tokio::pin!(transfer);
    loop {
        tokio::select! {
            outcome = &mut transfer => return Ok((outcome?, theirs)),
            message = control.next("the test was running"), if theirs.is_none() => {
                theirs = Some(finished(message?)?);
            }
        }
    }
}

fn finished(message: FromClient) -> Result<Outcome, Error> {
    match message {
        FromClient::Finished(outcome) => Ok(outcome),
        other => Err(unexpected(other)),
    }
}

fn unexpected(message: FromClient) -> Error {
    match message {
        FromClient::Failed(reason) => Error::Peer(reason),
        other => Error::Protocol(format!("{} came out of turn", other.name())),
    }
}
