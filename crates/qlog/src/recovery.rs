//! Records of loss recovery and congestion control (draft-ietf-quic-qlog-quic-events, section
//! "Recovery events"), and of keys.

use serde::Serialize;
use weir_quic::observe::{EcnValidation, Metrics};

use crate::record::millis;

/// `recovery_metrics_updated`: the changed metrics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub(crate) struct MetricsUpdated {
    #[serde(skip_serializing_if = "Option::is_none")]
    min_rtt: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    smoothed_rtt: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    latest_rtt: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rtt_variance: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pto_count: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    congestion_window: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes_in_flight: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ssthresh: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pacing_rate: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    weir_ce_marks: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    weir_ce_fraction: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    weir_bandwidth: Option<u64>,
}

impl MetricsUpdated {
    pub(crate) fn new(metrics: &Metrics) -> Self {
        let sampled = metrics.min_rtt.is_some();
        Self {
            min_rtt: metrics.min_rtt.map(millis),
            smoothed_rtt: sampled.then(|| millis(metrics.smoothed_rtt)),
            latest_rtt: sampled.then(|| millis(metrics.latest_rtt)),
            rtt_variance: sampled.then(|| millis(metrics.rtt_variation)),
            pto_count: Some(metrics.pto_count),
            // A rate-based controller's unbounded window has no meaning in bytes.
            congestion_window: Some(metrics.window.bytes()).filter(|window| *window < 1 << 53),
            bytes_in_flight: Some(metrics.in_flight.bytes()),
            ssthresh: metrics.controller.ssthresh.map(|size| size.bytes()),
            pacing_rate: metrics.pacing_rate.map(|rate| rate.bits_per_second()),
            weir_ce_marks: Some(metrics.totals.ce_marks),
            weir_ce_fraction: metrics.controller.ce_fraction,
            weir_bandwidth: metrics
                .controller
                .bandwidth
                .map(|rate| rate.bits_per_second()),
        }
    }

    /// Returns the changed metrics; `None` without changes.
    pub(crate) fn since(&self, was: &Self) -> Option<Self> {
        fn news<T: PartialEq>(is: Option<T>, was: &Option<T>) -> Option<T> {
            is.filter(|is| Some(is) != was.as_ref())
        }
        let changes = Self {
            min_rtt: news(self.min_rtt, &was.min_rtt),
            smoothed_rtt: news(self.smoothed_rtt, &was.smoothed_rtt),
            latest_rtt: news(self.latest_rtt, &was.latest_rtt),
            rtt_variance: news(self.rtt_variance, &was.rtt_variance),
            pto_count: news(self.pto_count, &was.pto_count),
            congestion_window: news(self.congestion_window, &was.congestion_window),
            bytes_in_flight: news(self.bytes_in_flight, &was.bytes_in_flight),
            ssthresh: news(self.ssthresh, &was.ssthresh),
            pacing_rate: news(self.pacing_rate, &was.pacing_rate),
            weir_ce_marks: news(self.weir_ce_marks, &was.weir_ce_marks),
            weir_ce_fraction: news(self.weir_ce_fraction, &was.weir_ce_fraction),
            weir_bandwidth: news(self.weir_bandwidth, &was.weir_bandwidth),
        };
        (changes != Self::default()).then_some(changes)
    }
}

/// `congestion_state_updated` and `ecn_state_updated`.
#[derive(Serialize)]
pub(crate) struct ValueUpdated {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) old: Option<&'static str>,
    pub(crate) new: &'static str,
}

/// Returns the draft's name; `None` where ECN is off.
pub(crate) fn ecn_state(state: EcnValidation) -> Option<&'static str> {
    match state {
        EcnValidation::Off => None,
        EcnValidation::Testing => Some("testing"),
        EcnValidation::Unknown => Some("unknown"),
        EcnValidation::Capable => Some("capable"),
        EcnValidation::Failed => Some("failed"),
    }
}

/// `key_updated`.
#[derive(Serialize)]
pub(crate) struct KeyUpdated {
    pub(crate) key_type: &'static str,
    pub(crate) key_phase: u64,
}
