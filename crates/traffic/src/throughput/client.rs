//! The client's side of a test.

use std::io;
use std::net::SocketAddr;
use std::time::SystemTime;

use tokio::io::AsyncWriteExt;
use tokio::net::{TcpStream, lookup_host};
use tokio::time::timeout;
use weir_units::Duration;

use super::connector;
use super::control::Control;
use super::error::Error;
use super::measurement::{Interval, Measurement, Start};
use super::options::ClientOptions;
use super::parameters::Side;
use super::protocol::{FromClient, FromServer, Greeting, Token};
use super::transfer::{SamplingOptions, Transfer};

/// A failure on a data connection is often caused by one that the other side reports on the control
/// connection; this is the time to wait for that report.
const GRACE: Duration = Duration::from_millis(200);

/// An event of a test.
#[derive(Clone, Copy, Debug)]
pub enum Event<'a> {
    /// All connections are open and the test begins.
    Start(&'a Start),
    /// An interval has ended.
    Interval(&'a Interval),
}

type ClientControl = Control<FromClient, FromServer>;

/// Runs a test; `observe` is called with its events.
///
/// # Errors
/// [`Error`]; its message contains a remedy.
pub async fn run(
    options: &ClientOptions,
    observe: &mut (dyn FnMut(Event<'_>) + Send),
) -> Result<Measurement, Error> {
    let test = &options.parameters;
    test.validate()?;
    let (stream, server) = connect(options).await?;
    let mut control = ClientControl::new(stream, options.timeout);
    let sent = control.send(&FromClient::Begin(test.clone())).await;
    let waiting = "waiting for the server's answer";
    let answer = match sent {
        Ok(()) => control.next_within(options.timeout, waiting).await?,
        // The server may have sent a reason before it closed the connection.
        Err(closed) => match control.next_within(GRACE, waiting).await {
            Err(Error::Closed(_) | Error::TimedOut { .. }) => return Err(closed),
            said => said?,
        },
    };
    let token = match answer {
        FromServer::Accepted(token) => token,
        FromServer::Refused(reason) => return Err(Error::Refused(reason)),
        other => return Err(unexpected(other)),
    };
    let result = test_with(options, &mut control, server, token, observe).await;
    if let Err(error) = &result {
        // The server may be gone; it detects the closed connection then.
        let _ = control.send(&FromClient::Failed(error.to_string())).await;
    }
    result
}

/// Opens the control connection to the first of the host's addresses that accepts it.
async fn connect(options: &ClientOptions) -> Result<(TcpStream, SocketAddr), Error> {
    let failed = |source| Error::Connect {
        host: options.host.clone(),
        port: options.port,
        source,
    };
    let connecting = async {
        let mut addresses = lookup_host((options.host.as_str(), options.port))
            .await
            .map_err(|source| Error::UnknownHost {
                host: options.host.clone(),
                source,
            })?;
        let mut last = io::ErrorKind::AddrNotAvailable.into();
        loop {
            let Some(address) = addresses.next() else {
                return Err(failed(last));
            };
            match TcpStream::connect(address).await {
                Ok(stream) => return Ok((stream, address)),
                Err(error) => last = error,
            }
        }
    };
    let connected = timeout(options.timeout.into(), connecting).await;
    let (mut stream, mut address) = connected.map_err(|_| Error::NoAnswer {
        host: options.host.clone(),
        port: options.port,
        limit: options.timeout,
    })??;
    stream
        .write_all(&Greeting::Control.encode())
        .await
        .map_err(Error::stream("greeting the server"))?;
    // IPv6 data sockets cannot reach an IPv4-mapped address.
    address.set_ip(address.ip().to_canonical());
    Ok((stream, address))
}

async fn test_with(
    options: &ClientOptions,
    control: &mut ClientControl,
    server: SocketAddr,
    token: Token,
    observe: &mut (dyn FnMut(Event<'_>) + Send),
) -> Result<Measurement, Error> {
    let limit = options.timeout;
    let opened = tokio::select! {
        opened = connector::open(options, server, token) => opened,
        message = control.next("opening the data connections") => Err(unexpected(message?)),
    };
    let lanes = prefer_peer_report(opened, control).await?;
    match control
        .next_within(limit, "waiting for the server to be ready")
        .await?
    {
        FromServer::Ready => {}
        other => return Err(unexpected(other)),
    }
    let test = &options.parameters;
    let start = Start {
        side: Side::Client,
        host: options.host.clone(),
        port: options.port,
        time: SystemTime::now(),
        parameters: test.clone(),
        interval: options.interval,
        connections: lanes.iter().map(|lane| lane.ends).collect(),
    };
    observe(Event::Start(&start));
    control.send(&FromClient::Start).await?;

    let mut intervals = Vec::new();
    let mut note = |interval| {
        observe(Event::Interval(&interval));
        intervals.push(interval);
    };
    let watch = SamplingOptions {
        interval: options.interval,
        stall: limit,
    };
    let mut transfer = Transfer::begin(lanes, test.extent, Side::Client.sends(test));
    let outcome = tokio::select! {
        outcome = transfer.run(watch, &mut note) => outcome,
        message = control.next("the test was running") => Err(unexpected(message?)),
    };
    let ours = prefer_peer_report(outcome, control).await?;
    control.send(&FromClient::Finished(ours.clone())).await?;
    match control
        .next_within(limit, "waiting for the server's results")
        .await?
    {
        FromServer::Results(theirs) => Measurement::new(start, intervals, ours, theirs),
        other => Err(unexpected(other)),
    }
}

/// Replaces an error by the other side's report, if that is its cause.
async fn prefer_peer_report<T>(
    result: Result<T, Error>,
    control: &mut ClientControl,
) -> Result<T, Error> {
    match result {
        Err(error @ Error::Stream { .. }) => {
            match control.next_within(GRACE, "the test was running").await {
                Ok(FromServer::Failed(reason)) => Err(Error::Peer(reason)),
                Err(closed @ Error::Closed(_)) => Err(closed),
                _ => Err(error),
            }
        }
        other => other,
    }
}

fn unexpected(message: FromServer) -> Error {
    match message {
        FromServer::Failed(reason) => Error::Peer(reason),
        FromServer::Refused(reason) => Error::Refused(reason),
        other => Error::Protocol(format!("{} came out of turn", other.name())),
    }
}
