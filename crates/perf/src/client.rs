//! The client's side of a test.

use std::net::SocketAddr;

use tokio::io::AsyncWriteExt;
use tokio::time::timeout;
use weir_net::tls::Fingerprint;
use weir_units::Duration;

use crate::control::Control;
use crate::error::Error;
use crate::lane::Side;
use crate::parameters::Parameters;
use crate::protocol::{FromClient, FromServer, Greeting, Outcome, Token};
use crate::report::{IntervalReport, Report, Start};
use crate::transfer::{Transfer, Watch};
use crate::transport::{self, Opened};

/// A failure on a data connection is often only the echo of one that the other side reports on
/// the control connection; for this long that report is waited for.
const GRACE: Duration = Duration::from_millis(200);

/// A test as a client asks for it.
#[derive(Clone, Debug)]
pub struct ClientOptions {
    /// The server as the user named it, for the report.
    pub host: String,
    /// The server's address.
    pub server: SocketAddr,
    /// The fingerprint of the server's certificate; needed where the transport shows one.
    pub pin: Option<Fingerprint>,
    /// The test.
    pub parameters: Parameters,
    /// The time between two interval reports; zero for none but the last.
    pub interval: Duration,
    /// How long anything may take that the test's parameters do not bound: connecting, an answer,
    /// a pause in the data.
    pub timeout: Duration,
}

/// What happens during a test.
#[derive(Clone, Copy, Debug)]
pub enum Event<'a> {
    /// All connections are there and the test begins.
    Start(&'a Start),
    /// An interval has ended.
    Interval(&'a IntervalReport),
}

type ClientControl = Control<FromClient, FromServer>;

/// Runs a test; `observe` hears what happens on the way.
///
/// # Errors
/// [`Error`], which says what to do about it.
pub async fn run(
    options: &ClientOptions,
    observe: &mut (dyn FnMut(Event<'_>) + Send),
) -> Result<Report, Error> {
    let test = &options.parameters;
    test.validate()?;
    let mut control = connect(options).await?;
    control.send(&FromClient::Begin(test.clone())).await?;
    let answer = control
        .next_within(options.timeout, "waiting for the server's answer")
        .await?;
    let token = match answer {
        FromServer::Accepted(token) => token,
        FromServer::Refused(reason) => return Err(Error::Refused(reason)),
        other => return Err(unexpected(other)),
    };
    let result = test_with(options, &mut control, token, observe).await;
    if let Err(error) = &result {
        // The server may be gone; it notices the closed connection then.
        let _ = control.send(&FromClient::Failed(error.to_string())).await;
    }
    result
}

async fn connect(options: &ClientOptions) -> Result<ClientControl, Error> {
    let limit = options.timeout;
    let stream = timeout(limit.into(), tokio::net::TcpStream::connect(options.server)).await;
    let mut stream = match stream {
        Ok(Ok(stream)) => stream,
        Ok(Err(source)) => {
            return Err(Error::Connect {
                address: options.server,
                source,
            });
        }
        Err(_) => {
            return Err(Error::NoAnswer {
                address: options.server,
                limit,
            });
        }
    };
    stream
        .write_all(&Greeting::Control.encode())
        .await
        .map_err(Error::stream("greeting the server"))?;
    Ok(Control::new(stream, limit))
}

async fn test_with(
    options: &ClientOptions,
    control: &mut ClientControl,
    token: Token,
    observe: &mut (dyn FnMut(Event<'_>) + Send),
) -> Result<Report, Error> {
    let limit = options.timeout;
    let opened = tokio::select! {
        opened = transport::open(options, token) => opened,
        message = control.next("opening the data connections") => Err(unexpected(message?)),
    };
    let Opened { lanes, congestion } = explained(opened, control).await?;
    match control
        .next_within(limit, "waiting for the server to be ready")
        .await?
    {
        FromServer::Ready => {}
        other => return Err(unexpected(other)),
    }
    let test = &options.parameters;
    let start = Start::new(Side::Client, options.interval, test, &lanes)
        .connecting_to(&options.host, options.server.port());
    observe(Event::Start(&start));
    control.send(&FromClient::Start).await?;

    let sends = Side::Client.sends(test);
    let mut intervals = Vec::new();
    let mut note = |interval: &_| {
        let report = IntervalReport::new(interval, sends);
        observe(Event::Interval(&report));
        intervals.push(report);
    };
    let watch = Watch {
        interval: options.interval,
        stall: limit,
    };
    let mut transfer = Transfer::begin(lanes, test.extent, sends);
    let outcome = tokio::select! {
        outcome = transfer.run(watch, &mut note) => outcome,
        message = control.next("the test was running") => Err(unexpected(message?)),
    };
    let ours = Outcome {
        congestion,
        ..explained(outcome, control).await?
    };
    control.send(&FromClient::Finished(ours.clone())).await?;
    match control
        .next_within(limit, "waiting for the server's results")
        .await?
    {
        FromServer::Results(theirs) => Report::new(start, intervals, test, &ours, &theirs),
        other => Err(unexpected(other)),
    }
}

/// Prefers the other side's words over an error that is only their echo.
async fn explained<T>(result: Result<T, Error>, control: &mut ClientControl) -> Result<T, Error> {
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
