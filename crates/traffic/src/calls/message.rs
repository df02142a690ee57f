//! The messages between the benchmark and its worker processes, one JSON value per line: roles and
//! commands on the worker's standard input, one answer to each on its standard output.

use std::net::SocketAddr;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::calls::driver::Phase;
use crate::calls::measure::Times;
use crate::calls::mix::MixTimes;
use crate::calls::specification::TransportSpecification;
use crate::tls::Trust;

/// The role of a worker process; the first line that it reads.
#[derive(Debug, Serialize, Deserialize)]
pub enum Role {
    /// A server.
    Server {
        /// The transport and its settings.
        specification: TransportSpecification,
        /// The listening address.
        bind: SocketAddr,
        /// The certificate in DER.
        certificate: Vec<u8>,
        /// Its key as PKCS #8 in DER.
        key: Vec<u8>,
        /// Whether to accept early data.
        early_data: bool,
        /// Where it runs.
        place: Place,
    },
    /// A client.
    Client {
        /// The transport and its settings.
        specification: TransportSpecification,
        /// The server.
        server: SocketAddr,
        /// The server that accepts early data, if there is one.
        early_data_server: Option<SocketAddr>,
        /// The certificate to trust.
        trust: Trust,
        /// Where it runs.
        place: Place,
    },
}

/// Where a worker runs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    /// Its network namespace; its parent's if absent.
    pub namespace: Option<PathBuf>,
    /// The processors that it may use; any if empty.
    pub processors: Vec<usize>,
}

impl Role {
    /// Returns where the worker runs.
    #[must_use]
    pub fn place(&self) -> &Place {
        match self {
            Self::Server { place, .. } | Self::Client { place, .. } => place,
        }
    }
}

/// A command to a worker.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Command {
    /// Measure a phase a number of times, after a warm-up.
    Measure {
        /// The phase to measure.
        phase: Phase,
        /// Length of each reply.
        size_bytes: u64,
        /// Iterations of the warm-up, which are compared byte by byte.
        warm_up: u32,
        /// Iterations that are measured.
        iterations: u32,
    },
    /// Open a connection and download the warm-up data.
    Open {
        /// Bytes of the warm-up.
        warm_up_bytes: u64,
    },
    /// Download over the connection that [`Command::Open`] opened, and close it.
    Download {
        /// Bytes to download.
        size_bytes: u64,
    },
    /// Many concurrent connections.
    Mix {
        /// The number of connections.
        connections: u32,
        /// Calls on each connection, one after the other.
        calls: u32,
        /// Reply sizes, used in turn.
        sizes_bytes: Vec<u64>,
        /// The time after which a call counts as stalled, in nanoseconds.
        stall_ns: u64,
    },
    /// Calls that arrive as a Poisson process, over connections opened before.
    OpenMix {
        /// The number of connections.
        connections: u32,
        /// Calls in all.
        calls: u32,
        /// Reply sizes, used in turn.
        sizes_bytes: Vec<u64>,
        /// The mean rate of arrivals per second.
        rate_per_s: f64,
        /// The seed of the arrivals.
        seed: u64,
        /// The time after which a call counts as stalled, in nanoseconds.
        stall_ns: u64,
    },
    /// Report the processor time that the process has used.
    ProcessorTime,
}

/// The answer of a worker.
#[derive(Debug, Serialize, Deserialize)]
pub enum Answer {
    /// A server is listening.
    Listening {
        /// Its address.
        address: SocketAddr,
        /// Its certificate's fingerprint.
        fingerprint: String,
        /// Notes for readers of the results.
        notes: Vec<String>,
    },
    /// The command is done, without a result.
    Done,
    /// Measured times.
    Samples(Times),
    /// A download.
    Downloaded {
        /// Duration, in nanoseconds.
        elapsed_ns: u64,
        /// Processor time of the client, in nanoseconds.
        processor_ns: u64,
    },
    /// A mix.
    Mix(MixTimes),
    /// Processor time used since the process started, in nanoseconds.
    ProcessorTime(u64),
    /// The command failed.
    Failed(String),
}
