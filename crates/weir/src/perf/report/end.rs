//! The totals of a test, of both sides.

use serde::Serialize;
use weir_traffic::processor::ProcessorTime;
use weir_traffic::throughput::{Outcome, Reception, StreamOutcome};
use weir_units::{ByteSize, Duration};

/// The totals of a test, of both sides.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct End {
    /// Each stream, as both sides measured it.
    pub(crate) streams: Vec<StreamEnd>,
    /// Over UDP: all streams as the sender measured them, with the receiver's jitter.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) sum: Option<Total>,
    /// All streams, as the sender measured them.
    pub(crate) sum_sent: Total,
    /// All streams, as the receiver measured them.
    pub(crate) sum_received: Total,
    /// Processor time per time.
    pub(crate) cpu_utilization_percent: CpuUtilization,
    /// Processor time per amount of data.
    pub(crate) cpu_seconds_per_gb: CpuPerGb,
    /// The congestion control that the sender used.
    pub(crate) congestion: String,
}

/// A stream, as both sides measured it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct StreamEnd {
    /// The sender's measurement.
    pub(crate) sender: StreamTotal,
    /// The receiver's measurement.
    pub(crate) receiver: StreamTotal,
}

/// A stream, as one side measured it. Fields that only a sender knows are absent on receivers.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct StreamTotal {
    /// The stream's number.
    pub(crate) socket: usize,
    /// Bytes and rates.
    #[serde(flatten)]
    pub(crate) total: Total,
    /// The largest congestion window in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) max_snd_cwnd: Option<u64>,
    /// The minimum smoothed round-trip time in microseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) min_rtt: Option<u64>,
    /// The mean smoothed round-trip time in microseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) mean_rtt: Option<u64>,
    /// The maximum smoothed round-trip time in microseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) max_rtt: Option<u64>,
}

/// Bytes over a time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(crate) struct Total {
    /// Seconds since the test began.
    pub(crate) start: f64,
    /// Seconds since the test began.
    pub(crate) end: f64,
    /// The difference in seconds.
    pub(crate) seconds: f64,
    /// Bytes sent or received.
    pub(crate) bytes: u64,
    /// Bits per second.
    pub(crate) bits_per_second: f64,
    /// TCP and DCUDP: packets retransmitted. DCQUIC: packets lost. Only the sender reports it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) retransmits: Option<u64>,
    /// Over UDP: packets sent, retransmissions included, or received.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) packets: Option<u64>,
    /// Over UDP: the packets that the sender counts as lost: those of `retransmits`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) lost_packets: Option<u64>,
    /// Their share of `packets`, in percent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) lost_percent: Option<f64>,
    /// DCUDP: the receiver's interarrival jitter (RFC 3550, section 6.4.1) in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) jitter_ms: Option<f64>,
    /// Whether the results leave the interval out: never. In intervals only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) omitted: Option<bool>,
    /// Packets that arrived CE-marked, if the sender's transport reports it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) ce_marked: Option<u64>,
    /// The number of mode changes of a DCUDP sender between UDP Mode and Congestion Mode.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) mode_switches: Option<u64>,
    /// Whether the sender measured this.
    pub(crate) sender: bool,
}

impl Total {
    pub(crate) fn new(start: Duration, end: Duration, bytes: u64, sender: bool) -> Self {
        let seconds = (end - start).as_secs_f64();
        Self {
            start: start.as_secs_f64(),
            end: end.as_secs_f64(),
            seconds,
            bytes,
            bits_per_second: if seconds > 0.0 {
                8.0 * bytes as f64 / seconds
            } else {
                0.0
            },
            retransmits: None,
            packets: None,
            lost_packets: None,
            lost_percent: None,
            jitter_ms: None,
            omitted: None,
            ce_marked: None,
            mode_switches: None,
            sender,
        }
    }

    pub(crate) fn with_losses(self, retransmits: Option<u64>) -> Self {
        Self {
            retransmits,
            ..self
        }
    }

    /// Adds the packets that a sender has sent, after [`Self::with_losses`].
    pub(crate) fn with_packets(self, packets: Option<u64>) -> Self {
        let lost_packets = self.retransmits.filter(|_| packets.is_some());
        let percent = |(lost, packets)| match packets {
            0 => 0.0,
            packets => 100.0 * lost as f64 / packets as f64,
        };
        Self {
            packets,
            lost_packets,
            lost_percent: lost_packets.zip(packets).map(percent),
            ..self
        }
    }

    /// Adds what a receiver has received.
    pub(crate) fn with_reception(self, reception: Option<Reception>) -> Self {
        Self {
            packets: self
                .packets
                .or(reception.map(|reception| reception.packets)),
            jitter_ms: reception.map(|reception| reception.jitter.as_secs_f64() * 1e3),
            ..self
        }
    }

    pub(crate) fn in_an_interval(self) -> Self {
        Self {
            omitted: Some(false),
            ..self
        }
    }

    pub(crate) fn with_marks(self, ce_marked: Option<u64>) -> Self {
        Self { ce_marked, ..self }
    }

    pub(crate) fn with_switches(self, mode_switches: Option<u64>) -> Self {
        Self {
            mode_switches,
            ..self
        }
    }

    /// Returns the sum of several streams over a time.
    pub(crate) fn sum<'a>(
        start: Duration,
        end: Duration,
        sender: bool,
        of: impl Iterator<Item = &'a Self> + Clone,
    ) -> Self {
        let bytes = of
            .clone()
            .fold(0, |sum: u64, total| sum.saturating_add(total.bytes));
        let all = |count: fn(&Self) -> Option<u64>| {
            of.clone().filter_map(count).reduce(u64::saturating_add)
        };
        // iperf3 reports the mean jitter of all streams.
        let jitters = || of.clone().filter_map(|total| total.jitter_ms);
        let jitter_ms = jitters()
            .reduce(|sum, jitter| sum + jitter)
            .map(|sum| sum / jitters().count() as f64);
        let packets = all(|total| total.packets);
        let sum = Self::new(start, end, bytes, sender).with_losses(all(|total| total.retransmits));
        let sum = if sender {
            sum.with_packets(packets)
        } else {
            Self { packets, ..sum }
        };
        Self { jitter_ms, ..sum }
            .with_marks(all(|total| total.ce_marked))
            .with_switches(all(|total| total.mode_switches))
    }
}

/// Processor time per time, in percent of one processor.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(crate) struct CpuUtilization {
    /// This side's process.
    pub(crate) host_total: f64,
    /// User time of this side's process.
    pub(crate) host_user: f64,
    /// System time of this side's process.
    pub(crate) host_system: f64,
    /// The other side's process.
    pub(crate) remote_total: f64,
    /// User time of the other side's process.
    pub(crate) remote_user: f64,
    /// System time of the other side's process.
    pub(crate) remote_system: f64,
}

/// Processor seconds per GB (10⁹ bytes) delivered; absent if nothing was delivered.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(crate) struct CpuPerGb {
    /// This side's process.
    pub(crate) host: Option<f64>,
    /// The other side's process.
    pub(crate) remote: Option<f64>,
    /// Both processes.
    pub(crate) total: Option<f64>,
}

impl End {
    /// Both outcomes have the same number of streams.
    pub(crate) fn new(we_send: bool, ours: &Outcome, theirs: &Outcome) -> Self {
        let (sender, receiver) = if we_send {
            (ours, theirs)
        } else {
            (theirs, ours)
        };
        let streams = sender.streams.iter().zip(&receiver.streams).enumerate();
        let streams = streams.map(|(index, (sent, received))| StreamEnd {
            sender: StreamTotal::new(index + 1, sent, true),
            receiver: StreamTotal::new(index + 1, received, false),
        });
        let streams: Vec<_> = streams.collect();
        let zero = Duration::ZERO;
        let sent = streams.iter().map(|stream| &stream.sender.total);
        let received = streams.iter().map(|stream| &stream.receiver.total);
        let sum_received = Total::sum(zero, receiver.elapsed, false, received);
        let sum_sent = Total::sum(zero, sender.elapsed, true, sent);
        Self {
            sum: sum_sent.packets.map(|_| Total {
                jitter_ms: sum_received.jitter_ms,
                ..sum_sent
            }),
            sum_sent,
            cpu_utilization_percent: CpuUtilization::new(ours, theirs),
            cpu_seconds_per_gb: CpuPerGb::new(sum_received.bytes, ours, theirs),
            congestion: sender.congestion.clone(),
            sum_received,
            streams,
        }
    }
}

impl StreamTotal {
    fn new(socket: usize, outcome: &StreamOutcome, sender: bool) -> Self {
        let path = outcome.path.as_ref().filter(|_| sender);
        Self {
            socket,
            total: Total::new(Duration::ZERO, outcome.elapsed, outcome.bytes, sender)
                .with_losses(path.map(|path| path.last.retransmits))
                .with_packets(path.and_then(|path| path.last.packets))
                .with_reception(outcome.reception.filter(|_| !sender))
                .with_marks(path.and_then(|path| path.last.ce_marked))
                .with_switches(path.and_then(|path| path.last.pacing).map(|it| it.switches)),
            max_snd_cwnd: path.and_then(|path| path.max_cwnd).map(ByteSize::bytes),
            min_rtt: path.map(|path| path.min_rtt.as_micros()),
            mean_rtt: path.map(|path| path.mean_rtt.as_micros()),
            max_rtt: path.map(|path| path.max_rtt.as_micros()),
        }
    }
}

impl CpuUtilization {
    fn new(ours: &Outcome, theirs: &Outcome) -> Self {
        let percent = |outcome: &Outcome, of: fn(ProcessorTime) -> Duration| {
            let elapsed = outcome.elapsed.as_secs_f64();
            if elapsed > 0.0 {
                100.0 * of(outcome.processor).as_secs_f64() / elapsed
            } else {
                0.0
            }
        };
        Self {
            host_total: percent(ours, ProcessorTime::total),
            host_user: percent(ours, |time| time.user),
            host_system: percent(ours, |time| time.system),
            remote_total: percent(theirs, ProcessorTime::total),
            remote_user: percent(theirs, |time| time.user),
            remote_system: percent(theirs, |time| time.system),
        }
    }
}

impl CpuPerGb {
    fn new(bytes: u64, ours: &Outcome, theirs: &Outcome) -> Self {
        let per_gb = |time: Duration| (bytes > 0).then(|| time.as_secs_f64() * 1e9 / bytes as f64);
        let (host, remote) = (ours.processor.total(), theirs.processor.total());
        Self {
            host: per_gb(host),
            remote: per_gb(remote),
            total: per_gb(host + remote),
        }
    }
}

#[cfg(test)]
mod tests {
    use weir_traffic::throughput::PathSummary;

    use super::*;

    fn outcome(bytes: &[u64], seconds: u64, cpu_ms: u64) -> Outcome {
        Outcome {
            streams: bytes
                .iter()
                .map(|bytes| StreamOutcome {
                    bytes: *bytes,
                    elapsed: Duration::from_secs(seconds),
                    path: Some(PathSummary::default()),
                    reception: None,
                })
                .collect(),
            elapsed: Duration::from_secs(seconds),
            processor: ProcessorTime {
                user: Duration::from_millis(cpu_ms),
                system: Duration::from_millis(cpu_ms),
            },
            congestion: "reno".to_owned(),
        }
    }

    #[test]
    fn sums_rates_and_costs_follow_from_the_outcomes() {
        let sent = outcome(&[600_000_000, 500_000_000], 2, 500);
        let received = outcome(&[600_000_000, 400_000_000], 4, 250);
        let end = End::new(true, &sent, &received);
        assert_eq!(end.sum_sent.bytes, 1_100_000_000);
        assert_eq!(end.sum_sent.bits_per_second, 4.4e9);
        assert_eq!(end.sum_sent.retransmits, Some(0));
        assert_eq!(end.sum_received.bits_per_second, 2e9);
        assert_eq!(end.sum_received.retransmits, None);
        assert_eq!(end.cpu_utilization_percent.host_total, 50.0);
        assert_eq!(end.cpu_utilization_percent.remote_system, 6.25);
        let per_gb = end.cpu_seconds_per_gb;
        assert_eq!(
            (per_gb.host, per_gb.remote, per_gb.total),
            (Some(1.0), Some(0.5), Some(1.5))
        );

        let seen_by_receiver = End::new(false, &received, &sent);
        assert_eq!(seen_by_receiver.sum_sent.bytes, 1_100_000_000);
        assert_eq!(seen_by_receiver.cpu_seconds_per_gb.host, Some(0.5));
    }

    #[test]
    fn udp_senders_report_losses_and_receivers_their_jitter() {
        let mut sent = outcome(&[1000, 1000], 1, 1);
        for (stream, (packets, retransmits)) in sent.streams.iter_mut().zip([(300, 2), (100, 6)]) {
            let path = stream.path.as_mut().unwrap();
            (path.last.packets, path.last.retransmits) = (Some(packets), retransmits);
        }
        let mut received = outcome(&[1000, 1000], 1, 1);
        for (stream, jitter) in received.streams.iter_mut().zip([1, 3]) {
            stream.path = None;
            stream.reception = Some(Reception {
                packets: 150,
                duplicates: 0,
                jitter: Duration::from_millis(jitter),
            });
        }
        let end = End::new(true, &sent, &received);
        let sum = end.sum.unwrap();
        assert_eq!((sum.packets, sum.lost_packets), (Some(400), Some(8)));
        assert_eq!((sum.lost_percent, sum.jitter_ms), (Some(2.0), Some(2.0)));
        assert_eq!(end.streams[1].sender.total.lost_percent, Some(6.0));
        assert_eq!(end.sum_received.packets, Some(300));
        assert_eq!(end.sum_received.lost_percent, None);
        let tcp = End::new(true, &outcome(&[1], 1, 1), &outcome(&[1], 1, 1));
        assert_eq!((tcp.sum, tcp.sum_sent.packets), (None, None));
    }

    #[test]
    fn invalid_peer_counters_still_give_finite_numbers() {
        let end = End::new(
            true,
            &outcome(&[1, 1], 0, 1),
            &outcome(&[u64::MAX, u64::MAX], 0, 1),
        );
        assert_eq!(end.sum_received.bytes, u64::MAX);
        assert_eq!(end.sum_received.bits_per_second, 0.0);
        assert_eq!(end.cpu_utilization_percent.remote_total, 0.0);
        let nothing = End::new(true, &outcome(&[], 1, 1), &outcome(&[], 1, 1));
        assert_eq!(nothing.cpu_seconds_per_gb.total, None);
    }
}
