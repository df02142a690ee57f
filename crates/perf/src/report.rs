//! What comes out of a test, in the shape of iperf3's JSON: `start`, `intervals`, `end`.
//!
//! Where iperf3 has a field of the same name it has the same meaning and unit: times in seconds,
//! `rtt` in microseconds, windows in bytes. Ours are `transport`, `congestion`, `packet_size`,
//! `ce_marked` (packets), `cpu_seconds_per_gb` (GB = 10⁹ bytes that arrived), and over DCUDP `rate`,
//! `pacing_rate`, `mode` and `mode_switches`.

mod end;

use std::net::SocketAddr;
use std::time::SystemTime;

use serde::Serialize;
use weir_units::{ByteSize, Duration};

use crate::error::Error;
use crate::lane::{Ends, Lane, Side};
use crate::parameters::{DEFAULT_RATE, Direction, Extent, Parameters, Transport};
use crate::payload::BLOCK;
use crate::protocol::Outcome;
use crate::transfer::{Interval, StreamInterval};

pub use end::{CpuPerGb, CpuUtilization, End, StreamEnd, StreamTotal, Total};

/// The result of a test.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Report {
    /// What was measured, and between whom.
    pub start: Start,
    /// What happened on the way, as seen by the side that makes the report.
    pub intervals: Vec<IntervalReport>,
    /// The totals of both sides.
    pub end: End,
}

impl Report {
    /// # Errors
    /// [`Error::Protocol`] where the other side's outcome is not of this test.
    pub(crate) fn new(
        start: Start,
        intervals: Vec<IntervalReport>,
        test: &Parameters,
        ours: &Outcome,
        theirs: &Outcome,
    ) -> Result<Self, Error> {
        if ours.streams.len() != theirs.streams.len() {
            return Err(Error::Protocol(format!(
                "it reports {} streams, where there were {}",
                theirs.streams.len(),
                ours.streams.len()
            )));
        }
        let end = End::new(start.side.sends(test), ours, theirs);
        Ok(Self {
            start,
            intervals,
            end,
        })
    }
}

/// What is measured, and between whom.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Start {
    #[serde(skip)]
    pub(crate) side: Side,
    /// The data connections.
    pub connected: Vec<Connected>,
    /// The program and its version.
    pub version: String,
    /// When the test began.
    pub timestamp: Timestamp,
    /// A client's server, as the user named it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub connecting_to: Option<Peer>,
    /// A server's client.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub accepted_connection: Option<Peer>,
    /// The test.
    pub test_start: TestStart,
}

/// A data connection.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Connected {
    /// The stream's number in this report, from 1.
    pub socket: usize,
    /// This side's address.
    pub local_host: String,
    /// This side's port.
    pub local_port: u16,
    /// The other side's address.
    pub remote_host: String,
    /// The other side's port.
    pub remote_port: u16,
}

/// A moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Timestamp {
    /// Seconds since 1970.
    pub timesecs: u64,
}

/// The other side.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Peer {
    /// Its name or address.
    pub host: String,
    /// Its port.
    pub port: u16,
}

/// The test's parameters.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TestStart {
    /// As iperf3 would name the transport: `TCP`, `DCQUIC` or `DCUDP`.
    pub protocol: &'static str,
    /// The transport as this program names it.
    pub transport: &'static str,
    /// The congestion control asked for; nothing for the transport's default.
    pub congestion: Option<String>,
    /// The packet size asked for in bytes; nothing for the transport's default.
    pub packet_size: Option<u64>,
    /// How fast DCUDP sends while nothing is congested, in bits per second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<u64>,
    /// Whether a shared key seals DCUDP's packets.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub keyed: Option<bool>,
    /// Streams at once.
    pub num_streams: u16,
    /// Bytes handed to the transport at once.
    pub blksize: usize,
    /// Seconds to run; 0 where `bytes` ends the test.
    pub duration: f64,
    /// Bytes to send; 0 where `duration` ends the test.
    pub bytes: u64,
    /// 1 where the server sends.
    pub reverse: u8,
    /// Seconds between intervals.
    pub interval: f64,
}

impl Start {
    pub(crate) fn new(side: Side, interval: Duration, test: &Parameters, lanes: &[Lane]) -> Self {
        let now = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default();
        let connected = |(index, lane): (usize, &Lane)| Connected::new(index + 1, lane.ends);
        Self {
            side,
            connected: lanes.iter().enumerate().map(connected).collect(),
            version: concat!("weir ", env!("CARGO_PKG_VERSION")).to_owned(),
            timestamp: Timestamp {
                timesecs: now.as_secs(),
            },
            connecting_to: None,
            accepted_connection: None,
            test_start: TestStart::new(interval, test),
        }
    }

    pub(crate) fn connecting_to(self, host: &str, port: u16) -> Self {
        let host = host.to_owned();
        Self {
            connecting_to: Some(Peer { host, port }),
            ..self
        }
    }

    pub(crate) fn accepted(self, client: SocketAddr) -> Self {
        let host = client.ip().to_canonical().to_string();
        let port = client.port();
        Self {
            accepted_connection: Some(Peer { host, port }),
            ..self
        }
    }
}

impl Connected {
    fn new(socket: usize, ends: Ends) -> Self {
        Self {
            socket,
            local_host: ends.local.ip().to_string(),
            local_port: ends.local.port(),
            remote_host: ends.remote.ip().to_string(),
            remote_port: ends.remote.port(),
        }
    }
}

impl TestStart {
    fn new(interval: Duration, test: &Parameters) -> Self {
        let (duration, bytes) = match test.extent {
            Extent::Time(time) => (time.as_secs_f64(), 0),
            Extent::Bytes(size) => (0.0, size.bytes()),
        };
        let is_dcudp = test.transport == Transport::Dcudp;
        Self {
            protocol: test.transport.protocol(),
            transport: test.transport.name(),
            congestion: test.congestion.clone(),
            packet_size: test.packet_size.map(ByteSize::bytes),
            rate: is_dcudp.then(|| test.rate.unwrap_or(DEFAULT_RATE).bits_per_second()),
            keyed: is_dcudp.then_some(test.keyed),
            num_streams: test.parallel,
            blksize: BLOCK,
            duration,
            bytes,
            reverse: (test.direction == Direction::Download).into(),
            interval: interval.as_secs_f64(),
        }
    }
}

/// What happened in an interval.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct IntervalReport {
    /// On each stream.
    pub streams: Vec<StreamIntervalReport>,
    /// On all of them together.
    pub sum: Total,
}

/// What happened on one stream in an interval. What only a sender knows is missing on receivers.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StreamIntervalReport {
    /// The stream's number.
    pub socket: usize,
    /// Bytes and rates.
    #[serde(flatten)]
    pub total: Total,
    /// The congestion window in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub snd_cwnd: Option<u64>,
    /// The smoothed round-trip time in microseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rtt: Option<u64>,
    /// Its mean deviation in microseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rttvar: Option<u64>,
    /// The path's maximum packet size in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pmtu: Option<u64>,
    /// The rate at which DCUDP's packets leave, in bits of UDP payload per second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pacing_rate: Option<u64>,
    /// DCUDP's mode at the interval's end: `udp` or `congestion`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<&'static str>,
}

impl IntervalReport {
    pub(crate) fn new(interval: &Interval, sends: bool) -> Self {
        let (start, end) = (interval.start, interval.end);
        let stream = |(index, stream): (usize, &StreamInterval)| {
            let path = stream.path.as_ref();
            let pacing = path.and_then(|path| path.pacing);
            StreamIntervalReport {
                socket: index + 1,
                total: Total::new(start, end, stream.bytes, sends)
                    .with_losses(path.map(|path| path.retransmits))
                    .with_marks(path.and_then(|path| path.ce_marked))
                    .with_switches(pacing.map(|pacing| pacing.switches)),
                snd_cwnd: path.and_then(|path| path.cwnd).map(ByteSize::bytes),
                rtt: path.map(|path| path.rtt.as_micros()),
                rttvar: path
                    .and_then(|path| path.rtt_variation)
                    .map(Duration::as_micros),
                pmtu: path.map(|path| path.path_mtu.bytes()),
                pacing_rate: pacing.map(|pacing| pacing.rate.bits_per_second()),
                mode: pacing.map(|pacing| match pacing.is_congested {
                    true => "congestion",
                    false => "udp",
                }),
            }
        };
        let streams: Vec<_> = interval.streams.iter().enumerate().map(stream).collect();
        let sum = Total::sum(
            start,
            end,
            sends,
            streams.iter().map(|stream| &stream.total),
        );
        Self { streams, sum }
    }
}
