//! What the bench and its worker processes say to each other: one JSON value per line, roles and
//! commands on the worker's standard input, one answer to each on its standard output.

use std::net::SocketAddr;

use serde::{Deserialize, Serialize};

use crate::calls::driver::Phase;
use crate::calls::mix::MixTimes;
use crate::calls::specification::TransportSpecification;
use crate::tls::Trust;

/// What a worker process is to be; the first line that it reads.
#[derive(Debug, Serialize, Deserialize)]
pub enum Role {
    /// A server.
    Server {
        /// Transport and settings.
        specification: TransportSpecification,
        /// Where to listen.
        bind: SocketAddr,
        /// The certificate in DER.
        certificate: Vec<u8>,
        /// Its key as PKCS #8 in DER.
        key: Vec<u8>,
        /// Whether to accept early data.
        early_data: bool,
        /// The processors it may use; any if empty.
        processors: Vec<usize>,
    },
    /// A client.
    Client {
        /// Transport and settings.
        specification: TransportSpecification,
        /// The server.
        server: SocketAddr,
        /// The server that accepts early data, if there is one.
        early_data_server: Option<SocketAddr>,
        /// Which certificate to believe.
        trust: Trust,
        /// The processors it may use; any if empty.
        processors: Vec<usize>,
    },
}

/// What a worker is to do next.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Command {
    /// Measure a phase so many times, after some that are not counted.
    Measure {
        /// What to measure.
        phase: Phase,
        /// Length of each reply.
        size_bytes: u64,
        /// Iterations that are compared byte by byte and not counted.
        warm_up: u32,
        /// Iterations that count.
        iterations: u32,
    },
    /// Open a connection and download so much to warm it up.
    Open {
        /// Bytes of the warm-up.
        warm_up_bytes: u64,
    },
    /// Download so much over the connection that [`Command::Open`] opened, and close it.
    Download {
        /// Bytes to download.
        size_bytes: u64,
    },
    /// Many connections at once.
    Mix {
        /// Connections.
        connections: u32,
        /// Calls on each, one after the other.
        calls: u32,
        /// Reply sizes, taken in turn.
        sizes_bytes: Vec<u64>,
        /// A call that takes longer than this counts as stalled, in nanoseconds.
        stall_ns: u64,
    },
    /// Say how much processor time the process has used.
    ProcessorTime,
}

/// What a worker answers.
#[derive(Debug, Serialize, Deserialize)]
pub enum Answer {
    /// A server listens.
    Listening {
        /// Where.
        address: SocketAddr,
        /// Its certificate's fingerprint.
        fingerprint: String,
        /// What a reader of the results should know.
        notes: Vec<String>,
    },
    /// Done; nothing more to say.
    Done,
    /// Measured times in nanoseconds.
    Samples(Vec<u64>),
    /// A download.
    Downloaded {
        /// Time taken, in nanoseconds.
        elapsed_ns: u64,
        /// Processor time of the client, in nanoseconds.
        processor_ns: u64,
    },
    /// A mix.
    Mix(MixTimes),
    /// Processor time used since the process began, in nanoseconds.
    ProcessorTime(u64),
    /// It could not be done.
    Failed(String),
}
