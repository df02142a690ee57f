//! An overloaded server: many connections with many calls open on each, always, from one thread to another,
//! with DCQUIC, TCP + TLS and quinn. `make bench-overload` prints how long calls take and what fails.
//! The exit code is 1 if DCQUIC's calls fail, or take longer than [`report::Limits`] allow.
//!
//! | module | contents |
//! |---|---|
//! | `calls` | the calls in a closed loop, and their times |
//! | `client` | the client's part of a run, over any transport |
//! | `server` | the server's process, and its parent's handle |
//! | `dcquic`, `tcp_tls`, `quinn` | both sides of each transport |
//! | `socket_drops` | UDP datagrams that a socket had no room for |
//! | `report` | the result of a run, and the verdict |
//!
//! Variables of the environment set `CONNECTIONS`, `CALLS` (open on each connection), `SIZE` (of a response),
//! `OVERLOAD_SECONDS`, and `TRANSPORTS`, a list; there is a verdict only with `dcquic` and `tcp-tls` in it.
#![allow(clippy::print_stdout, reason = "a benchmark")]

mod calls;
mod client;
mod dcquic;
mod quinn;
mod report;
mod server;
mod socket_drops;
mod tcp_tls;

use std::error::Error;
use std::fmt;
use std::process::ExitCode;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use weir_traffic::calls::Launcher;
use weir_traffic::calls::identity::{certificate, new_identity};
use weir_traffic::calls::process::raise_file_limit;
use weir_units::{ByteSize, Duration};

use report::Report;
use server::{Role, ServerProcess};

/// The argument of the server's process.
const SERVER: &str = "server";
const CONNECTIONS: usize = 1000;
const CALLS: usize = 10;
const SIZE: ByteSize = ByteSize::from_bytes(10_000);
const SECONDS: u64 = 20;

/// Whatever goes wrong.
type Failure = Box<dyn Error + Send + Sync>;

/// A transport under test.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Transport {
    Dcquic,
    TcpTls,
    Quinn,
}

impl Transport {
    const ALL: [Self; 3] = [Self::Dcquic, Self::TcpTls, Self::Quinn];

    /// Its name in `TRANSPORTS`.
    fn key(self) -> &'static str {
        match self {
            Self::Dcquic => "dcquic",
            Self::TcpTls => "tcp-tls",
            Self::Quinn => "quinn",
        }
    }
}

impl fmt::Display for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Dcquic => "DCQUIC",
            Self::TcpTls => "TCP + TLS 1.3",
            Self::Quinn => "quinn",
        })
    }
}

/// The parameters of a run.
#[derive(Clone, Copy, Debug)]
struct Plan {
    connections: usize,
    /// Calls that are open on each connection at any time.
    calls: usize,
    /// Bytes of a response.
    size: u32,
    /// How long calls begin.
    span: Duration,
}

fn main() -> Result<ExitCode, Failure> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments.iter().any(|argument| argument == SERVER) {
        server::serve()?;
        return Ok(ExitCode::SUCCESS);
    }
    // `cargo test` runs benchmarks too.
    if !arguments.iter().any(|argument| argument == "--bench") {
        return Ok(ExitCode::SUCCESS);
    }
    let size: ByteSize = setting("SIZE", SIZE)?;
    let plan = Plan {
        connections: setting("CONNECTIONS", CONNECTIONS)?,
        calls: setting("CALLS", CALLS)?,
        size: u32::try_from(size.bytes())?,
        span: Duration::from_secs(setting("OVERLOAD_SECONDS", SECONDS)?),
    };
    if plan.connections == 0 || plan.calls == 0 || plan.span == Duration::ZERO {
        return Err("CONNECTIONS, CALLS and OVERLOAD_SECONDS must be positive".into());
    }
    if !calls::SIZES.contains(&plan.size) {
        return Err(format!("SIZE must be in {:?} bytes", calls::SIZES).into());
    }
    let transports = transports()?;
    println!(
        "{} connections with {} calls open on each, {size} per response, for {}",
        plan.connections, plan.calls, plan.span
    );
    raise_file_limit()?;
    let launcher = Launcher::this_program(&[SERVER])?;
    let mut reports = Vec::new();
    for transport in transports {
        println!("\n{transport} (load average {})", load_average());
        let report = run(plan, transport, &launcher)?;
        report.print();
        reports.push(report);
    }
    println!("\nload average at the end: {}", load_average());
    Ok(report::judge(&reports))
}

/// Runs a server and a client with one transport.
fn run(plan: Plan, transport: Transport, launcher: &Launcher) -> Result<Report, Failure> {
    let identity = new_identity()?;
    let role = Role {
        transport,
        certificate: certificate(&identity),
        key: identity.private_key().secret_der().to_vec(),
    };
    let server = ServerProcess::start(launcher, &role)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let measured = runtime.block_on(client::run(
        plan,
        transport,
        server.address(),
        identity.fingerprint(),
    ))?;
    Ok(Report {
        transport,
        span: plan.span,
        measured,
        server: server.stop()?,
    })
}

fn transports() -> Result<Vec<Transport>, Failure> {
    let list: String = setting("TRANSPORTS", String::new())?;
    if list.trim().is_empty() {
        return Ok(Transport::ALL.to_vec());
    }
    let known = |name: &str| {
        let mut all = Transport::ALL.into_iter();
        all.find(|transport| transport.key() == name)
            .ok_or_else(|| {
                let keys = Transport::ALL.map(Transport::key).join(", ");
                format!("TRANSPORTS: there is no {name}; there are {keys}").into()
            })
    };
    list.split([' ', ','])
        .filter(|name| !name.is_empty())
        .map(known)
        .collect()
}

fn setting<Value: FromStr>(name: &str, default: Value) -> Result<Value, Failure>
where
    Value::Err: fmt::Display,
{
    match std::env::var(name) {
        Ok(text) if !text.is_empty() => Ok(text
            .parse()
            .map_err(|error| format!("{name}={text}: {error}"))?),
        _ => Ok(default),
    }
}

/// Returns the machine's load over 1, 5 and 15 minutes.
fn load_average() -> String {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ').take(3).collect::<Vec<_>>().join(" ")
}
