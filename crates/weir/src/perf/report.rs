//! The result of a throughput test in iperf3's JSON format: `start`, `intervals`, `end`.
//!
//! Fields that iperf3 also has keep its meaning and unit: times in seconds, `rtt` in microseconds,
//! windows in bytes. A sender over UDP has `packets`, `lost_packets` and `lost_percent` of iperf3's UDP
//! tests beside `retransmits`; `jitter_ms` is a DCUDP receiver's. Additional fields are `transport`, `congestion`, `packet_size`, `ce_marked`
//! (packets), `cpu_seconds_per_gb` (GB = 10⁹ bytes delivered), and for DCUDP `rate`, `pacing_rate`,
//! `mode` and `mode_switches`.

mod end;

use std::time::SystemTime;

use serde::Serialize;
use weir_traffic::throughput::{
    self, BLOCK, DEFAULT_RATE, Direction, Extent, Measurement, Profile, Side, StreamInterval,
    Transport,
};
use weir_traffic::transport::ConnectionAddresses;
use weir_units::{ByteSize, Duration, Rate};

pub(crate) use end::{End, Total};

/// The result of a test.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Report {
    /// The test and its two sides.
    pub(crate) start: Start,
    /// The intervals, as measured by the reporting side.
    pub(crate) intervals: Vec<Interval>,
    /// The totals of both sides.
    pub(crate) end: End,
}

impl Report {
    pub(crate) fn new(measurement: &Measurement) -> Self {
        let Measurement {
            start,
            intervals,
            ours,
            theirs,
        } = measurement;
        let sends = start.side.sends(&start.parameters);
        let intervals = intervals.iter();
        Self {
            start: Start::new(start),
            intervals: intervals.map(|it| Interval::new(it, sends)).collect(),
            end: End::new(sends, ours, theirs),
        }
    }
}

/// The test and its two sides.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Start {
    /// The data connections.
    pub(crate) connected: Vec<Connected>,
    /// The program and its version.
    pub(crate) version: String,
    /// The start time of the test.
    pub(crate) timestamp: Timestamp,
    /// The server, as the user named it; in a client's report.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) connecting_to: Option<Peer>,
    /// The client; in a server's report.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) accepted_connection: Option<Peer>,
    /// The parameters of the test.
    pub(crate) test_start: TestStart,
}

/// A data connection.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Connected {
    /// The stream's number in this report, from 1.
    pub(crate) socket: usize,
    /// This side's address.
    pub(crate) local_host: String,
    /// This side's port.
    pub(crate) local_port: u16,
    /// The other side's address.
    pub(crate) remote_host: String,
    /// The other side's port.
    pub(crate) remote_port: u16,
}

/// A point in time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Timestamp {
    /// The date and time in UTC (RFC 9110, section 5.6.7).
    pub(crate) time: String,
    /// Seconds since 1970.
    pub(crate) timesecs: u64,
}

/// The other side.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Peer {
    /// Its name or address.
    pub(crate) host: String,
    /// Its port.
    pub(crate) port: u16,
}

/// The test's parameters.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct TestStart {
    /// The transport's name in iperf3's style: `TCP`, `DCQUIC` or `DCUDP`.
    pub(crate) protocol: &'static str,
    /// The transport's name in this program.
    pub(crate) transport: &'static str,
    /// The requested congestion control; `None` for the transport's default.
    pub(crate) congestion: Option<String>,
    /// The requested packet size in bytes; `None` for the transport's default.
    pub(crate) packet_size: Option<u64>,
    /// How a DCUDP sender finds its rate: `shared` or `data-center`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) profile: Option<&'static str>,
    /// DCUDP's highest rate, in bits per second; with `data-center` it is that without congestion.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) rate: Option<u64>,
    /// Whether DCUDP's packets are encrypted with a shared key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) keyed: Option<bool>,
    /// Parallel streams.
    pub(crate) num_streams: u16,
    /// Bytes passed to the transport at once.
    pub(crate) blksize: usize,
    /// Seconds at the start that are left out of the results: none.
    pub(crate) omit: u64,
    /// Seconds to run; 0 if `bytes` ends the test.
    pub(crate) duration: f64,
    /// Bytes to send; 0 if `duration` ends the test.
    pub(crate) bytes: u64,
    /// 1 if the server sends.
    pub(crate) reverse: u8,
    /// Seconds between intervals.
    pub(crate) interval: f64,
}

impl Start {
    pub(crate) fn new(start: &throughput::Start) -> Self {
        let since_1970 = start.time.duration_since(SystemTime::UNIX_EPOCH);
        let connections = start.connections.iter().zip(1..);
        let peer = Some(Peer {
            host: start.host.clone(),
            port: start.port,
        });
        let (connecting_to, accepted_connection) = match start.side {
            Side::Client => (peer, None),
            Side::Server => (None, peer),
        };
        Self {
            connected: connections
                .map(|(ends, socket)| Connected::new(socket, ends))
                .collect(),
            version: concat!("weir ", env!("CARGO_PKG_VERSION")).to_owned(),
            timestamp: Timestamp {
                time: httpdate::fmt_http_date(start.time),
                timesecs: since_1970.unwrap_or_default().as_secs(),
            },
            connecting_to,
            accepted_connection,
            test_start: TestStart::new(start),
        }
    }
}

impl Connected {
    fn new(socket: usize, ends: &ConnectionAddresses) -> Self {
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
    fn new(start: &throughput::Start) -> Self {
        let test = &start.parameters;
        let (duration, bytes) = match test.extent {
            Extent::Time(time) => (time.as_secs_f64(), 0),
            Extent::Bytes(size) => (0.0, size.bytes()),
        };
        let is_dcudp = test.transport == Transport::Dcudp;
        let profile = test.profile.unwrap_or_default();
        let default_rate = (profile == Profile::DataCenter).then_some(DEFAULT_RATE);
        let rate = test.rate.or(default_rate).filter(|_| is_dcudp);
        Self {
            protocol: match test.transport {
                Transport::Dcquic => "DCQUIC",
                Transport::Dcudp => "DCUDP",
                Transport::Tcp | Transport::TcpTls => "TCP",
            },
            transport: test.transport.name(),
            congestion: test.congestion.clone(),
            packet_size: test.packet_size.map(ByteSize::bytes),
            profile: is_dcudp.then(|| profile.name()),
            rate: rate.map(Rate::bits_per_second),
            keyed: is_dcudp.then_some(test.keyed),
            num_streams: test.parallel,
            blksize: BLOCK,
            omit: 0,
            duration,
            bytes,
            reverse: (test.direction == Direction::Download).into(),
            interval: start.interval.as_secs_f64(),
        }
    }
}

/// The measurements of an interval.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Interval {
    /// The measurements of each stream.
    pub(crate) streams: Vec<StreamOfInterval>,
    /// The sum of all streams.
    pub(crate) sum: Total,
}

/// The measurements of one stream in an interval. Fields that only a sender knows are absent on
/// receivers.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct StreamOfInterval {
    /// The stream's number.
    pub(crate) socket: usize,
    /// Bytes and rates.
    #[serde(flatten)]
    pub(crate) total: Total,
    /// The congestion window in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) snd_cwnd: Option<u64>,
    /// The smoothed round-trip time in microseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) rtt: Option<u64>,
    /// Its mean deviation in microseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) rttvar: Option<u64>,
    /// The path's maximum packet size in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) pmtu: Option<u64>,
    /// The pacing rate of DCUDP, in bits of UDP payload per second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) pacing_rate: Option<u64>,
    /// DCUDP's mode at the end of the interval: `udp` or `congestion`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) mode: Option<&'static str>,
}

impl Interval {
    pub(crate) fn new(interval: &throughput::Interval, sends: bool) -> Self {
        let (start, end) = (interval.start, interval.end);
        let stream = |(index, stream): (usize, &StreamInterval)| {
            let path = stream.path.as_ref();
            let pacing = path.and_then(|path| path.pacing);
            StreamOfInterval {
                socket: index + 1,
                total: Total::new(start, end, stream.bytes, sends)
                    .with_losses(path.map(|path| path.retransmits))
                    .with_packets(path.and_then(|path| path.packets))
                    .in_an_interval()
                    .with_marks(path.and_then(|path| path.ce_marked))
                    .with_switches(pacing.map(|pacing| pacing.switches)),
                snd_cwnd: path.and_then(|path| path.cwnd).map(ByteSize::bytes),
                rtt: path.map(|path| path.rtt.as_micros()),
                rttvar: path
                    .and_then(|path| path.rtt_variation)
                    .map(Duration::as_micros),
                pmtu: path.map(|path| path.path_mtu.bytes()),
                pacing_rate: pacing.map(|pacing| pacing.rate.bits_per_second()),
                mode: pacing.map(|pacing| {
                    if pacing.is_congested {
                        "congestion"
                    } else {
                        "udp"
                    }
                }),
            }
        };
        let streams: Vec<_> = interval.streams.iter().enumerate().map(stream).collect();
        let sum = Total::sum(
            start,
            end,
            sends,
            streams.iter().map(|stream| &stream.total),
        )
        .in_an_interval();
        Self { streams, sum }
    }
}
