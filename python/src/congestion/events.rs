//! What a congestion control learns, for Python: times in nanoseconds of virtual time, sizes in bytes.

use pyo3::prelude::*;
use weir_congestion::{AckSample, LossCause};
use weir_units::{ByteSize, Duration, Time};

fn nanos(span: Duration) -> u64 {
    span.as_nanos()
}

/// The connection for which a congestion control is built.
#[pyclass(frozen, module = "weir")]
#[derive(Debug)]
pub(crate) struct Context {
    pub(crate) packet: ByteSize,
    /// A seed for random decisions, of this connection alone.
    #[pyo3(get)]
    pub(crate) seed: u64,
    /// Whether the transport spreads a window over the round trip.
    #[pyo3(get)]
    pub(crate) is_paced: bool,
}

#[pymethods]
impl Context {
    /// The size of a full packet: a TCP segment's data.
    #[getter]
    fn packet_bytes(&self) -> u64 {
        self.packet.bytes()
    }
}

/// One acknowledgment.
#[pyclass(frozen, freelist = 16, module = "weir")]
#[derive(Debug)]
pub(crate) struct Ack(pub(crate) AckSample);

#[pymethods]
impl Ack {
    #[getter]
    fn now_ns(&self) -> u64 {
        self.0.now.as_nanos()
    }
    /// Newly acknowledged.
    #[getter]
    fn acked_bytes(&self) -> u64 {
        self.0.acked.bytes()
    }
    /// Of these, CE-marked, where the transport counts marks.
    #[getter]
    fn ce_marked_bytes(&self) -> u64 {
        self.0.ce_marked.bytes()
    }
    /// Whether an ECE echo was set, where the transport does not count marks.
    #[getter]
    fn ece(&self) -> bool {
        self.0.ece
    }
    /// The round-trip time that this acknowledgment measures, or None.
    #[getter]
    fn rtt_ns(&self) -> Option<u64> {
        self.0.rtt.map(nanos)
    }
    #[getter]
    fn smoothed_rtt_ns(&self) -> u64 {
        nanos(self.0.smoothed_rtt)
    }
    #[getter]
    fn min_rtt_ns(&self) -> u64 {
        nanos(self.0.min_rtt)
    }
    /// In flight before this acknowledgment.
    #[getter]
    fn prior_in_flight_bytes(&self) -> u64 {
        self.0.prior_in_flight.bytes()
    }
    /// In flight after it, and after the losses that it reveals.
    #[getter]
    fn in_flight_bytes(&self) -> u64 {
        self.0.in_flight.bytes()
    }
    /// When the newest acknowledged packet was sent.
    #[getter]
    fn newest_sent_ns(&self) -> u64 {
        self.0.newest_sent.as_nanos()
    }
    /// The measured delivery rate in bits per second, or None; only for classes with `wants_delivery = True`.
    #[getter]
    fn delivery_rate_bps(&self) -> Option<u64> {
        self.0.delivery.map(|sample| sample.rate.bits_per_second())
    }
    /// Whether the window was not the limit: it must not grow.
    #[getter]
    fn app_limited(&self) -> bool {
        self.0.app_limited
    }
    /// Whether TCP repairs losses.
    #[getter]
    fn is_recovering(&self) -> bool {
        self.0.is_recovering
    }
    /// Whether it ends a round trip.
    #[getter]
    fn round_ended(&self) -> bool {
        self.0.round_ended
    }
}

/// Packets declared lost, or losses that turned out spurious.
#[pyclass(frozen, module = "weir")]
#[derive(Debug)]
pub(crate) struct Loss {
    pub(crate) now: Time,
    pub(crate) lost: ByteSize,
    pub(crate) newest_sent: Time,
    pub(crate) cause: Option<LossCause>,
    pub(crate) in_flight: Option<ByteSize>,
}

#[pymethods]
impl Loss {
    #[getter]
    fn now_ns(&self) -> u64 {
        self.now.as_nanos()
    }
    #[getter]
    fn lost_bytes(&self) -> u64 {
        self.lost.bytes()
    }
    /// When the newest lost packet was sent.
    #[getter]
    fn newest_sent_ns(&self) -> u64 {
        self.newest_sent.as_nanos()
    }
    /// How the loss was detected: "acks", "nak" or "timeout"; None for a spurious loss.
    #[getter]
    fn cause(&self) -> Option<&'static str> {
        self.cause.map(|cause| match cause {
            LossCause::Acks => "acks",
            LossCause::Nak => "nak",
            LossCause::Timeout => "timeout",
        })
    }
    /// In flight after the loss; None for a spurious loss.
    #[getter]
    fn in_flight_bytes(&self) -> Option<u64> {
        self.in_flight.map(ByteSize::bytes)
    }
}

/// A sent packet.
#[pyclass(frozen, freelist = 16, module = "weir")]
#[derive(Debug)]
pub(crate) struct Sent {
    pub(crate) now: Time,
    pub(crate) size: ByteSize,
    pub(crate) in_flight: ByteSize,
}

#[pymethods]
impl Sent {
    #[getter]
    fn now_ns(&self) -> u64 {
        self.now.as_nanos()
    }
    #[getter]
    fn size_bytes(&self) -> u64 {
        self.size.bytes()
    }
    /// In flight, this packet included.
    #[getter]
    fn in_flight_bytes(&self) -> u64 {
        self.in_flight.bytes()
    }
}

/// What remains until a transfer's deadline.
#[pyclass(frozen, module = "weir")]
#[derive(Debug)]
pub(crate) struct Deadline {
    pub(crate) remaining: ByteSize,
    pub(crate) left: Duration,
}

#[pymethods]
impl Deadline {
    #[getter]
    fn remaining_bytes(&self) -> u64 {
        self.remaining.bytes()
    }
    /// Zero once the deadline has passed.
    #[getter]
    fn time_left_ns(&self) -> u64 {
        nanos(self.left)
    }
}
