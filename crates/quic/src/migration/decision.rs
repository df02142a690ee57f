//! The monitor's decision: a move, its cause, and the metrics that led to it.

use std::fmt;

use weir_units::{ByteSize, Duration, Time};

use crate::PathId;

/// A decision to move to another path.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Decision {
    /// When it was made.
    pub at: Time,
    /// The path in use.
    pub from: PathId,
    /// The path to use.
    pub to: PathId,
    /// The cause.
    pub cause: Cause,
    /// The RTT of the path in use, as reported to the monitor.
    pub from_rtt: Option<Duration>,
    /// The RTT of the new path, as reported to the monitor.
    pub to_rtt: Option<Duration>,
    /// The loss rate of the path in use, as reported to the monitor.
    pub from_loss: f64,
    /// The loss rate of the new path, as reported to the monitor.
    pub to_loss: f64,
}

/// The cause of a move.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Cause {
    /// Equation 4 of the DCQUIC paper holds (detector `paper`).
    Equation4(Equation4),
    /// Round trips have become slow, and streams with them (detector `size-class`).
    RoundTrips(RoundTrips),
    /// Most recent streams were slow for their size (detector `size-class`).
    Streams(Streams),
    /// No packets arrive on the path any more (all detectors).
    Interruption(Interruption),
    /// The preferred path has been healthy for long enough.
    Return(Return),
}

/// The metrics of equation 4; times are in nanoseconds per byte.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Equation4 {
    /// StreamComplTimePerByte(n − W, n − w), ns per byte.
    pub long_term: f64,
    /// StreamComplTimePerByte(n − w, n), ns per byte.
    pub short_term: f64,
    /// `short_term / long_term`.
    pub ratio: f64,
    /// The threshold of the ratio.
    pub alpha: f64,
}

/// The metrics of slow round trips.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RoundTrips {
    /// Consecutive slow samples.
    pub samples: u32,
    /// The average before them.
    pub long_term: Duration,
    /// The average of the slow samples.
    pub short_term: Duration,
    /// `short_term / long_term`.
    pub ratio: f64,
    /// The least multiple of the long-term average that a slow sample exceeds.
    pub alpha: f64,
    /// Streams that were slow for their size since the first slow sample.
    pub slow_streams: u32,
    /// Streams whose response is overdue compared with the long-term average.
    pub overdue_streams: u32,
}

/// The metrics of slow streams.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Streams {
    /// Streams that were slow for their size …
    pub slow: u32,
    /// … of this many last streams.
    pub of: u32,
    /// The largest size in the class of the newest slow stream.
    pub class: ByteSize,
    /// The long-term average of the network's time for streams of that class.
    pub long_term: Duration,
    /// The network's time for the newest slow stream.
    pub short_term: Duration,
    /// `short_term / long_term`.
    pub ratio: f64,
    /// The least multiple of the long-term average that a slow stream exceeds.
    pub alpha: f64,
}

/// The metrics of an interruption.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interruption {
    /// Probe timeouts since the last received packet.
    pub probe_timeouts: u32,
    /// The probe timeout without backoff (RFC 9002, section 6.2.1).
    pub pto: Duration,
    /// The time since the last received packet.
    pub silence: Duration,
    /// The time since the first unanswered packet was sent.
    pub unanswered: Duration,
    /// Responses due.
    pub streams_due: u32,
    /// How long the longest of them has been due.
    pub longest_wait: Option<Duration>,
    /// The long-term average of the time to the first byte of a response (`size-class` only).
    pub usual_wait: Option<Duration>,
}

/// The metrics of a return to the preferred path.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Return {
    /// How long the preferred path has been healthy.
    pub healthy_for: Duration,
}

impl Cause {
    /// Returns a stable name for logs and metrics: `equation-4`, `round-trips`, `streams`,
    /// `interruption`, `return`.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Equation4(_) => "equation-4",
            Self::RoundTrips(_) => "round-trips",
            Self::Streams(_) => "streams",
            Self::Interruption(_) => "interruption",
            Self::Return(_) => "return",
        }
    }

    /// Passes every metric to `visit`, with a stable name that ends with the unit, if any: `_us`
    /// for microseconds, `_ns_per_byte`, `_bytes`.
    pub fn metrics(&self, mut visit: impl FnMut(&'static str, f64)) {
        match *self {
            Self::Equation4(figures) => {
                visit("ratio", figures.ratio);
                visit("alpha", figures.alpha);
                visit("long_term_ns_per_byte", figures.long_term);
                visit("short_term_ns_per_byte", figures.short_term);
            }
            Self::RoundTrips(figures) => {
                visit("ratio", figures.ratio);
                visit("alpha", figures.alpha);
                visit("long_term_us", micros(figures.long_term));
                visit("short_term_us", micros(figures.short_term));
                visit("samples", f64::from(figures.samples));
                visit("slow_streams", f64::from(figures.slow_streams));
                visit("overdue_streams", f64::from(figures.overdue_streams));
            }
            Self::Streams(figures) => {
                visit("ratio", figures.ratio);
                visit("alpha", figures.alpha);
                visit("long_term_us", micros(figures.long_term));
                visit("short_term_us", micros(figures.short_term));
                visit("slow_streams", f64::from(figures.slow));
                visit("judged_streams", f64::from(figures.of));
                visit("class_bytes", figures.class.bytes() as f64);
            }
            Self::Interruption(figures) => {
                visit("probe_timeouts", f64::from(figures.probe_timeouts));
                visit("pto_us", micros(figures.pto));
                visit("silence_us", micros(figures.silence));
                visit("unanswered_us", micros(figures.unanswered));
                visit("streams_due", f64::from(figures.streams_due));
                if let Some(wait) = figures.longest_wait {
                    visit("longest_wait_us", micros(wait));
                }
                if let Some(wait) = figures.usual_wait {
                    visit("usual_wait_us", micros(wait));
                }
            }
            Self::Return(figures) => visit("healthy_for_us", micros(figures.healthy_for)),
        }
    }
}

impl Decision {
    /// Passes every metric to `visit`: those of the cause ([`Cause::metrics`]) and those of the
    /// paths.
    pub fn figures(&self, mut visit: impl FnMut(&'static str, f64)) {
        self.cause.metrics(&mut visit);
        if let Some(rtt) = self.from_rtt {
            visit("from_rtt_us", micros(rtt));
        }
        if let Some(rtt) = self.to_rtt {
            visit("to_rtt_us", micros(rtt));
        }
        visit("from_loss", self.from_loss);
        visit("to_loss", self.to_loss);
    }
}

fn micros(span: Duration) -> f64 {
    span.as_nanos() as f64 / 1e3
}

impl fmt::Display for Decision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            from, to, cause, ..
        } = self;
        write!(f, "from {from} to {to}: {cause}")?;
        match (self.from_rtt, self.to_rtt) {
            (Some(from), Some(to)) => write!(f, " (RTT {from} there, {to} here)"),
            _ => Ok(()),
        }
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Equation4(Equation4 {
                long_term,
                short_term,
                ratio,
                alpha,
            }) => write!(
                f,
                "streams take {short_term:.3} ns per byte instead of {long_term:.3}, \
                 {ratio:.2} times as long (α = {alpha})"
            ),
            Self::RoundTrips(figures) => write!(
                f,
                "{} round trips of {} instead of {}, {:.2} times as long (α = {}), with {} slow \
                 and {} overdue streams",
                figures.samples,
                figures.short_term,
                figures.long_term,
                figures.ratio,
                figures.alpha,
                figures.slow_streams,
                figures.overdue_streams,
            ),
            Self::Streams(figures) => write!(
                f,
                "{} of {} streams were slow, the last of at most {} with {} instead of {}, {:.2} \
                 times as long (α = {})",
                figures.slow,
                figures.of,
                figures.class,
                figures.short_term,
                figures.long_term,
                figures.ratio,
                figures.alpha,
            ),
            Self::Interruption(figures) => write!(
                f,
                "nothing was heard for {}, nor an answer for {}, {} probe timeouts of {}, with {} \
                 responses due",
                figures.silence,
                figures.unanswered,
                figures.probe_timeouts,
                figures.pto,
                figures.streams_due,
            ),
            Self::Return(figures) => write!(
                f,
                "the preferred path has been healthy for {}",
                figures.healthy_for
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decisions_are_formatted_as_text_and_as_figures() {
        let decision = Decision {
            at: Time::ZERO,
            from: PathId(0),
            to: PathId(2),
            cause: Cause::Interruption(Interruption {
                probe_timeouts: 2,
                pto: Duration::from_micros(650),
                silence: Duration::from_millis(2),
                unanswered: Duration::from_micros(1850),
                streams_due: 1,
                longest_wait: Some(Duration::from_micros(1850)),
                usual_wait: None,
            }),
            from_rtt: Some(Duration::from_micros(100)),
            to_rtt: Some(Duration::from_micros(110)),
            from_loss: 0.0,
            to_loss: 0.5,
        };
        assert_eq!(
            decision.to_string(),
            "from path 0 to path 2: nothing was heard for 2ms, nor an answer for 1.85ms, 2 probe \
             timeouts of 650us, with 1 responses due (RTT 100us there, 110us here)"
        );
        let mut figures = Vec::new();
        decision.figures(|name, value| figures.push((name, value)));
        assert_eq!(figures.len(), 10);
        assert!(figures.contains(&("pto_us", 650.0)) && figures.contains(&("to_loss", 0.5)));
    }
}
