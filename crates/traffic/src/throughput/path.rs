//! A sender's measurements of the path of one stream.

use serde::{Deserialize, Serialize};
use weir_units::{ByteSize, Duration};

use crate::probe::{self, Pacing};

/// A sender's state of a path at one time. Counters start when the connection begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PathSample {
    /// Packets sent, retransmissions included, if the transport reports it.
    pub packets: Option<u64>,
    /// TCP and DCUDP: packets retransmitted. DCQUIC: packets lost.
    pub retransmits: u64,
    /// Packets that arrived CE-marked, if the transport reports it.
    pub ce_marked: Option<u64>,
    /// The smoothed round-trip time.
    pub rtt: Duration,
    /// Its mean deviation, if the transport reports it.
    pub rtt_variation: Option<Duration>,
    /// The congestion window, if the transport has one.
    pub cwnd: Option<ByteSize>,
    /// The path's maximum packet size as the transport counts it: for TCP the IP packet, for others
    /// the UDP payload.
    pub path_mtu: ByteSize,
    /// DCUDP's pacing.
    pub pacing: Option<Pacing>,
}

impl PathSample {
    /// Converts a transport's sample; `None` before the first round trip.
    pub(super) fn of(sample: &probe::PathSample) -> Option<Self> {
        Some(Self {
            packets: sample.packets_sent,
            retransmits: sample.counters.retransmits,
            ce_marked: sample.ce_marked,
            rtt: sample.smoothed_rtt?,
            rtt_variation: sample.rtt_variation,
            cwnd: sample.cwnd,
            path_mtu: sample.mtu,
            pacing: sample.pacing,
        })
    }

    /// Returns the sample with the counters since `before`.
    pub(super) fn since(self, before: Option<&Self>) -> Self {
        let Some(before) = before else {
            return self;
        };
        let sent = |sent: u64| sent.saturating_sub(before.packets.unwrap_or(0));
        let marked = |marked: u64| marked.saturating_sub(before.ce_marked.unwrap_or(0));
        let switches_before = before.pacing.map_or(0, |pacing| pacing.switches);
        Self {
            packets: self.packets.map(sent),
            retransmits: self.retransmits.saturating_sub(before.retransmits),
            ce_marked: self.ce_marked.map(marked),
            pacing: self.pacing.map(|pacing| Pacing {
                switches: pacing.switches.saturating_sub(switches_before),
                ..pacing
            }),
            ..self
        }
    }
}

/// The summary of all samples of one stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PathSummary {
    /// The last sample.
    pub last: PathSample,
    /// The maximum congestion window.
    pub max_cwnd: Option<ByteSize>,
    /// The minimum smoothed round-trip time.
    pub min_rtt: Duration,
    /// The maximum smoothed round-trip time.
    pub max_rtt: Duration,
    /// The mean smoothed round-trip time.
    pub mean_rtt: Duration,
}

/// Collects samples for a summary.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PathHistory {
    summary: PathSummary,
    rtt_sum: Duration,
    samples: u64,
}

impl PathHistory {
    pub(super) fn add(&mut self, sample: PathSample) {
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

    /// Returns the last sample, if there was one.
    pub(super) fn last(&self) -> Option<&PathSample> {
        (self.samples > 0).then_some(&self.summary.last)
    }

    /// Returns the summary, if there was a sample.
    pub(super) fn summary(&self) -> Option<PathSummary> {
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
