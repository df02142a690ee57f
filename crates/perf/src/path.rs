//! What a sender knows about the path of one stream.

use serde::{Deserialize, Serialize};
use weir_units::{ByteSize, Duration, Rate};

/// A sender's view of a path at one moment. Counts are since the connection began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PathSample {
    /// TCP and DCUDP: packets retransmitted. DCQUIC: packets lost.
    pub(crate) retransmits: u64,
    /// Packets that arrived CE-marked, where the transport knows.
    pub(crate) ce_marked: Option<u64>,
    /// The smoothed round-trip time.
    pub(crate) rtt: Duration,
    /// Its mean deviation, where the transport tells.
    pub(crate) rtt_variation: Option<Duration>,
    /// The congestion window, where the transport has one.
    pub(crate) cwnd: Option<ByteSize>,
    /// The path's maximum packet size as the transport counts it: TCP the IP packet, the
    /// others the UDP payload.
    pub(crate) path_mtu: ByteSize,
    /// How DCUDP sends.
    pub(crate) pacing: Option<Pacing>,
}

/// How a DCUDP sender sends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Pacing {
    /// The rate at which packets leave, in UDP payload.
    pub(crate) rate: Rate,
    /// Whether it is in Congestion Mode.
    pub(crate) is_congested: bool,
    /// How often it has changed its mode.
    pub(crate) switches: u64,
}

/// Asks a transport for its view.
pub(crate) trait Probe: Send + Sync {
    /// The view now; `None` where the transport does not tell.
    fn sample(&self) -> Option<PathSample>;
}

/// What all samples of one stream say together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PathSummary {
    /// The last sample.
    pub(crate) last: PathSample,
    /// The largest window seen.
    pub(crate) max_cwnd: Option<ByteSize>,
    /// The smallest of the smoothed round-trip times.
    pub(crate) min_rtt: Duration,
    /// The largest of them.
    pub(crate) max_rtt: Duration,
    /// Their mean.
    pub(crate) mean_rtt: Duration,
}

/// Gathers samples into a summary.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PathHistory {
    summary: PathSummary,
    rtt_sum: Duration,
    samples: u64,
}

impl PathHistory {
    pub(crate) fn add(&mut self, sample: PathSample) {
        let summary = &mut self.summary;
        summary.min_rtt = match self.samples {
            0 => sample.rtt,
            _ => summary.min_rtt.min(sample.rtt),
        };
        summary.max_rtt = summary.max_rtt.max(sample.rtt);
        summary.max_cwnd = summary.max_cwnd.max(sample.cwnd);
        summary.last = sample;
        self.rtt_sum += sample.rtt;
        self.samples += 1;
        summary.mean_rtt = self.rtt_sum / self.samples;
    }

    /// The last sample, if there was one.
    pub(crate) fn last(&self) -> Option<PathSample> {
        (self.samples > 0).then_some(self.summary.last)
    }

    /// The summary, if there was a sample.
    pub(crate) fn summary(&self) -> Option<PathSummary> {
        (self.samples > 0).then_some(self.summary)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_summary_has_the_extremes_and_the_mean() {
        let mut history = PathHistory::default();
        assert_eq!(history.summary(), None);
        for (rtt, cwnd) in [(30, 7), (10, 9), (20, 8)] {
            history.add(PathSample {
                rtt: Duration::from_micros(rtt),
                cwnd: Some(ByteSize::from_bytes(cwnd)),
                ..PathSample::default()
            });
        }
        let summary = history.summary().unwrap();
        assert_eq!(summary.min_rtt, Duration::from_micros(10));
        assert_eq!(summary.max_rtt, Duration::from_micros(30));
        assert_eq!(summary.mean_rtt, Duration::from_micros(20));
        assert_eq!(summary.max_cwnd, Some(ByteSize::from_bytes(9)));
        assert_eq!(history.last().unwrap().cwnd, Some(ByteSize::from_bytes(8)));
    }
}
